"""Which conversation is the session's, while programs fail and people change their minds."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from core.model.session import (
    LEFT_IN_TERMINAL,
    Candidate,
    Fresh,
    Left,
    SessionRecord,
    begun,
    begun_instead,
    candidates,
    entered,
    had_turn,
    kept_id,
    taken_up,
)
from tests.unit.store.samples import a_record

NOW = datetime(2026, 11, 30, tzinfo=UTC)
OLD = Candidate("old", "claude", had_turn=True)


def spoken() -> SessionRecord:
    """Return a record whose conversation has had turns."""
    return a_record(harness_session_id="old")


def test_conversation_stays_the_sessions_until_another_has_had_a_turn() -> None:
    """A fresh one after a failed resume is the pane's; by its first turn it becomes the session's."""
    fresh = begun(spoken(), "new", OLD, "it ended", NOW, keeps=True)

    assert (fresh.harness_session_id, fresh.conversation, kept_id(fresh)) == ("old", "new", "old")
    assert [found.id for found in candidates(fresh, "claude")] == ["old", "new"]
    assert begun_instead(fresh) == "it ended; the old id was old"
    after = had_turn(fresh)
    assert (after.harness_session_id, after.conversation, kept_id(after)) == ("new", "new", "new")
    assert [found.id for found in candidates(after, "claude")] == ["new"]
    assert after.history == (Left("old", "claude", "it ended", NOW),)
    assert begun_instead(after) == ""


def test_fresh_tries_one_after_the_other_keep_the_first_conversation() -> None:
    """Each failed; the history names what had turns, once, and nothing else."""
    record = spoken()
    for number in range(5):
        found = candidates(record, "claude")
        record = begun(record, f"new{number}", found[0], f"reason {number}", NOW, keeps=True)

    assert kept_id(record) == "old"
    assert record.history == (Left("old", "claude", "reason 4", NOW),)


def test_return_to_the_old_one_leaves_nothing_behind() -> None:
    """It is the session's as if nothing had happened; the one that had no turn is named in the history."""
    fresh = begun(spoken(), "new", OLD, "it ended", NOW, keeps=True)

    back = taken_up(fresh, candidates(fresh, "claude")[0], "claude", NOW)

    assert (back.harness_session_id, back.fresh) == ("old", None)
    assert [left.id for left in back.history] == ["new"]


def test_other_harness_keeps_whose_the_old_conversation_was() -> None:
    """So that a change that is taken back finds it again."""
    fresh = begun(spoken(), "new", OLD, "its harness is codex now", NOW, keeps=False)

    assert fresh.harness_session_id == "new"
    assert candidates(fresh, "codex") == (OLD, Candidate("new", "codex", had_turn=False))


def test_first_conversation_is_the_sessions_at_once() -> None:
    """There is none before it."""
    first = begun(a_record(), "new", None, "", NOW, keeps=False)

    assert (first.harness_session_id, first.history, kept_id(first)) == ("new", (), None)
    assert begun(a_record(), None, None, "", NOW, keeps=False) == a_record()


def test_conversation_that_was_cleared_in_its_terminal_is_in_the_history() -> None:
    """The person wanted a new one: it is the session's at once, and a start does not go back."""
    cleared = entered(spoken(), "new", "claude", NOW, old=False)

    assert (cleared.harness_session_id, cleared.fresh) == ("new", Fresh("new"))
    assert cleared.history == (Left("old", "claude", LEFT_IN_TERMINAL, NOW),)
    assert [found.id for found in candidates(cleared, "claude")] == ["new"]


def test_earlier_conversation_that_was_chosen_in_the_terminal_is_the_sessions() -> None:
    """It has had turns, and is no part of the history any more."""
    cleared = entered(spoken(), "new", "claude", NOW, old=False)

    chosen = entered(cleared, "old", "claude", NOW, old=True)

    assert (chosen.harness_session_id, chosen.fresh, chosen.history) == ("old", None, ())


def test_fresh_one_that_was_cleared_still_keeps_what_went_before() -> None:
    """Neither has had a turn."""
    fresh = begun(spoken(), "new", OLD, "it ended", NOW, keeps=True)

    cleared = entered(fresh, "newer", "claude", NOW, old=False)

    assert (cleared.harness_session_id, cleared.conversation, kept_id(cleared)) == ("old", "newer", "old")


_STEPS = st.lists(st.sampled_from(["fail", "lost", "turn", "back", "clear"]), max_size=12)


@given(_STEPS)
def test_no_conversation_that_had_a_turn_is_ever_forgotten(steps: list[str]) -> None:
    """Whatever happens in whatever order: its id is the session's, or in the history."""
    record, turned = spoken(), {"old"}
    for count, step in enumerate(steps):
        found = candidates(record, "claude")
        if step in ("fail", "lost"):
            lost = next((candidate for candidate in found if candidate.had_turn), None)
            record = begun(record, f"c{count}", lost, step, NOW, keeps=step == "fail")
        elif step == "turn" and record.conversation:
            record = had_turn(record)
            turned.add(str(record.conversation))
        elif step == "back" and found:
            record = taken_up(record, found[0], "claude", NOW)
        elif step == "clear":
            record = entered(record, f"c{count}", "claude", NOW, old=False)

    assert turned <= {record.harness_session_id, record.conversation, *(left.id for left in record.history)}
