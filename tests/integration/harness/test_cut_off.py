"""A hard pause, and what the program's own queue holds that cannot be taken back: it waits again, or that is told."""

from collections.abc import Iterator

import pytest

from core.lifecycle.pause import pause_standing
from core.model.message import InboxRow, MessageState
from core.model.session import Outcome
from core.session.folder import ASKING
from tests.integration.harness.test_claims import claimed
from tests.support.claims import ACTOR, Case
from tests.support.talking import record_of, rows
from tests.support.tmux import wait_until

S = MessageState


@pytest.fixture
def case() -> Iterator[Case]:
    """Give a session whose program reports a prompt as it is queued, and not as a turn begins with it."""
    with claimed(["start hook early"]) as product:
        yield product.case("start-hook-early")


def of(case: Case, text: str) -> list[InboxRow]:
    """Return the messages of that text, oldest first."""
    return [row for row in rows(case.system, case.name) if row.message.text == text]


def queue(case: Case, text: str) -> InboxRow:
    """Let a turn run, and its program's own queue hold the text."""
    case.busy()
    case.say(text)
    case.wait("queued")
    case.system.ingest(record_of(case.system, case.name)[0])
    wait_until(lambda: of(case, text)[0].queued_at is not None, "its record tells of the queue")
    return of(case, text)[0]


def cut_off(case: Case, text: str) -> tuple[Outcome | None, str]:
    """Pause it hard while its queue holds the text and cannot be taken back; return what was answered."""
    queue(case, text)
    folder = case.system.paths.session(record_of(case.system, case.name)[0])
    (folder / ASKING).touch()  # a dialog may be open, so that no key takes the queue back
    began = len(case.deeds("began"))

    [row] = pause_standing(case.system, case.name, ACTOR, hard=True).sessions

    assert len(case.deeds("began")) == began + 1, case.story()
    assert len(case.deeds("over")) == len(case.deeds("began")), case.story()
    return row.outcome, row.detail


def test_what_a_turn_had_begun_with_that_gave_no_answer_waits_again(case: Case) -> None:
    """Nobody has to send it again: it goes in at the resume, before what was said later."""
    outcome, detail = cut_off(case, "think 59")

    assert len(of(case, "think 59")) == 2, f"{outcome} {detail[:300]}\n{case.story()}"
    first, again = of(case, "think 59")
    assert (outcome, "it waits again" in detail) == (Outcome.PAUSED, True)
    assert (first.state, again.message.again_of) == (S.CONFIRMED, first.message.id)
    assert again.state in (S.PENDING, S.QUEUED)
    assert again.message.order_us == first.message.order_us


@pytest.mark.long
def test_what_a_turn_had_done_in_part_is_told(case: Case) -> None:
    """It had begun to use a tool: sent again by itself it would be done twice."""
    outcome, detail = cut_off(case, "sleep 59")

    assert (outcome, "who sent it is told" in detail) == (Outcome.UNCONFIRMED, True)
    assert [row.state for row in of(case, "sleep 59")] == [S.CONFIRMED]


def test_what_nobody_knew_to_be_queued_starts_no_turn_either(case: Case) -> None:
    """Its program was slow, and it counted as unknown: the record tells of the queue, and it is taken back."""
    held = queue(case, "sleep 59")
    case.system.inbox.advance(held, S.UNKNOWN, queued_at=None)
    began = len(case.deeds("began"))

    [row] = pause_standing(case.system, case.name, ACTOR, hard=True).sessions

    assert (row.outcome, len(case.deeds("began"))) == (Outcome.PAUSED, began)
    assert [each.state in (S.PENDING, S.QUEUED) for each in of(case, "sleep 59")] == [True]
