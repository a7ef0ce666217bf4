"""A tmux that cannot be asked: stopped, gone in the middle, unreachable, somebody else's, missing, too old."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base.errors import TmuxMissing, TmuxSilent
from core.base.names import new_instance
from core.model.pane import Receipt, Spawn, Written
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from core.tmux.transport import Transport
from tests.support.tmux import PrivateTmux, alive, launcher, soon, wait_until

_TIMEOUT = 0.6


@pytest.fixture(params=["process", "control"])
def transport(request: pytest.FixtureRequest, private: PrivateTmux) -> Transport:
    """Give each transport."""
    return ControlTransport(private.server) if request.param == "control" else private.server.process()


@pytest.fixture
def impatient(private: PrivateTmux, transport: Transport) -> Runner:
    """Give a runner with a short deadline, for a server that does not answer."""
    return private.runner(transport, timeout=_TIMEOUT)


@pytest.fixture
def patient(private: PrivateTmux, transport: Transport) -> Runner:
    """Give one over the same transport that waits for a server that does."""
    return private.runner(transport)


def _calls(private: PrivateTmux, runner: Runner, instance: str) -> dict[str, Callable[[], object]]:
    spawn = Spawn("late", new_instance(), launcher(private.folder / "late", "exec cat"), private.folder, {}, soon(0.5))
    return {
        "survey": runner.survey,
        "spawn": lambda: runner.spawn(spawn),
        "write": lambda: runner.write(instance, b"lost", Receipt.PASTED, "m-1", soon(1)),
        "typing": lambda: runner.typing(instance),
        "end": lambda: runner.end(instance),
        "screen": lambda: runner.screen(instance, 10),
        "window": lambda: runner.window(instance, history=True),
    }


@pytest.mark.parametrize("call", ["survey", "spawn", "write", "typing", "end", "screen", "window"])
def test_frozen_server_is_silent_in_time(private: PrivateTmux, impatient: Runner, patient: Runner, call: str) -> None:
    """Every call on a stopped server raises within its deadline, the first and the next; nothing is called absent."""
    pane, _ = private.reading(private.runner())
    patient.survey()
    action = _calls(private, impatient, pane.tag)[call]

    with private.frozen():
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(TmuxSilent):
                action()
            assert time.monotonic() - began < 10 * _TIMEOUT  # much less than until the server goes on, which is never

    wait_until(lambda: patient.survey().of_instance(pane.tag) or call == "end", "tmux answers again")


def test_write_into_a_frozen_server_is_refused_when_it_wakes(
    private: PrivateTmux, impatient: Runner, patient: Runner
) -> None:
    """What was sent to a stopped server, and its deadline passed, writes nothing once the server goes on."""
    pane, reader = private.reading(private.runner())
    assert patient.write(pane.tag, b"before", Receipt.PASTED, "m-0", soon()) is Written.DONE
    deadline = soon(1)

    with private.frozen():
        with pytest.raises(TmuxSilent):
            impatient.write(pane.tag, b"lost", Receipt.PASTED, "m-1", deadline)
        wait_until(lambda: datetime.now(UTC) > deadline, "the deadline is over")
    after = patient.write(pane.tag, b"after", Receipt.PASTED, "m-2", soon())

    assert after is Written.DONE
    reader.wait_for(b"beforeafter")
    assert reader.received() == b"beforeafter"
    assert private.tmux("list-buffers") == ""


def test_guard_itself_refuses_a_line_that_slept(private: PrivateTmux) -> None:
    """With a client that waits long enough, the line is run after the server wakes, and the guard says LATE."""
    patient = private.runner(ControlTransport(private.server), timeout=20)
    pane, reader = private.reading(private.runner())
    patient.survey()
    pid = private.pid()
    deadline = soon(1)
    os.kill(pid, signal.SIGSTOP)

    def wake() -> None:
        wait_until(lambda: datetime.now(UTC) > deadline, "the deadline is over")
        os.kill(pid, signal.SIGCONT)

    waker = threading.Thread(target=wake)
    waker.start()
    written = patient.write(pane.tag, b"lost", Receipt.PASTED, "m-1", deadline)
    waker.join()

    assert written is Written.LATE
    assert reader.received() == b""
    assert private.tmux("list-buffers") == ""


def test_spawn_into_a_frozen_server_makes_nothing_after_its_deadline(
    private: PrivateTmux, impatient: Runner, patient: Runner
) -> None:
    """A spawn that nobody waits for any more makes no pane when the server goes on."""
    pane, _ = private.reading(private.runner())
    deadline = soon(1)
    late = Spawn("late", new_instance(), launcher(private.folder / "late", "exec cat"), private.folder, {}, deadline)

    with private.frozen():
        with pytest.raises(TmuxSilent):
            impatient.spawn(late)
        wait_until(lambda: datetime.now(UTC) > deadline, "the deadline is over")

    wait_until(lambda: patient.survey().of_instance(pane.tag), "tmux answers again")
    assert patient.survey().of_target("late") == ()


def test_swept_socket_is_made_again(private: PrivateTmux, runner: Runner) -> None:
    """A server whose socket file was deleted is no absent server: it is told to make it anew."""
    pane, _ = private.reading(runner)
    socket = private.folder / f"tmux-{os.getuid()}" / private.server.socket_name
    socket.unlink()

    survey = runner.survey()

    assert survey.of_instance(pane.tag) is not None
    assert socket.exists()


def test_write_finds_a_swept_socket_again(private: PrivateTmux, runner: Runner) -> None:
    """A write to a server whose socket file was deleted arrives, once."""
    pane, reader = private.reading(runner)
    (private.folder / f"tmux-{os.getuid()}" / private.server.socket_name).unlink()

    written = runner.write(pane.tag, b"text", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"text")
    assert reader.received() == b"text"


def test_spawn_finds_a_swept_socket_again(private: PrivateTmux, runner: Runner) -> None:
    """No second server is started beside one whose socket file was deleted."""
    first, _ = private.reading(runner)
    (private.folder / f"tmux-{os.getuid()}" / private.server.socket_name).unlink()

    second, _ = private.reading(runner, target="second")

    assert {pane.tag for pane in runner.survey().panes} == {first.tag, second.tag}


def test_swept_socket_of_a_frozen_server_is_silence(private: PrivateTmux) -> None:
    """A server that lives, and that can neither be reached nor make its socket anew, is not called absent."""
    runner, patient = private.runner(timeout=_TIMEOUT), private.runner()
    private.reading(patient)
    socket = private.folder / f"tmux-{os.getuid()}" / private.server.socket_name

    with private.frozen():
        socket.unlink()
        with pytest.raises(TmuxSilent, match=r"lives, but its socket .* is gone"):
            runner.survey()

    wait_until(lambda: patient.survey().panes, "the socket is back")


def test_server_that_ended_is_an_empty_survey(private: PrivateTmux, patient: Runner) -> None:
    """After the server's end there is nothing, for both transports, and a spawn starts a new one."""
    private.reading(patient)
    server = private.pid()
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not alive(server), "the server is gone")

    survey = patient.survey()

    assert survey.panes == ()
    pane, _ = private.reading(patient)
    assert patient.survey().of_instance(pane.tag) is not None


def test_somebody_elses_socket_folder_is_silence(private: PrivateTmux, runner: Runner) -> None:
    """A socket folder that tmux takes for unsafe could not be asked: that is not an absent server."""
    folder = private.folder / f"tmux-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(TmuxSilent, match="unsafe permissions"):
        runner.survey()


def test_missing_tmux_is_told(private: PrivateTmux) -> None:
    """Without a tmux program the error names it, and what to do."""
    server = replace(private.server, binary=str(private.folder / "no-tmux"))

    with pytest.raises(TmuxMissing, match=r"no-tmux.*install tmux 3\.2"):
        Runner(server, server.process()).survey()


def test_old_tmux_is_told_before_anything_is_made(private: PrivateTmux) -> None:
    """A tmux that lacks what we need is refused by its version."""
    old = launcher(private.folder / "old-tmux", "echo tmux 3.1c")
    server = replace(private.server, binary=str(old))
    runner = Runner(server, server.process())

    with pytest.raises(TmuxMissing, match=r"3\.1c is too old"):
        runner.spawn(Spawn("x", new_instance(), old, private.folder, {}, soon()))


def test_tmux_that_says_something_else_is_silence(private: PrivateTmux) -> None:
    """An answer that is not understood is no answer, and another user's server is none either."""
    for body, text in (
        ("echo access not allowed >&2", "access not allowed"),
        ("echo lost server >&2; exit 1", "lost server"),
        ("echo 'error connecting to /x (Permission denied)' >&2; exit 1", "Permission denied"),
        ("echo gibberish", "gibberish"),
    ):
        server = replace(private.server, binary=str(launcher(private.folder / "odd-tmux", body)))

        with pytest.raises(TmuxSilent, match=text):
            Runner(server, server.process()).survey()
