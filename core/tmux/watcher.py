"""One thread that tells when processes end: by pidfds, or by looking four times a second where there are none."""

import itertools
import os
import select
import threading
from collections.abc import Callable

from core.errors import ProcessesUnknown
from core.tmux.handles import open_pidfd
from core.tmux.proctable import ProcessTable
from core.values import dataclass

_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class _Watch:
    pid: int
    start: str | None  #: None: it was gone when the watch began
    descriptor: int | None
    ended: Callable[[], None]


class Watcher:
    """Calls back once for each process that ends. The thread begins with the first watch."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._watched: dict[int, _Watch] = {}
        self._keys = itertools.count()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None  # read end, write end
        self._closing = False

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended`, which must not raise, from the watcher's thread once the process ends; at once if it has.

        Raises OSError where no thread can be woken for it, ProcessesUnknown.
        """
        with self._lock:
            self._begin()
        start = self._table.start_of(pid)
        try:
            descriptor = open_pidfd(pid)
        except ProcessLookupError:
            start, descriptor = None, None
        key = next(self._keys)
        with self._lock:
            self._watched[key] = _Watch(pid, start, descriptor, ended)
        self._nudge()

        def stop() -> None:
            self._take(key)

        return stop

    def held(self) -> int:
        """Return how many watches are held, with a pidfd or without one: two on one process are two."""
        with self._lock:
            return len(self._watched)

    def close(self) -> None:
        """Stop watching everything."""
        with self._lock:
            self._closing = True
            keys = list(self._watched)
            thread = self._thread
        for key in keys:
            self._take(key)
        self._nudge()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _begin(self) -> None:
        if self._thread is None:
            self._wake = os.pipe()
            for descriptor in self._wake:
                os.set_blocking(descriptor, False)
            self._thread = threading.Thread(target=self._run, name="process-watcher", daemon=True)
            self._thread.start()

    def _nudge(self) -> None:
        with self._lock:
            if self._wake is not None:
                try:
                    os.write(self._wake[1], b"x")
                except BlockingIOError:  # it is full, so the thread will wake
                    return

    def _take(self, key: int) -> _Watch | None:
        """Stop one watch and return it, unless that was done before: whoever gets it is the only one to call back."""
        with self._lock:
            watch = self._watched.pop(key, None)
        if watch is not None and watch.descriptor is not None:
            os.close(watch.descriptor)
        return watch

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closing or self._wake is None:
                    break
                wake = self._wake[0]
                watched = dict(self._watched)
            for key in self._ended(watched, wake):
                watch = self._take(key)
                if watch is not None:
                    watch.ended()
        with self._lock:
            for descriptor in self._wake or ():
                os.close(descriptor)
            self._wake = None

    def _has_gone(self, watch: _Watch) -> bool:
        """Tell whether the process is there no more; who cannot ask looks again."""
        try:
            return self._table.start_of(watch.pid) != watch.start
        except ProcessesUnknown:
            return False

    def _ended(self, watched: dict[int, _Watch], wake: int) -> list[int]:
        """Wait for something to happen and return the watches whose process has ended."""
        blind = {key: watch for key, watch in watched.items() if watch.descriptor is None or watch.start is None}
        gone = [key for key, watch in blind.items() if watch.start is None]
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        keys = {watch.descriptor: key for key, watch in watched.items() if watch.descriptor is not None}
        for descriptor in keys:
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(0 if gone else _LOOK_SECONDS * 1000 if blind else None)]
        if wake in ready:
            os.read(wake, 4096)
        gone += [key for key, watch in blind.items() if self._has_gone(watch)]
        return list(dict.fromkeys([*gone, *(keys[descriptor] for descriptor in ready if descriptor in keys)]))
