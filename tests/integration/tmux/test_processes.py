"""Ending real process trees in real panes."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.names import new_instance
from core.model.session import LastExit
from core.tmux.handles import Descent, PsutilTable, process_table
from core.tmux.processes import Processes
from core.tmux.runner import Runner
from tests.support.tmux import PATIENCE, PrivateTmux, alive, launcher, private_tmux, wait_until

Strangers = tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]


@pytest.fixture(params=["own", "psutil"])
def processes(request: pytest.FixtureRequest) -> Iterator[Processes]:
    """Give the processes of this machine, by each way of looking at them."""
    local = Processes(process_table() if request.param == "own" else PsutilTable())
    yield local
    local.close()


@pytest.fixture
def without_pidfds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take pidfds away, as on macOS."""
    monkeypatch.delattr(os, "pidfd_open")


@pytest.fixture
def strangers() -> Iterator[Strangers]:
    """Give two processes that belong to nobody's instance."""
    with subprocess.Popen(["sleep", "60"]) as first, subprocess.Popen(["sleep", "60"]) as second:
        yield first, second
        first.kill()
        second.kill()


def _pid_in(path: Path) -> int:
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} is written")
    return int(path.read_text())


def _children_of(pid: int) -> list[int]:
    return [info.pid for info in Descent(process_table().all()).of(pid)]


_STUBBORN = "trap '' TERM HUP INT"


def test_tree_ends_with_all_its_kinds(
    private: PrivateTmux, runner: Runner, processes: Processes, strangers: Strangers
) -> None:
    """The harness, a child, one in a session of its own that ignores signals, and an orphan end; a stranger stays."""
    folder = private.folder
    stubborn = launcher(folder / "stubborn", f"{_STUBBORN}; echo $$ > {folder}/$1; while :; do sleep 1; done")
    body = (
        f"setsid {stubborn} own & (setsid {stubborn} orphan &) ; {stubborn} child & echo $$ > {folder}/first; "
        "while :; do sleep 1; done"
    )
    pane = private.spawn(runner, launcher(folder / "launch", body))
    pids = [_pid_in(folder / name) for name in ("own", "orphan", "child", "first")]

    ended = processes.end_trees({pane.tag: pane.pid}, 0.5)[pane.tag]

    assert ended.survivors == ()
    assert ended.killed >= 3
    assert [pid for pid in pids if alive(pid)] == []
    assert processes.marked(pane.tag) == ()
    assert strangers[0].poll() is None
    assert alive(private.pid())


def test_polite_harness_is_not_killed(private: PrivateTmux, runner: Runner, processes: Processes) -> None:
    """A harness that ends by itself within the grace is only asked, and what it does at its end is done."""
    note = private.folder / "note"
    body = f"trap 'echo bye > {note}; exit 3' TERM; echo $$ > {private.folder}/first; while :; do sleep 0.1; done"
    pane = private.spawn(runner, launcher(private.folder / "launch", body))
    _pid_in(private.folder / "first")

    ended = processes.end_trees({pane.tag: pane.pid}, 5.0)[pane.tag]

    assert (ended.killed, ended.survivors) == (0, ())
    assert note.read_text() == "bye\n"
    wait_until(lambda: runner.survey().panes[0].exit == LastExit(3, None), "tmux tells the exit")


def test_trees_are_ended_together(private: PrivateTmux, runner: Runner, processes: Processes) -> None:
    """All harnesses are asked before any is waited for: each of these ends only once every one was asked."""
    asked = private.folder / "asked"
    asked.mkdir()
    body = (
        f"trap 'touch {asked}/$$; while [ $(ls {asked} | wc -l) -lt 3 ]; do sleep 0.05; done; exit 5' TERM; "
        f"echo $$ > {private.folder}/$1; while :; do sleep 0.05; done"
    )
    program = launcher(private.folder / "program", body)
    names = ("a", "b", "c")
    launches = {name: launcher(private.folder / f"launch-{name}", f"exec {program} {name}") for name in names}
    panes = [private.spawn(runner, launch, target=name) for name, launch in launches.items()]
    for name in names:
        _pid_in(private.folder / name)

    ended = processes.end_trees({panes[0].tag: panes[0].pid, panes[1].tag: None, panes[2].tag: panes[2].pid}, PATIENCE)

    assert {tree.killed for tree in ended.values()} == {0}
    assert {tree.lived for tree in ended.values()} == {True}
    assert [pane.pid for pane in panes if alive(pane.pid)] == []


def test_parent_that_ignores_its_signal_ends_with_its_child(
    private: PrivateTmux, runner: Runner, processes: Processes
) -> None:
    """Every process of the pane's session is asked: a wrapper that ignores SIGTERM ends once its child has."""
    child = launcher(private.folder / "child", "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    body = f"{_STUBBORN}; echo $$ > {private.folder}/first; env --default-signal=TERM {child}; exit 0"
    pane = private.spawn(runner, launcher(private.folder / "launch", body))
    _pid_in(private.folder / "first")
    wait_until(lambda: len(processes.marked(pane.tag)) >= 2, "the child runs")

    ended = processes.end_trees({pane.tag: pane.pid}, 5.0)[pane.tag]

    assert (ended.killed, ended.survivors) == (0, ())


def test_tree_ends_while_tmux_is_frozen(private: PrivateTmux, runner: Runner, processes: Processes) -> None:
    """Ending asks nothing of tmux: with a stopped server, and not even a pid, the marked processes end."""
    pane, _ = private.reading(runner)

    with private.frozen():
        ended = processes.end_trees({pane.tag: None}, 2.0)[pane.tag]

    assert ended.survivors == ()
    assert not alive(pane.pid)


def test_exit_is_read_while_tmux_does_not_ask_for_it(private: PrivateTmux, runner: Runner) -> None:
    """As long as a stopped tmux leaves the zombie, its status is told."""
    body = f"trap 'exit 9' TERM; echo $$ > {private.folder}/first; while :; do sleep 0.05; done"
    pane = private.spawn(runner, launcher(private.folder / "launch", body))
    _pid_in(private.folder / "first")

    with private.frozen():
        ended = Processes().end_trees({pane.tag: pane.pid}, 5.0)[pane.tag]

    assert ended.exit == LastExit(9, None)


def test_tree_ends_after_tmux_is_gone(private: PrivateTmux, runner: Runner, processes: Processes) -> None:
    """A harness that outlived its tmux server is found by its marker."""
    body = f"{_STUBBORN}; echo $$ > {private.folder}/first; while :; do sleep 0.1; done"
    pane = private.spawn(runner, launcher(private.folder / "launch", body))
    first = _pid_in(private.folder / "first")
    os.kill(private.pid(), signal.SIGKILL)

    ended = processes.end_trees({pane.tag: pane.pid}, 0.3)[pane.tag]

    assert (ended.killed, ended.survivors) == (1, ())
    assert not alive(first)


def test_pid_of_another_is_not_touched(
    private: PrivateTmux, runner: Runner, processes: Processes, strangers: Strangers
) -> None:
    """A remembered pid that belongs to another pane or to a stranger by now is left alone."""
    other = private.spawn(runner, Path("/bin/cat"))

    of_pane = processes.end_trees({new_instance(): other.pid}, 0.2)
    of_stranger = processes.end_trees({new_instance(): strangers[0].pid}, 0.2)
    of_ourselves = processes.end_trees({new_instance(): os.getpid()}, 0.2)

    assert [tree.killed for of in (of_pane, of_stranger, of_ourselves) for tree in of.values()] == [0, 0, 0]
    assert alive(other.pid)
    assert strangers[0].poll() is None


def test_program_that_hides_its_environment_is_ended(
    private: PrivateTmux, runner: Runner, processes: Processes
) -> None:
    """The pane's own process is known as tmux's child where its environment shows no marker."""
    body = f"exec env -i /bin/sh -c 'echo $$ > {private.folder}/first; while :; do sleep 0.05; done'"
    pane = private.spawn(runner, launcher(private.folder / "launch", body))
    first = _pid_in(private.folder / "first")

    ended = processes.end_trees({pane.tag: pane.pid}, 2.0)[pane.tag]

    assert ended.survivors == ()
    assert not alive(first)


def test_orphan_in_a_session_of_its_own_without_our_environment_is_ended(
    private: PrivateTmux, runner: Runner, strangers: Strangers
) -> None:
    """What left the tree, the terminal session and the environment long before the end still ends with the instance."""
    folder = private.folder
    orphan = launcher(
        folder / "orphan", f"{_STUBBORN}; echo $$ > {folder}/gone; while [ -e {folder}/launch ]; do sleep 1; done"
    )
    other = private.spawn(runner, Path("/bin/cat"), target="loop-standing-other")
    body = f"setsid -f env -i {orphan}; while :; do sleep 1; done"
    pane = private.spawn(runner, launcher(folder / "launch", body))
    gone = _pid_in(folder / "gone")
    wait_until(lambda: gone not in _children_of(pane.pid), "it descends from the harness no more")

    ended = Processes().end_trees({pane.tag: pane.pid}, 0.3)[pane.tag]

    assert ended.survivors == ()
    assert not alive(gone)
    assert alive(other.pid)
    assert strangers[0].poll() is None


def test_server_that_a_process_of_an_instance_starts_outlives_it(private: PrivateTmux, runner: Runner) -> None:
    """Where an operator starts the-loop inside of a pane, its tmux server and its sessions are nobody's processes."""
    pane = private.spawn(runner, Path("/bin/cat"))
    with private_tmux() as inner:
        program = (
            "import sys\n"
            "from pathlib import Path\n"
            "from core.tmux.server import TmuxServer\n"
            "server = TmuxServer(sys.argv[1], Path(sys.argv[2]))\n"
            "server.write_conf()\n"
            "made = server.process().run([*server.starting(), server.control_session()[0]], 5.0)\n"
            "sys.exit(made.rc)\n"
        )
        words = [sys.executable, "-c", program, inner.server.socket_name, str(inner.server.conf)]
        note = private.folder / "made"
        starter = launcher(private.folder / "starter", f"{shlex.join(words)}; echo $? > {note}; exec sleep 60")
        environ = {"TMUX_TMPDIR": str(inner.folder), "PYTHONPATH": str(Path(__file__).parents[3])}
        outer = private.spawn(runner, starter, target="loop-standing-outer", **environ)
        made = _pid_in(note)

        ended = Processes().end_trees({outer.tag: outer.pid}, 1.0)[outer.tag]

        assert made == 0
        assert ended.survivors == ()
        assert not alive(outer.pid)
        assert alive(inner.pid())
        assert alive(pane.pid)


def test_what_another_user_runs_is_left_alone() -> None:
    """A service that an agent started by sudo carries the limit, too; nobody but that user could end it."""
    instance = new_instance()
    program = (
        "import hashlib, os, resource, subprocess, sys\n"
        "from core.base.environment import limit_of, shed_limit\n"
        "from core.tmux.processes import Processes\n"
        f"resource.setrlimit(10, (limit_of('{instance}'), resource.RLIM_INFINITY))\n"
        "service = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "shed_limit()\n"
        "if os.geteuid() == 0:\n"
        "    os.setresuid(65534, 65534, 0)\n"
        f"ended = Processes().end_trees({{'{instance}': None}}, 0.2)['{instance}']\n"
        "if os.geteuid() == 65534:\n"
        "    os.setresuid(0, 0, 0)\n"
        "print(ended.survivors, service.poll())\n"
        "service.kill()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    left = "None" if os.geteuid() == 0 else str(-signal.SIGTERM)  # only root can be another user here
    assert done.stdout == f"() {left}\n"


def test_caller_that_carries_the_marker_is_spared(processes: Processes) -> None:
    """A process that ends an instance which it belongs to does not end itself, nor its parent."""
    instance = new_instance()
    program = (
        "import subprocess, sys\n"
        "from core.tmux.processes import Processes\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"ended = Processes().end_trees({{'{instance}': None}}, 0.2)['{instance}']\n"
        "print(child.wait(), ended.survivors)\n"
    )

    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; echo parent', "sh", sys.executable, "-c", program],
        env={**os.environ, "THE_LOOP_INSTANCE": instance, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    assert done.stdout == "-15 ()\nparent\n"


def test_end_of_a_process_is_told_once(processes: Processes, strangers: Strangers) -> None:
    """A watch calls back once; a watch that was stopped never does."""
    watched, other = strangers
    told = threading.Event()
    calls: list[str] = []

    def ended() -> None:
        calls.append("watched")
        told.set()

    processes.watch(watched.pid, ended)
    stop = processes.watch(other.pid, lambda: calls.append("other"))
    stop()

    other.kill()
    watched.kill()

    assert told.wait(PATIENCE)
    assert calls == ["watched"]
    assert not processes.alive(watched.pid)


@pytest.mark.parametrize("system", ["with_pidfds", "without_pidfds"])
def test_watches_are_counted_one_by_one(
    processes: Processes, strangers: Strangers, request: pytest.FixtureRequest, system: str
) -> None:
    """Two on one process are two; one that was stopped counts no more, nor one whose process has ended."""
    if system == "without_pidfds":
        request.getfixturevalue(system)
    watched, other = strangers
    stop, told = processes.watch(watched.pid, lambda: None), threading.Event()
    processes.watch(watched.pid, told.set)
    processes.watch(other.pid, lambda: None)
    counts = [processes.watches()]

    stop()
    counts.append(processes.watches())
    watched.kill()

    assert told.wait(PATIENCE)
    assert [*counts, processes.watches()] == [3, 2, 1]


def test_watch_of_a_process_that_is_gone_tells_it(processes: Processes) -> None:
    """Whoever comes too late is told as well."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    told = threading.Event()

    processes.watch(gone.pid, told.set)

    assert told.wait(PATIENCE)


@pytest.mark.usefixtures("without_pidfds")
def test_without_pidfds_the_same_ends_and_is_told(private: PrivateTmux, runner: Runner, processes: Processes) -> None:
    """Where the system has no pidfds, looking takes their place."""
    pane, _ = private.reading(runner)
    told = threading.Event()
    processes.watch(pane.pid, told.set)

    ended = processes.end_trees({pane.tag: pane.pid}, 2.0)[pane.tag]

    assert ended.survivors == ()
    assert told.wait(PATIENCE)
    assert not alive(pane.pid)
