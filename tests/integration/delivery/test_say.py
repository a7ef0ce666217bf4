"""A message on its way into a real pane, without a service."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import InvalidValue, StoreBroken
from core.base.names import new_marker
from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.model.message import WAITING, Kind, MessageState, ReplyAddress
from core.session.system import System
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.world import ACTOR
from tests.unit.store.samples import a_message


def test_say_is_confirmed_by_the_agents_own_record(scribe: System) -> None:
    """The text is taken by a turn, once, framed with who said it."""
    said = say(scribe, "scribe", "hello there", actor=ACTOR)

    assert (said.state, said.delivered) == (MessageState.CONFIRMED, True)
    wait_until(lambda: len(taken(scribe)) == 2, "the conversation's file has it")
    [text] = [text for text in taken(scribe) if "hello there" in text]
    assert text.startswith("[ann via cli #")


def test_twenty_messages_arrive_once_and_in_order(scribe: System) -> None:
    """Each is confirmed or accepted before the next is pasted."""
    texts = [f"number {number}." for number in range(20)]

    states = [say(scribe, "scribe", text, actor=ACTOR).state for text in texts]

    assert set(states) <= {MessageState.CONFIRMED, MessageState.ACCEPTED}
    wait_until(lambda: len(taken(scribe)) == 21, "the conversation's file has them")
    assert [text.split("] ", 1)[1].strip() for text in taken(scribe)[1:]] == texts


def test_a_message_to_a_busy_agent_is_accepted_by_its_queue(scribe: System, private: PrivateTmux) -> None:
    """Its own queue line is evidence, and the turn that takes the text later confirms the row."""
    say(scribe, "scribe", "sleep 600", actor=ACTOR)

    said = say(scribe, "scribe", "next please", actor=ACTOR)

    assert (said.state, said.delivered) == (MessageState.ACCEPTED, False)
    private.tmux("send-keys", "-t", "=loop-standing-scribe:", "Escape")
    uid, _ = record_of(scribe)
    deliverer = Deliverer(scribe)

    def confirmed() -> bool:
        deliverer.advance(uid)
        return rows(scribe)[-1].state is MessageState.CONFIRMED

    wait_until(confirmed, "the queued text was taken")
    assert times(scribe, "next please") == 1


def test_long_and_many_lined_messages_arrive_whole(scribe: System, tmp_path: Path) -> None:
    """What the agent does not take inline it reads from a file in the session's folder."""
    lines = "one\ntwo;\n\tthree --"
    long = "x" * 150_000

    first = say(scribe, "scribe", lines, actor=ACTOR)
    second = say(scribe, "scribe", long, actor=ACTOR)

    assert (first.state, second.state) == (MessageState.CONFIRMED, MessageState.CONFIRMED)
    wait_until(lambda: len(taken(scribe)) == 3, "the conversation's file has them")
    assert any(text.endswith(lines) for text in map(str.strip, taken(scribe)))
    [row] = [row for row in rows(scribe) if row.message.text == long]
    file = scribe.paths.session(row.message.uid) / f"message-{row.message.id}.txt"
    assert file.read_text() == long
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(file) in taken(scribe)[-1]


def test_a_say_is_on_the_disk_before_its_sender_is_answered(scribe: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is waited for once the text is in the terminal: a power cut ends the terminal, too."""
    states: list[MessageState] = []

    def sync(descriptor: int) -> None:
        os.fsync(descriptor)
        states.append(rows(scribe)[-1].state)

    monkeypatch.setattr("core.store.database._SYNC", sync)

    say(scribe, "scribe", "hello there", actor=ACTOR)
    say(scribe, "scribe", "nobody waits", actor=ACTOR, wait=0)

    assert states[0] not in WAITING
    assert states[-1] is MessageState.PENDING


def test_a_disk_that_fails_is_told_to_whoever_says(scribe: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message goes on its way: the sender is not to send it again unseen."""

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("core.store.database._SYNC", fail)
        with pytest.raises(StoreBroken, match=r"scribe: message m-\w+ was taken, and .*; do not send it again before"):
            say(scribe, "scribe", "hello there", actor=ACTOR)

    say(scribe, "scribe", "and then", actor=ACTOR)
    assert (times(scribe, "hello there"), times(scribe, "and then")) == (1, 1)


@pytest.mark.parametrize("wait", [float("inf"), float("nan"), 1e308, -1.0, 86401.0])
def test_a_wait_that_is_none_is_refused_before_anything_is_committed(scribe: System, wait: float) -> None:
    """It names no moment; nothing is put into the session's queue."""
    with pytest.raises(InvalidValue, match="cannot wait"):
        say(scribe, "scribe", "for how long", actor=ACTOR, wait=wait)

    assert all(row.message.text != "for how long" for row in rows(scribe))


def test_who_does_not_wait_is_told_that_the_message_is_under_way_however_far_it_is(scribe: System) -> None:
    """A service may have entered it before the sender looks: nobody has waited in vain for the agent's word yet."""
    _, instance = record_of(scribe)

    def enter() -> None:
        """Do what a service does that is faster than its client."""
        row = scribe.inbox.advance(rows(scribe)[-1], MessageState.CLAIMED, instance=instance, attempt=1)
        row = scribe.inbox.advance(row, MessageState.PASTED, pasted_at=scribe.clock.now())
        scribe.inbox.advance(row, MessageState.SUBMITTED, submitted_at=scribe.clock.now(), submits=1)

    said = say(replace(scribe, notify=enter), "scribe", "on its way", actor=ACTOR, wait=0)

    assert rows(scribe)[-1].state is MessageState.SUBMITTED
    assert (said.state, said.delivered, said.to_json()["exitCode"]) == (MessageState.QUEUED, False, 0)
    assert "its delivery is under way" in said.messages[0]


def test_a_say_without_a_service_lets_no_reply_in(scribe: System) -> None:
    """A reply that came live over a gap waits for those that were missed before it, whoever else delivers meanwhile."""
    uid, _ = record_of(scribe)
    now = int(scribe.clock.now().timestamp() * 1_000_000)
    thread = ReplyAddress("slack", "T1", "C1", "17.0", "17.2")
    of_ann: dict[str, object] = {
        "uid": uid,
        "kind": Kind.REPLY,
        "actor": "slack:U1",
        "generation": 1,
        "address": thread,
    }
    scribe.inbox.add([a_message(2, **of_ann, text="came live", marker=new_marker(), order_us=now - 1)])

    began = scribe.clock.monotonic()
    said = say(scribe, "scribe", "from the terminal", actor=ACTOR, wait=10 * PATIENCE)
    waited = scribe.clock.monotonic() - began
    before = len(taken(scribe))
    scribe.inbox.add([a_message(1, **of_ann, text="was missed", marker=new_marker(), order_us=now - 2)])
    service = Deliverer(scribe, lambda _: True)
    wait_until(lambda: (service.advance(uid), len(taken(scribe)))[1] == 4, "all are in")

    assert said.state is MessageState.QUEUED
    assert "no service is running" in " ".join(said.messages)
    assert before == 1
    assert waited < PATIENCE, "it waited for what only a service can do"
    order = [text.split("] ", 1)[1].strip() for text in taken(scribe)[1:]]
    assert order == ["was missed", "came live", "from the terminal"]
