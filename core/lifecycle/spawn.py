"""Open sessions' panes, under their locks: clear what is in the way; write the record, the files; open the pane."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from core.base.clock import Deadline
from core.base.environment import chosen
from core.base.errors import CoreError, SpawnFailed, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_instance, new_marker, new_message_id, new_uid, target_for
from core.base.values import dataclass, replace
from core.config.chats import title_of
from core.config.settings import Settings, secret_variables
from core.delivery.evidence import give_back
from core.lifecycle.common import Tmux, foreign, spawn_time, write_record
from core.lifecycle.ending import Doomed, Ended, end_all
from core.model.activity import Activity, ActivityState
from core.model.directive import compose_boot_prompt
from core.model.harness import Harness, Launch, SessionContext
from core.model.message import InboxRow, Kind, MessageState, NewMessage
from core.model.observing import unfinished_tasks
from core.model.pane import Pane, Spawn, Survey
from core.model.reasons import Because, Reason
from core.model.session import HoldKind, Phase, SessionEvent, SessionRecord, Status
from core.session.conversations import check_conversation, take_conversation
from core.session.folder import clear_flags, context_of, note_starter, set_hold_file
from core.session.launching import (
    boot_argument,
    check_cwd,
    drop_spool,
    grants,
    make_folders,
    read_brief,
    write_given,
    write_launcher,
    write_tools,
)
from core.session.sessions import Known, Resolved, resolve, resolve_record
from core.session.system import System
from core.store.inbox import Inbox
from core.store.records import Records
from core.store.sessions import Activities, Bindings
from core.tmux.runner import Runner

THE_LOOP = "the-loop"  #: who speaks in a boot prompt


@dataclass(frozen=True)
class StartOrder:
    """How a start was asked for."""

    actor: str
    why: str  #: for the announcement: "started by cli:ann"
    clear_holds: bool = False  #: by name: stopped and failed go, paused stays
    skip_held: bool = False  #: without a name: what is held stays as it is
    conversation: str | None = None  #: "": begin a new one; an id: take up that one; None: the session's own
    in_line: bool = False  #: the boot tells of it in one line with others: its thread hears only what is not usual
    after: str | None = None  #: unasked, as it was started: only after this instance, and if the session should run


@dataclass(frozen=True)
class Opened:
    """A pane that was just made; nobody knows yet whether its harness comes up."""

    known: Known
    record: SessionRecord
    harness: Harness
    context: SessionContext
    pane: Pane
    order: StartOrder
    resumed: bool
    unfinished: tuple[str, ...]  #: in words, the background tasks of the instance before it that had not finished
    probe: Deadline  #: a harness without any sign of being ready counts as ready when this has passed
    deadline: Deadline


@dataclass(frozen=True)
class Checked:
    """A start against which nothing stands, before anything is changed for it."""

    known: Known
    order: StartOrder
    resolved: Resolved
    harness: Harness
    brief: str
    gave_up: str
    leftovers: tuple[Doomed, ...]  #: what is to be ended first: what is left of earlier instances
    dead_panes: bool  #: dead panes of somebody's are in its place


def open_pane(system: System, known: Known, survey: Survey, order: StartOrder, *, gave_up: str = "") -> Opened:
    """Check, clear the place and start the session, one alone. Needs the lock. Raises CoreError, see `open_checked`."""
    checked = check(system, known, survey, order, gave_up=gave_up)
    return open_checked(system, checked, end_all(system, checked.leftovers, Tmux(system.runner), survey))


def check(system: System, known: Known, survey: Survey, order: StartOrder, *, gave_up: str = "") -> Checked:
    """Refuse what cannot run, and return what is needed for a start. Changes nothing. Raises CoreError.

    `gave_up` is how the harness ended when it was to resume its conversation: then a fresh one is begun, and the old
    one stays the session's until that has had a turn.
    """
    resolved = _resolved(system.settings, known, order)
    harness = system.harnesses.get(resolved.harness)
    harness.check(known.definition, resolved.args)
    check_cwd(resolved)
    brief = read_brief(known.definition)
    there, record = survey.of_target(target_for(known.name)), known.record
    if order.conversation and not gave_up:
        check_conversation(system.paths, record, resolved, harness, order.conversation)
    latest = record.instance_id if record else None
    strays = sorted({pane.tag for pane in there if pane.tag} - {latest})
    leftovers = (*([Doomed(latest, record)] if latest else []), *map(Doomed, strays))
    return Checked(known, order, resolved, harness, brief, gave_up, leftovers, any(not pane.tag for pane in there))


def open_checked(system: System, checked: Checked, ended: Mapping[str, Ended]) -> Opened:
    """Start the session: resume its conversation where that can be, else begin a fresh one. Needs the lock.

    `ended`: what ending the leftovers came to, by instance. Raises CoreError; after TmuxSilent the record stays in its
    phase, since the pane may have been made.
    """
    known, order, resolved, harness = checked.known, checked.order, checked.resolved, checked.harness
    _check_place(system.runner, checked, ended)
    if known.record is not None:
        with failpoint(Failpoint.DELIVERY_SETTLE):
            give_back(system, known.record, None)  # before anything can be delivered to the next instance
    before = known.record or _new_record(known, system.clock.now())
    last = ended[before.instance_id].exit if before.instance_id else None
    if before.status is Status.RUNNING and last is not None:
        before = replace(before, last_exit=last)  # it ended by itself, and its dead pane told how
    taken = take_conversation(system, before, resolved, harness, order.actor, checked.gave_up, order.conversation)
    record = _mark_starting(system, taken.record, known, order)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    has_tools = harness.traits.tools
    message = None if taken.resumed else _boot_message(system, record, resolved, checked.brief, has_tools=has_tools)
    unfinished = unfinished_tasks(system.activities.get(record.uid))
    try:
        pane = _spawn(system, record, context, harness, resolved, message, before.instance_id, returned=taken.returned)
    except TmuxSilent:
        raise
    except CoreError:
        _give_up(system.records, system.bindings, system.activities, record)
        raise
    tmux = system.settings.routing.tmux
    return Opened(
        replace(known, record=record),
        record,
        harness,
        context,
        pane,
        order,
        taken.resumed,
        unfinished,
        Deadline(system.clock, tmux.resume_probe_seconds),
        Deadline(system.clock, tmux.start_timeout_seconds),
    )


def _resolved(settings: Settings, known: Known, order: StartOrder) -> Resolved:
    """Fill in the defaults; nobody who brings a session back unasked takes another harness than its record has."""
    if order.after is not None and known.record is not None:
        return resolve_record(known.record, settings)
    return resolve(known.definition, settings)


def _new_record(known: Known, now: datetime) -> SessionRecord:
    return SessionRecord(name=known.name, uid=new_uid(), definition=known.definition, created_at=now)


def _check_place(runner: Runner, checked: Checked, ended: Mapping[str, Ended]) -> None:
    """Refuse where something is left in the place, and clear it of dead panes of anybody's. Raises CoreError."""
    name = checked.known.name
    for one in checked.leftovers:
        end = ended[one.instance]
        if end.silent:
            raise TmuxSilent(f"{name}: nothing was started: {end.silent}", "try again once tmux answers")
        if end.survivors:
            raise SpawnFailed(f"{name}: nothing was started: {end.trouble()}", "end them, then try again")
    if checked.dead_panes:
        with failpoint(Failpoint.END_PANE):
            cleared = runner.clear(target_for(name))
        if not cleared:
            raise foreign(runner, runner.survey(), name)


def _mark_starting(system: System, before: SessionRecord, known: Known, order: StartOrder) -> SessionRecord:
    system.database.open()  # else whoever finds a session that has run, and none, takes it for lost
    kept = before.hold if before.hold and (before.hold.kind is HoldKind.PAUSED or not order.clear_holds) else None
    record = replace(
        before.moved(SessionEvent.START),
        definition=known.definition,
        declared=known.declared,
        instance_id=new_instance(),
        status=Status.RUNNING,
        hold=kept,
        started_at=system.clock.now(),
    )
    with failpoint(Failpoint.START_MARK):
        note_starter(system.paths, record.uid)
        return write_record(system.records, system.bindings, system.activities, record)


def _spawn(
    system: System,
    record: SessionRecord,
    context: SessionContext,
    harness: Harness,
    resolved: Resolved,
    message: NewMessage | None,
    earlier: str | None,
    *,
    returned: bool,
) -> Pane:
    with failpoint(Failpoint.START_FOLDER):
        make_folders(context)
        if earlier and drop_spool(system.paths, earlier):
            system.database.forget_reports(earlier)
    with failpoint(Failpoint.START_UNHOLD):
        clear_flags(system.paths, record.uid, held=record.hold is not None)
        if record.hold is not None:
            set_hold_file(system.paths, record.uid)
    with failpoint(Failpoint.START_PREPARE):
        write_tools(system.paths, record, context)
        harness.prepare(context)
    by_argument = harness.traits.prompt_argument and record.hold is None  # under a pause it waits, as all else does
    secrets = secret_variables(system.settings, system.environ)
    given = chosen(system.environ, secrets)
    with failpoint(Failpoint.START_LAUNCHER):
        launch = _launch(context, harness, message if by_argument else None, resumed=message is None)
        launcher = write_launcher(context, launch, secrets)
        write_given(context, given)
    asked_at = system.clock.now()
    with failpoint(Failpoint.START_BOOT):
        _commit_boot(system, record, harness, message, asked_at, by_argument=by_argument, returned=returned)
    with failpoint(Failpoint.START_SPAWN):
        return system.runner.spawn(
            Spawn(
                target=target_for(record.name),
                instance=context.instance,
                launcher=launcher,
                cwd=resolved.cwd,
                env={**given, **launch.env, **_our_variables(system.settings.source, context)},
                deadline=asked_at + spawn_time(system.settings),
            )
        )


def _our_variables(config: Path | None, context: SessionContext) -> dict[str, str]:
    """Return what the program needs to know of its folder, and the-loop's own commands inside the pane."""
    token = {"PWD": str(context.cwd), "THE_LOOP_MCP_TOKEN_FILE": str(context.token_file)}
    return token | ({"THE_LOOP_CONFIG": str(config)} if config else {})


def _boot_message(
    system: System, record: SessionRecord, resolved: Resolved, brief: str, *, has_tools: bool
) -> NewMessage:
    marker = new_marker()
    now = system.clock.now()
    kind = system.settings.chat_of(resolved.definition)
    given = grants(system.environ, has_thread=bool(kind), has_tools=has_tools)
    chat = (kind, title_of(kind)) if kind else None
    text = compose_boot_prompt(record.name, brief, marker, chat=chat, grants=given)
    return NewMessage(
        id=new_message_id(),
        key=f"boot:{record.instance_id}",
        uid=record.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.BOOT,
        actor=THE_LOOP,
        who=THE_LOOP,
        via="",
        marker=marker,
        text=text,
        raw=True,
        order_us=int(now.timestamp() * 1_000_000),
        created_at=now,
    )


def _launch(context: SessionContext, harness: Harness, message: NewMessage | None, *, resumed: bool) -> Launch:
    if message is None:
        return harness.launch(context, resume=resumed, prompt=None)
    prompt = boot_argument(context, message.text, message.marker, harness.traits.argument_limit)
    return harness.launch(context, resume=resumed, prompt=prompt)


def _commit_boot(
    system: System,
    record: SessionRecord,
    harness: Harness,
    message: NewMessage | None,
    now: datetime,
    *,
    by_argument: bool,
    returned: bool,
) -> None:
    """Commit the boot prompt before the pane is made, so that its evidence finds a row.

    A conversation that begins anew makes earlier boot prompts void: no turn ever took one, or the conversation that
    did is left. So does the return to an earlier one (`returned`), which has had its own. An argument is on its way as
    soon as the pane is made; else it is pasted, before all that waits.
    """
    instance = record.instance_id or ""
    found = harness.installed()
    version, untried = (found.version, found.note()) if found is not None else ("", "")
    activity = Activity(
        record.uid,
        instance,
        ActivityState.STARTING,
        now,
        version=version,
        untried=untried,
        shown=dict.fromkeys(harness.traits.lacks, False),
        earlier_tasks=unfinished_tasks(system.activities.get(record.uid)),
    )
    with system.database.transaction(durable=True):
        system.activities.put(activity)
        waiting = system.inbox.unsettled(record.uid)
        if message is not None or returned:
            for row in waiting:
                if row.message.kind is Kind.BOOT:
                    _void(system.inbox, row)
        if message is None:
            return
        first = min([message.order_us, *(row.message.order_us - 1 for row in waiting)])
        system.inbox.add([replace(message, order_us=first)])
        row_now = system.inbox.get(message.id)
        if row_now is None or not by_argument:
            return
        pasted = system.inbox.advance(row_now, MessageState.PASTED, instance=instance, attempt=1, pasted_at=now)
        system.inbox.advance(
            pasted,
            MessageState.SUBMITTED,
            Because(Reason.ARGUMENT),
            submitted_at=now,
            submits=1,
            final=not harness.traits.evidence,
        )


def _void(inbox: Inbox, row: InboxRow) -> None:
    if row.state is not MessageState.PENDING and row.state is not MessageState.QUEUED:
        row = inbox.advance(row, MessageState.PENDING)
    inbox.advance(row, MessageState.CANCELLED, Because(Reason.NEW_BOOT))


def _give_up(records: Records, bindings: Bindings, activities: Activities, record: SessionRecord) -> None:
    """Settle a start of which tmux made nothing. A creation keeps its phase: whoever creates removes the record."""
    if record.phase is Phase.CREATING:
        return
    with failpoint(Failpoint.START_SETTLE):
        write_record(records, bindings, activities, record.moved(SessionEvent.READY))
