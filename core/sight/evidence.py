"""Which messages a turn has taken, by the harness's own records: hook reports and the conversation's transcript."""

from collections.abc import Iterable
from datetime import timedelta

from core.domain.framing import takes
from core.domain.harness import HarnessEvent, TextQueued, TurnStarted
from core.domain.message import IN_FLIGHT, MESSAGES, TRANSITIONS, WAITING, InboxRow, Kind, MessageState
from core.domain.session import SessionRecord
from core.ports import Transcript
from core.session.launching import context_of
from core.session.notes import note_for
from core.session.sessions import resolve_record
from core.system import System

_OPEN = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.UNKNOWN, MessageState.PENDING, MessageState.QUEUED}
_ROUNDED = timedelta(milliseconds=10)  #: a harness tells the moment in whole milliseconds
_LOOK_BACK = 50  #: attempted rows that a record may still prove, those settled as unknown and accepted among them


def settle_by(system: System, uid: str, events: Iterable[HarnessEvent]) -> tuple[InboxRow, ...]:
    """Move on every row of the session that one of the events proves, and return those that moved.

    A text that a turn took confirms its row, one that the harness queued makes it accepted; one event may prove
    several, since harnesses join what was queued. Part of the open transaction, if there is one.
    """
    moved: list[InboxRow] = []
    for event in events:
        if not isinstance(event, TurnStarted | TextQueued) or (isinstance(event, TurnStarted) and event.internal):
            continue
        state = MessageState.CONFIRMED if isinstance(event, TurnStarted) else MessageState.ACCEPTED
        for row in candidates(system, uid):
            if isinstance(event, TextQueued) and _before_attempt(event, row):
                continue
            if state in TRANSITIONS[row.state] and takes(event.prompt, row.message):
                moved.append(system.inbox.advance(row, state))
                if row.message.kind in MESSAGES:
                    system.activities.touch_message(uid, system.clock.now())
    return tuple(moved)


def _before_attempt(event: TextQueued, row: InboxRow) -> bool:
    """Tell whether the harness's queue held the text before the row's latest attempt: it was given back since."""
    began = row.updated_at if row.state in WAITING else row.pasted_at or row.updated_at
    return event.at is not None and event.at < began - _ROUNDED


def candidates(system: System, uid: str) -> tuple[InboxRow, ...]:
    """Return the rows that evidence may still move: attempted ones that no turn is known to have taken.

    However many wait behind them.
    """
    return system.inbox.attempted(uid, _OPEN, _LOOK_BACK)


def tell(system: System, rows: Iterable[InboxRow]) -> None:
    """Emit an event for each row that evidence has moved."""
    for row in rows:
        system.events.emit(
            "standing.confirmed",
            name=row.message.name,
            actor=row.message.actor,
            instance=row.instance,
            generation=row.message.generation,
            message=row.message.id,
            detail=row.state.value,
        )


class Transcripts:
    """The conversations of the sessions with a message in flight, read forward.

    Each is opened before the paste, so that a look costs what was added since. After a crash of ours it is read from
    its start once. Belongs to one thread.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._open: dict[str, tuple[str, Transcript | None]] = {}  #: by uid: of which instance, and its transcript

    def open(self, record: SessionRecord) -> None:
        """Begin to read the record's conversation where it ends now. Raises StoreBroken."""
        if not self._has(record):
            self._open[record.uid] = (record.instance_id or "", self._opened(record, from_start=False))
        self.read(record)

    def read(self, record: SessionRecord) -> bool:
        """Settle what was added since; False where the harness keeps no record. Raises StoreBroken."""
        if not self._has(record):
            self._open[record.uid] = (record.instance_id or "", self._opened(record, from_start=True))
        _, transcript = self._open[record.uid]
        events = () if transcript is None else transcript.new_events()
        if events:
            tell(self._system, settle_by(self._system, record.uid, events))
        return transcript is not None

    def forget(self, uid: str) -> None:
        """Close the session's conversation: it has nothing in flight."""
        self._open.pop(uid, None)

    def _has(self, record: SessionRecord) -> bool:
        return record.uid in self._open and self._open[record.uid][0] == record.instance_id

    def knows_all_since(self, record: SessionRecord, row: InboxRow) -> bool:
        """Tell whether the record's conversation is the one that the row was meant for.

        A fresh start since the attempt began another conversation, which says nothing about the row.
        """
        boots = (
            other
            for other in self._system.inbox.with_states(record.uid, frozenset(MessageState))
            if other.message.kind is Kind.BOOT
        )
        return all(other.message.created_at <= row.updated_at for other in boots if other.message.id != row.message.id)

    def _opened(self, record: SessionRecord, *, from_start: bool) -> Transcript | None:
        resolved = resolve_record(record, self._system.settings)
        harness = self._system.harnesses.get(resolved.harness)
        context = context_of(self._system.paths, record, resolved, record.instance_id or "")
        return harness.transcript(context, from_start=from_start)


def give_back(system: System, record: SessionRecord, instance: str | None) -> bool:
    """Settle what an ended harness had in its own queue, and tell whether there was anything.

    `instance` is the one that lives, if any; rows of another are looked up in the conversation. What it does not know
    is tried again, and what nobody can tell is unknown, and said. Raises StoreBroken.
    """
    lost = [row for row in system.inbox.with_states(record.uid, {MessageState.ACCEPTED}) if row.instance != instance]
    if not lost:
        return False
    transcripts = Transcripts(system)
    kept = transcripts.read(record)
    for row in lost:
        if system.inbox.get(row.message.id) != row:
            continue  # the conversation has it
        if kept and transcripts.knows_all_since(record, row):
            system.inbox.advance(row, MessageState.PENDING, "its harness ended with the text in its queue")
        else:
            _give_up(system, row)
    return True


def _give_up(system: System, row: InboxRow) -> None:
    reason = "its harness ended with the text in its queue"
    with system.database.transaction(durable=False):
        moved = system.inbox.advance(row, MessageState.UNKNOWN, reason)
        note = note_for(system, moved, MessageState.UNKNOWN, reason, "look at its terminal before you send it again")
        if note is not None:
            system.outbox.add([note])
    system.events.emit("standing.unconfirmed", name=row.message.name, reason=reason, message=row.message.id)
