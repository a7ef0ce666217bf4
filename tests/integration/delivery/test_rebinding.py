"""Threads after the database was lost: the record names one, and the chat is asked whether it is the session's."""

import signal
from datetime import UTC, datetime

import pytest

from core.base.errors import ChannelError
from core.base.failpoints import Failpoint
from core.chat.inbound import Inbound, NullMirror
from core.chat.outbound import OutboundWorker
from core.lifecycle.common import write_record
from core.lifecycle.look import get_standing
from core.model.channel import IncomingReply, Verdict
from core.model.posts import OutboundKind
from core.model.session import Binding
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat, Message
from tests.support.killed import run_until
from tests.support.losing import THREAD, thread_of, without_database
from tests.support.outgoing import HandClock, drain, post
from tests.support.talking import talking
from tests.support.world import World, events

T0 = datetime(2026, 11, 29, tzinfo=UTC)
AWAY = ChannelError("Slack cannot be reached", transient=True)
FORBIDDEN = ChannelError("missing_scope", transient=False, reason=ChannelError.NOT_ALLOWED)


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def chat() -> Chat:
    """Give a chat with the session's thread: its announcement and an answer."""
    return thread_of("s-1")


@pytest.fixture
def lost(system: System, clock: HandClock) -> System:
    """Give ports with an empty database, and the record of `scribe` that names its thread."""
    return without_database(system, clock)


def bound(system: System) -> str | None:
    """Return the session's thread."""
    binding = system.bindings.of_session("s-1", "slack")
    return binding.thread if binding else None


def reply(ts: str) -> IncomingReply:
    """Return a reply in the thread."""
    return IncomingReply("slack", TEAM, HOME, THREAD, ts, "U1", "alice", TEAM, False, False, "plain", "hello")


def copy(system: System) -> str | None:
    """Return the thread that the record names."""
    record = system.records.read("scribe")
    assert record is not None
    return record.thread.thread if record.thread else None


def rewrite(system: System) -> None:
    """Write the record as every verb does."""
    record = system.records.read("scribe")
    assert record is not None
    with system.locks.hold("scribe", "test", 1.0):
        write_record(system.records, system.bindings, system.activities, record)


def test_the_thread_is_taken_back_with_one_note(lost: System, chat: Chat, clock: HandClock) -> None:
    """No start has to come; a second service finds nothing more to do, and says nothing more."""
    drain(OutboundWorker(lost, chat), clock)
    drain(OutboundWorker(lost, chat), clock)

    assert bound(lost) == THREAD
    [note] = [text for text in chat.texts(THREAD) if "database of the-loop was lost" in text]
    assert "`the-loop loop list scribe`" in note
    [event] = events(lost, "channel.rebound")
    assert (event["name"], event["thread"], event["reason"]) == ("scribe", THREAD, "database-lost")


def test_what_stood_there_is_not_taken_and_what_comes_is(lost: System, chat: Chat, clock: HandClock) -> None:
    """The lost database may have known the former as taken: they would be doubled."""
    drain(OutboundWorker(lost, chat), clock)
    inbound = Inbound(lost, chat.authorized, NullMirror())

    verdicts = inbound.receive([reply("1700.000004"), reply("1700.000005"), reply("1700.000006")])

    assert verdicts == (Verdict.DROPPED, Verdict.DROPPED, Verdict.COMMITTED)
    assert inbound.counters["before-loss"] == 2


def test_a_root_that_waits_becomes_an_edit_of_the_one_that_is_there(lost: System, chat: Chat, clock: HandClock) -> None:
    """A start that came before the service knew nothing of the thread; there is no second one."""
    lost.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1)])

    drain(OutboundWorker(lost, chat), clock)

    assert chat.texts("") == ["root 0"]
    assert [text for text in chat.texts(THREAD) if text == "answer 1"] == ["answer 1"]
    assert bound(lost) == THREAD


@pytest.mark.parametrize("trouble", [AWAY, FORBIDDEN], ids=["away", "forbidden"])
def test_no_second_thread_while_the_chat_cannot_be_asked(
    lost: System, chat: Chat, clock: HandClock, trouble: ChannelError
) -> None:
    """Not to know is no answer: the root waits, with the reason, and so does an answer."""
    chat.faults = [("read", trouble)] * 4
    lost.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1)])
    worker = OutboundWorker(lost, chat)

    drain(worker, clock, turns=8)
    row = lost.outbox.get("p-root-s-1-0")
    posts = len(chat.messages)
    for _ in range(6):
        clock.ahead += 20
        worker.turn()
    drain(worker, clock)

    assert posts == 2
    assert row is not None
    assert str(trouble) in row.detail
    assert bound(lost) == THREAD
    assert "answer 1" in chat.texts(THREAD)


@pytest.mark.parametrize("reason", [ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER, ChannelError.THREAD_GONE])
def test_where_it_is_gone_the_root_that_waits_opens_a_new_thread(
    lost: System, chat: Chat, clock: HandClock, reason: str
) -> None:
    """The chat has answered: there is no such thread for us."""
    chat.faults = [("read", ChannelError("gone", transient=False, reason=reason))]
    lost.outbox.add([post(OutboundKind.ROOT)])

    drain(OutboundWorker(lost, chat), clock)

    assert chat.texts("")[-1] == "root 0"
    assert bound(lost) not in (None, THREAD)
    assert [event["reason"] for event in events(lost, "channel.unbound")] == [reason]


def test_a_thread_of_an_earlier_session_of_that_name_is_refused_once(lost: System, clock: HandClock) -> None:
    """Its uid is another; the record then names it no more, and a second service does not ask again."""
    chat = thread_of("s-0")

    drain(OutboundWorker(lost, chat), clock)
    drain(OutboundWorker(lost, chat), clock)
    rewrite(lost)

    assert bound(lost) is None
    assert [event["reason"] for event in events(lost, "channel.unbound")] == ["root-of-another"]
    assert chat.calls.count("read") == 1
    assert copy(lost) is None


def test_a_thread_that_was_closed_stays_closed(lost: System, chat: Chat, clock: HandClock) -> None:
    """Our own word in it says that replies there reach nobody."""
    chat.messages.append(
        Message(f"p-sharing-s-1-{THREAD}", HOME, THREAD, "1700.000003", "closed", "note", "scribe", "s-1")
    )

    drain(OutboundWorker(lost, chat), clock)

    assert bound(lost) is None
    assert [event["reason"] for event in events(lost, "channel.unbound")] == ["parted"]


def test_a_thread_in_another_channel_than_the_configured_one_is_left(
    system: System, chat: Chat, clock: HandClock
) -> None:
    """Nobody has to ask: the session is announced elsewhere."""
    lost = without_database(system, clock, channel="C2")

    drain(OutboundWorker(lost, chat), clock)

    assert bound(lost) is None
    assert "read" not in chat.calls
    assert [event["reason"] for event in events(lost, "channel.unbound")] == ["channel-changed"]


def test_a_session_that_was_parted_from_its_thread_is_not_brought_back(
    lost: System, chat: Chat, clock: HandClock
) -> None:
    """With its database it knows that it left; the record's copy goes with its next write."""
    lost.bindings.bind(Binding("slack", TEAM, HOME, THREAD, "s-1", "scribe", T0))
    lost.bindings.unbind("s-1", "slack")

    drain(OutboundWorker(lost, chat), clock)

    assert bound(lost) is None
    assert chat.calls == []


def test_a_write_of_the_record_keeps_the_copy_until_the_chat_was_asked(lost: System) -> None:
    """The boot's sweep writes records before anybody could ask."""
    rewrite(lost)

    assert copy(lost) == THREAD


def test_a_thread_that_another_session_has_is_not_bound_twice(lost: System, chat: Chat, clock: HandClock) -> None:
    """A reply would reach the wrong one; the posts of all others go on."""
    lost.bindings.bind(Binding("slack", TEAM, HOME, THREAD, "s-9", "other", T0))
    lost.outbox.add([post(OutboundKind.ANSWER, 1, "s-9")])

    drain(OutboundWorker(lost, chat), clock)

    assert bound(lost) is None
    assert "answer 1" in chat.texts(THREAD)


def test_a_row_says_that_a_session_was_parted_from_its_thread(lost: System, clock: HandClock) -> None:
    """With the command that makes a new one, until that is there."""
    chat = thread_of("s-0")
    drain(OutboundWorker(lost, chat), clock)

    parted = get_standing(lost, "scribe").detail
    lost.outbox.add([post(OutboundKind.ROOT)])
    drain(OutboundWorker(lost, chat), clock)
    again = get_standing(lost, "scribe").detail

    assert "it no longer has a thread" in parted
    assert "standing announce scribe" in parted
    assert "no thread" not in again


# ---------------------------------------------------------------- kill -9


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("effect", "uid"), [(Failpoint.REBIND, "s-1"), (Failpoint.REBIND_REFUSE, "s-0")])
def test_a_crash_at_the_answer_leaves_it_to_the_next_service(
    world: World, effect: Failpoint, uid: str, side: str
) -> None:
    """Before it nothing was decided; after it everything, and nothing is said twice."""
    clock, chat = HandClock(), thread_of(uid)
    lost = without_database(talking(world), clock)

    died = run_until(f"{effect.value}:{side}", world.folder, "losing", str(world.save()), uid)
    drain(OutboundWorker(lost, chat), clock)

    assert died.code == -signal.SIGKILL, died.output
    assert bound(lost) == (THREAD if uid == "s-1" else None)
    notes = [text for text in chat.texts(THREAD) if "database of the-loop was lost" in text]
    assert len(notes) == (1 if uid == "s-1" else 0)
