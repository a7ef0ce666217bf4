"""The row of `status` for the tmux server, on a machine where systemd runs."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.lifecycle.start import start_standing
from core.service.hosting import tmux_rows
from core.session.system import System
from tests.support.tmux import PrivateTmux, private_tmux
from tests.support.world import ACTOR, World

USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows."""
    with private_tmux() as server:
        yield server


@pytest.fixture
def system(private: PrivateTmux, tmp_path: Path) -> System:
    """Give the ports of a world that declares `scribe`."""
    world = World(tmp_path / "world", private.server.socket_name, private.folder, declared=("scribe",))
    for folder in (world.folder, world.store, world.cwd):
        folder.mkdir()
    return world.system()


def machine(root: Path, server: int, cgroup: str) -> Path:
    """Make the files by which systemd and a process's cgroup are known."""
    (root / "run/systemd/system").mkdir(parents=True)
    (root / f"proc/{server}").mkdir(parents=True)
    (root / f"proc/{server}/cgroup").write_text(f"0::{cgroup}\n")
    return root


def test_a_server_in_a_login_is_warned_of(system: System, private: PrivateTmux, tmp_path: Path) -> None:
    """The row is up, since it is, and its detail says what would end it and what to do."""
    start_standing(system, "scribe", ACTOR)
    root = machine(tmp_path / "root", private.pid(), "/user.slice/user-1000.slice/session-3.scope")

    (row,) = tmux_rows(system, root)

    assert (row.name, row.running, row.pid) == ("tmux", True, private.pid())
    assert "session-3.scope" in row.detail
    assert "the-loop-tmux.service" in row.detail


def test_a_server_in_its_unit_needs_linger(system: System, private: PrivateTmux, tmp_path: Path) -> None:
    """With linger nothing is said."""
    start_standing(system, "scribe", ACTOR)
    cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/the-loop-tmux.service"
    root = machine(tmp_path / "root", private.pid(), cgroup)

    (without,) = tmux_rows(system, root)
    (root / "var/lib/systemd/linger").mkdir(parents=True)
    (root / "var/lib/systemd/linger" / USER).touch()
    (lingering,) = tmux_rows(system, root)

    assert f"loginctl enable-linger {USER}" in without.detail
    assert lingering.detail == ""


def test_without_systemd_or_without_a_server_there_is_no_row(
    system: System, private: PrivateTmux, tmp_path: Path
) -> None:
    """Nobody ends a cgroup there, and nothing is there to be ended."""
    none_runs = tmux_rows(system, machine(tmp_path / "root", 1, "/init.scope"))
    start_standing(system, "scribe", ACTOR)

    assert none_runs == ()
    assert tmux_rows(system, tmp_path) == ()


def test_a_silent_tmux_is_told_by_the_sessions_not_here(system: System, private: PrivateTmux, tmp_path: Path) -> None:
    """Could not ask is no finding."""
    start_standing(system, "scribe", ACTOR)
    root = machine(tmp_path / "root", private.pid(), "/user.slice/user-1000.slice/session-3.scope")

    with private.frozen():
        rows = tmux_rows(system, root)

    assert rows == ()
