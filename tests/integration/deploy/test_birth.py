"""Who starts the tmux server, where its socket is, and that everybody finds it."""

import shlex
import signal
from pathlib import Path

from core.process.presence import running_service
from tests.integration.deploy.conftest import TMUX_UNIT, Machine
from tests.support.product import NAME, end
from tests.support.tmux import wait_until


def pane_of(machine: Machine) -> str:
    """Return the pid of the session's pane."""
    return machine.tmux("list-panes", "-s", "-t", f"=loop-standing-{NAME}:", "-F", "#{pane_pid}")


def test_the_installed_unit_starts_the_server(machine: Machine) -> None:
    """The pane lives in the unit's process, on the socket that attach names; nobody starts a second server."""
    (machine.folder / "units" / TMUX_UNIT).touch()

    started = machine.run("standing", "start", NAME, "--json")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert machine.server() == int((machine.folder / "main-pid").read_text())
    assert machine.calls() == [f"systemctl --user cat {TMUX_UNIT}", f"systemctl --user start {TMUX_UNIT}"]
    assert shlex.split(started.row["attach"])[:3] == ["tmux", "-S", str(machine.socket)]
    assert machine.tmux("list-sessions", "-F", "#{session_name}") == f"loop-standing-{NAME}"


def test_the_units_server_is_clean(machine: Machine) -> None:
    """No secret and no mark of an agent is in what panes inherit; our configuration is read."""
    (machine.folder / "units" / TMUX_UNIT).touch()

    machine.run("standing", "start", NAME, THE_LOOP_API_TOKEN="secret-of-the-operator", TMUX="/tmp/other,1,0")

    environ = machine.tmux("show-environment", "-g")
    assert "secret-of-the-operator" not in environ
    assert "THE_LOOP_API_TOKEN" not in environ
    assert machine.tmux("show-options", "-gv", "history-limit") == "10000"
    assert machine.tmux("show-options", "-sv", "exit-empty") == "off"
    assert "secret-of-the-operator" not in (machine.folder / "unit-environment").read_text()


def test_without_a_unit_the_server_gets_a_scope(machine: Machine) -> None:
    """systemd-run puts it outside of the cgroup of whoever asked."""
    started = machine.run("standing", "start", NAME, "--json")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert machine.calls()[0] == f"systemctl --user cat {TMUX_UNIT}"
    assert machine.calls()[1].startswith("systemd-run --user --scope ")
    assert machine.calls()[1].endswith(" start-server")
    assert (machine.folder / "scope").exists()
    assert machine.server() is not None


def test_without_any_systemd_it_is_started_all_the_same(machine: Machine) -> None:
    """Neither unit nor scope: plainly, by the first client."""
    (machine.folder / "no-scopes").touch()

    started = machine.run("standing", "start", NAME, "--json")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert machine.server() is not None


def test_a_unit_that_does_not_start_costs_no_session(machine: Machine) -> None:
    """The scope is next."""
    (machine.folder / "units" / TMUX_UNIT).touch()
    (machine.folder / "broken").touch()

    started = machine.run("standing", "start", NAME, "--json")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert (machine.folder / "scope").exists()


def test_another_configuration_does_not_touch_the_unit(machine: Machine) -> None:
    """The unit serves the default one."""
    (machine.folder / "units" / TMUX_UNIT).touch()

    started = machine.run("--config", str(machine.product.config), "standing", "start", NAME, "--json")

    assert (started.code, started.row["outcome"]) == (0, "started")
    assert not any("systemctl" in call for call in machine.calls())


def test_a_server_that_lives_is_left_as_it_is(machine: Machine) -> None:
    """A second start asks systemd nothing."""
    machine.run("standing", "start", NAME)
    server, calls = machine.server(), machine.calls()

    again = machine.run("standing", "restart", NAME, "--json")

    assert again.row["outcome"] == "resumed"
    assert (machine.server(), machine.calls()) == (server, calls)


def test_the_unit_refuses_to_stand_beside_a_server_that_lives(machine: Machine) -> None:
    """It says where that is and how it could take over, and changes nothing."""
    machine.run("standing", "start", NAME)
    server = machine.server()

    refused = machine.run("serve", "--tmux")

    assert refused.code == 1
    assert str(machine.socket) in refused.err
    assert f"process {server}" in refused.err
    assert "kill-server" in refused.err
    assert machine.server() == server


def test_killing_the_service_ends_no_agent(machine: Machine) -> None:
    """kill -9 and a new one: the same server, the same pane."""
    (machine.folder / "units" / TMUX_UNIT).touch()
    machine.run("start")
    pid = running_service(machine.product.paths.service_lock)
    server, pane = machine.server(), pane_of(machine)
    assert pid is not None

    end(pid, signal.SIGKILL)
    again = machine.run("start", "--json")

    assert again.json["standingSessions"][0]["outcome"] == "already-running"
    assert (machine.server(), pane_of(machine)) == (server, pane)


def test_a_server_from_an_earlier_place_is_not_lost(machine: Machine) -> None:
    """It is found, steered and attached to where it is; the next one is made at the new place."""
    old = machine.product.folder / "tmux"
    machine.run("standing", "start", NAME, TMUX_TMPDIR=str(old))
    [socket] = list(old.rglob(machine.product.socket))
    first = machine.server(socket)

    listed = machine.run("standing", "get", NAME, "--json")
    said = machine.run("standing", "say", NAME, "--text", "still there?", "--json")
    stopped = machine.run("standing", "stop", NAME, "--json")

    assert (listed.json["live"], said.json["state"]) == ("live", "confirmed")
    assert shlex.split(listed.json["attach"])[:3] == ["tmux", "-S", str(socket)]
    assert stopped.row["outcome"] == "stopped"
    assert machine.server() is None
    assert first is not None
    end(first)
    again = machine.run("standing", "start", NAME, "--json")
    assert again.row["outcome"] == "resumed"
    assert machine.server() is not None


def test_another_environment_finds_the_server_that_lives(machine: Machine) -> None:
    """A shell with a $TMUX_TMPDIR of its own sees the session that one without has started."""
    machine.run("standing", "start", NAME)

    listed = machine.run("standing", "get", NAME, "--json", TMUX_TMPDIR=str(machine.product.folder / "tmux"))

    assert listed.json["live"] == "live"
    assert str(machine.socket) in listed.json["attach"]


def test_the_sockets_name_works_as_given_to_tmux(machine: Machine) -> None:
    """`TMUX_TMPDIR=STATE/local/tmux tmux -L NAME` is the same server."""
    machine.run("standing", "start", NAME)

    socket = Path(machine.tmux("display-message", "-p", "#{socket_path}"))

    assert socket == machine.socket
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.parent.name.startswith("tmux-")
    wait_until(lambda: machine.server() is not None, "it answers")
