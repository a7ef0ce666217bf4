"""Collect everything that decides a message's next step: record, tmux, harness, people at the terminal, dialogs.

Some keys are reported by no hook. So where a harness's reports may be out of date, another source is asked. What a chat
is shown of reports besides answers is made here too, in the open transaction that takes the reports in.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import StoreBroken, TmuxMissing, TmuxSilent
from core.base.files import broken, is_file
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.model.activity import ASKING_STATES, Activity, ActivityState, Capability, Silence
from core.model.asking import MAIN
from core.model.delivering import RECORD_WINDOW, PaneState, Situation, Timing
from core.model.framing import provable
from core.model.gate import Decision, GateContext, HoldState, Observed, Wake, decide, hold_state, wake_of
from core.model.harness import StatusProbe, ToolEnded, ToolStarted
from core.model.live import StepState, turn_key
from core.model.message import DELIVERED, WAITING, InboxRow, Kind, MessageState
from core.model.observing import believed, by_other_word, observe, second_guess
from core.model.pane import Pane, Survey, interrupted_at
from core.model.posts import step_line
from core.model.session import Live, SessionRecord
from core.session.dialogs import SETTLED, SILENT_TURN, drop_marker, is_over, says_none_is_open, waiting_agents
from core.session.folder import ASKING, TOOL, context_of
from core.session.sessions import activity_of, has_thread, resolve_record, restart_due, traits_of
from core.session.system import System
from core.store.inbox import Inbox
from core.store.requests import RequestBook
from core.store.sessions import Activities

if TYPE_CHECKING:
    from core.store.outbox import Marks

Authorized = Callable[[InboxRow], bool | None]
_MASKABLE = frozenset({Observed.IDLE, Observed.BUSY, Observed.UNKNOWN, Observed.STARTING})
_GONE = frozenset({Observed.DEAD, Observed.LOST})
_ASKS = frozenset({Observed.PERMISSION, Observed.QUESTION, Observed.DIALOG})
_LIVE = frozenset({*_MASKABLE, *_ASKS})
_COARSE = timedelta(seconds=1)  #: a file system's clock and ours may differ by less
_RECENT_SECONDS = 6.0  #: the service looks at all panes every five
_SILENCE = timedelta(seconds=2)  #: after a silence tmux is not asked again for that long


def timing_of(settings: Settings) -> Timing:
    """Return how long things may take, as configured."""
    tmux, limits = settings.routing.tmux, settings.limits
    return Timing(
        command=timedelta(seconds=tmux.command_timeout_seconds),
        start=timedelta(seconds=tmux.start_timeout_seconds),
        expiry=timedelta(minutes=limits.message_expiry_minutes),
    )


def probe_of(
    settings: Settings, paths: StatePaths, harnesses: Harnesses, record: SessionRecord, pane_pid: int
) -> StatusProbe | None:
    """Ask the harness's second source what the record's live instance does. Raises UnsupportedHarness."""
    resolved = resolve_record(record, settings)
    context = context_of(paths, record, resolved, record.instance_id or "")
    return harnesses.get(resolved.harness).probe_status(context, pane_pid)


@dataclass(frozen=True)
class Sight:
    """What one look at a session showed."""

    observed: Observed
    survey: Survey | None  #: None: tmux did not answer
    asking: bool
    activity: Activity | None = None  #: what the harness told of itself
    between_turns: bool = False  #: busy with background tasks alone
    opinion: StatusProbe | None = None  #: what another source of the harness says
    remembered: bool = False  #: tmux was asked a moment ago, for another reason: what is written asks it again


class Looker:
    """Looks; changes nothing. Remembers a silence of tmux for a moment, so that one of fifty sessions pays for it."""

    def __init__(self, system: System, authorized: Authorized) -> None:
        self._system = system
        self._authorized = authorized
        self._timing = timing_of(system.settings)
        self._silent_until: datetime | None = None
        self._distrusted: dict[str, datetime] = {}  #: by instance: since when surveys have been belied

    def was_silent(self) -> None:
        """Take note that tmux did not answer."""
        self._silent_until = self._system.clock.now() + _SILENCE

    def distrust(self, record: SessionRecord) -> None:
        """Take note that the pane is not as it was seen: the next look is one."""
        self._distrusted[record.instance_id or ""] = self._system.clock.now()

    def see(self, name: str, record: SessionRecord | None, *, remembering: bool = False) -> Sight:
        """Look at a session once. `remembering`: the pane's latest look will do, if it is recent."""
        instance = record.instance_id if record else None
        recent = self._recent(instance) if remembering and instance else None
        survey = recent or self._survey()
        live = survey.live(target_for(name), instance) if survey else Live.UNKNOWN
        activity = self._system.activities.get(record.uid) if record else None
        opinion = self._opinion(record, survey) if record is not None and live is Live.LIVE else None
        if activity is not None and opinion is not None:
            activity = _by_now(activity, opinion, self._system.clock.now())
        observed = observe(record, live, activity)
        if activity is not None and activity.silence is not None and observed in (Observed.IDLE, Observed.UNKNOWN):
            observed = _unheard(activity, opinion, observed)
        asking = record is not None and live is Live.LIVE and self._may_ask(record, opinion)
        asking = asking or observed is Observed.DIALOG
        if asking and observed in _MASKABLE:
            observed = Observed.PERMISSION if record is not None and self._marked(record) else Observed.DIALOG
        between = observed is Observed.BUSY and activity is not None and activity.between_turns
        return Sight(observed, survey, asking, activity, between, opinion, remembered=recent is not None)

    def gate(
        self,
        wake: Wake,
        sight: Sight,
        name: str,
        record: SessionRecord | None,
        ahead: int = 0,
        *,
        kept: bool = False,
    ) -> Decision:
        """Ask the gate about a message. `kept`: it was taken in while the session ran.

        A notice waits for the running turn, not for the other background tasks: for it, their work is idleness.
        """
        context = GateContext(
            name=name,
            queues_input=record is not None and self._queues_input(record, sight),
            restart_due=record is not None
            and sight.observed in _GONE
            and restart_due(self._system.settings, self._system.exit_ledger, self._system.loops, record),
            ahead=ahead,
            kept=kept,
            shown=record is None or sight.observed not in _ASKS or self._is_shown(record),
        )
        observed = Observed.IDLE if wake is Wake.NOTICE and sight.between_turns else sight.observed
        return decide(wake, hold_state(record), observed, context)

    def _queues_input(self, record: SessionRecord, sight: Sight) -> bool:
        """Return whether it takes messages in a turn. While its hooks are silent no marker tells of a tool call."""
        silent = sight.activity is not None and sight.activity.silence is not None
        return traits_of(self._system.settings, self._system.harnesses, record).queues_input and not silent

    def situation(self, row: InboxRow, record: SessionRecord, sight: Sight, *, durable: bool) -> Situation:
        """Return how things stand for a row of the record's session. `durable`: see Situation."""
        pane, state = self._pane(row, record, sight.survey)
        activity = sight.activity
        traits = traits_of(self._system.settings, self._system.harnesses, record)
        return Situation(
            row=row,
            generation=record.generation,
            decision=self.gate(
                wake_of(row.message.kind),
                sight,
                record.name,
                record,
                kept=_was_taken_in(row),
            ),
            traits=traits,
            provable=provable(row.message, traits),
            timing=self._timing,
            pane=state,
            receipts=pane.receipts if pane else {},
            looked_at=sight.survey.at if sight.survey else None,
            durable=durable,
            asking=sight.asking,
            tool_at=self.tool_at(record.uid),
            typed_at=self._typed_at(record, sight.survey) if state is PaneState.ALIVE else None,
            turn_started_at=activity.turn_started_at if activity and activity.instance == record.instance_id else None,
            stash_back_at=self._stash_back_at(row, record) if traits.stash is not None else None,
            doubt_since=self._doubt_since(record, pane, activity),
            cut_off_at=self._cut_off_at(record, sight, activity),
            paused=hold_state(record) is HoldState.PAUSED,
            authorized=row.state not in WAITING or self._authorized(row),
        )

    def _is_shown(self, record: SessionRecord) -> bool:
        """Return whether something that the live instance asks stands in its thread."""
        opened = self._system.requests.open(record.uid)
        return any(one.instance == record.instance_id for one in opened) and has_thread(
            self._system.settings, self._system.bindings, record
        )

    def has_question(self, record: SessionRecord, sight: Sight) -> bool:
        """Return whether the session lives and waits for the answer to a question that a person may type."""
        if sight.observed not in _LIVE:
            return False
        opened = self._system.requests.open(record.uid)
        return any(one.answerable_by_typing and one.instance == record.instance_id for one in opened)

    def asking(self, record: SessionRecord, survey: Survey | None) -> bool:
        """Return whether a dialog may be open, by a look at this moment."""
        return self._may_ask(record, self._opinion(record, survey))

    def _may_ask(self, record: SessionRecord, opinion: StatusProbe | None) -> bool:
        """The reporter tells of a dialog before it shows; one that a person opened (`/model`) fires no hook."""
        return self._marked(record) or (opinion is not None and opinion.state in ASKING_STATES)

    def _marked(self, record: SessionRecord) -> bool:
        return is_file(self._system.paths.of_session(record.uid, ASKING))

    def _opinion(self, record: SessionRecord, survey: Survey | None) -> StatusProbe | None:
        pane = survey.of_instance(record.instance_id) if survey and record.instance_id else None
        return (
            probe_of(self._system.settings, self._system.paths, self._system.harnesses, record, pane.pid)
            if pane and not pane.dead
            else None
        )

    def tool_at(self, uid: str) -> datetime | None:
        """Return when the latest tool call began."""
        return modified(self._system.paths.of_session(uid, TOOL), self._system.clock.now())

    def _recent(self, instance: str) -> Survey | None:
        """Return a recent survey by which the pane lives, with nobody at it."""
        survey = self._system.runner.recent(_RECENT_SECONDS) if self._silent_until is None else None
        pane = survey.of_instance(instance) if survey else None
        if survey is None or pane is None or pane.dead or instance in survey.viewed or survey.typing.get(instance):
            return None
        belied = self._distrusted.get(instance)
        return survey if belied is None or survey.at > belied else None

    def _survey(self) -> Survey | None:
        if self._silent_until is not None and self._system.clock.now() < self._silent_until:
            return None
        try:
            survey = self._system.runner.survey()
        except (TmuxSilent, TmuxMissing):
            self.was_silent()
            return None
        self._silent_until = None
        return survey

    @staticmethod
    def _pane(row: InboxRow, record: SessionRecord, survey: Survey | None) -> tuple[Pane | None, PaneState]:
        instance = record.instance_id if row.state in WAITING or row.instance is None else row.instance
        if survey is None:
            return None, PaneState.SILENT
        pane = survey.of_instance(instance) if instance else None
        alive = pane is not None and not pane.dead and instance == record.instance_id
        return pane, PaneState.ALIVE if alive else PaneState.GONE

    def _cut_off_at(self, record: SessionRecord, sight: Sight, activity: Activity | None) -> datetime | None:
        """Return when a turn was found ended in the terminal: Escape fires no hook (Claude Code 2.1.197)."""
        if activity is None or activity.instance != record.instance_id:
            return None
        opinion, began = sight.opinion, activity.turn_started_at
        if opinion is not None and opinion.state is ActivityState.IDLE and sight.observed is Observed.BUSY:
            idle_since = opinion.written_at
            if idle_since is not None and began is not None and idle_since > began:
                return idle_since
        return activity.cut_off_at

    @staticmethod
    def _typed_at(record: SessionRecord, survey: Survey | None) -> datetime | None:
        """Return the latest key of a writable client."""
        clients = survey.typing.get(record.instance_id or "", ()) if survey else ()
        return max((client.last_key_at for client in clients), default=None)

    def _stash_back_at(self, row: InboxRow, record: SessionRecord) -> datetime | None:
        """Return when the Enter of the message before this one brought back what a person had half typed."""
        if row.state not in WAITING:
            return None
        before = self._system.inbox.with_states(record.uid, DELIVERED, 1)
        return next((it.submitted_at for it in before if it.instance == record.instance_id and it.stashed), None)

    def _doubt_since(self, record: SessionRecord, pane: Pane | None, activity: Activity | None) -> datetime | None:
        """Return since when the input line may hold a text that no turn took.

        One of ours that became unknown, that of a turn which we cut off, or one that a hook refused or that came back
        out of the harness's own queue.
        """
        unknown = self._system.inbox.with_states(record.uid, {MessageState.UNKNOWN}, 1)
        since = [row.updated_at for row in unknown if row.instance == record.instance_id]
        cut_off = interrupted_at(pane.receipts) if pane else None
        left = activity.composer_at if activity and activity.instance == record.instance_id else None
        return max([*since, *(at for at in (cut_off, left) if at is not None)], default=None)


def _by_now(activity: Activity, opinion: StatusProbe, now: datetime) -> Activity:
    """Return what a session does by its hooks and its second source, asked at this moment: see `settle_end`."""
    if activity.silence is not None:
        return activity
    if activity.ending:
        return believed(activity, now) if opinion.turn_over else activity
    if activity.at_work or activity.lingers or (activity.state is ActivityState.IDLE and _says_more(activity, opinion)):
        return by_other_word(activity, opinion, now)
    return activity


def _says_more(activity: Activity, opinion: StatusProbe) -> bool:
    """Return whether the second source has spoken since the session is idle by its hooks' word."""
    return opinion.written_at is not None and opinion.written_at > activity.since


def _unheard(activity: Activity, opinion: StatusProbe | None, observed: Observed) -> Observed:
    """Return what is observed of a session whose hooks are silent, by its second source at this moment."""
    if activity.silence is Silence.UNTOLD:
        return Observed.STARTING
    return Observed.BUSY if opinion is not None and opinion.state is ActivityState.BUSY else observed


def modified(path: Path, now: datetime) -> datetime | None:
    """Return when the file was last written, at most a second after `now`; None if it is not there. Raises StoreBroken.

    A file from the future (the clock was set back) is stamped anew with this moment: whatever waits for a time since
    then, in whichever process, waits for that time and no longer.
    """
    try:
        at = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
        if at <= now + _COARSE:
            return at
        os.utime(path, (now.timestamp(), now.timestamp()))
    except FileNotFoundError:
        return None
    except (OverflowError, ValueError) as error:
        raise StoreBroken(f"{path} has an impossible time stamp: {error}", f"`touch {path}`") from error
    except OSError as error:
        raise broken(error, path, "look at the file") from error
    return now


def _was_taken_in(row: InboxRow) -> bool:
    """Return whether the row was taken in while the session ran; a say to one that does not is refused at once."""
    return row.state is MessageState.QUEUED or row.attempt > 0 or row.message.kind is Kind.SAY


_BEFORE = timedelta(seconds=5)  #: between a hook's time stamp and what we note of its turn


def turn_over(
    marks: Marks, activities: Activities, record: SessionRecord, until: datetime, *, failed: bool
) -> tuple[str, ...]:
    """Note that the messages which the turn took are done that ended then, and return their ids.

    Called before the activity follows.
    """
    activity = activity_of(activities, record)
    if activity is None or activity.turn_started_at is None:
        return ()
    since = activity.turn_started_at - _BEFORE
    return marks.over(record.uid, activity.instance, since, until, failed=failed)


def running_turn(activities: Activities, record: SessionRecord) -> str:
    """Return by what the turn is known that runs, or ran last; "" where none has begun."""
    activity = activities.get(record.uid)
    if activity is None or activity.turn_started_at is None or record.instance_id is None:
        return ""
    return turn_key(record.instance_id, activity.turn_started_at)


def note_step(system: System, record: SessionRecord, event: ToolStarted | ToolEnded) -> None:
    """Add the tool to the steps of the running turn, or note how it ended."""
    turn = running_turn(system.activities, record)
    if turn and isinstance(event, ToolStarted):
        system.progress.note(record.uid, turn, step_line(event.tool, event.detail))
        system.lives.begin_step(record.uid, turn, event.call, event.tool, event.detail)
    elif turn and isinstance(event, ToolEnded):
        state = StepState.FAILED if event.failed else StepState.DONE
        system.lives.end_step(record.uid, turn, event.call, event.tool, state)


def shows_end(system: System, record: SessionRecord, opinion: StatusProbe | None, since: datetime | None) -> bool:
    """Return whether no other source belies that the turn is over whose end hooks told of at `since`.

    The second source is faster, and the conversation's record knows turns from background agents. Where the harness has
    no second source hooks alone are believed. Raises StoreBroken, UnsupportedHarness.
    """
    if opinion is None or opinion.turn_over:
        return True
    if since is None or system.clock.now() - since < SETTLED:
        return False
    resolved = resolve_record(record, system.settings)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    return system.harnesses.get(resolved.harness).end_recorded(context, since)


def settle_end(system: System, record: SessionRecord, pane: Pane | None) -> bool:
    """Believe the end of a turn that hooks told of, once another source shows it; tell whether that is so by now.

    An operator's own Stop hook can let the turn go on after ours has told of its end. Raises StoreBroken,
    UnsupportedHarness.
    """
    known = activity_of(system.activities, record)
    if known is None or not known.ending:
        return False
    opinion = (
        probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
        if pane is not None and not pane.dead
        else None
    )
    if not shows_end(system, record, opinion, known.turn_ended_at):
        return False
    with system.database.transaction(durable=False):
        if system.activities.get(record.uid) != known:
            return False
        believe_end(system, record, known)
    return True


def believe_end(system: System, record: SessionRecord, known: Activity) -> Activity:
    """Let the turn be over whose end hooks told of, with all that follows. Part of the open transaction."""
    from core.loops.outcomes import turn_ended

    ended_at = known.turn_ended_at or system.clock.now()
    turn_over(system.marks, system.activities, record, ended_at, failed=False)
    turn_ended(system, record, None, ended_at)
    after = believed(known, system.clock.now(), queue_left=holds_queued(system.inbox, record))
    system.activities.put(after)
    return after


def holds_queued(inbox: Inbox, record: SessionRecord) -> bool:
    """Return whether the live instance's own queue is known to hold a message of ours."""
    accepted = inbox.with_states(record.uid, {MessageState.ACCEPTED})
    return any(row.instance == record.instance_id and row.queued_at is not None for row in accepted)


def _ask_idle(system: System, record: SessionRecord, pane: Pane, known: Activity, now: datetime) -> bool:
    """Ask whether a session works that is idle by its hooks' word: none tells of `/compact`, or of a blocked end."""
    opinion = probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
    if opinion is None or opinion.written_at is None or now - opinion.written_at < SETTLED:
        return False
    if known.state is ActivityState.IDLE and not _says_more(known, opinion):
        return False
    return replace_activity(system, record, known, by_other_word(known, opinion, now))


_AT_WORK = ASKING_STATES | {ActivityState.BUSY}
_ROUNDED = timedelta(milliseconds=1)  #: a file's time is finer than ours


def ask_again(system: System, record: SessionRecord, pane: Pane | None) -> bool:
    """Ask about a dialog that is open and a turn that was silent for long, and tell whether anything changed by it.

    Raises StoreBroken, UnsupportedHarness.
    """
    if pane is None or pane.dead:
        return False
    known, now = activity_of(system.activities, record), system.clock.now()
    heard = known is not None and known.silence is None  # else another source is asked all the time
    silent = known is not None and heard and known.state in _AT_WORK and _silent_for(known, now) >= _patience(known)
    told = known is not None and heard and known.state in ASKING_STATES
    if known is not None and known.state is ActivityState.DIALOG:
        return False  # its screen tells when it is over
    if known is not None and known.ending:
        return settle_end(system, record, pane)
    marker = system.paths.session(record.uid) / ASKING
    marked_at = modified(marker, now)
    rests = known is not None and (known.state is ActivityState.IDLE or known.at_work or known.lingers)
    if marked_at is None and known is not None and heard and rests:
        return _ask_idle(system, record, pane, known, now)
    if not silent and marked_at is None and not told:
        return False
    opinion = probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
    if marked_at is None:  # what told of a dialog came late: the marker, which comes first, has gone since
        over = told and known is not None and says_none_is_open(opinion) and _silent_for(known, now) >= SETTLED
    else:
        over = not _background_asks(system.requests, record) and is_over(
            opinion, marked_at, waiting_agents(marker), now
        )
    if over and marked_at is not None:
        drop_marker(marker, marked_at + _ROUNDED)
    if known is not None and (silent or (over and told)):
        return replace_activity(system, record, known, second_guess(known, opinion, now)) or over
    return over


def ask_now(system: System, record: SessionRecord, pane: Pane | None) -> None:
    """Ask the second source about a turn that runs by hooks' word: no hook tells of an Escape.

    For whoever looks where no service does. A word that is older than the hooks' says nothing. Raises StoreBroken,
    UnsupportedHarness.
    """
    if pane is None or pane.dead or ask_again(system, record, pane):
        return
    known, now = activity_of(system.activities, record), system.clock.now()
    if known is None or not known.in_turn or known.ending or known.silence is not None:
        return
    opinion = probe_of(system.settings, system.paths, system.harnesses, record, pane.pid)
    if opinion is None or not opinion.turn_over or opinion.written_at is None:
        return
    heard = max(known.since, known.last_report_at or known.since, known.turn_started_at or known.since)
    if heard < opinion.written_at <= now - SETTLED:
        replace_activity(system, record, known, second_guess(known, opinion, now))


def look_at_record(system: System, record: SessionRecord) -> None:
    """Note whether the conversation's record is where it is looked for, in the form that is read, once a turn is over.

    Raises StoreBroken, UnsupportedHarness, TrustFailed.
    """
    activity, now = activity_of(system.activities, record), system.clock.now()
    if activity is None or Capability.TRANSCRIPT in activity.shown:
        return
    if activity.turn_ended_at is None or now < activity.turn_ended_at + RECORD_WINDOW:
        return
    resolved = resolve_record(record, system.settings)
    harness = system.harnesses.get(resolved.harness)
    if harness.traits.evidence:
        context = context_of(system.paths, record, resolved, record.instance_id or "")
        shown = {**activity.shown, Capability.TRANSCRIPT: harness.resumable(context)}
        replace_activity(system, record, activity, replace(activity, shown=shown))


def _patience(activity: Activity) -> timedelta:
    """Return for how long a harness at work may tell nothing: no hook tells of a turn that its own queue began."""
    return SETTLED if activity.queue_left else SILENT_TURN


def _silent_for(activity: Activity, now: datetime) -> timedelta:
    """Return for how long the harness has told nothing."""
    return now - max(activity.since, activity.last_report_at or activity.since)


def _background_asks(requests: RequestBook, record: SessionRecord) -> bool:
    """Return whether a background agent's hook waits for an answer: its dialog shows once that has given up."""
    opened = requests.open(record.uid)
    return any(request.instance == record.instance_id and request.agent != MAIN for request in opened)


def replace_activity(system: System, record: SessionRecord, before: Activity, after: Activity) -> bool:
    """Store the activity, unless nothing changes or a report has told more meanwhile.

    With it that a turn which was cut off is over, before another one can begin.
    """
    if after == before:
        return False
    with system.database.transaction(durable=False):
        if system.activities.get(before.uid) != before:
            return False
        if after.cut_off_at is not None:
            turn_over(system.marks, system.activities, record, after.cut_off_at, failed=True)
        system.activities.put(after)
    return True
