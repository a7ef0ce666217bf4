"""The catalogue of harnesses."""

import os
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.base.errors import InvalidValue, UnsupportedHarness
from core.config.document import ConfigError
from core.config.settings import HarnessDeclaration
from core.config.validation import validate
from core.harness.catalogue import BUILT_IN, Harnesses, catalogue
from core.harness.claude.adapter import ClaudeHarness
from core.harness.generic import GenericHarness
from core.model.session import Definition
from tests.support.parrot import PARROT

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


def named(*more: str) -> str:
    """Return how the harnesses of ours and these are listed."""
    return ", ".join(sorted({*BUILT_IN, *more}))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Install a package that brings two harnesses, one of which cannot be loaded."""
    package = tmp_path / "parrot-1.dist-info"
    package.mkdir()
    entries = f"{PARROT}mute = no_such_module_at_all:mute\n"
    (package / "entry_points.txt").write_text(f"[the_loop.harnesses]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_a_harness_of_a_package_of_its_own_is_found() -> None:
    """It is made once, stands among those there are, and one that cannot be loaded is named with the reason."""
    harnesses = full()

    assert harnesses.get("parrot").name == "parrot"
    assert harnesses.get("parrot") is harnesses.get("parrot")
    with pytest.raises(UnsupportedHarness, match=r"'mute' \(no_such_module_at_all:mute\) cannot be loaded: No module"):
        harnesses.get("mute")
    with pytest.raises(UnsupportedHarness, match=named("mine", "mute", "parrot")):
        harnesses.get("nobody")


@pytest.mark.usefixtures("installed")
def test_the_configuration_takes_a_harness_that_is_installed(tmp_path: Path) -> None:
    """It can be chosen without being declared, and its name is no key for a declaration."""
    chosen = validate("routing: {defaultHarness: parrot}", tmp_path / "c.yaml", {"HOME": "/home/ann"})

    assert chosen["routing"]["defaultHarness"] == "parrot"
    with pytest.raises(ConfigError, match=r"harnesses\.parrot"):
        validate("harnesses: {parrot: {start: [cat]}}", tmp_path / "c.yaml", {"HOME": "/home/ann"})


def test_unknown_harness_is_refused_with_the_ones_there_are() -> None:
    """The error lists what can be chosen."""
    with pytest.raises(UnsupportedHarness, match=named("mine")):
        full().get("nobody")


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
