"""What is true of a session, from its record, tmux and its harness."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.model.activity import Activity, ActivityState, Capability
from core.model.gate import Observed
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    StatusProbe,
    TextQueued,
    TextTaken,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
)
from core.model.observing import (
    believed,
    by_other_word,
    follow,
    is_of_running_turn,
    observe,
    second_guess,
    shown_by,
    unfinished_tasks,
    without_queue,
)
from core.model.reasons import Reason, because, said
from core.model.session import Definition, Live, Phase, SessionRecord, Status

A = ActivityState
T0 = datetime(2026, 11, 29, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LATER = T0 + 60 * SECOND
END_OF_T1 = TurnEnded("done", turn="t-1")
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
        (A.IDLE, PromptReported("hi"), A.BUSY),
        (A.PERMISSION, ToolEnded("Bash"), A.BUSY),
        (A.IDLE, ToolEnded("Bash"), A.IDLE),  # an interruption ended the turn before its tool
        (A.IDLE, ToolStarted("Bash"), A.BUSY),
        (A.BUSY, DialogReported(False, "Bash: ls"), A.PERMISSION),
        (A.BUSY, DialogReported(True, "which?"), A.QUESTION),
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
    after = follow(activity(before), event, LATER)

    assert after.state is state
    assert after.last_report_at == LATER
    assert after.since == (T0 if state is before else LATER)


def test_a_boot_prompt_on_its_way_keeps_a_ready_session_busy() -> None:
    """Its turn is about to begin, and nobody may take it for idle."""
    assert follow(activity(A.STARTING), Ready("c", "startup"), LATER, boot_coming=True).state is A.BUSY


def test_background_tasks_are_kept_until_the_harness_lists_them_no_more() -> None:
    """A tool may leave a task, and the turn's end says which go on."""
    during = follow(activity(A.BUSY), ToolEnded("Bash", "b1"), T0)
    over = follow(during, TurnEnded("done"), LATER)

    assert during.pending_tasks == ("b1",)
    assert over.pending_tasks == ()


def test_what_ran_as_a_program_ended_is_kept_in_words() -> None:
    """What each runs, where that was told; the tasks themselves are over."""
    during = follow(activity(A.BUSY), ToolEnded("Bash", "b1", "make all"), T0)
    during = follow(during, TurnEnded("done", ("b1", "b2")), T0)
    over = follow(during, Ended("other", False), LATER)

    assert over.cut_off_tasks == ("make all (b1)", "b2")
    assert (over.pending_tasks, over.task_names) == ((), {})


@pytest.mark.parametrize(
    ("changes", "unfinished"),
    [
        ({}, ()),
        ({"pending_tasks": ("b1",), "task_names": {"b1": "make"}}, ("make (b1)",)),
        ({"cut_off_tasks": ("make (b1)",)}, ("make (b1)",)),
        ({"earlier_tasks": ("make (b0)",), "last_report_at": T0}, ()),
        ({"earlier_tasks": ("make (b0)",)}, ("make (b0)",)),
    ],
    ids=["none", "killed without a word", "ended with its word", "told before", "never came up"],
)
def test_what_an_instance_leaves_unfinished(changes: dict[str, Any], unfinished: tuple[str, ...]) -> None:
    """Its own tasks, and those of the one before where it ended before it could tell."""
    assert unfinished_tasks(replace(activity(A.BUSY), **changes)) == unfinished


def test_nothing_is_left_unfinished_by_nobody() -> None:
    """A first start has none before it."""
    assert unfinished_tasks(None) == ()


@pytest.mark.parametrize(("internal", "kept"), [(True, ("make (b0)",)), (False, ())])
def test_what_was_left_unfinished_is_news_until_somebody_speaks(internal: bool, kept: tuple[str, ...]) -> None:
    """A turn that the harness begins by itself is nobody's word."""
    before = replace(activity(A.IDLE), earlier_tasks=("make (b0)",))

    assert follow(before, PromptReported("hi", internal), LATER).earlier_tasks == kept


def test_a_turn_remembers_when_it_began() -> None:
    """Half-typed text from before it is gone with it."""
    assert follow(activity(A.IDLE), PromptReported("hi"), LATER).turn_started_at == LATER


def test_a_text_reported_with_the_running_turns_id_begins_no_turn() -> None:
    """Versions that report a text as they queue it name the turn that runs; the turn's beginning is not moved."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)

    queued = follow(running, PromptReported("later", turn="t-1"), LATER)

    assert is_of_running_turn(running, "t-1")
    assert (queued.state, queued.turn_started_at, queued.turn) == (A.BUSY, T0, "t-1")


def test_a_turn_that_leaves_a_queue_is_not_followed_by_idleness() -> None:
    """What its own queue held begins a turn at once, of which no hook tells: the record of it does."""
    over = follow(follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0), END_OF_T1, LATER, queue_left=True)
    next_turn = follow(over, TextTaken("later", at=LATER + SECOND, turn="t-2"), LATER + SECOND)

    assert (over.state, over.queue_left, over.in_turn) == (A.BUSY, True, False)
    assert (next_turn.state, next_turn.detail, next_turn.turn) == (A.BUSY, "", "t-2")
    assert follow(next_turn, TurnEnded("done", turn="t-2"), LATER + 2 * SECOND).state is A.IDLE


def test_the_late_report_of_a_turns_end_does_not_end_the_next_one() -> None:
    """The record of the next turn may be read before the hook that tells of the last one's end."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)
    next_turn = follow(running, TextTaken("later", at=LATER, turn="t-2"), LATER)

    after = follow(next_turn, END_OF_T1, LATER, queue_left=True)

    assert (after.state, after.turn, after.detail) == (A.BUSY, "t-2", "")
    assert follow(after, TurnEnded("done", turn="t-2"), LATER + SECOND).state is A.IDLE


def test_a_record_that_is_read_late_closes_no_dialog() -> None:
    """A dialog that opened after the turn's text was taken stays open, though its report was read before the text."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)
    asking = follow(running, DialogReported(False, "Bash: rm x"), LATER)

    after = follow(asking, TextTaken("later", at=LATER - SECOND / 2, turn="t-2"), LATER)

    assert (after.state, after.since, after.detail) == (A.PERMISSION, LATER, asking.detail)
    assert (after.turn, after.ended_turn, after.in_turn) == ("t-2", "t-1", True)


def test_a_turn_that_failed_and_leaves_a_queue_is_over_all_the_same() -> None:
    """What is said of its failure changes nothing of what comes next, and stays if nothing does."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)
    over = follow(running, TurnFailed("rate_limit", "wait", turn="t-1"), LATER, queue_left=True)
    told = replace(over, remarks=(said("its last turn failed"),))

    assert (told.queue_left, told.in_turn) == (True, False)
    assert (without_queue(told, LATER).state, without_queue(told, LATER).detail) == (A.IDLE, "its last turn failed")


def test_an_end_that_another_source_belies_is_not_believed() -> None:
    """An operator's own Stop hook lets the turn go on: it is busy, and works on, until the other source agrees."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)

    told = follow(running, END_OF_T1, LATER, doubted=True)
    goes_on = follow(told, ToolStarted("Bash"), LATER + SECOND)
    again = follow(goes_on, END_OF_T1, LATER + 2 * SECOND, doubted=True)
    over = believed(again, LATER + 3 * SECOND)

    assert (told.state, told.ending, told.in_turn) == (A.BUSY, True, True)
    assert (goes_on.ending, goes_on.turn_ended_at, goes_on.in_turn) == (False, None, True)
    assert (again.ending, again.turn_ended_at, again.ended_turn) == (True, LATER + 2 * SECOND, "t-1")
    assert (over.state, over.detail, over.turn_ended_at) == (A.IDLE, "", LATER + 2 * SECOND)
    assert believed(again, LATER + 3 * SECOND, queue_left=True).queue_left


def test_a_text_that_joins_a_turn_whose_end_is_in_doubt_shows_nothing() -> None:
    """It waits in the queue of the turn that goes on; with an id of its own it begins another."""
    told = follow(follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0), END_OF_T1, LATER, doubted=True)

    assert follow(told, PromptReported("more", turn="t-1"), LATER + SECOND).ending
    assert not follow(told, PromptReported("more", turn="t-2"), LATER + SECOND).ending


def test_work_that_no_hook_tells_of_is_no_turn() -> None:
    """A person's `/compact` is busy by another source's word, and idle by it, and was never cut off."""
    works = by_other_word(activity(A.IDLE), StatusProbe(A.BUSY), LATER)
    rests = by_other_word(works, StatusProbe(A.IDLE, turn_over=True), LATER + SECOND)

    assert (works.state, works.at_work, works.in_turn) == (A.BUSY, True, False)
    assert (rests.state, rests.detail) == (A.IDLE, "")
    assert by_other_word(activity(A.IDLE), StatusProbe(A.BUSY, turn_over=True), LATER).state is A.IDLE


def test_an_idle_session_is_not_explained_by_what_it_was_busy_with() -> None:
    """Its queue turned out to be empty: nothing of it comes next."""
    over = follow(activity(A.BUSY), END_OF_T1, LATER, queue_left=True)
    idle = second_guess(over, StatusProbe(A.IDLE, turn_over=True), LATER + SECOND)

    assert (idle.state, idle.detail) == (A.IDLE, "")


def test_turn_edges_are_guessed_where_hooks_alone_tell_of_them() -> None:
    """Where nothing else shows that a turn is over, the hooks' word is not proven by it."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)

    assert Capability.TURN_EDGES not in shown_by(running, END_OF_T1, "", LATER, agreed=False)
    assert shown_by(running, END_OF_T1, "", LATER)[Capability.TURN_EDGES]


def test_a_queue_that_turns_out_empty_leaves_a_session_idle() -> None:
    """Nothing is left that could begin a turn."""
    over = follow(activity(A.BUSY), END_OF_T1, LATER, queue_left=True)

    assert without_queue(over, LATER).state is A.IDLE
    assert without_queue(activity(A.BUSY), LATER).state is A.BUSY


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (TextTaken("hi", at=LATER - SECOND, turn="t-1"), A.IDLE),  # the turn that has just ended
        (TextTaken("hi", at=LATER - SECOND, turn="t-2"), A.BUSY),  # the next one: a report bears its time a little late
        (TextTaken("hi", at=T0 - 10 * SECOND, turn="t-0"), A.IDLE),  # long past
        (TextTaken("hi", at=LATER - SECOND), A.IDLE),  # no id, and before the end
        (TextTaken("hi", at=LATER + SECOND), A.BUSY),
        (TextTaken("hi", begins=False, at=LATER + SECOND), A.IDLE),  # slipped into a turn
    ],
)
def test_a_record_that_is_read_late_revives_no_turn(told: TextTaken, state: ActivityState) -> None:
    """The conversation's record is read when there is time: a turn that is over by then stays over."""
    over = follow(follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0), END_OF_T1, LATER)

    assert follow(over, told, LATER + SECOND).state is state


def test_what_a_new_instance_finds_in_the_record_is_past() -> None:
    """A resumed conversation is read from its start: none of it began a turn of this instance."""
    ready = follow(activity(A.STARTING), Ready("c-1", "resume"), LATER)

    assert follow(ready, TextTaken("hi", at=LATER - SECOND, turn="t-9"), LATER).state is A.IDLE


def test_a_refused_text_may_stand_in_the_input_line() -> None:
    """A notice that was blocked leaves nothing there."""
    assert follow(activity(A.IDLE), TurnBlocked("[ann #k3] hi"), LATER).composer_at == LATER
    assert follow(activity(A.IDLE), TurnBlocked("<task-notification>", "b1"), LATER).composer_at is None


def test_what_failed_or_is_asked_is_told() -> None:
    """The words are for people."""
    failed = follow(activity(A.BUSY), TurnFailed("rate_limit", "wait"), LATER)
    asked = follow(activity(A.BUSY), DialogReported(False, "Bash: ls"), LATER)

    assert (failed.detail, asked.detail) == ("rate_limit: wait", "Bash: ls")


def test_a_shell_that_outlives_a_turn_that_was_cut_off_is_no_turn() -> None:
    """The turn is over since then, and what the shell is busy with is not known by any task."""
    running = follow(activity(A.IDLE), PromptReported("hi", turn="t-1"), T0)

    lingers = second_guess(running, StatusProbe(A.BUSY, turn_over=True), LATER)

    assert (lingers.between_turns, lingers.lingers, lingers.turn_ended_at) == (True, True, LATER)
    assert not replace(lingers, pending_tasks=("b1",)).lingers


IDLE_TOO, SHELL_TOO = StatusProbe(A.IDLE, turn_over=True), StatusProbe(A.BUSY, turn_over=True)


@pytest.mark.parametrize(
    "after",
    [
        lambda failed: by_other_word(failed, IDLE_TOO, LATER),
        lambda failed: by_other_word(by_other_word(failed, StatusProbe(A.BUSY), LATER), IDLE_TOO, LATER),
        lambda failed: second_guess(failed, IDLE_TOO, LATER),
        lambda failed: second_guess(failed, SHELL_TOO, LATER),
        lambda failed: follow(failed, PromptReported("hi", turn="t-2"), LATER),
        lambda failed: follow(follow(failed, PromptReported("hi"), LATER), TurnFailed("", "wait", turn="t-2"), LATER),
        lambda failed: follow(failed, DialogReported(False, "Bash: ls"), LATER),
        lambda failed: follow(failed, TextTaken("hi", at=LATER + SECOND, turn="t-2"), LATER),
    ],
)
def test_what_failed_is_told_until_a_turn_succeeds(after: Callable[[Activity], Activity]) -> None:
    """Whatever else is told of the session meanwhile."""
    failed = follow(activity(A.BUSY), TurnFailed("rate_limit", "wait", turn="t-1"), T0)

    still = after(failed)
    well = follow(follow(still, PromptReported("more", turn="t-3"), LATER), TurnEnded("done", turn="t-3"), LATER)

    assert "wait" in still.detail
    assert (well.detail, well.failed, well.remarks) == ("", "", ())


def test_an_end_that_is_believed_later_ends_what_is_told_of_a_failure() -> None:
    """The turn went well: another source says so too."""
    failed = follow(activity(A.BUSY), TurnFailed("rate_limit", "wait", turn="t-1"), T0)
    again = follow(follow(failed, PromptReported("more", turn="t-2"), LATER), END_OF_T1, LATER, doubted=True)

    assert "wait" in again.detail
    assert believed(again, LATER).remarks == ()


def test_when_an_idle_session_is_stopped_is_told_as_long_as_it_rests() -> None:
    """Another source that says the same takes nothing back; work does."""
    rests = replace(activity(A.IDLE), remarks=(because(Reason.STOPS_IDLE, at="12:00:00"),))

    assert by_other_word(rests, IDLE_TOO, LATER) == rests
    assert follow(rests, PromptReported("hi", turn="t-2"), LATER).remarks == ()


@pytest.mark.parametrize(
    ("before", "opinion", "state"),
    [
        (A.BUSY, None, A.UNKNOWN),
        (A.PERMISSION, StatusProbe(A.IDLE), A.IDLE),
        (A.BUSY, StatusProbe(A.BUSY), A.BUSY),
        (A.BUSY, StatusProbe(A.PERMISSION), A.PERMISSION),
        (A.QUESTION, StatusProbe(A.PERMISSION), A.QUESTION),
    ],
)
def test_a_long_silence_is_never_taken_for_idleness(
    before: ActivityState, opinion: StatusProbe | None, state: ActivityState
) -> None:
    """Another source is asked, and without one nothing is known; it cannot tell a question from a permission."""
    assert second_guess(activity(before), opinion, LATER).state is state
