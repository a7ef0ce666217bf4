"""What a hook reports is a receipt; what the conversation's record holds is proof."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.base.values import replace
from core.delivery.deliverer import Deliverer
from core.delivery.evidence import give_back, settle_by, take_in
from core.delivery.hook_ingest import take_told
from core.delivery.saying import say
from core.lifecycle.pause import pause_standing
from core.model.activity import Activity, ActivityState
from core.model.framing import framed
from core.model.harness import (
    HarnessEvent,
    PromptReported,
    Report,
    TextQueued,
    TextReturned,
    TextTaken,
    ToolStarted,
    TurnEnded,
)
from core.model.message import InboxRow, MessageState
from core.model.reasons import Because, Reason
from core.session.system import System
from tests.support.talking import record_of, rows
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, events, recorded

S = MessageState
SECOND = timedelta(seconds=1)
TARGET = "=loop-standing-scribe:"


def submitted(system: System) -> InboxRow:
    """Commit a message that was entered into the session's pane, and of which nothing more is known."""
    say(system, "scribe", "the heron", actor=ACTOR, wait=0)
    uid, instance = record_of(system)
    [row] = system.inbox.with_states(uid, {S.PENDING})
    now = system.clock.now()
    claimed = system.inbox.advance(row, S.CLAIMED, instance=instance, attempt=1, attempt_deadline=now)
    return system.inbox.advance(claimed, S.SUBMITTED, pasted_at=now, submitted_at=now, submits=1)


def running(system: System, turn: str) -> None:
    """Let a turn of that id run in the session."""
    uid, instance = record_of(system)
    now = system.clock.now() - 60 * SECOND  # a report is taken in some time after its turn began
    system.activities.put(Activity(uid, instance, ActivityState.BUSY, now, turn_started_at=now, turn=turn))


def told(system: System, row: InboxRow, *found: HarnessEvent, late: timedelta = SECOND) -> InboxRow:
    """Return the row after the session's harness has told this."""
    record = recorded(system, "scribe")
    settle_by(system, record, found, system.clock.now() + late)
    after = system.inbox.get(row.message.id)
    assert after is not None
    return after


def test_a_report_alone_confirms_nothing(scribe: System) -> None:
    """The harness has it: no more is known, and no event says so."""
    row = submitted(scribe)

    after = told(scribe, row, PromptReported(framed(row.message), turn="t-2"))

    assert (after.state, after.queued_at) == (S.ACCEPTED, None)
    assert not [event for event in events(scribe, "standing.confirmed") if event["message"] == row.message.id]


def test_a_report_with_the_running_turns_id_tells_of_its_queue(scribe: System) -> None:
    """It is known at once that no turn has it."""
    row = submitted(scribe)
    running(scribe, "t-1")

    after = told(scribe, row, PromptReported(framed(row.message), turn="t-1"))
    working = told(scribe, row, ToolStarted("Bash", turn="t-1"))

    assert after.queued_at is not None
    assert working.state is S.ACCEPTED


def test_reports_of_one_turn_prove_nothing_however_many_agree(scribe: System) -> None:
    """No hook tells of a turn that began out of the harness's queue: what is queued in it looks as if it began it."""
    row = submitted(scribe)

    told(scribe, row, PromptReported(framed(row.message), turn="t-2"))
    running(scribe, "t-2")
    works = told(scribe, row, ToolStarted("Bash", turn="t-2"))
    over = told(scribe, row, TurnEnded("done", turn="t-2"))

    assert (works.state, over.state) == (S.ACCEPTED, S.ACCEPTED)


@pytest.mark.parametrize("recorded_at_all", [True, False], ids=["recorded", "no-record"])
def test_what_was_reported_and_no_record_has_is_not_lost_with_its_harness(
    scribe: System, recorded_at_all: bool
) -> None:
    """It waits in our queue again; where nothing is recorded at all nobody can tell, and it is not sent twice."""
    row = submitted(scribe)
    told(scribe, row, PromptReported(framed(row.message), turn="t-2"))
    record = recorded(scribe, "scribe")
    if not recorded_at_all:
        for path in scribe.paths.session(record.uid).rglob(f"{record.conversation}.jsonl"):
            path.unlink()

    give_back(scribe, record, None)

    [after] = rows(scribe)
    assert after.state is (S.PENDING if recorded_at_all else S.UNKNOWN)


def test_a_turn_that_ends_before_its_record_was_read_has_its_messages(scribe: System) -> None:
    """The record is read as a turn's end is reported, so that what follows from that end concerns them."""
    said = say(scribe, "scribe", "the heron", actor=ACTOR)
    assert said.state is S.CONFIRMED
    with scribe.database.transaction(durable=False):
        scribe.database.write("UPDATE inbox SET state = 'accepted' WHERE id = ?", (rows(scribe)[-1].message.id,))
    running(scribe, "t-2")

    after = told(scribe, rows(scribe)[-1], TurnEnded("done", turn="t-2"))

    assert after.state is S.CONFIRMED


def how_its_turn_ended(system: System, row: InboxRow) -> str:
    """Return what is known of the end of the turn that took the message; "" while it runs."""
    found = system.database.read("SELECT over FROM marks WHERE message = ?", (row.message.id,))
    return str(found[0]["over"]) if found else ""


def test_a_turn_in_doubt_ends_without_the_message_that_begins_the_next(scribe: System) -> None:
    """The record shows both at once: that another turn began, and with which message."""
    row = submitted(scribe)
    running(scribe, "t-1")
    uid, _ = record_of(scribe)
    before = scribe.activities.get(uid)
    assert before is not None
    now = scribe.clock.now()
    scribe.activities.put(replace(before, because=Because(Reason.ENDING), turn_ended_at=now, ended_turn="t-1"))

    taken = TextTaken(framed(row.message), at=now + SECOND, turn="t-2")
    take_in(scribe, recorded(scribe, "scribe"), [taken])

    after = scribe.inbox.get(row.message.id)
    assert after is not None
    assert (after.state, how_its_turn_ended(scribe, row)) == (S.CONFIRMED, "")


def test_the_late_report_of_a_turns_end_is_not_about_the_next_ones_message(scribe: System) -> None:
    """The record has told already that the next turn began."""
    row = submitted(scribe)
    running(scribe, "t-1")
    record, now = recorded(scribe, "scribe"), scribe.clock.now()
    take_in(scribe, record, [TextTaken(framed(row.message), at=now, turn="t-2")])
    stamp = int((now + SECOND).timestamp() * 1_000_000_000)
    report = Report(record.instance_id or "", f"{stamp:019d}-Stop", {}, by_record=True)

    take_told(scribe, record, [(report, (TurnEnded("done", turn="t-1"),))])

    assert how_its_turn_ended(scribe, row) == ""


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_what_came_back_into_the_input_line_is_said_or_kept(scribe: System, paused: bool) -> None:
    """Under a pause it is ours again; else somebody has it at the terminal, and nobody can tell what becomes of it."""
    row = submitted(scribe)
    text = framed(row.message)
    if paused:
        pause_standing(scribe, "scribe", ACTOR)
    told(scribe, row, TextQueued(text, scribe.clock.now() + SECOND))

    after = told(scribe, row, TextReturned(text, scribe.clock.now() + 2 * SECOND))

    assert after.state is (S.PENDING if paused else S.UNKNOWN)
    assert paused or after.reason is Reason.AT_TERMINAL


def test_a_record_that_is_read_again_takes_nothing_back(scribe: System) -> None:
    """What stood in the queue before, and came back, says nothing about its second stay there."""
    row = submitted(scribe)
    text, at = framed(row.message), scribe.clock.now() + SECOND
    earlier: Sequence[HarnessEvent] = (TextQueued(text, at), TextReturned(text, at + SECOND))
    told(scribe, row, *earlier)

    again = told(scribe, row, TextQueued(text, at + 60 * SECOND))
    read = told(scribe, row, *earlier)
    taken = told(scribe, row, TextTaken(text, at=at + 61 * SECOND))

    assert (again.state, read.state, taken.state) == (S.ACCEPTED, S.ACCEPTED, S.CONFIRMED)


def test_a_text_that_came_back_and_is_received_again_is_not_returned_once_more(scribe: System) -> None:
    """Some versions report it as a turn begins with it; the record is then read again from its start."""
    row = submitted(scribe)
    text, at = framed(row.message), scribe.clock.now() + SECOND
    earlier: Sequence[HarnessEvent] = (TextQueued(text, at), TextReturned(text, at + SECOND))
    told(scribe, row, *earlier)

    told(scribe, row, PromptReported(text, turn="t-9"), late=60 * SECOND)
    read = told(scribe, row, *earlier)

    assert read.state is S.ACCEPTED


def test_what_an_idle_harness_never_took_is_said(scribe: System) -> None:
    """It was received, nothing runs, and no record knows it: that is no success."""
    row = submitted(scribe)
    told(scribe, row, PromptReported(framed(row.message), turn="t-9"))
    deliverer = Deliverer(scribe)
    uid, _ = record_of(scribe)

    def given_up() -> bool:
        deliverer.advance(uid)
        return rows(scribe)[-1].state is S.UNKNOWN

    wait_until(given_up, "it is said")
    assert rows(scribe)[-1].reason is Reason.NOT_TAKEN


def test_a_person_who_takes_the_queue_back_and_sends_it_confirms_it(scribe: System, private: PrivateTmux) -> None:
    """It is unknown while it stands in the input line, and confirmed once a turn has it, once."""
    say(scribe, "scribe", "sleep 600", actor=ACTOR)
    said = say(scribe, "scribe", "the next thing", actor=ACTOR)
    deliverer, (uid, _) = Deliverer(scribe), record_of(scribe)

    def is_now(state: MessageState) -> bool:
        scribe.ingest(uid)
        deliverer.follow([uid])
        deliverer.advance(uid)
        return rows(scribe)[-1].state is state

    private.tmux("send-keys", "-t", TARGET, "Up")
    wait_until(lambda: is_now(S.UNKNOWN), "it is in the input line")
    private.tmux("send-keys", "-t", TARGET, "Enter")
    private.tmux("send-keys", "-t", TARGET, "Escape")
    wait_until(lambda: is_now(S.CONFIRMED), "a turn has it")

    assert said.state is S.ACCEPTED
