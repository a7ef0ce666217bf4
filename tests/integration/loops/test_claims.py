"""Schedulers in processes of their own: each due run is committed once, whoever is killed on the way."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.failpoints import CRASH_VARIABLE, Failpoint
from core.model.activity import Activity, ActivityState
from core.model.loop import Held, Loop, LoopStatus, Mode, RunState
from core.model.message import TICKS, InboxRow, MessageState
from core.model.session import Hold, HoldKind, SessionRecord, Status
from core.service.wiring import build_system
from core.session.system import System
from tests.support.simulated import settings_of
from tests.support.tmux import PATIENCE, wait_until
from tests.unit.store.samples import a_record

OF_A_SCHEDULER = [each for each in Failpoint if each.value.startswith("loop.") and each is not Failpoint.LOOP_GATE]
RUNS, SESSIONS = 1000, 50
LEASE = 2.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a state root."""
    return tmp_path / "state"


@pytest.fixture
def system(root: Path) -> Iterator[System]:
    """Give the ports over it."""
    system = build_system(settings_of(root), dict(os.environ))
    yield system
    system.close()


@contextmanager
def scheduler(root: Path, lease: float = LEASE, crash_at: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Run a scheduler for the block, or until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.scheduling", str(root), str(lease)],
        env={**os.environ, CRASH_VARIABLE: crash_at},
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()


def record_session(system: System, name: str, **changes: object) -> SessionRecord:
    """Record a session that runs, as far as its record says."""
    now = datetime.now(UTC)
    record = a_record(name, status=Status.RUNNING, instance_id=f"i-{name}", started_at=now, **changes)
    system.records.write(record)
    return record


def a_due_loop(record: SessionRecord, number: int, **changes: object) -> Loop:
    """Return a loop that was due a moment ago."""
    now = datetime.now(UTC)
    values: dict[str, object] = {
        "id": f"loop_{number:06}",
        "uid": record.uid,
        "name": record.name,
        "instruction": f"look at {number}",
        "mode": Mode.INTERVAL,
        "created_by": "cli:ann",
        "created_at": now - timedelta(minutes=6),
        "interval": timedelta(minutes=5),
        "next_run_at": now - timedelta(minutes=1),
    }
    return Loop(**{**values, **changes})  # type: ignore[arg-type]


def ticks(system: System, uids: list[str]) -> list[InboxRow]:
    """Return every tick that was committed."""
    rows = [row for uid in uids for row in system.inbox.with_states(uid, frozenset(MessageState), 5000)]
    return [row for row in rows if row.message.kind in TICKS]


def test_a_thousand_due_runs_are_committed_once_though_one_scheduler_is_killed(system: System, root: Path) -> None:
    """Two at a time; the first is killed in the middle of its claims, and the other takes them once they lapse."""
    records = [record_session(system, f"s{number}") for number in range(SESSIONS)]
    with system.database.transaction(durable=True):
        for number in range(RUNS):
            system.loops.add(a_due_loop(records[number % SESSIONS], number), 0)
    uids = [record.uid for record in records]

    with scheduler(root) as doomed, scheduler(root):
        wait_until(lambda: len(ticks(system, uids)) > 20, "some are committed", 60)
        os.kill(doomed.pid, signal.SIGKILL)
        wait_until(lambda: len(ticks(system, uids)) >= RUNS, "all are committed", 120)
        wait_until(lambda: not any(run.state is RunState.CLAIMED for run in system.loops.open_runs()), "none is left")

    rows = ticks(system, uids)
    assert Counter(row.message.actor for row in rows) == Counter(f"loop:loop_{n:06}" for n in range(RUNS))
    assert len({row.message.key for row in rows}) == RUNS
    assert {run.message_id for run in system.loops.open_runs()} == {row.message.id for row in rows}


def test_a_run_that_was_claimed_by_the_dead_comes_back_under_its_id(system: System, root: Path) -> None:
    """And is sent then, once."""
    record = record_session(system, "scribe")
    system.loops.add(a_due_loop(record, 1), 0)
    with scheduler(root, crash_at=f"{Failpoint.LOOP_CLAIM.value}:after") as doomed:
        assert doomed.wait(PATIENCE) == -signal.SIGKILL
    [claimed] = system.loops.open_runs()

    with scheduler(root):
        wait_until(lambda: ticks(system, [record.uid]), "it is sent")

    [sent] = system.loops.open_runs()
    [row] = ticks(system, [record.uid])
    assert (claimed.state, sent.state) == (RunState.CLAIMED, RunState.SENT)
    assert sent.id == claimed.id
    assert row.message.key == f"loop:{claimed.id}"


def bring_about(system: System, effect: Failpoint) -> SessionRecord:
    """Bring about what makes a scheduler come to the effect."""
    record = record_session(system, "scribe")
    now = datetime.now(UTC)
    loop = a_due_loop(record, 1)
    if effect is Failpoint.LOOP_RELEASE:
        loop = a_due_loop(record, 1, held=Held.PAUSED, held_at=now)
    if effect is Failpoint.LOOP_EXPIRE:
        system.records.write(a_record("scribe", hold=Hold(HoldKind.PAUSED, "cli:ann", "", now)))
        loop = a_due_loop(record, 1, status=LoopStatus.PAUSED, created_at=now - timedelta(days=8))
    system.loops.add(loop, 0)
    if effect is Failpoint.LOOP_SETTLE:
        with scheduler(system.paths.root):
            wait_until(lambda: ticks(system, [record.uid]), "it is sent")
        system.activities.put(Activity(record.uid, "i-scribe", ActivityState.BUSY, now))
        [row] = ticks(system, [record.uid])
        claimed = system.inbox.advance(row, MessageState.CLAIMED, instance="i-scribe")
        system.inbox.advance(claimed, MessageState.CONFIRMED)
    return record


def check(system: System, record: SessionRecord, effect: Failpoint) -> bool:
    """Return whether what was to happen has happened, once."""
    [loop] = system.loops.of_session(record.uid)
    rows = ticks(system, [record.uid])
    if effect is Failpoint.LOOP_EXPIRE:
        return loop.status is LoopStatus.STOPPED and not rows
    if effect is Failpoint.LOOP_SETTLE:
        return loop.run_count == 1 and len(rows) == 1 and not system.loops.open_runs()
    if effect is Failpoint.LOOP_RELEASE:
        return loop.held is None and len(rows) == 1
    return len(rows) == 1


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("effect", OF_A_SCHEDULER, ids=lambda effect: effect.value)
def test_a_scheduler_killed_at_any_effect_loses_and_doubles_nothing(
    system: System, root: Path, effect: Failpoint, side: str
) -> None:
    """The next one goes on from what is on the disk."""
    record = bring_about(system, effect)
    with scheduler(root, crash_at=f"{effect.value}:{side}") as doomed:
        assert doomed.wait(PATIENCE) == -signal.SIGKILL

    with scheduler(root, lease=0.5):
        wait_until(lambda: check(system, record, effect), "it is done")
    with scheduler(root):
        wait_until(lambda: not any(run.state is RunState.CLAIMED for run in system.loops.open_runs()), "none is left")

    assert check(system, record, effect)
