"""Turns that are shown as they run, over the real database: what is shown, how it ends, and what a kill leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base import failpoints
from core.base.errors import ChannelError
from core.base.failpoints import Failpoint
from core.chat.live import LIFETIME, LivePosts
from core.chat.outbound import OutboundWorker
from core.chat.signals import SignalWorker
from core.model.activity import Activity, ActivityState
from core.model.live import LiveState, StepState, turn_key
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import OutboundKind, PostState
from core.model.session import Binding, SessionRecord
from core.session.system import System
from core.store.inbox import Inbox
from core.store.outbox import Marks
from tests.integration.lifecycle.machine import Killed
from tests.support.chat import HOME, TEAM, Chat, Message
from tests.support.outgoing import HandClock, events, post
from tests.support.world import definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)
ROOT = "1.0"
TURN = turn_key("i-1", T0)
ANSWER = "first line\nsecond line\nlast line"


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def chat() -> Chat:
    """Give an empty chat that takes live posts."""
    return Chat(streams=True)


@pytest.fixture
def asked(system: System, clock: HandClock) -> System:
    """Give ports with the session `scribe` in a turn that alice asked for in its thread."""
    database = system.database
    moved = replace(system, clock=clock, inbox=Inbox(database, clock), marks=Marks(database, clock))
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), T0))
    moved.bindings.bind(Binding("slack", TEAM, HOME, ROOT, "s-1", "scribe", T0))
    address = ReplyAddress("slack", TEAM, HOME, ROOT, "1.1")
    moved.inbox.add(
        [
            NewMessage("m-1", "slack:1", "s-1", "scribe", 1, Kind.REPLY, "slack:U1", "alice", "slack", "k1", "go",
                       False, 1, T0, address)
        ]
    )  # fmt: skip
    row = moved.inbox.get("m-1")
    assert row is not None
    moved.inbox.advance(row, MessageState.CONFIRMED, instance="i-1")
    works(moved)
    return moved


def works(system: System, state: ActivityState = ActivityState.BUSY, began: datetime = T0) -> None:
    """Let the session do that."""
    system.activities.put(Activity("s-1", "i-1", state, T0, turn_started_at=began))


def calls(system: System, tool: str = "Bash", detail: str = "make") -> None:
    """Let the turn call a tool."""
    system.lives.begin_step("s-1", TURN, "", tool, detail)


def answers(system: System, text: str = ANSWER) -> None:
    """Let the turn end with an answer, as the report of its end is taken in."""
    answer = replace(post(OutboundKind.ANSWER, 1), text=text)
    with system.database.transaction(durable=True):
        works(system, ActivityState.IDLE)
        system.outbox.add([answer])
        system.lives.answered("s-1", TURN, answer.id)


class Service:
    """The two workers of one process."""

    def __init__(self, system: System, chat: Chat, clock: HandClock) -> None:
        self.off: list[str] = []
        live = LivePosts(system, chat, lambda _, why: self.off.append(why))
        self.system, self.clock = system, clock
        self.signals = SignalWorker(system, chat, live)
        self.outbound = OutboundWorker(system, chat, self.signals.posted, live=live)

    def run(self, turns: int = 6) -> None:
        """Let both take turns, with the pauses that a chat asks for."""
        for _ in range(turns):
            self.outbound.turn()
            self.signals.turn()
            self.clock.ahead += 4.0


@pytest.fixture
def service(asked: System, chat: Chat, clock: HandClock) -> Service:
    """Give the workers."""
    return Service(asked, chat, clock)


def titles(message: Message) -> list[tuple[str, StepState]]:
    """Return what a live post shows."""
    return [(step.title, step.state) for step in message.shown.steps]


def test_a_turn_is_shown_and_ends_with_its_answer(asked: System, chat: Chat, service: Service) -> None:
    """One message: its tools with their outcome, then the answer in pieces; the post's row knows where it stands."""
    calls(asked)
    service.run(2)
    asked.lives.end_step("s-1", TURN, "", "Bash", StepState.FAILED)
    calls(asked, detail="test")
    service.run(2)
    running = titles(chat.messages[0])
    asked.lives.end_step("s-1", TURN, "", "Bash", StepState.DONE)
    answers(asked)
    service.run()

    [message] = chat.messages
    row = asked.outbox.get(message.post_id)
    assert running == [("Bash make", StepState.FAILED), ("Bash test", StepState.RUNNING)]
    assert (message.text, message.over, message.thread) == (ANSWER, True, ROOT)
    assert titles(message)[1] == ("Bash test", StepState.DONE)
    assert row is not None
    assert (row.state, row.ts) == (PostState.SENT, message.ts)
    assert asked.lives.all("slack") == ()
    assert events(asked) == ["channel.posted"]
    assert chat.statuses[-1] == (ROOT, "")  # the end of a message is no new one, which would take the status away
    assert [call for call in chat.calls if call != "react"] == ["begin", "add", "add", "add", "end"]


def test_the_plan_is_shown_as_it_changes(asked: System, chat: Chat, service: Service) -> None:
    """By the harness's own record of it."""
    asked.workings.put("s-1", "i-1", told([("read", "in progress"), ("write", "pending")]))
    calls(asked, "TodoWrite", "")
    service.run(2)
    asked.workings.put("s-1", "i-1", told([("read", "done"), ("write", "in progress")]))
    service.run(2)

    [message] = chat.messages
    assert message.shown.title == "1 of 2 done"
    assert titles(message) == [("read", StepState.DONE), ("write", StepState.RUNNING)]


def told(plan: list[tuple[str, str]]) -> dict[str, object]:
    """Return what is stored of a plan."""
    items = [{"text": text, "state": state} for text, state in plan]
    usage: dict[str, object] = {"turn": None, "session": None, "byModel": {}}
    return {
        "plan": items, "tool": "", "model": None, "context": {"used": None, "size": None}, "usage": usage, "limit": None
    }  # fmt: skip


def test_secrets_are_taken_out_of_steps(
    asked: System, chat: Chat, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a tool is called with is shown as every other text."""
    secret = "xoxb-" + "1234567890-abcdefghijkl" * 2
    calls(asked, detail=f"curl -H {secret}")

    Service(asked, chat, clock).run(2)

    assert "1234567890" not in str(chat.messages)
    assert len(chat.messages) == 1


@pytest.mark.parametrize("why", ["nobody asked here", "no tool ran", "the chat takes none", "its verbosity"])
def test_turns_without_a_live_post_are_answered_as_ever(asked: System, chat: Chat, clock: HandClock, why: str) -> None:
    """A loop's turn, one that is over at once, a chat without such messages."""
    if why == "nobody asked here":
        with asked.database.transaction(durable=False):
            asked.database.write("UPDATE inbox SET from_kind = NULL")
    if why == "the chat takes none":
        chat.faults = [("begin", ChannelError("unknown_method", transient=False, reason=ChannelError.NOT_ALLOWED))]
    chat.streams = why != "its verbosity"
    if why != "no tool ran":
        calls(asked)
    service = Service(asked, chat, clock)
    service.run(3)
    answers(asked)
    service.run()

    assert [message.text for message in chat.messages] == ANSWER.split("\n")  # the chat's own parts
    assert chat.calls.count("begin") == (why == "the chat takes none")
    assert service.off == (["turns are not shown as they run: unknown_method"] if why == "the chat takes none" else [])


def test_a_chat_without_live_posts_is_asked_once(asked: System, chat: Chat, service: Service) -> None:
    """Until the next start, however many turns follow."""
    chat.faults = [("begin", ChannelError("unknown_method", transient=False, reason=ChannelError.NOT_ALLOWED))]
    calls(asked)
    service.run(2)
    later = datetime(2026, 11, 30, tzinfo=UTC)
    works(asked, began=later)
    asked.lives.begin_step("s-1", turn_key("i-1", later), "", "Bash", "again")
    service.run(4)

    assert chat.calls.count("begin") == 1


def test_a_turn_without_an_answer_ends_its_live_post(asked: System, chat: Chat, service: Service) -> None:
    """After a while in which the answer may still be told; what it shows stays, and says so."""
    calls(asked)
    service.run(2)
    works(asked, ActivityState.IDLE)
    service.run(3)
    waiting = chat.messages[0].over
    service.run(6)

    [message] = chat.messages
    assert (waiting, message.over) == (False, True)
    assert message.shown.title == "1 step: the turn ended without an answer"
    assert asked.lives.all("slack") == ()


def test_a_long_turn_parks_its_live_post(asked: System, chat: Chat, clock: HandClock, service: Service) -> None:
    """Before the chat's time for a message is over; a fresh one takes its place later, with all that is shown then."""
    calls(asked)
    service.run(2)
    clock.ahead += LIFETIME.total_seconds()
    service.run(2)
    [parked] = chat.messages
    asked.lives.end_step("s-1", TURN, "", "Bash", StepState.DONE)
    service.run(2)
    shown = len(chat.messages)
    clock.ahead += LIFETIME.total_seconds()
    service.run(3)
    answers(asked)
    service.run()

    [message] = chat.messages
    assert (parked.over, shown) == (True, 1)
    assert parked.shown.title == "1 step: it goes on, and is not shown any further here"
    assert message is not parked
    assert (message.text, titles(message)) == (ANSWER, [("Bash make", StepState.DONE)])


def test_an_answer_after_a_parked_live_post_is_a_post(
    asked: System, chat: Chat, clock: HandClock, service: Service
) -> None:
    """The chat takes no more for it; it stays as it is."""
    calls(asked)
    service.run(2)
    clock.ahead += LIFETIME.total_seconds()
    service.run(2)
    answers(asked, "done")
    service.run()

    assert [message.text for message in chat.messages] == ["", "done"]
    assert asked.lives.all("slack") == ()


def test_a_long_answer_begins_in_the_live_post(asked: System, chat: Chat, service: Service) -> None:
    """Its rest follows in messages of their own, in order."""
    calls(asked)
    service.run(2)
    answers(asked, "one\n\ntwo\n\nthree")
    service.run()

    assert [message.text for message in chat.messages] == ["one", "two", "three"]
    assert [message.live != "" for message in chat.messages] == [True, False, False]


def test_an_answer_that_a_live_post_cannot_hold_follows_it(asked: System, chat: Chat, service: Service) -> None:
    """As a message of its own."""
    calls(asked)
    service.run(2)
    answers(asked, "too long")
    service.run()

    assert [(message.text, message.shown.title) for message in chat.messages] == [
        ("", "1 step: the answer follows"),
        ("too long", ""),
    ]


FAULTS = {
    "the chat ended it": ChannelError("over", transient=False, reason="message_not_in_streaming_state"),
    "it holds no more": ChannelError("long", transient=False, reason="msg_too_long"),
    "a pause is asked for": ChannelError("slow down", transient=True, retry_after=3.0),
    "it cannot be reached": ChannelError("gone", transient=True),
    "nobody knows": ChannelError("cut", transient=True, unclear=True),
}


@pytest.mark.parametrize("call", ["add", "end", "remove"])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_loses_or_doubles_the_answer(
    asked: System, chat: Chat, service: Service, call: str, fault: str
) -> None:
    """Whatever the chat answers to a piece of it, to its end, and to the removal of what was cut off."""
    calls(asked)
    service.run(2)
    broken = ChannelError("over", transient=False, reason="message_not_in_streaming_state")
    chat.faults = [(call, FAULTS[fault])] if call != "remove" else [("add", broken), ("remove", FAULTS[fault])]
    answers(asked)
    service.run(12)

    texts = [message.text for message in chat.messages if message.text]
    assert texts in ([ANSWER], ANSWER.split("\n"))  # a post as any other goes in the chat's own parts
    assert asked.lives.all("slack") == ()


@pytest.mark.parametrize("call", ["add", "end"])
def test_an_answer_to_a_call_may_be_lost(asked: System, chat: Chat, service: Service, call: str) -> None:
    """What was done all the same is found, or removed."""
    calls(asked)
    service.run(2)
    answers(asked, ANSWER if call == "add" else "short")
    chat.faults = [("lost", FAULTS["nobody knows"])]
    service.run(12)

    assert [message.text for message in chat.messages if message.text] == [ANSWER if call == "add" else "short"]


@contextmanager
def killed_at(point: str, count: int = 1) -> Iterator[None]:
    """Let the process die at the point, the `count`th time that it comes there."""
    real, left = failpoints._crash_point, [count]

    def dies(name: Failpoint, when: str) -> None:
        if f"{name.value}:{when}" == point:
            left[0] -= 1
            if not left[0]:
                raise Killed

    failpoints._crash_point = dies
    try:
        yield
    finally:
        failpoints._crash_point = real


POINTS = [point.value for point in Failpoint if point.value.startswith("live.")]
LIVE = [f"{point}:{side}" for point in POINTS for side in ("before", "after")]


@pytest.mark.parametrize("point", LIVE)
@pytest.mark.parametrize("count", [1, 2])
def test_a_kill_neither_loses_nor_doubles_the_answer(
    asked: System, chat: Chat, clock: HandClock, point: str, count: int
) -> None:
    """Wherever it strikes: the next service posts the answer once, and leaves no message that seems to grow."""
    service = Service(asked, chat, clock)
    died = False
    try:
        with killed_at(point, count):
            if point.startswith("live.remove"):  # there is something to remove
                chat.faults = [("end", FAULTS["the chat ended it"])]
            calls(asked)
            service.run(2)
            calls(asked, detail="test")
            service.run(2)
            if point.startswith("live.stop"):
                works(asked, ActivityState.IDLE)
                service.run(8)
            answers(asked)
            service.run(10)
    except Killed:
        died = True
    again = Service(asked, chat, clock)
    again.run(2)
    if asked.outbox.get("p-answer-s-1-1") is None:
        answers(asked)
    again.run(12)

    reached = count == 1 or point.startswith("live.write")
    texts = [message.text for message in chat.messages if message.text]
    row = asked.outbox.get("p-answer-s-1-1")
    assert died or not reached
    assert texts in ([ANSWER], ANSWER.split("\n"))
    assert row is not None
    assert row.state in (PostState.SENT, PostState.SPLIT)
    assert asked.lives.all("slack") == ()
    assert all(message.over or not message.live for message in chat.messages)


def test_what_a_killed_service_left_open_is_removed(asked: System, chat: Chat, clock: HandClock) -> None:
    """At the next start; a turn that still runs gets a fresh one."""
    calls(asked)
    Service(asked, chat, clock).run(2)
    [left] = chat.messages

    Service(asked, chat, clock).run(4)

    [message] = chat.messages
    assert message.ts != left.ts
    assert [row.state for row in asked.lives.all("slack")] == [LiveState.OPEN]


def test_a_deleted_session_leaves_no_live_post(asked: System, chat: Chat, service: Service) -> None:
    """Its message goes, and so do the steps."""
    calls(asked)
    service.run(2)
    asked.lives.forget("s-1")
    service.run(3)

    assert (chat.messages, asked.lives.steps("s-1", TURN)) == ([], ())
