"""Settings of Claude Code's that would keep our hooks from running are found before a start."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.clock import SystemClock
from core.harness.claude import startup
from core.harness.claude.adapter import ClaudeHarness

OFF, ON = {"disableAllHooks": True}, {"disableAllHooks": False}
USER = "home/.claude/settings.json"
PROJECT, LOCAL = "top/folder/.claude/settings.json", "top/folder/.claude/settings.local.json"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session's folder, in a machine whose owner has settled nothing."""
    monkeypatch.setattr(startup, "MANAGED", tmp_path / "managed-settings.json")
    (tmp_path / "top" / "folder").mkdir(parents=True)
    return tmp_path / "top" / "folder"


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeHarness:
    """The adapter, for an operator with a home of their own."""
    return ClaudeHarness(SystemClock(), {"HOME": str(tmp_path / "home")})


def write(path: Path, content: Any) -> None:
    """Write the JSON document, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_nothing_is_told_where_nothing_is_set(claude: ClaudeHarness, work: Path) -> None:
    """Most people have set none of it."""
    assert claude.silence_ahead(work, ()) == ""


@pytest.mark.parametrize("where", [USER, PROJECT, LOCAL])
def test_switched_off_hooks_are_told_with_the_file_and_the_remedy(
    claude: ClaudeHarness, work: Path, tmp_path: Path, where: str
) -> None:
    """Which key, in which file, what follows, and what can be done."""
    write(tmp_path / where, OFF)

    told = claude.silence_ahead(work, ())

    assert f"disableAllHooks is set in {tmp_path / where}" in told
    assert "remove it there" in told


@pytest.mark.parametrize(
    ("settings", "args", "silent"),
    [
        ({USER: OFF, PROJECT: ON}, (), False),
        ({USER: ON, PROJECT: OFF}, (), True),
        ({PROJECT: OFF, LOCAL: ON}, (), False),
        ({USER: OFF}, ("--settings", json.dumps(ON)), False),
        ({USER: {"disableAllHooks": "yes"}}, (), False),
    ],
)
def test_the_strongest_settings_that_say_it_count(
    claude: ClaudeHarness, work: Path, tmp_path: Path, settings: dict[str, Any], args: tuple[str, ...], silent: bool
) -> None:
    """`--settings` before local ones, these before the project's, these before the user's."""
    for where, content in settings.items():
        write(tmp_path / where, content)

    assert bool(claude.silence_ahead(work, args)) is silent


def test_the_local_settings_of_a_checkout_are_those_of_its_top_folder(
    claude: ClaudeHarness, work: Path, tmp_path: Path
) -> None:
    """So 2.1.280 and 2.1.332 read them; project settings of folders above do not count."""
    write(tmp_path / "top" / ".claude" / "settings.local.json", OFF)
    outside = claude.silence_ahead(work, ())

    (tmp_path / "top" / ".git").mkdir()

    assert outside == ""
    assert str(tmp_path / "top" / ".claude" / "settings.local.json") in claude.silence_ahead(work, ())


@pytest.mark.parametrize("key", ["disableAllHooks", "allowManagedHooksOnly"])
def test_what_the_machines_owner_settles_goes_before_all(
    claude: ClaudeHarness, work: Path, tmp_path: Path, key: str
) -> None:
    """And cannot be changed by a session's arguments."""
    write(tmp_path / "managed-settings.json", {key: True})

    told = claude.silence_ahead(work, ("--settings", json.dumps(ON)))

    assert key in told
    assert "owner" in told


def test_another_configuration_folder_is_read_where_it_is_set(work: Path, tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR moves the user's settings."""
    write(tmp_path / "other" / "settings.json", OFF)
    environ = {"HOME": str(tmp_path / "home"), "CLAUDE_CONFIG_DIR": str(tmp_path / "other")}

    told = ClaudeHarness(SystemClock(), environ).silence_ahead(work, ())

    assert str(tmp_path / "other" / "settings.json") in told
