"""Take back what a harness holds in a queue of its own.

A harness may hold messages in a queue of its own, which would begin another turn after a pause. No hook reports this
(Claude Code 2.1.332). A key moves the whole queue into the input line, the harness's own record names each text that
came back, and then the line is emptied. The same record confirms what a turn has taken meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.base.clock import Deadline
from core.base.errors import Refused, StoreBroken
from core.base.failpoints import Failpoint, failpoint
from core.base.files import is_file
from core.base.values import dataclass
from core.delivery.evidence import take_in
from core.delivery.screens import AGAIN, Screens
from core.delivery.snapshot import probe_of
from core.delivery.writing import clear_line
from core.model.activity import ASKING_STATES
from core.model.delivering import TYPING_QUIET
from core.model.harness import Traits
from core.model.message import InboxRow, MessageState
from core.model.pane import Pane, Receipt, Survey, Written, interrupt_token
from core.model.reasons import Reason
from core.model.session import SessionRecord
from core.model.texts import text
from core.session.folder import ASKING, context_of
from core.session.sessions import resolve_record, traits_of
from core.session.system import System

if TYPE_CHECKING:
    from core.base.paths import StatePaths
    from core.config.settings import Settings
    from core.harness.catalogue import Harnesses
    from core.model.harness import Transcript
    from core.store.inbox import Inbox
    from core.tmux.runner import Runner


_TOLD_SECONDS = 2.0  #: its record names what came back 0.15 s after the key; a busy machine needs more
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Left:
    """What is in the harness's own queue still, and why; nothing: `count` is 0."""

    count: int
    why: str = ""


def held_by_harness(inbox: Inbox, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Return the messages that the live instance's own queue is known to hold. Raises StoreBroken."""
    rows = inbox.with_states(record.uid, {MessageState.ACCEPTED})
    return tuple(row for row in rows if row.instance == record.instance_id and row.queued_at is not None)


def take_back(system: System, record: SessionRecord, survey: Survey) -> Left:
    """Move what the harness's own queue holds back into ours, and return what is left there. Needs the lock.

    Nothing is pressed while a dialog is open, which would act on the key, nor into half-typed text, which would join.
    Raises StoreBroken, TmuxSilent.
    """
    rows = held_by_harness(system.inbox, record)
    pane = survey.of_instance(record.instance_id or "")
    if not rows or pane is None or pane.dead:
        return Left(0)
    traits = traits_of(system.settings, system.harnesses, record)
    if traits.take_back is None or traits.clear is None:
        return Left(len(rows), text(Reason.NO_KEY))
    obstacle = _obstacle(system, record, pane, survey)
    if obstacle is not None:
        return Left(len(rows), text(obstacle))
    transcript = _transcript(system.settings, system.paths, system.harnesses, record)
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    left = _await(system, record, transcript, 0.0)  # a crash may have come between the key and this
    if left and _is_filled(system, record):
        return Left(left, text(Reason.HALF_TYPED))
    if left:
        written = _press_up(system.runner, pane, traits, at, deadline)
        if written is not Written.DONE:
            return Left(left, text(Reason.KEY_NOT_WRITTEN, written=written.value))
        left = _await(system, record, transcript, _TOLD_SECONDS)
    with failpoint(Failpoint.TAKE_BACK_CLEAR):  # the key's receipt lets the next delivery do so again
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def take_back_behind(system: System, record: SessionRecord, pane: Pane) -> Left:
    """Take the harness's own queue back right behind the key that has rejected a dialog. Needs the lock.

    Claude Code 2.1.332 begins a turn with it some 0.2 s after that key, and gives it back before; older versions have
    begun by then. Raises StoreBroken, TmuxSilent.
    """
    rows, traits = held_by_harness(system.inbox, record), traits_of(system.settings, system.harnesses, record)
    if not rows or traits.take_back is None or traits.clear is None:
        return Left(len(rows), text(Reason.NO_KEY) if rows else "")
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    written = _press_up(system.runner, pane, traits, at, deadline)
    if written is not Written.DONE:
        return Left(len(rows), text(Reason.KEY_NOT_WRITTEN, written=written.value))
    left = _await(system, record, _transcript(system.settings, system.paths, system.harnesses, record), _TOLD_SECONDS)
    with failpoint(Failpoint.TAKE_BACK_CLEAR):
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def _press_up(runner: Runner, pane: Pane, traits: Traits, at: datetime, deadline: datetime) -> Written:
    with failpoint(Failpoint.TAKE_BACK_KEY):
        token = interrupt_token(at)
        return runner.write(pane.tag, traits.take_back or b"", Receipt.INTERRUPTED, token, deadline)


def read_on(system: System, record: SessionRecord) -> None:
    """Take in what the conversation's record tells of what the harness's own queue held. Raises StoreBroken."""
    _await(system, record, _transcript(system.settings, system.paths, system.harnesses, record), 0.0)


def _obstacle(system: System, record: SessionRecord, pane: Pane, survey: Survey) -> Reason | None:
    """Return why no key may be pressed now, None where one may."""
    opinion = probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
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


def _transcript(
    settings: Settings, paths: StatePaths, harnesses: Harnesses, record: SessionRecord
) -> Transcript | None:
    """Open the conversation's record; None where there is none, or it cannot be read: it then names nothing."""
    resolved = resolve_record(record, settings)
    context = context_of(paths, record, resolved, record.instance_id or "")
    try:
        return harnesses.get(resolved.harness).transcript(context, from_start=True)
    except StoreBroken:
        return None


def _await(system: System, record: SessionRecord, transcript: Transcript | None, seconds: float) -> int:
    """Read for so long what its record says of each message, and return how many it says nothing of."""
    deadline = Deadline(system.clock, seconds)
    while True:
        try:
            events = transcript.new_events() if transcript is not None else ()
        except StoreBroken:
            events = ()  # it names nothing, and what is left is said to be
        with suppress(Refused):  # another process has read the same
            take_in(system, record, events)
        left = len(held_by_harness(system.inbox, record))
        if not left or deadline.passed():
            return left
        system.clock.pause(_POLL_SECONDS)
