"""`the-loop start|stop|restart`: the service as a process, detached or by its systemd unit."""

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from core.base.environment import limit_of
from core.config.loading import load
from core.process.control import ask
from core.process.presence import running_service
from core.service import hosting
from core.service.wiring import build_system
from tests.support.product import DEBUGGABLE, NAME, PROGRAM, Product, end
from tests.support.tmux import PATIENCE, PrivateTmux, alive, launcher, private_tmux, wait_until
from tests.support.trees import lay_traps
from tests.support.world import ACTOR, World

UNIT = "the-loop.service"
TMUX_UNIT = "the-loop-tmux.service"
#: Stands for systemd: a unit that is there if `unit` is, whose start runs the service and whose stop ends it.
SYSTEMCTL = """\
#!/bin/sh
cd {folder} || exit 1
echo "$*" >>calls
[ "$1" = --user ] && shift
case "$1" in
  cat) [ -e unit ] && [ "$2" = the-loop.service ] ;;
  show) cat main-pid ;;
  start) {program} serve </dev/null >unit-log 2>&1 & echo $! >main-pid ;;
  stop) kill "$(cat main-pid)" ;;
  *) exit 1 ;;
esac
"""


def systemd(alone: Product, *, installed: bool) -> tuple[Path, dict[str, str]]:
    """Put a `systemctl` on PATH, and return its folder and the environment that finds it."""
    folder = alone.folder / "systemd"
    folder.mkdir()
    if installed:
        (folder / "unit").touch()
    script = folder / "systemctl"
    program = Path(alone.environ()["PATH"].split(os.pathsep)[0]) / "the-loop"
    script.write_text(SYSTEMCTL.format(folder=folder, program=program))
    script.chmod(0o755)
    return folder, {**alone.environ(), "PATH": f"{folder}{os.pathsep}{alone.environ()['PATH']}"}


def at_default_place(alone: Product) -> None:
    """Make the product's configuration the one that is read where nobody names another."""
    default = Path(alone.environ()["HOME"]) / ".config" / "the-loop" / "cli-config.yaml"
    default.parent.mkdir(parents=True)
    default.write_text(yaml.safe_dump(alone.document()))


def test_start_brings_up_a_service_that_outlives_it(alone: Product) -> None:
    """The service runs detached, its sweep is waited for, and its rows are printed."""
    started = alone.cli("start", "--json")

    service = started.services["service"]
    [row] = started.json["standingSessions"]
    assert (started.code, started.json["ok"]) == (0, True)
    assert (row["name"], row["outcome"], row["live"]) == (NAME, "started", "live")
    assert (service["running"], alive(service["pid"])) == (True, True)
    assert started.services["http"]["running"] is True
    assert os.getsid(service["pid"]) == service["pid"]
    assert alone.paths.service_log.stat().st_mode & 0o777 == 0o600


def test_a_detached_service_runs_nothing_that_lies_in_its_folder(alone: Product) -> None:
    """Agents may write to the state folder, in which it works; it knows the tokens, and they do not."""
    alone.paths.local.mkdir(parents=True, mode=0o700)
    mark = lay_traps(alone.paths.local, "core.__init__", "bot.__init__", "json", "argparse")

    started = alone.cli("start")

    assert started.code == 0, started.err
    assert not mark.exists()


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows."""
    with private_tmux() as server:
        yield server


@pytest.mark.long
def test_a_log_that_has_grown_is_put_aside_by_the_service_that_writes_to_it(alone: Product) -> None:
    """One that was started detached for the last time long ago does not fill the disk."""
    log = alone.paths.service_log
    alone.cli("start")
    alone.cli("stop")
    with log.open("ab") as stream:
        stream.truncate(64 * 1024 * 1024)

    service = alone.cli("start", "--json", env=DEBUGGABLE).services["service"]

    aside = log.with_name("service.log.1")
    assert aside.stat().st_size >= 64 * 1024 * 1024
    assert log.stat().st_size < 1024 * 1024
    assert [path.stat().st_mode & 0o777 for path in (log, aside)] == [0o600, 0o600]
    assert all(Path(f"/proc/{service['pid']}/fd/{number}").samefile(log) for number in (1, 2))


@contextmanager
def limited_as(instance: str) -> Iterator[None]:
    """Give what is started in the block the limit that processes of the instance carry."""
    locks = 10
    soft, hard = resource.getrlimit(locks)
    resource.setrlimit(locks, (limit_of(instance), hard))
    try:
        yield
    finally:
        resource.setrlimit(locks, (soft, hard))


def test_a_service_that_is_started_inside_of_a_pane_is_no_part_of_its_agent(alone: Product) -> None:
    """An operator may type the start there: the service comes up, and outlives a stop of that session."""
    alone.cli("standing", "start", NAME)
    instance = alone.record()["instanceId"]

    with limited_as(instance):
        started = alone.cli("--as-operator", "start", "--json", env={"THE_LOOP_INSTANCE": instance})
    stopped = alone.cli("standing", "stop", NAME, "--json")

    service = started.services["service"]
    assert (started.code, service["running"]) == (0, True)
    assert stopped.row["outcome"] == "stopped"
    assert running_service(alone.paths.service_lock) == service["pid"]


def test_a_service_carries_no_agents_mark_from_its_first_moment(
    private: PrivateTmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that a start runs detached has neither the variable nor the limit of the pane that it began in."""
    system = World(tmp_path, private.server.socket_name, private.folder, enabled=False).system()
    system = replace(system, environ={**system.environ, "THE_LOOP_INSTANCE": "i-outer"})
    seen = tmp_path / "seen"
    stand_in = launcher(tmp_path / "service", f"cat /proc/$$/limits /proc/$$/environ >{seen}; exit 3")
    monkeypatch.setattr(sys, "executable", str(stand_in))

    with limited_as("i-outer"):
        hosting.start(system, ACTOR, lambda _: None)

    assert str(limit_of("i-outer")) not in seen.read_text()
    assert "i-outer" not in seen.read_text()
    assert "Max file locks" in seen.read_text()


def test_a_restart_that_is_typed_inside_of_a_pane_outlives_it(alone: Product) -> None:
    """It ends the very terminal that it runs in, and goes on: the session is up again, and so is a new service."""
    go = alone.config.with_name("go")
    command = f"{PROGRAM} --config {alone.config} --as-operator restart"
    script = f"echo reading; until [ -e {go} ]; do sleep 0.05; done; rm {go}; {command}; cat"
    shell = {"start": ["/bin/sh", "-c", script], "ready": "reading"}
    sessions = [{"name": NAME, "harness": "shell"}, {"name": "zed", "prompt": "Wait."}]
    alone.configure(harnesses={"shell": shell}, standingSessions={"enabled": True, "sessions": sessions})
    before = alone.cli("start", "--json").services["service"]["pid"]
    panes = alone.panes()

    go.touch()

    wait_until(lambda: running_service(alone.paths.service_lock) not in (before, None), "a new service runs")
    wait_until(lambda: alone.panes().keys() == panes.keys(), "both are up again")
    assert not set(alone.panes().values()) & set(panes.values())


def test_start_returns_when_all_of_it_is_up(talking: Product) -> None:
    """What it connects to has had its moment, so that a status right behind it is well."""
    started = talking.cli("start", "--json")
    status = talking.cli("status", "--json")

    assert (started.code, status.code) == (0, 0), status.out
    assert started.services["slack"]["running"] is True


def test_a_second_start_says_already_running(alone: Product) -> None:
    """It makes neither a second service nor a second pane."""
    first = alone.cli("start", "--json")
    pane = alone.panes()

    second = alone.cli("start", "--json")

    assert (second.code, second.json["standingSessions"][0]["outcome"]) == (0, "already-running")
    assert second.services["service"] == first.services["service"]
    assert alone.panes() == pane


def test_stop_ends_the_sessions_and_then_the_service(alone: Product) -> None:
    """The order is the sessions first, while the service they may be talking to is up."""
    service = alone.cli("start", "--json").services["service"]

    stopped = alone.cli("stop", "--json")

    order = [event["event"] for event in alone.events("standing.stopped", "service.stopped")]
    assert (stopped.code, stopped.json["ok"]) == (0, True)
    assert order == ["standing.stopped", "service.stopped"]
    wait_until(lambda: not alive(service["pid"]), "the service's process is gone")
    assert alone.panes() == {}
    assert alone.record()["hold"] is None


def test_a_stop_where_nothing_runs_is_well(alone: Product) -> None:
    """Nothing to do is no failure, and it makes no database."""
    stopped = alone.cli("stop", "--json")

    assert (stopped.code, stopped.json["ok"]) == (0, True)
    assert not alone.paths.database.exists()


def test_restart_makes_a_new_service_and_resumes(alone: Product) -> None:
    """Another process serves, and the conversation is the same."""
    before = alone.cli("start", "--json").services["service"]
    conversation = alone.record()["harnessSessionId"]

    again = alone.cli("restart", "--json")

    after = again.services["service"]
    assert (again.code, again.json["standingSessions"][0]["outcome"]) == (0, "resumed")
    assert after["pid"] != before["pid"]
    wait_until(lambda: not alive(before["pid"]), "the first service's process is gone")
    assert alone.record()["harnessSessionId"] == conversation


@pytest.mark.long
def test_restart_takes_nobody_down_whom_no_boot_would_start(alone: Product) -> None:
    """With the file that `config init` writes: what was created comes back, and so does what was started by name."""
    alone.configure(standingSessions={"enabled": False, "sessions": [{"name": NAME, "prompt": "Look after it."}]})
    alone.cli("start")
    alone.cli("standing", "create", "worker", "--prompt", "x")
    alone.cli("standing", "create", "odd", "--prompt", "x", "--no-auto-start")
    alone.cli("standing", "start", NAME)
    alone.cli("standing", "create", "idle", "--prompt", "x", "--no-start", "--no-auto-start")

    again = alone.cli("restart", "--json")

    rows = {row["name"]: row["outcome"] for row in again.json["standingSessions"]}
    assert (again.code, again.json["ok"]) == (0, True)
    assert rows == {"idle": "not-running", "odd": "resumed", NAME: "resumed", "worker": "resumed"}
    assert set(alone.panes()) == {"odd", NAME, "worker"}
    alone.cli("stop")
    started = alone.cli("start", "--json")
    details = {row["name"]: row["detail"] for row in started.json["standingSessions"]}
    assert set(alone.panes()) == {"worker"}
    assert "standingSessions.enabled is false" in details[NAME]
    assert "its autoStart is false" in details["odd"]


def test_restart_goes_on_where_one_session_would_not_end(alone: Product) -> None:
    """Its row says why and the answer is not ok; the others, and the service, are up again."""
    sessions = [{"name": name, "prompt": "x"} for name in (NAME, "zed")]
    alone.configure(standingSessions={"enabled": True, "sessions": sessions})
    before = alone.cli("start", "--json").services["service"]
    (alone.paths.records / "zed.json").write_text("{")

    again = alone.cli("restart", "--json")

    rows = {row["name"]: row for row in again.json["standingSessions"]}
    assert (again.code, again.json["ok"]) == (1, False)
    assert {name: row["outcome"] for name, row in rows.items()} == {NAME: "resumed", "zed": "unreadable"}
    assert "zed.json" in rows["zed"]["detail"]
    assert again.services["service"]["running"] is True
    assert again.services["service"]["pid"] != before["pid"]


def test_restart_starts_what_it_ended_where_the_service_would_not_end(
    alone: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the service that lives, whose row says that it is not a new one."""
    before = alone.cli("start", "--json").services["service"]
    monkeypatch.setattr(hosting, "_DOWN_SECONDS", 0.0)
    system = build_system(load(alone.config, alone.environ()), alone.environ())

    os.kill(before["pid"], signal.SIGSTOP)
    try:
        report = hosting.restart(system, ACTOR, lambda _: None)
    finally:
        os.kill(before["pid"], signal.SIGCONT)

    [service] = [row for row in report["services"] if row["name"] == "service"]
    assert [row["outcome"] for row in report["standingSessions"]] == ["resumed"]
    assert (service["running"], service["pid"], report["ok"]) == (True, before["pid"], False)
    assert "did not end" in service["detail"]


def test_a_session_stopped_by_name_stays_silent_over_a_restart(alone: Product) -> None:
    """Its mark outlives the service; the sweep's row says held, and status is well."""
    alone.cli("start")
    alone.cli("standing", "stop", NAME)

    again = alone.cli("restart", "--json")

    assert again.json["standingSessions"][0]["outcome"] == "held"
    wait_until(lambda: alone.cli("status").code == 0, "all is as a boot would have it")
    assert alone.panes() == {}


def test_a_service_that_cannot_start_leaves_the_sweep_to_the_command(alone: Product) -> None:
    """The sessions come up without it, and the answer says so and is not ok."""
    alone.paths.local.mkdir(parents=True, mode=0o700)
    alone.paths.service_socket.mkdir()

    started = alone.cli("start", "--json", seconds=90)

    assert started.code == 1
    assert started.json["ok"] is False
    assert started.json["standingSessions"][0]["outcome"] == "started"
    assert "service" in started.err
    assert str(alone.paths.service_log) in started.err


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["a folder", "a FIFO"])
def test_what_stands_where_the_log_belongs_is_named(alone: Product, make: Callable[[Path], None]) -> None:
    """Nothing waits for it; the sessions come up without a service, and the answer says what to move away."""
    alone.paths.local.mkdir(parents=True, mode=0o700)
    make(alone.paths.service_log)

    started = alone.cli("start", "--json", seconds=60)

    assert started.code == 1
    assert started.json["standingSessions"][0]["outcome"] == "started"
    assert f"{alone.paths.service_log}: cannot open the service's log" in started.err
    assert "Traceback" not in started.err


def test_the_installed_unit_is_used_for_the_default_configuration(alone: Product) -> None:
    """Where a unit is installed it is what starts and ends the service."""
    folder, environ = systemd(alone, installed=True)
    at_default_place(alone)

    started = alone.program(("start", "--json"), env=environ)
    pid = running_service(alone.paths.service_lock)
    stopped = alone.program(("stop", "--json"), env=environ)

    calls = (folder / "calls").read_text().splitlines()
    assert started.code == 0, started.err
    assert pid == int((folder / "main-pid").read_text())
    assert f"--user start {UNIT}" in calls
    assert f"--user stop {UNIT} --no-block" in calls
    assert stopped.code == 0
    assert alone.panes() == {}


def test_another_configuration_does_not_touch_the_unit(alone: Product) -> None:
    """With --config the service is a process of its own: the unit serves the default one."""
    folder, environ = systemd(alone, installed=True)

    started = alone.cli("start", "--json", env=environ)
    stopped = alone.cli("stop", "--json", env=environ)

    calls = (folder / "calls").read_text() if (folder / "calls").exists() else ""
    assert (started.code, stopped.code) == (0, 0)
    assert "start" not in calls
    assert "stop" not in calls


def test_without_a_unit_the_service_is_detached(alone: Product) -> None:
    """systemd is asked whether it knows the units, and no more."""
    folder, environ = systemd(alone, installed=False)
    at_default_place(alone)

    started = alone.program(("start", "--json"), env=environ)
    stopped = alone.program(("stop", "--json"), env=environ)

    calls = set((folder / "calls").read_text().splitlines())
    assert (started.code, stopped.code) == (0, 0)
    assert calls == {f"--user cat {UNIT}", f"--user cat {TMUX_UNIT}"}


def test_a_second_service_is_refused_and_names_the_first(alone: Product) -> None:
    """One service a state root; the refusal carries its pid and the remedy, and changes nothing."""
    first = alone.serve()

    second = alone.cli("serve")

    assert second.code == 1
    assert f"pid {first.pid}" in second.err
    assert " stop` ends it" in second.err
    assert alone.answers(first.pid)


def test_sigterm_during_the_sweep_ends_within_seconds(alone: Product) -> None:
    """A service that is told to end while it starts a session ends all the same, with 0."""
    service = alone.serve()

    code = service.stop()

    assert code == 0
    assert running_service(alone.paths.service_lock) is None
    assert not alone.paths.service_socket.exists()


def test_ctrl_c_ends_the_service_as_sigterm_does(alone: Product) -> None:
    """SIGINT is an orderly end."""
    service = alone.serve().wait_swept()

    code = service.stop(signal.SIGINT)

    assert code == 0
    assert "Traceback" not in service.output()
    assert NAME in alone.panes()


def test_the_control_socket_answers_while_a_client_says_nothing(alone: Product) -> None:
    """Whoever connects and is silent holds up nobody."""
    service = alone.serve().wait_swept()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(alone.paths.service_socket))

        answer = ask(alone.paths.service_socket, "ping", PATIENCE)

    assert answer == {"pid": service.pid}


def test_status_tells_a_service_that_does_not_answer_from_none(alone: Product) -> None:
    """A frozen service runs and does not answer: not well, and not "not running"."""
    service = alone.serve().wait_swept()
    os.kill(service.pid, signal.SIGSTOP)
    try:
        status = alone.cli("status", "--json")
    finally:
        os.kill(service.pid, signal.SIGCONT)

    row = status.services["service"]
    assert row["pid"] == service.pid
    assert "does not answer" in row["detail"]


@pytest.mark.long
def test_a_state_root_with_a_long_path_is_served(alone: Product) -> None:
    """The address of a Unix socket is short; the state root's path need not be."""
    root = alone.folder / ("a-long-folder-name-" * 6) / ("another-" * 8)
    document = alone.document()
    document["state"]["root"] = str(root)
    alone.configure(yaml.safe_dump(document))
    alone.paths = type(alone.paths)(root)

    started = alone.cli("start", "--json")
    status = alone.cli("status", "--json")
    stopped = alone.cli("stop", "--json")

    assert (started.code, stopped.code) == (0, 0), started.err
    assert status.services["service"]["running"] is True


def test_a_service_that_was_killed_leaves_no_lie(alone: Product) -> None:
    """After kill -9 status says not running, and the next start works although the socket's file is there."""
    service = alone.serve().wait_swept()
    end(service.pid, signal.SIGKILL)
    wait_until(lambda: running_service(alone.paths.service_lock) is None, "the lock is free")

    down = alone.cli("status", "--json")
    again = alone.cli("start", "--json")

    assert (down.code, down.services["service"]["running"]) == (1, False)
    assert (again.code, again.json["standingSessions"][0]["outcome"]) == (0, "already-running")


def test_a_start_over_a_database_that_cannot_be_used_says_so(alone: Product) -> None:
    """Its sessions live and are adopted; nothing that is said to them would be kept."""
    alone.serve().wait_swept().kill()
    for beside in alone.paths.local.glob("the-loop.db*"):
        beside.unlink()
    alone.paths.database.write_bytes(b"no database" * 1000)

    started = alone.cli("start", "--json")

    assert (started.code, started.json["ok"]) == (1, False)
    assert "damaged" in started.services["database"]["detail"]


def test_a_channel_that_is_misconfigured_is_told_at_once(talking: Product) -> None:
    """The service cannot run; start says so without waiting for it, and the sessions come up."""
    talking.configure(channels={"slack": talking.slack_block(chanel="C1")})

    started = talking.cli("start", "--json")

    assert started.code == 1
    assert "the service ended at once" in started.err  # it was not waited for until its time was over
    assert [row["outcome"] for row in started.json["standingSessions"]] in (["started"], ["misconfigured"])
    assert "chanel" in started.err + started.out + talking.paths.service_log.read_text()
