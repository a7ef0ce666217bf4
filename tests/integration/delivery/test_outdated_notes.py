"""A note about what waits is edited to the truth once it waits no more, and never posted where it is over before."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.chat.outbound import OutboundWorker
from core.delivery.evidence import give_back, settle_by
from core.delivery.saying import cancel_message
from core.lifecycle.pause import pause_standing, resume_standing
from core.lifecycle.stop import stop_standing
from core.model.asking import Press
from core.model.framing import framed
from core.model.harness import TextTaken
from core.model.message import InboxRow
from core.model.reasons import Because, Reason, Remedy, said
from core.model.session import Binding
from core.model.texts import text
from core.session.notes import note_for
from core.session.system import System
from tests.integration.delivery.conftest import open_dialog, settle
from tests.integration.delivery.test_note_bursts import THREAD, S, Thread
from tests.support.chat import HOME, TEAM
from tests.support.outgoing import HandClock, drain
from tests.support.talking import record_of, rows
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR

NO_RECORD = said("no record shows it")
EARLIER = "Earlier this note said: the session is paused."


@pytest.fixture
def clock() -> HandClock:
    """Give a clock that is moved by hand."""
    return HandClock()


@pytest.fixture
def thread(scribe: System, clock: HandClock) -> Thread:
    """Give the thread of a session that is up and idle."""
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    return Thread(replace(scribe, clock=clock), clock)


def _go_in(thread: Thread) -> None:
    resume_standing(thread.system, "scribe", ACTOR)

    def all_over() -> bool:
        thread.deliver()
        return set(thread.states()) <= {S.CONFIRMED, S.ACCEPTED, S.CANCELLED}

    wait_until(all_over, "they are in")
    thread.deliver()


def _doubt(
    thread: Thread, count: int, why: Because = NO_RECORD, remedy: str = "look at its terminal"
) -> list[InboxRow]:
    """Write replies that were pasted, and of which nobody can tell what became: their senders are told."""
    uid, instance = record_of(thread.system)
    thread.commit(count)
    for row in rows(thread.system):
        claimed = thread.system.inbox.advance(row, S.CLAIMED, instance=instance, attempt=1)
        moved = thread.system.inbox.advance(claimed, S.UNKNOWN, why)
        note = note_for(thread.system, moved, S.UNKNOWN, why, remedy)
        assert note is not None
        thread.system.outbox.add([note])
    thread.deliver()
    return [row for row in rows(thread.system) if row.message.uid == uid]


def _show(thread: Thread, row: InboxRow) -> None:
    record = thread.system.records.read("scribe")
    assert record is not None
    settle_by(thread.system, record, [TextTaken(framed(row.message))])
    thread.deliver()


def test_what_was_in_doubt_is_told_once_a_record_shows_it(thread: Thread) -> None:
    """Late evidence takes the doubt out of the note, and the button that would send the text twice."""
    [row] = _doubt(thread, 1)
    [doubted] = [(note.text, thread.chat.shown[note.ts][0].press) for note in thread.notes()]

    _show(thread, row)

    [note] = thread.notes()
    assert doubted == (
        "It is not known whether your message to `scribe` was delivered: no record shows it. "
        "To do: look at its terminal",
        Press.SEND_AGAIN,
    )
    assert note.text == "Your message to `scribe` was delivered. Earlier this note said: no record shows it."
    assert not thread.chat.shown.get(note.ts)


def test_a_note_about_several_in_doubt_keeps_those_that_still_are(thread: Thread) -> None:
    """Its button is about them alone."""
    first, second = _doubt(thread, 2)
    [before] = [note.text for note in thread.notes()]

    _show(thread, first)
    [between] = [(note.text, thread.chat.shown[note.ts][0].target) for note in thread.notes()]
    _show(thread, second)

    [note] = thread.notes()
    assert before.startswith("It is not known whether 2 messages to `scribe` were delivered")
    assert between == (
        "It is not known whether your message to `scribe` was delivered: no record shows it. "
        "To do: look at its terminal",
        second.message.id,
    )
    assert note.text == "2 messages to `scribe` were delivered. Earlier this note said: no record shows it."


def test_a_message_sent_again_in_doubt_keeps_who_pressed(thread: Thread) -> None:
    """Whatever a record shows later of the first one."""
    [row] = _doubt(thread, 1)

    thread.press(thread.notes()[0], Press.SEND_AGAIN)
    _show(thread, row)

    assert thread.notes()[0].text.endswith("→ sent again by alice.")


def test_what_went_in_is_told_as_gone_in(thread: Thread) -> None:
    """The note of a message that waited says so afterwards, and offers nothing more."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)

    _go_in(thread)

    [note] = thread.notes()
    assert note.text == f"Your message to `scribe` was delivered. {EARLIER}"
    assert not thread.chat.shown.get(note.ts)


def _let_in(thread: Thread, row: InboxRow, queued_at: datetime | None) -> InboxRow:
    """Note that the harness has a message that waited: in its own queue since then, if that is known."""
    _, instance = record_of(thread.system)
    claimed = thread.system.inbox.advance(row, S.CLAIMED, instance=instance, attempt=row.attempt + 1)
    return thread.system.inbox.advance(claimed, S.ACCEPTED, queued_at=queued_at)


EMPTIED = (
    "It is not known whether your message to `scribe` was delivered: it was taken back from the harness's own queue "
    "into the input line of the terminal, which has been emptied since. To do: send it again"
)


def test_what_no_longer_stands_in_the_input_line_is_not_to_be_sent_there(thread: Thread) -> None:
    """The next message empties the line: from then on the note offers only to send the text again."""
    _doubt(thread, 1, Because(Reason.AT_TERMINAL), text(Remedy.SENT_THERE))
    [before] = [note.text for note in thread.notes()]

    thread.commit(1)

    def is_in() -> bool:
        thread.deliver()
        return thread.states()[-1] is S.CONFIRMED

    wait_until(is_in, "the next message is in")
    thread.deliver()

    [note] = thread.notes()
    assert before.endswith("To do: press Enter there to send it, or send it again from here")
    assert note.text == EMPTIED
    assert [button.press for button in thread.chat.shown[note.ts]] == [Press.SEND_AGAIN]


def test_what_stood_in_the_input_line_ends_with_its_program(thread: Thread) -> None:
    """Nobody can send it there any more."""
    _doubt(thread, 1, Because(Reason.AT_TERMINAL), text(Remedy.SENT_THERE))

    stop_standing(thread.system, "scribe", ACTOR)
    record = thread.system.records.read("scribe")
    assert record is not None
    give_back(thread.system, record, None)  # as the service sees that the program has ended, and as the next start
    thread.deliver()

    assert EMPTIED in [note.text for note in thread.notes()]


def test_what_the_program_has_queued_is_not_told_as_delivered(thread: Thread) -> None:
    """The note says where it is, offers no button for it, and says delivered once a turn has taken it."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)

    row = _let_in(thread, rows(thread.system)[0], datetime.now(UTC))
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)
    [between] = [(note.text, bool(thread.chat.shown.get(note.ts))) for note in thread.notes()]
    thread.system.inbox.advance(row, S.CONFIRMED)
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    message = "Your message to `scribe`"
    assert between == (f"{message} is in the program's queue. {EARLIER}", False)
    assert [note.text for note in thread.notes()] == [f"{message} was delivered. {EARLIER}"]


def test_what_only_a_hook_has_received_changes_no_note(thread: Thread) -> None:
    """More is known in a moment."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)
    before = thread.notes()[0].text

    _let_in(thread, rows(thread.system)[0], None)
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    assert [note.text for note in thread.notes()] == [before]


def test_what_the_program_gave_back_is_told_to_its_end(thread: Thread) -> None:
    """It waits here again, and what is cancelled then was not delivered."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)
    row = _let_in(thread, rows(thread.system)[0], datetime.now(UTC))
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    row = thread.system.inbox.advance(row, S.PENDING, Because(Reason.HARNESS_ENDED))
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)
    [between] = [note.text for note in thread.notes()]
    edits = thread.chat.calls.count("update")
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)
    again = thread.chat.calls.count("update")
    thread.system.inbox.advance(row, S.CANCELLED, Because(Reason.QUEUE_CANCELLED, {"name": "scribe"}))
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    message = "Your message to `scribe`"
    assert between == f"{message} waits again, because the program gave it back. {EARLIER}"
    assert again == edits
    assert [note.text for note in thread.notes()] == [f"{message} was cancelled. {EARLIER}"]


def test_what_cannot_be_proven_is_told_as_entered(thread: Thread) -> None:
    """The program tells nothing more, so nobody says that a turn has it."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)
    _, instance = record_of(thread.system)
    row = thread.system.inbox.advance(rows(thread.system)[0], S.CLAIMED, instance=instance, attempt=1)

    thread.system.inbox.advance(row, S.SUBMITTED, final=True)
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    [note] = thread.notes()
    assert note.text == f"Your message to `scribe` was entered; this program cannot prove more. {EARLIER}"


@pytest.mark.parametrize(
    ("why", "now"),
    [
        (Because(Reason.BLOCKED, {"why": "policy: no"}), "was not delivered"),
        (Because(Reason.AT_TERMINAL), "was taken back into the input line of the terminal"),
    ],
)
def test_what_is_known_not_to_be_in_is_told_as_such(thread: Thread, why: Because, now: str) -> None:
    """The note that said why it waited does not say then that it is not known."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)
    _, instance = record_of(thread.system)
    row = thread.system.inbox.advance(rows(thread.system)[0], S.CLAIMED, instance=instance, attempt=1)

    thread.system.inbox.advance(row, S.UNKNOWN, why)
    drain(OutboundWorker(thread.system, thread.chat), thread.clock, 10)

    assert [note.text for note in thread.notes()] == [f"Your message to `scribe` {now}. {EARLIER}"]


def test_a_note_about_several_says_what_became_of_all(thread: Thread) -> None:
    """It goes on counting those that wait, and in the end tells how each went."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(3)
    cancel_message(thread.system, rows(thread.system)[1].message.id, ACTOR, told=False)
    thread.deliver()
    [meanwhile] = [note.text for note in thread.notes()]
    [cancel] = thread.chat.shown[thread.notes()[0].ts]

    _go_in(thread)

    [note] = thread.notes()
    assert "2 messages to `scribe` are waiting: the session is paused." in meanwhile
    assert len(cancel.target.split()) == 2
    assert note.text == f"3 messages to `scribe`: 2 delivered, 1 cancelled. {EARLIER}"
    assert not thread.chat.shown.get(note.ts)


def test_what_was_over_before_its_note_was_posted_has_none(thread: Thread) -> None:
    """Nobody is told that something waits which does not."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.post = False
    thread.say(2)
    resume_standing(thread.system, "scribe", ACTOR)
    wait_until(thread.are_in, "they are in")

    thread.post = True
    thread.deliver()

    assert thread.notes() == []


def test_another_reason_outdates_the_first_note(thread: Thread, private: PrivateTmux) -> None:
    """The one about the permission says that the message waits for something else; the other one stands."""
    open_dialog(thread.system, private)
    thread.say(1)
    pause_standing(thread.system, "scribe", ACTOR)

    def told() -> bool:
        thread.deliver()
        return len(thread.notes()) == 2

    wait_until(told, "the pause is told")
    thread.deliver()

    permission, paused = thread.notes()
    assert permission.text.startswith("Your message to `scribe` now waits for another reason. Earlier this note said: ")
    assert not thread.chat.shown.get(permission.ts)
    assert "is waiting: the session is paused" in paused.text


def test_a_pressed_note_keeps_who_pressed(thread: Thread) -> None:
    """What the button did is told already."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(1)

    thread.press(thread.notes()[0], Press.CANCEL)
    thread.deliver()

    assert thread.notes()[0].text.endswith("→ cancelled by alice.")


def test_a_killed_service_mends_each_note_once(thread: Thread, clock: HandClock) -> None:
    """Whoever comes after it finds what is out of date by what is stored, and edits nothing twice."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(2)
    thread.post = False
    resume_standing(thread.system, "scribe", ACTOR)
    wait_until(thread.are_in, "they are in")
    settle(thread.system)
    before = thread.chat.calls.count("update")

    for _ in range(2):
        drain(OutboundWorker(thread.system, thread.chat), clock, 20)

    assert thread.chat.calls.count("update") == before + 2  # the note, and the announcement that said "paused"
    assert thread.notes()[0].text == f"2 messages to `scribe` were delivered. {EARLIER}"
