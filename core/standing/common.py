"""What the verbs share: the session's lock, the one way to write a record, and what a verb says of one session."""

import logging
from contextlib import AbstractContextManager
from datetime import timedelta

from core.domain.binding import CHANNEL as CHANNEL
from core.domain.pane import Survey
from core.domain.session import Live, Outcome, SessionRecord
from core.errors import (
    CoreError,
    ForeignPane,
    RecordUnreadable,
    StoreBroken,
    TmuxSilent,
)
from core.names import target_for
from core.session.sessions import Known
from core.store.files import holds_files
from core.system import System
from core.values import dataclass, replace

_LOG = logging.getLogger(__name__)
_LOCK_MARGIN_SECONDS = 10.0


@dataclass(frozen=True)
class Told:
    """What a verb did for one session. `known` is set where the session may be gone afterwards."""

    outcome: Outcome
    detail: str = ""
    known: Known | None = None


def lock(system: System, name: str, purpose: str) -> AbstractContextManager[None]:
    """Hold the session's lock. Raises LockBusy once its holder had more time than a stop can take."""
    return system.locks.hold(name, purpose, lock_seconds(system))


def lock_seconds(system: System) -> float:
    """Return how long a lock is waited for: more than a stop can take."""
    tmux = system.settings.routing.tmux
    return tmux.harness_kill_grace_seconds + 4 * tmux.command_timeout_seconds + _LOCK_MARGIN_SECONDS


def spawn_time(system: System) -> timedelta:
    """Return for how long a spawn may still make a pane: tmux's deadline, and the second that it rounds off."""
    return timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds + 1)


def write_record(system: System, record: SessionRecord) -> SessionRecord:
    """Write the record, with its copies of what the database knows, and return it. Raises StoreBroken."""
    copied = _with_copies(system, record)
    system.records.write(copied)
    return copied


def _with_copies(system: System, record: SessionRecord) -> SessionRecord:
    try:
        last = system.activities.last_messages().get(record.uid, record.last_message_at)
        binding = system.bindings.of_session(record.uid, CHANNEL)
        channel, thread = _thread(system, record) if binding is None else (binding.channel, binding.thread)
    except StoreBroken:
        return record  # the record itself is complete without the copies
    return replace(record, last_message_at=last, slack_channel=channel, slack_thread=thread)


def _thread(system: System, record: SessionRecord) -> tuple[str | None, str | None]:
    """Return the copy of the thread of a session that is not bound: it stays until the session is known to have left.

    A database that is new knows nothing of it, and the service asks the chat. Raises StoreBroken.
    """
    channel, thread = record.slack_channel, record.slack_thread
    left = system.bindings.is_left(record.uid, CHANNEL, channel or "", thread or "")
    return (None, None) if left else (channel, thread)


def take_reports(system: System, record: SessionRecord) -> None:
    """Take in the session's hook reports. What cannot be taken in stays in the spool, where it is found later."""
    try:
        if record.instance_id is not None and holds_files(str(system.paths.spool_of(record.instance_id))):
            system.ingest(record.uid)
    except CoreError as error:
        _LOG.warning("hook reports could not be taken in", extra={"session": record.uid, "reason": str(error)})


def told_of(error: CoreError) -> Told:
    """Return what an error means for one session's row."""
    if isinstance(error, RecordUnreadable):
        return Told(Outcome.UNREADABLE, str(error))
    if isinstance(error, TmuxSilent):
        return Told(Outcome.UNCONFIRMED, str(error))
    return Told(Outcome.FAILED, str(error))


def refuse_held_name(system: System, name: str) -> None:
    """Raise ForeignPane where a program runs in the place of a session that has ended; TmuxSilent."""
    survey = system.runner.survey()
    if survey.live(target_for(name), None) is Live.FOREIGN:
        raise foreign(system, survey, name)


def foreign(system: System, survey: Survey, name: str) -> ForeignPane:
    """Return the error that names the tmux session in our place, how to look at it and how to end it."""
    target = target_for(name)
    attach = " ".join(system.runner.attach_command(target, write=False))
    kill = " ".join(system.runner.kill_command(target))
    tags = {pane.tag for pane in survey.of_target(target) if pane.tag}
    whose = (
        f"carries the tag of an instance that no record knows ({', '.join(sorted(tags))})" if tags else "is not ours"
    )
    return ForeignPane(
        f"{name}: a tmux session {target} lives, and it {whose}; it is left alone",
        f"look at it: `{attach}`; if it may go: `{kill}`, then try again",
    )
