"""The processes below one are found without a library."""

import subprocess
import sys

from core.harness.base import descendants

CHAIN = "import subprocess; p = subprocess.Popen(['cat'], stdout=-3); print(p.pid, flush=True); p.wait()"


def test_children_and_theirs_are_found_the_nearest_first() -> None:
    """A program that a script starts is found below the script, and the script below us."""
    with subprocess.Popen([sys.executable, "-c", CHAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as script:
        assert script.stdout is not None
        program = int(script.stdout.readline())

        assert descendants(script.pid) == [program]
        assert script.stdin is not None
        script.stdin.close()  # ends `cat`, and the script with it

    assert descendants(script.pid) == []
