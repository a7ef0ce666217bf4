"""Hosts and gateways over an exchange: what is written reaches its owner once, what is said stands in the chat once."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import ChannelError, CoreError, Refused, StoreBroken, UnknownSession
from core.base.values import replace
from core.fleet.envelope import Failed, Ordered, Read, Say, read_answer, written_call, written_post
from core.fleet.exchange import (
    ANSWER_SECONDS,
    BLOB_SECONDS,
    ExchangeAway,
    HostPost,
    Lease,
    LeaseLost,
    NewCall,
    Place,
    PlaceRefused,
    new_id,
)
from core.fleet.memory import MemoryFleet, MemoryGateway, MemoryHost
from core.model.asking import Role
from core.model.channel import (
    IncomingChange,
    IncomingCreation,
    IncomingOrder,
    IncomingReply,
    Posted,
    PrivateAnswer,
    Swept,
    Verdict,
)
from core.model.message import Attachment, MessageState
from core.model.posts import Mark, NewPost, OutboundKind
from core.model.reasons import Reason
from core.service.fleet import NOT_LIVE
from tests.support.chat import HOME, TEAM
from tests.support.clocks import MovedClock
from tests.support.fleethost import Host, Room, ordered, reply_to, room_like, write
from tests.support.tmux import wait_until

AWAY = ExchangeAway("cut off by the test")


class Rig:
    """A fleet, its room, and its hosts, which are ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.clock = MovedClock()
        self.fleet = MemoryFleet(self.clock)
        self.room = Room()
        self.hosts: list[Host] = []
        self._folder = folder

    def host(self, name: str, *, gateway: bool = False, room: Room | None = None) -> Host:
        """Make a host; each has a room of its own view."""
        folder = self._folder / name
        folder.mkdir()
        seen = room or (self.room if gateway and not self.hosts else room_like(self.room))
        made = Host(folder, self.fleet.admit(name, gateway=gateway), seen, gateway=gateway)
        self.hosts.append(made)
        return made

    def stored(self) -> str:
        """Return the bodies of all calls that the exchange holds."""
        return " ".join(call.call.body for call in self.fleet.tables.calls.values())

    def waiting(self) -> list[str]:
        """Return the kinds of all calls that the exchange holds."""
        return [call.call.kind for call in self.fleet.tables.calls.values()]

    def whispered(self) -> str:
        """Return whom notes were committed for that one person alone is shown, on whatever host."""
        rows = (host.system.database.read("SELECT only_for FROM outbox") for host in self.hosts)
        return " ".join(row["only_for"] for found in rows for row in found)

    def served(self) -> None:
        """Wait until a gateway serves the room."""
        wait_until(lambda: self.room.doors, "a gateway serves")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Give a fleet without hosts."""
    made = Rig(tmp_path)
    yield made
    for host in made.hosts:
        host.close()


@pytest.fixture
def pair(rig: Rig) -> tuple[Host, Host]:
    """Give `gate`, the gateway, and `build`, each with a session `guide`, both up."""
    gate, build = rig.host("gate", gateway=True), rig.host("build")
    gate.session("guide")
    build.session("guide")
    gate.up()
    build.up()
    rig.served()
    return gate, build


def interrupted(
    monkeypatch: pytest.MonkeyPatch, target: Any, name: str, *, done: bool, error: Exception = AWAY
) -> list[int]:
    """Let the next call of that method fail, after it was `done` or before. Return what counts its failures."""
    real, failed = getattr(target, name), list[int]()

    def call(*args: Any, **named: Any) -> Any:
        if failed:
            return real(*args, **named)
        if done:
            real(*args, **named)
        failed.append(1)
        raise error

    monkeypatch.setattr(target, name, call)
    return failed


# ------------------------------------------------------------ replies


def test_a_reply_reaches_the_host_of_its_thread_alone(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Two hosts have a session of one name; each gets what is written in its own thread, in order."""
    gate, build = pair

    write(rig.room, *(reply_to(build.thread("guide"), f"to build {n}", n) for n in range(5)))
    write(rig.room, reply_to(gate.thread("guide"), "to gate", 9))
    wait_until(lambda: len(build.taken("guide")) == 5 and gate.taken("guide"), "both have theirs")

    assert build.taken("guide") == [f"to build {n}" for n in range(5)]
    assert gate.taken("guide") == ["to gate"]
    wait_until(lambda: not rig.waiting(), "nothing is left in the exchange")


def test_of_other_threads_nothing_is_kept(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A thread that is no session's, a root, and our own posts leave nothing in the exchange."""
    _, build = pair
    build.stop()

    words = write(
        rig.room,
        reply_to("1.000001", "lunch?", 1),
        reply_to("", "a root", 2),
        reply_to(build.thread("guide"), "our own", 3, is_self=True),
    )

    assert words == [Verdict.DROPPED] * 3
    assert rig.waiting() == []


def test_of_strangers_nothing_but_their_id_is_kept(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Whom no list of the host names is refused by the host, who is told so there; their words never lie anywhere."""
    _, build = pair
    build.stop()
    secret = Attachment("F1", "secret.txt", "text/plain", 3, "https://example.com/secret")

    write(rig.room, reply_to(build.thread("guide"), "secret words", 1, author="U9", quoted="secret", files=(secret,)))
    stored = rig.stored()
    build.up()
    wait_until(lambda: not rig.waiting(), "it is taken")

    assert "U9" in stored
    assert "secret" not in stored
    assert build.taken("guide") == []
    assert "U9" in rig.whispered()


def test_a_list_of_another_host_lets_its_people_be_asked_for(rig: Rig) -> None:
    """The gateway's own list does not name U5; the list of `build` does, and the door says so."""
    rig.host("gate", gateway=True).up()
    build = rig.host("build")
    build.room.members = {"U5"}
    build.session("guide")
    build.up()
    rig.served()

    write(rig.room, reply_to(build.thread("guide"), "from five", 1, author="U5"))
    wait_until(lambda: build.taken("guide"), "it arrived")

    [door] = rig.room.doors
    assert door.listed("slack", "U5")
    assert not door.listed("slack", "U6")
    assert not rig.room.has_role("U5", Role.MEMBER)


def test_a_gateway_that_could_not_commit_has_taken_nothing(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dies before COMMIT: the chat is not answered, sends it again, and it arrives once."""
    gate, build = pair
    failed = interrupted(monkeypatch, gate.joined.gateway.exchange, "send", done=False)  # type: ignore[union-attr]

    with pytest.raises(StoreBroken):
        rig.room.doors[0].receive([reply_to(build.thread("guide"), "once", 1)], lambda words: None)
    write(rig.room, reply_to(build.thread("guide"), "once", 1))
    wait_until(lambda: build.taken("guide"), "it arrived")

    assert failed
    assert build.taken("guide") == ["once"]


def test_a_reply_that_was_committed_and_not_acknowledged_is_a_duplicate(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dies after COMMIT and before the chat is answered: it comes again, and the owner's key knows it."""
    gate, build = pair
    failed = interrupted(monkeypatch, gate.joined.gateway.exchange, "send", done=True)  # type: ignore[union-attr]

    with pytest.raises(StoreBroken):
        rig.room.doors[0].receive([reply_to(build.thread("guide"), "once", 1)], lambda words: None)
    wait_until(lambda: build.taken("guide"), "the first one arrived")
    write(rig.room, reply_to(build.thread("guide"), "once", 1))
    wait_until(lambda: "reply" not in rig.waiting(), "the second one was taken")

    assert failed
    assert build.taken("guide") == ["once"]


def test_a_reply_waits_for_a_host_that_is_down(rig: Rig, pair: tuple[Host, Host]) -> None:
    """B dies before its own commit: the row stays, however long that takes, and is there in order."""
    _, build = pair
    build.stop()
    write(rig.room, *(reply_to(build.thread("guide"), f"kept {n}", n) for n in range(3)))

    rig.clock.move(seconds=90_000)
    assert build.taken("guide") == []
    build.up()
    wait_until(lambda: len(build.taken("guide")) == 3, "all are there")

    assert build.taken("guide") == ["kept 0", "kept 1", "kept 2"]


def test_a_reply_that_was_committed_and_not_removed_is_taken_once(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B dies after its commit and before it removes the row: taken again, known, removed."""
    _, build = pair
    failed = interrupted(monkeypatch, build.joined.relay.exchange, "done", done=False)

    write(rig.room, reply_to(build.thread("guide"), "once", 1))
    wait_until(lambda: failed, "the row could not be removed")
    assert build.taken("guide") == ["once"]
    build.stop()
    build.up()
    wait_until(lambda: not rig.waiting(), "the row was removed")

    assert build.taken("guide") == ["once"]


def test_a_store_that_cannot_commit_keeps_the_row_in_the_fleet(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose disk is full takes the reply once it is not."""
    _, build = pair
    failed = interrupted(monkeypatch, build.door, "receive", done=False, error=StoreBroken("the disk is full"))

    write(rig.room, reply_to(build.thread("guide"), "later", 1))
    wait_until(lambda: failed, "it could not be stored")
    assert rig.waiting() == ["reply"]
    wait_until(lambda: build.taken("guide") == ["later"], "it was stored then")
    wait_until(lambda: not rig.waiting(), "and removed")


def test_a_host_whose_store_is_broken_stops_nevertheless(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that could not be taken is tried again until then, and stays in the fleet."""
    monkeypatch.setattr("core.fleet.relay._AGAIN_SECONDS", 0.0)
    _, build = pair
    asked = list[int]()

    def receive(replies: Sequence[IncomingReply], taken: Callable[[tuple[Verdict | None, ...]], None]) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise StoreBroken("the disk is full")
        taken((None,))

    monkeypatch.setattr(build.door, "receive", receive)
    write(rig.room, reply_to(build.thread("guide"), "later", 1))
    wait_until(lambda: len(asked) > 1, "it was tried again")

    build.stop()

    assert rig.waiting() == ["reply"]


def test_an_engine_that_lost_its_last_commits_loses_nothing(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Rule 5: cursor and rows are older together, so that the sweep finds what is missing; the rest is known."""
    _, build = pair
    before = rig.fleet.snapshot()
    write(rig.room, reply_to(build.thread("guide"), "first", 1))
    wait_until(lambda: build.taken("guide"), "it arrived")
    build.stop()
    write(rig.room, reply_to(build.thread("guide"), "second", 2))
    rig.fleet.restore(before)
    build.up()
    rig.served()

    write(rig.room, *(reply_to(build.thread("guide"), text, n) for n, text in ((1, "first"), (2, "second"))))
    wait_until(lambda: len(build.taken("guide")) == 2, "both are there")

    assert build.taken("guide") == ["first", "second"]


def test_lateness_is_judged_again_on_the_host(rig: Rig, pair: tuple[Host, Host]) -> None:
    """What was in time as it was written may have waited for its host: then a person has to confirm it."""
    _, build = pair
    build.stop()
    write(rig.room, reply_to(build.thread("guide"), "then", 1))
    build.room.too_late = "sent 3 h ago"
    build.up()
    wait_until(lambda: build.rows("guide"), "it arrived")

    [row] = build.rows("guide")
    assert row.state is MessageState.QUEUED
    assert "sent 3 h ago" in row.detail


def test_an_edit_goes_to_the_host_of_its_thread(rig: Rig, pair: tuple[Host, Host]) -> None:
    """What still waits there is replaced; a deletion cancels it."""
    _, build = pair
    first, second = reply_to(build.thread("guide"), "befor", 1), reply_to(build.thread("guide"), "gone", 2)
    write(rig.room, first, second)
    wait_until(lambda: len(build.taken("guide")) == 2, "both arrived")

    [door] = rig.room.doors
    door.change([IncomingChange(replace(first, text="after"), deleted=False)])
    door.change([IncomingChange(replace(second, text=""), deleted=True)])
    wait_until(lambda: build.taken("guide") == ["after"], f"both changes are applied: {build.taken('guide')}")


# ------------------------------------------------------------ gaps and sweeps


def test_after_a_gap_rows_wait_for_the_sweep_of_their_thread(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The host is told of the gap before the reply that followed it, and of the sweep that ends it."""
    _, build = pair
    held = build.catching_up.holds
    [door] = rig.room.doors
    door.behind("slack")
    write(rig.room, reply_to(build.thread("guide"), "after the gap", 2))
    wait_until(lambda: build.taken("guide"), "it arrived")
    [row] = build.rows("guide")
    assert held(row)

    threads = {one.thread: one for one in door.threads("slack", TEAM)}
    write(rig.room, reply_to(build.thread("guide"), "missed", 1))
    door.swept("slack", TEAM, Swept(HOME, build.thread("guide"), "1800000002.000000", "", 2, "1 min", False))
    wait_until(lambda: not held(row), "the sweep is over there, too")

    assert set(threads) == {host.thread("guide") for host in pair}
    assert build.taken("guide") == ["missed", "after the gap"]
    binding = build.system.bindings.of_session("s-build-guide", "slack")
    assert binding is not None
    assert binding.cursor == "1800000002.000000"


def test_a_gap_during_a_sweep_is_not_ended_by_it(rig: Rig, pair: tuple[Host, Host]) -> None:
    """What a sweep has begun before cannot tell what was missed after."""
    _, build = pair
    [door] = rig.room.doors
    door.threads("slack", TEAM)
    door.behind("slack")
    write(rig.room, reply_to(build.thread("guide"), "after the gap", 1))
    wait_until(lambda: build.taken("guide"), "it arrived")
    [row] = build.rows("guide")

    door.swept("slack", TEAM, Swept(HOME, build.thread("guide"), "1800000001.000000", "", 0, "", False))
    wait_until(lambda: "swept" not in rig.waiting(), "the host knows of the sweep")

    assert build.catching_up.holds(row)


def test_a_sweep_without_news_costs_no_host_a_call(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Nothing is sent of a thread that stands as it stood."""
    _, build = pair
    [door] = rig.room.doors
    swept = Swept(HOME, build.thread("guide"), "1800000001.000000", "", 0, "", False)
    door.threads("slack", TEAM)
    door.swept("slack", TEAM, swept)
    wait_until(lambda: not rig.waiting(), "the first sweep is known")
    build.stop()

    door.threads("slack", TEAM)
    door.swept("slack", TEAM, swept)

    assert rig.waiting() == []


def test_a_new_gateway_goes_on_from_the_cursor_of_the_last(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The cursor is the fleet's: another gateway reads from there."""
    gate, build = pair
    [door] = rig.room.doors
    door.threads("slack", TEAM)
    door.swept("slack", TEAM, Swept(HOME, build.thread("guide"), "1800000007.000000", "", 0, "", True))
    gate.stop()
    other = rig.host("spare", gateway=True, room=rig.room).up()
    rig.served()

    found = {one.thread: one for one in rig.room.doors[0].threads("slack", TEAM)}

    assert other.joined.gateway is not None
    assert found[build.thread("guide")].cursor == "1800000007.000000"
    assert found[build.thread("guide")].shared is True


# ------------------------------------------------------------ what is said


def test_a_post_counts_once_the_gateway_has_said_so(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Until then it is being sent, whoever asks; then it is sent, and stands there once."""
    gate, build = pair
    gate.stop()
    ident = build.say("guide", "an answer")
    wait_until(lambda: build.state(ident) == "sending", "it was handed over")
    wait_until(lambda: "gateway" in build.detail(ident), "it is told who has it")
    assert "an answer" not in rig.room.texts()

    gate.up()
    wait_until(lambda: build.state(ident) == "sent", "the gateway has posted it")

    assert rig.room.texts(build.thread("guide")) == ["an answer"]
    wait_until(lambda: not rig.fleet.tables.posts, "nothing is left in the exchange")


def test_a_new_sessions_thread_is_known_to_the_fleet_before_it_is_written_to(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A root is posted, bound and published; the answers that wait follow into its thread, and replies reach it."""
    _, build = pair
    record = build.session("fresh")
    build.system.bindings.unbind(record.uid, "slack")
    root = build.say("fresh", "the root", kind=OutboundKind.ROOT)
    answer = build.say("fresh", "the answer")

    wait_until(lambda: build.state(answer) == "sent", f"{build.state(root)}, {build.state(answer)}")
    write(rig.room, reply_to(build.thread("fresh"), "hello", 5))
    wait_until(lambda: build.taken("fresh") == ["hello"], "a reply arrives there")

    assert rig.room.texts(build.thread("fresh")) == ["the answer"]


@pytest.mark.parametrize("done", [False, True])
def test_a_handing_over_without_an_answer_is_made_again(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch, *, done: bool
) -> None:
    """Whether the exchange had it or not, it stands in the chat once."""
    _, build = pair
    failed = interrupted(monkeypatch, build.joined.relay.exchange, "hand_over", done=done)

    ident = build.say("guide", "once")
    wait_until(lambda: build.state(ident) == "sent", "it was posted")

    assert failed
    assert rig.room.texts(build.thread("guide")) == ["once"]


def test_a_host_that_ends_after_handing_over_learns_what_became_of_it(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The next life reads the result of the one before, and posts nothing again."""
    gate, build = pair
    gate.stop()
    ident = build.say("guide", "once")
    wait_until(lambda: build.state(ident) == "sending", "it was handed over")
    build.stop()
    gate.up()
    wait_until(lambda: rig.room.texts(build.thread("guide")) == ["once"], "it was posted meanwhile")

    build.up()
    wait_until(lambda: build.state(ident) == "sent", "the host knows it")

    assert rig.room.texts(build.thread("guide")) == ["once"]
    wait_until(lambda: not rig.fleet.tables.posts, "nothing is left in the exchange")


def test_a_post_that_an_older_engine_has_lost_is_looked_for(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine lost the row of a post that stands in the chat: it is handed over again, and found there."""
    _, build = pair
    before = rig.fleet.snapshot()
    monkeypatch.setattr(build.joined.relay.exchange, "results", lambda most=1000: ())
    ident = build.say("guide", "once")
    wait_until(lambda: rig.room.texts(build.thread("guide")) == ["once"], "it was posted")
    build.stop()
    assert build.state(ident) == "sending"

    rig.fleet.restore(before)
    build.up()
    wait_until(lambda: build.state(ident) == "sent", "it is known")

    assert rig.room.texts(build.thread("guide")) == ["once"]
    assert "find" in rig.room.calls


def test_a_gateway_that_dies_with_a_post_under_way_lets_the_next_one_look(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was posted and nobody was told: the next gateway waits until no request can be under way, then finds it."""
    gate, build = pair
    assert gate.joined.gateway is not None
    failed = interrupted(monkeypatch, gate.joined.gateway.exchange, "posted", done=False, error=LeaseLost())
    ident = build.say("guide", "once")
    wait_until(lambda: failed, "the result could not be kept")
    gate.stop()
    assert build.state(ident) == "sending"

    rig.clock.move(seconds=50)
    spare = rig.host("spare", gateway=True, room=rig.room).up()
    wait_until(lambda: build.state(ident) == "sent", "the other one found it")

    assert spare.joined.gateway is not None
    assert rig.room.texts(build.thread("guide")) == ["once"]


def test_a_refusal_of_the_chat_is_the_hosts_to_deal_with(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A channel that is gone fails the post there, with the chat's own words; the session parts with its thread."""
    _, build = pair
    gone = ChannelError("Slack: channel_not_found", transient=False, reason=ChannelError.CHANNEL_GONE)
    rig.room.faults.append(("post", gone))

    ident = build.say("guide", "nowhere")
    wait_until(lambda: build.state(ident) == "failed", "it failed")

    row = build.system.outbox.get(ident)
    assert row is not None
    assert "channel_not_found" in row.detail
    wait_until(lambda: build.system.bindings.of_session("s-build-guide", "slack") is None, "it has parted")


def test_what_the_chat_cannot_do_now_is_done_later(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A chat that names seconds is left alone for so long by the gateway; the host only waits."""
    _, build = pair
    rig.room.faults.append(("post", ChannelError("Slack: ratelimited", transient=True, retry_after=0.3)))

    ident = build.say("guide", "soon")
    wait_until(lambda: build.state(ident) == "sent", "it was posted")

    assert rig.room.texts(build.thread("guide")) == ["soon"]


def test_an_unclear_failure_is_looked_into_by_the_gateway(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The answer of the chat was lost after it had posted: it stands there once."""
    _, build = pair
    lost = ChannelError("Slack: timed out", transient=True, unclear=True, retry_after=0.2)
    rig.room.faults.append(("lost", lost))

    ident = build.say("guide", "once")
    wait_until(lambda: build.state(ident) == "sent", "it was found")

    assert rig.room.texts(build.thread("guide")) == ["once"]


def test_a_note_for_one_person_is_not_repeated_where_its_fate_is_unclear(rig: Rig, pair: tuple[Host, Host]) -> None:
    """It cannot be looked for: not after the chat's answer was lost, nor after the fleet's database lost its row."""
    gate, build = pair
    lost = ChannelError("Slack: timed out", transient=True, unclear=True, retry_after=0.2)
    rig.room.faults.append(("lost", lost))
    shown = _whisper(build, 1)
    wait_until(lambda: build.state(shown) == "sent", "it counts as shown")
    gate.stop()
    gone = _whisper(build, 2)
    wait_until(lambda: build.state(gone) == "sending" and rig.fleet.tables.posts, "it is handed over")
    build.stop()
    rig.fleet.tables.posts.clear()

    build.up()
    gate.up()
    wait_until(lambda: build.state(gone) == "sent", "it counts as shown, too", 30)

    assert rig.room.texts(build.thread("guide")) == ["note 1"]
    for ident in (shown, gone):
        row = build.system.outbox.get(ident)
        assert row is not None
        assert row.reason is Reason.MAYBE_SHOWN


def _whisper(host: Host, number: int) -> str:
    """Commit a note that only U1 is to see, and return its id."""
    thread, ident = host.thread("guide"), f"p-whisper-{number}"
    note = NewPost(ident, ident, OutboundKind.NOTE, f"s-{host.name}-guide", "guide", "slack", f"note {number}")
    host.system.outbox.add([replace(note, channel=HOME, thread=thread, only_for="U1")])
    host.outbound.wake()
    return ident


def test_a_host_cannot_write_into_another_hosts_thread(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Neither the exchange nor the gateway lets it: not by the place, not by the body, not by an edit."""
    gate, build = pair
    relay, thread = build.joined.relay, gate.thread("guide")
    post = NewPost("p-evil", "evil", OutboundKind.NOTE, "s-build-guide", "guide", "slack", "evil")
    own = Place("slack", TEAM, HOME, build.thread("guide"))

    def hand_over(body: Say, place: Place) -> str:
        ident = new_id()
        relay.exchange.hand_over([HostPost(ident, "s-build-guide", place, 0, *written_post(body))])
        return ident

    with pytest.raises(PlaceRefused):
        hand_over(Say(post, HOME, thread), Place("slack", TEAM, HOME, thread))
    hand_over(Say(post, HOME, thread), own)
    hand_over(Say(post, HOME, build.thread("guide"), ts=thread), own)
    hand_over(Say(post, HOME, thread), Place("slack", TEAM, HOME, ""))
    wait_until(lambda: all(one.result for one in rig.fleet.tables.posts.values()), "all are answered", 20)

    assert all("evil" not in message.text for message in rig.room.messages)


def test_marks_and_statuses_are_shown_by_the_gateway(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A reaction stands on the message of the reply; of a status the latest is shown."""
    _, build = pair
    reply = reply_to(build.thread("guide"), "hello", 1)
    write(rig.room, reply)
    wait_until(lambda: build.taken("guide"), "it arrived")
    [channel] = build.joined.channels

    channel.react(HOME, reply.ts, Mark.TAKEN, ())
    for text in ("is working…", "is waiting", ""):
        channel.status(HOME, build.thread("guide"), text)
    wait_until(lambda: rig.room.reactions.get(reply.ts) == {Mark.TAKEN}, "the mark stands there")
    wait_until(lambda: (build.thread("guide"), "") in rig.room.statuses, "the last status is shown")

    assert rig.room.statuses[0] == (build.thread("guide"), "is working…")


def test_a_status_that_an_older_engine_has_lost_keeps_no_later_one_back(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Nobody will ever tell what became of it."""
    gate, build = pair
    [channel] = build.joined.channels
    thread = build.thread("guide")
    before = rig.fleet.snapshot()
    gate.stop()
    channel.status(HOME, thread, "is working…")
    rig.fleet.away("it is put back")
    wait_until(lambda: build.joined.relay.away, "the host knows it")
    rig.fleet.restore(before)
    rig.fleet.away("")
    build.wait_published()

    channel.status(HOME, thread, "is waiting")
    gate.up()

    wait_until(lambda: (thread, "is waiting") in rig.room.statuses, "the later one is shown")


def test_a_thread_is_read_by_the_gateway(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A host whose database was lost learns what stands in its thread, and of no other host's."""
    gate, build = pair
    [channel] = build.joined.channels

    seen = channel.read_thread(HOME, build.thread("guide"))

    assert [own.uid for own in seen.posts] == ["s-build-guide"]
    with pytest.raises(ChannelError, match="another host"):
        _read_other(build, gate.thread("guide"))


def _read_other(host: Host, thread: str) -> None:
    key = "0" * 32
    post = HostPost(key, f"s-{host.name}-guide", Place("slack", "", HOME, ""), 0, *written_post(Read(HOME, thread)))
    host.joined.relay.read(key, lambda again: post)


def test_files_come_with_their_message(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The gateway fetches them, the host keeps them in the session's folder, and nothing of them stays between."""
    _, build = pair
    files = tuple(Attachment(f"F{n}", f"notes{n}.txt", "text/plain", 10, "https://x") for n in (1, 2))

    write(rig.room, reply_to(build.thread("guide"), "see these", 1, files=files))
    wait_until(lambda: build.taken("guide") and "2-notes2.txt" in build.taken("guide")[0], "both are named in it")

    [text] = build.taken("guide")
    paths = [Path(line.partition("(file: ")[2].partition(" ,")[0]) for line in text.splitlines()[1:]]
    assert [path.read_text() for path in paths] == ["notes1.txt", "notes2.txt"]
    assert all(build.system.paths.root in path.parents for path in paths)
    wait_until(lambda: not rig.fleet.tables.blobs and not rig.fleet.tables.posts, "nothing is left between")


def test_a_file_is_attached_by_the_gateway(rig: Rig, pair: tuple[Host, Host], tmp_path: Path) -> None:
    """Its bytes go through the exchange; the gateway posts them under the file's own name."""
    _, build = pair
    seen = _files_posted(rig.room)

    ident = _attach(build, tmp_path / "chart.csv")
    wait_until(lambda: build.state(ident) == "sent", "it was posted")

    assert seen == [("chart.csv", b"1,2\n")]
    assert not rig.fleet.tables.blobs


def test_a_file_that_is_gone_from_the_exchange_is_handed_over_again(
    rig: Rig, pair: tuple[Host, Host], tmp_path: Path
) -> None:
    """Its post waited for longer than files are kept; nothing behind it in the channel waits for ever."""
    gate, build = pair
    gate.stop()
    seen = _files_posted(rig.room)
    ident = _attach(build, tmp_path / "chart.csv")
    wait_until(lambda: rig.fleet.tables.posts, "it was handed over")
    rig.fleet.tables.blobs.clear()

    gate.up()
    wait_until(lambda: build.state(ident) == "sent", "it was posted")

    assert seen == [("chart.csv", b"1,2\n")]


def _files_posted(room: Room) -> list[tuple[str, bytes]]:
    """Return the list of names and contents of the files that are posted from now on."""
    seen: list[tuple[str, bytes]] = []
    real = room.post

    def post(post: NewPost, channel: str, thread: str) -> Posted:
        if post.path:
            seen.append((Path(post.path).name, Path(post.path).read_bytes()))
        return real(post, channel, thread)

    room.post = post  # type: ignore[method-assign]
    return seen


def _attach(host: Host, file: Path) -> str:
    """Commit a post of `guide` with a file, and return its id."""
    file.write_bytes(b"1,2\n")
    ident, uid = "p-post-1-file", f"s-{host.name}-guide"
    post = NewPost(ident, ident, OutboundKind.ATTACHMENT, uid, "guide", "slack", "chart", path=str(file))
    host.system.outbox.add([post])
    host.outbound.wake()
    return ident


def test_what_nobody_fetched_in_time_is_removed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway sees to it from time to time: the database does not grow with files and answers."""
    monkeypatch.setattr("core.fleet.gateway._TIDY_SECONDS", 0.1)
    build = rig.host("build").up()
    exchange, tables = build.joined.relay.exchange, rig.fleet.tables
    exchange.put_blob("0" * 32, [b"nobody's"])
    tables.answers["1" * 32] = "{}", rig.clock.now() + timedelta(seconds=ANSWER_SECONDS)
    rig.host("gate", gateway=True, room=rig.room).up()
    rig.served()
    kept = bool(tables.blobs and tables.answers)

    rig.clock.move(seconds=BLOB_SECONDS + 1)
    wait_until(lambda: not tables.blobs and not tables.answers, "both are removed")

    assert kept


# ------------------------------------------------------------ presses and commands


def test_a_command_is_done_by_the_host_that_has_the_session(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A name that two hosts have needs the host; one that nobody has is unknown."""
    _, build = pair
    build.session("alone")
    build.joined.publisher.wake()
    [door] = rig.room.doors
    wait_until(lambda: any(one.name == "alone" for one in door.threads("slack", TEAM)), "it is published")

    both, there, missing = (ordered(door, name, "loops") for name in ("guide", "alone", "nobody"))
    exact = ordered(door, "guide@build", "loops")

    assert "guide@build` or `guide@gate" in str(both)
    assert not isinstance(there, CoreError), there
    assert not isinstance(exact, CoreError), exact
    assert isinstance(missing, UnknownSession)


def test_whoever_creates_a_session_is_told_where(
    pair: tuple[Host, Host], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made at the gateway's host, whichever one that is."""
    gate, _ = pair
    wait_until(lambda: rig.room.doors, "the gateway serves")
    monkeypatch.setattr(gate.door, "create", lambda creation: PrivateAnswer("new is created."))
    creation = IncomingCreation("slack", "U1", "ann", "new", "", "work", "", "", HOME, None)

    told = rig.room.doors[0].create(creation)

    assert told.text == "new is created. New sessions are those of `gate`."


def test_to_a_silent_host_no_command_is_sent(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Whoever commands is told at once that nothing was done, and since when the host was not heard of."""
    _, build = pair
    build.stop()
    [door] = rig.room.doors

    wait_until(lambda: "last heard of" in str(ordered(door, "guide@build")), "the host is known to be silent", 30)

    assert isinstance(ordered(door, "guide@build"), Refused)
    assert "nothing was done, because `build` was last heard of at" in str(ordered(door, "guide@build"))
    assert "order" not in rig.waiting()


def test_a_command_that_nobody_took_is_taken_back(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that hangs takes it not even later: whoever commanded was told that nothing was done."""
    monkeypatch.setattr("core.fleet.gateway._COMMAND_SECONDS", 0.5)
    _, build = pair
    build.freeze()
    [door] = rig.room.doors

    told = ordered(door, "guide@build")

    assert "nothing was done, because `build` did not take it within" in str(told)
    assert "order" not in rig.waiting()


def test_a_command_that_came_too_late_is_not_done(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Its deadline goes by the exchange's clock."""
    gate, build = pair
    build.stop()
    assert gate.joined.gateway is not None
    held = gate.joined.gateway.held
    assert held is not None
    ident, order = new_id(), IncomingOrder("slack", "U1", "ann", "stop", "guide", "")
    call = NewCall(ident, "build", *written_call(Ordered(order)), "s-build-guide", 1.0)
    gate.joined.gateway.exchange.send(held.lease, [call])
    rig.clock.move(seconds=2)
    build.up()
    wait_until(lambda: ident in rig.fleet.tables.answers, "it is answered")

    answer = read_answer(rig.fleet.tables.answers[ident][0])
    assert isinstance(answer, Failed)
    assert "too late, so nothing was done" in answer.told


# ------------------------------------------------------------ silent hosts, the lease, the unknown


def test_a_thread_is_told_once_that_its_host_is_silent(rig: Rig, pair: tuple[Host, Host]) -> None:
    """The reply is kept; the note says since when, and comes once, whatever else is written."""
    _, build = pair
    build.stop()
    thread = build.thread("guide")
    wait_until(lambda: "last heard of" in str(ordered(rig.room.doors[0], "guide@build")), "it is silent", 30)

    write(rig.room, reply_to(thread, "are you there", 1), reply_to(thread, "hello?", 2))
    wait_until(lambda: rig.room.texts(thread), "the thread is told")
    write(rig.room, reply_to(thread, "still not?", 3))
    build.up()
    wait_until(lambda: len(build.taken("guide")) == 3, "all arrived")

    [note] = rig.room.texts(thread)
    assert note.startswith("`build` was last heard of at ")
    assert "Your reply is kept" in note


def test_a_gateway_without_its_lease_closes_its_socket(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Another one takes it; the first one's door commits nothing any more."""
    gate, build = pair
    [old] = rig.room.doors
    spare = rig.host("spare", gateway=True, room=rig.room).up()

    rig.fleet.tables.token = "another"
    with pytest.raises(StoreBroken):
        old.receive([reply_to(build.thread("guide"), "late", 1)], lambda words: None)
    wait_until(lambda: old not in rig.room.doors, "its socket is closed")
    rig.fleet.tables.until = None
    write(rig.room, reply_to(build.thread("guide"), "late", 1))
    wait_until(lambda: build.taken("guide") == ["late"], "it arrived by whoever has the lease")

    assert {gate.name, spare.name} >= {rig.fleet.tables.holder}


def test_a_standby_takes_what_is_given_back_and_asks_seldom(
    rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet in which nothing happens costs 0.3 statements a second for it; a clean stop is known at once."""
    gate, _ = pair
    asked: list[float] = []
    lease = MemoryGateway.lease

    def counted(exchange: MemoryGateway, *given: float) -> Lease | None:
        asked.append(time.monotonic())
        return lease(exchange, *given)

    monkeypatch.setattr(MemoryGateway, "lease", counted)
    spare = rig.host("spare", gateway=True, room=rig.room).up()
    wait_until(lambda: len(asked) > 1 and asked[-1] - asked[-2] > 2, "what was published at its start has rung")
    began = len(asked)
    time.sleep(8)  # in which the questions are counted
    assert len(asked) - began <= 3

    gate.stop()
    wait_until(lambda: rig.fleet.tables.holder == spare.name, "the other one has it", 2)


def test_a_gateway_that_is_back_is_soon_known(rig: Rig, pair: tuple[Host, Host]) -> None:
    """While none speaks a host asks more often, since nothing tells it."""
    gate, build = pair
    gate.stop()
    build.joined.relay._beat_due = None
    build.joined.relay.wake()
    wait_until(lambda: "no gateway" in _row(build, "fleet"), "none speaks")

    gate.up()

    wait_until(lambda: "the gateway is gate" in _row(build, "fleet"), "it is known", 5)


def test_a_quiet_host_stops_at_once(rig: Rig, pair: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the exchange is woken: the relay, the publisher, a gateway that stands by."""
    waiting = [*map(partial(_waiting, monkeypatch), (MemoryHost, MemoryGateway))]
    spare = rig.host("spare", gateway=True, room=rig.room).up()
    assert spare.joined.gateway is not None
    own = (spare.joined.relay.exchange, spare.joined.gateway.exchange)
    wait_until(lambda: all(one in seen for one, seen in zip(own, waiting, strict=True)), "both wait")

    began = time.monotonic()
    spare.stop()

    assert time.monotonic() - began < 3


def _waiting(monkeypatch: pytest.MonkeyPatch, kind: type[MemoryHost] | type[MemoryGateway]) -> list[object]:
    """Return the list of those that wait, which grows with each wait that begins."""
    seen, wait = list[object](), kind.wait

    def noted(exchange: Any, seconds: float) -> None:
        seen.append(exchange)
        wait(exchange, seconds)

    monkeypatch.setattr(kind, "wait", noted)
    return seen


def test_turns_that_would_be_shown_as_they_run_are_not_and_status_says_so(rig: Rig) -> None:
    """Only where the settings ask for them."""
    gate = rig.host("gate", gateway=True)
    gate.room.streams = True
    gate.up()
    wait_until(lambda: "the gateway is gate" in _row(gate, "fleet"), "it speaks")
    gate.connections.set("slack", True, "connected")
    build = rig.host("build").up()
    wait_until(lambda: "the gateway is gate" in _row(build, "slack"), "its chat is reached by the gateway")

    assert _row(gate, "slack") == f"connected; {NOT_LIVE}"
    assert NOT_LIVE not in _row(build, "slack")


def test_a_fleet_that_is_away_is_told_and_lets_everything_wait(rig: Rig, pair: tuple[Host, Host]) -> None:
    """Replies are not taken, posts wait here, `status` says since when; afterwards both go on."""
    _, build = pair
    rig.fleet.away("the engine was stopped")
    ident = build.say("guide", "meanwhile")
    wait_until(lambda: "has not answered since" in _row(build, "fleet"), "the host tells it")
    wait_until(lambda: not rig.room.doors, "the gateway has closed its socket", 30)

    assert build.state(ident) == "sending"
    assert rig.room.texts(build.thread("guide")) == []
    rig.fleet.away("")
    write(rig.room, reply_to(build.thread("guide"), "again", 1), seconds=40)
    wait_until(lambda: build.state(ident) == "sent" and build.taken("guide"), "both go on")

    assert rig.room.texts(build.thread("guide")) == ["meanwhile"]
    wait_until(lambda: "the gateway is gate" in _row(build, "fleet"), "the host tells that, too", 30)


def test_what_a_release_does_not_know_stays_and_is_told(rig: Rig, pair: tuple[Host, Host]) -> None:
    """A call of an unknown kind keeps its session's later ones back, and no other session's."""
    gate, build = pair
    build.session("other")
    build.joined.publisher.wake()
    [door] = rig.room.doors
    wait_until(lambda: any(one.name == "other" for one in door.threads("slack", TEAM)), "it is published")
    assert gate.joined.gateway is not None
    held = gate.joined.gateway.held
    assert held is not None
    later = NewCall("later", "build", "picture", json.dumps({"v": 9}), "s-build-guide")

    gate.joined.gateway.exchange.send(held.lease, [later])
    write(rig.room, reply_to(build.thread("guide"), "behind it", 1), reply_to(build.thread("other"), "beside it", 2))
    wait_until(lambda: build.taken("other"), "the other session's is taken")
    wait_until(lambda: "upgrade the-loop here" in _row(build, "fleet"), "it is told")

    assert build.taken("guide") == []
    wait_until(lambda: sorted(rig.waiting()) == ["picture", "reply"], "what is stuck stays, and nothing else")


def _row(host: Host, name: str) -> str:
    return next((row.detail for row in host.connections.rows() if row.name == name), "")


def test_five_hosts_say_much_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each post stands there once, each session's in its order, and the hosts take turns."""
    monkeypatch.setattr("core.fleet.gateway._PACE_SECONDS", {})
    rig.host("gate", gateway=True).up()
    hosts = [rig.host(f"host{n}") for n in range(4)]
    for host in hosts:
        host.session("guide")
        host.up()
    rig.served()
    posts = [(host, host.say("guide", f"{host.name} {n}", n)) for n in range(10) for host in hosts]

    wait_until(lambda: all(host.state(ident) == "sent" for host, ident in posts), "all are posted", 60)

    for host in hosts:
        assert rig.room.texts(host.thread("guide")) == [f"{host.name} {n}" for n in range(10)]


def test_many_replies_with_trouble_arrive_once_and_in_order(rig: Rig, pair: tuple[Host, Host]) -> None:
    """While the engine comes and goes, and the host is restarted, nothing is lost, doubled or out of order."""
    _, build = pair
    ended = threading.Event()

    def trouble() -> None:
        for number in range(4):
            rig.fleet.away("trouble")
            ended.wait(0.2)
            rig.fleet.away("")
            ended.wait(0.4)
            if number == 1:
                build.stop()
                build.up()

    maker = threading.Thread(target=trouble)
    maker.start()
    write(rig.room, *(reply_to(build.thread("guide"), f"n{n:03d}", n) for n in range(100)), seconds=60)
    maker.join()
    wait_until(lambda: len(build.taken("guide")) >= 100, "all arrived", 60)

    assert build.taken("guide") == [f"n{n:03d}" for n in range(100)]
