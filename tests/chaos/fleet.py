"""`python -m tests.chaos.fleet [--hosts 4] [--sessions 50] [--replies 1000] [--seed N]`: exit 1 unless all is well.

A fleet over a PostgreSQL server of its own: each host is a home, a state root and a tmux server; two of them may be the
gateway. While people speak in the sessions' threads, `tests.chaos.fleettrouble` makes trouble; in the end what the
agents read, the hosts' inboxes and the threads are compared with what was said.
"""

import argparse
import random
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from core.fleet import membership
from embedded.workspace.thread import WorkspaceThread
from tests.chaos.fleettrouble import FleetTrouble, Member
from tests.chaos.judging import (
    Row,
    Said,
    Verdict,
    doubled_posts,
    judge,
    numbers_in,
    rows_of,
    untrue_marks,
    untrue_notes,
)
from tests.chaos.running import report, talk
from tests.support.fleets import made_database
from tests.support.postgres import MISSING, Cluster, programs, running_cluster
from tests.support.product import Product, product
from tests.support.socketrelay import SocketRelay
from tests.support.tmux import wait_until

_GATEWAYS = 2
_REST_SECONDS = 60.0
_LATE_SECONDS = 2.0  #: in which a reply that goes in twice would do so
_LONG = 500  #: replies from which on trouble may outlast a gateway's lease


@dataclass(frozen=True)
class Plan:
    """How much of everything. `pause`: seconds between two replies of one person, at most."""

    hosts: int = 4
    sessions: int = 50
    people: int = 5
    replies: int = 1000
    seed: int = 0
    pause: float = 1.0
    settle_seconds: float = 300.0


@dataclass(frozen=True)
class Place:
    """Where a session is: its host, its name there, and its thread."""

    host: str
    name: str
    thread: str


def run(plan: Plan, cluster: Cluster) -> tuple[Verdict, Mapping[str, int]]:
    """Run it over a server that runs, and return what came of it, and the trouble that was made.

    Raises AssertionError if it cannot be run.
    """
    people = [f"person{number}" for number in range(plan.people)]
    with WorkspaceThread(retry_scale=0.02, ack_seconds=2.0) as workspace:
        for person in people:
            workspace.add_user(person)
            workspace.join(person, "agents")
        database = made_database(cluster)
        with _fleet(plan, workspace, cluster.url(database), cluster.port, people) as members:
            places = _places(plan, members)
            trouble = FleetTrouble(members, cluster, workspace, random.Random(plan.seed), long=plan.replies >= _LONG)
            threads = {key: place.thread for key, place in places.items()}
            trouble.start()
            try:
                said = talk(workspace, plan.seed, plan.replies, plan.pause, people, threads)
            finally:
                trouble.end()
            verdict = _settled(plan.settle_seconds, lambda: _judged(workspace, members, places, said))
            with suppress(AssertionError):  # then it is told as not settled
                wait_until(
                    lambda: not _under_way(cluster, database), "the hosts have taken all calls", _REST_SECONDS, 0.5
                )
            if verdict.good:  # what comes late is looked for once more
                time.sleep(_LATE_SECONDS)
                verdict = _settled(_REST_SECONDS, lambda: _judged(workspace, members, places, said))
            verdict.open.extend(_under_way(cluster, database))
            return verdict, trouble.made


@contextmanager
def _fleet(
    plan: Plan, workspace: WorkspaceThread, url: str, port: int, people: Sequence[str]
) -> Iterator[Mapping[str, Member]]:
    """Give the hosts by name, all of them serving; every one has sessions of the same names."""
    prepared = dict[str, tuple[Product, SocketRelay, bool]]()
    with ExitStack() as stack:
        for number in range(plan.hosts):
            host, gateway = f"h{number}", number < _GATEWAYS
            amount = len(range(number, plan.sessions, plan.hosts))
            line = SocketRelay(port)
            stack.callback(line.close)
            running = stack.enter_context(product(workspace))
            running.relayed = False
            _configure(running, host, gateway, amount, people)
            running.paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            invitation = membership.invite(url, host, gateway=gateway, address=f"127.0.0.1:{line.port}")
            membership.join(invitation, running.paths.fleet)
            if not gateway:
                running.forget_tokens()
            prepared[host] = running, line, gateway
        with ThreadPoolExecutor() as pool:
            services = pool.map(lambda one: one[0].serve(), prepared.values())
            yield {host: Member(*one, service) for (host, one), service in zip(prepared.items(), services, strict=True)}


def _configure(running: Product, host: str, gateway: bool, amount: int, people: Sequence[str]) -> None:
    block = running.slack_block(
        authorizedUsers=[running.workspace.user_id(person) for person in people], verbosity="quiet"
    )
    session: dict[str, Any] = {"prompt": "Look after it.", "slack": {"enabled": True}}
    running.configure(
        fleet={"enabled": True, "host": host, "gateway": gateway},
        limits={"queuedPerSession": 5000},
        channels={"slack": block},
        standingSessions={
            "enabled": True,
            "sessions": [{"name": f"agent{number}", **session} for number in range(amount)],
        },
    )


def _places(plan: Plan, members: Mapping[str, Member]) -> Mapping[str, Place]:
    """Return where each session is by `NAME@HOST`, once all of them are announced."""
    found = dict[str, Place]()

    def look() -> bool:
        for host, member in members.items():
            for name, thread in _bound(member.product):
                found[f"{name}@{host}"] = Place(host, name, thread)
        return len(found) >= plan.sessions

    wait_until(look, f"{plan.sessions} sessions are announced", 60 + 4 * plan.sessions, every=0.2)
    return dict(sorted(found.items()))


def _bound(running: Product) -> list[tuple[str, str]]:
    with suppress(sqlite3.OperationalError), closing(_store(running)) as database:  # else the service is writing
        return database.execute("SELECT name, thread FROM bindings WHERE thread <> ''").fetchall()
    return []


def _store(running: Product) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{running.paths.database}?mode=ro", uri=True, timeout=20)


def _judged(
    workspace: WorkspaceThread, members: Mapping[str, Member], places: Mapping[str, Place], said: Sequence[Said]
) -> Verdict:
    """Return what can be said now. Marks and notes are looked at once nothing is lost or open."""
    taken = {key: numbers_in(members[place.host].product.taken(place.name)) for key, place in places.items()}
    rows = dict[str, Row]()
    for host, member in members.items():
        rows.update(rows_of(member.product, {p.name: p.thread for p in places.values() if p.host == host}))
    verdict = judge(said, taken, rows)
    if verdict.lost or verdict.open:
        return verdict
    marks = {one.ts: [mark for mark, by in workspace.reactions("agents", one.ts).items() if by] for one in said}
    verdict.untrue.extend(untrue_marks(said, taken, marks))
    for key, place in places.items():
        texts = [m["text"] for m in workspace.replies("agents", place.thread) if "bot_id" in m]
        own = [rows[one.ts] for one in said if one.session == key]
        verdict.untrue.extend(untrue_notes(key, texts, own, silent=False))  # no host is away for a minute
        verdict.reposted.extend(doubled_posts(key, texts))
    return verdict


def _settled(seconds: float, look: Callable[[], Verdict]) -> Verdict:
    """Return the verdict once nothing is lost, open or untrue any more, or when the time is over."""
    last = Verdict(open=["no inbox could be read"])

    def is_settled() -> bool:
        nonlocal last
        try:
            last = look()
        except sqlite3.OperationalError:  # a service is writing
            return False
        return not (last.lost or last.open or last.unsaid or last.untrue)

    with suppress(AssertionError):  # then the verdict says what is missing
        wait_until(is_settled, "nothing is lost, open or untrue", seconds, every=0.5)
    return last


def _under_way(cluster: Cluster, database: str) -> list[str]:
    """Return the replies that lie in the database still."""
    with cluster.admin(database) as admin:
        found = admin.execute("SELECT host, count(*) FROM the_loop.calls WHERE kind = 'reply' GROUP BY host").fetchall()
    return [f"{count} calls to {host} in the database" for host, count in found]


def main(words: Sequence[str]) -> int:
    """Run once, print what came of it and how to repeat it, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.fleet")
    parser.add_argument("--hosts", type=int, default=4, help=f"at least {_GATEWAYS + 1}: that many may be the gateway")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--people", type=int, default=5)
    parser.add_argument("--replies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two replies of one person, at most")
    chosen = parser.parse_args(words)
    if chosen.hosts <= _GATEWAYS or chosen.sessions < chosen.hosts:
        parser.error(f"--hosts must be {_GATEWAYS + 1} or more, and --sessions at least as many")
    found = programs()
    if found is None:
        print(MISSING, file=sys.stderr)
        return 2
    plan = Plan(chosen.hosts, chosen.sessions, chosen.people, chosen.replies, chosen.seed, chosen.pause)
    print(f"seed {plan.seed}: {plan.replies} replies to {plan.sessions} sessions of {plan.hosts} hosts", flush=True)
    began = time.monotonic()
    with running_cluster(found) as cluster:
        verdict, made = run(plan, cluster)
    return report(verdict, made, plan.seed, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
