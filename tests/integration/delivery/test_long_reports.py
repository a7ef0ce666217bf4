"""What a program tells at great length costs nobody else their time, and what is left out of it is said."""

import os
import resource
import time
from contextlib import suppress

import pytest

from core.base.errors import StoreBroken
from core.delivery.hook_ingest import ingest_record, take_told
from core.model.activity import Failure
from core.model.harness import HarnessEvent, Report, TurnBlocked, TurnEnded, TurnFailed
from core.model.message import MOST_TEXT
from core.model.posts import bounded_text
from core.session.system import System
from tests.support.talking import rows
from tests.support.world import recorded

WORDS = "The heron has token=abcdef on line 7. "
SECRET = "ghp_" + "aB3dE5gH7j" * 4
LONG = WORDS * (9_000_000 // len(WORDS))


def took(system: System, event: HarnessEvent) -> float:
    """Let the session's harness tell this, and return the seconds of processor time that it took."""
    record = recorded(system, "scribe")
    report = Report(record.instance_id or "", f"{int(system.clock.now().timestamp() * 1e9):019d}-1-Stop.json", {})
    began = time.thread_time()
    take_told(system, record, [(report, (event,))])
    return time.thread_time() - began


@pytest.mark.parametrize(
    "event",
    [
        TurnEnded(LONG, turn="t-9"),
        TurnFailed("server", LONG, Failure.OTHER, turn="t-9"),
        TurnBlocked(LONG, "task-1", scheduled=True),
    ],
)
def test_a_report_of_nine_million_characters_is_taken_in_at_once(scribe: System, event: HarnessEvent) -> None:
    """Nobody else can write while it is: no secret is looked for in what is shown to nobody."""
    assert took(scribe, event) < 1.0
    assert all(len(row.message.text) < MOST_TEXT + 100 for row in rows(scribe))


def test_a_secret_in_a_failure_is_taken_out_before_it_is_cut(scribe: System) -> None:
    """What stands in the row is short, and has no part of a secret at its end."""
    for before in range(255, 305, 5):
        took(scribe, TurnFailed("", "x" * before + " " + SECRET + " " + LONG, Failure.OTHER, turn=f"t-{before}"))

        activity = scribe.activities.get(recorded(scribe, "scribe").uid)
        assert activity is not None
        assert SECRET[:12] not in str(activity)
        assert len(str(activity.remarks)) < 2_000


def test_an_answer_beyond_all_bounds_is_kept_in_part_and_says_so() -> None:
    """Its beginning is there, and how much is missing."""
    shown = bounded_text("a" * MOST_TEXT + "b" * 1_234)

    assert shown == "a" * MOST_TEXT + "…\n\n[1,234 more characters were left out]"
    assert bounded_text("a" * MOST_TEXT) == "a" * MOST_TEXT


def test_reports_that_cannot_be_read_for_want_of_descriptors_say_what_helps(scribe: System) -> None:
    """No right is missing: the process may open no more files."""
    record, held = recorded(scribe, "scribe"), []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(StoreBroken, match="ulimit -n"):
            ingest_record(scribe, record)
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
