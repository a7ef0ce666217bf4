"""What is true of a session, from its record, tmux and its harness."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.domain.activity import Activity, ActivityState
from core.domain.gate import Observed
from core.domain.harness import (
    Asked,
    Ended,
    HarnessEvent,
    Opinion,
    Ready,
    TextQueued,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from core.domain.observing import follow, observe, second_guess
from core.domain.session import Definition, Live, Phase, SessionRecord, Status

A = ActivityState
T0 = datetime(2026, 11, 29, tzinfo=UTC)
LATER = T0 + timedelta(seconds=60)
RECORD = SessionRecord("scribe", "s-1", Definition("scribe"), T0, instance_id="i-1", status=Status.RUNNING)
NEVER = replace(RECORD, instance_id=None, status=Status.STOPPED)
STOPPED = replace(RECORD, status=Status.STOPPED)


def activity(state: ActivityState, instance: str = "i-1", tasks: tuple[str, ...] = ()) -> Activity:
    """Return an activity since T0."""
    return Activity("s-1", instance, state, T0, tasks)


@pytest.mark.parametrize(
    ("record", "live", "told", "seen"),
    [
        (None, Live.ABSENT, None, Observed.NEVER_RUN),
        (None, Live.FOREIGN, None, Observed.FOREIGN),
        (None, Live.UNKNOWN, None, Observed.SILENT),
        (NEVER, Live.ABSENT, None, Observed.NEVER_RUN),
        (RECORD, Live.UNKNOWN, A.IDLE, Observed.SILENT),
        (RECORD, Live.FOREIGN, A.IDLE, Observed.FOREIGN),
        (RECORD, Live.ABSENT, A.IDLE, Observed.LOST),
        (RECORD, Live.DEAD, A.IDLE, Observed.DEAD),
        (STOPPED, Live.ABSENT, A.IDLE, Observed.DOWN),
        (STOPPED, Live.DEAD, A.IDLE, Observed.DOWN),
        (RECORD, Live.LIVE, A.STARTING, Observed.STARTING),
        (RECORD, Live.LIVE, A.IDLE, Observed.IDLE),
        (RECORD, Live.LIVE, A.BUSY, Observed.BUSY),
        (RECORD, Live.LIVE, A.PERMISSION, Observed.PERMISSION),
        (RECORD, Live.LIVE, A.QUESTION, Observed.QUESTION),
        (RECORD, Live.LIVE, A.UNKNOWN, Observed.UNKNOWN),
        (RECORD, Live.LIVE, None, Observed.UNKNOWN),
        (replace(RECORD, phase=Phase.STARTING), Live.LIVE, None, Observed.STARTING),
        (replace(RECORD, phase=Phase.STARTING), Live.ABSENT, None, Observed.STARTING),
        (replace(NEVER, phase=Phase.CREATING), Live.ABSENT, None, Observed.STARTING),
        (replace(RECORD, phase=Phase.STARTING), Live.DEAD, None, Observed.DEAD),
        (replace(RECORD, phase=Phase.STOPPING), Live.LIVE, A.IDLE, Observed.DOWN),
        (replace(RECORD, phase=Phase.DELETING), Live.LIVE, A.IDLE, Observed.DOWN),
        (replace(RECORD, phase=Phase.STOPPING), Live.UNKNOWN, A.IDLE, Observed.SILENT),
    ],
)
def test_what_is_observed(record: SessionRecord | None, live: Live, told: ActivityState | None, seen: Observed) -> None:
    """tmux's silence and a foreign session outrank the record; a session that is being ended is down."""
    assert observe(record, live, activity(told) if told else None) is seen


def test_activity_of_an_earlier_instance_says_nothing() -> None:
    """What an earlier pane did is not what this one does."""
    assert observe(RECORD, Live.LIVE, activity(A.IDLE, "i-0")) is Observed.UNKNOWN


@pytest.mark.parametrize(
    ("before", "event", "state"),
    [
        (A.STARTING, Ready("c-1", "startup"), A.IDLE),
        (A.BUSY, Ready("c-1", "clear"), A.IDLE),
        (A.BUSY, Ready("c-1", "compact"), A.BUSY),
        (A.IDLE, TurnStarted("hi"), A.BUSY),
        (A.PERMISSION, ToolEnded("Bash"), A.BUSY),
        (A.IDLE, ToolStarted("Bash"), A.BUSY),
        (A.BUSY, Asked(False, "Bash: ls"), A.PERMISSION),
        (A.BUSY, Asked(True, "which?"), A.QUESTION),
        (A.BUSY, TurnEnded("done"), A.IDLE),
        (A.BUSY, TurnEnded("done", ("b1",)), A.BUSY),
        (A.BUSY, TurnFailed("rate_limit", "wait"), A.IDLE),
        (A.IDLE, Ended("other", False), A.UNKNOWN),
        (A.BUSY, TextQueued("hi"), A.BUSY),
        (A.IDLE, TurnBlocked("<task-notification>"), A.IDLE),
    ],
)
def test_events_move_the_activity(before: ActivityState, event: HarnessEvent, state: ActivityState) -> None:
    """Each event of a harness leaves the state that it tells of, and the time of the report."""
    after = follow(activity(before), event, LATER, boot_coming=False)

    assert after.state is state
    assert after.last_report_at == LATER
    assert after.since == (T0 if state is before else LATER)


def test_a_boot_prompt_on_its_way_keeps_a_ready_session_busy() -> None:
    """Its turn is about to begin, and nobody may take it for idle."""
    assert follow(activity(A.STARTING), Ready("c", "startup"), LATER, boot_coming=True).state is A.BUSY


def test_background_tasks_are_kept_until_the_harness_lists_them_no_more() -> None:
    """A tool may leave a task, and the turn's end says which go on."""
    during = follow(activity(A.BUSY), ToolEnded("Bash", "b1"), T0, boot_coming=False)
    over = follow(during, TurnEnded("done"), LATER, boot_coming=False)

    assert during.pending_tasks == ("b1",)
    assert over.pending_tasks == ()


def test_a_turn_remembers_when_it_began() -> None:
    """Half-typed text from before it is gone with it."""
    assert follow(activity(A.IDLE), TurnStarted("hi"), LATER, boot_coming=False).turn_started_at == LATER


def test_what_failed_or_is_asked_is_told() -> None:
    """The words are for people."""
    failed = follow(activity(A.BUSY), TurnFailed("rate_limit", "wait"), LATER, boot_coming=False)
    asked = follow(activity(A.BUSY), Asked(False, "Bash: ls"), LATER, boot_coming=False)

    assert (failed.detail, asked.detail) == ("rate_limit: wait", "Bash: ls")


@pytest.mark.parametrize(
    ("before", "opinion", "state"),
    [
        (A.BUSY, None, A.UNKNOWN),
        (A.PERMISSION, Opinion(A.IDLE), A.IDLE),
        (A.BUSY, Opinion(A.BUSY), A.BUSY),
        (A.BUSY, Opinion(A.PERMISSION), A.PERMISSION),
        (A.QUESTION, Opinion(A.PERMISSION), A.QUESTION),
    ],
)
def test_a_long_silence_is_never_taken_for_idleness(
    before: ActivityState, opinion: Opinion | None, state: ActivityState
) -> None:
    """Another source is asked, and without one nothing is known; it cannot tell a question from a permission."""
    assert second_guess(activity(before), opinion, LATER).state is state
