"""What the verbs share: the session's lock, the one way to write a record, and what a verb answers for one session.

A verb may be given for many sessions: `Tmux` and `together` ask tmux once and lock each of them. `running_record`
returns a session that can be paused, resumed or interrupted: one that people want to run.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import TypeVar

from core.base.clock import Clock, Deadline
from core.base.errors import (
    BeingDeleted,
    CoreError,
    ForeignPane,
    LockBusy,
    NotRunning,
    RecordUnreadable,
    Refused,
    StoreBroken,
    TmuxMissing,
    TmuxSilent,
)
from core.base.files import holds_files
from core.base.locks import Locks
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.config.settings import Settings
from core.model.asking import Press, session_buttons
from core.model.gate import HoldState, held_reason, hold_state
from core.model.pane import Survey
from core.model.posts import OWN_CHAT, NewPost, OutboundKind
from core.model.reasons import Reason, Remedy
from core.model.session import Hold, Live, Outcome, Phase, SessionRecord, Status, Thread
from core.model.texts import text
from core.session.sessions import Known, definition_of
from core.session.system import System
from core.store.records import Records
from core.store.sessions import Activities, Bindings
from core.tmux.runner import Runner

_LOG = logging.getLogger(__name__)
_LOCK_MARGIN_SECONDS = 10.0
_START_MARGIN = timedelta(seconds=30)  #: what a start takes beside its own deadlines


@dataclass(frozen=True)
class VerbResult:
    """What a verb did for one session. `known` is set where the session may be gone afterwards."""

    outcome: Outcome
    detail: str = ""
    known: Known | None = None


def lock(settings: Settings, locks: Locks, name: str, purpose: str) -> AbstractContextManager[None]:
    """Hold the session's lock. Raises LockBusy once its holder had more time than a stop can take."""
    return locks.hold(name, purpose, lock_seconds(settings))


def lock_seconds(settings: Settings) -> float:
    """Return how long a lock is waited for: more than a stop can take."""
    tmux = settings.routing.tmux
    return tmux.harness_kill_grace_seconds + 4 * tmux.command_timeout_seconds + _LOCK_MARGIN_SECONDS


def spawn_time(settings: Settings) -> timedelta:
    """Return for how long a spawn may still make a pane: tmux's deadline, and the second that it rounds off."""
    return timedelta(seconds=settings.routing.tmux.command_timeout_seconds + 1)


def start_takes(settings: Settings) -> timedelta:
    """Return what a start takes at most: whoever has not settled it by then has given it up."""
    tmux = settings.routing.tmux
    return timedelta(seconds=tmux.start_timeout_seconds + 4 * tmux.command_timeout_seconds) + _START_MARGIN


def write_record(records: Records, bindings: Bindings, activities: Activities, record: SessionRecord) -> SessionRecord:
    """Write the record, with its copies of what the database knows, and return it. Raises StoreBroken."""
    copied = _with_copies(bindings, activities, record)
    records.write(copied)
    return copied


def _with_copies(bindings: Bindings, activities: Activities, record: SessionRecord) -> SessionRecord:
    try:
        last = activities.last_messages().get(record.uid, record.last_message_at)
        binding = bindings.of_session(record.uid)
        thread = _thread(bindings, record) if binding is None else binding.place
    except StoreBroken:
        return record  # the record itself is complete without the copies
    return replace(record, last_message_at=last, thread=thread)


def _thread(bindings: Bindings, record: SessionRecord) -> Thread | None:
    """Return the copy of the thread of a session that is not bound: it stays until the session is known to have left.

    A database that is new knows nothing of it, and the service asks the chat. Raises StoreBroken.
    """
    return None if record.thread is None or bindings.is_left(record.uid, record.thread) else record.thread


def tell_thread(system: System, record: SessionRecord, what: str, hold: Hold, *presses: Press) -> None:
    """Commit a note to the session's thread, if it has one, that somebody has paused, resumed or stopped it.

    `hold`: by whom, why and when. A database that is broken keeps nobody from the verb: then it is an event.
    """
    name, moment = record.name, int(hold.at.timestamp() * 1_000_000)
    why = f": {hold.reason}" if hold.reason else ""
    key, text = f"{what}-{record.uid}-{moment}", f"`{name}` was {what} by {hold.by}{why}."
    try:
        if system.bindings.of_session(record.uid) is None:
            return
        post = NewPost(f"p-{key}", f"note:{key}", OutboundKind.NOTE, record.uid, name, OWN_CHAT, text)
        system.outbox.add([replace(post, buttons=session_buttons(record.uid, *presses))])
    except StoreBroken as error:
        system.events.emit("standing.announce_failed", level="warning", name=name, reason=str(error))


def take_reports(paths: StatePaths, ingest: Callable[[str], None], record: SessionRecord) -> None:
    """Take in the session's hook reports. What cannot be taken in stays in the spool, where it is found later."""
    try:
        if record.instance_id is not None and holds_files(str(paths.spool_of(record.instance_id))):
            ingest(record.uid)
    except CoreError as error:
        _LOG.warning("hook reports could not be taken in", extra={"session": record.uid, "reason": str(error)})


def told_of(error: CoreError) -> VerbResult:
    """Return what an error means for one session's row."""
    if isinstance(error, RecordUnreadable):
        return VerbResult(Outcome.UNREADABLE, str(error))
    if isinstance(error, TmuxSilent):
        return VerbResult(Outcome.UNCONFIRMED, str(error))
    return VerbResult(Outcome.FAILED, str(error))


def refuse_held_name(runner: Runner, name: str) -> None:
    """Raise ForeignPane where a program runs in the place of a session that has ended; TmuxSilent."""
    survey = runner.survey()
    if survey.live(target_for(name), None) is Live.FOREIGN:
        raise foreign(runner, survey, name)


def foreign(runner: Runner, survey: Survey, name: str) -> ForeignPane:
    """Return the error that names the tmux session in our place, how to look at it and how to end it."""
    target = target_for(name)
    attach = " ".join(runner.attach_command(target, write=False))
    kill = " ".join(runner.kill_command(target))
    tags = {pane.tag for pane in survey.of_target(target) if pane.tag}
    whose = (
        f"carries the tag of an instance that no record knows ({', '.join(sorted(tags))})" if tags else "is not ours"
    )
    return ForeignPane(
        f"{name}: a tmux session {target} lives, and it {whose}; it is left alone",
        f"look at it: `{attach}`; if it may go: `{kill}`, then try again",
    )


_T = TypeVar("_T")
_GLIMPSE_SECONDS = 0.5  #: what tmux gets to answer before processes are signalled: it takes some milliseconds
_MOMENT_SECONDS = 0.3  #: for locks that are held for a moment, as by deliveries
_PAUSE = 0.01
_FEW = 50  #: sessions for which every process has descriptors enough
_DESCRIPTORS_EACH, _DESCRIPTORS_BESIDE = 8, 128  #: a lock and a handle on each process of one; what else there is


class Tmux:
    """tmux as one verb asks it for all of its sessions: once it has been silent it is not asked again."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.silence: TmuxSilent | TmuxMissing | None = None

    def survey(self) -> Survey:
        """Return all panes. Raises TmuxSilent, TmuxMissing; at once where tmux was silent before."""
        if self.silence is not None:
            raise self.silence
        try:
            return self._runner.survey()
        except (TmuxSilent, TmuxMissing) as error:
            self.silence = error
            raise

    def glimpse(self) -> Survey | None:
        """Return all panes, None where tmux does not tell them in a moment: that says nothing about it."""
        if self.silence is not None:
            return None
        try:
            return self._runner.survey(_GLIMPSE_SECONDS)
        except TmuxSilent:
            return None
        except TmuxMissing as error:
            self.silence = error
            return None


def together(
    system: System,
    names: Iterable[str],
    purpose: str,
    act: Callable[[Mapping[str, str]], Mapping[str, _T]],
    failed: Callable[[str, CoreError], _T],
    *,
    seconds: float | None = None,
    lockless: bool = False,
) -> dict[str, _T]:
    """Act on these sessions under their locks, and return what `act` and `failed` say of each, in their order.

    All whose locks are free are given to `act` at once, and it answers for each; then those that were busy, until
    `seconds` are over (None: more than a stop takes). Nobody is waited for while another's lock is held, so that no two
    wait for one another.

    `act` is given by name what stands against a lock at all, "" where it is held: with `lockless` a disk that allows
    none keeps nobody from acting.
    """
    order = list(names)
    waiting, told, most = list(order), dict[str, _T](), _most(len(order))
    deadline = Deadline(system.clock, lock_seconds(system.settings) if seconds is None else seconds)
    patient = False  # nobody is waited for as long as there is somebody to act on
    while waiting:
        with ExitStack() as taken:
            taking = _Taking(system.clock, system.locks, purpose, taken, lockless=lockless)
            taking.take(waiting[:most], deadline.remaining() if patient else None)
            told |= {name: failed(name, error) for name, error in taking.failed.items()}
            if taking.held:
                told |= act(taking.held)
        waiting = [name for name in waiting if name not in told]
        patient = not taking.held
    return {name: told[name] for name in order}


def _most(count: int) -> int:
    """Return how many of so many sessions may be worked on at once, by the descriptors that this process may have."""
    if count <= _FEW:
        return count
    import resource

    from core.base.files import raise_limit

    raise_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return count if soft == resource.RLIM_INFINITY else max(_FEW, (soft - _DESCRIPTORS_BESIDE) // _DESCRIPTORS_EACH)


class _Taking:
    """Takes the locks of several sessions, as many as can be had."""

    def __init__(self, clock: Clock, locks: Locks, purpose: str, taken: ExitStack, *, lockless: bool) -> None:
        self._clock = clock
        self._locks = locks
        self._purpose = purpose
        self._taken = taken
        self._lockless = lockless
        self.held: dict[str, str] = {}
        self.failed: dict[str, CoreError] = {}

    def take(self, names: list[str], seconds: float | None) -> None:
        """Wait for the first so long (None: not at all), and take whichever of the others are free within a moment."""
        if seconds is not None:
            try:
                self._try(names[0], seconds)
            except LockBusy as error:
                self.failed[names[0]] = error
                return
        moment = Deadline(self._clock, _MOMENT_SECONDS)
        left = [name for name in names if name not in self.held and name not in self.failed]
        while left := [name for name in left if not self._is_over(name)]:
            if moment.passed():
                return
            self._clock.pause(_PAUSE)

    def _is_over(self, name: str) -> bool:
        try:
            self._try(name, 0.0)
        except LockBusy:
            return False
        return True

    def _try(self, name: str, seconds: float) -> None:
        """Take the lock. Raises LockBusy."""
        try:
            self._taken.enter_context(self._locks.hold(name, self._purpose, seconds))
            self.held[name] = ""
        except LockBusy:
            raise
        except StoreBroken as error:
            if self._lockless:
                self.held[name] = f"no lock could be taken: {error}"
            else:
                self.failed[name] = error
        except CoreError as error:
            self.failed[name] = error


_HELD = frozenset({HoldState.STOPPED, HoldState.FAILED})


def running_record(settings: Settings, records: Records, name: str, done: str) -> SessionRecord:
    """Return the record of a session that is meant to run, whatever its pane does; `done`: "paused", for the words.

    Raises UnknownSession, InvalidValue, RecordUnreadable, NotRunning with the start command, Refused while it is
    created or deleted.
    """
    known = definition_of(settings, records, name)
    if known.unreadable is not None:
        raise known.unreadable
    record = known.record
    if record is not None and record.phase is Phase.CREATING:
        raise Refused(f"{name} cannot be {done}: it is being created", "look at `the-loop standing list`")
    if record is not None and record.phase is Phase.DELETING:
        raise BeingDeleted(f"{name} cannot be {done}: it is being deleted", name)
    reason = _why_down(record)
    if record is None or reason is not None:
        raise NotRunning(f"{name} cannot be {done}: {text(reason or Reason.NEVER_RUN)}", text(Remedy.START, name=name))
    return record


def _why_down(record: SessionRecord | None) -> Reason | None:
    if record is None or record.instance_id is None:
        return Reason.NEVER_RUN
    hold = hold_state(record)
    if hold in _HELD:
        return held_reason(hold)
    return Reason.DOWN if record.status is Status.STOPPED else None
