"""The catalogue of harnesses."""

import os

import pytest

from core.base.clock import SystemClock
from core.base.errors import InvalidValue, UnsupportedHarness
from core.config.settings import HarnessDeclaration
from core.harness.catalogue import Harnesses, catalogue
from core.harness.claude.adapter import ClaudeHarness
from core.harness.generic import GenericHarness
from core.model.session import Definition

MINE = HarnessDeclaration("mine", ("sh", "-i"), ready="^> ", settle_ms=50)


def full() -> Harnesses:
    """Return the catalogue with one declared harness."""
    return catalogue(SystemClock(), os.environ, {"mine": MINE, "claude": MINE})


def test_built_in_and_declared_harnesses_are_found() -> None:
    """Each name gives its adapter; a declared key hides no built-in one."""
    harnesses = full()

    assert isinstance(harnesses.get("mine"), GenericHarness)
    assert harnesses.get("mine").traits.settle == 0.05
    assert isinstance(harnesses.get("claude"), ClaudeHarness)
    assert harnesses.get("bundled").name == "bundled"


def test_unknown_harness_is_refused_with_the_ones_there_are() -> None:
    """The error lists what can be chosen."""
    with pytest.raises(UnsupportedHarness, match="bundled, claude, cursor, mine"):
        full().get("codex")


def test_cursor_is_refused_with_the_reason() -> None:
    """cursor as the harness: it has no pre-assignable conversation id."""
    cursor = full().get("cursor")

    with pytest.raises(UnsupportedHarness, match="no pre-assignable conversation id"):
        cursor.check(Definition("scribe"), ())


def test_bundled_agent_takes_no_arguments() -> None:
    """Arguments for it are a mistake."""
    bundled = full().get("bundled")
    bundled.check(Definition("scribe"), ())

    with pytest.raises(InvalidValue, match="--model"):
        bundled.check(Definition("scribe"), ("--model",))
