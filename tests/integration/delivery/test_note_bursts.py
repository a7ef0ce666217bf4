"""Many messages of one thread that share a fate have one note, which counts them, and whose buttons are about all."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.chat.inbound import Inbound, NullMirror
from core.chat.outbound import OutboundWorker
from core.chat.presses import Presses
from core.delivery.deliverer import Deliverer
from core.delivery.permission_requests import Requests
from core.delivery.saying import cancel_message
from core.lifecycle.pause import pause_standing, resume_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.asking import Press
from core.model.channel import IncomingPress, IncomingReply
from core.model.message import IN_FLIGHT, WAITING, MessageState
from core.model.posts import OutboundKind
from core.model.session import Binding
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.support.chat import HOME, TEAM, Chat, Message
from tests.support.outgoing import HandClock, drain
from tests.support.talking import record_of, rows
from tests.support.tmux import wait_until
from tests.support.world import ACTOR

THREAD = "1699.000000"
S = MessageState


class Thread:
    """The session's thread: what people write there, what is told, and what they press."""

    def __init__(self, system: System, clock: HandClock) -> None:
        self.system = system
        self.chat = Chat()
        self.clock = clock
        self._inbound = Inbound(system, self.chat.authorized, NullMirror())
        self._deliverer = Deliverer(system, lambda _: True)
        self._posts = OutboundWorker(system, self.chat)
        self._said = 0
        self.post = True  #: what is to be told is posted

    def say(self, count: int, confirm: str = "") -> None:
        """Write so many replies at once, and let them be delivered."""
        self.commit(count, confirm)
        self.deliver()

    def commit(self, count: int, confirm: str = "") -> None:
        """Write so many replies at once, which nobody delivers yet."""
        first = self._said + 1
        self._said += count
        self._inbound.receive(
            [
                IncomingReply("slack", TEAM, HOME, THREAD, f"1700.{number:06d}", "U1", "alice", TEAM, False, False,
                              "plain", f"reply {number}", confirm=confirm)
                for number in range(first, self._said + 1)
            ]
        )  # fmt: skip

    def are_in(self) -> bool:
        """Deliver, and tell whether all that was written is in."""
        self.deliver()
        return set(self.states()) <= {S.CONFIRMED, S.ACCEPTED}

    def deliver(self) -> None:
        """Let what can be done be done, and post what is to be told.

        Posting moves the clock on: while a message is in flight it would leap over the time that the agent has to
        show that a turn took it.
        """
        uid, _ = record_of(self.system)
        for _ in range(2 * self._said + 2):
            self._deliverer.advance(uid)
        if self.post and IN_FLIGHT.isdisjoint(self.states()):
            drain(self._posts, self.clock, 40)

    def notes(self) -> list[Message]:
        """Return the notes of messages as they stand in the thread now, but those of a pause, resume or stop."""
        kinds = (self.system.outbox.get(message.post_id) for message in self.chat.messages)
        return [
            message
            for message, row in zip(self.chat.messages, kinds, strict=True)
            if row is not None
            and row.post.kind is OutboundKind.NOTE
            and message.thread == THREAD
            and not row.post.id.startswith(("p-paused-", "p-stopped-", "p-resumed-"))
        ]

    def press(self, note: Message, press: Press) -> None:
        """Press a button of the note as it is shown."""
        [button] = [button for button in self.chat.shown[note.ts] if button.press is press]
        presses = Presses(self.system, lambda _, __: True, Requests(self.system))
        told = presses.press(IncomingPress("slack", TEAM, HOME, THREAD, note.ts, "U1", "alice", TEAM, False,
                                           button.action, button.target))  # fmt: skip
        assert told.text == ""
        drain(self._posts, self.clock, 40)

    def states(self) -> list[MessageState]:
        """Return what has become of all that was written."""
        return [row.state for row in rows(self.system)]


@pytest.fixture
def thread(scribe: System) -> Thread:
    """Give the thread of a session that is up and idle."""
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    clock = HandClock()
    return Thread(replace(scribe, clock=clock), clock)


def test_what_waits_for_one_reason_has_one_note(thread: Thread) -> None:
    """It counts them, more that come are counted in, and one press is about all of them."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(5)
    [at_once] = [message.text for message in thread.notes()]
    thread.say(2)
    [later] = thread.notes()
    more = later.text

    thread.press(later, Press.CANCEL)

    assert "5 messages to `scribe` are waiting: the session is paused." in at_once
    assert "the-loop standing resume scribe" in at_once
    assert "7 messages to `scribe` are waiting: the session is paused." in more
    assert thread.states() == [S.CANCELLED] * 7
    assert len(thread.notes()) == 1
    assert "cancelled by alice" in thread.notes()[0].text


def test_one_that_waits_is_told_as_ever(thread: Thread) -> None:
    """Nothing is counted, and the note is its own."""
    pause_standing(thread.system, "scribe", ACTOR)

    thread.say(1)

    [note] = thread.notes()
    assert note.text.startswith("Your message to `scribe` is waiting: the session is paused.")
    assert [button.target for button in thread.chat.shown[note.ts]] == [rows(thread.system)[0].message.id]


def test_what_was_taken_out_is_not_counted(thread: Thread) -> None:
    """Neither in the words nor in what the buttons are about."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(3)
    cancel_message(thread.system, rows(thread.system)[1].message.id, ACTOR, told=False)

    thread.say(1)

    [note] = thread.notes()
    assert "3 messages to `scribe` are waiting" in note.text
    [cancel] = thread.chat.shown[note.ts]
    assert cancel.target.split() == [row.message.id for row in rows(thread.system) if row.state in WAITING]


def test_another_pause_has_a_note_of_its_own(thread: Thread) -> None:
    """What the first one told of has gone in; nobody looks at its note again."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(2)
    resume_standing(thread.system, "scribe", ACTOR)
    wait_until(thread.are_in, "they are in")
    settle(thread.system)
    pause_standing(thread.system, "scribe", ACTOR)

    thread.say(1)

    paused = [note.text for note in thread.notes() if "the session is paused" in note.text]
    assert len(paused) == 2
    assert paused[1].startswith("Your message to")


def test_refusals_in_a_burst_are_one_note(thread: Thread) -> None:
    """Each within half a minute is counted; one press starts the session and sends all. A later one is told anew."""
    stop_standing(thread.system, "scribe", ACTOR)
    thread.say(4)
    [note] = thread.notes()
    text = note.text
    thread.press(note, Press.START_AND_SEND)
    again = [row for row in rows(thread.system) if row.message.again_of]
    stop_standing(thread.system, "scribe", ACTOR)
    thread.say(1)

    refused = [note.text for note in thread.notes() if "not delivered" in note.text]
    assert "4 messages to `scribe` were not delivered: the session was stopped." in text
    assert [row.message.text for row in again] == [f"reply {number}" for number in range(1, 5)]
    assert len(refused) == 2
    assert refused[1].startswith("Your message to")


def test_late_replies_wait_for_one_word(thread: Thread) -> None:
    """After a night they are one note, and one press sends them all."""
    thread.say(3, confirm="sent 3 h ago")
    [note] = thread.notes()
    text = note.text

    thread.press(note, Press.CONFIRM)
    thread.deliver()

    assert "3 messages to `scribe` are waiting: they arrived late" in text
    assert "confirmed" in thread.notes()[0].text
    wait_until(thread.are_in, "they are in")


def test_a_press_that_comes_late_for_some_says_so(thread: Thread) -> None:
    """What has been taken out meanwhile is not cancelled twice."""
    pause_standing(thread.system, "scribe", ACTOR)
    thread.say(3)
    cancel_message(thread.system, rows(thread.system)[0].message.id, ACTOR, told=False)

    thread.press(thread.notes()[0], Press.CANCEL)

    assert "2 of 3 cancelled by alice" in thread.notes()[0].text


def test_many_messages_cost_few_posts(thread: Thread) -> None:
    """The count is edited once for all that came in one go, however many those were."""
    pause_standing(thread.system, "scribe", ACTOR)

    thread.say(30)

    assert "30 messages" in thread.notes()[0].text
    assert thread.chat.calls.count("post") + thread.chat.calls.count("update") <= 5  # one tells of the pause


def test_a_start_is_offered_where_it_helps(thread: Thread) -> None:
    """Also below a note that counts."""
    stop_standing(thread.system, "scribe", ACTOR)
    thread.say(2)

    thread.press(thread.notes()[0], Press.START)

    assert start_standing(thread.system, "scribe", ACTOR).sessions[0].running
