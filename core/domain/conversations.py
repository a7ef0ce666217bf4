"""Which conversation is the session's: a new one takes an earlier one's place when it has had a turn. No I/O.

A program that fails for a while ends each conversation that it is given. So what a start could not take up is not
forgotten: its id stays in the record's history, and a start takes it up again for as long as the one that was begun
in its place has had no turn.
"""

from datetime import datetime

from core.domain.session import Fresh, Left, SessionRecord
from core.values import dataclass, replace

_MOST = 50  #: conversations in a record's history

LEFT_IN_TERMINAL = "it was left in its terminal"
TAKEN_UP_AGAIN = "it had had no turn, and the one before it was taken up again"


@dataclass(frozen=True)
class Candidate:
    """A conversation that the session's next start may take up."""

    id: str
    harness: str
    had_turn: bool  #: as far as is known


def candidates(record: SessionRecord, in_use: str) -> tuple[Candidate, ...]:
    """Return what a start may take up, best first. `in_use` is the harness of the latest pane."""
    fresh = record.fresh
    if fresh is None:
        return (Candidate(record.harness_session_id, in_use, True),) if record.harness_session_id else ()
    kept = _kept(record)
    found = (Candidate(kept.id, kept.harness, True),) if kept else ()
    return (*found, Candidate(fresh.id, in_use, False)) if fresh.id else found


def taken_up(record: SessionRecord, chosen: Candidate, in_use: str, now: datetime) -> SessionRecord:
    """Return the record whose next pane is in the chosen one of its candidates."""
    fresh = record.fresh
    if fresh is None or chosen.id == fresh.id:
        return record
    history = tuple(left for left in record.history if left.id != chosen.id)
    if fresh.id:
        history = (*history, Left(fresh.id, in_use, TAKEN_UP_AGAIN, now))
    return replace(record, harness_session_id=chosen.id, fresh=None, history=history[-_MOST:])


def begun(
    record: SessionRecord, new: str | None, lost: Candidate | None, reason: str, now: datetime, *, keeps: bool
) -> SessionRecord:
    """Return the record whose next pane begins a new conversation.

    `lost` is the one that was not taken up, for that `reason`; None where nothing had been said. `keeps`: it stays the
    session's by name too, since its harness may well take it up once it is mended.
    """
    if lost is None:
        return replace(record, harness_session_id=new, fresh=Fresh(new) if new else None)
    others = (left for left in record.history if left.id != lost.id)
    history = (*others, Left(lost.id, lost.harness, reason, now))
    shown = lost.id if keeps else new
    return replace(record, harness_session_id=shown, fresh=Fresh(new, lost.id), history=history[-_MOST:])


def had_turn(record: SessionRecord) -> SessionRecord:
    """Return the record whose latest pane's conversation is the session's: it has had a turn."""
    return record if record.fresh is None else replace(record, harness_session_id=record.fresh.id, fresh=None)


def entered(record: SessionRecord, new: str, in_use: str, now: datetime, *, old: bool) -> SessionRecord:
    """Return the record after its latest pane went over to another conversation by itself, as `/clear` makes it.

    `old`: it is an earlier one, so that it has had a turn.
    """
    if record.fresh is not None and not old:
        shown = new if record.harness_session_id == record.fresh.id else record.harness_session_id
        return replace(record, harness_session_id=shown, fresh=replace(record.fresh, id=new))
    history = tuple(left for left in record.history if left.id != new)
    if record.fresh is None and record.harness_session_id:
        history = (*history, Left(record.harness_session_id, in_use, LEFT_IN_TERMINAL, now))
    return replace(record, harness_session_id=new, fresh=None if old else Fresh(new), history=history[-_MOST:])


def begun_instead(record: SessionRecord) -> str:
    """Return why the latest pane is in a new conversation, and which was the old one; "" where it is in no such."""
    kept = _kept(record)
    return f"{kept.reason}; the old id was {kept.id}" if kept else ""


def new_conversation(record: SessionRecord) -> str:
    """Return the same as a remark of the session's row."""
    instead = begun_instead(record)
    return f"new conversation: {instead}" if instead else ""


def kept_id(record: SessionRecord) -> str | None:
    """Return the conversation that the session has whatever becomes of its latest pane; None where there is none."""
    if record.fresh is not None:
        return record.fresh.returns_to
    return record.harness_session_id


def _kept(record: SessionRecord) -> Left | None:
    wanted = record.fresh.returns_to if record.fresh else None
    return next((left for left in record.history if left.id == wanted), None) if wanted else None
