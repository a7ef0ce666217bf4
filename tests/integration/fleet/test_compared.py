"""The exchange in memory and that in PostgreSQL answer alike, whatever is asked of them in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from core.base.errors import CoreError
from core.base.values import replace
from core.fleet.exchange import (
    Answer,
    Beat,
    Fleet,
    GatewayExchange,
    HostExchange,
    HostPost,
    Lease,
    Moved,
    NewCall,
    Place,
    PostResult,
    PublishedSession,
    Route,
)
from tests.support.fleets import FleetRig, MemoryRig, PostgresRig
from tests.support.postgres import Cluster

HOSTS = ("build", "gate", "lap")
PLACES = tuple(Place("talk", "T1", channel, thread) for channel in ("C1", "C2") for thread in ("", "1.1", "2.2"))
THREADS = tuple(place for place in PLACES if place.thread)
hosts, places, threads = st.sampled_from(HOSTS), st.sampled_from(PLACES), st.sampled_from(THREADS)
gateways = st.sampled_from(("gate", "gate", "gate", "lap", "build"))  # it has the lease first
uids = st.sampled_from(("u1", "u2", "u3", "u4"))
cursors = st.sampled_from(("", "5.0", "9.0"))
sharings = st.sampled_from((None, True, False))
sessions = st.builds(
    PublishedSession,
    uid=uids,
    name=st.sampled_from(("a", "b", "zoë")),
    row=st.sampled_from((*('{"name":"a"}', '{ "n" : [1] }') * 6, "{}", "nothing")),
    routes=st.lists(
        st.builds(Route, place=threads, cursor=cursors, shared=sharings), max_size=2, unique_by=lambda one: one.place
    ).map(tuple),
)


class Side:
    """One of the two exchanges, and what was made of it."""

    def __init__(self, rig: FleetRig) -> None:
        self.rig = rig
        self.fleets: dict[str, Fleet] = {}
        self.hosts: dict[str, HostExchange] = {}
        self.gateways: dict[str, GatewayExchange] = {}
        self.leases: dict[str, Lease] = {}
        for host in HOSTS:
            self.admit(host)

    def admit(self, host: str) -> None:
        """Let the host in; it may be the gateway unless it is `build`."""
        fleet = self.fleets[host] = self.rig.admit(host, gateway=host != "build")
        self.hosts[host] = fleet.as_host(f"first of {host}", f"machine of {host}")
        self.gateways[host] = fleet.as_gateway()

    def lease(self, host: str) -> bool:
        """Ask for the lease, and return whether it was given."""
        lease = self.gateways[host].lease()
        if lease is not None:
            self.leases[host] = lease
        return lease is not None

    def held(self, host: str) -> Lease:
        """Return the latest lease of the host, which it may have lost, or that of nobody."""
        return self.leases.get(host, Lease("nobody's", 0, 10.0))


def shown(found: Any) -> Any:
    """Return what both have to say alike: no time, and no age."""
    if isinstance(found, tuple | list):
        return [shown(one) for one in found]
    for name in ("now", "seen_at", "age", "remaining", "sending"):
        if hasattr(found, name):
            value = getattr(found, name)
            found = replace(found, **{name: value if name != "sending" or value is None else 0.0})
            found = replace(found, **{name: None}) if name != "sending" else found
    return found


def _beat(host: str, side: Side) -> object:
    return side.hosts[host].beat(Beat("1"))


def _publish(host: str, side: Side) -> object:
    nth = HOSTS.index(host)
    routes = (Route(THREADS[nth], "1.0", shared=True),)
    return side.hosts[host].publish([PublishedSession(f"u{nth + 1}", "a", '{"name":"a"}', routes=routes)])


class Compared(RuleBasedStateMachine):
    """Asks both the same."""

    make: Callable[[], tuple[MemoryRig, PostgresRig]]

    @initialize()
    def start(self) -> None:
        memory, self.postgres = type(self).make()
        self.sides = [Side(memory), Side(self.postgres)]
        self.numbers = count()
        self.calls = ["never"]
        self.posts = ["never"]
        for host in HOSTS:
            self.both(partial(_beat, host))
            self.both(partial(_publish, host))
        self.both(lambda side: side.lease("gate"))

    def teardown(self) -> None:
        if hasattr(self, "postgres"):
            self.postgres.close()

    def both(self, ask: Callable[[Side], Any]) -> Any:
        """Ask both, and return what they answered; an error is its code."""
        answers = []
        for side in self.sides:
            try:
                answers.append(shown(ask(side)))
            except CoreError as error:
                answers.append(error.code)
        assert answers[0] == answers[1]
        return answers[0]

    @rule(
        host=hosts,
        again=st.sampled_from((*("first",) * 5, "second")),
        machine=st.sampled_from((*("machine",) * 5, "other")),
    )
    def beats(self, host: str, again: str, machine: str) -> None:
        self.both(lambda side: side.fleets[host].as_host(f"{again} of {host}", f"{machine} of {host}").beat(Beat("1")))
        self.both(lambda side: side.hosts[host].beat(Beat("2")))

    @rule(host=hosts)
    def stops(self, host: str) -> None:
        self.both(lambda side: side.hosts[host].stopped())

    @rule(
        host=hosts,
        changed=st.lists(sessions, max_size=2, unique_by=lambda one: one.uid),
        gone=st.lists(uids, max_size=2),
        whole=st.booleans(),
    )
    def publishes(self, host: str, changed: list[PublishedSession], gone: list[str], whole: bool) -> None:
        told = [route.place for one in changed for route in one.routes]
        if len(set(told)) == len(told):  # a thread is of one session
            self.both(lambda side: side.hosts[host].publish(changed, gone, whole=whole))

    @rule(host=gateways)
    def elects(self, host: str) -> None:
        self.both(lambda side: side.lease(host))

    @rule(host=gateways)
    def renews(self, host: str) -> None:
        self.both(lambda side: side.gateways[host].renew(side.held(host)))

    @rule(host=gateways)
    def releases(self, host: str) -> None:
        self.both(lambda side: side.gateways[host].release(side.held(host)))

    @rule(
        host=gateways,
        to=st.lists(
            st.tuples(
                st.sampled_from(("lap", "lap", "build", "gate", "nowhere")), st.sampled_from(("", "", "", "u1", "u2"))
            ),
            max_size=3,
        ),
        moved=st.lists(st.builds(Moved, place=threads, cursor=cursors, shared=sharings), max_size=2),
        seconds=st.sampled_from((None, 30.0)),
    )
    def sends(self, host: str, to: list[tuple[str, str]], moved: list[Moved], seconds: float | None) -> None:
        calls = [NewCall(f"c{next(self.numbers)}", one, "receive", f'"{uid}"', uid, seconds) for one, uid in to]
        self.calls += [one.id for one in calls]
        self.both(lambda side: side.gateways[host].send(side.held(host), calls, moved))

    @rule(host=hosts, most=st.integers(1, 4))
    def takes(self, host: str, most: int) -> None:
        self.both(lambda side: side.hosts[host].take(most))

    @rule(host=hosts, nth=st.integers(0, 50), body=st.sampled_from((None, '"yes"')))
    def is_done(self, host: str, nth: int, body: str | None) -> None:
        call = self.calls[-1 - nth % len(self.calls)]
        self.both(lambda side: side.hosts[host].done([Answer(call, body)]))
        self.both(lambda side: side.gateways["gate"].answer(call, 0))

    @rule(host=gateways, nth=st.integers(0, 50))
    def withdraws(self, host: str, nth: int) -> None:
        call = self.calls[-1 - nth % len(self.calls)]
        self.both(lambda side: side.gateways[host].withdraw(side.held(host), call))

    @rule(host=hosts, what=st.lists(st.tuples(uids, places, st.integers(0, 2)), min_size=1, max_size=3))
    def hands_over(self, host: str, what: list[tuple[str, Place, int]]) -> None:
        posts = [HostPost(f"p{next(self.numbers)}", uid, place, rank, "post", f'"{host}"') for uid, place, rank in what]
        self.posts += [one.id for one in posts]
        self.both(lambda side: side.hosts[host].hand_over(posts))

    @rule(host=gateways, of=hosts, nth=st.integers(0, 50), and_result=st.booleans())
    def sends_a_post(self, host: str, of: str, nth: int, and_result: bool) -> None:
        post = self.posts[-1 - nth % len(self.posts)]
        self.both(lambda side: side.gateways[host].sending(side.held(host), of, post))
        if and_result:
            self.both(lambda side: side.gateways[host].posted(side.held(host), of, PostResult(post, '"ts"')))

    @rule(host=gateways, most=st.integers(1, 3))
    def reads_posts(self, host: str, most: int) -> None:
        self.both(lambda side: side.gateways[host].posts(side.held(host), most))

    @rule(host=hosts, nth=st.integers(0, 50))
    def forgets(self, host: str, nth: int) -> None:
        self.both(lambda side: side.hosts[host].results())
        post = self.posts[-1 - nth % len(self.posts)]
        self.both(lambda side: side.hosts[host].forget([post]))

    @rule(host=hosts)
    def reads(self, host: str) -> None:
        self.both(lambda side: side.hosts[host].hosts())
        self.both(lambda side: side.gateways[host].routes())
        self.both(lambda side: len(side.hosts[host].sessions()))

    @rule(host=gateways, place=threads)
    def finds(self, host: str, place: Place) -> None:
        self.both(lambda side: side.gateways[host].route(place))

    @rule(host=gateways)
    def tidies(self, host: str) -> None:
        self.both(lambda side: side.gateways[host].tidy(side.held(host)))

    @rule(seconds=st.sampled_from((6, 15, 60, 4_000)))
    def passes(self, seconds: int) -> None:
        for side in self.sides:
            side.rig.let_pass(seconds)

    @precondition(lambda self: hasattr(self, "sides"))
    @rule(back=st.sampled_from((True, True, True, False)))
    def evicts(self, back: bool) -> None:
        self.both(lambda side: side.rig.evict("lap"))
        if back:
            for side in self.sides:
                side.admit("lap")
            self.both(lambda side: side.hosts["lap"].beat(Beat("3")))


def test_both_exchanges_answer_alike(cluster: Cluster, database: str, tmp_path: Path) -> None:
    """Every answer and every error's code."""
    folders = count()

    class Run(Compared):
        make = staticmethod(
            lambda: (MemoryRig(), PostgresRig(cluster, database, tmp_path / str(next(folders))))
        )  # fmt: skip

    run_state_machine_as_test(
        Run,
        settings=settings(
            phases=(Phase.reuse, Phase.generate),  # to shrink a failure takes minutes: leave this out for that
            max_examples=10,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
