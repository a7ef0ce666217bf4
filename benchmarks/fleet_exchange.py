"""The exchange between hosts, in a PostgreSQL server of its own: a long list, a host at rest, a gateway that ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Ratio, call_time, compare, report
from core.fleet import access
from core.fleet.exchange import LEASE_SECONDS, Lease, NewCall, PublishedSession, new_id
from core.fleet.postgres import PostgresFleet, connected
from tests.support.fleets import BEAT, PostgresRig, made_database, started
from tests.support.postgres import MISSING, programs, running_cluster

ROWS = 5_000
LIST_BOUND = 3.0
REST_SECONDS = 60
BEAT_SECONDS = 10.0  #: between two beats of a host
STATEMENTS = 0.3  #: a second
KILLED_BOUND = 1.5  #: times the lease
STOPPED_BOUND = 2.0  #: seconds
RENEWAL_SECONDS = 3.0
_RUNS = 3


def ratios() -> Iterator[Ratio]:
    """Yield the ratios of the list, of the statements at rest, and of both ways in which a gateway ends."""
    found = programs()
    if found is None:
        print(f"fleet_exchange: left out: {MISSING}", file=sys.stderr)
        return
    with running_cluster(found, {"log_statement": "all"}) as cluster, tempfile.TemporaryDirectory() as folder:
        rig = PostgresRig(cluster, made_database(cluster), Path(folder))
        yield _list(rig)
        yield _at_rest(rig)
        yield from _failover(rig, Path(folder) / "gate")
        rig.close()


def _list(rig: PostgresRig) -> Ratio:
    """A list of all sessions, as the service hands it on; the floor is a SELECT of as many rows of the same bytes."""
    made = rig.access("lap")
    host = started(rig.opened(made))
    row = {"name": "", "status": "running", "cwd": "/home/ann/project", "detail": "x" * 600, "capabilities": {}}
    for begun in range(0, ROWS, 500):
        names = [f"session-{number}" for number in range(begun, begun + 500)]
        host.publish([PublishedSession(name, name, json.dumps({**row, "name": name})) for name in names])
    same = host.sessions()
    with rig.admin() as admin:
        admin.execute("CREATE TABLE public.same (bytes text)")
        for line in json.loads(same):
            admin.execute("INSERT INTO public.same VALUES (%s)", (json.dumps(line),))
        admin.execute("GRANT SELECT ON public.same TO PUBLIC")
    bare = connected(made.parameters())

    def select() -> int:
        return len(bare.execute("SELECT bytes FROM public.same").fetchall())

    assert select() == ROWS
    ratio = compare(
        (f"a list of {ROWS:,} sessions of all hosts ({len(same) / 2**20:.1f} MiB)", call_time(host.sessions)),
        (f"a SELECT of {ROWS:,} rows of the same bytes", call_time(select)),
        bound=LIST_BOUND,
        runs=15,
    )
    bare.close()
    return ratio


def _at_rest(rig: PostgresRig) -> Ratio:
    """Statements that the server is sent by a host that beats, waits, and has nothing to do."""
    log = rig.cluster.folder / "log"
    host = started(rig.admit("idle"))
    host.wait(0)
    before = _statements(log)
    end = time.monotonic() + REST_SECONDS
    while (rest := end - time.monotonic()) > 0:
        host.wait(min(rest, BEAT_SECONDS))
        standing = host.beat(BEAT)
        if standing.calls:
            host.take(1)
    sent = _statements(log) - before
    return Ratio(
        f"statements of a host at rest in {REST_SECONDS} s", f"{STATEMENTS} a second", "statements",
        (float(sent),), (STATEMENTS * REST_SECONDS,), 1.0,
    )  # fmt: skip


def _statements(log: Path) -> int:
    text = log.read_text(encoding="utf-8", errors="replace")
    return text.count("LOG:  execute ") + text.count("LOG:  statement: ")


def _failover(rig: PostgresRig, folder: Path) -> Iterator[Ratio]:
    """From the end of the process that has the lease to the first call that the other gateway commits."""
    access.keep(folder, rig.access("gate", gateway=True))
    standby = rig.admit("gate-2", gateway=True).as_gateway()
    rig.admit("lap")
    ends = ((signal.SIGKILL, "a kill", LEASE_SECONDS, KILLED_BOUND), (signal.SIGTERM, "a stop", 1.0, STOPPED_BOUND))
    for how, what, floor, bound in ends:
        seconds = []
        for _ in range(_RUNS):
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fleet_exchange", str(folder)], stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            assert standby.lease() is None
            process.send_signal(how)
            begun = time.monotonic()
            lease: Lease | None = None
            while lease is None:
                standby.wait(1.0)
                lease = standby.lease()
            standby.send(lease, [NewCall(new_id(), "lap", "receive", "{}")])
            seconds.append(time.monotonic() - begun)
            standby.release(lease)
            process.wait(20)
            process.stdout.close()
        floors = (floor,) * len(seconds)
        against = f"a lease of {floor:g} s" if how is signal.SIGKILL else "a second"
        yield Ratio(
            f"from {what} of the gateway to the next one's first commit", against, "s", tuple(seconds), floors, bound
        )


def _hold(folder: Path) -> None:
    """Be the gateway until somebody asks to stop."""
    fleet = PostgresFleet(access.kept(folder))
    gateway = fleet.as_gateway()
    stopping = list[int]()

    def stop(number: int, _: object) -> None:
        stopping.append(number)
        gateway.wake()

    signal.signal(signal.SIGTERM, stop)
    lease = gateway.lease()
    while lease is None:
        gateway.wait(0.5)
        lease = gateway.lease()
    gateway.renew(lease)
    print("held", flush=True)
    while not stopping:
        gateway.wait(RENEWAL_SECONDS)
        gateway.renew(lease)
    gateway.release(lease)
    fleet.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _hold(Path(sys.argv[1]))
        sys.exit(0)
    sys.exit(report(list(ratios())))
