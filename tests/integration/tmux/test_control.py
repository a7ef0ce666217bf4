"""The control client: cheaper, replaced when it dies, never a second delivery."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from core.base.errors import TmuxSilent
from core.model.pane import Receipt, Written
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, alive, soon, wait_until


def test_replies_belong_to_their_questions(private: PrivateTmux) -> None:
    """Threads that ask at once get their own answers, failed commands and empty ones included."""
    private.reading(private.runner())
    transport = ControlTransport(private.server)
    wrong: list[str] = []

    def ask(number: int) -> None:
        for turn in range(30):
            words = f"t{number}-{turn} %end 1 2 3 é ;"
            printing = ("display-message", "-p", words.replace("%", "%%"))  # its text is a format of times as well
            reply = transport.run([printing, ("set-option", "-s", "@x", "y")], 5)
            failed = transport.run([("display-message", "-p", "a"), ("kill-session", "-t", "=none:")], 5)
            if reply.out != f"{words}\n" or (failed.rc, failed.out) != (1, "a\n") or "can't find" not in failed.err:
                wrong.append(f"{reply} {failed}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    transport.close()

    assert wrong == []


def test_client_is_kept_and_rebuilt_when_it_dies(private: PrivateTmux) -> None:
    """One client serves many calls; one that was killed is replaced, and nobody notices between calls."""
    transport = ControlTransport(private.server)
    runner = private.runner(transport)
    pane, reader = private.reading(runner)
    wait_until(lambda: runner.survey().panes and transport.client_pid, "a client is attached")
    first = transport.client_pid
    runner.survey()
    assert transport.client_pid == first
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first), "the client is dead")

    written = runner.write(pane.tag, b"on", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    assert transport.client_pid != first
    reader.wait_for(b"on")


def test_its_session_killed_by_hand_comes_back(private: PrivateTmux) -> None:
    """A person who kills the control client's session ends no agent, and the session is made again."""
    transport = ControlTransport(private.server)
    runner = private.runner(transport)
    pane, _ = private.reading(private.runner())
    runner.survey()
    private.tmux("kill-session", "-t", "=_the-loop:")

    survey = runner.survey()

    assert survey.of_instance(pane.tag) is not None


def test_no_server_is_started_by_looking(private: PrivateTmux) -> None:
    """A service that only looks starts no tmux server."""
    runner = private.runner(ControlTransport(private.server))

    survey = runner.survey()

    assert survey.panes == ()
    assert not (private.folder / f"tmux-{os.getuid()}" / private.server.socket_name).exists()


def test_client_killed_in_the_middle_of_writes_doubles_nothing(private: PrivateTmux) -> None:
    """Each of 40 writes next to a client that is killed over and over arrives once or never, by its receipt."""
    transport = ControlTransport(private.server)
    runner = private.runner(transport)
    pane, reader = private.reading(runner)
    settling = private.runner()
    expected, unknown, number = b"", 0, 0

    with _killing(transport):
        while number < 40 or (unknown < 3 and number < 400):
            number += 1
            token, data, deadline = f"m-{number}", f"<{number}>".encode(), soon(1.2)
            try:
                done = runner.write(pane.tag, data, Receipt.PASTED, token, deadline) is Written.DONE
            except TmuxSilent:
                unknown += 1
                done = _settled(settling, pane.tag, token, deadline)
            expected += data if done else b""

    reader.wait_for(expected)
    assert reader.received() == expected
    assert unknown > 0


@contextmanager
def _killing(transport: ControlTransport) -> Iterator[None]:
    """Kill each client that serves, a moment after it began to."""
    over = threading.Event()
    moments = random.Random(7)

    def kill() -> None:
        killed = None
        while not over.wait(0.0005):
            pid = transport.client_pid
            if pid is not None and pid != killed:
                over.wait(moments.uniform(0, 0.003))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed = pid

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def _settled(runner: Runner, instance: str, token: str, deadline: datetime) -> bool:
    """Return whether a write of unknown end was done: at once if its receipt is there, else after the deadline."""

    def receipt() -> str | None:
        pane = runner.survey().of_instance(instance)
        return pane.receipts.get(Receipt.PASTED) if pane else None

    wait_until(lambda: receipt() == token or datetime.now(UTC) > deadline, "the receipt is there, or the deadline over")
    return receipt() == token


def test_leftover_loads_of_a_killed_process_are_removed(private: PrivateTmux) -> None:
    """Files with people's text that a killed process left are gone with the next start, younger ones stay."""
    folder = private.folder / "load"
    folder.mkdir()
    old, young = folder / "load-old", folder / "load-young"
    for path in (old, young):
        path.write_text("text")
    os.utime(old, (1, 1))

    ControlTransport(private.server)

    assert [path.name for path in folder.iterdir()] == ["load-young"]


def test_a_file_that_was_made_ahead_is_used_once_and_may_go(private: PrivateTmux) -> None:
    """Each text has a file of its own; one that another process has removed is made anew, and the end leaves none."""
    transport = ControlTransport(private.server)
    runner = private.runner(transport)
    pane, reader = private.reading(runner)
    wait_until(lambda: runner.survey().panes and transport.client_pid, "a client is attached")
    folder, ahead = private.folder / "load", []
    for token in ("m-1", "m-2", "m-3"):
        assert runner.write(pane.tag, f"{token} ".encode(), Receipt.PASTED, token, soon()) is Written.DONE
        ahead += [path.name for path in folder.iterdir()]
        if token == "m-2":
            (folder / ahead[-1]).unlink()

    reader.wait_for(b"m-1 m-2 m-3 ")
    transport.close()

    assert len(set(ahead)) == 3
    assert list(folder.iterdir()) == []


def test_full_disk_takes_a_process(private: PrivateTmux) -> None:
    """Where no file can be written for a load, the text arrives the other way."""
    transport = ControlTransport(private.server)
    runner = private.runner(transport)
    pane, reader = private.reading(runner)
    runner.survey()
    (private.folder / "load").write_text("a file where the folder should be")

    written = runner.write(pane.tag, b"text", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"text")
    assert reader.received() == b"text"


def test_folder_with_a_format_sign_takes_a_process(private: PrivateTmux, tmp_path: Path) -> None:
    """tmux expands the path of a load as a format, so a state folder with `#` in its name is served the other way."""
    odd = replace(private.server, conf=tmp_path / "a#{pid}" / "tmux.conf")
    transport = ControlTransport(odd)
    pane, reader = private.reading(private.runner())

    written = private.runner(transport).write(pane.tag, b"text", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"text")


def test_client_of_a_killed_process_ends_by_itself(private: PrivateTmux) -> None:
    """It ends although tmux still owes an answer that nobody will read, and another child of that process lives on."""
    private.reading(private.runner())
    with _holder(private) as (holder, client, other):
        with private.frozen():
            _begin_to_ask(holder, client)
            holder.kill()
            holder.wait()

        wait_until(lambda: not alive(client), "the client of the killed process has ended")
        assert alive(other)
        assert "control-mode" not in private.tmux("list-clients")


def test_idle_client_of_a_killed_process_ends_by_itself(private: PrivateTmux) -> None:
    """Nothing was under way: the closed pipe is enough."""
    private.reading(private.runner())
    with _holder(private) as (holder, client, _):
        holder.kill()
        holder.wait()

        wait_until(lambda: not alive(client), "the client of the killed process has ended")


@contextmanager
def _holder(private: PrivateTmux) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Give a process that holds a control client, that client's pid, and the pid of another child of it."""
    command = [sys.executable, "-m", "tests.integration.tmux.holder", private.server.socket_name]
    with subprocess.Popen(
        [*command, str(private.server.conf)],
        env=private.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        pids = [int(word) for word in _said(holder).split()]
        try:
            yield holder, pids[0], pids[1]
        finally:
            holder.kill()
            for pid in pids:
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)


def _begin_to_ask(holder: "subprocess.Popen[str]", client: int) -> None:
    """Let it send its line, and wait until it has done so: the pipe to its client holds it."""
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    wait_until(lambda: _waiting(client) > 0, "the line is in the pipe")


def _waiting(client: int) -> int:
    """Return how many bytes wait in the pipe that the process reads."""
    with open(f"/proc/{client}/fd/0", "rb", buffering=0) as pipe:
        counted = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(counted, sys.byteorder)


def _said(holder: "subprocess.Popen[str]") -> str:
    assert holder.stdout is not None
    return holder.stdout.readline().strip()
