"""Rows that wait for a person's word, or for their files."""

from core.model.delivering import Attempt, Wait, awaits_confirmation, step
from core.model.message import Kind, MessageState
from core.model.reasons import Because, Reason
from tests.unit.model.test_delivering import after, row, situation


def test_a_row_waits_for_its_files_however_long_and_whatever_the_session_does() -> None:
    """Nothing of it is typed before they are told, and it does not expire for that."""
    waiting = row(MessageState.QUEUED, Kind.REPLY, because=Because(Reason.FETCHING))

    assert step(situation(waiting), after(100_000)) == Wait(None, Because(Reason.FETCHING))


def test_a_row_whose_files_came_is_delivered() -> None:
    """The wait costs it nothing."""
    assert isinstance(step(situation(row(MessageState.QUEUED, Kind.REPLY)), after(1)), Attempt)


def test_a_row_waits_for_a_persons_word_only_while_it_says_so() -> None:
    """Confirmed it is as any other that waits."""
    asked = row(MessageState.QUEUED, Kind.REPLY, because=Because(Reason.CONFIRM, {"late": "sent 3 h ago"}))
    confirmed = row(MessageState.QUEUED, Kind.REPLY, because=Because(Reason.CONFIRMED_BY, {"actor": "cli:ann"}))

    assert [awaits_confirmation(one) for one in (asked, confirmed, row())] == [True, False, False]
