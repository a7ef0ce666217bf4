"""Whether a process that left its pid somewhere is still there."""

import os
import resource
import subprocess
import sys

import pytest

from core.base.processes import answers, is_running, running_since

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc on this system")


def test_a_pid_and_a_beginning_name_one_process() -> None:
    own = running_since(os.getpid())

    assert own
    assert is_running(os.getpid(), own)
    assert is_running(os.getpid())
    assert not is_running(os.getpid(), str(int(own) + 1))


def test_what_has_ended_does_not_run() -> None:
    """Also while nobody has waited for it."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not is_running(process.pid)
    process.wait()
    assert not answers(process.pid)


def test_without_a_free_descriptor_it_is_not_called_gone() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        since = running_since(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert since == ""
