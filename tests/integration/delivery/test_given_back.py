"""A message that the harness's own queue gave back is sent anew, and what its records say of the first time is past."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from core.base.names import new_marker, new_message_id
from core.delivery.deliverer import Deliverer
from core.delivery.evidence import Transcripts, take_in
from core.delivery.saying import say
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing
from core.model.framing import framed
from core.model.harness import TextQueued, TextReturned
from core.model.message import InboxRow, Kind, MessageState, NewMessage
from core.model.reasons import Because, Reason
from core.model.session import entered
from core.process.presence import ServiceLock
from core.session.system import System
from tests.support.killed import run_until
from tests.support.talking import record_of, rows, times
from tests.support.tmux import PATIENCE, wait_until
from tests.support.world import ACTOR, World, recorded

S = MessageState


@pytest.mark.parametrize("point", ["delivery.claim:after", "delivery.paste:after", "delivery.submit:after"])
def test_a_kill_after_it_was_given_back_loses_nothing(scribe: System, world: World, point: str) -> None:
    """The conversation is read from its start then, and tells of the queue that held it before the pause."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 60", actor=ACTOR)
    accepted = say(scribe, "scribe", "given back", actor=ACTOR)
    pause_standing(scribe, "scribe", ACTOR, hard=True)

    def given_back() -> bool:
        scribe.ingest(uid)
        return rows(scribe)[-1].state is S.PENDING

    wait_until(given_back, "the harness gave it back")
    described = replace(world, harness="bundled").save()
    killed = run_until(point, world.folder, "world", str(described), "resume", "scribe")

    until = scribe.clock.now() + timedelta(seconds=PATIENCE)
    row = Deliverer(scribe).run(uid, rows(scribe)[-1].message.id, until)

    assert (accepted.state, killed.code) == (S.ACCEPTED, -9)
    assert row is not None
    assert row.state is S.CONFIRMED
    assert times(scribe, "given back") == 1


def test_what_its_author_has_deleted_meanwhile_goes_in_no_more(scribe: System) -> None:
    """It comes back at a pause, and is cancelled."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 60", actor=ACTOR)
    say(scribe, "scribe", "better not", actor=ACTOR)
    scribe.inbox.advance(rows(scribe)[-1], S.ACCEPTED, Because(Reason.AUTHOR_DELETED))
    pause_standing(scribe, "scribe", ACTOR, hard=True)

    def given_back() -> bool:
        scribe.ingest(uid)
        return rows(scribe)[-1].state is not S.ACCEPTED

    wait_until(given_back, "the harness gave it back")

    row = rows(scribe)[-1]
    assert (row.state, row.reason) == (S.CANCELLED, Reason.AUTHOR_DELETED)
    assert "better not" not in [waits.message.text for waits in scribe.inbox.unsettled(uid)]


def new_message(system: System, text: str) -> NewMessage:
    """Return a message of that text, which nobody has been told of."""
    record = recorded(system, "scribe")
    return NewMessage(
        id=new_message_id(), kind=Kind.SAY, actor=ACTOR, who="ann", via="cli", marker=new_marker(), raw=False,
        order_us=0, created_at=system.clock.now(), key=f"say:{text}", uid=record.uid, name=record.name,
        generation=record.generation, text=text,
    )  # fmt: skip


def submitted(system: System, text: str, message: NewMessage | None = None) -> InboxRow:
    """Return a message of that text whose Enter was written, as far as its row tells: nothing was pasted."""
    message = message or new_message(system, text)
    instance, at = recorded(system, "scribe").instance_id, message.created_at
    system.inbox.add([message])
    row = system.inbox.of_key(message.key)
    assert row is not None
    row = system.inbox.advance(row, S.CLAIMED, instance=instance, attempt=1, attempt_deadline=at)
    row = system.inbox.advance(row, S.PASTED, pasted_at=at)
    return system.inbox.advance(row, S.SUBMITTED, submitted_at=at, submits=1)


@pytest.mark.parametrize("served", [False, True])
def test_what_was_proven_too_late_is_known_to_whoever_looks(scribe: System, *, served: bool) -> None:
    """Without a service nobody watches a message that `say` has given up: the next look reads the record."""
    message = new_message(scribe, "a late proof")
    say(scribe, "scribe", framed(message), actor=ACTOR, raw=True)
    row = scribe.inbox.advance(submitted(scribe, message.text, message), S.UNKNOWN, Because(Reason.SECOND_ENTER))

    service = ServiceLock(scribe.paths.service_lock)
    if served:
        service.take()
    get_standing(scribe, "scribe")
    if served:
        service.release()

    after = scribe.inbox.get(row.message.id)
    assert after is not None
    assert after.state is (S.UNKNOWN if served else S.CONFIRMED)


def block(system: System, row: InboxRow, late: timedelta = timedelta()) -> InboxRow:
    """Let the turn-start hook block the message, and return its row as it stands then."""
    record = recorded(system, "scribe")
    name = f"{int((system.clock.now() - late).timestamp() * 1e9):019d}-1-UserPromptSubmit.blocked.json"
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": framed(row.message)}
    (system.paths.spool_of(record.instance_id or "") / name).write_text(json.dumps(payload))
    system.ingest(record.uid)
    found = system.inbox.get(row.message.id)
    assert found is not None
    return found


def test_what_our_own_hook_blocked_was_not_taken_whatever_was_known_of_it(scribe: System) -> None:
    """A message in doubt waits again then; one that was sent again meanwhile does not go in twice."""
    waits = in_doubt(scribe, "in doubt")
    sent_again = in_doubt(scribe, "in doubt, and sent again")
    again = {**sent_again.message.__dict__, "id": new_message_id(), "key": f"again:{sent_again.message.id}"}
    scribe.inbox.add([NewMessage(**{**again, "marker": new_marker()})])

    assert block(scribe, waits).state is S.PENDING
    assert block(scribe, sent_again).state is S.UNKNOWN


def test_a_late_report_of_an_earlier_attempt_takes_back_no_later_one(scribe: System) -> None:
    """Its text stands in the input line by now, and would go in beside itself."""
    row = submitted(scribe, "tried again")

    assert block(scribe, row, late=timedelta(seconds=5)).state is S.SUBMITTED
    assert block(scribe, row).state is S.PENDING


def in_doubt(system: System, text: str) -> InboxRow:
    """Return such a message of which nobody can tell what became of it."""
    return system.inbox.advance(submitted(system, text), S.UNKNOWN, Because(Reason.NOT_SHOWN, {"why": ""}))


def test_a_record_that_names_no_text_tells_of_the_one_on_its_way(scribe: System) -> None:
    """Queued is what was entered a moment ago; what comes back without a name is all that was queued."""
    record = recorded(scribe, "scribe")
    row = submitted(scribe, "while it compacts")
    at = row.pasted_at or scribe.clock.now()

    take_in(scribe, record, [TextQueued("", at + timedelta(seconds=1))])
    queued = scribe.inbox.get(row.message.id)
    pause_standing(scribe, "scribe", ACTOR)
    take_in(scribe, record, [TextReturned("", at + timedelta(seconds=2))])
    back = scribe.inbox.get(row.message.id)

    assert queued is not None
    assert (queued.state, queued.queued_at) == (S.ACCEPTED, at + timedelta(seconds=1))
    assert back is not None
    assert back.state is S.PENDING


def test_the_record_is_followed_into_another_conversation(scribe: System) -> None:
    """A person typed `/clear` in mid-turn: the new conversation's file tells what became of what was queued."""
    record = recorded(scribe, "scribe")
    transcripts = Transcripts(scribe)
    transcripts.open(record)
    row = submitted(scribe, "behind the clear")
    scribe.inbox.advance(row, S.ACCEPTED, queued_at=row.pasted_at)

    moved = entered(record, "00000000-0000-4000-8000-000000000001", "bundled", scribe.clock.now(), old=False)
    path = scribe.paths.session(record.uid) / "agent" / "conversations" / f"{moved.conversation}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "message": {"content": framed(row.message)}, "origin": {"kind": "human"}, "promptId": "t-9"}
    path.write_text(json.dumps(line) + "\n")
    transcripts.open(moved)
    found = scribe.inbox.get(row.message.id)

    assert found is not None
    assert found.state is S.CONFIRMED
