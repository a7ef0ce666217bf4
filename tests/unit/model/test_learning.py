"""What an instance shows of its harness's capabilities, and what follows where one is missing."""

from datetime import UTC, datetime, timedelta

import pytest

from core.model.activity import CONSEQUENCES, Activity, ActivityState, Capability, Grade, consequences, graded
from core.model.harness import (
    DialogReported,
    HarnessEvent,
    PromptReported,
    Ready,
    TextQueued,
    TextTaken,
    ToolEnded,
    TurnEnded,
)
from core.model.observing import shown_by

C = Capability
T0 = datetime(2026, 11, 30, tzinfo=UTC)
LATER = T0 + timedelta(minutes=1)
IDLE = Activity("s-1", "i-1", ActivityState.IDLE, T0)
RUNNING = Activity("s-1", "i-1", ActivityState.BUSY, T0, turn_started_at=T0, turn="t-1")


@pytest.mark.parametrize(
    ("activity", "event", "mode", "shown"),
    [
        (IDLE, Ready("c-1", "startup"), "", {C.BOOT_HOOK: True}),
        (IDLE, Ready("c-1", "resume"), "default", {C.MODE: True, C.BOOT_HOOK: True, C.RESUME: True}),
        (IDLE, PromptReported("hi", turn="t-2"), "", {}),
        (RUNNING, PromptReported("hi", turn="t-1"), "", {C.QUEUE_EVIDENCE: True}),
        (IDLE, PromptReported("one\ntwo\nthree\nfour\nfive"), "", {C.PLAIN_PASTES: True}),
        (IDLE, PromptReported("go", pasted=("go",)), "", {C.PLAIN_PASTES: False}),
        (RUNNING, TurnEnded("done"), "", {C.TURN_EDGES: True}),
        (RUNNING, TurnEnded("done", ("b1",)), "", {C.TURN_EDGES: True, C.BACKGROUND_TASKS: True}),
        (IDLE, TurnEnded("done"), "", {}),
        (RUNNING, DialogReported(question=False, summary="Bash"), "", {C.PERMISSION_HOOK: True}),
        (RUNNING, ToolEnded("mcp__the-loop__post"), "", {C.MCP_APPROVAL: True}),
        (RUNNING, TextTaken("hi"), "", {C.TRANSCRIPT: True}),
        (RUNNING, TextTaken("hi", begins=False), "", {C.TRANSCRIPT: True, C.QUEUE_EVIDENCE: True}),
        (RUNNING, TextQueued("hi"), "", {C.TRANSCRIPT: True, C.QUEUE_EVIDENCE: True}),
    ],
)
def test_an_event_shows_what_it_shows(
    activity: Activity, event: HarnessEvent, mode: str, shown: dict[Capability, bool]
) -> None:
    """Nothing is concluded from a version, nor from what has not happened yet."""
    assert shown_by(activity, event, mode, LATER, was_pasted=True) == shown


@pytest.mark.parametrize("late", [0, 1.9], ids=["at-once", "some-moments-late"])
def test_a_report_from_the_beginning_of_a_turn_is_no_evidence_of_a_queue(late: float) -> None:
    """The record may have told first that the turn began: then the hook's report of the same text has its id, too."""
    told = PromptReported("hi", turn="t-1")

    assert shown_by(RUNNING, told, "", T0 + timedelta(seconds=late)) == {}


def test_what_was_shown_is_kept_and_the_latest_counts() -> None:
    """A capability that stops working is missing from then on."""
    before = Activity("s-1", "i-1", ActivityState.IDLE, T0, shown={C.PLAIN_PASTES: True, C.MODE: True})

    after = shown_by(before, PromptReported("go", pasted=("go",)), "", LATER, was_pasted=True)

    assert after == {C.PLAIN_PASTES: False, C.MODE: True}


def test_what_nobody_has_seen_is_guessed() -> None:
    """Each capability has a grade, and each that is missing says what follows for people."""
    grades = graded({C.MODE: True, C.RESUME: False})

    assert (grades[C.MODE], grades[C.RESUME], grades[C.TRANSCRIPT]) == (Grade.PROVEN, Grade.MISSING, Grade.GUESSED)
    assert list(grades) == list(Capability)
    assert consequences({C.RESUME: False}) == (f"resume is missing in this version: {CONSEQUENCES[C.RESUME]}",)
    assert CONSEQUENCES.keys() == set(Capability)


TOLD = (PromptReported("a word " * 400), TextTaken("a\n" * 9), TextTaken("x", pasted=("x",)))


@pytest.mark.parametrize("told", TOLD)
def test_what_we_did_not_paste_shows_nothing_of_pasting(told: HarnessEvent) -> None:
    """A boot prompt travels as an argument, and a person types or pastes for themselves."""
    assert C.PLAIN_PASTES not in shown_by(IDLE, told, "", LATER)
