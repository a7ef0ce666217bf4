"""Five hundred loops over fifty sessions: a simulated day of them, and two minutes of real time with the real threads.

The short form, which `make bench` runs, has nine simulated hours and twenty seconds; `--full` has all. Only the panes
are played: records, database, scheduler, gate and delivery are the product's. The floor of the drift is a bare heap of
times in a thread of its own, which runs beside.
"""

from __future__ import annotations

import argparse
import heapq
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from benchmarks.measuring import Ratio, report
from benchmarks.played import HARNESS, PlayedClock, PlayedPanes, record_sessions, uid_of
from core.base.clock import SystemClock, from_iso
from core.base.values import replace
from core.config.settings import HarnessDeclaration, LoopSettings, Routing, Settings
from core.delivery.deliverer import Deliverer, DeliveryWorker
from core.loops.scheduler import Scheduler
from core.model.loop import Loop, Mode
from core.service.wiring import build_system

if TYPE_CHECKING:
    from core.base.clock import Clock
    from core.session.system import System
    from core.tmux.runner import Runner

LOOPS, SESSIONS = 500, 50
NAMES = tuple(f"session-{number:02}" for number in range(SESSIONS))
CPU_BOUND, FLAT_BOUND, HEAP_BOUND = 0.25, 1.1, 100
CACHES_BOUND = 1.2  #: of memory within two minutes, while the page caches of a new database fill
DRIFT_BOUND = 1.0  #: seconds, for p99
_HOURS, _SECONDS = (9.0, 24.0), (20.0, 120.0)  #: of the short form, of the full one
_SETTLED_HOURS = 7.0  #: by then what is over has begun to go
_SIMULATED_INTERVAL, _REAL_INTERVAL = timedelta(hours=1), timedelta(seconds=30)


def ratios(*, full: bool = False) -> Iterator[Ratio]:
    """Yield the ratios of the simulated time, then those of the real time."""
    with _folder() as folder:
        yield from _simulated(folder, _HOURS[full])
    with _folder() as folder:
        yield from _real(folder, _SECONDS[full])


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _system(folder: Path, clock: Clock) -> System:
    settings = Settings(
        state_root=folder / "state",
        routing=Routing(default_harness=HARNESS, spawn_workdir=str(folder)),
        harnesses={HARNESS: HarnessDeclaration(HARNESS, ("/bin/cat",), settle_ms=0)},
        loops=LoopSettings(min_interval=timedelta(seconds=1)),
    )
    panes = PlayedPanes(clock, NAMES)
    system = replace(build_system(settings, dict(os.environ), clock=clock), runner=cast("Runner", panes))
    panes.system = system
    record_sessions(system, NAMES)
    return system


def _make_loops(system: System, interval: timedelta) -> None:
    """Store the loops, their first slots spread over one interval from now."""
    now = system.clock.now()
    with system.database.transaction(durable=True):
        for number in range(LOOPS):
            name = NAMES[number % SESSIONS]
            system.loops.add(
                Loop(
                    id=f"loop_{number:06}",
                    uid=uid_of(name),
                    name=name,
                    instruction="look at the build",
                    mode=Mode.INTERVAL,
                    created_by="cli:bench",
                    created_at=now,
                    interval=interval,
                    keep_alive=True,
                    next_run_at=now + interval * number / LOOPS + timedelta(seconds=1),
                ),
                0,
            )


# ---------------------------------------------------------------- simulated time


def _simulated(folder: Path, hours: float) -> Iterator[Ratio]:
    clock = PlayedClock()
    system = _system(folder, clock)
    _make_loops(system, _SIMULATED_INTERVAL)
    scheduler, deliverer = Scheduler(system), Deliverer(system)
    _pass(system, scheduler, deliverer, _SETTLED_HOURS)
    before_size, before_memory, begun = _size(system), _memory(), time.process_time()
    rest = hours - _SETTLED_HOURS
    _pass(system, scheduler, deliverer, rest)
    cpu, size, memory = time.process_time() - begun, _size(system), _memory()
    fired = sum(loop.run_count for loop in system.loops.all_open())
    system.close()
    if fired < 0.95 * LOOPS * hours:
        raise RuntimeError(f"only {fired} runs in {hours:g} simulated hours")
    what = f"{LOOPS} hourly loops over {SESSIONS} sessions, simulated hour {hours:g}"
    yield Ratio(f"database of {what}", f"hour {_SETTLED_HOURS:g}", "MiB", (size,), (before_size,), FLAT_BOUND)
    yield Ratio(f"memory of {what}", f"hour {_SETTLED_HOURS:g}", "MiB", (memory,), (before_memory,), FLAT_BOUND)
    yield Ratio(f"CPU of {what}", "one core for that long", "s", (cpu,), (3600 * rest,), CPU_BOUND)


def _pass(system: System, scheduler: Scheduler, deliverer: Deliverer, hours: float) -> None:
    """Let time pass in steps of a minute."""
    for _ in range(int(hours * 60)):
        system.clock.pause(60)
        scheduler.turn()
        for uid in system.inbox.busy_uids():
            _drain(system, deliverer, uid)
        scheduler.turn()


def _drain(system: System, deliverer: Deliverer, uid: str) -> None:
    """Give the session its steps until it has nothing left that this moment would move."""
    while (following := deliverer.advance(uid)) is not None and following <= system.clock.now():
        continue


# ---------------------------------------------------------------- real time


def _real(folder: Path, seconds: float) -> Iterator[Ratio]:
    system, stopping = _system(folder, SystemClock()), threading.Event()
    committed: list[datetime] = []
    delivery = DeliveryWorker(system.clock, system.inbox, Deliverer(system))

    def sent(uid: str) -> None:
        committed.append(system.clock.now())
        delivery.wake(uid)

    _make_loops(system, _REAL_INTERVAL)
    bare: list[float] = []
    runs: Sequence[Callable[[threading.Event], None]] = (
        Scheduler(system, sent).run,
        delivery.run,
        lambda stop: _bare_heap(stop, bare),
    )
    threads = [threading.Thread(target=run, args=(stopping,)) for run in runs]
    begun, cpu, memory = time.monotonic(), time.process_time(), 0.0
    for thread in threads:
        thread.start()
    stopping.wait(seconds / 2)
    memory = _memory()
    stopping.wait(seconds / 2)
    took, cpu, after = time.monotonic() - begun, time.process_time() - cpu, _memory()
    stopping.set()
    for thread in threads:
        thread.join(20)
    drifts = _drifts(system, committed)
    system.close()
    if len(drifts) < 0.95 * _expected(seconds):
        raise RuntimeError(f"only {len(drifts)} runs in {seconds:g} s")
    what = f"{LOOPS} loops of {_REAL_INTERVAL.total_seconds():g} s over {SESSIONS} sessions"
    milliseconds = tuple(1000 * drift for drift in drifts)
    heap = tuple(1000 * drift for drift in bare)
    limit = (1000.0 * DRIFT_BOUND,) * 2
    yield Ratio(f"drift of {what}, {len(drifts)} runs", "a bare heap beside it", "ms", milliseconds, heap, HEAP_BOUND)
    yield Ratio(f"drift of {what}", "a second", "ms", milliseconds, limit, 1, percentile=99)
    yield Ratio(f"CPU of {what}", f"one core for {took:.0f} s", "s", (cpu,), (took,), CPU_BOUND)
    yield Ratio(f"memory of {what}, after {took:.0f} s", "half way", "MiB", (after,), (memory,), CACHES_BOUND)


def _expected(seconds: float) -> int:
    """Return how many slots fall into so many seconds."""
    interval = _REAL_INTERVAL.total_seconds()
    firsts = (interval * number / LOOPS + 1 for number in range(LOOPS))
    return sum(int((seconds - first) // interval) + 1 for first in firsts if first <= seconds)


def _bare_heap(stopping: threading.Event, drifts: list[float]) -> None:
    """Do what a scheduler cannot do without: wait for the earliest time, note it, and put the next one in."""
    interval, now = _REAL_INTERVAL.total_seconds(), time.monotonic()
    times = [now + interval * number / LOOPS + 1 for number in range(LOOPS)]
    heapq.heapify(times)
    while not stopping.wait(max(0.0, times[0] - time.monotonic())):
        due = heapq.heappop(times)
        drifts.append(time.monotonic() - due)
        heapq.heappush(times, due + interval)


def _drifts(system: System, committed: Sequence[datetime]) -> tuple[float, ...]:
    """Return how many seconds after its slot each tick was committed. They are sent one after the other."""
    with sqlite3.connect(f"file:{system.paths.database}?mode=ro", uri=True) as connection:
        query = "SELECT slot FROM loop_runs JOIN inbox ON inbox.id = message_id ORDER BY inbox.seq"
        slots = [from_iso(slot) for (slot,) in connection.execute(query)]
    connection.close()
    return tuple((at - slot).total_seconds() for at, slot in zip(committed, slots, strict=False))


# ---------------------------------------------------------------- sizes


def _size(system: System) -> float:
    """Return what the database and its log take on the disk, in MiB."""
    path = system.paths.database
    return sum(each.stat().st_size for each in path.parent.glob(path.name + "*")) / 2**20


def _memory() -> float:
    """Return the proportional set size of this process in MiB."""
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    return max(report([ratio]) for ratio in ratios(full=parser.parse_args(arguments).full))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
