"""list, get, attach, screen and logs: how a person looks at sessions.

`list` has one row for each session, merged by name from the configuration and the records, with one look at tmux for
all. `logs` shows the last output of the live instance and of the one that ended before it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.clock import iso
from core.base.errors import (
    BeingDeleted,
    CoreError,
    NotRunning,
    Refused,
    StoreBroken,
    TmuxMissing,
    TmuxSilent,
    UnsupportedHarness,
)
from core.base.files import broken, holds_files, open_plain, read_bounded, read_plain
from core.base.names import standing_ref, target_for
from core.base.text import moment_text
from core.base.values import dataclass, field, replace
from core.model.activity import Capability, consequences, graded, unfinished_text
from core.model.rows import Row, drift
from core.model.session import LastExit, Live, Outcome, Phase, SessionRecord, Status, Thread, deletion_text
from core.session.commands import exact_for
from core.session.folder import LONGEST_OUTPUT, check_files, fingerprints_now, given_otherwise, output_path
from core.session.sessions import Known, definition_of, every_session, left_default, moved, resolve
from core.session.system import System

if TYPE_CHECKING:
    from datetime import datetime

    from core.base.paths import StatePaths
    from core.config.settings import Settings
    from core.lifecycle.common import VerbResult
    from core.model.activity import Activity, Shown
    from core.model.pane import Survey, Window
    from core.model.session import Binding
    from core.store.records import Records
    from core.store.sessions import ExitLedger
    from core.tmux.runner import Runner


@dataclass(frozen=True)
class Glance:
    """What tmux and the database say at one moment. None: could not be asked, and `trouble` says why."""

    survey: Survey | None = None
    queued: Mapping[str, int] | None = None
    loops: Mapping[str, int] | None = None  #: open ones
    activities: Mapping[str, Activity] = field(default_factory=dict)
    workings: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)  #: by instance; where asked for
    last_messages: Mapping[str, datetime] = field(default_factory=dict)
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    left: frozenset[str] = frozenset()  #: the uids of sessions that were parted from a thread once
    due: Mapping[str, datetime] = field(default_factory=dict)  #: by instance: when what has ended is brought back
    environment: Mapping[str, str] | None = None  #: by name: what tells the value that a start would give a variable
    asleep: frozenset[str] = frozenset()  #: the instances that were stopped because they had nothing to do
    trouble: tuple[str, ...] = ()
    stuck: Mapping[str, str] = field(default_factory=dict)  #: by name: what keeps messages from being moved

    def live(self, known: Known) -> Live:
        """Return what lives under the session's target."""
        if self.survey is None:
            return Live.UNKNOWN
        return self.survey.live(target_for(known.name), known.record.instance_id if known.record else None)


def list_standing(system: System, *, working: bool = True) -> tuple[Row, ...]:
    """Return a row for every declared or recorded session; `working`: with what each agent is doing."""
    sessions = every_session(system.settings, system.records)
    view = glance(system, sessions, working=working)
    return tuple(row_of(system, known, view) for known in sessions)


def get_standing(system: System, name: str) -> Row:
    """Return the session's row. Raises UnknownSession, InvalidValue."""
    known = definition_of(system.settings, system.records, name)
    return row_of(system, known, glance(system, (known,), late=True))


def rows_told(
    system: System, told: Mapping[str, VerbResult], survey: Callable[[], Survey] | None = None
) -> tuple[Row, ...]:
    """Return the rows of these sessions as they are now, each with what was done for it. `survey`: see `glance`."""
    current = {known.name: known for known in every_session(system.settings, system.records)}
    sessions = {name: current.get(name) or word.known for name, word in told.items()}
    view = glance(system, tuple(known for known in sessions.values() if known is not None), survey)
    return tuple(
        (row_of(system, known, view) if known else Row(name)).told(
            told[name].outcome, exact_for(system.settings, system.environ, told[name].detail)
        )
        for name, known in sessions.items()
    )


def glance(
    system: System,
    sessions: tuple[Known, ...],
    ask: Callable[[], Survey] | None = None,
    *,
    working: bool = True,
    late: bool = False,
) -> Glance:
    """Look once at tmux and once at each table of the database; hook reports that wait are taken in first.

    `ask`: how tmux is asked by whoever may know already that it is silent. `working`: see `list_standing`. `late`: with
    what the harness's record says by now of a message that nobody watches.
    """
    trouble: list[str] = []
    survey = None
    try:
        survey = (ask or system.runner.survey)()
    except (TmuxSilent, TmuxMissing) as error:
        trouble.append(str(error))
    try:
        stuck = _ingest_waiting(system.paths, system.ingest, sessions)
        if late:
            stuck = {**stuck, **_read_late(system, sessions)}
        return Glance(
            survey,
            system.inbox.counts(),
            system.database.open_loops(),
            _activities(system, sessions, survey),
            system.workings.all() if working else {},
            system.activities.last_messages(),
            {binding.uid: binding for binding in system.bindings.all()},
            system.bindings.left(),
            _due(system.exit_ledger, sessions, survey),
            fingerprints_now(system.settings, system.environ),
            _asleep(system.exit_ledger, sessions),
            tuple(trouble),
            stuck,
        )
    except StoreBroken as error:
        return Glance(survey, trouble=(*trouble, str(error)))


def _activities(system: System, sessions: tuple[Known, ...], survey: Survey | None) -> Mapping[str, Activity]:
    """Return what each session does. Whether a turn is over, of which hooks alone told a moment ago, is asked again.

    Without a service whoever lists sessions is the only one to look: the others at work are asked about, too.
    """
    found = system.activities.all()
    known_at_work = [
        (known.record, each)
        for known in sessions
        if known.record and (each := found.get(known.record.uid)) and (each.ending or each.in_turn)
    ]
    if not known_at_work or survey is None:
        return found
    from core.delivery.snapshot import ask_now, settle_end
    from core.process.presence import running_service

    alone = running_service(system.paths.service_lock) is None
    for record, activity in known_at_work:
        pane = survey.of_instance(record.instance_id or "")
        with suppress(UnsupportedHarness):  # nobody can be asked, and it stays as it is
            if activity.ending:
                settle_end(system, record, pane)
            elif alone and record.phase is Phase.SETTLED:
                ask_now(system, record, pane)
    return system.activities.all()


def _due(exit_ledger: ExitLedger, sessions: tuple[Known, ...], survey: Survey | None) -> Mapping[str, datetime]:
    """Return when sessions are brought back; where all that should run does live, nobody is asked."""
    if survey is None:
        return {}
    living = {pane.tag for pane in survey.panes if not pane.dead}
    running = (known.record for known in sessions if known.record and known.record.status is Status.RUNNING)
    if all(record.instance_id in living for record in running):
        return {}
    return {end.instance: end.due_at for end in exit_ledger.due() if end.due_at is not None}


def _asleep(exit_ledger: ExitLedger, sessions: tuple[Known, ...]) -> frozenset[str]:
    """Return the instances that idle.stopAfter has stopped; of what runs or is held nobody is asked."""
    down = (known.record for known in sessions if known.record and known.record.status is Status.STOPPED)
    return frozenset(
        record.instance_id
        for record in down
        if record.instance_id and record.hold is None and record.phase is Phase.SETTLED
        if (announced := exit_ledger.announced(record.uid)) and announced.ended(record.instance_id)
    )


def _ingest_waiting(paths: StatePaths, ingest: Callable[[str], None], sessions: tuple[Known, ...]) -> Mapping[str, str]:
    """Take in the reports that wait. Return, by name, what keeps a session's reports or messages from being moved."""
    spool, stuck = str(paths.spool), dict[str, str]()
    for known in sessions:
        record = known.record
        if record is None or not record.instance_id:
            continue
        try:
            what = "its messages cannot be moved"
            check_files(paths, known.name, record.uid)
            what = "its reports cannot be taken in"
            if holds_files(os.path.join(spool, record.instance_id)):
                ingest(record.uid)
        except CoreError as error:
            stuck[known.name] = f"{what}: {error}"
    return stuck


def _read_late(system: System, sessions: tuple[Known, ...]) -> Mapping[str, str]:
    """Take in what records say of messages whose fate is open, where no service runs that does. Return as above."""
    from core.delivery.evidence import Transcripts, candidates  # a list reads none
    from core.process.presence import running_service

    stuck = dict[str, str]()
    if running_service(system.paths.service_lock) is not None:
        return stuck
    for known in sessions:
        record = known.record
        try:
            if record is not None and record.instance_id and candidates(system.inbox, record.uid):
                Transcripts(system).read(record)
        except CoreError as error:
            stuck[known.name] = f"its record cannot be read: {error}"
    return stuck


def row_of(system: System, known: Known, view: Glance) -> Row:
    """Return the session's row."""
    resolved = resolve(known.definition, system.settings)
    target = target_for(known.name)
    live = view.live(known)
    row = Row(
        name=known.name,
        declared=known.declared,
        description=known.definition.description,
        auto_start=known.definition.auto_start,
        harness=_harness(system.settings, known, live) or resolved.harness,
        cwd=str(resolved.cwd),
        tmux_target=target,
        attach=shlex.join(system.runner.attach_command(target, write=False)),
        ref=standing_ref(known.name),
        running=None if live is Live.UNKNOWN else live is Live.LIVE,
        live=live,
        detail="; ".join(filter(None, (*view.trouble, view.stuck.get(known.name)))),
    )
    if known.unreadable is not None:
        row = row.told(Outcome.UNREADABLE, str(known.unreadable))
    elif known.record is not None:
        row = _with_record(system, row, known, known.record, view)
    return replace(row, detail=exact_for(system.settings, system.environ, row.detail)) if row.detail else row


def _harness(settings: Settings, known: Known, live: Live) -> str:
    """Return what runs, or ran last where nobody can tell what the next start takes; "" for what that would take."""
    tells = live is Live.LIVE or not settings.whole
    return known.record.harness_in_use if known.record is not None and tells else ""


def _remarks(row: Row, known: Known, record: SessionRecord, activity: Activity | None, view: Glance) -> tuple[str, ...]:
    """Return what people should know of the session besides: what it asks, how it ended, that its entry is gone."""
    orphaned = "" if known.declared or not record.declared else _ENTRY_GONE.format(name=known.name)
    if activity is not None and activity.is_cut_off:
        activity = replace(activity, because=None)  # what whoever cut it off knows
    says = activity.detail if activity else ""
    asleep = _ASLEEP.format(name=known.name) if record.instance_id in view.asleep else ""
    ended, thread = _how_it_ended(row, record, view), _no_thread(known, record, view)
    lacks = consequences(_of_version(activity)) if activity else ()
    untried = activity.untried_note if activity else ""
    unfinished = unfinished_text(activity.earlier_tasks) if activity else ""
    told = (
        _deletion(row, record),
        says,
        _mute(activity),
        activity.retrying.text if activity and activity.retrying else "",
        asleep,
        _new_conversation(record),
        unfinished,
    )
    return (*told, ended, thread, orphaned, *lacks, untried)


def _mute(activity: Activity | None) -> str:
    """Return why its hooks, or its plugin, are silent; "" for all others."""
    silent = activity.silent_why if activity else None
    if silent is None:
        return ""
    from core.model.reasons import OF_PLUGIN  # a list of what reports needs no reasons

    who = "plugin is" if silent.reason in OF_PLUGIN else "hooks are"
    return f"its {who} silent: {silent.text}"


def _capabilities(activity: Activity | None) -> dict[str, str] | None:
    """Return how sure each capability is; None where the harness shows none, or nothing runs."""
    if activity is None or not (activity.shown or activity.version):
        return None
    return {each.value: grade.value for each, grade in graded(activity.shown).items()}


def _of_version(activity: Activity) -> Shown:
    """Return what an instance has shown, without what follows from hooks that are silent: that is told by itself."""
    if activity.silence is None:
        return activity.shown
    edges = (Capability.BOOT_HOOK, Capability.TURN_EDGES)
    return {each: has for each, has in activity.shown.items() if each not in edges}


def _hooks(activity: Activity | None) -> str | None:
    """Return whether its hooks report; None where nothing has shown it, or nothing runs."""
    if activity is None:
        return None
    if activity.silence is not None:
        return "silent"
    heard = activity.shown.get(Capability.BOOT_HOOK) or activity.shown.get(Capability.TURN_EDGES)
    return "reporting" if heard else None


def _deletion(row: Row, record: SessionRecord) -> str:
    """Return that the session is being deleted, and what holds its name where that can be seen; "" for all others."""
    if record.phase is not Phase.DELETING:
        return ""
    held = f"; somebody else's tmux session {row.tmux_target} holds its name" if row.live is Live.FOREIGN else ""
    return f"{deletion_text(record.name)}{held}"


def _new_conversation(record: SessionRecord) -> str:
    """Return what the latest pane's conversation stands in the place of, until it has had a turn; "" for all others."""
    if record.fresh is None:
        return ""
    from core.model.session import new_conversation  # a list of what has had turns needs none of it

    return new_conversation(record)


def _no_thread(known: Known, record: SessionRecord, view: Glance) -> str:
    """Return what to do for a session that lost its thread and has no other yet; "" for every other."""
    lacks = record.uid in view.left and record.uid not in view.bindings and known.definition.chat_kind
    return _PARTED.format(name=known.name) if lacks else ""


def _how_it_ended(row: Row, record: SessionRecord, view: Glance) -> str:
    """Return how a session that should run has ended, and when it comes back; "" for every other."""
    if row.live not in (Live.DEAD, Live.ABSENT) or record.status is not Status.RUNNING or record.instance_id is None:
        return ""
    if record.phase is not Phase.SETTLED:
        return ""
    from core.model.restarting import exit_text  # a list of what lives needs none of it

    due = view.due.get(record.instance_id)
    pane = view.survey.of_instance(record.instance_id) if view.survey else None
    ended = f"its program has ended: {exit_text((pane.exit if pane else None) or record.last_exit)}"
    return f"{ended}; it is brought back at {moment_text(due)}" if due else ended


_VARIABLES_SHOWN = 8
_ASLEEP = "it had nothing to do and was stopped (idle.stopAfter); `the-loop standing start {name}` resumes it"
_PARTED = "it no longer has a thread (`the-loop events` tells why); `the-loop standing announce {name}` makes a new one"
_ENTRY_GONE = "its entry was removed from the configuration; `the-loop standing delete {name}` ends and deletes it"


def _with_record(system: System, row: Row, known: Known, record: SessionRecord, view: Glance) -> Row:
    activity = view.activities.get(record.uid)
    current = activity if activity and row.live is Live.LIVE and activity.instance == record.instance_id else None
    binding = view.bindings.get(record.uid)
    variables = _variables(system.paths, row, record, view)
    remarks = (*_remarks(row, known, record, current, view), _told_variables(variables))
    return replace(
        row,
        uid=record.uid,
        status=record.status,
        phase=record.phase,
        hold=record.hold,
        activity=current.state if current else None,
        hooks=_hooks(current),
        permission_mode=(current.mode or None) if current else None,
        harness_version=(current.version or None) if current else None,
        capabilities=_capabilities(current),
        pending_tasks=current.pending_tasks if current else (),
        working=_working(row, record, view),
        queued=None if view.queued is None else view.queued.get(record.uid, 0),
        loops=None if view.loops is None else view.loops.get(record.uid, 0),
        harness_session_id=record.harness_session_id,
        thread=_thread(record, binding, view),
        started_at=record.started_at,
        last_message_at=view.last_messages.get(record.uid, record.last_message_at),
        detail="; ".join(text for text in (row.detail, *remarks) if text),
        drift=(*_drift(system.settings, known, record, binding), *(("environment",) if variables else ())),
    )


def _working(row: Row, record: SessionRecord, view: Glance) -> Mapping[str, Any] | None:
    """Return what the agent of the latest pane is doing, or was last; no tool runs in a pane that does not live."""
    instance, told = view.workings.get(record.uid, ("", None))
    if told is None or instance != record.instance_id:
        return None
    return told if row.live is Live.LIVE else {**told, "tool": None}


def _variables(paths: StatePaths, row: Row, record: SessionRecord, view: Glance) -> tuple[str, ...]:
    """Return the variables of a program that lives which a start by this process would change."""
    if row.live is not Live.LIVE or view.environment is None:
        return ()
    return given_otherwise(paths, record.uid, view.environment)


def _told_variables(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:_VARIABLES_SHOWN])
    more = len(names) - _VARIABLES_SHOWN
    return f"a start from here would change its environment: {shown}{f' and {more} more' if more > 0 else ''}"


def _thread(record: SessionRecord, binding: Binding | None, view: Glance) -> Thread | None:
    """Return where its thread is: by the database, or by the record's copy where that cannot be asked."""
    if view.queued is None:
        return record.thread
    return binding.place if binding else None


def _drift(settings: Settings, known: Known, record: SessionRecord, binding: Binding | None) -> tuple[str, ...]:
    """Return the changed keys: of the definition, of the default harness, and of the thread's channel."""
    changed = drift(record.definition, known.definition) if known.declared and record.instance_id else ()
    changed = (*changed, *left_default(settings, known))
    return (*changed, *(key for key in moved(settings, known.definition, binding) if key not in changed))


def attach_command(settings: Settings, records: Records, runner: Runner, name: str, *, write: bool) -> tuple[str, ...]:
    """Return the command that attaches to the session's terminal, read-only unless `write`.

    A dead pane can be looked at. Raises UnknownSession, InvalidValue, NotRunning, BeingDeleted, TmuxSilent.
    """
    known = definition_of(settings, records, name)
    survey = runner.survey()
    live = survey.live(target_for(name), known.record.instance_id if known.record else None)
    if live not in (Live.LIVE, Live.DEAD):
        raise _nothing_to_see(name, known.record)
    return runner.attach_command(target_for(name), write=write)


@dataclass(frozen=True)
class Screen:
    """The last lines of a terminal."""

    text: str
    ended: bool  #: it is there no more, and this was kept of it
    window: Window | None = None  #: the one that shows it, where that was asked for and the terminal is there


def screen(system: System, name: str, lines: int, *, history: bool = False, window: bool = False) -> Screen:
    """Return the last lines of the session's terminal; of one that was ended, what was kept of it.

    With `history`: all lines that are kept, whatever `lines` says.

    Raises UnknownSession, InvalidValue, NotRunning, BeingDeleted, StoreBroken.
    """
    known = definition_of(system.settings, system.records, name)
    record = known.record
    if record is None or record.instance_id is None:
        raise _nothing_to_see(name, record)
    try:
        return _of_pane(system.runner, record.instance_id, lines, history, window)
    except NotRunning as error:
        kept = _kept_output(system.paths, known)
        if kept is None:
            raise _nothing_to_see(name, record) from error
        return Screen("\n".join(kept.splitlines()[0 if history else -lines :]), ended=True)


def _of_pane(runner: Runner, instance: str, lines: int, history: bool, window: bool) -> Screen:
    if not (history or window):
        return Screen(runner.screen(instance, lines), ended=False)
    seen, text = runner.window(instance, history=history)
    return Screen(text if history else runner.screen(instance, lines), False, seen if window else None)


def _kept_output(paths: StatePaths, known: Known) -> str | None:
    if known.record is None:
        return None
    try:
        return read_plain(output_path(paths, known.record.uid), LONGEST_OUTPUT).decode(errors="replace")
    except FileNotFoundError:
        return None  # none was kept
    except OSError as error:
        path = output_path(paths, known.record.uid)
        raise broken(error, path, "read the file") from error


def _nothing_to_see(name: str, record: SessionRecord | None) -> Refused:
    if record is not None and record.phase is Phase.DELETING:
        return BeingDeleted(f"{name} has no pane to look at: it is being deleted", name)
    return NotRunning(f"{name} has no pane to look at", f"start it: `the-loop standing start {name}`")


@dataclass(frozen=True)
class EndedOutput:
    """The last output of an instance that ended: when that was kept (UTC), and how it ended, as far as it is known."""

    at: datetime | None  #: None: its pane is there still, and tmux does not say since when it is dead
    exit: LastExit | None
    output: str

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "at": iso(self.at) if self.at else None,
            "exit": {"status": self.exit.status, "signal": self.exit.signal} if self.exit else None,
            "output": self.output,
        }


@dataclass(frozen=True)
class Logs:
    """What a session showed: `screen` of a live one, `ended` of the instance that ended last. None: there is none."""

    name: str
    live: Live
    screen: str | None
    ended: EndedOutput | None

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "name": self.name,
            "live": self.live.value,
            "screen": self.screen,
            "ended": self.ended.to_json() if self.ended else None,
        }


def logs_of(system: System, name: str, lines: int) -> Logs:
    """Return the last lines of what the session showed. Raises UnknownSession, InvalidValue, RecordUnreadable,
    TmuxSilent, and NotRunning for one that never ran."""
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    record = known.record
    if record is None or record.instance_id is None:
        raise NotRunning(f"{name} has shown nothing yet: it never ran", f"start it: `the-loop standing start {name}`")
    survey = system.runner.survey()
    live = survey.live(target_for(name), record.instance_id)
    pane = survey.of_instance(record.instance_id)
    shown = _screen(system.runner, record.instance_id, lines) if pane else None
    if pane is not None and pane.dead and shown is not None:
        return Logs(name, live, None, EndedOutput(None, pane.exit, shown))
    return Logs(name, live, shown, _kept(system.paths, record, lines))


def _screen(runner: Runner, instance: str, lines: int) -> str | None:
    try:
        return runner.screen(instance, lines)
    except NotRunning:
        return None  # it went between the two looks


def _kept(paths: StatePaths, record: SessionRecord, lines: int) -> EndedOutput | None:
    path = output_path(paths, record.uid)
    found = _read(path)
    if found is None:
        return None
    text, at = found
    return EndedOutput(at, record.last_exit, "\n".join(text.splitlines()[-lines:]))


def _read(path: Path) -> tuple[str, datetime] | None:
    try:
        with open_plain(path) as stream:
            at = datetime.fromtimestamp(os.fstat(stream.fileno()).st_mtime, UTC)
            return read_bounded(stream, LONGEST_OUTPUT).decode(errors="replace"), at
    except FileNotFoundError:
        return None
    except (OverflowError, ValueError) as error:
        raise StoreBroken(f"{path} has an impossible time stamp: {error}", f"`touch {path}`") from error
    except OSError as error:
        raise broken(error, path, "read the file") from error
