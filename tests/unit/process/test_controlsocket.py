"""The service's socket answers questions, each for itself."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import StoreBroken
from core.process.control import ControlSocket, NoAnswer, ask
from tests.support.tmux import PATIENCE, wait_until


@contextmanager
def served(path: Path, **operations: Callable[[], Mapping[str, Any]]) -> Iterator[ControlSocket]:
    """Give a socket that answers."""
    control = ControlSocket(path, {"ping": lambda: {"pid": 7}, **operations})
    stopping = threading.Event()
    control.open()
    thread = threading.Thread(target=control.run, args=(stopping,))
    thread.start()
    try:
        yield control
    finally:
        stopping.set()
        thread.join(5)
        control.close()


def test_a_question_is_answered(tmp_path: Path) -> None:
    """One object in, one out."""
    with served(tmp_path / "s"):
        answer = ask(tmp_path / "s", "ping", 5.0)

    assert answer == {"pid": 7}


def test_the_socket_is_private_and_goes_with_the_service(tmp_path: Path) -> None:
    """0600 while it is served, and removed afterwards."""
    with served(tmp_path / "s"):
        mode = (tmp_path / "s").stat().st_mode & 0o777

    assert mode == 0o600
    assert not (tmp_path / "s").exists()


def test_a_dead_ones_socket_is_replaced(short_path: Path) -> None:
    """What a killed service left does not keep the next one from listening."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(short_path / "s"))

    with served(short_path / "s"):
        answer = ask(short_path / "s", "ping", 5.0)

    assert answer == {"pid": 7}


def test_a_slow_question_holds_up_nobody(tmp_path: Path) -> None:
    """While one waits for the sweep another is answered."""
    go = threading.Event()
    answers: list[Mapping[str, Any]] = []

    def slow() -> Mapping[str, Any]:
        go.wait(10)
        return {"swept": True}

    with served(tmp_path / "s", sweep=slow):
        waiting = threading.Thread(target=lambda: answers.append(ask(tmp_path / "s", "sweep", 10.0)))
        waiting.start()
        quick = ask(tmp_path / "s", "ping", 5.0)
        go.set()
        waiting.join(10)

    assert quick == {"pid": 7}
    assert answers == [{"swept": True}]


def test_callers_who_ask_nothing_keep_nobody_out(short_path: Path) -> None:
    """However many there are: the oldest of them goes, and whoever asks is answered."""
    with served(short_path / "s"), ExitStack() as held:
        first = held.enter_context(_calling(short_path / "s"))
        for _ in range(200):
            held.enter_context(_calling(short_path / "s"))

        answer = ask(short_path / "s", "ping", PATIENCE)
        first.settimeout(PATIENCE)
        end = first.recv(1)

    assert (answer, end) == ({"pid": 7}, b"")


def _calling(path: Path) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(str(path))  # without a time-out it waits for its place in the backlog
    return caller


def test_a_path_too_long_for_the_kernel_is_served(tmp_path: Path) -> None:
    """The address of a Unix socket holds some hundred bytes; the state root's path may be longer."""
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)

    with served(folder / "s"):
        answer = ask(folder / "s", "ping", 5.0)

    assert answer == {"pid": 7}


def test_no_service_is_no_answer(tmp_path: Path) -> None:
    """The error names the question, the path and the log."""
    with pytest.raises(NoAnswer, match="'ping'") as caught:
        ask(tmp_path / "s", "ping", 1.0)

    assert str(tmp_path / "s") in caught.value.message
    assert "service.log" in caught.value.remedy


def test_an_answer_that_does_not_come_has_a_deadline(tmp_path: Path) -> None:
    """Who asks waits no longer than it said."""
    go = threading.Event()

    def slow() -> Mapping[str, Any]:
        go.wait(10)
        return {}

    with served(tmp_path / "s", sweep=slow):
        with pytest.raises(NoAnswer):
            ask(tmp_path / "s", "sweep", 0.1)
        go.set()


def test_a_failure_is_told_to_the_one_who_asked(tmp_path: Path) -> None:
    """An operation that fails answers with its reason, and the socket goes on."""

    def failing() -> Mapping[str, Any]:
        raise StoreBroken("the disk is full", "free some space")

    with served(tmp_path / "s", status=failing):
        with pytest.raises(NoAnswer, match="the disk is full"):
            ask(tmp_path / "s", "status", 5.0)
        after = ask(tmp_path / "s", "ping", 5.0)

    assert after == {"pid": 7}


@pytest.mark.parametrize(
    "request_line",
    [b"", b"\n", b"not json\n", b"[]\n", b'{"op": []}\n', b'{"op": "rm"}\n', b"x" * 9000, b"[" * 100_000 + b"\n"],
)
def test_nonsense_is_answered_with_an_error(short_path: Path, request_line: bytes) -> None:
    """Whatever comes, the next one is served."""
    with served(short_path / "s"), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5.0)
        client.connect(str(short_path / "s"))
        client.sendall(request_line)
        client.shutdown(socket.SHUT_WR)

        answer = json.loads(client.makefile("rb").readline())
        after = ask(short_path / "s", "ping", 5.0)

    assert answer == {"error": "unknown operation"}
    assert after == {"pid": 7}


def test_a_socket_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The path and the remedy."""
    with pytest.raises(StoreBroken, match="cannot listen on") as caught:
        ControlSocket(tmp_path / "missing" / "s", {}).open()

    assert "state.root" in caught.value.remedy


def test_a_folder_in_the_sockets_place_is_told(tmp_path: Path) -> None:
    """What stands there and is no socket is not removed."""
    (tmp_path / "s").mkdir()

    with pytest.raises(StoreBroken, match="cannot listen on"):
        ControlSocket(tmp_path / "s", {}).open()

    assert (tmp_path / "s").is_dir()


def test_what_is_being_answered_is_finished_before_the_end(tmp_path: Path) -> None:
    """The service closes its database afterwards; whoever comes meanwhile finds nobody, and looks for the next one."""
    began, went, stopping = threading.Event(), threading.Event(), threading.Event()
    answers: list[Mapping[str, Any]] = []

    def slow() -> Mapping[str, Any]:
        began.set()
        return {"went": went.wait(10)}

    control = ControlSocket(tmp_path / "s", {"slow": slow, "ping": dict})
    control.open()
    running = threading.Thread(target=control.run, args=(stopping,))
    running.start()
    asking = threading.Thread(target=lambda: answers.append(ask(tmp_path / "s", "slow", 10.0)))
    asking.start()
    began.wait(10)
    stopping.set()
    wait_until(lambda: _is_refused(tmp_path / "s"), "nobody listens any more")
    still_answering = running.is_alive()
    went.set()
    running.join(10)
    asking.join(10)
    control.close()

    assert still_answering
    assert answers == [{"went": True}]


def _is_refused(path: Path) -> bool:
    try:
        ask(path, "ping", 5.0)
    except NoAnswer:
        return True
    return False
