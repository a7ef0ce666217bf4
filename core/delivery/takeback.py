"""Takes messages back that a harness holds in a queue of its own: under a pause that queue would begin another turn.

No hook holds such a queue (Claude Code 2.1.332). A key moves all of it into the input line, its own record names each
text that came back, and then the line is emptied. What a turn has taken meanwhile is confirmed by the same record.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.clock import Deadline
from core.domain.activity import ASKING_STATES
from core.domain.delivering import TYPING_QUIET
from core.domain.harness import Traits
from core.domain.message import InboxRow, MessageState
from core.domain.pane import Pane, Receipt, Survey, Written, interrupt_token
from core.domain.reasons import Reason
from core.domain.session import SessionRecord
from core.domain.texts import text
from core.effects import Effect, effect
from core.errors import Refused
from core.session.place import ASKING, context_of
from core.session.sessions import resolve_record
from core.sight.evidence import take_in
from core.sight.screens import AGAIN, Screens
from core.sight.situations import opinion_of, traits_of
from core.store.files import is_file
from core.system import System
from core.values import dataclass

if TYPE_CHECKING:
    from core.ports import Transcript

_TOLD_SECONDS = 2.0  #: its record names what came back 0.15 s after the key; a busy machine needs more
_POLL_SECONDS = 0.05
_BURST_SECONDS = 0.15  #: more than some sixty keys in one read are taken for a paste (Claude Code 2.1.197 to 2.1.332)
_MOST_BURSTS = 20


@dataclass(frozen=True)
class Left:
    """What is in the harness's own queue still, and why; nothing: `count` is 0."""

    count: int
    why: str = ""


def held_by_harness(system: System, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Return the messages that the live instance's own queue is known to hold. Raises StoreBroken."""
    rows = system.inbox.with_states(record.uid, {MessageState.ACCEPTED})
    return tuple(row for row in rows if row.instance == record.instance_id and row.queued_at is not None)


def take_back(system: System, record: SessionRecord, survey: Survey) -> Left:
    """Move what the harness's own queue holds back into ours, and return what is left there. Needs the lock.

    Nothing is pressed while a dialog is open, which would act on the key, nor into half-typed text, which would join.
    Raises StoreBroken, TmuxSilent.
    """
    rows = held_by_harness(system, record)
    pane = survey.of_instance(record.instance_id or "")
    if not rows or pane is None or pane.dead:
        return Left(0)
    traits = traits_of(system, record)
    if traits.take_back is None or traits.clear is None:
        return Left(len(rows), text(Reason.NO_KEY))
    obstacle = _obstacle(system, record, pane, survey)
    if obstacle is not None:
        return Left(len(rows), text(obstacle))
    transcript = _transcript(system, record)
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    left = _await(system, record, transcript, 0.0)  # a crash may have come between the key and this
    if left and _is_filled(system, record):
        return Left(left, text(Reason.HALF_TYPED))
    if left:
        with effect(Effect.TAKE_BACK_KEY):
            key, token = traits.take_back, interrupt_token(at)
            written = system.runner.write(pane.tag, key, Receipt.INTERRUPTED, token, deadline)
        if written is not Written.DONE:
            return Left(left, text(Reason.KEY_NOT_WRITTEN, written=written.value))
        left = _await(system, record, transcript, _TOLD_SECONDS)
    with effect(Effect.TAKE_BACK_CLEAR):  # the key's receipt lets the next delivery do so again
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def _obstacle(system: System, record: SessionRecord, pane: Pane, survey: Survey) -> Reason | None:
    """Return why no key may be pressed now, None where one may."""
    opinion = opinion_of(system, record, pane.pid)
    asks = opinion is not None and opinion.state in ASKING_STATES
    if asks or is_file(system.paths.session(record.uid) / ASKING):
        return Reason.DIALOG_OPEN
    screens = Screens(system)
    seen = screens.before_keys(record)
    if seen is not None and screens.is_obstacle(record, seen[0]):
        return Reason.NO_INPUT_LINE
    now, activity = system.clock.now(), system.activities.get(record.uid)
    began = activity.turn_started_at if activity is not None else None
    keys = [client.last_key_at for client in survey.typing.get(pane.tag, ())]
    if any(now < key + TYPING_QUIET or began is None or key > began for key in keys):
        return Reason.HALF_TYPED
    return None


def _is_filled(system: System, record: SessionRecord) -> bool:
    """Return whether text stands in the input line on two looks, whoever left it: one screen may be behind."""
    screens = Screens(system)
    for pause in (0.0, AGAIN.total_seconds()):
        system.clock.pause(pause)
        seen = screens.before_keys(record)
        if seen is None or seen[0].line is None or not seen[0].line.text:
            return False
    return True


def _transcript(system: System, record: SessionRecord) -> Transcript | None:
    resolved = resolve_record(record, system.settings)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    return system.harnesses.get(resolved.harness).transcript(context, from_start=True)


def _await(system: System, record: SessionRecord, transcript: Transcript | None, seconds: float) -> int:
    """Read for so long what its record says of each message, and return how many it says nothing of."""
    deadline = Deadline(system.clock, seconds)
    while True:
        events = transcript.new_events() if transcript is not None else ()
        with suppress(Refused):  # another process has read the same
            take_in(system, record, events)
        left = len(held_by_harness(system, record))
        if not left or deadline.passed():
            return left
        system.clock.pause(_POLL_SECONDS)


def clear_line(
    system: System, instance: str, traits: Traits, rows: Sequence[InboxRow], token: str, deadline: datetime
) -> None:
    """Press the keys that empty the input line, as often as these messages have lines. Raises TmuxSilent.

    Up to three seconds, for four hundred lines; the server refuses what comes after `deadline`.
    """
    for burst in range(bursts_for(traits, rows)):
        if burst:
            system.clock.pause(_BURST_SECONDS)
        if system.runner.write(instance, traits.clear or b"", Receipt.CLEARED, token, deadline) is not Written.DONE:
            return


def bursts_for(traits: Traits, rows: Sequence[InboxRow]) -> int:
    """Return how many times the keys are pressed that empty an input line with these messages in it."""
    lines = sum(row.message.text.count("\n") + 1 for row in rows)
    return max(1, min(_MOST_BURSTS, -(-lines // traits.clear_lines)))
