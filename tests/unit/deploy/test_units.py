"""The systemd units say what the documentation promises."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from core.cli.app import root
from core.config.settings import TmuxSettings
from core.lifecycle.ending import END_SECONDS
from core.service.hosting import UNIT
from core.service.service import STOP_SECONDS
from core.tmux import server

FOLDER = Path(__file__).parents[3] / "deploy" / "systemd"
UNITS = (UNIT, server.UNIT)


def unit(name: str) -> configparser.ConfigParser:
    """Return the unit's sections; of a key that is given several times the last value."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((FOLDER / name).read_text())
    return parser


def test_the_units_are_those_that_the_product_asks_for() -> None:
    """Their names stand in the code, too."""
    assert {path.name for path in FOLDER.iterdir()} == set(UNITS)


def test_what_ends_the_service_ends_no_agent() -> None:
    """The tmux server is in a unit of its own, which the service's end does not touch."""
    service, tmux = unit(UNIT), unit(server.UNIT)

    assert service["Service"]["KillMode"] == "process"
    assert server.UNIT in service["Unit"]["Wants"].split()
    assert server.UNIT in service["Unit"]["After"].split()
    for coupling in ("Requires", "BindsTo", "PartOf", "Requisite"):
        assert coupling not in service["Unit"]
        assert coupling not in tmux["Unit"]


def test_one_agents_end_ends_no_other() -> None:
    """An agent that is killed for want of memory does not take the unit with it."""
    assert unit(server.UNIT)["Service"]["OOMPolicy"] == "continue"


def test_systemd_waits_as_long_as_an_end_may_take() -> None:
    """Else it would kill agents within their grace, and a service that is about to end."""
    tmux, service = (float(unit(name)["Service"]["TimeoutStopSec"]) for name in (server.UNIT, UNIT))

    assert tmux == TmuxSettings().harness_kill_grace_seconds + END_SECONDS
    assert service > STOP_SECONDS


def test_nothing_hides_the_socket_or_the_tokens_reach_the_agents() -> None:
    """No private /tmp, and the service's environment file is the service's alone."""
    tmux = (FOLDER / server.UNIT).read_text()

    assert "/the-loop/environment" not in tmux
    for name in UNITS:
        assert "PrivateTmp" not in (FOLDER / name).read_text()
        assert "Environment=LANG=C.UTF-8" in (FOLDER / name).read_text()


def test_the_commands_exist() -> None:
    """What the units run is what the command line knows."""
    assert unit(UNIT)["Service"]["ExecStart"].endswith("/the-loop serve")
    assert unit(server.UNIT)["Service"]["ExecStart"].endswith("/the-loop serve --tmux")
    assert "--tmux" in {name for parameter in root.commands["serve"].params for name in parameter.opts}


@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_them(name: str, tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's own check, where it is installed, finds nothing; each line is a section, a key or a comment."""
    for line in (FOLDER / name).read_text().splitlines():
        assert not line or line[0] in "#[" or "=" in line

    if shutil.which("systemd-analyze") is None:
        return
    program = tmp_path / ".local" / "bin" / "the-loop"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path))  # where other units have their sockets
    files = [str(FOLDER / unit_name) for unit_name in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", *files], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
