"""Notes about messages that waited or were in doubt, once these are so no more: edited to what is true, or left out.

By what is stored alone, so that nothing is missed and nothing doubled, whenever a process was killed. For the one
thread that posts: what it leaves out it has not sent.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from core.domain.message import IN_FLIGHT, WAITING, InboxRow, MessageState, NewMessage
from core.domain.reasons import Because, Reason
from core.ports import MOVED, NoteWait, OutboxRow, PostState
from core.session.apart import Unforeseen, apart
from core.session.notes import latest_of, post_of, subject_of, told_in, words_of
from core.system import System
from core.values import replace

_OPEN = WAITING | IN_FLIGHT
_ELSEWHERE, _FORGOTTEN = "waiting for something else now", "over"
_WENT_IN = "in"
_ENDED = {
    MessageState.SUBMITTED: _WENT_IN,
    MessageState.ACCEPTED: _WENT_IN,
    MessageState.CONFIRMED: _WENT_IN,
    MessageState.UNKNOWN: "perhaps in, which nobody can tell",
    MessageState.REFUSED: "not delivered",
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "cancelled",
    MessageState.FAILED: "not delivered",
}


def mend_notes(system: System, channel_kind: str) -> None:
    """Bring the chat's notes about what waits up to date. Raises StoreBroken."""
    if not system.outbox.outdated_notes(channel_kind):
        return
    with system.database.transaction(durable=False):
        for note in system.outbox.outdated_notes(channel_kind):  # asked again: a press may have seen to one since
            posted = system.outbox.get(note)
            name = posted.post.name if posted is not None else note
            with suppress(Unforeseen), apart(system.events, name), system.database.transaction(durable=False):
                _mend(system, note, posted)


def _mend(system: System, note: str, posted: OutboxRow | None) -> None:
    waits = []
    for wait in system.outbox.waits_in(note):
        ended = _how(wait, system.inbox.get(wait.message))
        if ended != wait.ended:
            system.outbox.end_wait(note, wait.message, ended)
        waits.append(replace(wait, ended=ended))
    over = all(wait.ended for wait in waits)
    if over or posted is None:
        system.outbox.forget_waits(note, [wait.message for wait in waits])
    if posted is None or posted.state in (PostState.FAILED, PostState.SKIPPED):
        return
    if over and posted.state is PostState.PENDING:
        system.outbox.advance(posted, PostState.SKIPPED, because=Because(Reason.OVER_BEFORE))
    else:
        _edit(system, posted, waits)


def _how(wait: NoteWait, row: InboxRow | None) -> str:
    """Return how a message's waiting or doubt ended; "" while it waits, is on its way in, or nobody can tell."""
    if wait.ended == MOVED:
        return _ELSEWHERE
    if wait.ended:
        return wait.ended
    if row is None:
        return _FORGOTTEN
    if row.state is MessageState.UNKNOWN if wait.doubtful else row.state in _OPEN and not row.final:
        return ""
    return _ENDED[row.state]


def _edit(system: System, posted: OutboxRow, waits: Sequence[NoteWait]) -> None:
    """Commit the note's next edit: about those that still wait, or what became of all."""
    told = latest_of(system, posted.post.note.group) if posted.post.note is not None else None
    waiting = tuple(wait.message for wait in waits if not wait.ended)
    row = system.inbox.get(waiting[0] if waiting else waits[0].message)
    address = told_in(system, row) if row is not None else None
    if told is None or row is None or address is None:
        return
    told = told.edited(waiting, len(waiting))
    message, wait = row.message, waits[0]
    if waiting:
        state = MessageState.UNKNOWN if wait.doubtful else MessageState.QUEUED
        text, buttons = words_of(system, row, state, wait.because, wait.remedy, told)
        post = post_of(message, address, told, text, buttons)
    else:
        post = post_of(message, address, told, _over(message, waits))
    system.outbox.add([post])


def _over(message: NewMessage, waits: Sequence[NoteWait]) -> str:
    wait = waits[0]
    if len(waits) == 1:
        was = "was in doubt" if wait.doubtful else "waited"
        return f"{subject_of(message)} {was}: {wait.because.text}. It is {wait.ended}."
    were = "were in doubt" if wait.doubtful else "waited"
    counted = Counter(wait.ended for wait in waits)
    how = ", ".join(f"{number} {ended}" for ended, number in counted.items()) if len(counted) > 1 else wait.ended
    return f"{len(waits)} messages to `{message.name}` {were}: {wait.because.text}. They are {how}."
