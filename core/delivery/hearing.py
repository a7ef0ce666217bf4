"""Check that sessions' hooks report, and use other sources while they do not.

Hooks may not run at all (somebody's settings) or not for a while (the session's folder is gone). The silence is stored,
and told once in the event log and the thread, so that nobody takes such a session for idle. Until the hooks report
again, the conversation's own record tells of turns: when one began, what was answered, that it ended or failed. A turn
end from the record and one from a hook have the same key, so it is taken once. The harness's second source tells that
it reads, works or asks.

Also here:
- What a thread is told of a turn that failed on the model's side: why, and what a person can do. There is one note for
  the messages that the turn took, in the thread they came from, with a button that sends them again. If the turn took
  nobody's message (a loop's or the boot's), the session's thread is told once, until a turn succeeds or fails for
  another reason.
- Requests that the harness retries by itself for minutes without a hook. Only its screen shows that. The thread is told
  once a turn, after a while, and the note is edited when it is over.
- Harnesses that cannot report that they read: the screen shows it, also after the start has stopped waiting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from re import compile as pattern
from typing import TYPE_CHECKING

from core.base.errors import NotRunning, TmuxSilent
from core.base.text import moment_text
from core.base.values import dataclass, field, replace
from core.delivery.evidence import settle_by, tell
from core.delivery.hook_ingest import follow_conversation, ingest_record, take_told, without_secrets
from core.delivery.screens import Form, look
from core.delivery.snapshot import probe_of, replace_activity, turn_over
from core.model.activity import (
    ASKING_STATES,
    Activity,
    ActivityState,
    Capability,
    Failure,
    Silence,
    remedy_of,
    what_failed,
)
from core.model.asking import Press, session_buttons
from core.model.framing import takes
from core.model.harness import (
    HarnessEvent,
    PromptReported,
    Report,
    Retry,
    StatusProbe,
    TextTaken,
    TurnEnded,
    TurnFailed,
    TurnRecord,
    TurnSeen,
)
from core.model.message import MessageState
from core.model.observing import second_guess, what_failed_still
from core.model.pane import Pane, Survey
from core.model.posts import OWN_CHAT, NewPost, NoteStand, OutboundKind
from core.model.reasons import OF_PLUGIN, RESTARTABLE, Because, Reason, Remedy, because, said
from core.model.session import Phase, SessionRecord
from core.model.texts import text
from core.session.folder import REPORTER, context_of
from core.session.notes import attach_of, earlier, note_for
from core.session.sessions import activity_of, each_apart, has_thread, resolve_record, traits_of
from core.session.system import System

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.harness.catalogue import Harnesses
    from core.model.posts import OWN_CHAT, NewPost
    from core.tmux.runner import Runner


_MEANWHILE = (
    "Meanwhile the-loop reads the program's own files: answers come some seconds later, a message waits for the end of "
    "the running turn, and a dialog is recognised only on the screen."
)
_UNTOLD = "Messages wait until the agent is ready for input."


def why_silent(system: System, record: SessionRecord, silence: Silence, trouble: str = "") -> Because:
    """Return why the session's hooks are silent, as far as that can be found out, and what a person can do.

    `trouble`: what the program itself has written down of a hook that could not run.
    """
    resolved = resolve_record(record, system.settings)
    harness = system.harnesses.get(resolved.harness)
    settings, plugin = harness.silence_ahead(resolved.cwd, resolved.args), harness.traits.plugin
    reporter = system.paths.session(record.uid) / (plugin or REPORTER)
    if settings:
        return because(Reason.HOOKS_OFF, words=settings)
    if plugin:
        there = os.access(reporter, os.R_OK)
        why = because(Reason.PLUGIN_SILENT, name=record.name)
        return why if there else because(Reason.PLUGIN_GONE, path=str(reporter), name=record.name)
    if not resolved.cwd.is_dir():
        return because(Reason.FOLDER_GONE, folder=str(resolved.cwd))
    if not os.access(reporter, os.X_OK):
        return because(Reason.REPORTER_GONE, path=str(reporter), name=record.name)
    if trouble:
        return because(Reason.HOOKS_FAIL, trouble=trouble, name=record.name)
    match silence:
        case Silence.START:
            return because(Reason.START_UNTOLD, name=record.name)
        case Silence.UNTOLD:
            seconds = f"{system.settings.routing.tmux.start_timeout_seconds:g}"
            return because(Reason.READING_UNTOLD, seconds=seconds, name=record.name)
        case Silence.TURNS:
            return because(Reason.END_UNTOLD, name=record.name)


def mark_silent(system: System, record: SessionRecord, silence: Silence, trouble: str = "") -> None:
    """Note that the session's hooks are silent, and tell it; what is known is not told again. Raises StoreBroken."""
    now = system.clock.now()
    why = why_silent(system, record, silence, trouble)
    with system.database.transaction(durable=False):
        before = system.activities.get(record.uid)
        if before is None or before.instance != record.instance_id or before.silence is silence:
            return
        missing = Capability.TURN_EDGES if silence is Silence.TURNS else Capability.BOOT_HOOK
        system.activities.put(
            replace(
                before,
                silence=silence,
                silent_since=before.silent_since or now,
                silent_why=why,
                shown={**before.shown, missing: False},
            )
        )
        if before.silent_why == why:
            return
        if has_thread(system.settings, system.bindings, record):
            system.outbox.add([_note(system, record, why, silence)])
    system.events.emit(
        "standing.hooks_silent", level="warning", name=record.name, instance=record.instance_id, reason=why.text,
        detail=silence.value,
    )  # fmt: skip
    system.notify()


def heard_again(system: System, record: SessionRecord, before: Activity, after: Activity) -> Activity:
    """Return the activity of a session whose hooks report again, and edit what its thread was told of them.

    Part of the open transaction.
    """
    if (
        has_thread(system.settings, system.bindings, record)
        and before.silence is not None
        and before.silent_why is not None
    ):
        system.outbox.add([_note(system, record, before.silent_why, before.silence, back=system.clock.now())])
    return replace(after, silence=None, silent_since=None, silent_why=None)


def _note(
    system: System, record: SessionRecord, why: Because, silence: Silence, back: datetime | None = None
) -> NewPost:
    """Return the note, one for each reason of an instance, or its next edit."""
    group = f"silent {record.instance_id} {why.code} {why.given}"
    told = system.outbox.latest_note(group)
    first = (told.edits or told.id) if told is not None else ""
    moment = int(system.clock.now().timestamp() * 1_000_000)
    stand = NoteStand(group, moment, 0, 0)
    if told is not None and told.note is not None:
        stand = replace(told.note, edits=told.note.edits + 1)
    post_id = f"{first or f'p-silent-{record.instance_id}'}-{moment}"
    if back is None:
        meanwhile = _UNTOLD if silence is Silence.UNTOLD else _MEANWHILE
        who = "plugin of `{}` is" if why.reason in OF_PLUGIN else "hooks of `{}` are"
        text = f"The {who.format(record.name)} silent: {why.text}. {meanwhile}"
    else:
        who = "plugin of `{}` reports" if why.reason in OF_PLUGIN else "hooks of `{}` report"
        text = f"The {who.format(record.name)} again, since {moment_text(back)}. {earlier(why)}"
    return NewPost(
        id=post_id,
        key=f"silent:{post_id}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        buttons=session_buttons(record.uid, Press.RESTART) if back is None and why.reason in RESTARTABLE else (),
        edits=first,
        note=stand,
    )


GRACE = timedelta(seconds=3)  #: from the record of a turn's end to its hook's report, which comes before it as a rule
BOOT = timedelta(seconds=10)  #: from the first word of another source to the boot hook: 0.3 s, a busy machine more
_KNOWN = timedelta(seconds=1)  #: the same where its settings switch hooks off
_EARLIER = timedelta(seconds=5)  #: may a turn stand in the record before its beginning was told
_UNANSWERED = "an interruption before it had answered"
_LOOK_BACK = 50  #: messages of the session
_SETTLED = timedelta(seconds=2)  #: from the second source's word that a turn is over to the end of it in the record


@dataclass(frozen=True)
class _Followed:
    """One instance's conversation."""

    instance: str
    conversation: str | None
    record: TurnRecord | None
    open: dict[datetime, TurnSeen] = field(default_factory=dict)  #: by when they began: turns whose end is not settled


class Hearing:
    """Follows the conversations of all sessions that run. Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._followed: dict[str, _Followed] = {}  #: by uid

    def suspects(self, record: SessionRecord, activity: Activity | None) -> bool:
        """Return whether to look often: its hooks are silent, or have not told of something yet."""
        if activity is None or activity.instance != record.instance_id:
            return False
        starts = activity.state is ActivityState.STARTING and activity.silence is None
        followed = self._followed.get(record.uid)
        waits = followed is not None and any(turn.over_at for turn in followed.open.values())
        return activity.silence is not None or starts or waits

    def forget(self, uids: frozenset[str]) -> None:
        """Follow none but these."""
        self._followed = {uid: each for uid, each in self._followed.items() if uid in uids}

    def follow(self, record: SessionRecord, pane: Pane | None) -> bool:
        """Look once, and return whether what is known of the session has changed. Raises StoreBroken."""
        system, traits = self._system, traits_of(self._system.settings, self._system.harnesses, record)
        if pane is None or pane.dead or not traits.evidence:
            return False
        before = activity_of(system.activities, record)
        if before is None:
            return False
        starts = before.state is ActivityState.STARTING
        unnamed = record.conversation is None
        asked = starts or unnamed or before.silence is not None
        programs = (system.settings, system.paths, system.harnesses)
        opinion = probe_of(*programs, record, pane.pid) if asked else None  # before the record, which is written first
        led = opinion is not None and (unnamed or before.silence is not None)
        if led and opinion is not None and opinion.session_id not in ("", record.conversation):
            follow_conversation(system, record, opinion.session_id)
            return True  # what it holds is read at the next look
        turns = self._new_turns(record, before)
        if traits.boot_signal and (starts or before.silence is Silence.UNTOLD):
            notice_start(system, record, opinion, has_turn=bool(turns))
        for turn in turns:
            self._take(record, turn)
        after = activity_of(system.activities, record)
        if after is not None and after.silence is not None:
            _ask_elsewhere(system, record, after, opinion, recorded=bool(self._followed[record.uid].open))
        return activity_of(system.activities, record) != before

    # ------------------------------------------------------------ the record

    def _new_turns(self, record: SessionRecord, activity: Activity) -> tuple[TurnSeen, ...]:
        """Return the turns whose end is not settled, oldest first; but the latest, they are over."""
        followed = self._followed.get(record.uid)
        seen = (record.instance_id or "", record.conversation)
        if followed is None or (followed.instance, followed.conversation) != seen:
            followed = _Followed(*seen, self._opened(record, activity))
            self._followed[record.uid] = followed
        for turn in followed.record.new_turns() if followed.record is not None else ():
            followed.open[turn.began_at] = turn
        latest = max(followed.open, default=None)
        for at in [at for at, turn in followed.open.items() if at != latest and turn.over_at is None]:
            del followed.open[at]  # another one followed: nothing tells how it ended
        return tuple(followed.open[at] for at in sorted(followed.open))

    def _opened(self, record: SessionRecord, activity: Activity) -> TurnRecord | None:
        """Open the conversation behind what was told of it before."""
        resolved = resolve_record(record, self._system.settings)
        context = context_of(self._system.paths, record, resolved, record.instance_id or "")
        begun = record.started_at or activity.since
        since = max(begun, activity.last_report_at or begun)
        if activity.in_turn and activity.turn_started_at is not None:
            since = min(since, activity.turn_started_at - _EARLIER)
        return self._system.harnesses.get(resolved.harness).turns(context, since)

    def _take(self, record: SessionRecord, turn: TurnSeen) -> None:
        """Take in what no hook tells of the turn, once that is sure."""
        system, now = self._system, self._system.clock.now()
        activity = activity_of(system.activities, record)
        if activity is None:
            return
        silent = activity.silence is not None
        if turn.over_at is None:
            if silent:
                take_told(system, record, [*_beginning(record, turn)])
            elif activity.cut_off_at is not None and activity.cut_off_at >= turn.began_at:
                _tell_cut_off(system, record, turn)  # 2.1.332 writes no end of it where nothing was answered
            return
        if not silent and turn.over_at <= now < turn.over_at + GRACE:  # else it is by another clock
            return
        if not silent:
            ingest_record(system, record)
        self._followed[record.uid].open.pop(turn.began_at, None)
        if turn.cut_off:
            _mark_cut_off(system, record, turn)
            if not turn.abandoned:  # what had been queued when it was, the pause has told or let wait again
                _tell_cut_off(system, record, turn)
            return
        told = (
            turn.failed is None or traits_of(system.settings, system.harnesses, record).failure_hook
        )  # else no hook was to tell
        with system.database.transaction(durable=False):
            if self._claimed(record, turn):
                if told and not silent:
                    mark_silent(system, record, Silence.TURNS, turn.hook_trouble)
                take_told(system, record, [*_beginning(record, turn), _end(record, turn)])
                if told:
                    _lacks_turn_edges(system, record)
        system.notify()

    def _claimed(self, record: SessionRecord, turn: TurnSeen) -> bool:
        """Return whether the turn's end was told by nobody, and is ours to tell. Part of the open transaction."""
        system, instance = self._system, record.instance_id or ""
        activity = activity_of(system.activities, record)
        named = [name for name in turn.turns if name]
        if not named:
            ended = activity.turn_ended_at if activity is not None else None
            return ended is None or ended < turn.began_at
        return all(system.database.end_told(instance, name, turn.over_at or turn.began_at) for name in named)


def _mark_cut_off(system: System, record: SessionRecord, turn: TurnSeen) -> None:
    """Mark what the turn had taken as cut off, also what was marked as done when another turn followed.

    Raises StoreBroken.
    """
    if turn.answered:
        return
    with system.database.transaction(durable=False):
        for row in system.inbox.with_states(record.uid, {MessageState.CONFIRMED}, _LOOK_BACK):
            if any(takes(prompt, row.message) for prompt in turn.prompts):
                system.marks.fail(row.message.id)
    system.notify()


def _tell_cut_off(system: System, record: SessionRecord, turn: TurnSeen) -> None:
    """Tell the senders of what the program's own queue had begun a turn with, if that was cut off before it answered.

    Who pressed the key meant the turn before it: of that one's messages they know. Who paused the session is told by
    the pause. Each is told once. Raises StoreBroken.
    """
    latest = system.records.read(record.name)
    if turn.answered or latest is None or latest.hold is not None:
        return
    why, remedy = Because(Reason.CUT_OFF_BY, {"what": _UNANSWERED}), text(Remedy.SEND_AGAIN)
    with system.database.transaction(durable=False):
        taken = [TextTaken(prompt, turn.internal, turn=turn.turn) for prompt in turn.prompts]
        moved = settle_by(system, record, taken)
        rows = system.inbox.with_states(record.uid, {MessageState.CONFIRMED}, _LOOK_BACK)
        cut_off = [row for row in rows if any(takes(prompt, row.message) for prompt in turn.prompts)]
        for row in cut_off:
            queued = row.instance == record.instance_id and row.queued_at is not None
            if not queued or not system.database.ingested(row.instance or "", f"cut-off {row.message.id}"):
                continue
            system.marks.end({row.message.id: True})
            note = note_for(system, row, MessageState.CONFIRMED, why, remedy)
            if note is not None:  # the next one joins it
                system.outbox.add([note])
    tell(system.events, moved)
    system.notify()


def notice_start(system: System, record: SessionRecord, opinion: StatusProbe | None, *, has_turn: bool = False) -> None:
    """See that a program runs whose boot hook does not come, or that nothing shows it within the start's time.

    `opinion`: what its second source says; `has_turn`: its conversation's record holds a turn of this instance.
    Raises StoreBroken.
    """
    activity, now = activity_of(system.activities, record), system.clock.now()
    if activity is None or (activity.state is not ActivityState.STARTING and activity.silence is not Silence.UNTOLD):
        return
    if activity.waits_at_start or (opinion is not None and opinion.state in ASKING_STATES):
        return  # it reads no message before somebody has answered
    shown_at = opinion.written_at if opinion is not None else None
    if (
        shown_at is not None
        and now - shown_at >= _KNOWN
        and now - shown_at >= _patience(system.settings, system.harnesses, record)
    ):
        _guess_start(system, record, opinion)
    elif has_turn and now - activity.since >= BOOT:
        _guess_start(system, record, None)
    elif activity.silence is None and record.phase is Phase.SETTLED and not has_turn and shown_at is None:
        late = timedelta(seconds=system.settings.routing.tmux.start_timeout_seconds)
        if now - activity.since >= late:
            _guess_start(system, record, None, has_turn=False)


def _patience(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> timedelta:
    """Return for how long the boot hook is waited for once another source shows that the program runs."""
    resolved = resolve_record(record, settings)
    known = harnesses.get(resolved.harness).silence_ahead(resolved.cwd, resolved.args)
    return _KNOWN if known else BOOT


def _guess_start(system: System, record: SessionRecord, opinion: StatusProbe | None, *, has_turn: bool = True) -> None:
    """Take it as read by another source's word: it is guessed, for its hooks said nothing.

    Where neither a second source nor a turn tells, its screen may show the line in which a message is written; what it
    does then is unknown. Where that does not tell either, nothing is typed into it.
    """
    ingest_record(system, record)
    before, now = activity_of(system.activities, record), system.clock.now()
    if before is None or (before.state is not ActivityState.STARTING and before.silence is not Silence.UNTOLD):
        return  # they did
    state = ActivityState.BUSY if has_turn else ActivityState.UNKNOWN
    shown = (
        opinion is not None or has_turn or _shows_input_line(system.settings, system.runner, system.harnesses, record)
    )
    mark_silent(system, record, Silence.START if shown else Silence.UNTOLD)
    marked = activity_of(system.activities, record)
    if marked is not None:
        state = opinion.state if opinion is not None else state
        system.activities.put(replace(marked, state=state, since=now, because=None, remarks=what_failed_still(marked)))


def _shows_input_line(settings: Settings, runner: Runner, harnesses: Harnesses, record: SessionRecord) -> bool:
    try:
        return look(settings, runner, harnesses, record).form is Form.INPUT
    except (NotRunning, TmuxSilent):
        return False


def _beginning(record: SessionRecord, turn: TurnSeen) -> Iterator[tuple[Report, tuple[HarnessEvent, ...]]]:
    """Yield the turn's beginning as hooks would have reported it, one for each text that it took."""
    for number, prompt in enumerate(turn.prompts):
        name = f"{_stamp(turn.began_at)}-record-begin-{number}"
        event = PromptReported(prompt, turn.internal, turn=turn.turn)
        yield Report(record.instance_id or "", name, {}, by_record=True), (event,)


def _end(record: SessionRecord, turn: TurnSeen) -> tuple[Report, tuple[HarnessEvent, ...]]:
    """Return the turn's end as a hook would have reported it."""
    at = turn.over_at or turn.began_at
    report = Report(record.instance_id or "", f"{_stamp(at)}-record-end", {}, by_record=True)
    return report, (turn.failed or TurnEnded(turn.answer, turn=turn.turn),)


def _stamp(at: datetime) -> str:
    """Return the nanoseconds since the epoch that a report's name begins with."""
    microseconds = (at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return f"{microseconds * 1000:019d}"


def _lacks_turn_edges(system: System, record: SessionRecord) -> None:
    activity = activity_of(system.activities, record)
    if activity is not None and activity.shown.get(Capability.TURN_EDGES) is not False:
        shown = {**activity.shown, Capability.TURN_EDGES: False}
        replace_activity(system, record, activity, replace(activity, shown=shown))


# ---------------------------------------------------------------- the second source


def _ask_elsewhere(
    system: System, record: SessionRecord, activity: Activity, opinion: StatusProbe | None, *, recorded: bool
) -> None:
    """Let the second source tell what a session does whose hooks are silent. `recorded`: its record has the turn."""
    if opinion is None or activity.silence is Silence.UNTOLD:
        return
    after = _by_second_source(activity, opinion, system.clock.now(), recorded=recorded)
    if after.reason is Reason.END_UNKNOWN and activity.in_turn:
        with system.database.transaction(durable=False):
            if replace_activity(system, record, activity, after):
                turn_over(system.marks, system.activities, record, after.since, failed=False)
    else:
        replace_activity(system, record, activity, after)


def _by_second_source(activity: Activity, opinion: StatusProbe, now: datetime, *, recorded: bool) -> Activity:
    """Return what the session does by that source.

    That its turn is over counts once its record has had the time to say how. Where the record has the turn and not its
    end, it was cut off in the terminal; where it has no such turn, nobody can tell how it ended. Of a dialog its screen
    tells, when it is open and when it is over.
    """
    if opinion.state in ASKING_STATES or activity.state is ActivityState.DIALOG:
        return activity
    if not opinion.turn_over:
        if activity.in_turn:
            return second_guess(activity, opinion, now) if activity.state in ASKING_STATES else activity
        failed = what_failed_still(activity)
        begun = replace(activity, because=None, remarks=failed, turn="", turn_started_at=opinion.written_at or now)
        return second_guess(begun, opinion, now)
    if activity.in_turn:
        told_at, began = opinion.written_at or now, activity.turn_started_at
        if now - told_at < _SETTLED or (began is not None and told_at < began):
            return activity
        after = second_guess(activity, opinion, now)
        told = recorded or after.state is not ActivityState.IDLE
        return after if told else replace(after, because=Because(Reason.END_UNKNOWN))
    return activity if activity.between_turns is opinion.between_turns else second_guess(activity, opinion, now)


def note_failure(system: System, reason: str, remedy: str, taken: Sequence[str]) -> int:
    """Commit what the senders of a failed turn's messages are told, and return how many posts that are. `taken`: their
    ids. Part of the open transaction."""
    then = text(Remedy.AFTER_FAILURE, remedy=remedy)
    count = 0
    for message in taken:
        row = system.inbox.get(message)
        note = row and note_for(system, row, MessageState.CONFIRMED, said(reason), then)
        if note:  # the next one joins it
            count += sum(system.outbox.add([note]))
    return count


def words_of(settings: Settings, harnesses: Harnesses, record: SessionRecord, event: TurnFailed) -> tuple[str, str]:
    """Return why the turn failed, and what a person can do."""
    remedies = traits_of(settings, harnesses, record).remedies
    remedy = remedy_of(event.failure, remedies, host=os.uname().nodename, attach=attach_of(record.name))
    return what_failed(event.failure, event.message or event.error), remedy


def note_failure_of_nobodys(system: System, record: SessionRecord, reason: str, remedy: str) -> int:
    """Commit what the session's thread is told of a failed turn that took nobody's message, and return how many posts
    that are. Part of the open transaction."""
    moment = int(system.clock.now().timestamp() * 1_000_000)
    post = NewPost(
        id=f"p-failed-{record.instance_id}-{moment}",
        key=f"failed:{record.instance_id}:{moment}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=f"A turn of `{record.name}` failed: {reason}. To do: {remedy}",
    )
    return sum(system.outbox.add([post]))


AFTER = timedelta(seconds=20)  #: without a word of its hooks; what passes sooner is not told
_SCREEN_LINES = 60
_STATUS = pattern(r"([45]\d\d)\b\s*(.*)")
_LOGIN = frozenset({"401", "403"})


class Retries:
    """Looks at the screens of sessions whose turn is quiet. Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._unsure: set[str] = set()  #: instances whose latest look showed no retry any more: one look may see half

    def look(self, records: Sequence[SessionRecord], survey: Survey) -> None:
        """Look at each that is quiet, or was retrying. Raises StoreBroken."""
        now, activities = self._system.clock.now(), self._system.activities.all()
        looked: list[tuple[SessionRecord, Activity]] = []
        for record in records:
            activity, pane = activities.get(record.uid), survey.of_instance(record.instance_id or "")
            if activity is None or pane is None or pane.dead or activity.instance != record.instance_id:
                continue
            if activity.retrying or _quiet(activity, now):
                looked.append((record, activity))
        if not looked:
            return
        try:
            shown = self._system.runner.screens([activity.instance for _, activity in looked], _SCREEN_LINES)
        except TmuxSilent:
            return
        told = {record.uid: activity for record, activity in looked if activity.instance in shown}

        def follow(record: SessionRecord) -> None:
            activity = told[record.uid]
            self._follow(record, activity, shown[activity.instance])

        each_apart(self._system.events, [record for record, _ in looked if record.uid in told], follow)

    def _follow(self, record: SessionRecord, activity: Activity, screen: str) -> None:
        harness = self._system.harnesses.get(resolve_record(record, self._system.settings).harness)
        retry = harness.retry_shown(screen) if activity.in_turn else None
        if retry is not None:
            self._unsure.discard(activity.instance)
            reason = without_secrets(self._system.settings, self._system.environ, retry.reason)
            _retries(self._system, record, activity, replace(retry, reason=reason))
        elif activity.retrying and activity.in_turn and activity.instance not in self._unsure:
            self._unsure.add(activity.instance)
        elif activity.retrying:
            self._unsure.discard(activity.instance)
            _over(self._system, record, activity)


def _quiet(activity: Activity, now: datetime) -> bool:
    """Return whether a turn runs of which nothing was told for a while."""
    if activity.state is not ActivityState.BUSY or not activity.in_turn:
        return False
    told = [activity.since, activity.last_report_at, activity.turn_started_at]
    return now - max(at for at in told if at is not None) >= AFTER


def what_fails(retry: Retry) -> Because:
    """Return what the program meets."""
    found = _STATUS.match(retry.reason)
    if found is not None:
        return because(Reason.SERVER_ANSWERS, status=found[1], words=found[2])
    return because(Reason.SERVER_UNASKED, words=retry.reason) if retry.reason else Because(Reason.SERVER_ERROR)


def _retries(system: System, record: SessionRecord, activity: Activity, retry: Retry) -> None:
    what = because(Reason.RETRIES, what=what_fails(retry), attempt=retry.attempt, most=retry.most)
    if activity.retrying == what:
        return
    first = not activity.retrying
    with system.database.transaction(durable=False):
        if system.activities.get(record.uid) != activity:
            return  # it told something meanwhile
        system.activities.put(replace(activity, retrying=what))
        if first and has_thread(system.settings, system.bindings, record):
            system.outbox.add(
                [_retry_note(record, activity, _told(system.settings, system.harnesses, record, retry, what.text))]
            )
    if first:
        system.events.emit(
            "standing.retrying", level="warning", name=record.name, instance=record.instance_id, reason=what.text
        )
        system.notify()


def _told(settings: Settings, harnesses: Harnesses, record: SessionRecord, retry: Retry, what: str) -> str:
    """Return what the thread is told; with what a person can do, where waiting helps nobody."""
    text = f"A turn of `{record.name}` waits: {what}; nothing is lost."
    found = _STATUS.match(retry.reason)
    if found is None or found[1] not in _LOGIN:
        return text
    _, remedy = words_of(settings, harnesses, record, TurnFailed("", "", Failure.LOGIN))
    return f"{text} To do: {remedy}"


def _over(system: System, record: SessionRecord, activity: Activity) -> None:
    """Note that nothing is tried again any more, and how that ended."""
    failed = bool(activity.failed) and not activity.in_turn
    how = "has given up" if failed else "goes on" if activity.in_turn else "is over"
    now = system.clock.now()
    with system.database.transaction(durable=False):
        latest = system.activities.get(record.uid)
        if latest is None or latest.instance != activity.instance:
            return
        system.activities.put(replace(latest, retrying=None))
        told = (
            system.outbox.latest_note(_group(activity))
            if has_thread(system.settings, system.bindings, record)
            else None
        )
        what = activity.retrying
        if what is not None and told is not None and told.note is not None and not told.note.edits:
            text = f"A turn of `{record.name}` {how}, since {moment_text(now)}. Before that: {what.text}."
            post_id, key, over = f"{told.id}-over", f"{told.key}:over", replace(told.note, edits=1)
            system.outbox.add([replace(told, id=post_id, key=key, text=text, edits=told.id, note=over)])
    system.notify()


def _group(activity: Activity) -> str:
    return f"retry {activity.instance}"


def _retry_note(record: SessionRecord, activity: Activity, text: str) -> NewPost:
    """Return the note about the running turn: there is one a turn."""
    began = activity.turn_started_at or activity.since
    moment = int(began.timestamp() * 1_000_000)
    return NewPost(
        id=f"p-retry-{record.instance_id}-{moment}",
        key=f"retry:{record.instance_id}:{moment}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        note=NoteStand(_group(activity), moment, 0, 0),
    )


def notice_reading(system: System, record: SessionRecord) -> bool:
    """Look whether a started harness without a boot signal reads by now, and note it; True if that was news.

    Without a ready sign it counts as reading once it has lived for resumeProbeSeconds. Raises TmuxSilent, StoreBroken.
    """
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    activity = system.activities.get(record.uid)
    if harness.traits.boot_signal or record.phase is not Phase.SETTLED:
        return False
    if activity is None or activity.instance != record.instance_id or activity.state is not ActivityState.STARTING:
        return False
    try:
        sign = harness.screen_ready(system.runner.screen(activity.instance, _SCREEN_LINES))
    except NotRunning:
        return False
    now = system.clock.now()
    probe = timedelta(seconds=system.settings.routing.tmux.resume_probe_seconds)
    if sign or (sign is None and now >= activity.since + probe):
        system.activities.put(replace(activity, state=state_at_start(system, record), since=now))
        return True
    return False


def state_at_start(system: System, record: SessionRecord) -> ActivityState:
    """Return what a harness without a boot signal does as it begins to read, by its second source; unknown without one.

    Raises TmuxSilent.
    """
    if not traits_of(system.settings, system.harnesses, record).evidence:
        return ActivityState.UNKNOWN
    pane = system.runner.survey().of_instance(record.instance_id or "")
    opinion = (
        probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
        if pane is not None and not pane.dead
        else None
    )
    return opinion.state if opinion is not None else ActivityState.UNKNOWN
