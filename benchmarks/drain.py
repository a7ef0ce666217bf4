"""A thousand replies that wait for fifty sessions, drained by the service's delivery worker.

The floor is one tmux process a message, one after the other: it loads the text, pastes it and pastes the Enter.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measuring import Ratio, compare, report
from benchmarks.stage import Stage, stage
from core.base.names import new_marker, new_message_id
from core.delivery.deliverer import Deliverer, DeliveryWorker
from core.lifecycle.start import start_standing
from core.model.message import Kind, MessageState, NewMessage
from core.session.system import System

BOUND = 1 / 3  #: of the floor's time: three times its rate
RUNS = 3
SESSIONS, MESSAGES = 50, 1000
_SECONDS = 120.0
_SINK = ["/bin/sh", "-c", "stty raw -echo; echo READY; exec cat >/dev/null"]


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the time of the drain to that of the processes."""
    names = [f"session-{number:02}" for number in range(SESSIONS)]
    with stage() as here:
        here.configure(_document(names))
        system = here.system()
        try:
            _start(system, names)
        finally:
            system.close()
        system = here.system(persistent=True)
        try:
            yield compare(
                (f"{MESSAGES} queued replies over {SESSIONS} sessions drained", lambda: _drain(system, names)),
                ("one chained tmux process a message", lambda: _chain(here, names)),
                bound=BOUND,
                runs=RUNS,
            )
        finally:
            system.close()


def _document(names: list[str]) -> dict[str, Any]:
    return {
        "harnesses": {"sink": {"start": _SINK, "ready": "READY", "settleMs": 0}},
        "standingSessions": {"sessions": [{"name": name, "harness": "sink"} for name in names]},
    }


def _start(system: System, names: list[str]) -> None:
    for name in names:
        started = start_standing(system, name, "cli:bench")
        if not started.ok:
            raise RuntimeError(started.sessions[0].detail)


def _drain(system: System, names: list[str]) -> float:
    """Commit what waits, and return the milliseconds from then until nothing waits any more."""
    uids = dict(_uids(system, names))
    messages = [_message(system, names[number % SESSIONS], uids, number) for number in range(MESSAGES)]
    system.inbox.add(messages)
    worker = DeliveryWorker(system.clock, system.inbox, Deliverer(system))
    return _timed(lambda: _until_empty(system, worker), lambda: _check(system, messages))


def _until_empty(system: System, worker: DeliveryWorker) -> None:
    end = time.monotonic() + _SECONDS
    while system.inbox.busy_uids():
        time.sleep(worker.turn())
        if time.monotonic() > end:
            raise TimeoutError(f"not drained within {_SECONDS:g} s: {system.inbox.counts()}")


def _check(system: System, messages: list[NewMessage]) -> None:
    states = {row.state for message in messages if (row := system.inbox.get(message.id)) is not None}
    if states != {MessageState.SUBMITTED}:
        raise RuntimeError(f"not all were submitted: {states}")


def _timed(do: Callable[[], None], check: Callable[[], None]) -> float:
    begun = time.perf_counter()
    do()
    taken = 1000 * (time.perf_counter() - begun)
    check()
    return taken


def _uids(system: System, names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        record = system.records.read(name)
        if record is None:
            raise RuntimeError(f"{name} has no record")
        yield name, record.uid


def _message(system: System, name: str, uids: dict[str, str], number: int) -> NewMessage:
    ident, record = new_message_id(), system.records.read(name)
    return NewMessage(
        id=ident,
        key=f"cli:{ident}",
        uid=uids[name],
        name=name,
        generation=record.generation if record else 0,
        kind=Kind.SAY,
        actor="cli:bench",
        who="bench",
        via="cli",
        marker=new_marker(),
        text=f"message {number}",
        raw=False,
        order_us=number,
        created_at=system.clock.now(),
    )


def _chain(here: Stage, names: list[str]) -> float:
    """Return the milliseconds of as many processes, one after the other."""
    begun = time.perf_counter()
    for number in range(MESSAGES):
        target = f"=loop-standing-{names[number % SESSIONS]}:"
        words = here.tmux(
            "load-buffer", "-b", "bench", "-", ";", "paste-buffer", "-d", "-r", "-b", "bench", "-t", target
        )
        words += [";", "set-buffer", "-b", "enter", "\r", ";", "paste-buffer", "-d", "-r", "-b", "enter", "-t", target]
        text = f"[bench via cli] message {number}\n".encode()
        subprocess.run(words, env=here.environ, input=text, capture_output=True, check=True, timeout=20)
    return 1000 * (time.perf_counter() - begun)


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
