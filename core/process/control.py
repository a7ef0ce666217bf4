"""The service's Unix socket: one JSON object a line, in and out. It carries requests, never text for a pane."""

import json
import logging
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from core.base.clock import Deadline, SystemClock
from core.base.errors import CoreError, StoreBroken

Answer = Callable[[], Mapping[str, Any]]
Talk = Callable[[Mapping[str, Any], "Peer"], None]
_LOG = logging.getLogger(__name__)
_LONGEST_REQUEST = 1 << 20  # bytes
_CHUNK = 65536  # bytes
_REQUEST_SECONDS = 5.0  #: from the connection until its request is whole
_AGAIN_SECONDS = 0.5  #: after a connection that could not be accepted
_BACKLOG = 128
_UNHEARD = 64  #: connections that have not asked yet; where one comes too many, the oldest goes
_CALLERS = 256  #: all of them; the newest goes
_CROWDED_SECONDS = 0.02  #: between two attempts to get into the backlog
_FINISH_SECONDS = 2.0  #: for what is being answered when the service ends
_LONGEST_ADDRESS = 100  # bytes; the kernel's sockaddr_un holds 108 (104 on macOS), its NUL included


class NoAnswer(CoreError):
    """The service did not answer its socket in time; this does not say that it is gone."""

    code = "no_answer"


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Give an address that the kernel takes: a path too long for it goes through a descriptor of its folder (Linux)."""
    plain = str(path)
    if len(os.fsencode(plain)) <= _LONGEST_ADDRESS or not sys.platform.startswith("linux"):
        yield plain
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def ask(path: Path, operation: str, seconds: float, **told: str) -> Mapping[str, Any]:
    """Ask the service one question; `told` goes with it. Raises NoAnswer."""
    return ask_for_bytes(path, operation, seconds, **told)[0]


def ask_for_bytes(path: Path, operation: str, seconds: float, **told: str) -> tuple[Mapping[str, Any], bytes]:
    """Ask as `ask` does, and return also what follows the answer: `"bytes"` in it says how much. Raises NoAnswer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _address(path) as address:
            _connect(connection, address, seconds)
            connection.sendall(json.dumps({**told, "op": operation}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer, rest = json.loads(stream.readline()), b""
                if isinstance(answer, dict) and "bytes" in answer:
                    rest = stream.read(int(answer["bytes"]))
                    if len(rest) < int(answer["bytes"]):
                        raise ValueError(f"{len(rest)} of {answer['bytes']} bytes came")
    except (OSError, ValueError) as error:
        raise NoAnswer(
            f"the service did not answer {operation!r} on {path}: {error}", "see local/service.log"
        ) from error
    if not isinstance(answer, dict) or "error" in answer:
        raise NoAnswer(f"the service could not answer {operation!r}: {answer}", "see local/service.log")
    return answer, rest


def listening(path: Path) -> socket.socket:
    """Return a socket that listens under that name, for us alone; what stands there is removed. Raises StoreBroken."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        previous = os.umask(0o177)
        try:
            with _address(path) as address:
                server.bind(address)
        finally:
            os.umask(previous)
    except OSError as error:
        server.close()
        raise StoreBroken(
            f"cannot listen on {path}: {error}",
            "set state.root to a shorter path on a local disk, and look at what is there",
        ) from error
    server.listen(_BACKLOG)
    return server


def _connect(connection: socket.socket, address: str, seconds: float) -> None:
    """Connect. A socket with a time-out does not wait for place in the other's backlog (connect(2)): this does."""
    clock = SystemClock()
    deadline = Deadline(clock, seconds)
    connection.settimeout(seconds)
    while True:
        try:
            connection.connect(address)
            return
        except BlockingIOError:
            if deadline.passed():
                raise
        clock.pause(_CROWDED_SECONDS)


class Listener(Protocol):
    """Whoever asked and waits, perhaps for long."""

    def send(self, answer: Mapping[str, Any]) -> bool:
        """Send an object, and tell whether it could be sent."""
        ...

    def gone(self) -> bool:
        """Return whether nobody waits any more."""
        ...


class Peer:
    """A listener at the other end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, answer: Mapping[str, Any]) -> bool:
        """Send a line, and tell whether it could be sent."""
        return self.send_bytes(answer, b"")

    def send_bytes(self, answer: Mapping[str, Any], data: bytes) -> bool:
        """Send a line, and that behind it as it is; the line's `"bytes"` says how much."""
        try:
            self._connection.sendall(json.dumps(answer).encode() + b"\n" + data)
        except OSError as error:
            _LOG.info("control answer not taken", extra={"reason": str(error)})
            return False
        return True

    def gone(self) -> bool:
        """Return whether it has hung up; what it may still say is not read."""
        ready = select.poll()
        ready.register(self._connection, select.POLLIN)
        try:
            return bool(ready.poll(0)) and self._connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class ControlSocket:
    """Answers command-line processes, each in a thread of its own so that a slow one holds up nobody."""

    def __init__(self, path: Path, operations: Mapping[str, Answer], talks: Mapping[str, Talk] | None = None) -> None:
        """`talks` are operations that take arguments and time; each speaks with its peer itself."""
        self._path = path
        self._operations = operations
        self._talks = talks or {}
        self._server: socket.socket | None = None
        self._answering = 0
        self._answered = threading.Condition()
        self._unheard: dict[int, socket.socket] = {}  #: by descriptor, in the order of their coming
        self._accepts = True
        self._bound: tuple[int, int] | None = None  #: device and inode of the socket's file

    def open(self) -> None:
        """Bind the socket, 0600. The caller holds the service lock, so a socket that is there is a dead one's."""
        server = listening(self._path)
        server.settimeout(0.5)
        self._server, self._bound = server, self._found()

    def same_file(self) -> bool:
        """Return whether our socket is still the one under its name. Raises OSError where that cannot be seen."""
        return self._bound is not None and self._found() == self._bound

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def run(self, stopping: threading.Event) -> None:
        """Answer until `stopping` is set; then nobody new is heard, and what is being answered is finished.

        Whoever comes later finds nobody, and may look for the next service: an answer of one that is closing its
        database would be an error.
        """
        server = self._server
        if server is None:
            raise ValueError("the socket is not open")
        while not stopping.is_set():
            try:
                self._hear(server.accept()[0])
                self._accepts = True
            except TimeoutError:
                continue
            except OSError as error:  # of this caller, or no descriptor is left for it
                if self._accepts:
                    _LOG.warning("cannot accept a caller", extra={"reason": str(error)})
                self._accepts = False
                stopping.wait(_AGAIN_SECONDS)
        server.close()
        with self._answered:
            self._answered.wait_for(lambda: not self._answering, _FINISH_SECONDS)

    def close(self) -> None:
        """Stop listening and remove the socket, unless it is another's by now."""
        if self._server is not None:
            self._server.close()
            self._server = None
            if self.same_file():
                self._path.unlink(missing_ok=True)

    def _hear(self, connection: socket.socket) -> None:
        """Answer a caller in a thread of its own. Raises OSError where there is none to be had."""
        with self._answered:
            if self._answering >= _CALLERS:
                with connection:
                    Peer(connection).send({"error": f"{_CALLERS} others are being answered"})
                return
            if len(self._unheard) >= _UNHEARD:
                self._turn_away(next(iter(self._unheard)))
            self._unheard[connection.fileno()] = connection
            self._answering += 1
        try:
            threading.Thread(target=self._serve, args=(connection,), name="control-answer", daemon=True).start()
        except RuntimeError as error:  # what a thread that cannot be started raises
            self._done(connection)
            raise OSError(str(error)) from error

    def _turn_away(self, descriptor: int) -> None:
        with suppress(OSError):  # it has just gone by itself
            self._unheard.pop(descriptor).shutdown(socket.SHUT_RDWR)  # its thread, which reads, finds its end

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._answer(connection)
        finally:
            self._done(connection)

    def _done(self, connection: socket.socket) -> None:
        with self._answered:
            self._unheard.pop(connection.fileno(), None)
            connection.close()
            self._answering -= 1
            self._answered.notify_all()

    def _answer(self, connection: socket.socket) -> None:
        peer = Peer(connection)
        try:
            request = json.loads(self._request(connection))
            talk, operation = self._talks.get(request["op"]), self._operations.get(request["op"])
            if talk is None and operation is None:
                raise ValueError("no such operation")
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            _LOG.info("control request refused", extra={"reason": repr(error)})
            peer.send({"error": "unknown operation"})
            return
        try:
            if talk is not None:
                talk(request, peer)
            elif operation is not None:
                peer.send(operation())
        except (CoreError, OSError) as error:
            peer.send({"error": str(error)})

    def _request(self, connection: socket.socket) -> bytes:
        """Return the caller's line, or what it said before it hung up. Raises OSError, ValueError."""
        deadline, said = Deadline(SystemClock(), _REQUEST_SECONDS), bytearray()
        while b"\n" not in said and len(said) < _LONGEST_REQUEST:
            connection.settimeout(max(deadline.remaining(), 0.001))
            more = connection.recv(_CHUNK)
            if not more:
                break
            said += more
        with self._answered:
            self._unheard.pop(connection.fileno(), None)
        connection.settimeout(_REQUEST_SECONDS)
        return bytes(said).partition(b"\n")[0]
