"""What becomes of a message that was sent by a command in a terminal is told in its session's thread."""

import os
import re
import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.chat.outbound import OutboundWorker
from core.delivery.deliverer import Deliverer
from core.delivery.evidence import give_back
from core.delivery.saying import say
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.pause import pause_standing
from core.lifecycle.stop import stop_standing
from core.model.asking import Press
from core.model.message import IN_FLIGHT, MessageState
from core.model.posts import OutboundKind
from core.model.session import Binding
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.support.chat import HOME, TEAM, Chat
from tests.support.outgoing import HandClock, drain
from tests.support.talking import record_of, rows
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, definition

THREAD = "1699.000000"
S = MessageState


@pytest.fixture
def bound(scribe: System) -> System:
    """Give the ports of a session that is up, idle and has a thread."""
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    return scribe


def served(system: System) -> None:
    """Do what a service does once an instance has ended: what its own queue held is given back, and delivered."""
    record = system.records.read("scribe")
    assert record is not None
    give_back(system, record, None)
    deliverer = Deliverer(system)
    for _ in range(6):
        deliverer.advance(record.uid)


_OF_VERB = re.compile(r"`scribe` was (paused|resumed|stopped) by ")


def notes(system: System) -> list[tuple[str, tuple[Press, ...]]]:
    """Return the notes of messages in the thread (not those of verbs), and what can be pressed under each."""
    chat, clock = Chat(), HandClock()
    drain(OutboundWorker(replace(system, clock=clock), chat), clock, 40)
    shown = (message for message in chat.messages if message.kind == OutboundKind.NOTE.value)
    told = [message for message in shown if not _OF_VERB.match(message.text)]
    assert all(message.thread == THREAD for message in told)
    return [(message.text, tuple(button.press for button in chat.shown[message.ts])) for message in told]


def die(system: System) -> None:
    """Let the agent be killed."""
    _, instance = record_of(system)
    pane = system.runner.survey().of_instance(instance)
    assert pane is not None
    os.kill(pane.pid, signal.SIGKILL)

    def dead() -> bool:
        seen = system.runner.survey().of_instance(instance)
        return seen is None or seen.dead

    wait_until(dead, "tmux has noticed it")


@pytest.mark.parametrize(("actor", "who"), [(ACTOR, "ann"), ("rest:deploy", "deploy")])
def test_a_stop_tells_of_what_the_harness_had_queued(bound: System, actor: str, who: str) -> None:
    """Its sender was answered `accepted` long ago; whoever reads the thread sees that it never came to a turn."""
    say(bound, "scribe", "sleep 60", actor=ACTOR)
    accepted = say(bound, "scribe", "count the wrens", actor=actor)

    stop_standing(bound, "scribe", ACTOR)
    served(bound)

    told = [note for note in notes(bound) if who in note[0]]
    assert accepted.state is S.ACCEPTED
    assert rows(bound)[-1].state is S.CANCELLED
    assert [text.partition(":")[0] for text, _ in told] == [
        f"{who}'s message to `scribe`, sent by a command, was cancelled"
    ]
    assert "send it again" in told[0][0]
    assert Press.SEND_AGAIN not in told[0][1]  # its author is nobody in the chat, so no press sends it as theirs


def test_a_stop_tells_once_of_what_waited(bound: System) -> None:
    """One note for all of it, however it was sent, and none while it only waited."""
    pause_standing(bound, "scribe", ACTOR)
    states = [say(bound, "scribe", f"wait {number}", actor=ACTOR).state for number in range(2)]
    before = notes(bound)

    stop_standing(bound, "scribe", ACTOR)
    served(bound)

    assert states == [S.QUEUED, S.QUEUED]
    assert before == []
    assert [text.partition(".")[0] for text, _ in notes(bound)] == [
        "`scribe` was stopped; 2 messages that waited were cancelled"
    ]


def test_a_crash_keeps_what_the_harness_had_queued(bound: System) -> None:
    """It is in no conversation, and waits for the next start: nobody needs to be told of what only waits."""
    say(bound, "scribe", "sleep 60", actor=ACTOR)
    say(bound, "scribe", "count the wrens", actor=ACTOR)

    die(bound)
    served(bound)

    row = rows(bound)[-1]
    assert (row.state, row.detail) == (S.QUEUED, "the session's program has ended")
    assert notes(bound) == []


def test_a_stop_tells_of_what_was_in_flight(bound: System) -> None:
    """A row whose paste began when the session was stopped: cancelled, or in doubt, and told either way."""
    uid, instance = record_of(bound)
    say(bound, "scribe", "count the wrens", actor=ACTOR, wait=0)
    [row] = rows(bound)
    bound.inbox.advance(row, S.CLAIMED, instance=instance, attempt=1, attempt_deadline=datetime.now(UTC))

    stop_standing(bound, "scribe", ACTOR)
    served(bound)

    [row] = rows(bound)
    assert row.state not in IN_FLIGHT
    assert [text for text, _ in notes(bound) if text.startswith("ann's message to `scribe`, sent by a command, was")]
    assert bound.inbox.unsettled(uid) == ()


def test_a_session_without_a_thread_is_told_of_nowhere(scribe: System) -> None:
    """There is no place to tell it in; the queue and the events have it."""
    say(scribe, "scribe", "sleep 60", actor=ACTOR)
    say(scribe, "scribe", "count the wrens", actor=ACTOR)

    stop_standing(scribe, "scribe", ACTOR)
    served(scribe)

    assert rows(scribe)[-1].state is S.CANCELLED
    assert scribe.outbox.tally() == {}


def test_a_deletion_tells_how_much_went_with_the_session(system: System) -> None:
    """In the thread's last message: what waited, and what stood in the harness's own queue."""
    create_standing(system, definition("extra", harness="bundled"), ACTOR)
    settle(system, "extra")
    uid, _ = record_of(system, "extra")
    system.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "extra", datetime.now(UTC)))
    say(system, "extra", "sleep 60", actor=ACTOR)
    accepted = say(system, "extra", "count the wrens", actor=ACTOR)
    pause_standing(system, "extra", ACTOR)
    queued = say(system, "extra", "count the owls", actor=ACTOR)

    delete_standing(system, "extra", ACTOR)

    closing = system.outbox.get(f"p-closing-{uid}")
    assert (accepted.state, queued.state) == (S.ACCEPTED, S.QUEUED)
    assert closing is not None
    assert "As far as is known, its agent did not get 2 messages" in closing.post.text
