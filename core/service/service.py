"""The long-running process: start the workers, watch them, stop them in order. Panes stay.

The service imports at its start what commands import at its first use. It lives for long: later no descriptor may be
left to read a file with, or another version may stand in its place, or no folder at all.
"""

import logging
import os
import select
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any

from core.base.clock import Deadline, SystemClock, iso
from core.base.errors import CoreError, Refused, StoreBroken, StoreGone
from core.base.files import private_folder, secure_root
from core.config.cache import digest_of
from core.model.rows import ServiceRow
from core.process.control import ControlSocket, NoAnswer, Talk, ask
from core.process.itself import give_back
from core.process.logs import bound_log
from core.process.presence import Connections, Notifier, ServiceLock
from core.session.system import System

_LOG = logging.getLogger(__name__)
_STAGE_SECONDS = 10.0  # for all workers of one stage together
STOP_SECONDS = 4 * _STAGE_SECONDS  #: what a stop takes at most, by the stages that Worker names
_PASSING = (OSError, MemoryError, ImportError, CoreError)  #: no descriptor, no memory, a disk that fails: it may pass
_LONGEST_PAUSE = 60.0
_LOOK_SECONDS = 2.0  #: between two looks at the files that nobody may take away
_PING_SECONDS = 1.0
_CALM_SECONDS = 1.0  #: after the boot's sweep, so that what it has caused is posted
_STEADY_SECONDS = 30.0  #: a worker that works for so long is well again

Run = Callable[[threading.Event], None]


@dataclass
class Worker:
    """A named thread. `stage` orders the stop: 0 (intake) before 1 (deliveries) before 2 (posts).

    Trouble with the machine or the state ends no worker: it is told, and the worker begins again after a pause.
    """

    name: str
    stage: int
    run: Run
    first_pause: float = 1.0  #: seconds; each trouble doubles it
    stopping: threading.Event = field(default_factory=threading.Event)
    failure: str | None = None
    thread: threading.Thread | None = None
    _trouble: str = ""
    _began: Deadline | None = None

    def start(self, died: Callable[[], None]) -> None:
        """Start the thread; a failure, or an end that nobody asked for, calls `died` from it."""

        def body() -> None:
            try:
                self._run_again_and_again()
            except Exception as error:
                _LOG.exception("worker failed", extra={"worker": self.name})
                self.failure = f"{type(error).__name__}: {error}"
            if not self.stopping.is_set():
                self.failure = self.failure or "it ended by itself"
                died()

        self.thread = threading.Thread(target=body, name=self.name, daemon=True)
        self.thread.start()

    @property
    def trouble(self) -> str:
        """Return why it has begun again and again of late, "" where it works."""
        return "" if self._began is None or self._began.passed() else self._trouble

    def _run_again_and_again(self) -> None:
        pause = self.first_pause
        while True:
            try:
                self.run(self.stopping)
                return
            except _PASSING as error:
                self._trouble = f"{type(error).__name__}: {error}"
                _LOG.warning("worker begins again", extra={"worker": self.name, "reason": self._trouble}, exc_info=True)
            if not self.trouble:
                pause = self.first_pause
            self._began = Deadline(SystemClock(), pause + _STEADY_SECONDS)
            if self.stopping.wait(pause):
                return
            pause = min(2 * pause, _LONGEST_PAUSE)


class Bell:
    """Wakes the main thread: rung by a signal or by a worker that died.

    A pipe, written by the interpreter's own signal handler, since an Event would not do: set by a handler that
    interrupts its `wait` it blocks for ever on its own lock, and a signal right before the wait is seen after it.
    """

    def __init__(self) -> None:
        self._ear, self._clapper = os.pipe()
        os.set_blocking(self._clapper, False)
        self._handlers: dict[int, Any] = {}
        self._before = -1
        self.signal: str | None = None

    def listen(self, *numbers: int) -> None:
        """Take these signals as rings. Only the main thread may."""
        self._before = signal.set_wakeup_fd(self._clapper, warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._heard) for number in numbers}

    def ring(self) -> None:
        """Ring. Callable from every thread."""
        with suppress(BlockingIOError):  # full: it rings already
            os.write(self._clapper, b"\0")

    def wait(self, seconds: float) -> bool:
        """Wait so long for a ring, and tell whether it rang."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def close(self) -> None:
        """Give the signals back to whom they belonged."""
        if self._handlers:
            signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._ear)
        os.close(self._clapper)

    def _heard(self, number: int, _: FrameType | None) -> None:
        self.signal = signal.Signals(number).name


class Service:
    """One per state root; it talks to channels, ingests, and delivers what was queued."""

    def __init__(
        self,
        system: System,
        workers: Sequence[Worker],
        sweep: Callable[[], Mapping[str, Any]],
        connections: Connections,
        talks: Mapping[str, Talk] | None = None,
    ) -> None:
        """`talks`: what the service's socket answers besides what every service does."""
        self._system = system
        self._sweep = sweep
        self._connections = connections
        self._configuration = digest_of(system.settings)
        self._lock = ServiceLock(system.paths.service_lock, system.clock)
        self._swept = threading.Event()
        self._sweep_report: Mapping[str, Any] = {}
        self._gone = ""  #: what of its own files is not the one any more that it works with
        self._bell = Bell()
        socket = ControlSocket(
            system.paths.service_socket,
            {"status": self._status, "sweep": self._sweep_answer, "ping": self._ping},
            talks,
        )
        self._socket = socket
        sweeper = Worker("sweep", 0, self._run_sweep)
        self._workers = (*workers, sweeper, Worker("control", 3, socket.run))

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, None so far or where a worker died."""
        return self._bell.signal

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Serve until SIGTERM or SIGINT, or until a worker dies or a file of its own is gone: then the code is not 0.

        Raises Refused if another service holds the state root, StoreBroken if the state cannot be used.
        """
        secure_root(self._system.paths.root)
        private_folder(self._system.paths.local)
        self._lock.take()
        try:
            self._refuse_second()
            bound_log(self._system.paths.service_log)
            self._bell.listen(signal.SIGTERM, signal.SIGINT)
            self._socket.open()
            self._system.events.emit("service.started", detail=f"pid {os.getpid()}")
            for worker in self._workers:
                worker.start(self._bell.ring)
            ready()
            while not self._bell.wait(_LOOK_SECONDS):
                self._gone = self._missed()
                if self._gone:
                    break
            return self._stop()
        finally:
            self._socket.close()
            self._system.close()
            self._bell.close()
            self._lock.release()

    def _refuse_second(self) -> None:
        """Raise Refused where a service answers whose lock's file was removed: the one that is held is new."""
        try:
            pid = ask(self._system.paths.service_socket, "ping", _PING_SECONDS).get("pid")
        except NoAnswer:
            return
        raise Refused(
            f"a service runs already for this state root (pid {pid}), whose lock was removed",
            f"it ends by itself within seconds, else `kill {pid}`; then start again",
        )

    def _missed(self) -> str:
        """Return what is wrong with the files that the service works with, "" where nothing is.

        It would go on alone: another service could start beside it, and what it keeps would be found by nobody.
        """
        paths = self._system.paths
        try:
            self._system.database.same_file()
            mine = ((self._lock.same_file, paths.service_lock), (self._socket.same_file, paths.service_socket))
            return next((f"{path} was removed or replaced" for same, path in mine if not same()), "")
        except StoreGone as error:
            return str(error)
        except (OSError, StoreBroken) as error:
            _LOG.warning("cannot look at the service's own files", extra={"reason": str(error)})
            return ""

    def _stop(self) -> int:
        if self._gone:
            _LOG.error("the service ends: a file of its own is gone", extra={"reason": self._gone})
            self._system.events.emit("service.file_gone", level="error", detail=self._gone)
        failed = [worker for worker in self._workers if worker.failure]
        for worker in failed:
            self._system.events.emit("service.worker_failed", level="error", reason=worker.name, detail=worker.failure)
        late = [name for stage in sorted({w.stage for w in self._workers}) for name in self._stop_stage(stage)]
        self._system.events.emit(
            "service.stopped",
            level="error" if failed or self._gone else "info",
            reason=self._bell.signal or ("a file of its own is gone" if self._gone else "a worker died"),
            detail=f"did not stop in time: {', '.join(late)}" if late else None,
        )
        return 1 if failed or self._gone else 0

    def _stop_stage(self, stage: int) -> list[str]:
        workers = [worker for worker in self._workers if worker.stage == stage]
        for worker in workers:
            worker.stopping.set()
        Notifier(self._system.paths.notify).send()
        deadline = Deadline(self._system.clock, _STAGE_SECONDS)
        for worker in workers:
            if worker.thread is not None:
                worker.thread.join(deadline.remaining())
        return [worker.name for worker in workers if worker.thread is not None and worker.thread.is_alive()]

    def _run_sweep(self, stopping: threading.Event) -> None:
        try:
            self._sweep_report = self._sweep()
        except CoreError as error:
            _LOG.error("boot sweep failed", extra={"reason": str(error)})
            self._sweep_report = {"sessions": [], "ok": False, "detail": str(error)}
        self._swept.set()
        self._system.database.leave()
        if not stopping.wait(_CALM_SECONDS):
            give_back()
            stopping.wait()

    def _sweep_answer(self) -> Mapping[str, Any]:
        self._swept.wait()
        return self._sweep_report

    def _status(self) -> Mapping[str, Any]:
        own = ServiceRow("service", True, os.getpid(), "")
        rows = {row.name: row for row in (own, *self._connections.rows())}
        for worker in self._workers:
            if worker.trouble:
                told = f"{worker.trouble}; it is tried again"
                rows[worker.name] = ServiceRow(worker.name, False, os.getpid(), told)
        sensed = {kind: iso(at) for kind, at in self._connections.latest().items()}
        services = [row.to_json() for row in rows.values()]
        return {"services": services, "configuration": self._configuration, "sensed": sensed}

    @staticmethod
    def _ping() -> Mapping[str, Any]:
        return {"pid": os.getpid()}


_MODULES = (
    "core.base.locks",
    "core.delivery.hearing",
    "core.delivery.permission_requests",
    "core.harness.catalogue",
    "core.harness.claude.adapter",
    "core.harness.generic",
    "core.lifecycle.create",
    "core.lifecycle.pause",
    "core.process.logs",
    "core.store.database",
    "core.store.eventlog",
    "core.store.inbox",
    "core.store.loops",
    "core.store.migrations",
    "core.store.outbox",
    "core.store.live",
    "core.store.requests",
    "core.store.retention",
    "core.store.sessions",
    "core.store.sqlerrors",
    "core.tmux.control",
    "core.tmux.handles",
    "core.tmux.processes",
    "core.tmux.server",
    "core.tools.toolbox",
    "cronsim",
    "ctypes",
    "difflib",
    "resource",
    "shutil",
    "subprocess",
    "termios",
    "zoneinfo",
    "embedded.adapter",
)
#: for a harness's processes below a pane, see core.harness.base; and, not on Linux, for their ends
_WITHOUT_PROC = () if os.path.exists("/proc/thread-self/children") else ("psutil",)


def import_ahead() -> None:
    """Import it."""
    for name in (*_MODULES, *_WITHOUT_PROC):
        import_module(name)
