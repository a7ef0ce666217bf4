"""A state root that several processes share, and those processes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.base.paths import StatePaths

Child = subprocess.Popen[str]
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    """Return the layout of a state root that is not there yet."""
    return StatePaths(tmp_path / "state")


@pytest.fixture
def run(paths: StatePaths) -> Iterator[Callable[..., Child]]:
    """Return what starts a function of `children` on the state root; what is left of them is ended."""
    started: list[Child] = []

    def start(what: str, *arguments: str) -> Child:
        command = [sys.executable, "-m", "tests.integration.store.children", what, str(paths.root), *arguments]
        child = subprocess.Popen(
            command, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def line(child: Child) -> str:
    """Return the next line that the child prints."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def go_on(child: Child) -> None:
    """Let a child go on that waits for a line."""
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()
