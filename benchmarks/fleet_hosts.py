"""What a fleet costs its hosts: memory, a reply that crosses from the gateway, a local say without the database.

A gateway and a host without tokens are two homes over a PostgreSQL server of their own; beside them runs a single host
with a workspace of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

from benchmarks import service_at_rest
from benchmarks.cold_say import until_read
from benchmarks.event_to_pane import latency, reading_document, say_in, served, tokens_of
from benchmarks.measuring import Ratio, compare, report
from benchmarks.say_to_pane import Pane
from benchmarks.stage import Stage, script, stage
from core.base.paths import StatePaths
from core.fleet import membership
from core.fleet.access import Access
from core.fleet.postgres import connected
from embedded.workspace.thread import WorkspaceThread
from tests.support.fleets import made_database
from tests.support.postgres import MISSING, Cluster, programs, running_cluster

MEMORY_BOUND, SAY_BOUND, REPLY_BOUND = 1.5, 1.1, 1.0
SINGLE, ROUND_TRIPS = 2.0, 2.5  #: what a reply over two hosts may cost: times that of one host, and round trips
_FLOOR = "import sys, slack_bolt, psycopg; print('ready', flush=True); sys.stdin.read()"
_REPLIES, _SAYS, _TRIPS = 51, 21, 101


def ratios() -> Iterator[Ratio]:
    """Yield the ratios of the memory, of a reply, and of a local `say` while the database is away."""
    found = programs()
    if found is None:
        print(f"fleet_hosts: left out: {MISSING}", file=sys.stderr)
        return
    with running_cluster(found) as cluster:
        yield from _measured(cluster)


def _measured(cluster: Cluster) -> Iterator[Ratio]:
    url = cluster.url(made_database(cluster))
    with ExitStack() as stack:
        shared, own = (stack.enter_context(WorkspaceThread()) for _ in range(2))
        gate, build, single = (stack.enter_context(stage()) for _ in range(3))
        there, here = (stack.enter_context(closing(Pane(one.folder))) for one in (build, single))
        document = reading_document(gate, shared)
        gate.configure({**document, "standingSessions": {"sessions": []}, "fleet": _fleet("gate", gateway=True)})
        build.configure({**reading_document(build, shared), "fleet": _fleet("build", gateway=False)})
        single.configure(reading_document(single, own))
        _join(url, "gate", gate, gateway=True)
        access = _join(url, "build", build, gateway=False)
        gate.environ |= tokens_of(shared)
        speaking = stack.enter_context(service_at_rest.running([script("the-loop"), "serve"], gate.environ))
        shared.wait_for_connections(1, 60.0)
        across = stack.enter_context(served(build, shared, tokens=False))
        alone = stack.enter_context(served(single, own))

        yield Ratio(
            "`the-loop serve` at rest as the gateway of a fleet", "a process that imported slack_bolt and psycopg",
            "MiB", (service_at_rest.steady(speaking),), (_floor(gate),), MEMORY_BOUND,
        )  # fmt: skip

        both = compare(
            ("a reply over two hosts to bytes read", latency(there, lambda word: say_in(shared, word, across))),
            ("a reply on one host", latency(here, lambda word: say_in(own, word, alone))),
            bound=REPLY_BOUND,
            runs=_REPLIES,
        )
        trip = _round_trip(access)
        yield both._replace(
            floor=f"{SINGLE:g} x on one host + {ROUND_TRIPS:g} x the round trip of {trip:.2f} ms",
            floor_values=tuple(SINGLE * one + ROUND_TRIPS * trip for one in both.floor_values),
        )

        cluster.stop()
        yield compare(
            ("`the-loop standing say` to bytes read while the fleet's database is away", until_read(build, there)),
            ("the same without a fleet", until_read(single, here)),
            bound=SAY_BOUND,
            runs=_SAYS,
        )


def _fleet(host: str, *, gateway: bool) -> dict[str, object]:
    return {"enabled": True, "host": host, "gateway": gateway}


def _join(url: str, host: str, at: Stage, *, gateway: bool) -> Access:
    root = at.folder / "state" / "the-loop"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return membership.join(membership.invite(url, host, gateway=gateway), StatePaths(root).fleet)


def _floor(here: Stage) -> float:
    with service_at_rest.running([sys.executable, "-c", _FLOOR], here.environ) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise RuntimeError("slack_bolt and psycopg cannot be imported: type `make bench`")
        return service_at_rest.steady(process)


def _round_trip(access: Access) -> float:
    """Return the median of a bare question to the database, in milliseconds."""
    connection = connected(access.parameters())
    with closing(connection):
        taken = []
        for _ in range(_TRIPS):
            begun = time.perf_counter()
            connection.execute("SELECT 1")
            taken.append(1000 * (time.perf_counter() - begun))
    return sorted(taken)[len(taken) // 2]


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
