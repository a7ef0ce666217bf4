"""What is held against the deeds of a program: a claim that is not so is found, one that is so is let pass."""

import json
import time
from pathlib import Path
from typing import cast

import pytest

from core.model.activity import ActivityState
from core.model.rows import Row
from core.session.system import System
from tests.support.claims import Case, Told, of_answers, of_row

NOW = time.time()


def case_of(folder: Path, *deeds: tuple[float, str, str]) -> Case:
    """Return a case whose program did these things, so many seconds from now; no system is asked about it."""
    truth = folder / "truth.jsonl"
    lines = (json.dumps({"at": NOW + at, "what": what, "text": text}) for at, what, text in deeds)
    truth.write_text("".join(f"{line}\n" for line in lines))
    return Case("usual", "usual", cast(System, None), truth)


@pytest.mark.parametrize(
    ("since", "until", "running"), [(-9, -7, True), (-9, -5, False), (-5, -4, False), (-3, 0, True), (-5, 0, False)]
)
def test_a_turn_runs_only_where_it_does_so_all_the_time(
    tmp_path: Path, since: float, until: float, running: bool
) -> None:
    """One that ended, or began, within the time has not run throughout."""
    case = case_of(tmp_path, (-10, "began", ""), (-6, "over", ""), (-4, "began", ""))

    assert case.in_turn(NOW + since, NOW + until) is running


@pytest.mark.parametrize(("outcome", "false"), [("confirmed", True), ("accepted", False), ("unknown", False)])
def test_an_answer_that_tells_more_than_was_done_is_false(tmp_path: Path, outcome: str, false: bool) -> None:
    """A text that the program received and no turn took may be told as accepted, and no more."""
    case = case_of(tmp_path, (-2, "received", "[ann] hello"))
    case.told.append(Told("say", NOW - 3, NOW - 1, outcome, "hello"))

    assert bool(list(of_answers(case))) is false


@pytest.mark.parametrize(("began", "false"), [(-3.0, True), (-1.0, False), (-6.0, False)])
def test_a_turn_within_a_pause_is_found(tmp_path: Path, began: float, false: bool) -> None:
    """Not one before it, nor one after it is over."""
    case = case_of(tmp_path, (began, "began", ""), (began + 0.1, "over", ""))
    case.told += [Told("pause", NOW - 5, NOW - 4, "paused"), Told("resume", NOW - 2, NOW - 2, "unpaused")]

    assert bool(list(of_answers(case))) is false


@pytest.mark.parametrize(("latency", "false"), [(5.0, False), (1.0, True)])
def test_a_row_may_be_late_and_no_later_than_that(tmp_path: Path, latency: float, false: bool) -> None:
    """It calls a session idle whose turn has run for two seconds."""
    case = case_of(tmp_path, (-2, "began", ""))

    assert bool(of_row(case, NOW, NOW, Row("usual", activity=ActivityState.IDLE), latency)) is false
