"""Reactions, status and progress, over the real database."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import ChannelError
from core.chat.signals import SignalWorker
from core.model.activity import Activity, ActivityState
from core.model.message import InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import Mark, OutboundKind, PostState
from core.model.reasons import Because, Reason
from core.model.session import Binding
from core.session.system import System
from core.store.inbox import Inbox
from core.store.outbox import Marks
from tests.support.chat import HOME, TEAM, Chat
from tests.support.outgoing import HandClock, post

T0 = datetime(2026, 11, 29, tzinfo=UTC)
ROOT = "1.0"
S = MessageState


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def chat() -> Chat:
    """Give an empty chat."""
    return Chat()


@pytest.fixture
def bound(system: System, clock: HandClock) -> System:
    """Give ports with the session `scribe`, uid `s-1`, bound to a thread."""
    database = system.database
    moved = replace(system, clock=clock, inbox=Inbox(database, clock), marks=Marks(database, clock))
    moved.bindings.bind(Binding("slack", TEAM, HOME, ROOT, "s-1", "scribe", T0))
    return moved


@pytest.fixture
def worker(bound: System, chat: Chat) -> SignalWorker:
    """Give the worker."""
    return SignalWorker(bound, chat)


def reply(system: System, number: int = 1, again: int = 0) -> Callable[[MessageState], None]:
    """Commit a reply to the instance `i-1` and return what moves it on; `again`: it is that one, sent again."""
    address = ReplyAddress("slack", TEAM, HOME, ROOT, f"1.{again or number}")
    system.inbox.add(
        [
            NewMessage(
                f"m-{number}",
                f"again:m-{again}" if again else f"slack:{number}",
                "s-1",
                "scribe",
                1,
                Kind.REPLY,
                "slack:U1",
                "alice",
                "slack",
                f"k{number}",
                "text",
                False,
                number,
                T0,
                address,
                again_of=f"m-{again}" if again else "",
            )
        ]
    )

    def move(state: MessageState) -> None:
        row = system.inbox.get(f"m-{number}")
        assert isinstance(row, InboxRow)
        system.inbox.advance(row, state, instance="i-1")

    return move


def does(system: System, state: ActivityState, instance: str = "i-1", reason: Reason | None = None) -> None:
    """Let the session do that."""
    why = Because(reason) if reason is not None else None
    system.activities.put(Activity("s-1", instance, state, T0, because=why, turn_started_at=T0))


def turns(worker: SignalWorker, clock: HandClock, count: int = 4) -> None:
    """Take turns, with the pause between two reactions."""
    for _ in range(count):
        worker.turn()
        clock.ahead += 1.5


def test_a_message_is_marked_when_it_is_taken_and_when_it_is_done(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """One reaction at a time, each call once."""
    move = reply(bound)
    turns(worker, clock)
    waiting = dict(chat.reactions)
    does(bound, ActivityState.BUSY)
    move(S.CONFIRMED)
    turns(worker, clock)
    taken = dict(chat.reactions)
    bound.marks.over("s-1", "i-1", T0, failed=False)
    turns(worker, clock)

    assert (waiting, taken, chat.reactions) == ({}, {"1.1": {Mark.TAKEN}}, {"1.1": {Mark.DONE}})
    assert chat.calls == ["react", "react"]


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        (S.REFUSED, Mark.REFUSED),
        (S.EXPIRED, Mark.REFUSED),
        (S.CANCELLED, Mark.REFUSED),
        (S.FAILED, Mark.REFUSED),
    ],
)
def test_what_goes_no_further_is_marked(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock, state: MessageState, mark: Mark
) -> None:
    """Beside the note that says why."""
    reply(bound)(state)

    turns(worker, clock)

    assert chat.reactions == {"1.1": {mark}}


def test_a_turn_that_ended_in_an_error_is_no_turn_done(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """The message was taken, and nothing came of it."""
    move = reply(bound)
    does(bound, ActivityState.BUSY)
    move(S.CONFIRMED)
    turns(worker, clock)

    bound.marks.over("s-1", "i-1", T0, failed=True)
    turns(worker, clock)

    assert chat.reactions == {"1.1": {Mark.REFUSED}}


def told_ended(system: System) -> None:
    """Note that the instance has ended: stopped, killed, crashed, or lost with its server."""
    system.exit_ledger.tell("i-1", "s-1", T0)


def started_again(system: System) -> None:
    """Let another instance read after that."""
    told_ended(system)
    does(system, ActivityState.IDLE, "i-2")


CUTS: dict[str, Callable[[System], object]] = {
    "it was ended": told_ended,
    "it was started again": started_again,
    "another instance reads": lambda system: does(system, ActivityState.IDLE, "i-2"),
    "another instance ends a turn": lambda system: system.marks.over("s-1", "i-2", T0, failed=False),
    "it was deleted": lambda system: system.activities.forget("s-1"),
    "it was interrupted in the terminal": lambda system: does(system, ActivityState.IDLE, reason=Reason.CUT_OFF),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_turn_that_was_cut_off_is_never_done(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock, cut: str
) -> None:
    """However it was: its message goes no further, whatever the session does next."""
    move = reply(bound)
    does(bound, ActivityState.BUSY)
    move(S.CONFIRMED)
    turns(worker, clock)
    taken = dict(chat.reactions)

    CUTS[cut](bound)
    turns(worker, clock)
    does(bound, ActivityState.IDLE, "i-2")
    turns(worker, clock)

    assert (taken, chat.reactions) == ({"1.1": {Mark.TAKEN}}, {"1.1": {Mark.REFUSED}})


def test_a_turn_that_ended_with_its_program_is_told_and_can_be_sent_again(
    worker: SignalWorker, bound: System, clock: HandClock
) -> None:
    """A restart in mid-turn: the thread hears what became of the message, once. What a person cut off needs no note."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    turns(worker, clock)
    does(bound, ActivityState.IDLE, "i-2")
    turns(worker, clock)

    notes = [row.post for row in bound.outbox.due("slack", datetime.now(UTC) + timedelta(days=9))]
    assert [note.text for note in notes] == [
        "Your message to `scribe` was taken by a turn that was cut off by the end of its program. To do: send it again"
    ]
    assert [[button.label for button in note.buttons] for note in notes] == [["Send again"]]


def test_a_turn_that_a_person_cut_off_gets_no_note(worker: SignalWorker, bound: System, clock: HandClock) -> None:
    """Whoever pressed Escape knows."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    turns(worker, clock)
    does(bound, ActivityState.IDLE, reason=Reason.CUT_OFF)
    turns(worker, clock)

    assert not bound.outbox.due("slack", datetime.now(UTC) + timedelta(days=9))


def test_a_turn_cut_off_while_no_service_ran_is_told_by_the_next(bound: System, chat: Chat, clock: HandClock) -> None:
    """Though the killed one had not recorded what it showed, and it is too late to tell that it was taken."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]
    SignalWorker(bound, chat).turn()
    told_ended(bound)
    clock.ahead += 300

    turns(SignalWorker(bound, chat), clock)

    assert chat.reactions == {"1.1": {Mark.REFUSED}}


@pytest.mark.parametrize("recorded", [True, False])
def test_of_a_message_that_is_sent_again_only_the_latest_stands(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock, recorded: bool
) -> None:
    """What the first one showed gives way, also if that was never recorded."""
    chat.faults = [] if recorded else [("lost", ChannelError("no answer", transient=True, unclear=True))]
    reply(bound)(S.REFUSED)
    worker.turn()
    refused = dict(chat.reactions)
    clock.ahead += 10
    does(bound, ActivityState.BUSY)
    reply(bound, 2, again=1)(S.CONFIRMED)
    turns(worker, clock)
    taken = dict(chat.reactions)
    bound.marks.over("s-1", "i-1", T0, failed=False)
    turns(worker, clock)
    turns(SignalWorker(bound, chat), clock)

    assert (refused, taken) == ({"1.1": {Mark.REFUSED}}, {"1.1": {Mark.TAKEN}})
    assert chat.reactions == {"1.1": {Mark.DONE}}


def test_what_was_sent_again_is_not_marked_as_refused_any_more(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """A pause kept the first one's mark back until it was overtaken."""
    chat.faults = [("react", ChannelError("slow down", transient=True, retry_after=30.0))]
    reply(bound)(S.REFUSED)
    worker.turn()
    reply(bound, 2, again=1)
    clock.ahead += 31

    turns(worker, clock)

    assert chat.calls == ["react"]


def test_what_nobody_can_tell_is_marked_until_somebody_can(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """A question mark gives way to what is found out."""
    move = reply(bound)
    for state in (S.CLAIMED, S.UNKNOWN):
        move(state)
    turns(worker, clock)
    unknown = dict(chat.reactions)
    does(bound, ActivityState.BUSY)
    move(S.CONFIRMED)
    turns(worker, clock)

    assert (unknown, chat.reactions) == ({"1.1": {Mark.UNKNOWN}}, {"1.1": {Mark.TAKEN}})


def test_a_pause_leaves_only_the_latest_mark(worker: SignalWorker, bound: System, chat: Chat, clock: HandClock) -> None:
    """What was overtaken meanwhile is never shown."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    chat.faults = [("react", ChannelError("slow down", transient=True, retry_after=30.0))]
    worker.turn()
    clock.ahead += 20
    worker.turn()
    bound.marks.over("s-1", "i-1", T0, failed=False)
    early = list(chat.calls)
    clock.ahead += 11
    turns(worker, clock)

    assert (early, chat.calls, chat.reactions) == (["react"], ["react", "react"], {"1.1": {Mark.DONE}})


def test_a_mark_that_comes_too_late_is_left_out(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """Minutes later nobody wonders any more whether it was taken."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    chat.faults = [("react", ChannelError("slow down", transient=True, retry_after=180.0))]
    worker.turn()
    clock.ahead += 181

    turns(worker, clock)

    assert chat.calls == ["react"]


def test_a_message_of_which_no_more_can_be_known_is_marked_as_typed(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """A program that reports nothing: that the agent has it would be said for ever, and is not known."""
    reply(bound)(S.CLAIMED)
    row = bound.inbox.get("m-1")
    assert row is not None
    bound.inbox.advance(row, S.SUBMITTED, instance="i-1", final=True)
    turns(worker, clock)
    reply(bound, 2)(S.CLAIMED)
    row = bound.inbox.get("m-2")
    assert row is not None
    bound.inbox.advance(row, S.SUBMITTED, instance="i-1")
    turns(worker, clock)

    assert chat.reactions == {"1.1": {Mark.TYPED}, "1.2": {Mark.TAKEN}}


def test_nothing_is_taken_back_that_never_stood_there(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """Each such call would cost as much as a reaction that somebody waits for."""
    reply(bound)(S.REFUSED)
    does(bound, ActivityState.BUSY)
    reply(bound, 2)(S.CONFIRMED)
    turns(worker, clock)
    bound.marks.over("s-1", "i-1", T0, failed=False)
    turns(worker, clock)

    assert chat.taken_back == [("1.2", Mark.TAKEN)]


@pytest.mark.long
def test_every_refusal_is_marked_however_many_there_are(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """Slack allows fifty reactions a minute: the last of 600 comes after twelve minutes, and it comes."""
    for number in range(600):
        reply(bound, number)(S.REFUSED)

    turns(worker, clock, 300)
    does(bound, ActivityState.BUSY)
    reply(bound, 1000)(S.CONFIRMED)
    turns(worker, clock, 1)
    meanwhile = dict(chat.reactions)
    turns(SignalWorker(bound, chat), clock, 320)

    assert meanwhile["1.1000"] == {Mark.TAKEN}  # whoever speaks now does not wait for them
    assert [chat.reactions.get(f"1.{number}") for number in range(600)] == [{Mark.REFUSED}] * 600
    assert len(chat.calls) == 601


def test_a_killed_service_shows_what_it_had_not_recorded_once(bound: System, chat: Chat, clock: HandClock) -> None:
    """The lost one stood there already, and is taken back with the next."""
    does(bound, ActivityState.BUSY)
    reply(bound)(S.CONFIRMED)
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]
    SignalWorker(bound, chat).turn()
    bound.marks.over("s-1", "i-1", T0, failed=False)

    turns(SignalWorker(bound, chat), clock)

    assert chat.reactions == {"1.1": {Mark.DONE}}


def test_a_right_that_lacks_is_told_once_and_stops_only_that(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the scope there are no reactions, and the status goes on."""
    does(bound, ActivityState.BUSY)
    for number in (1, 2):
        reply(bound, number)(S.CONFIRMED)
    lacking = ChannelError("missing_scope", transient=False, reason=ChannelError.NOT_ALLOWED)
    chat.faults = [("react", lacking)]

    turns(worker, clock)

    assert chat.calls == ["react"]
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
    assert chat.statuses == [(ROOT, "is working…")]


def test_the_status_follows_what_the_session_does(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """Each change once, refreshed before the chat takes it away, and gone with the turn."""
    for state in (ActivityState.BUSY, ActivityState.BUSY, ActivityState.PERMISSION, ActivityState.IDLE):
        does(bound, state)
        turns(worker, clock, 2)
    seen = [text for _, text in chat.statuses]
    does(bound, ActivityState.BUSY)
    worker.turn()
    clock.ahead += 95
    worker.turn()

    assert seen == ["is working…", "is waiting for a permission", ""]
    assert [text for _, text in chat.statuses[3:]] == ["is working…", "is working…"]


def test_the_status_ends_with_the_program(worker: SignalWorker, bound: System, chat: Chat, clock: HandClock) -> None:
    """One that was stopped, or crashed, in the middle of a turn does nothing any more; the next one does."""
    does(bound, ActivityState.BUSY)
    worker.turn()

    bound.exit_ledger.tell("i-1", "s-1", clock.now(), None, counted=False)
    for _ in range(2):
        worker.turn()
        clock.ahead += 95
    over = [text for _, text in chat.statuses]
    does(bound, ActivityState.BUSY, instance="i-2")
    worker.turn()

    assert over == ["is working…", ""]
    assert [text for _, text in chat.statuses[2:]] == ["is working…"]


def test_a_post_takes_the_status_away_so_it_is_shown_again(worker: SignalWorker, bound: System, chat: Chat) -> None:
    """The turn goes on."""
    does(bound, ActivityState.BUSY)
    worker.turn()
    worker.posted("s-1")
    worker.turn()
    worker.turn()

    assert [text for _, text in chat.statuses] == ["is working…", "is working…"]


def test_the_steps_of_a_turn_are_one_message(worker: SignalWorker, bound: System, chat: Chat, clock: HandClock) -> None:
    """Edited at most every three seconds, whatever happens meanwhile; the next turn has its own."""
    for number in range(5):
        bound.progress.note("s-1", "t-1", f"- step {number}")
        worker.turn()
        clock.ahead += 1
    clock.ahead += 3
    worker.turn()
    bound.progress.note("s-1", "t-2", "- other")
    clock.ahead += 3
    worker.turn()

    first, second = chat.texts(ROOT)
    assert first.startswith("**Steps of this turn: 5**\n- step 0")
    assert second == "**Steps of this turn: 1**\n- other"
    assert chat.calls == ["post", "update", "update", "post"]


def test_steps_wait_while_something_is_to_be_posted(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """They share the channel's pace with answers, and tell less."""
    bound.outbox.add([post(OutboundKind.ANSWER)])
    bound.progress.note("s-1", "t-1", "- step")
    turns(worker, clock)
    before = list(chat.messages)

    bound.outbox.advance(bound.outbox.due("slack", clock.now())[0], PostState.SENT, ts="1.9")
    turns(worker, clock)

    assert before == []
    assert chat.texts(ROOT) == ["**Steps of this turn: 1**\n- step"]


def test_a_message_of_steps_whose_answer_was_lost_is_found_again(
    worker: SignalWorker, bound: System, chat: Chat, clock: HandClock
) -> None:
    """One a turn, come what may."""
    bound.progress.note("s-1", "t-1", "- step with xoxb-1-2-abc")
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]
    worker.turn()
    clock.ahead += 6
    worker.turn()

    assert chat.texts(ROOT) == ["**Steps of this turn: 1**\n- step with [redacted]"]
    assert chat.calls == ["post", "find", "update"]


def test_without_verbosity_no_steps_are_told(worker: SignalWorker, bound: System, chat: Chat) -> None:
    """They are what verbose adds."""
    chat.unwanted = {OutboundKind.PROGRESS}
    bound.progress.note("s-1", "t-1", "- step")

    worker.turn()

    assert chat.calls == []


def test_a_session_without_a_thread_shows_nothing(worker: SignalWorker, bound: System, chat: Chat) -> None:
    """Its status ends where it was shown."""
    does(bound, ActivityState.BUSY)
    worker.turn()
    bound.bindings.unbind("s-1", "slack")
    bound.progress.note("s-1", "t-1", "- step")
    worker.turn()

    assert chat.statuses == [(ROOT, "is working…"), (ROOT, "")]
    assert chat.messages == []
