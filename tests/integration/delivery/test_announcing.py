"""The announcement on demand, and what becomes of a thread whose channel is not the configured one any more."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base.errors import ChannelError, Refused, UnknownSession
from core.chat.inbound import Inbound, NullMirror
from core.chat.outbound import OutboundWorker
from core.config.settings import ChannelBlock
from core.lifecycle.announce import announce_standing, announce_start
from core.lifecycle.look import get_standing
from core.lifecycle.start import start_standing
from core.lifecycle.supervise import Drift
from core.model.asking import Press
from core.model.channel import IncomingReply, Verdict
from core.model.rows import Answer
from core.model.session import Binding, Outcome, SessionRecord, Thread
from core.process.presence import ServiceLock
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat
from tests.support.outgoing import HandClock, drain
from tests.support.outgoing import events as told
from tests.support.world import ACTOR, declaring, definition, events, recorded

T0 = datetime(2026, 11, 29, tzinfo=UTC)
OTHER = "C2"


def in_channel(system: System, channel: str, own: str = "") -> System:
    """Return the ports with `scribe` declared, announced in that channel or in one of its own."""
    block = ChannelBlock("slack", True, {"enabled": True, "channel": channel})
    scribe = definition("scribe", slack=True)
    scribe = replace(scribe, chat={"slack": replace(scribe.binding, channel=own)})
    return replace(
        declaring(system, scribe), settings=declaring(system, scribe).settings._replace(channels={"slack": block})
    )


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def chat() -> Chat:
    """Give an empty chat."""
    return Chat()


@pytest.fixture
def stopped(system: System, clock: HandClock) -> System:
    """Give ports with `scribe` recorded and down, to be announced in HOME."""
    system = in_channel(system, HOME)
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe", slack=True), T0, instance_id="i-1"))
    return replace(system, clock=clock)


def announced(system: System, chat: Chat, clock: HandClock) -> Answer:
    """Announce the session, and let a service post what waits."""
    answer = announce_standing(system, "scribe", ACTOR)
    drain(OutboundWorker(system, chat), clock)
    return answer


def outcome(answer: Answer) -> tuple[Outcome | None, bool]:
    """Return what was done, and whether that was well."""
    return answer.sessions[0].outcome, answer.ok


def test_without_a_service_it_waits_in_the_outbox(stopped: System, chat: Chat, clock: HandClock) -> None:
    """The answer says so at once; the next service opens the thread, and its root shows the present state."""
    answer = announced(stopped, chat, clock)

    assert outcome(answer) == (Outcome.WAITING, True)
    assert "no service is running" in answer.sessions[0].detail
    [root] = chat.messages
    assert (root.channel, root.thread) == (HOME, "")
    assert "`scribe` is down" in root.text
    binding = stopped.bindings.of_session("s-1", "slack")
    assert binding is not None
    assert (binding.channel, binding.thread) == (HOME, root.ts)


def test_an_announcement_that_is_there_is_edited(stopped: System, chat: Chat, clock: HandClock) -> None:
    """However often it is asked for: one root, with the present state."""
    announced(stopped, chat, clock)
    chat.messages[0].text = "what it said once"

    announced(stopped, chat, clock)
    announced(stopped, chat, clock)

    [root] = chat.messages
    assert "`scribe` is down" in root.text


@pytest.mark.parametrize("reason", [ChannelError.THREAD_GONE, ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER])
def test_where_the_announcement_is_gone_a_new_one_is_made(
    stopped: System, chat: Chat, clock: HandClock, reason: str
) -> None:
    """Only the chat knows that it is gone: the thread is parted from, and the new one bound."""
    announced(stopped, chat, clock)
    first = chat.messages[0].ts
    chat.faults.append(("update", ChannelError("it is gone", "", transient=False, reason=reason)))

    announced(stopped, chat, clock)

    binding = stopped.bindings.of_session("s-1", "slack")
    assert binding is not None
    assert (binding.channel, binding.thread) == (HOME, chat.messages[-1].ts)
    assert binding.thread != first
    assert [event["thread"] for event in events(stopped, "channel.unbound")] == [first]
    assert "`scribe` is down" in chat.messages[-1].text


def test_with_a_service_the_answer_says_what_was_done(stopped: System, chat: Chat) -> None:
    """Opened, edited, or failed with the chat's reason: nothing is told before it is known."""
    service = ServiceLock(stopped.paths.service_lock)
    service.take()
    clock = Posting()
    acting = replace(stopped, clock=clock)
    clock.worker = OutboundWorker(acting, chat)
    opened = announce_standing(acting, "scribe", ACTOR)
    edited = announce_standing(acting, "scribe", ACTOR)
    gone = ChannelError("is_archived", "unarchive it", transient=False, reason=ChannelError.CHANNEL_GONE)
    chat.faults += [("update", gone), ("post", gone)]
    failed = announce_standing(acting, "scribe", ACTOR)
    service.release()

    assert [outcome(opened), outcome(edited)] == [(Outcome.ANNOUNCED, True)] * 2
    assert "a new thread" in opened.sessions[0].detail
    assert "up to date" in edited.sessions[0].detail
    assert outcome(failed) == (Outcome.FAILED, False)
    assert "unarchive it" in failed.sessions[0].detail


class Posting(HandClock):
    """A clock whose every pause lets the service take a turn."""

    worker: OutboundWorker

    def pause(self, seconds: float) -> None:
        """Let time pass, and the service work."""
        self.ahead += 1.0
        self.worker.turn()


# ---------------------------------------------------------------- refusals


def test_a_name_that_nobody_knows(stopped: System) -> None:
    """Nothing is announced."""
    with pytest.raises(UnknownSession):
        announce_standing(stopped, "nobody", ACTOR)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (lambda system: declaring(system, definition("scribe")), r"slack\.enabled: true"),
        (lambda system: with_block(system, ChannelBlock("slack")), r"channels\.slack\.enabled: true"),
        (lambda system: with_block(system, ChannelBlock("slack", True, {"channel": ""})), r"channels\.slack\.channel"),
    ],
)
def test_what_has_no_thread_is_refused(stopped: System, change: Callable[[System], System], remedy: str) -> None:
    """Not asked for, not enabled, no channel: each names the key that is to be set."""
    with pytest.raises(Refused, match=remedy):
        announce_standing(change(stopped), "scribe", ACTOR)


def test_what_was_never_started_is_refused(system: System) -> None:
    """Its start announces it."""
    with pytest.raises(Refused, match="the-loop standing start scribe"):
        announce_standing(in_channel(system, HOME), "scribe", ACTOR)


def with_block(system: System, block: ChannelBlock) -> System:
    """Return the ports with that block of the channel."""
    return replace(system, settings=system.settings._replace(channels={"slack": block}))


# ---------------------------------------------------------------- a channel that changes


@pytest.mark.parametrize("own", ["", OTHER])
def test_a_changed_channel_is_drift_until_it_is_announced_there(
    stopped: System, chat: Chat, clock: HandClock, own: str
) -> None:
    """The old thread gets a last word and reaches nobody any more; the new one is opened and bound."""
    announced(stopped, chat, clock)
    old = chat.messages[0].ts
    changed = in_channel(stopped, HOME if own else OTHER, own)
    before = get_standing(changed, "scribe")
    Drift(changed, lambda: changed.settings).turn()

    announced(changed, chat, clock)

    after = get_standing(changed, "scribe")
    assert before.drift == (("slack",) if own else ("channels.slack.channel",))
    assert [event["reason"] for event in events(changed, "standing.drift")] == [", ".join(before.drift)]
    assert after.drift == ()
    assert after.thread == Thread("slack", OTHER, chat.messages[1].ts)
    assert [(one.channel, one.thread) for one in chat.messages] == [(HOME, ""), (OTHER, ""), (HOME, old)]
    assert "replies here reach nobody" in chat.messages[2].text
    [unbound] = events(changed, "channel.unbound")
    assert (unbound["thread"], unbound["reason"]) == (old, "channel-changed")
    assert said_in(changed, chat, HOME, old) == (Verdict.DROPPED, "unmapped")


def test_a_changed_channel_is_taken_over_by_a_start(system: System, chat: Chat, clock: HandClock) -> None:
    """The next one by a person or a boot; what brings a crashed session back leaves its thread alone."""
    home = replace(in_channel(system, HOME), clock=clock)
    start_standing(home, "scribe", ACTOR)
    drain(OutboundWorker(home, chat), clock)
    old = chat.messages[0].ts
    record = home.records.read("scribe")
    assert record is not None
    moving = in_channel(home, OTHER)

    home.runner.end(record.instance_id or "")
    answer = start_standing(moving, "scribe", ACTOR)
    drain(OutboundWorker(moving, chat), clock)

    assert answer.ok
    binding = moving.bindings.of_session(record.uid, "slack")
    assert binding is not None
    assert binding.channel == OTHER
    assert [message.thread for message in chat.messages if "reach nobody" in message.text] == [old]


def test_a_last_word_that_cannot_be_posted_holds_nothing_up(stopped: System, chat: Chat, clock: HandClock) -> None:
    """The old channel is archived: that is told, and the new thread is there."""
    stopped.bindings.bind(Binding("slack", TEAM, HOME, "17.1", "s-1", "scribe", T0))
    gone = ChannelError("is_archived", "", transient=False, reason=ChannelError.CHANNEL_GONE)
    changed = in_channel(stopped, OTHER)
    announce_standing(changed, "scribe", ACTOR)
    worker = OutboundWorker(changed, chat)
    worker.turn()
    clock.ahead += 2
    chat.faults.append(("post", gone))

    drain(worker, clock)

    binding = changed.bindings.of_session("s-1", "slack")
    assert binding is not None
    assert binding.channel == OTHER
    assert "channel.post_failed" in told(changed)


def said_in(system: System, chat: Chat, channel: str, thread: str) -> tuple[Verdict | None, str]:
    """Say something in a thread, and return what became of it and why."""
    inbound = Inbound(system, chat.authorized, NullMirror())
    reply = IncomingReply("slack", TEAM, channel, thread, "99.1", "U1", "alice", TEAM, False, False, "plain", "there?")
    [verdict] = inbound.receive([reply])
    return verdict, ", ".join(inbound.counters)


def test_a_program_that_reports_nothing_is_announced_as_one(stopped: System, chat: Chat, clock: HandClock) -> None:
    """What it cannot tell, and what the mark means; a button lets somebody far from the terminal look at it."""
    brisk = replace(definition("scribe", slack=True), harness="brisk")
    runs = replace(recorded(stopped, "scribe"), definition=brisk, harness_in_use="brisk")

    announce_start(stopped, runs, brisk, "with a new conversation")
    drain(OutboundWorker(stopped, chat), clock)

    [root] = chat.messages
    assert "`brisk` reports nothing" in root.text
    assert root.text.endswith("To look: *Screen*")
    assert (Press.SCREEN, "s-1") in [(button.press, button.target) for button in chat.shown[root.ts]]
