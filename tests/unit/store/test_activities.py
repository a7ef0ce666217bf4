"""What each session does."""

from datetime import timedelta

import pytest

from core.model.activity import ActivityState
from core.model.reasons import Because, Reason, because, said
from core.store.database import Database
from core.store.sessions import Activities
from tests.unit.store.samples import NOON, an_activity


@pytest.fixture
def activities(database: Database) -> Activities:
    """Return what is known of no session."""
    return Activities(database)


def test_the_latest_activity_is_kept_whole(activities: Activities) -> None:
    """A later one takes the place of an earlier one, with nothing of it left."""
    full = an_activity(
        state=ActivityState.BUSY,
        pending_tasks=("a b", "c,\nd"),
        because=because(Reason.DIALOG_SHOWN, title=Because(Reason.DIALOG_UNREAD)),
        remarks=(said("rate_limit: wait"), because(Reason.STOPS_IDLE, at="12:00:05")),
        turn_started_at=NOON,
        last_report_at=NOON,
        mode="acceptEdits",
        task_names={"a b": "make"},
        cut_off_tasks=("make (b1)",),
        earlier_tasks=("sleep 60 (b0)", "b2"),
    )
    activities.put(full)
    stored = activities.get("s-scribe")
    activities.put(an_activity())

    assert stored == full
    assert activities.get("s-scribe") == an_activity()


@pytest.mark.parametrize("state", list(ActivityState))
def test_every_state_can_be_kept(activities: Activities, state: ActivityState) -> None:
    """No state is lost on the way."""
    activities.put(an_activity(state=state))

    assert activities.all() == {"s-scribe": an_activity(state=state)}


def test_nothing_known_is_none(activities: Activities) -> None:
    """A session that nobody told about has no activity."""
    assert activities.get("s-scribe") is None
    assert activities.all() == {}


def test_the_last_message_never_goes_back(activities: Activities) -> None:
    """Messages that are noted out of order leave the latest time."""
    for seconds in (5, 9, 7):
        activities.touch_message("s-scribe", NOON + timedelta(seconds=seconds))

    assert activities.last_messages() == {"s-scribe": NOON + timedelta(seconds=9)}


def test_a_forgotten_session_leaves_nothing(activities: Activities) -> None:
    """Forgetting one session leaves the others."""
    for uid in ("s-scribe", "s-b"):
        activities.put(an_activity(uid=uid))
        activities.touch_message(uid, NOON)

    activities.forget("s-scribe")

    assert set(activities.all()) == {"s-b"}
    assert set(activities.last_messages()) == {"s-b"}


def test_what_another_process_has_changed_is_seen_at_once(activities: Activities, database: Database) -> None:
    """What was read before is given again only for the very same row: a later one differs in a single column."""
    before = an_activity()
    activities.put(before)
    assert activities.get(before.uid) == before
    with database.transaction(durable=False):
        database.write("UPDATE activities SET mode = 'plan', task_names = '{\"b1\": \"a build\"}'")

    after = activities.get(before.uid)

    assert after is not None
    assert (after.mode, after.task_names) == ("plan", {"b1": "a build"})
    assert after.state is before.state
