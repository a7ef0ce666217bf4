"""What every exchange promises to the hosts and the gateway of a fleet."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from core.base.clock import from_iso
from core.base.errors import InvalidValue
from core.base.values import replace
from core.fleet.exchange import (
    ANSWER_SECONDS,
    BLOB_SECONDS,
    LEASE_SECONDS,
    PIECE,
    SILENT_SECONDS,
    Answer,
    BlobGone,
    Evicted,
    GatewayExchange,
    HostExchange,
    HostPost,
    HostState,
    Lease,
    LeaseLost,
    Moved,
    NotGateway,
    Place,
    PlaceRefused,
    PostResult,
    Route,
    SecondIncarnation,
    SessionElsewhere,
    UnknownHost,
    new_id,
)
from tests.support.fleets import BEAT, THREAD, FleetRig, call, session, started

OTHER = replace(THREAD, thread="200.2")


def held(gateway: GatewayExchange) -> Lease:
    """Return the gateway's lease, which nobody else has."""
    lease = gateway.lease()
    assert lease is not None
    return lease


def post(uid: str, place: Place = THREAD, rank: int = 3, body: str = "{}") -> HostPost:
    """Return a post of a session."""
    return HostPost(new_id(), uid, place, rank, "post", body)


@pytest.fixture
def gateway(rig: FleetRig) -> GatewayExchange:
    """Give the gateway's side of a host that may be one."""
    return rig.admit("gate", gateway=True).as_gateway()


@pytest.fixture
def lap(rig: FleetRig) -> HostExchange:
    """Give the side of a host whose service runs."""
    return started(rig.admit("lap"))


# --- hosts ------------------------------------------------------------------------------------------------------


def test_a_beat_tells_how_the_host_stands(lap: HostExchange, gateway: GatewayExchange) -> None:
    """Who speaks with the chat, and whether there is something to take."""
    before = lap.beat(BEAT)
    lease = held(gateway)
    gateway.send(lease, [call("lap")])

    after = lap.beat(BEAT)

    assert (before.gateway, before.calls, before.results, before.listening) == ("", False, False, True)
    assert (after.gateway, after.calls, after.results) == ("gate", True, False)
    assert after.now > before.now


def test_hosts_are_listed_with_the_age_of_their_last_beat(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """A host that never ran has no time; the gateway is marked as long as its lease holds."""
    held(gateway)
    rig.let_pass(LEASE_SECONDS - 2)
    lap.beat(BEAT)
    rig.let_pass(1)

    gate, row = lap.hosts()

    assert (gate.name, gate.gateway, gate.speaks, gate.seen_at, gate.version) == ("gate", True, True, None, "")
    assert (row.name, row.state, row.gateway, row.speaks, row.version) == (
        "lap", HostState.ACTIVE, False, False, BEAT.version,
    )  # fmt: skip
    assert 1 <= row.age < 3
    rig.let_pass(2)
    assert not lap.hosts()[0].speaks


def test_a_copy_of_a_host_that_lives_is_refused_and_named(rig: FleetRig) -> None:
    """Whichever of the two comes second may do nothing at all, and the first goes on."""
    fleet = rig.admit("lap")
    first = started(fleet, "boot 1")
    second = fleet.as_host(new_id(), "boot 2")

    asks: tuple[Callable[[], object], ...] = (
        lambda: second.beat(BEAT),
        lambda: second.take(10),
        lambda: second.publish([session("u1")]),
    )
    for ask in asks:
        with pytest.raises(SecondIncarnation, match="another machine runs as lap, and was heard of 0 s ago"):
            ask()

    assert first.take(10) == ()


def test_a_service_that_died_is_replaced_at_once_on_the_same_machine(rig: FleetRig) -> None:
    """Its successor of the same boot knows that it is gone; what was left of it may do nothing any more."""
    fleet = rig.admit("lap")
    first = started(fleet, "boot 1")

    second = started(fleet, "boot 1")

    assert second.take(1) == ()
    with pytest.raises(SecondIncarnation):
        first.take(1)


def test_another_machine_takes_the_place_of_a_silent_host_or_of_one_that_stopped(rig: FleetRig) -> None:
    """After a reboot, on new hardware, from a backup: nobody can tell these from a copy while the first is heard of."""
    fleet = rig.admit("lap")
    started(fleet, "boot 1")
    rig.let_pass(SILENT_SECONDS + 1)
    second = started(fleet, "boot 2")
    second.stopped()
    assert second.hosts()[0].stopped

    third = started(fleet, "boot 3")

    assert not third.hosts()[0].stopped
    with pytest.raises(SecondIncarnation):
        second.beat(BEAT)


def test_an_evicted_host_may_do_nothing(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """Not with what it had open, and not anew. What waits for it stays, and it is listed as evicted."""
    lap.publish([session("u1", THREAD)])
    rig.evict("lap")

    asks: tuple[Callable[[], object], ...] = (
        lambda: lap.beat(BEAT),
        lambda: lap.take(1),
        lambda: lap.hand_over([post("u1")]),
    )
    for ask in asks:
        with pytest.raises(Evicted, match="lap was taken out of the fleet"):
            ask()

    gateway.send(held(gateway), [call("lap", uid="u1")])
    assert [one.uid for one in gateway.routes()] == ["u1"]
    assert started(rig.admit("other")).hosts()[1].state is HostState.EVICTED


def test_an_evicted_gateway_loses_its_lease(rig: FleetRig, gateway: GatewayExchange) -> None:
    """The next one need not wait until it has run out."""
    lease = held(gateway)
    rig.evict("gate")

    next_lease = rig.admit("gate-2", gateway=True).as_gateway().lease()

    assert next_lease is not None
    assert next_lease.token != lease.token
    with pytest.raises(Evicted):
        gateway.renew(lease)


def test_a_host_that_is_invited_again_goes_on(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """It finds what waited for it."""
    gateway.send(held(gateway), [call("lap", '"kept"')])
    rig.evict("lap")

    again = started(rig.admit("lap"), "boot of lap")

    assert [one.body for one in again.take(9)] == ['"kept"']


# --- sessions and routes ----------------------------------------------------------------------------------------


def test_sessions_are_shown_as_they_were_published(rig: FleetRig, lap: HostExchange) -> None:
    """Byte by byte, before the keys that the fleet adds; a key of that name in the row counts for nothing."""
    started(rig.admit("build")).publish([session("u2", row='{"name" : "zoë","n":[1, 2],"host":"x"}', name="zoë")])
    lap.publish([session("u1", name="b"), session("u3", name="a", row='{"name":"a"}')])

    shown = lap.sessions()

    assert '[{"name" : "zoë","n":[1, 2],"host":"x",'.encode() in shown
    rows = json.loads(shown)
    assert [(row["host"], row["name"]) for row in rows] == [("build", "zoë"), ("lap", "a"), ("lap", "guide")]
    assert abs((from_iso(rows[0]["hostSeen"]) - lap.beat(BEAT).now).total_seconds()) < 60
    assert [row["name"] for row in json.loads(lap.sessions("build"))] == ["zoë"]
    with pytest.raises(UnknownHost, match="'nowhere'"):
        lap.sessions("nowhere")


@pytest.mark.parametrize("row", ["", "{}", "{ }", "[1]", "null", '{"a":1}, {"a":2}', ' {"a":1}', '{"a":1} ', '{"a":}'])
def test_a_row_that_is_no_object_is_refused(lap: HostExchange, row: str) -> None:
    """It would break the list of everybody."""
    with pytest.raises(InvalidValue, match="JSON object"):
        lap.publish([session("u1"), session("u2", row=row)])

    assert json.loads(lap.sessions()) == []


def test_a_fleet_without_sessions_shows_an_empty_list(lap: HostExchange) -> None:
    """A list all the same."""
    assert json.loads(lap.sessions()) == json.loads(lap.sessions("lap")) == []


def test_publishing_changes_what_it_names(lap: HostExchange, gateway: GatewayExchange) -> None:
    """A session's routes are those of its latest publication; what is gone goes, with its routes."""
    lap.publish([session("u1", THREAD), session("u2", OTHER), session("u3")])
    lap.publish([replace(session("u1"), row='{"name":"new"}')], gone=["u2", "never"])

    assert [row["name"] for row in json.loads(lap.sessions())] == ["new", "guide"]
    assert gateway.routes() == ()


def test_a_whole_publication_takes_away_all_else_of_this_host(rig: FleetRig, lap: HostExchange) -> None:
    """And nothing of another's."""
    build = started(rig.admit("build"))
    build.publish([session("u9")])
    lap.publish([session("u1"), session("u2")])

    lap.publish([session("u2")], whole=True)

    assert len(json.loads(lap.sessions("lap"))) == len(json.loads(lap.sessions("build"))) == 1
    lap.publish([], whole=True)
    assert json.loads(lap.sessions("lap")) == []


def test_the_gateway_finds_whose_a_thread_is(lap: HostExchange, gateway: GatewayExchange) -> None:
    """With what the host said of it."""
    route = Route(THREAD, "99.9", shared=True, facts='{"fresh":false}')
    lap.publish([replace(session("u1", name="guide"), members='["U1"]', routes=(route,))])

    found = gateway.route(THREAD)

    assert found is not None
    assert (found.route, found.host, found.uid, found.name, found.members) == (route, "lap", "u1", "guide", '["U1"]')
    assert gateway.routes() == (found,)
    assert gateway.route(OTHER) is None


def test_a_thread_goes_from_one_session_to_another_of_the_host(lap: HostExchange, gateway: GatewayExchange) -> None:
    """In one publication or in two."""
    lap.publish([session("u1", THREAD), session("u2", OTHER)])
    lap.publish([session("u1", OTHER), session("u2", THREAD)])
    swapped = {one.route.place: one.uid for one in gateway.routes()}
    lap.publish([session("u3", OTHER)])

    found = gateway.route(OTHER)

    assert swapped == {OTHER: "u1", THREAD: "u2"}
    assert found is not None
    assert found.uid == "u3"


def test_a_thread_of_another_host_is_refused(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """Nothing of that publication is kept."""
    started(rig.admit("build")).publish([session("u9", THREAD)])

    with pytest.raises(PlaceRefused, match=r"thread 100\.1 of channel C1.* another host"):
        lap.publish([session("u1", OTHER), session("u2", THREAD)])

    assert [one.uid for one in gateway.routes()] == ["u9"]
    assert json.loads(lap.sessions("lap")) == []


def test_a_session_of_another_host_is_named_and_left_alone(rig: FleetRig, lap: HostExchange) -> None:
    """So that a host learns that somebody has taken a session of its own over."""
    started(rig.admit("build")).publish([session("u9", row='{"name":"theirs"}')])

    elsewhere = lap.publish([session("u1"), session("u9", row='{"name":"ours"}')], gone=["u9"])

    assert elsewhere == ("u9",)
    assert [row["name"] for row in json.loads(lap.sessions())] == ["theirs", "guide"]


def test_a_cursor_moves_with_the_calls_of_its_sweep(lap: HostExchange, gateway: GatewayExchange) -> None:
    """What the sweep did not learn stays as it was; a thread without a route is passed over."""
    lap.publish([replace(session("u1"), routes=(Route(THREAD, "1.0", shared=True),))])
    lease = held(gateway)

    gateway.send(lease, [call("lap", uid="u1")], [Moved(THREAD, "2.0"), Moved(OTHER, "9.0")])

    found = gateway.route(THREAD)
    assert found is not None
    assert (found.route.cursor, found.route.shared) == ("2.0", True)
    gateway.send(lease, [], [Moved(THREAD, "3.0", shared=False)])
    assert gateway.routes()[0].route == Route(THREAD, "3.0", shared=False)
    gateway.send(lease, [], [Moved(THREAD, "4.0", shared=True), Moved(THREAD, "5.0"), Moved(THREAD, "4.5")])
    assert gateway.routes()[0].route == Route(THREAD, "4.5", shared=True)


def test_a_host_says_how_far_it_has_taken_a_thread(lap: HostExchange, gateway: GatewayExchange) -> None:
    """One that lost its state lacks what came since; whether the channel is shared stays known."""
    lap.publish([session("u1", THREAD)])
    gateway.send(held(gateway), [], [Moved(THREAD, "3.0", shared=True)])

    lap.publish([replace(session("u1"), routes=(Route(THREAD, "2.0"),))], whole=True)

    assert gateway.routes()[0].route == Route(THREAD, "2.0", shared=True)


# --- the lease --------------------------------------------------------------------------------------------------


def test_one_gateway_has_the_lease(rig: FleetRig, gateway: GatewayExchange) -> None:
    """Another one gets it when it has run out, or was given back; then the first one's is lost."""
    second = rig.admit("gate-2", gateway=True).as_gateway()
    first_lease = held(gateway)
    assert second.lease() is None
    assert gateway.lease() is None
    rig.let_pass(LEASE_SECONDS - 1)
    assert gateway.renew(first_lease)
    rig.let_pass(LEASE_SECONDS - 1)
    assert second.lease() is None
    rig.let_pass(2)

    second_lease = held(second)

    assert second_lease.epoch > first_lease.epoch
    assert not gateway.renew(first_lease)
    gateway.release(first_lease)
    assert second.renew(second_lease)
    second.release(second_lease)
    assert gateway.lease() is not None


def test_a_lease_that_ran_out_still_holds_until_another_has_it(rig: FleetRig, gateway: GatewayExchange) -> None:
    """Nobody else can have sent anything."""
    lease = held(gateway)
    rig.let_pass(LEASE_SECONDS * 5)

    assert gateway.renew(lease)


def test_a_lost_lease_changes_nothing(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """The old gateway may go on asking for as long as it likes."""
    lap.publish([session("u1", THREAD)])
    old = held(gateway)
    sent = post("u1")
    lap.hand_over([sent])
    assert gateway.sending(old, "lap", sent.id)
    rig.let_pass(LEASE_SECONDS + 1)
    new = held(rig.admit("gate-2", gateway=True).as_gateway())
    assert new.token != old.token

    asks: tuple[Callable[[], object], ...] = (
        lambda: gateway.send(old, [call("lap")], [Moved(THREAD, "5.0")]),
        lambda: gateway.withdraw(old, "any"),
        lambda: gateway.posts(old, 1),
        lambda: gateway.sending(old, "lap", sent.id),
        lambda: gateway.posted(old, "lap", PostResult(sent.id, "{}")),
        lambda: gateway.tidy(old),
    )
    for ask in asks:
        with pytest.raises(LeaseLost, match="another gateway"):
            ask()

    assert lap.take(9) == ()
    assert lap.results() == ()
    assert gateway.routes()[0].route.cursor == ""


def test_a_host_that_is_no_gateway_gets_no_lease(rig: FleetRig, lap: HostExchange) -> None:
    """Nor anything else that is a gateway's."""
    plain = rig.admit("build").as_gateway()

    asks: tuple[Callable[[], object], ...] = (
        plain.lease,
        plain.routes,
        lambda: plain.route(THREAD),
        lambda: plain.answer("any", 0),
    )
    for ask in asks:
        with pytest.raises(NotGateway, match="build may not be the gateway"):
            ask()


# --- calls ------------------------------------------------------------------------------------------------------


def test_calls_come_in_the_order_of_their_sending_until_they_are_done(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """Those of other hosts are not seen; what came before is marked."""
    rig.admit("build")
    lease = held(gateway)
    lap.publish([session("u1")])
    gateway.send(lease, [call("lap", '"1"', uid="u1"), call("build", '"x"'), call("lap", '"2"')])
    gateway.send(lease, [call("lap", '"3"')])

    first = lap.take(2)
    again = lap.take(9)

    assert [(one.body, one.uid, one.taken_before) for one in first] == [('"1"', "u1", False), ('"2"', "", False)]
    assert [(one.body, one.taken_before) for one in again] == [('"1"', True), ('"2"', True), ('"3"', False)]
    assert [one.number for one in again] == sorted({one.number for one in again})
    lap.done([Answer(first[1].id), Answer("never")])
    assert [one.body for one in lap.take(9)] == ['"1"', '"3"']


def test_a_call_that_was_sent_is_not_sent_again(lap: HostExchange, gateway: GatewayExchange) -> None:
    """Whoever does not know whether a sending was committed repeats it."""
    lease = held(gateway)
    sent = call("lap", '"once"')
    gateway.send(lease, [sent])
    gateway.send(lease, [sent, after := call("lap", '"next"'), after])

    assert [one.body for one in lap.take(9)] == ['"once"', '"next"']


def test_a_sending_is_all_or_nothing(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """A host that is not there, or a session that has gone to another, keeps all of it back."""
    lease = held(gateway)
    started(rig.admit("build")).publish([session("u9", THREAD)])

    with pytest.raises(UnknownHost, match="'nowhere'"):
        gateway.send(lease, [call("lap"), call("nowhere")], [Moved(THREAD, "5.0")])
    with pytest.raises(SessionElsewhere, match="u9 does not belong to lap"):
        gateway.send(lease, [call("lap"), call("lap", uid="u9")], [Moved(THREAD, "5.0")])
    with pytest.raises(SessionElsewhere):
        gateway.send(lease, [call("lap", uid="unknown")])

    assert lap.take(9) == ()
    assert gateway.routes()[0].route.cursor == ""


def test_a_deadline_goes_by_the_exchanges_clock(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """A command whose time is over is told as such; a reply never expires."""
    gateway.send(held(gateway), [call("lap", seconds=30), call("lap")])
    command, reply = lap.take(2)
    rig.let_pass(31)

    late, same = lap.take(2)

    assert (command.expired, reply.expired, late.expired, same.expired) == (False, False, True, False)
    assert command.remaining is not None
    assert 20 < command.remaining <= 30
    assert late.remaining is not None
    assert late.remaining < 0
    assert reply.remaining is same.remaining is None


def test_a_call_is_withdrawn_only_before_it_was_taken(lap: HostExchange, gateway: GatewayExchange) -> None:
    """Then it is known that nothing was done."""
    lease = held(gateway)
    taken, waiting = call("lap"), call("lap")
    gateway.send(lease, [taken, waiting])
    lap.take(1)

    assert gateway.withdraw(lease, waiting.id)
    assert not gateway.withdraw(lease, waiting.id)
    assert not gateway.withdraw(lease, taken.id)
    assert [one.id for one in lap.take(9)] == [taken.id]


def test_an_answer_is_kept_until_its_time_is_over(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """Another gateway may read it, too; where nobody waits for one, none is kept."""
    lease = held(gateway)
    asked, told = call("lap"), call("lap")
    gateway.send(lease, [asked, told])
    assert gateway.answer(asked.id, 0) is None
    lap.done([Answer(asked.id, '{"text":"done"}'), Answer(told.id)])

    assert gateway.answer(asked.id, 5) == gateway.answer(asked.id, 0) == '{"text":"done"}'
    assert gateway.answer(told.id, 0) is None
    gateway.send(lease, [asked])
    assert lap.take(9) == ()
    gateway.tidy(lease)
    assert gateway.answer(asked.id, 0) is not None
    rig.let_pass(ANSWER_SECONDS + 1)
    gateway.tidy(lease)
    assert gateway.answer(asked.id, 0) is None


def test_an_answer_to_a_call_of_another_host_counts_for_nothing(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """Whoever knows its id is not its owner."""
    asked = call("lap")
    gateway.send(held(gateway), [asked])

    started(rig.admit("build")).done([Answer(asked.id, '"forged"')])

    assert gateway.answer(asked.id, 0) is None
    assert [one.id for one in lap.take(9)] == [asked.id]


# --- posts ------------------------------------------------------------------------------------------------------


def test_a_post_goes_to_the_gateway_and_its_result_comes_back(lap: HostExchange, gateway: GatewayExchange) -> None:
    """It is there once, whoever repeats the handing over; and its result until it is forgotten."""
    lap.publish([session("u1", THREAD)])
    sent, root = post("u1", body='"hello"'), post("u1", replace(THREAD, thread=""), rank=0)
    lap.hand_over([sent, root])
    lap.hand_over([sent])
    lease = held(gateway)

    first, second = gateway.posts(lease, 9)

    assert (first.post, first.host, first.sending) == (root, "lap", None)
    assert (second.post, second.host, second.sending) == (sent, "lap", None)
    assert gateway.sending(lease, "lap", sent.id)
    assert [one.sending is None for one in gateway.posts(lease, 9)] == [True, False]
    assert lap.results() == ()
    gateway.posted(lease, "lap", PostResult(sent.id, '{"ts":"5"}'))
    assert [one.post for one in gateway.posts(lease, 9)] == [root]
    assert not gateway.sending(lease, "lap", sent.id)
    assert lap.beat(BEAT).results
    assert lap.results() == lap.results() == (PostResult(sent.id, '{"ts":"5"}'),)
    lap.forget([sent.id])
    assert lap.results() == ()
    gateway.posted(lease, "lap", PostResult("never", "{}"))


def test_a_post_of_which_nobody_knows_is_found_by_the_next_gateway(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """With the time since the one before began to send it."""
    lap.publish([session("u1", THREAD)])
    sent = post("u1")
    lap.hand_over([sent])
    gateway.sending(held(gateway), "lap", sent.id)
    rig.let_pass(LEASE_SECONDS + 5)
    second = rig.admit("gate-2", gateway=True).as_gateway()

    (found,) = second.posts(held(second), 9)

    assert found.sending is not None
    assert LEASE_SECONDS + 5 <= found.sending < LEASE_SECONDS + 15


def test_what_is_being_sent_is_not_forgotten(lap: HostExchange, gateway: GatewayExchange) -> None:
    """It would be posted without anybody's knowing where."""
    lap.publish([session("u1", THREAD)])
    waiting, begun = post("u1"), post("u1")
    lap.hand_over([waiting, begun])
    lease = held(gateway)
    gateway.sending(lease, "lap", begun.id)

    lap.forget([waiting.id, begun.id, "never"])

    assert [one.post for one in gateway.posts(lease, 9)] == [begun]


def test_a_post_into_what_is_not_the_hosts_own_is_refused(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """A thread of another host, a session of another, one that nobody has published; all or none."""
    build = started(rig.admit("build"))
    build.publish([session("u9", THREAD)])
    lap.publish([session("u1", OTHER)])

    for one in (post("u1", THREAD), post("u9", replace(THREAD, thread="")), post("u9", OTHER), post("unknown", OTHER)):
        with pytest.raises(PlaceRefused, match="another host"):
            lap.hand_over([post("u1", OTHER), one])

    assert gateway.posts(held(gateway), 9) == ()


def test_posts_go_by_rank_and_hosts_take_turns(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """A host with a hundred posts does not keep one with two waiting, nor another channel."""
    build = started(rig.admit("build"))
    build.publish([session("u9", THREAD)])
    lap.publish([session("u1", OTHER, elsewhere := replace(OTHER, channel="C2"))])
    lap.hand_over([post("u1", OTHER, body=f'"lap {n}"') for n in range(9)])
    build.hand_over([post("u9", THREAD, body=f'"build {n}"') for n in range(2)])
    build.hand_over([post("u9", THREAD, rank=1, body='"request"')])
    lap.hand_over([post("u1", elsewhere, body='"elsewhere"')])
    lease = held(gateway)

    shown = [one.post.body for one in gateway.posts(lease, 5) if one.post.place.channel == "C1"]
    sent = list[str]()
    while waiting := [one for one in gateway.posts(lease, 1) if one.post.place.channel == "C1"]:
        sent.append(waiting[0].post.body)
        gateway.posted(lease, waiting[0].host, PostResult(waiting[0].post.id, "{}"))

    assert shown == ['"request"', '"build 0"', '"lap 0"', '"build 1"', '"lap 1"']
    assert sent[:5] == ['"request"', '"lap 0"', '"build 0"', '"lap 1"', '"build 1"']
    assert sent[5:] == [f'"lap {n}"' for n in range(2, 9)]
    assert [one.post.body for one in gateway.posts(lease, 1)] == ['"elsewhere"']


def test_an_evicted_hosts_posts_are_not_sent(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """Whoever stole it may have written them."""
    lap.publish([session("u1", THREAD)])
    lap.hand_over([post("u1")])

    rig.evict("lap")

    assert gateway.posts(held(gateway), 9) == ()


# --- files ------------------------------------------------------------------------------------------------------


def test_a_file_goes_both_ways_in_pieces(rig: FleetRig, lap: HostExchange, gateway: GatewayExchange) -> None:
    """Whatever it was cut into; it is one host's, and stays until it is dropped."""
    data = bytes(range(256)) * 9_000
    lap.put_blob("up", [data[:100], data[100:]])
    lap.put_blob("up", [b"another"])
    gateway.put_blob("lap", "down", [data])
    gateway.put_blob("lap", "empty", [])

    pieces = list(gateway.get_blob("lap", "up"))

    assert b"".join(pieces) == b"".join(lap.get_blob("down")) == data
    assert max(map(len, pieces)) <= PIECE
    assert b"".join(lap.get_blob("empty")) == b""
    build = started(rig.admit("build"))
    build.drop_blob("down")
    with pytest.raises(BlobGone):
        build.get_blob("down")
    lap.drop_blob("down")
    gateway.drop_blob("lap", "up")
    gateway.drop_blob("lap", "up")
    asks: tuple[Callable[[], object], ...] = (lambda: lap.get_blob("down"), lambda: gateway.get_blob("lap", "up"))
    for gone in asks:
        with pytest.raises(BlobGone, match="no file has the id"):
            gone()


def test_a_file_that_breaks_off_is_not_there(lap: HostExchange, gateway: GatewayExchange) -> None:
    """Its source may fail halfway."""

    def broken() -> Iterator[bytes]:
        yield b"x" * (PIECE + 1)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        lap.put_blob("up", broken())

    with pytest.raises(BlobGone):
        gateway.get_blob("lap", "up")


def test_a_file_that_nobody_fetches_goes_after_a_day(
    rig: FleetRig, lap: HostExchange, gateway: GatewayExchange
) -> None:
    """One that is younger stays; a file for a host that is not there is refused."""
    lap.put_blob("old", [b"1"])
    rig.let_pass(BLOB_SECONDS + 1)
    lap.put_blob("new", [b"2"])

    gateway.tidy(held(gateway))

    assert list(lap.get_blob("new")) == [b"2"]
    with pytest.raises(BlobGone):
        lap.get_blob("old")
    with pytest.raises(UnknownHost):
        gateway.put_blob("nowhere", "x", [b""])


# --- waiting ----------------------------------------------------------------------------------------------------


def _seconds_of_waiting(waiter: HostExchange | GatewayExchange, then: Callable[[], object]) -> float:
    """Return how long `wait(30)` took, where `then` is called from another thread meanwhile."""
    waiter.wait(0)  # what rang before counts for nothing
    began = time.monotonic()
    other = threading.Timer(0.2, then)
    other.start()
    waiter.wait(30)
    other.join()
    return time.monotonic() - began


def test_whoever_waits_is_woken_by_what_is_for_them(lap: HostExchange, gateway: GatewayExchange) -> None:
    """A host by a call and a result, the gateway by a post, an answer and a route."""
    lease = held(gateway)
    asked = call("lap")
    sent = post("u1")

    assert _seconds_of_waiting(gateway, lambda: lap.publish([session("u1", THREAD)])) < 5
    assert _seconds_of_waiting(lap, lambda: gateway.send(lease, [asked])) < 5
    assert _seconds_of_waiting(gateway, lambda: lap.done([Answer(asked.id, "{}")])) < 5
    assert _seconds_of_waiting(gateway, lambda: lap.hand_over([sent])) < 5
    assert _seconds_of_waiting(lap, lambda: gateway.posted(lease, "lap", PostResult(sent.id, "{}"))) < 5
    assert _seconds_of_waiting(gateway, lambda: gateway.release(lease)) < 5
    assert _seconds_of_waiting(lap, lap.wake) < 5
    assert _seconds_of_waiting(gateway, gateway.wake) < 5


def test_a_wait_ends_when_its_time_is_over(lap: HostExchange, gateway: GatewayExchange) -> None:
    """Nothing has to happen."""
    lap.wait(0)
    gateway.wait(0)
    began = time.monotonic()

    lap.wait(0.2)
    gateway.wait(0.2)

    assert 0.1 < time.monotonic() - began < 5


def test_an_answer_is_waited_for(lap: HostExchange, gateway: GatewayExchange) -> None:
    """The one who asked has it when the host has said it."""
    asked = call("lap")
    gateway.send(held(gateway), [asked])
    host = threading.Timer(0.2, lambda: lap.done([Answer(asked.id, '"yes"')]))
    host.start()

    answer = gateway.answer(asked.id, 30)

    host.join()
    assert answer == '"yes"'
