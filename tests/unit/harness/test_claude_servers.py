"""A project's own MCP servers, about which Claude Code asks in a dialog at its start."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.clock import SystemClock
from core.base.files import read_plain
from core.harness.claude import files
from core.harness.claude.adapter import ClaudeHarness

ONE = {"mcpServers": {"my server": {"command": "/bin/false"}}}
TWO = {"mcpServers": {"my server": {"command": "/bin/false"}, "web": {"type": "http", "url": "https://a.b/c"}}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An operator's home, with the folder of Claude Code's settings."""
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A session's folder, with one for the project's settings."""
    (tmp_path / "top" / "work" / ".claude").mkdir(parents=True)
    return tmp_path / "top" / "work"


@pytest.fixture
def claude(home: Path) -> ClaudeHarness:
    """The adapter."""
    return ClaudeHarness(SystemClock(), {"HOME": str(home)})


def write(path: Path, content: Any) -> None:
    """Write the JSON document."""
    path.write_text(json.dumps(content))


def test_servers_that_nobody_has_decided_about_are_named_with_the_remedy(claude: ClaudeHarness, work: Path) -> None:
    """Which, in which file, and where the decision is written down."""
    write(work / ".mcp.json", TWO)

    told = claude.dialog_ahead(work, ())

    assert f"my server, web of {work / '.mcp.json'}" in told
    assert "enabledMcpjsonServers or disabledMcpjsonServers" in told
    assert "`claude`" in told


@pytest.mark.parametrize("where", ["user", "project", "local"])
@pytest.mark.parametrize(
    "settings",
    [
        {"enableAllProjectMcpServers": True},
        {"enabledMcpjsonServers": ["my server", "web"]},
        {"disabledMcpjsonServers": ["my server"], "enabledMcpjsonServers": ["web"]},
    ],
)
def test_what_a_settings_file_decides_is_not_asked(
    claude: ClaudeHarness, home: Path, work: Path, where: str, settings: dict[str, Any]
) -> None:
    """For a server or against it, by any of the files that Claude Code reads."""
    write(work / ".mcp.json", TWO)
    files = {
        "user": home / ".claude" / "settings.json",
        "project": work / ".claude" / "settings.json",
        "local": work / ".claude" / "settings.local.json",
    }

    write(files[where], settings)

    assert claude.dialog_ahead(work, ()) == ""


@pytest.mark.parametrize(
    ("version", "asks"), [("2.1.197", False), ("2.1.280", False), ("2.1.332", True), ("2.2.0", True), ("", True)]
)
def test_names_count_as_the_installed_version_compares_them(
    home: Path, work: Path, tmp_path: Path, version: str, asks: bool
) -> None:
    """2.1.332 takes a name as it is written, earlier ones took `my_server` for `my server`; unknown counts as new."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)
    claude = ClaudeHarness(SystemClock(), {"HOME": str(home), "PATH": f"{program.parent}:/bin"})
    write(work / ".mcp.json", ONE)

    write(work / ".claude" / "settings.json", {"enabledMcpjsonServers": ["my_server"]})

    assert ("my server" in claude.dialog_ahead(work, ())) is asks


def test_what_arguments_and_an_earlier_dialog_decide_is_not_asked(
    claude: ClaudeHarness, home: Path, work: Path
) -> None:
    """`--settings` of the session, and the answers that older versions kept with the project's trust."""
    write(work / ".mcp.json", TWO)
    write(home / ".claude.json", {"projects": {str(work): {"enabledMcpjsonServers": ["web"]}}})

    alone = claude.dialog_ahead(work, ())
    both = claude.dialog_ahead(work, ("--settings", json.dumps({"disabledMcpjsonServers": ["my server"]})))

    assert f"servers my server of {work}" in alone
    assert both == ""


def test_the_nearer_file_counts_where_two_say_whether_all_are_enabled(
    claude: ClaudeHarness, home: Path, work: Path
) -> None:
    """As Claude Code merges its settings: what the folder says goes before what the user says."""
    write(work / ".mcp.json", ONE)
    write(home / ".claude" / "settings.json", {"enableAllProjectMcpServers": True})
    write(work / ".claude" / "settings.local.json", {"enableAllProjectMcpServers": False})

    assert "my server" in claude.dialog_ahead(work, ())


def test_a_file_of_a_folder_above_counts(claude: ClaudeHarness, work: Path) -> None:
    """Claude Code looks for servers in every folder up to the root."""
    write(work.parent / ".mcp.json", ONE)

    assert str(work.parent / ".mcp.json") in claude.dialog_ahead(work, ())


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"mcpServers": [', '{"mcpServers": {"a": {"no": 1}}}', "[]"])
def test_a_file_without_a_sound_server_asks_nothing(claude: ClaudeHarness, work: Path, text: str) -> None:
    """Claude Code passes over what it cannot use."""
    (work / ".mcp.json").write_text(text)

    assert claude.dialog_ahead(work, ()) == ""


def test_what_is_no_plain_file_holds_nobody_up(claude: ClaudeHarness, work: Path) -> None:
    """A folder in the place of the file is passed over."""
    (work / ".mcp.json").mkdir()

    assert claude.dialog_ahead(work, ()) == ""


def test_without_permission_checks_nothing_is_asked(claude: ClaudeHarness, work: Path) -> None:
    """Claude Code takes the servers then without a word; ours of the same name is switched off by us."""
    write(work / ".mcp.json", ONE)

    bypassing = claude.dialog_ahead(work, ("--dangerously-skip-permissions",))
    write(work / ".mcp.json", {"mcpServers": {"the-loop": {"command": "/bin/false"}}})
    ours = claude.dialog_ahead(work, ())

    assert (bypassing, ours) == ("", "")


def test_settings_that_cannot_be_read_decide_nothing(claude: ClaudeHarness, work: Path) -> None:
    """A broken file is no word for a server."""
    write(work / ".mcp.json", ONE)
    (work / ".claude" / "settings.json").write_text("{")

    assert "my server" in claude.dialog_ahead(work, ())


@pytest.mark.parametrize("name", [".mcp.json", ".claude/settings.json", ".claude/settings.local.json"])
def test_a_file_of_a_project_that_is_too_large_is_not_read(claude: ClaudeHarness, work: Path, name: str) -> None:
    """A cloned repository may bring any; what is not known of it then is said."""
    path = work / name
    path.write_text('{"disableAllHooks": true, "a": "' + "a" * files.MOST_SETTINGS + '"}')

    told = claude.dialog_ahead(work, ())

    assert f"{path} is not read: it is larger than 1,048,576 bytes" in told
    assert claude.silence_ahead(work, ()) == ""


def test_settings_are_read_once_for_each_change(
    claude: ClaudeHarness, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often somebody asks, and whether they can be understood or not."""
    seen: list[Path] = []

    def counted(path: Path, most: int) -> bytes:
        seen.append(path)
        return read_plain(path, most)

    monkeypatch.setattr(files, "read_plain", counted)
    write(work / ".mcp.json", ONE)
    (work / ".claude" / "settings.json").write_text("{")
    for _ in range(3):
        claude.dialog_ahead(work, ())
    before = seen.count(work / ".mcp.json"), seen.count(work / ".claude" / "settings.json")
    write(work / ".mcp.json", TWO)

    told = claude.dialog_ahead(work, ())

    assert before == (1, 1)
    assert "web" in told
