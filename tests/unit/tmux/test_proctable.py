"""Looking at processes where the machine has nothing left to look with."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from core.base.errors import ProcessesUnknown
from core.tmux.handles import LinuxTable


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Leave this process no descriptor to open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
@pytest.mark.parametrize(
    "look",
    [
        lambda table: table.get(os.getpid()),
        lambda table: table.start_of(os.getpid()),
        lambda table: table.variable(os.getpid(), "PATH"),
        lambda table: table.all(),
    ],
    ids=["get", "start", "variable", "all"],
)
def test_who_has_no_descriptor_left_calls_no_process_gone(look: Callable[[LinuxTable], object]) -> None:
    """It could not be asked, which is said with the reason and what helps."""
    with no_descriptors(), pytest.raises(ProcessesUnknown, match=r"Too many open files.*ulimit -n"):
        look(LinuxTable())


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
def test_a_process_that_has_gone_is_told_as_gone() -> None:
    """That is an answer."""
    with subprocess.Popen(["true"]) as process:
        process.wait()

    assert LinuxTable().get(process.pid) is None
