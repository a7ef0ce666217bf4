"""start: bring sessions up, several at once, and tell for each how it came up.

New panes are watched until their harnesses read, have ended, or had their time; no lock is held meanwhile. If no
service runs, the answer also says what waits for the session, because nobody will announce, prompt or watch it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

from core.base.clock import Clock, Deadline
from core.base.errors import CoreError, NotRunning, Refused, SpawnFailed, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.files import holds_files
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.values import replace
from core.config.loading import way_up
from core.config.settings import Settings
from core.delivery.dialogs import hold
from core.delivery.hearing import notice_start
from core.delivery.screens import Screens
from core.delivery.snapshot import probe_of
from core.lifecycle.announce import announce_start, lacks_thread
from core.lifecycle.common import Tmux, VerbResult, foreign, lock, take_reports, together, told_of, write_record
from core.lifecycle.ending import Ended, end_all
from core.lifecycle.exits import tell_under_lock
from core.lifecycle.look import rows_told
from core.lifecycle.recover import mark_lives, recover_all
from core.lifecycle.spawn import Checked, Opened, StartOrder, check, open_checked, open_pane
from core.loops.verbs import carry_out_first
from core.model.activity import ActivityState, unfinished_text
from core.model.pane import Survey
from core.model.restarting import exit_text, left_by_itself, may_be_brought_back
from core.model.rows import Answer
from core.model.session import (
    HoldKind,
    LastExit,
    Live,
    Outcome,
    Phase,
    Restart,
    SessionEvent,
    SessionRecord,
    Status,
    begun_instead,
    kept_id,
    new_conversation,
)
from core.process.presence import running_service
from core.session.conversations import came_up
from core.session.sessions import (
    Known,
    Unforeseen,
    activity_of,
    apart,
    as_started,
    definition_of,
    every_session,
    has_thread,
    starts_unasked,
)
from core.session.system import System
from core.store.database import Database
from core.store.eventlog import EventLog
from core.store.records import Records
from core.store.sessions import Activities, Bindings
from core.tmux.runner import Runner

_AWAITED_SCREEN_LINES = 60
_FIRST = timedelta(seconds=1)  #: from a spawn to the first look for a dialog; most harnesses read by then
_BETWEEN = timedelta(seconds=0.5)


class Seen(Enum):
    """What became of a new pane."""

    READY = "ready"
    DEAD = "dead"
    ASKING = "asking"  #: it shows a dialog, and reads no message before somebody has answered that
    LATE = "late"  #: it lives, and has not said that it reads


class FirstDialogs:
    """What new panes show before they read. Belongs to one thread, and is kept from one round of looks to the next."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._screens = Screens(system)
        self._due: dict[str, datetime] = {}  #: by instance: when its screen is looked at next

    def asks(self, opened: Opened) -> bool:
        """Return whether it shows a dialog, by two looks, and note that: no hook has run yet that could tell."""
        instance, now = opened.context.instance, self._system.clock.now()
        if now < self._due.setdefault(instance, now + _FIRST):
            return False
        self._due[instance] = now + _BETWEEN
        try:
            shown, steady = self._screens.look(opened.record)
        except (NotRunning, TmuxSilent):
            return False  # looked at again until the deadline; the process is watched besides
        if not steady or shown.dialog is None:
            return False
        hold(self._system, opened.record, shown.dialog)
        return True


class Looks:
    """One round of looks at new panes: tmux is asked once for the screens of all of them."""

    def __init__(self, system: System, opened: Iterable[Opened], dialogs: FirstDialogs) -> None:
        self._system = system
        self._dialogs = dialogs
        self._instances = [one.context.instance for one in opened if not one.harness.traits.boot_signal]
        self._shown: Mapping[str, str] | None = None

    def at(self, opened: Opened) -> Seen | None:
        """Return what is to be seen of the pane now, None if nothing is decided yet."""
        if not self._system.processes.alive(opened.pane.pid):
            return Seen.DEAD
        if self._reads(opened):
            return Seen.READY
        if self._dialogs.asks(opened):
            return Seen.ASKING
        return Seen.LATE if opened.deadline.passed() else None

    def _reads(self, opened: Opened) -> bool:
        if opened.harness.traits.boot_signal:
            return _said_so(self._system.activities, self._system.ingest, opened) or _is_shown(self._system, opened)
        shown = self._screens().get(opened.context.instance)
        if shown is None:
            return False  # looked at again until the deadline; the process is watched besides
        sign = opened.harness.screen_ready(shown)
        return opened.probe.passed() if sign is None else sign

    def _screens(self) -> Mapping[str, str]:
        if self._shown is None:
            try:
                self._shown = self._system.runner.screens(self._instances, _AWAITED_SCREEN_LINES)
            except TmuxSilent:
                self._shown = {}
        return self._shown


def _is_shown(system: System, opened: Opened) -> bool:
    """Return whether another source shows that it reads, while its hooks are silent."""
    try:
        opinion = probe_of(system.settings, system.paths, system.harnesses, opened.record, opened.pane.pid)
        notice_start(system, opened.record, opinion)
    except CoreError:
        return False  # looked at again until the deadline
    return _moved_on(system.activities, opened)


def _said_so(activities: Activities, ingest: Callable[[str], None], opened: Opened) -> bool:
    try:
        if holds_files(str(opened.context.spool)):
            ingest(opened.record.uid)
        return _moved_on(activities, opened)
    except CoreError:
        return False  # looked at again until the deadline; the process is watched besides


def _moved_on(activities: Activities, opened: Opened) -> bool:
    activity = activities.get(opened.record.uid)
    return (
        activity is not None
        and activity.instance == opened.context.instance
        and activity.state is not ActivityState.STARTING
    )


_HERE = frozenset({Outcome.STARTED, Outcome.RESUMED, Outcome.ALREADY_RUNNING, Outcome.NOT_RUNNING})


def with_what_waits(system: System, told: Mapping[str, VerbResult]) -> Mapping[str, VerbResult]:
    """Return what is told of each session, and of what of it needs a service where none runs.

    Where that cannot be told (a damaged database) nothing is added: the start itself is not in doubt.
    """
    try:
        if running_service(system.paths.service_lock) is not None:
            return told
        return {
            name: _with(system.settings, system.records, system.database, name, word) if word.outcome in _HERE else word
            for name, word in told.items()
        }
    except CoreError:
        return told


def _with(settings: Settings, records: Records, database: Database, name: str, word: VerbResult) -> VerbResult:
    waits = _waiting(settings, database, definition_of(settings, records, name))
    if not waits:
        return word
    said = f"no service is running, so {' and '.join(waits)} must wait for one; {way_up(settings)}"
    return replace(word, detail=f"{word.detail}; {said}" if word.detail else said)


def _waiting(settings: Settings, database: Database, known: Known) -> list[str]:
    what, has_loops = known.definition, known.name in settings.standing.loops
    if known.record is not None:
        has_loops = has_loops or bool(database.open_loops().get(known.record.uid))
    needs = {
        "its thread": settings.chat_of(what),
        "its loops": has_loops,
        "its restart": what.restart is Restart.ON_FAILURE,
        "its idle.stopAfter": what.idle.stop_after,
    }
    return [thing for thing, needed in needs.items() if needed]


_POLL_SECONDS = 0.05
_EXIT_SECONDS = 1.0  #: tmux learns of an end a moment after the process is gone
_SCREEN_LINES = 50
_LAST_CHARACTERS = 400
_CHANGED_MEANWHILE = "it was started, stopped or deleted meanwhile"
Failed = Callable[[str, CoreError], VerbResult]  #: what is told of a session of which nothing was started
_TMUX_SAYS = re.compile(r"Pane is dead \(.*\)")  #: below what the program has printed


def start_standing(system: System, name: str | None, actor: str, *, auto_only: bool = False) -> Answer:
    """Start one session, or every one that is not held (`auto_only`: of those, the ones a boot starts).

    By name a stopped or failed mark is cleared. Raises UnknownSession, InvalidValue.
    """
    why = f"started by {actor}"
    if name is not None:
        definition_of(system.settings, system.records, name)
        return start_each(system, [name], StartOrder(actor, why, clear_holds=True))
    sessions = every_session(system.settings, system.records)
    names = [known.name for known in sessions if known.definition.auto_start or not auto_only]
    return start_each(system, names, StartOrder(actor, why, skip_held=True))


def start_each(system: System, names: Iterable[str], order: StartOrder) -> Answer:
    """Start these sessions; they come up side by side, each with its own deadline."""
    tmux = Tmux(system.runner)
    steps = begin_each(system, dict.fromkeys(names, order), tmux)
    return Answer(rows_told(system, with_what_waits(system, finish_all(system, steps)), tmux.survey))


def finish_all(system: System, steps: Mapping[str, VerbResult | Opened]) -> dict[str, VerbResult]:
    """Wait until each opened pane is ready, dead or late, and return what became of every session, in their order."""
    told = {name: step if isinstance(step, VerbResult) else None for name, step in steps.items()}
    waiting = {name: step for name, step in steps.items() if isinstance(step, Opened)}
    dialogs = FirstDialogs(system)
    while waiting:
        looks = Looks(system, waiting.values(), dialogs)
        for name, opened in list(waiting.items()):
            try:
                with apart(system.events, name):
                    seen = looks.at(opened)
            except Unforeseen as error:
                step: VerbResult | Opened = spawn_failed(system.events, name, error, opened.order)
            else:
                if seen is None:
                    continue
                step = conclude(system, opened, seen)
            if isinstance(step, Opened):
                waiting[name] = step
            else:
                del waiting[name]
                told[name] = step
        if waiting:
            system.clock.pause(_POLL_SECONDS)
    return {name: word for name, word in told.items() if word is not None}


def begin_each(
    system: System, orders: Mapping[str, StartOrder], tmux: Tmux | None = None
) -> dict[str, VerbResult | Opened]:
    """Look at these sessions under their locks, and open a pane for each that is to run and does not.

    What is left in their places is ended together, before the first pane is made.
    """
    once = tmux or Tmux(system.runner)
    steps: dict[str, VerbResult | Opened] = {}

    def failed(name: str, error: CoreError) -> VerbResult:
        return spawn_failed(system.events, name, error, orders[name])

    for name in orders:
        try:
            with apart(system.events, name):
                _take_last_reports(system.paths, system.records, system.ingest, name)
        except CoreError as error:
            steps[name] = failed(name, error)
    names = [name for name in orders if name not in steps]
    steps |= together(system, names, "start", lambda held: _begin_held(system, orders, held, once, failed), failed)
    return {name: steps[name] for name in orders}


def _take_last_reports(paths: StatePaths, records: Records, ingest: Callable[[str], None], name: str) -> None:
    """Take in what an earlier instance reported: a new one has a spool of its own.

    Not under the lock, which following a conversation to its new id needs.
    """
    record = records.read(name)
    if record is not None:
        take_reports(paths, ingest, record)


def spawn_failed(events: EventLog, name: str, error: CoreError, order: StartOrder) -> VerbResult:
    """Report to the event log that nothing was started, and return the row's text."""
    events.emit("standing.spawn_failed", level="error", name=name, actor=order.actor, reason=str(error))
    return told_of(error)


def _begin_held(
    system: System, orders: Mapping[str, StartOrder], held: Iterable[str], tmux: Tmux, failed: Failed
) -> Mapping[str, VerbResult | Opened]:
    """Do that for the sessions whose locks are held."""
    steps: dict[str, VerbResult | Opened] = {}
    checked: dict[str, Checked] = {}
    names = list(held)
    try:
        sessions, survey = _recovered(system, names, orders, steps, failed, tmux)
    except (TmuxSilent, TmuxMissing) as error:
        return {name: steps.get(name) or failed(name, error) for name in names}
    for name, known in sessions.items():
        try:
            with apart(system.events, name):
                step = _checked(system, known, survey, orders[name])
        except CoreError as error:
            steps[name] = failed(name, error)
            continue
        if isinstance(step, Checked):
            checked[name] = step
        else:
            steps[name] = step
    ended = end_all(system, [one for each in checked.values() for one in each.leftovers], tmux, survey)
    for name, ready in checked.items():
        steps[name] = _opened(system, ready, ended, tmux, failed)
    return steps


def _opened(
    system: System, ready: Checked, ended: Mapping[str, Ended], tmux: Tmux, failed: Failed
) -> VerbResult | Opened:
    """Open the pane, unless tmux has been silent: then nothing is begun."""
    name = ready.known.name
    try:
        if tmux.silence is not None:
            raise TmuxSilent(f"{name}: nothing was started: {tmux.silence}", "try again once tmux answers")
        with apart(system.events, name):
            return open_checked(system, ready, ended)
    except (TmuxSilent, TmuxMissing) as error:
        tmux.silence = tmux.silence or error
        return failed(name, error)
    except CoreError as error:
        return failed(name, error)


def _recovered(
    system: System,
    names: Sequence[str],
    orders: Mapping[str, StartOrder],
    steps: dict[str, VerbResult | Opened],
    failed: Failed,
    tmux: Tmux,
) -> tuple[dict[str, Known], Survey]:
    """Finish what was cut short, and return what is known of each session and what lives then; `steps` takes failures.

    Raises TmuxSilent, TmuxMissing.
    """
    sessions = _known(system, names, steps, failed)
    survey = tmux.survey()
    records = {name: known.record for name, known in sessions.items() if known.record is not None}
    actor = next((order.actor for order in orders.values()), "")
    after = recover_all(system, list(records.values()), survey, actor, tmux)
    changed = []
    for name, found in after.items():
        if found is records[name]:
            continue
        before = sessions.pop(name)
        if isinstance(found, CoreError):
            steps[name] = failed(name, found)
        elif found is None and not before.declared:
            steps[name] = _gone(records[name], orders[name], failed)
        else:
            changed.append(name)
    if not changed:
        return sessions, survey
    return sessions | _known(system, changed, steps, failed), tmux.survey()


def _gone(record: SessionRecord, order: StartOrder, failed: Failed) -> VerbResult:
    """Return what is told of a session whose deletion, or whose creation that was cut short, has just been cleared."""
    if order.after is not None:
        return VerbResult(Outcome.NOT_RUNNING, _CHANGED_MEANWHILE)
    name, create = record.name, f"`the-loop standing create {record.name}`"
    if record.phase is not Phase.DELETING:
        return failed(
            name,
            SpawnFailed(
                f"{name}: its creation was cut short, and nothing of it was kept", f"create it again: {create}"
            ),
        )
    if order.skip_held:
        return VerbResult(Outcome.DELETED, "its deletion was finished")
    return failed(name, Refused(f"{name} was being deleted, and is gone now", f"create it again: {create}"))


def _known(
    system: System, names: Iterable[str], steps: dict[str, VerbResult | Opened], failed: Failed
) -> dict[str, Known]:
    sessions: dict[str, Known] = {}
    for name in names:
        try:
            with apart(system.events, name):
                known = definition_of(system.settings, system.records, name)
            if known.unreadable is not None:
                raise known.unreadable
            sessions[name] = known
        except CoreError as error:
            steps[name] = failed(name, error)
    return sessions


def _checked(system: System, known: Known, survey: Survey, order: StartOrder) -> VerbResult | Checked:
    """Return the start that is to be made, or why there is none. Raises CoreError."""
    record = known.record
    if record and record.hold and _stays_held(record, order):
        return VerbResult(Outcome.HELD, _held_text(record))
    if order.after is not None and not _still_after(record, order.after):
        return VerbResult(Outcome.NOT_RUNNING, _CHANGED_MEANWHILE)
    live = survey.live(target_for(known.name), record.instance_id if record else None)
    if live is Live.LIVE:
        return VerbResult(Outcome.ALREADY_RUNNING)
    refuse_foreign(system.runner, known.name, survey, live)
    if order.skip_held and not starts_unasked(system.settings, known.name):
        start = f"`the-loop standing start {known.name}`"
        left = f"a demo automatically starts only the session that it declares: {start} starts this one"
        return VerbResult(Outcome.NOT_RUNNING, left)
    if record is not None:
        tell_under_lock(system, record, survey, starting=True)
        if order.after is not None:
            known = as_started(known, record)
    return check(system, known, survey, order)


def _still_after(record: SessionRecord | None, instance: str) -> bool:
    return record is not None and record.instance_id == instance and may_be_brought_back(record)


def refuse_foreign(runner: Runner, name: str, survey: Survey, live: Live) -> None:
    """Raise ForeignPane where somebody else's program runs under our target."""
    if live is Live.FOREIGN:
        raise foreign(runner, survey, name)


def _stays_held(record: SessionRecord, order: StartOrder) -> bool:
    if order.skip_held:
        return True
    return record.hold is not None and record.hold.kind is not HoldKind.PAUSED and not order.clear_holds


def _held_text(record: SessionRecord) -> str:
    hold = record.hold
    if hold is None:
        return ""
    reason = f": {hold.reason}" if hold.reason else ""
    return f"{hold.kind.value} by {hold.by}{reason}; `the-loop standing start {record.name}` starts it"


# ---------------------------------------------------------------- what became of a pane


def conclude(system: System, opened: Opened, seen: Seen) -> VerbResult | Opened:
    """Settle a start, or begin a fresh conversation where the harness itself gave up resuming the old one.

    A harness that was killed, or whose pane went with its server, has not said a word about its conversation: that
    stays the record's, and the next start resumes it.
    """
    try:
        with apart(system.events, opened.known.name), lock(system.settings, system.locks, opened.known.name, "start"):
            record = system.records.read(opened.known.name)
            if record is None or not _still_ours(record, opened):
                return VerbResult(Outcome.FAILED, "it was stopped or deleted while it started", opened.known)
            if seen is not Seen.DEAD:
                return _came_up(system, record, opened, seen)
            end = _exit_of(system.clock, system.runner, opened)
            if opened.resumed and left_by_itself(end):
                return _retry_fresh(system, record, opened, end)
            return _died(system, record, opened, end)
    except CoreError as error:
        return spawn_failed(system.events, opened.known.name, error, opened.order)


def _still_ours(record: SessionRecord, opened: Opened) -> bool:
    ended = (Phase.STOPPING, Phase.DELETING)
    return (
        record.instance_id == opened.context.instance and record.phase not in ended and record.status is Status.RUNNING
    )


def _came_up(system: System, record: SessionRecord, opened: Opened, seen: Seen) -> VerbResult:
    record = came_up(system.settings, system.harnesses, record)
    instead = begun_instead(opened.record)
    how = "resumed, its conversation goes on" if opened.resumed else "with a new conversation"
    activity = activity_of(system.activities, record)
    untried = activity.untried_note if activity else ""
    unfinished = unfinished_text(opened.unfinished)
    how = f"{how}{f': {instead}' if instead else ''}"
    more = "; ".join(text for text in (unfinished, untried) if text)
    moving = opened.order.after is None
    usual = opened.resumed and not instead and not more
    reply = not (opened.order.in_line and usual)
    announce_start(system, record, opened.known.definition, how, opened.order.why, more, moving=moving, reply=reply)
    if seen is Seen.READY:
        with failpoint(Failpoint.START_READY):
            mark_lives(system, record)
    _settle(system.records, system.bindings, system.activities, record)
    carry_out_first(system, record)
    system.events.emit(
        "standing.resumed" if opened.resumed else "standing.started",
        name=record.name,
        actor=opened.order.actor,
        reason=opened.order.why,
        detail=unfinished or None,
        instance=record.instance_id,
        generation=record.generation,
    )
    system.notify()
    seconds = system.settings.routing.tmux.start_timeout_seconds
    late = f"it lives, but has not said within {seconds:g} s that it is ready for input" if seen is Seen.LATE else ""
    late = _to_answer(system.settings, system.bindings, record) if seen is Seen.ASKING else late
    outcome = Outcome.RESUMED if opened.resumed else Outcome.STARTED
    mute = opened.harness.silence_ahead(opened.context.cwd, opened.context.args)
    threadless = lacks_thread(system.settings, opened.known.definition)
    remarks = (new_conversation(opened.record), unfinished, late, mute, threadless, untried)
    return VerbResult(outcome, "; ".join(text for text in remarks if text), opened.known)


def _to_answer(settings: Settings, bindings: Bindings, record: SessionRecord) -> str:
    """Return what to do about the dialog that stands before its first turn; the row says what it is."""
    where = "in its thread, or in the terminal" if has_thread(settings, bindings, record) else "in the terminal"
    return f"somebody must answer it, {where}: `the-loop standing attach {record.name} --write`"


def _retry_fresh(system: System, record: SessionRecord, opened: Opened, end: LastExit | None) -> Opened:
    last = _last_words(system.runner, opened, end)
    known = replace(opened.known, record=record)
    try:
        return open_pane(system, known, system.runner.survey(), opened.order, gave_up=last)
    except TmuxSilent:
        raise  # the phase stays: a pane may have been made
    except CoreError:
        _settle(system.records, system.bindings, system.activities, record)
        raise


def _died(system: System, record: SessionRecord, opened: Opened, end: LastExit | None) -> VerbResult:
    last = _last_words(system.runner, opened, end)
    if record.phase is not Phase.CREATING:
        _settle(system.records, system.bindings, system.activities, replace(record, last_exit=end))
    system.events.emit(
        "standing.spawn_failed",
        level="error",
        name=record.name,
        actor=opened.order.actor,
        instance=record.instance_id,
        reason=last,
    )
    kept = f"its conversation {kept_id(record)} is kept" if kept_id(record) else ""
    said = "; ".join(
        text for text in (new_conversation(opened.record), f"its harness ended at once ({last})", kept) if text
    )
    return VerbResult(Outcome.FAILED, said, opened.known)


def _settle(records: Records, bindings: Bindings, activities: Activities, record: SessionRecord) -> None:
    if record.phase is Phase.SETTLED:
        return  # a reconcile came first
    with failpoint(Failpoint.START_SETTLE):
        write_record(records, bindings, activities, record.moved(SessionEvent.READY))


def _exit_of(clock: Clock, runner: Runner, opened: Opened) -> LastExit | None:
    """Return how the pane's program ended, None where the pane is gone or tmux lost it. Raises TmuxSilent."""
    deadline = Deadline(clock, _EXIT_SECONDS)
    while True:
        pane = runner.survey().of_instance(opened.context.instance)
        if pane is None or pane.exit is not None or deadline.passed():
            return pane.exit if pane else None
        clock.pause(_POLL_SECONDS)


def _last_words(runner: Runner, opened: Opened, end: LastExit | None) -> str:
    """Return how the pane's program ended and the last that it printed."""
    try:
        shown = runner.screen(opened.context.instance, _SCREEN_LINES).splitlines()
    except NotRunning:
        return "its pane is gone, and its last output with it"
    lines = [line.strip() for line in shown if line.strip()]
    if lines and _TMUX_SAYS.fullmatch(lines[-1]):
        del lines[-1]
    last = " / ".join(lines)
    return f"{exit_text(end)}; its last output: {last[-_LAST_CHARACTERS:] or 'none'}"
