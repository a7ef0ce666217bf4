"""What a thread is told of a turn that failed on the model's side: why, in plain words, and what a person can do.

One note for the messages that the turn took, in the thread that they came from, with a button that sends them again.
Of a turn that took nobody's message, a loop's or the boot's, the session's thread is told once, until a turn went well
or fails for another reason.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.domain.binding import CHANNEL
from core.domain.failing import remedy_of, what_failed
from core.domain.harness import TurnFailed
from core.domain.message import MessageState
from core.domain.reasons import Remedy, said
from core.domain.session import SessionRecord
from core.domain.texts import text
from core.session.instead import attach_of
from core.session.notes import note_for
from core.session.sessions import activity_of
from core.sight.situations import traits_of
from core.system import System

if TYPE_CHECKING:
    from core.ports import NewPost


def note_failure(
    system: System, record: SessionRecord, event: TurnFailed, taken: Sequence[str], *, has_thread: bool
) -> int:
    """Commit what the thread is told, and return how many posts that are. `taken`: the ids of the turn's messages.

    Part of the open transaction, before the activity follows.
    """
    reason, remedy = words_of(system, record, event)
    then = text(Remedy.AFTER_FAILURE, remedy=remedy)
    count = 0
    for message in taken:
        row = system.inbox.get(message)
        note = row and note_for(system, row, MessageState.CONFIRMED, said(reason), then)
        if note:  # the next one joins it
            count += sum(system.outbox.add([note]))
    if not taken and not _is_told(system, record, event) and has_thread:
        count += sum(system.outbox.add([_of_nobodys(system, record, reason, remedy)]))
    return count


def _is_told(system: System, record: SessionRecord, event: TurnFailed) -> bool:
    """Return whether the latest turn failed for the same reason."""
    before = activity_of(system, record)
    return before is not None and before.failed == event.failure.value


def words_of(system: System, record: SessionRecord, event: TurnFailed) -> tuple[str, str]:
    """Return why the turn failed, and what a person can do."""
    remedies = traits_of(system, record).remedies
    remedy = remedy_of(event.failure, remedies, host=os.uname().nodename, attach=attach_of(record.name))
    return what_failed(event.failure, event.message), remedy


def _of_nobodys(system: System, record: SessionRecord, reason: str, remedy: str) -> NewPost:
    from core.ports import NewPost, OutboundKind

    moment = int(system.clock.now().timestamp() * 1_000_000)
    return NewPost(
        id=f"p-failed-{record.instance_id}-{moment}",
        key=f"failed:{record.instance_id}:{moment}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=f"A turn of `{record.name}` failed: {reason}. To do: {remedy}",
    )
