"""queue, cancel, and what a stop does to what waits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import Refused, UnknownMessage, UnknownSession
from core.base.names import new_marker, new_message_id
from core.delivery.saying import cancel_message, queue_of
from core.lifecycle.pause import pause_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import OutboundKind, PostState
from core.model.reasons import Because, Reason
from core.session.system import System
from tests.integration.lifecycle.held import deliver, tell, wait_for, work
from tests.support.killed import run_until
from tests.support.talking import rows, times
from tests.support.world import ACTOR, World, recorded, waiting_message

S = MessageState


@pytest.fixture
def world(world: World) -> World:
    """Give a world whose agent is the bundled one."""
    return replace(world, harness="bundled", declared=("scribe",))


@pytest.fixture
def paused(system: System) -> System:
    """Give the ports with a paused `scribe`."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    pause_standing(system, "scribe", ACTOR)
    return system


def reply(system: System, thread: str, text: str = "hello") -> NewMessage:
    """Commit a reply from a thread and return it."""
    record, now, ident = recorded(system, "scribe"), system.clock.now(), new_message_id()
    address = ReplyAddress("slack", "T1", "C1", thread, f"{now.timestamp():.6f}")
    message = NewMessage(
        ident, f"slack:{ident}", record.uid, "scribe", record.generation, Kind.REPLY, "slack:U1", "alice", "slack",
        new_marker(), text, False, int(now.timestamp() * 1e6), now, address,
    )  # fmt: skip
    system.inbox.add([message])
    return message


def notes(system: System) -> list[tuple[str, str]]:
    """Return thread and text of the note that would be posted next."""
    later = datetime.now(UTC) + timedelta(days=1)
    return [(row.post.thread, row.post.text) for row in system.outbox.due("slack", later)]


def test_the_queue_tells_order_state_and_length(paused: System) -> None:
    """No text without being asked for."""
    tell(paused, "first")
    tell(paused, "the second")

    queue = queue_of(paused, "scribe").to_json()
    with_text = queue_of(paused, "scribe").to_json(text=True)

    assert (queue["name"], queue["limit"]) == ("scribe", paused.settings.limits.queued_per_session)
    keys = ("length", "state", "reason", "detail", "kind", "actor")
    assert [tuple(message[key] for key in keys) for message in queue["messages"]] == [
        (5, "queued", "paused", "the session is paused", "say", ACTOR),
        (10, "queued", "paused", "the session is paused; 1 message is ahead", "say", ACTOR),
    ]
    assert all("text" not in message and message["ageSeconds"] >= 0 for message in queue["messages"])
    assert [message["text"] for message in with_text["messages"]] == ["first", "the second"]


def test_the_queue_counts_what_is_still_ahead(paused: System) -> None:
    """Its details were written when each message came, and one before them was cancelled since."""
    first, second, third = (waiting_message(paused, "scribe") for _ in range(3))
    for ahead, row in enumerate((first, second, third)):
        waiting = paused.inbox.get(row.id)
        assert waiting is not None
        paused.inbox.advance(waiting, S.QUEUED, Because(Reason.PAUSED, {"ahead": ahead}))

    cancel_message(paused, second.id, "cli:bob")
    one_less = [message.detail for message in queue_of(paused, "scribe").messages]
    cancel_message(paused, first.id, "cli:bob")

    assert one_less == ["the session is paused", "the session is paused; 1 message is ahead"]
    assert [message.detail for message in queue_of(paused, "scribe").messages] == ["the session is paused"]


def test_an_empty_queue_and_an_unknown_name(system: System) -> None:
    """A session that never ran has nothing waiting; one that nobody knows has no queue."""
    assert queue_of(system, "scribe").messages == ()
    with pytest.raises(UnknownSession):
        queue_of(system, "nobody")


def test_a_cancelled_message_never_goes_in(paused: System) -> None:
    """The others do, and its row says who cancelled it."""
    tell(paused, "not this one")
    tell(paused, "this one")
    [first, _] = rows(paused)

    cancel_message(paused, first.message.id, "cli:bob")

    row = paused.inbox.get(first.message.id)
    assert row is not None
    assert (row.state, row.detail) == (S.CANCELLED, "cancelled by cli:bob")
    assert len(queue_of(paused, "scribe").messages) == 1


def test_the_sender_of_a_cancelled_reply_is_told_in_the_thread(paused: System) -> None:
    """One note, with the remedy."""
    message = reply(paused, "1.1")
    deliver(paused)

    cancel_message(paused, message.id, "cli:bob")

    [(thread, text)] = notes(paused)
    assert thread == "1.1"
    assert "was cancelled by cli:bob. To do" in text
    assert "send it again" in text


def test_what_is_over_or_unknown_cannot_be_cancelled(system: System) -> None:
    """The refusal names the state."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    tell(system, "done already")
    [row] = rows(system)

    with pytest.raises(Refused, match="it is confirmed"):
        cancel_message(system, row.message.id, ACTOR)
    with pytest.raises(UnknownMessage):
        cancel_message(system, "m-nosuchmessage", ACTOR)


def test_what_the_harness_holds_is_listed_and_can_be_cancelled_once_it_is_taken_back(system: System) -> None:
    """It stands before what waits with us, and the refusal says what to do first."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    work(system)
    assert tell(system, "one thing") is S.ACCEPTED
    assert tell(system, "another thing") is S.ACCEPTED

    listed = queue_of(system, "scribe").to_json(text=True)["messages"]
    with pytest.raises(Refused, match="own queue") as refused:
        cancel_message(system, listed[0]["id"], ACTOR)
    pause_standing(system, "scribe", ACTOR)
    cancelled = cancel_message(system, listed[0]["id"], ACTOR)

    assert [each["text"] for each in listed] == ["one thing", "another thing"]
    assert {each["state"] for each in listed} == {"accepted"}
    assert "own queue" in listed[0]["detail"]
    assert "standing pause scribe" in str(refused.value.remedy)
    assert cancelled.state is S.CANCELLED


def test_what_is_in_flight_cannot_be_cancelled(system: System) -> None:
    """Its text may be in the terminal."""
    assert start_standing(system, "scribe", ACTOR).ok
    message = waiting_message(system, "scribe")
    row = system.inbox.get(message.id)
    assert row is not None
    system.inbox.advance(row, S.CLAIMED, attempt=1, attempt_deadline=system.clock.now() + timedelta(seconds=9))

    with pytest.raises(Refused, match="it is claimed"):
        cancel_message(system, message.id, ACTOR)


# ---------------------------------------------------------------- stop


def test_a_stop_tells_each_thread_once_how_many_it_cancelled(paused: System) -> None:
    """Not a note for each message; what came by the command line is nobody's thread."""
    for thread in ("1.1", "1.1", "2.2"):
        reply(paused, thread)
    tell(paused, "by the command line")

    stop_standing(paused, "scribe", ACTOR)

    cancelled = [row.state for row in rows(paused)]
    with_note = _posts(paused)
    assert cancelled == [S.CANCELLED] * 4
    assert sorted((thread, text.split(" cancelled")[0]) for thread, text in with_note) == [
        ("1.1", "`scribe` was stopped; 2 messages that waited were"),
        ("2.2", "`scribe` was stopped; 1 message that waited was"),
    ]


def test_a_second_stop_and_reconcile_tell_nobody_again(paused: System) -> None:
    """Exactly one note, however often the stop is finished."""
    reply(paused, "1.1")
    stop_standing(paused, "scribe", ACTOR)

    stop_standing(paused, "scribe", ACTOR)
    reconcile(paused, ACTOR)

    assert len(_posts(paused)) == 1


def test_a_stop_without_a_name_tells_nobody_and_keeps_what_waits(paused: System) -> None:
    """It goes in when the session was started and resumed."""
    message = reply(paused, "1.1")

    stop_standing(paused, None, ACTOR)

    row = paused.inbox.get(message.id)
    assert row is not None
    assert row.state in (S.PENDING, S.QUEUED)
    assert _posts(paused) == []


def test_a_stop_ends_what_a_pause_kept(paused: System) -> None:
    """The stop mark takes the place of the pause, and a start by name clears it."""
    tell(paused, "no longer wanted")

    stop_standing(paused, "scribe", ACTOR)
    start_standing(paused, "scribe", ACTOR)
    wait_for(paused, ActivityState.IDLE)

    assert recorded(paused, "scribe").hold is None
    assert tell(paused, "wanted") is S.CONFIRMED
    assert times(paused, "wanted") == 1
    assert [row.state for row in rows(paused)] == [S.CANCELLED, S.CONFIRMED]


@pytest.mark.parametrize("point", ["stop.mark:after", "stop.cancel:before", "stop.cancel:after", "end.tree:after"])
def test_a_stop_that_was_killed_tells_once_when_reconcile_finishes_it(paused: System, world: World, point: str) -> None:
    """Neither not at all nor twice."""
    message = reply(paused, "1.1")
    killed = run_until(point, world.folder, "world", str(world.save()), "stop", "scribe")

    reconcile(paused, ACTOR)
    stop_standing(paused, "scribe", ACTOR)

    row = paused.inbox.get(message.id)
    assert row is not None
    assert (killed.code, row.state) == (-9, S.CANCELLED)
    assert len(_posts(paused)) == 1


def _posts(system: System) -> list[tuple[str, str]]:
    """Return thread and text of every note about a stop, one after the other as they would be posted."""
    found = []
    later = datetime.now(UTC) + timedelta(days=1)
    while due := [row for row in system.outbox.due("slack", later) if row.post.kind is OutboundKind.NOTE]:
        for row in due:
            if "was stopped;" in row.post.text:
                found.append((row.post.thread, row.post.text))
            sending = system.outbox.advance(row, PostState.SENDING)
            system.outbox.advance(sending, PostState.SENT, ts="9.9")
    return found
