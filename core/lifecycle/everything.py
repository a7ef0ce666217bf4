"""Verbs for all sessions at once: what a boot starts, what a stop ends, and the one health answer of `status`."""

import logging
from collections.abc import Callable, Mapping, Sequence

from core.base.errors import StoreBroken, StoreGone, UnsupportedHarness
from core.base.files import check_room, is_there
from core.base.values import replace
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.lifecycle.announce import announce_boot, in_line
from core.lifecycle.common import Tmux, VerbResult, foreign, told_of
from core.lifecycle.exits import tell_server_lost
from core.lifecycle.look import Glance, glance, row_of, rows_told
from core.lifecycle.recover import reconcile, reconcile_some
from core.lifecycle.spawn import Opened, StartOrder
from core.lifecycle.start import begin_each, finish_all
from core.lifecycle.stop import stop_standing
from core.model.gate import Action, Decision, GateContext, Wake, decide, hold_state
from core.model.observing import observe
from core.model.reasons import Reason, because
from core.model.restarting import ended_unasked
from core.model.rows import Answer, HarnessRow, Row, ServiceRow, StatusReport
from core.model.session import HoldKind, Live, Outcome, Phase
from core.session.sessions import (
    Known,
    Unforeseen,
    apart,
    every_session,
    has_run,
    resolve,
    resolve_record,
    starts_unasked,
)
from core.session.startup import trouble_ahead
from core.session.system import System
from core.store.eventlog import EventLog

_LOG = logging.getLogger(__name__)
Starts = Callable[[Known], bool]  #: whether a boot starts the session
_ALL_GONE = "no session that should run has a pane: the machine or its tmux server was restarted"


def start_all(system: System, actor: str) -> Answer:
    """Do what a boot does: finish what was cut short, adopt what lives, start and resume what should run.

    The service's sweep and `the-loop start` are this one function. It never weakens a mark.
    """
    tmux = Tmux(system.runner)
    reconcile(system, actor, tmux)
    sessions = every_session(system.settings, system.records)
    view = glance(system, sessions, tmux.survey)
    lost = _tell_lost(system, sessions, view)
    order = StartOrder(actor, "the-loop was started")
    begun, steps = _sweep(system, sessions, view, order, starts_by_itself(system.settings), tmux)
    told = finish_all(system, steps)
    announce_boot(system, begun, told)
    if lost:
        system.events.emit("standing.tmux_back", actor=actor, detail="what a boot starts was started again")
    return Answer(rows_told(system, told, tmux.survey))


def stop_all(system: System, actor: str, reason: str = "the-loop was stopped") -> Answer:
    """End every recorded session; no mark is set, so that the next start brings back what this one ended."""
    return stop_standing(system, None, actor, reason)


def status_all(system: System, services: Sequence[ServiceRow]) -> StatusReport:
    """Return services and sessions; well is what runs as a boot would have it, or is held by a person."""
    sessions = every_session(system.settings, system.records)
    view = glance(system, sessions)
    rows = tuple(
        _with_trouble(system.settings, system.harnesses, known, row_of(system, known, view), view) for known in sessions
    )
    database = _database_rows(system, view)
    starts = starts_by_itself(system.settings)
    running = not database and all(service.running for service in services)
    well = running and all(
        known.name not in view.stuck and (_well(row, boots=starts(known)) or _sleeps(known, view))
        for known, row in zip(sessions, rows, strict=True)
    )
    return StatusReport((*services, *database), _harness_rows(system.settings, system.harnesses, sessions), rows, well)


def _harness_rows(settings: Settings, harnesses: Harnesses, sessions: Sequence[Known]) -> tuple[HarnessRow, ...]:
    """Return a row for each program of theirs that was tried in some versions. It changes nobody's health."""
    readable = [known for known in sessions if not known.unreadable]
    named = {resolve(known.definition, settings).harness for known in readable}
    named |= {resolve_record(known.record, settings).harness for known in readable if known.record}
    rows: list[HarnessRow] = []
    for name in sorted(named):
        try:
            installed = harnesses.get(name).installed()
        except UnsupportedHarness:
            continue  # its sessions' own rows tell that there is none
        if installed is not None:
            rows.append(HarnessRow(name, installed.version, installed.tried, installed.note()))
    return tuple(rows)


def starts_by_itself(settings: Settings) -> Starts:
    """Return the question whether a boot starts a session: a declared one where the configuration says so of them all.

    One that `create` made is wanted by whoever made it, but in a demo, which starts what it declares and nothing else.
    """
    enabled = settings.standing.enabled

    def starts(known: Known) -> bool:
        wanted = enabled or not of_the_file(known)
        return known.definition.auto_start and wanted and starts_unasked(settings, known.name)

    return starts


def of_the_file(known: Known) -> bool:
    """Return whether the configuration declares the session, or did when it was started last."""
    return known.declared or (known.record is not None and known.record.declared)


def _with_trouble(settings: Settings, harnesses: Harnesses, known: Known, row: Row, view: Glance) -> Row:
    """Add to the row what its next start would run into. That is a warning: it changes nobody's health."""
    if known.unreadable:
        return row
    dialog, mute = trouble_ahead(settings, harnesses, known)
    activity = view.activities.get(row.uid or "") if row.hooks == "silent" else None
    met = activity is not None and activity.silent_why == because(Reason.HOOKS_OFF, words=mute)  # and told already
    ahead = (dialog, "" if met else mute)
    return replace(row, detail="; ".join(text for text in (row.detail, *ahead) if text)) if any(ahead) else row


def _database_rows(system: System, view: Glance) -> tuple[ServiceRow, ...]:
    """Return a row for the database where it, or a row of it, cannot be used; else it is taken for granted."""
    if view.queued is None:
        return (ServiceRow("database", False, None, "; ".join(view.trouble)),)
    return database_rows(system)


def database_rows(system: System) -> tuple[ServiceRow, ...]:
    """Return a row for the database where it, or a row of it, cannot be used."""
    try:
        if not system.database.is_there() and has_run(system.records):
            raise StoreGone(system.database.path, "is not there any more, or is empty")
        if is_there(system.paths.local):
            check_room(system.paths.local)
        system.database.check()
        system.inbox.check()
        system.outbox.check()
    except StoreBroken as error:
        return (ServiceRow("database", False, None, str(error)),)
    bad = system.database.bad_rows()
    return (ServiceRow("database", True, None, "; ".join(bad)),) if bad else ()


def _well(row: Row, *, boots: bool) -> bool:
    if row.outcome is Outcome.UNREADABLE:
        return False
    if not boots or row.phase is Phase.DELETING:
        return True
    if row.hold is not None:
        return row.hold.kind is not HoldKind.FAILED
    return row.running is True and row.hooks != "silent"


def _sleeps(known: Known, view: Glance) -> bool:
    """Return whether it was stopped for having nothing to do: a boot would start it, yet it is as people want it."""
    return known.record is not None and known.record.instance_id in view.asleep


# ---------------------------------------------------------------- the sweep


def _tell_lost(system: System, sessions: Sequence[Known], view: Glance) -> bool:
    """Tell, as one event, that no session which should run has a pane: the machine or its tmux server was restarted.

    That is nobody's crash. What a boot starts is resumed by the sweep; the rest stays down.
    """
    if view.survey is None:
        return False
    records = [known.record for known in sessions if known.record is not None and known.record.instance_id]
    if any(view.survey.of_instance(record.instance_id or "") for record in records):
        return False
    try:
        lost = [record for record in records if ended_unasked(record)]
        return bool(lost) and tell_server_lost(system, lost, _ALL_GONE, bring_back=False)
    except StoreBroken as error:
        _LOG.warning("lost sessions not told", extra={"reason": str(error)})
        return False


def _sweep(
    system: System, sessions: Sequence[Known], view: Glance, order: StartOrder, starts: Starts, tmux: Tmux
) -> tuple[Sequence[Known], Mapping[str, VerbResult | Opened]]:
    """Ask the gate what the sweep may do with each session, and do it; return which it was to start as well."""
    steps: dict[str, VerbResult | Opened] = {}
    begun: list[Known] = []
    leftovers: list[str] = []
    for known in sessions:
        try:
            with apart(system.events, known.name):
                action, told = _decided(system, known, view, order, starts)
        except Unforeseen as error:
            action, told = None, told_of(error)
        if action in (Action.START, Action.RESUME):
            begun.append(known)
        elif action is Action.END_LEFTOVERS:
            leftovers.append(known.name)
        steps[known.name] = told
    steps |= _end_leftovers(system, leftovers, order.actor, tmux)
    together = in_line(system, begun)
    orders = {known.name: replace(order, in_line=known.name in together) for known in begun}
    return begun, steps | begin_each(system, orders, tmux)


def _decided(
    system: System, known: Known, view: Glance, order: StartOrder, starts: Starts
) -> tuple[Action | None, VerbResult]:
    """Return what the gate says, and what is to be told of the session where nothing is done to it."""
    if known.unreadable is not None:
        return None, told_of(known.unreadable)
    record = known.record
    activity = view.activities.get(record.uid) if record else None
    context = GateContext(name=known.name, auto_start=starts(known))
    decision = decide(Wake.SWEEP, hold_state(record), observe(record, view.live(known), activity), context)
    if decision.action is Action.ADOPT:
        _say_adopted(system.events, known, order.actor)
        return decision.action, VerbResult(Outcome.ALREADY_RUNNING)
    if decision.action in (Action.ADOPT_HELD, Action.END_LEFTOVERS):
        return decision.action, VerbResult(Outcome.HELD, decision.because.text)
    if view.survey is not None and (decision.action is Action.FAIL_ROW or _waits_for_name(decision, known, view)):
        return decision.action, VerbResult(Outcome.FAILED, str(foreign(system.runner, view.survey, known.name)))
    if decision.action is Action.LEAVE:
        return decision.action, VerbResult(
            Outcome.NOT_RUNNING, f"{decision.because.text}{_why_left(system.settings, known)}"
        )
    return decision.action, VerbResult(_WITHOUT_ACTION.get(decision.action, Outcome.FAILED), decision.because.text)


def _waits_for_name(decision: Decision, known: Known, view: Glance) -> bool:
    """Return whether a deletion cannot be finished since somebody else's program runs in the session's place."""
    return decision.action is Action.FINISH_DELETE and view.live(known) is Live.FOREIGN


def _why_left(settings: Settings, known: Known) -> str:
    """Return which key keeps a boot from starting the session, and the command that does; "" where none does."""
    start = f"`the-loop standing start {known.name}` starts it"
    if not known.definition.auto_start:
        return f": its autoStart is false; {start}"
    if of_the_file(known) and not settings.standing.enabled:
        return f": standingSessions.enabled is false, so no declared session is started automatically; {start}"
    return ""


_WITHOUT_ACTION = {
    Action.WAIT: Outcome.ALREADY_RUNNING,
    Action.RETRY: Outcome.UNCONFIRMED,
    Action.FINISH_DELETE: Outcome.UNCONFIRMED,  # reconcile has just tried
}


def _say_adopted(events: EventLog, known: Known, actor: str) -> None:
    instance = known.record.instance_id if known.record else None
    events.emit("standing.adopted", name=known.name, actor=actor, instance=instance)


def _end_leftovers(system: System, names: Sequence[str], actor: str, tmux: Tmux) -> Mapping[str, VerbResult]:
    """End what still runs under stopped or failed marks. Reconcile did, unless something came between."""
    records = [record for name in names if (record := system.records.read(name)) is not None]
    done = reconcile_some(system, records, actor, tmux)
    return {
        one.name: VerbResult(Outcome.UNCONFIRMED if one.passing else Outcome.FAILED, one.trouble)
        for one in done
        if one.trouble
    }
