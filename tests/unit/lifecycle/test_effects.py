"""Named effects and their crash points."""

import os
import signal
import subprocess
import sys

import pytest

from core.base.failpoints import CRASH_VARIABLE, Failpoint, current_failpoint, failpoint

_SCRIPT = """
from core.base.failpoints import Failpoint, failpoint
print("begin", flush=True)
with failpoint(Failpoint.STOP_MARK):
    print("inside", flush=True)
print("end", flush=True)
"""


def run(crash_at: str) -> tuple[int, list[str]]:
    """Run a process with one effect and return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env={**os.environ, CRASH_VARIABLE: crash_at}, capture_output=True, text=True
    )
    return done.returncode, done.stdout.split()


def test_current_effect_is_told_inside_only() -> None:
    """Outside of every effect there is none; an inner one hides the outer."""
    assert current_failpoint() is None
    with failpoint(Failpoint.STOP_MARK):
        assert current_failpoint() is Failpoint.STOP_MARK
        with failpoint(Failpoint.STOP_CANCEL):
            assert current_failpoint() is Failpoint.STOP_CANCEL
        assert current_failpoint() is Failpoint.STOP_MARK
    assert current_failpoint() is None


@pytest.mark.parametrize(
    ("crash_at", "code", "printed"),
    [
        ("stop.mark:before", -signal.SIGKILL, ["begin"]),
        ("stop.mark:after", -signal.SIGKILL, ["begin", "inside"]),
        ("stop.cancel:before", 0, ["begin", "inside", "end"]),
        ("", 0, ["begin", "inside", "end"]),
    ],
)
def test_process_is_killed_at_the_point_that_the_variable_names(crash_at: str, code: int, printed: list[str]) -> None:
    """Only the named point ends the process, and nothing can catch it."""
    assert run(crash_at) == (code, printed)


def test_effect_that_raised_has_no_point_after_it() -> None:
    """What was not made is not told as made."""
    with pytest.raises(OSError, match="full"), failpoint(Failpoint.STOP_MARK):
        raise OSError("full")
    assert current_failpoint() is None
