"""Take in what harnesses report (activity, evidence, answers): each report once, in order, in one transaction.

Turns that nobody typed are here too. The turn-start hook blocks such a turn and the notice is kept. A harness that was
kept from taking a notification brings it again at each resume until one such turn is let through (Claude Code 2.1.197).
So a notice is remembered by its background task: it waits once, and after we delivered it the harness's repetition is
let through and posts nothing.

Commands check whether there is anything to take in; what only one kind of report needs is imported when it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from core.base.errors import LockBusy, TmuxMissing, TmuxSilent
from core.base.files import broken
from core.base.names import new_marker, new_message_id
from core.base.values import replace
from core.delivery.evidence import awaiting_record, before_attempt, settle_by, tell, was_pasted
from core.delivery.snapshot import believe_end, holds_queued, note_step, probe_of, running_turn, settle_end, turn_over
from core.harness.base import BadReport, Reports, discard, put_aside, read_reports
from core.model.activity import Activity, ActivityState, shortened
from core.model.framing import takes
from core.model.harness import (
    MAIN,
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
    stamped,
)
from core.model.message import (
    DELIVERED,
    IN_FLIGHT,
    MOST_TEXT,
    TRANSITIONS,
    WAITING,
    InboxRow,
    Kind,
    MessageState,
    NewMessage,
)
from core.model.observing import WITH_ITS_SESSION, follow, hears, is_of_running_turn, shown_by
from core.model.reasons import Because, Reason, because
from core.model.session import HoldKind, Phase, SessionRecord, entered, had_turn
from core.model.texts import text
from core.session.sessions import Unforeseen, apart, resolve_record
from core.session.system import System

if TYPE_CHECKING:
    from core.base.locks import Locks
    from core.base.paths import StatePaths
    from core.config.settings import Settings
    from core.model.harness import Harness
    from core.model.pane import Pane
    from core.model.posts import NewPost
    from core.store.eventlog import EventLog
    from core.store.inbox import Inbox
    from core.store.records import Records
    from core.store.sessions import Activities, Bindings
    from core.tmux.runner import Runner


_KEPT = WAITING | IN_FLIGHT | DELIVERED
_PREFACE = "A background task of yours ended while you were paused. Its notification:\n"
_SCHEDULED = "Your own schedule came to this while you were paused, once or more often:\n"
THE_LOOP = "the-loop"  #: who speaks in the frame of a notice


def keep_blocked(
    system: System, record: SessionRecord, report: Report, event: TurnBlocked, at: datetime, *, held: bool
) -> str:
    """Keep what the hook blocked, and return the words for the event log. Part of the open transaction.

    A message of ours goes back to our queue. A notice waits until the session is resumed; where the session is stopped
    (`held`), or the notice is one too many, it is recorded and wakes nobody: the harness brings it again.
    """
    if _given_back(system.inbox, record, event.prompt, at):
        return "a message was held back: the session is paused or being stopped"
    if event.scheduled and _waits_for(system.inbox, record, event.prompt):
        return "a turn of its own schedule was blocked again; its notice already waits for the resume"
    key, task = _key(record, event.task), event.task or ""
    if event.task is not None and _waits_or_told(system.inbox.of_key(key)):
        return "a notice that is kept already was blocked again"
    refused = Because(Reason.RECORDED) if held else _overflow(system.settings, system.inbox, record)
    if refused or event.task is None or system.inbox.of_key(key) is not None:
        key, task = f"notice:{record.instance_id}:{report.name}", ""
    message = _notice(record, event.prompt, key, at, task, _SCHEDULED if event.scheduled else _PREFACE)
    system.inbox.add([message])
    row = system.inbox.get(message.id)
    if row is not None and refused:
        system.inbox.advance(row, MessageState.CANCELLED if held else MessageState.REFUSED, refused)
    return f"a turn that nobody asked for was blocked; {refused.text if refused else 'its notice waits for the resume'}"


def note_repeat(system: System, record: SessionRecord, report: Report, event: PromptReported, at: datetime) -> None:
    """Settle the notice that the harness now told itself, or remember that nobody waits for this turn's answer.

    That is so where it repeats a notice that we delivered, or tells of a task that this instance never ran: such a turn
    comes with a resume, is let through, and says nothing in the thread. A turn that a person's message began is another
    matter. Part of the open transaction, before the activity follows.
    """
    kept = system.inbox.of_key(_key(record, event.task))
    if kept is not None and kept.state in WAITING:
        system.inbox.advance(kept, MessageState.CONFIRMED, Because(Reason.TOLD_BY_ITSELF))
    elif not _in_turn(system.activities, record):
        if kept is not None and kept.state in DELIVERED:
            _remember(system.inbox, record, event, at, Reason.REPEATED)
        elif not _runs(system.activities, record, event.task):
            _remember(system.inbox, record, event, at, Reason.LEFT_OVER)


def _remember(inbox: Inbox, record: SessionRecord, event: PromptReported, at: datetime, why: Reason) -> None:
    message = _notice(record, event.prompt, _repeat_key(record, at), at)
    inbox.add([message])
    row = inbox.get(message.id)
    if row is not None and MessageState.CONFIRMED in TRANSITIONS[row.state]:
        inbox.advance(row, MessageState.CONFIRMED, Because(why))


def why_quiet(inbox: Inbox, activities: Activities, record: SessionRecord) -> str | None:
    """Return why nobody waits for the running turn's answer; None where another text joined it since it began."""
    activity = activities.get(record.uid)
    if activity is None or activity.instance != record.instance_id or activity.turn_started_at is None:
        return None
    row = inbox.of_key(_repeat_key(record, activity.turn_started_at))
    return row.detail if row is not None else None


def _given_back(inbox: Inbox, record: SessionRecord, prompt: str, at: datetime) -> bool:
    """Make pending again what we had submitted and no turn may take now; tell whether it was ours at all.

    A report of an earlier attempt, which comes late, says nothing about the text that is on its way now.
    """
    states = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.UNKNOWN}
    ours = [row for row in inbox.with_states(record.uid, states) if takes(prompt, row.message)]
    for row in ours:
        again = row.state is MessageState.UNKNOWN and inbox.of_key(f"again:{row.message.id}") is not None
        if MessageState.PENDING in TRANSITIONS[row.state] and not again and not before_attempt(at, row):
            inbox.advance(row, MessageState.PENDING, Because(Reason.HELD_BACK))
    return bool(ours)


def _waits_for(inbox: Inbox, record: SessionRecord, prompt: str) -> bool:
    """Return whether that prompt of the harness's schedule waits already: once is enough, however often it fires."""
    text = _kept(_SCHEDULED + prompt)
    waiting = inbox.with_states(record.uid, WAITING | IN_FLIGHT)
    return any(row.message.kind is Kind.NOTICE and row.message.text == text for row in waiting)


def _waits_or_told(row: InboxRow | None) -> bool:
    return row is not None and row.state in _KEPT


def _overflow(settings: Settings, inbox: Inbox, record: SessionRecord) -> Because | None:
    """Return why a notice finds no place in the queue, None where it does."""
    limit = settings.limits.queued_per_session
    waiting = inbox.waiting(record.uid)
    return Because(Reason.TOO_MANY_WAIT, {"waiting": waiting, "limit": limit}) if waiting >= limit else None


def _in_turn(activities: Activities, record: SessionRecord) -> bool:
    activity = activities.get(record.uid)
    return (
        activity is not None
        and activity.instance == record.instance_id
        and activity.state.value == "busy"
        and not activity.between_turns
    )


def _runs(activities: Activities, record: SessionRecord, task: str | None) -> bool:
    """Return whether the background task is one that the live instance began."""
    activity = activities.get(record.uid)
    return activity is not None and activity.instance == record.instance_id and task in activity.pending_tasks


def _key(record: SessionRecord, task: str | None) -> str:
    return f"notice:{record.uid}:{task}"


def _repeat_key(record: SessionRecord, at: datetime) -> str:
    return f"repeat:{record.instance_id}:{at.isoformat()}"


def _kept(words: str) -> str:
    """Return what is kept of a text: the whole of it, but where it is longer than any message may be."""
    if len(words) <= MOST_TEXT:
        return words
    from core.model.posts import bounded_text

    return bounded_text(words)


def _notice(
    record: SessionRecord, prompt: str, key: str, at: datetime, task: str = "", preface: str = _PREFACE
) -> NewMessage:
    return NewMessage(
        id=new_message_id(),
        key=key,
        uid=record.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.NOTICE,
        actor=f"agent:{record.name}",
        who=THE_LOOP,
        via="",
        marker=new_marker(),
        text=_kept(preface + prompt),
        raw=False,
        order_us=int(at.timestamp() * 1_000_000),
        created_at=at,
        task=task,
    )


_LOCK_SECONDS = 1.0  #: an id change waits this long for the session's lock, then for the next ingestion
_GOES_ON = (ToolStarted, ToolEnded, PromptReported, TurnEnded, TurnFailed, Ended)  #: no dialog of that agent is open
_EVER = 86_400.0  #: seconds: an instance keeps its pane and its process
_MOST_PARTS = 64  #: of what lies there, at one look; each is some millions of bytes
_PASSING = (OSError, MemoryError)  #: says nothing of a report
_ENDING = frozenset({Phase.STOPPING, Phase.DELETING})


class _Taken:
    """What one ingestion came to, told once it is committed."""

    def __init__(self) -> None:
        self.rows: list[InboxRow] = []
        self.suppressed: list[tuple[Report, str]] = []
        self.failures: list[TurnFailed] = []
        self.jobs: list[tuple[str, str, str]] = []  #: event, background task, and why it is over
        self.heard = False  #: its hooks were silent, and report again
        self.doubted = False  #: another source shows that the turn goes on whose end is reported
        self.agreed = True  #: another source was there to agree
        self.restarts = False  #: the session is being restarted: nobody asked it for silence
        self.answers = 0


Read = Sequence[tuple[Report, tuple[HarnessEvent, ...]]]


def find_record(records: Records, uid: str) -> SessionRecord | None:
    """Return the record of that uid; one that cannot be read has none."""
    found = (entry for entry in records.all() if isinstance(entry, SessionRecord) and entry.uid == uid)
    return next(found, None)


def ingest(system: System, uid: str) -> None:
    """Take in the hook reports of the session of that uid, and ask again about an end in doubt. Raises StoreBroken."""
    record = find_record(system.records, uid)
    if record is not None:
        ingest_record(system, record)
        known = system.activities.get(uid)
        if known is not None and known.ending:
            with suppress(TmuxSilent, TmuxMissing):  # nobody can be asked, and it stays as it is
                settle_end(system, record, _pane_of(system.runner, record))


def ingest_record(system: System, record: SessionRecord) -> bool:
    """Take in the reports of the record's instance, and tell whether there were any. Raises StoreBroken.

    A report of another conversation waits until the record could be given its id, which needs the session's lock.
    """
    taken = False
    for _ in range(_MOST_PARTS if record.instance_id is not None else 0):
        found = _found(system.paths, system.events, record, system.clock.now())
        if found.reports and not _take_part(system, record, found.reports):
            break
        taken = taken or bool(found.reports)
        if not found.more:
            break
    return taken


def _found(paths: StatePaths, events: EventLog, record: SessionRecord, now: datetime) -> Reports:
    """Return the reports that lie there, and tell of those that are none. Raises StoreBroken."""
    folder = paths.spool_of(record.instance_id or "")
    try:
        found = read_reports(folder, record.instance_id or "", now.timestamp())
    except OSError as error:
        raise broken(error, folder, "read the folder") from error
    for bad in found.bad:
        _tell_bad(events, record, bad)
    return found


def _tell_bad(events: EventLog, record: SessionRecord, bad: BadReport) -> None:
    events.emit(
        "standing.suppressed", level="warning", name=record.name, instance=record.instance_id, reason=bad.reason,
        detail=f"report moved to {bad.moved_to}",
    )  # fmt: skip


def _take_part(system: System, record: SessionRecord, reports: Sequence[Report]) -> bool:
    """Take these reports in and remove them; False where the record cannot follow its conversation yet.

    One on which that fails in a way that nobody foresaw is put aside: it would fail again, and hold up those behind it.
    Raises StoreBroken, and Unforeseen where the machine itself is in trouble.
    """
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    try:
        with apart(system.events, record.name):
            return _take_all(system, record, harness, reports)
    except Unforeseen as error:
        if isinstance(error.__cause__, _PASSING):
            raise
        if len(reports) > 1:
            return all(_take_part(system, record, [report]) for report in reports)
        [report] = reports
        _put_aside(system.paths, system.events, record, report, error)
        return True


def _put_aside(paths: StatePaths, events: EventLog, record: SessionRecord, report: Report, error: Unforeseen) -> None:
    path = paths.spool_of(record.instance_id or "") / report.name
    try:
        _tell_bad(events, record, put_aside(path, f"it cannot be taken in: {error.message}"))
    except OSError as trouble:
        raise broken(trouble, path, "move the file away") from trouble


def _take_all(system: System, record: SessionRecord, harness: Harness, reports: Sequence[Report]) -> bool:
    folder = system.paths.spool_of(record.instance_id or "")
    read = [(report, harness.interpret(report)) for report in reports]
    current = _with_current_id(system, record, read)
    if current is None:
        return False
    _commit(system, current, read)
    if current.fresh is not None and any(_ends_turn(report, event) for report, events in read for event in events):
        _note_turn(system.records, system.locks, current)
    for report, _ in read:
        try:
            discard(folder, report)
        except OSError as error:
            raise broken(error, folder / report.name, "remove the file") from error
    return True


def take_told(system: System, record: SessionRecord, read: Read) -> None:
    """Take in what the conversation's own record tells in the place of hooks. Raises StoreBroken."""
    _commit(system, record, read)
    if record.fresh is not None and any(_ends_turn(report, event) for report, events in read for event in events):
        _note_turn(system.records, system.locks, record)


def _ends_turn(report: Report, event: HarnessEvent) -> bool:
    """Return whether the event is the good end of a turn of the session's own agent: a subagent's end is no turn's."""
    return isinstance(event, TurnEnded) and report.agent == MAIN


def _with_current_id(system: System, record: SessionRecord, read: Read) -> SessionRecord | None:
    """Return the record with the conversation that its harness is in now; None if it is locked or another's now."""
    readies = [event for _, events in read for event in events if isinstance(event, Ready) and event.session_id]
    if not readies or readies[-1].session_id == record.conversation:
        return record
    try:
        with system.locks.hold(record.name, "follow the conversation's id", _LOCK_SECONDS):
            latest = system.records.read(record.name)
            if latest is None or latest.uid != record.uid or latest.instance_id != record.instance_id:
                return record  # a later start has its own conversation; what is old is told as suppressed
            changed = _following(system.settings, latest, readies[-1], system.clock.now())
            system.records.write(changed)
            return changed
    except LockBusy:
        return None


def follow_conversation(system: System, record: SessionRecord, session_id: str) -> None:
    """Let the record follow its harness into another conversation, of which no hook has told. Raises StoreBroken."""
    report = Report(record.instance_id or "", "record-clear", {}, by_record=True)
    _with_current_id(system, record, [(report, (Ready(session_id, "clear"),))])


def _following(settings: Settings, record: SessionRecord, ready: Ready, now: datetime) -> SessionRecord:
    in_use = resolve_record(record, settings).harness
    return entered(record, ready.session_id or "", in_use, now, old=ready.source == "resume")


def _note_turn(records: Records, locks: Locks, record: SessionRecord) -> None:
    """Make the conversation of the record's pane the session's, now that it has had a turn.

    Whoever holds the lock may be about to end the session, and looks by itself; so does the next start.
    """
    try:
        with locks.hold(record.name, "note a conversation's first turn", 0):
            latest = records.read(record.name)
            if latest is not None and (latest.instance_id, latest.fresh) == (record.instance_id, record.fresh):
                records.write(had_turn(latest))
    except LockBusy:
        return


# ---------------------------------------------------------------- the transaction


def _commit(system: System, record: SessionRecord, read: Read) -> None:
    taken = _Taken()
    latest = system.records.read(record.name)
    silenced = why_silenced(record, latest)
    taken.restarts = silenced is Reason.BEING_STOPPED and latest is not None and _is_restarted(latest)
    if silenced is None and any(_may_go_on(report, event) for report, events in read for event in events):
        taken.doubted, taken.agreed = _asked_elsewhere(system, record)
    read = [(report, tuple(_bounded(system, event) for event in events)) for report, events in read]
    with system.database.transaction(durable=False):
        for report, events in read:
            if not system.database.ingested(record.instance_id or "", report.name):
                continue
            for event in events:
                _take(system, record, report, event, silenced, taken)
    _tell(system, record, taken)


def _bounded(system: System, event: HarnessEvent) -> HarnessEvent:
    """Return the event with as much of its program's words as is kept, and of a failure without secrets.

    To look for secrets takes half a second for a million characters, so it is done before the database is locked.
    """
    if isinstance(event, TurnFailed):
        words = shortened(event.message)
        return replace(event, message=without_secrets(system.settings, system.environ, words))
    return replace(event, answer=_kept(event.answer)) if isinstance(event, TurnEnded) else event


def _may_go_on(report: Report, event: HarnessEvent) -> bool:
    """Return whether the turn may go on whose end a hook reports: another hook of the same event can ask for that."""
    return _ends_turn(report, event) and not report.by_record


def _asked_elsewhere(system: System, record: SessionRecord) -> tuple[bool, bool]:
    """Return whether the session's second source shows that a turn runs, and whether there is one that answers.

    While it cannot be asked nobody knows: it is asked again.
    """
    try:
        pane = _pane_of(system.runner, record)
    except TmuxMissing:
        return False, False
    except TmuxSilent:
        return True, True
    opinion = (
        probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
        if pane is not None and not pane.dead
        else None
    )
    return opinion is not None and not opinion.turn_over, opinion is not None


def _pane_of(runner: Runner, record: SessionRecord) -> Pane | None:
    """Return the live instance's pane, as it was seen last. Raises TmuxSilent, TmuxMissing where it never was."""
    instance, survey = record.instance_id or "", runner.recent(_EVER)
    if survey is None or survey.of_instance(instance) is None:
        survey = runner.survey()
    return survey.of_instance(instance)


def _tell(system: System, record: SessionRecord, taken: _Taken) -> None:
    """Write the events of what was taken in."""
    tell(system.events, taken.rows)
    for report, reason in taken.suppressed:
        system.events.emit(
            "standing.suppressed", name=record.name, instance=record.instance_id, reason=reason, detail=report.name
        )
    for failure in taken.failures:
        from core.delivery.hearing import words_of

        reason, _ = words_of(system.settings, system.harnesses, record, failure)
        system.events.emit(
            "standing.turn_failed", level="warning", name=record.name, instance=record.instance_id, reason=reason,
            detail=failure.failure.value,
        )  # fmt: skip
    if taken.heard:
        system.events.emit("standing.hooks_back", name=record.name, instance=record.instance_id)
    for job, task, reason in taken.jobs:
        system.events.emit(job, name=record.name, instance=record.instance_id, detail=task, reason=reason or None)
    if taken.answers:
        system.notify()


def why_silenced(record: SessionRecord, latest: SessionRecord | None) -> Reason | None:
    """Return why the thread is told nothing of what the session does; None where it is told."""
    if latest is None or latest.uid != record.uid:
        return Reason.DELETED
    if latest.instance_id != record.instance_id:
        return Reason.EARLIER_INSTANCE
    if latest.phase in _ENDING:
        return Reason.BEING_STOPPED
    if latest.hold is None or latest.hold.kind is HoldKind.PAUSED:  # a paused one ends its turn, and says so
        return None
    return Reason.HELD


def _is_restarted(latest: SessionRecord) -> bool:
    """Return whether a session that is being ended is not stopped by name: what it says last is said to somebody."""
    return latest.phase is Phase.STOPPING and (latest.hold is None or latest.hold.kind is HoldKind.PAUSED)


def _take(
    system: System,
    record: SessionRecord,
    report: Report,
    event: HarnessEvent,
    silenced: Reason | None,
    taken: _Taken,
) -> None:
    at = reported_at(report, system.clock.now())
    doubted = taken.doubted and _may_go_on(report, event)
    turn = _answered_turn(system.activities, record, report, event)
    _see_to_end(system, record, report, event)
    taken.rows += settle_by(system, record, (event,), at)
    if isinstance(event, PromptReported) and event.task is not None:
        note_repeat(system, record, report, event, at)
    if isinstance(event, PromptReported) and silenced is None and _has_thread(system.settings, system.bindings, record):
        from core.delivery.permission_requests import asked_elsewhere

        taken.answers += sum(system.outbox.add(asked_elsewhere(system.settings, system.inbox, record, report, event)))
    if isinstance(event, TurnEnded | TurnFailed):
        if event.turn and report.agent == MAIN:
            system.database.end_told(record.instance_id or "", event.turn, at)
        messages = (
            ()
            if doubted or _is_past(system.activities, record, event)
            else turn_over(system.marks, system.activities, record, at, failed=isinstance(event, TurnFailed))
        )
        if isinstance(event, TurnFailed) and silenced is None and report.agent == MAIN:
            taken.answers += _tell_failure(system, record, event, messages)
            taken.failures.append(event)
    if isinstance(event, _GOES_ON):
        from core.delivery.permission_requests import went_on

        went_on(system, record, report.agent, at, everything=isinstance(event, Ended))
    if silenced not in (Reason.DELETED, Reason.EARLIER_INSTANCE):
        if not doubted:
            _tell_loops(system, record, report, event, at)
        _put_activity(system, record, report, event, at, taken, ending=silenced is not None)
    shown = silenced is None and report.agent == MAIN
    if shown and isinstance(event, ToolStarted | ToolEnded) and _has_thread(system.settings, system.bindings, record):
        note_step(system, record, event)
    if isinstance(event, Ended) and event.by_person:
        system.exit_ledger.leave(record.instance_id or "", record.uid)
    if isinstance(event, TurnBlocked):
        taken.suppressed.append((report, keep_blocked(system, record, report, event, at, held=silenced is not None)))
    if isinstance(event, TurnEnded) and event.answer.strip():
        quiet = (
            why_quiet(system.inbox, system.activities, record) if silenced is None or taken.restarts else text(silenced)
        )
        if quiet:
            taken.suppressed.append((report, quiet))
        elif _has_thread(system.settings, system.bindings, record):
            answer = _answer(record, report, event)
            if any(system.outbox.add([answer])):
                taken.answers += 1
                if turn:
                    system.lives.answered(record.uid, turn, answer.id)


def without_secrets(settings: Settings, environ: Mapping[str, str], words: str) -> str:
    """Return what a program says of its failure, as it may be stored, logged and posted."""
    from core.base.redaction import redactor_of
    from core.config.settings import secret_variables

    return redactor_of(environ, secret_variables(settings, environ)).redact(words)


def _tell_failure(system: System, record: SessionRecord, event: TurnFailed, messages: Sequence[str]) -> int:
    """Commit what the thread is told, and return how many posts that are. `messages`: ids of those that it took.

    Of a turn that took nobody's message the session's thread is told, once until one succeeds or fails for another
    reason. Where the record does not have yet what somebody sent, it is told with that.
    """
    from core.delivery.hearing import note_failure, note_failure_of_nobodys, words_of
    from core.session.notes import told_in

    reason, remedy = words_of(system.settings, system.harnesses, record, event)
    if messages:
        return note_failure(system, reason, remedy, messages)
    coming = awaiting_record(system, record, event.turn) if event.turn else ()
    if any(told_in(system.settings, system.bindings, row) for row in coming):
        return 0
    before = system.activities.get(record.uid)
    known = before is not None and before.instance == record.instance_id and before.failed == event.failure.value
    if known or not _has_thread(system.settings, system.bindings, record):
        return 0
    return note_failure_of_nobodys(system, record, reason, remedy)


def _is_past(activities: Activities, record: SessionRecord, event: TurnEnded | TurnFailed) -> bool:
    """Return whether the end is that of an earlier turn, which the record has told: another one runs, with messages of
    its own."""
    known = activities.get(record.uid)
    if known is None or known.instance != record.instance_id or not known.in_turn:
        return False
    return event.turn not in ("", known.turn) and event.turn == known.ended_turn


def _answered_turn(activities: Activities, record: SessionRecord, report: Report, event: HarnessEvent) -> str:
    """Return by what the turn is known whose answer the event tells; "" for none, or for that of an earlier one."""
    if not isinstance(event, TurnEnded) or report.agent != MAIN or _is_past(activities, record, event):
        return ""
    return running_turn(activities, record)


def _see_to_end(system: System, record: SessionRecord, report: Report, event: HarnessEvent) -> None:
    """Believe that the turn is over of which hooks told, where what they tell next shows it: another one begins."""
    known = system.activities.get(record.uid)
    if known is None or known.instance != record.instance_id or not known.ending:
        return
    begins = isinstance(event, PromptReported) and not is_of_running_turn(known, event.turn)
    asks = isinstance(event, DialogReported) and report.agent != MAIN
    if begins or asks or isinstance(event, Ended | Ready):
        believe_end(system, record, known)


def _tell_loops(system: System, record: SessionRecord, report: Report, event: HarnessEvent, at: datetime) -> None:
    """Settle the runs of loops whose ticks began this turn, or whose turn this ends. A subagent's end is no turn's.

    Called before the activity follows: of a tick that waits in the harness's own queue its row tells, once it is taken.
    """
    if isinstance(event, PromptReported) and not event.internal:
        activity = system.activities.get(record.uid)
        if activity is None or not is_of_running_turn(activity, event.turn):
            from core.loops.outcomes import turn_began

            turn_began(system, record, event.prompt, at)
    elif isinstance(event, TurnEnded | TurnFailed) and report.agent == MAIN:
        from core.loops.outcomes import turn_ended

        turn_ended(system, record, event if isinstance(event, TurnFailed) else None, at)


def _put_activity(
    system: System,
    record: SessionRecord,
    report: Report,
    event: HarnessEvent,
    at: datetime,
    taken: _Taken,
    *,
    ending: bool,
) -> None:
    """Store what the session does now; the background tasks that began and ended by it are to be told, as events.

    `ending`: it is being stopped. A task that is ended with it counts as open until its program is gone.
    """
    instance = record.instance_id or ""
    before = system.activities.get(record.uid)
    if before is None or before.instance != instance:
        before = Activity(record.uid, instance, ActivityState.STARTING, at)
    coming = isinstance(event, Ready) and any(
        row.message.kind is Kind.BOOT and row.state is MessageState.SUBMITTED and row.instance == instance
        for row in system.inbox.unsettled(record.uid)
    )
    left = isinstance(event, TurnEnded | TurnFailed) and holds_queued(system.inbox, record)
    doubted = taken.doubted and _may_go_on(report, event)
    if before.ending and report.agent != MAIN and isinstance(event, ToolStarted | ToolEnded):
        return  # a background agent works on, and says nothing of the turn
    after = follow(before, event, at, boot_coming=coming, queue_left=left, doubted=doubted)
    if isinstance(event, TurnBlocked) and event.cut_off and ending:
        after = replace(after, pending_tasks=before.pending_tasks)
    mode = report.mode if report.agent == MAIN else ""
    agreed, pasted = taken.agreed and not doubted, was_pasted(system, record, event)
    shown = before.shown if report.by_record else shown_by(before, event, mode, at, agreed=agreed, was_pasted=pasted)
    after = replace(after, mode=mode or before.mode, shown=shown)
    if not report.by_record and report.agent == MAIN and hears(before, event):
        from core.delivery.hearing import heard_again

        after, taken.heard = heard_again(system, record, before, after), True
    if isinstance(event, TurnFailed):
        from core.delivery.hearing import words_of

        reason, remedy = words_of(system.settings, system.harnesses, record, event)
        failed = because(Reason.TURN_FAILED, why=reason, remedy=remedy)
        after = replace(after, remarks=(failed,))
    system.activities.put(after)
    why = WITH_ITS_SESSION if isinstance(event, Ended) else ""
    taken.jobs += [("job.started", task, "") for task in after.pending_tasks if task not in before.pending_tasks]
    taken.jobs += [("job.finished", task, why) for task in before.pending_tasks if task not in after.pending_tasks]


def _has_thread(settings: Settings, bindings: Bindings, record: SessionRecord) -> bool:
    """Return whether the session has a thread, or is about to: its root may still be on its way."""
    if bindings.of_session(record.uid) is not None:
        return True
    return settings.chat_of(record.definition) != ""


def _answer(record: SessionRecord, report: Report, event: TurnEnded) -> NewPost:
    from core.model.posts import OWN_CHAT, NewPost, OutboundKind

    stem, key = report.name.split(".", 1)[0], report.name
    if event.turn:  # whoever tells it, a hook or the conversation's record: it is posted once
        from hashlib import sha256

        digest = sha256("".join(event.answer.split()).encode()).hexdigest()[:16]
        key = f"{event.turn}:{digest}"
    return NewPost(
        id=f"p-answer-{record.instance_id}-{stem}",
        key=f"answer:{record.instance_id}:{key}",
        kind=OutboundKind.ANSWER,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=event.answer,
    )


def reported_at(report: Report, fallback: datetime) -> datetime:
    """Return when the report was written: its name begins with nanoseconds since the epoch."""
    return stamped(report.name, fallback)
