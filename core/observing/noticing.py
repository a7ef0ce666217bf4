"""Turns that nobody typed: kept when the turn-start hook blocked them, and known again when the harness repeats them.

A harness that was kept from taking a notification brings it again at each of its resumes, until one such turn was let
through (Claude Code 2.1.197). So a notice is remembered by its background task: it waits once, and once it was
delivered by us the harness's repeat is let through and posts nothing.
"""

from datetime import datetime

from core.domain.framing import takes
from core.domain.harness import PromptReported, Report, TurnBlocked
from core.domain.message import DELIVERED, IN_FLIGHT, TRANSITIONS, WAITING, InboxRow, Kind, MessageState, NewMessage
from core.domain.reasons import Because, Reason
from core.domain.session import SessionRecord
from core.names import new_marker, new_message_id
from core.system import System

_KEPT = WAITING | IN_FLIGHT | DELIVERED
_PREFACE = "A background task of yours ended while you were paused. Its notification:\n"
THE_LOOP = "the-loop"  #: who speaks in the frame of a notice


def keep_blocked(
    system: System, record: SessionRecord, report: Report, event: TurnBlocked, at: datetime, *, held: bool
) -> str:
    """Keep what the hook blocked, and return the words for the event log. Part of the open transaction.

    A message of ours goes back to our queue. A notice waits until the session is resumed; where the session is stopped
    (`held`), or the notice is one too many, it is recorded and wakes nobody: the harness brings it again.
    """
    if _given_back(system, record, event.prompt):
        return "a message was held back: the session is paused or being stopped"
    key, task = _key(record, event.task), event.task or ""
    if event.task is not None and _waits_or_told(system.inbox.of_key(key)):
        return "a notice that is kept already was blocked again"
    refused = Because(Reason.RECORDED) if held else _overflow(system, record)
    if refused or event.task is None or system.inbox.of_key(key) is not None:
        key, task = f"notice:{record.instance_id}:{report.name}", ""
    message = _notice(record, event.prompt, key, at, task)
    system.inbox.add([message])
    row = system.inbox.get(message.id)
    if row is not None and refused:
        system.inbox.advance(row, MessageState.CANCELLED if held else MessageState.REFUSED, refused)
    return f"a turn that nobody asked for was blocked; {refused.text if refused else 'its notice waits for the resume'}"


def note_repeat(system: System, record: SessionRecord, report: Report, event: PromptReported, at: datetime) -> None:
    """Settle the notice that the harness now told itself, or remember that nobody waits for this turn's answer.

    That is so where it repeats a notice that we delivered, or tells of a task that this instance never ran: such a turn
    comes with a resume, is let through, and says nothing in the thread. A turn that a person's message began is another
    matter. Part of the open transaction, before the activity follows.
    """
    kept = system.inbox.of_key(_key(record, event.task))
    if kept is not None and kept.state in WAITING:
        system.inbox.advance(kept, MessageState.CONFIRMED, Because(Reason.TOLD_BY_ITSELF))
    elif not _in_turn(system, record):
        if kept is not None and kept.state in DELIVERED:
            _remember(system, record, event, at, Reason.REPEATED)
        elif not _runs(system, record, event.task):
            _remember(system, record, event, at, Reason.LEFT_OVER)


def _remember(system: System, record: SessionRecord, event: PromptReported, at: datetime, why: Reason) -> None:
    message = _notice(record, event.prompt, _repeat_key(record, at), at)
    system.inbox.add([message])
    row = system.inbox.get(message.id)
    if row is not None and MessageState.CONFIRMED in TRANSITIONS[row.state]:
        system.inbox.advance(row, MessageState.CONFIRMED, Because(why))


def why_quiet(system: System, record: SessionRecord) -> str | None:
    """Return why nobody waits for the running turn's answer; None where another text joined it since it began."""
    activity = system.activities.get(record.uid)
    if activity is None or activity.instance != record.instance_id or activity.turn_started_at is None:
        return None
    row = system.inbox.of_key(_repeat_key(record, activity.turn_started_at))
    return row.detail if row is not None else None


def _given_back(system: System, record: SessionRecord, prompt: str) -> bool:
    """Make pending again what we had submitted and no turn may take now; tell whether it was ours at all."""
    states = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.UNKNOWN}
    ours = [row for row in system.inbox.with_states(record.uid, states) if takes(prompt, row.message)]
    for row in ours:
        if MessageState.PENDING in TRANSITIONS[row.state]:
            system.inbox.advance(row, MessageState.PENDING, Because(Reason.HELD_BACK))
    return bool(ours)


def _waits_or_told(row: InboxRow | None) -> bool:
    return row is not None and row.state in _KEPT


def _overflow(system: System, record: SessionRecord) -> Because | None:
    """Return why a notice finds no place in the queue, None where it does."""
    limit = system.settings.limits.queued_per_session
    waiting = system.inbox.waiting(record.uid)
    return Because(Reason.TOO_MANY_WAIT, {"waiting": waiting, "limit": limit}) if waiting >= limit else None


def _in_turn(system: System, record: SessionRecord) -> bool:
    activity = system.activities.get(record.uid)
    return (
        activity is not None
        and activity.instance == record.instance_id
        and activity.state.value == "busy"
        and not activity.between_turns
    )


def _runs(system: System, record: SessionRecord, task: str | None) -> bool:
    """Tell whether the background task is one that the live instance began."""
    activity = system.activities.get(record.uid)
    return activity is not None and activity.instance == record.instance_id and task in activity.pending_tasks


def _key(record: SessionRecord, task: str | None) -> str:
    return f"notice:{record.uid}:{task}"


def _repeat_key(record: SessionRecord, at: datetime) -> str:
    return f"repeat:{record.instance_id}:{at.isoformat()}"


def _notice(record: SessionRecord, prompt: str, key: str, at: datetime, task: str = "") -> NewMessage:
    return NewMessage(
        id=new_message_id(),
        key=key,
        uid=record.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.NOTICE,
        actor=f"agent:{record.name}",
        who=THE_LOOP,
        via="",
        marker=new_marker(),
        text=_PREFACE + prompt,
        raw=False,
        order_us=int(at.timestamp() * 1_000_000),
        created_at=at,
        task=task,
    )
