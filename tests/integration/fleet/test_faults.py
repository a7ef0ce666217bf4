"""What the exchange in PostgreSQL does when its server is killed, put back to an older state, or silent."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from core.base.errors import CoreError
from core.fleet.access import Access
from core.fleet.exchange import (
    SECONDS,
    Answer,
    Call,
    Evicted,
    ExchangeAway,
    GatewayExchange,
    LayoutUnknown,
    Lease,
    LeaseLost,
    LoginRefused,
    NewCall,
    SecondIncarnation,
    new_id,
)
from core.fleet.postgres import Database, PostgresFleet, connected
from tests.support.fleets import BEAT, THREAD, PostgresRig, call, made_database, session, started
from tests.support.postgres import Cluster, needed, running_cluster
from tests.support.socketrelay import SocketRelay
from tests.support.tmux import wait_until


@pytest.fixture(scope="module")
def own_server() -> Iterator[Cluster]:
    """Give a server that a test may kill."""
    with running_cluster(needed()) as made:
        yield made


@pytest.fixture
def frail(own_server: Cluster, tmp_path: Path) -> Iterator[PostgresRig]:
    """Give a fleet on it."""
    rig = PostgresRig(own_server, made_database(own_server), tmp_path)
    yield rig
    rig.close()


def test_a_killed_server_loses_doubles_and_reorders_nothing(frail: PostgresRig) -> None:
    """It is stopped at once, five times, while a gateway sends and a host takes: each repeats what it cannot know."""
    own_server = frail.cluster
    gateway = frail.admit("gate", gateway=True).as_gateway()
    host = started(frail.admit("lap"))
    lease = _held(gateway)
    amount, taken = 300, list[str]()
    failed = list[str]()

    def send() -> None:
        for number in range(amount):
            _until_there(partial(gateway.send, lease, [call("lap", str(number))]))

    def take() -> None:
        seen = dict[str, str]()
        deadline = time.monotonic() + 90
        while len(seen) < amount and time.monotonic() < deadline:
            calls = _until_there(partial(host.take, 7))
            for one in calls:
                if one.id not in seen:
                    seen[one.id] = one.body
                    taken.append(one.body)
            _until_there(partial(host.done, [Answer(one.id) for one in calls]))

    threads = [threading.Thread(target=_noted, args=(one, failed)) for one in (send, take)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for _ in range(5):
        time.sleep(chance.uniform(0.1, 0.3))  # how long the two work before the server is killed
        own_server.stop(signal.SIGQUIT)
        own_server.start()
    for thread in threads:
        thread.join(120)

    assert failed == []
    assert taken == [str(number) for number in range(amount)]


def _noted(work: Callable[[], None], failed: list[str]) -> None:
    """Do the work of a thread; what it raises is for the thread that waits for it."""
    try:
        work()
    except (CoreError, AssertionError) as error:
        failed.append(repr(error))


_T = TypeVar("_T")


def _until_there(ask: Callable[[], _T]) -> _T:
    """Return what is asked for, asking again while the server is away."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask()
        except ExchangeAway:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _held(gateway: GatewayExchange) -> Lease:
    lease = _until_there(gateway.lease)
    assert lease is not None
    return lease


def test_after_an_older_state_numbers_come_again_and_nothing_is_mistaken_for_another(frail: PostgresRig) -> None:
    """What was taken before the restoring is told by its id, not by its number, which a new call has now."""
    own_server = frail.cluster
    gateway = frail.admit("gate", gateway=True).as_gateway()
    host = started(frail.admit("lap"))
    lease = _held(gateway)
    gateway.send(lease, [call("lap", '"kept"')])
    own_server.stop(signal.SIGINT)
    own_server.copy("older")
    own_server.start()
    lost = call("lap", '"lost"')
    _until_there(partial(gateway.send, lease, [lost]))
    before = _until_there(partial(host.take, 9))
    own_server.stop(signal.SIGINT)
    own_server.restore("older")
    own_server.start()

    _until_there(partial(host.beat, BEAT))
    gateway.send(lease, [new := call("lap", '"new"')])
    host.done([Answer(lost.id)])  # taken before, and acknowledged after
    after = host.take(9)

    assert [one.body for one in before] == ['"kept"', '"lost"']
    assert [(one.id, one.body) for one in after] == [(before[0].id, '"kept"'), (new.id, '"new"')]
    assert after[1].number == before[1].number
    gateway.send(lease, [lost])
    assert [one.body for one in host.take(9)] == ['"kept"', '"new"', '"lost"']


def test_an_older_state_may_hold_an_older_lease_of_the_same_epoch(frail: PostgresRig) -> None:
    """The token tells them apart, so the gateway whose lease was lost with the state sends nothing."""
    own_server = frail.cluster
    first = frail.admit("gate", gateway=True).as_gateway()
    second = frail.admit("gate-2", gateway=True).as_gateway()
    frail.admit("lap")
    own_server.stop(signal.SIGINT)
    own_server.copy("older")
    own_server.start()
    lost = _held(first)
    own_server.stop(signal.SIGINT)
    own_server.restore("older")
    own_server.start()

    held = _held(second)

    assert held.epoch == lost.epoch
    with pytest.raises(LeaseLost):
        first.send(lost, [call("lap")])
    second.send(held, [call("lap")])


def test_a_takeover_waits_for_the_open_transaction_of_the_gateway_before(postgres: PostgresRig) -> None:
    """What that one commits comes before all that its successor sends."""
    access = postgres.access("gate", gateway=True)
    first = postgres.opened(access).as_gateway()
    second = postgres.admit("gate-2", gateway=True).as_gateway()
    host = started(postgres.admit("lap"))
    lease = first.lease(0.2)
    assert lease is not None
    slow = connected(access.parameters(), autocommit=False)
    slow.execute(
        "SELECT the_loop.send(%s, '{slow}', '{lap}', '{k}', '{1}', '{\"\"}', '{NULL}', "
        "'{}', '{}', '{}', '{}', '{}', '{}')",
        (lease.token,),
    )
    with postgres.admin() as admin:
        over = "SELECT until < clock_timestamp() FROM the_loop.lease"
        wait_until(lambda: admin.execute(over).fetchone() == (True,), "the lease has run out")
    taken = list[Lease | None]()
    other = threading.Thread(target=lambda: taken.append(second.lease()))
    other.start()
    with postgres.admin() as admin:
        held_up = (
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        wait_until(lambda: taken or admin.execute(held_up).fetchone() == (True,), "the takeover is under way")
    waited = not taken

    slow.commit()
    slow.close()
    other.join(10)

    assert waited
    assert taken[0] is not None
    second.send(taken[0], [call("lap", "2")])
    assert [one.body for one in host.take(9)] == ["1", "2"]
    with pytest.raises(LeaseLost):
        first.send(lease, [call("lap")])


def test_four_senders_at_once_keep_numbers_in_the_order_of_their_commits(postgres: PostgresRig) -> None:
    """A reader that takes while they send never sees a number that is lower than one it has seen."""
    gateway = postgres.admit("gate", gateway=True).as_gateway()
    host = started(postgres.admit("lap"))
    lease = _held(gateway)
    failed = list[str]()

    def send(sender: int) -> None:
        for number in range(25):
            gateway.send(lease, [call("lap", f"[{sender},{number}]") for _ in range(2)])

    threads = [threading.Thread(target=_noted, args=(partial(send, n), failed)) for n in range(4)]
    for thread in threads:
        thread.start()
    seen = list[Call]()
    deadline = time.monotonic() + 60
    while len(seen) < 200 and time.monotonic() < deadline:
        calls = host.take(50)
        seen += calls
        host.done([Answer(one.id) for one in calls])
    for thread in threads:
        thread.join(30)

    assert failed == []
    assert [one.number for one in seen] == list(range(1, 201))


def test_a_silent_server_is_noticed(frail: PostgresRig) -> None:
    """It is there, takes bytes and answers nothing: the question ends within its time, and says since when."""
    host = started(frail.admit("lap"))
    frail.cluster.signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(ExchangeAway, match=r"the fleet's database has not answered since \d\d:\d\d \("):
            host.beat(BEAT)
        assert SECONDS - 1 < time.monotonic() - began < SECONDS + 5
    finally:
        frail.cluster.signal(signal.SIGCONT)

    assert _until_there(partial(host.take, 1)) == ()


def test_a_server_that_is_not_there_is_told_at_once(frail: PostgresRig) -> None:
    """Whoever waits for calls goes on waiting, without asking over and over, and hears again once it is back."""
    host = started(frail.admit("lap"))
    gateway = frail.admit("gate", gateway=True).as_gateway()
    host.wait(0.1)
    frail.cluster.stop()

    with pytest.raises(ExchangeAway):
        host.take(1)
    waits, end = 0, time.monotonic() + 1.5
    while time.monotonic() < end:
        host.wait(0.5)
        waits += 1
    frail.cluster.start()

    lease = _held(gateway)
    host.wait(5)
    gateway.send(lease, [call("lap")])
    began = time.monotonic()
    host.wait(30)
    assert waits <= 6
    assert time.monotonic() - began < 5
    assert len(_until_there(partial(host.take, 9))) == 1


def test_a_connection_that_is_only_half_there_is_noticed(postgres: PostgresRig) -> None:
    """A router that forgot it, or a laptop that slept: nothing comes, and nothing says so."""
    access = postgres.access("lap")
    relay = SocketRelay(int(access.ports))
    fleet = PostgresFleet(replace(access, ports=str(relay.port)))
    host = started(fleet)
    relay.hold()
    began = time.monotonic()

    with pytest.raises(ExchangeAway, match="has not answered since"):
        host.take(1)

    assert time.monotonic() - began < SECONDS + 3
    relay.let_go()
    assert host.take(1) == ()
    fleet.close()
    relay.close()


def test_where_notifications_are_swallowed_it_looks_each_second(
    frail: PostgresRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some poolers take LISTEN and hand nothing on; then the host says so, and a call comes a second later."""
    gateway = frail.admit("gate", gateway=True).as_gateway()
    lease = _held(gateway)
    host = started(frail.admit("lap"))
    with frail.admin() as admin:
        admin.execute("CREATE OR REPLACE FUNCTION the_loop.tell(channel text) RETURNS void LANGUAGE sql AS 'SELECT'")
    ask = Database.ask
    monkeypatch.setattr(
        Database, "ask", lambda self, question, *values: "notify" in question or ask(self, question, *values)
    )
    assert host.beat(BEAT).listening
    host.wait(0)
    gateway.send(lease, [call("lap")])

    began = time.monotonic()
    host.wait(30)

    assert 0.5 < time.monotonic() - began < 5
    assert not host.beat(BEAT).listening
    assert len(host.take(1)) == 1


def test_a_copied_machine_learns_that_it_is_one(postgres: PostgresRig) -> None:
    """It has the same secret and the same state: the second of the two is refused by name, in every statement."""
    access = postgres.access("lap")
    first = started(postgres.opened(access), "boot 1")
    first.publish([session("u1", THREAD)])
    clone = postgres.opened(access).as_host(new_id(), "boot 2")

    with pytest.raises(SecondIncarnation, match="another machine runs as lap"):
        clone.beat(BEAT)
    with pytest.raises(SecondIncarnation):
        clone.publish([], whole=True)

    assert b"guide" in first.sessions()


def test_a_secret_that_does_not_count_is_told(postgres: PostgresRig) -> None:
    """Not as a database that is away: waiting does not mend it."""
    access = postgres.access("lap")

    with pytest.raises(LoginRefused, match="invite it again"):
        postgres.opened(replace(access, secret="wrong")).as_host(new_id(), "m").beat(BEAT)


def test_an_evicted_host_learns_it_at_its_next_login(postgres: PostgresRig) -> None:
    """Also where its service has just started."""
    access: Access = postgres.access("lap")
    postgres.evict("lap")

    with pytest.raises(Evicted):
        postgres.opened(access).as_host(new_id(), "m").beat(BEAT)


@pytest.mark.parametrize(("layout", "serves_from", "remedy"), [(9, 9, "upgrade the-loop"), (0, 0, "fleet init")])
def test_a_layout_that_is_not_known_is_refused(
    postgres: PostgresRig, layout: int, serves_from: int, remedy: str
) -> None:
    """A newer one that serves this release is well; one that is too old or too new says what to do."""
    host = started(postgres.admit("lap"))
    with postgres.admin() as admin:
        admin.execute("UPDATE the_loop.fleet SET layout = 9, serves_from = 1")
        host.beat(BEAT)
        admin.execute("UPDATE the_loop.fleet SET layout = %s, serves_from = %s", (layout, serves_from))
        try:
            with pytest.raises(LayoutUnknown, match=remedy):
                host.beat(BEAT)
        finally:
            admin.execute("UPDATE the_loop.fleet SET layout = 1, serves_from = 1")


def test_a_read_only_server_counts_as_lost(postgres: PostgresRig) -> None:
    """After a failover the old primary may go on answering questions: nothing can be kept there."""
    host = started(postgres.admit("lap"))
    with postgres.admin() as admin:
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
        try:
            _wait_read_only(postgres, "on")
            for _ in range(2):  # with the connection that was open, and with a new one
                with pytest.raises(ExchangeAway, match="read-only"):
                    host.beat(BEAT)
        finally:
            admin.execute("SET default_transaction_read_only = off")
            admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
            admin.execute("SELECT pg_reload_conf()")
            _wait_read_only(postgres, "off")


def _wait_read_only(postgres: PostgresRig, shown: str) -> None:
    """Wait until a new connection has the setting: by then each process of the server was told of it."""

    def look() -> bool:
        with postgres.admin() as fresh:
            return fresh.execute("SHOW default_transaction_read_only").fetchone() == (shown,)

    wait_until(look, f"the server is read-only: {shown}")


def test_the_same_sending_may_be_repeated(postgres: PostgresRig) -> None:
    """Under way twice at once, each call is there once."""
    gateway = postgres.admit("gate", gateway=True).as_gateway()
    host = started(postgres.admit("lap"))
    lease = _held(gateway)
    calls = [NewCall(new_id(), "lap", "receive", str(number)) for number in range(50)]
    failed = list[str]()
    threads = [threading.Thread(target=_noted, args=(lambda: gateway.send(lease, calls), failed)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert failed == []
    assert [one.body for one in host.take(999)] == [str(number) for number in range(50)]
