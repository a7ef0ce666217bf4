"""The command line in this process, with a configuration of its own and no tmux server."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import StatePaths
from core.cli.main import run


@dataclass
class Terminal:
    """Runs commands and keeps what the last one printed."""

    folder: Path
    config: Path  #: which `--config` names
    capture: Callable[[], tuple[str, str]]
    out: str = ""
    err: str = ""

    @property
    def paths(self) -> StatePaths:
        """Where the state is."""
        return StatePaths(self.folder / "state")

    def run(self, *words: str) -> int:
        """Run one command with the configuration and return its exit code."""
        self.capture()
        code = run(["--config", str(self.config), *words])
        self.out, self.err = self.capture()
        return code

    @property
    def json(self) -> Any:
        """Return the whole of standard output as one JSON value."""
        import json

        return json.loads(self.out)


@pytest.fixture
def terminal(
    tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """Give a terminal whose configuration declares `scribe`, of a harness that is not installed.

    So no command starts a tmux server; and systemd knows no unit.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMUX_TMPDIR", str(short_path))

    def capture() -> tuple[str, str]:
        seen = capsys.readouterr()
        return seen.out, seen.err

    terminal = Terminal(tmp_path, tmp_path / "cli-config.yaml", capture)
    terminal.config.write_text(
        f"state: {{root: {terminal.paths.root}}}\n"
        f"routing: {{defaultHarness: absent, tmux: {{socketName: loop-test-{secrets.token_hex(4)}}}}}\n"
        "harnesses: {absent: {start: [the-loop-test-no-such-program]}}\n"
        "service: {port: 0}\n"
        "standingSessions: {enabled: true, sessions: [{name: scribe}]}\n"
    )
    return terminal
