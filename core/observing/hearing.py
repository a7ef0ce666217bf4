"""Checks that sessions' hooks report, and asks other sources in their place while they do not.

The conversation's own record tells of turns: when one began, what was answered, that it is over or has failed. A turn
whose end it shows and no hook has told is taken from there, once: the hook's word and the record's have one key. The
harness's second source tells that it reads, works or asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from core.domain.activity import ASKING_STATES, Activity, ActivityState, Silence
from core.domain.capability import Capability
from core.domain.harness import HarnessEvent, Opinion, PromptReported, Report, TurnEnded, TurnSeen
from core.domain.observing import second_guess
from core.domain.pane import Pane
from core.domain.reasons import Because, Reason
from core.domain.session import Phase, SessionRecord
from core.errors import NotRunning, TmuxSilent
from core.observing.observer import follow_conversation, ingest_record, take_told
from core.observing.silence import mark_silent
from core.ports import TurnRecord
from core.session.place import context_of
from core.session.sessions import activity_of, resolve_record
from core.sight.lookagain import replace_activity
from core.sight.screens import Form, look
from core.sight.showing import turn_over
from core.sight.situations import opinion_of, traits_of
from core.system import System
from core.values import replace

GRACE = timedelta(seconds=3)  #: from the record of a turn's end to its hook's report, which comes before it as a rule
BOOT = timedelta(seconds=10)  #: from the first word of another source to the boot hook: 0.3 s, a busy machine more
_KNOWN = timedelta(seconds=1)  #: the same where its settings switch hooks off
_EARLIER = timedelta(seconds=5)  #: may a turn stand in the record before its beginning was told
_SETTLED = timedelta(seconds=2)  #: from the second source's word that a turn is over to the end of it in the record


@dataclass
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
        system, traits = self._system, traits_of(self._system, record)
        if pane is None or pane.dead or not traits.evidence or not traits.boot_signal:
            return False
        before = activity_of(system, record)
        if before is None:
            return False
        starts = before.state is ActivityState.STARTING
        asked = starts or before.silence is not None
        opinion = opinion_of(system, record, pane.pid) if asked else None  # before the record, which is written first
        if before.silence is not None and opinion is not None and opinion.session_id not in ("", record.conversation):
            follow_conversation(system, record, opinion.session_id)
            return True  # what it holds is read at the next look
        turns = self._new_turns(record, before)
        if starts or before.silence is Silence.UNTOLD:
            notice_start(system, record, opinion, has_turn=bool(turns))
        for turn in turns:
            self._take(record, turn)
        after = activity_of(system, record)
        if after is not None and after.silence is not None:
            _ask_elsewhere(system, record, after, opinion, recorded=bool(self._followed[record.uid].open))
        return activity_of(system, record) != before

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
        activity = activity_of(system, record)
        if activity is None:
            return
        silent = activity.silence is not None
        if turn.over_at is None:
            if silent:
                take_told(system, record, [*_beginning(record, turn)])
            return
        if not silent and turn.over_at <= now < turn.over_at + GRACE:  # else it is by another clock
            return
        if not silent:
            ingest_record(system, record)
        self._followed[record.uid].open.pop(turn.began_at, None)
        if turn.cut_off:
            return
        with system.database.transaction(durable=False):
            if self._claimed(record, turn):
                if not silent:
                    mark_silent(system, record, Silence.TURNS, turn.hook_trouble)
                take_told(system, record, [*_beginning(record, turn), _end(record, turn)])
                _lacks_turn_edges(system, record)
        system.poke()

    def _claimed(self, record: SessionRecord, turn: TurnSeen) -> bool:
        """Return whether the turn's end was told by nobody, and is ours to tell. Part of the open transaction."""
        system, instance = self._system, record.instance_id or ""
        activity = activity_of(system, record)
        named = [name for name in turn.turns if name]
        if not named:
            ended = activity.turn_ended_at if activity is not None else None
            return ended is None or ended < turn.began_at
        return all(system.database.end_told(instance, name, turn.over_at or turn.began_at) for name in named)


def notice_start(system: System, record: SessionRecord, opinion: Opinion | None, *, has_turn: bool = False) -> None:
    """See that a program runs whose boot hook does not come, or that nothing shows it within the start's time.

    `opinion`: what its second source says; `has_turn`: its conversation's record holds a turn of this instance.
    Raises StoreBroken.
    """
    activity, now = activity_of(system, record), system.clock.now()
    if activity is None or (activity.state is not ActivityState.STARTING and activity.silence is not Silence.UNTOLD):
        return
    if activity.waits_at_start or (opinion is not None and opinion.state in ASKING_STATES):
        return  # it reads no message before somebody has answered
    shown_at = opinion.written_at if opinion is not None else None
    if shown_at is not None and now - shown_at >= _KNOWN and now - shown_at >= _patience(system, record):
        _guess_start(system, record, opinion)
    elif has_turn and now - activity.since >= BOOT:
        _guess_start(system, record, None)
    elif activity.silence is None and record.phase is Phase.SETTLED and not has_turn and shown_at is None:
        late = timedelta(seconds=system.settings.routing.tmux.start_timeout_seconds)
        if now - activity.since >= late:
            _guess_start(system, record, None, has_turn=False)


def _patience(system: System, record: SessionRecord) -> timedelta:
    """Return for how long the boot hook is waited for once another source shows that the program runs."""
    resolved = resolve_record(record, system.settings)
    known = system.harnesses.get(resolved.harness).silence_ahead(resolved.cwd, resolved.args)
    return _KNOWN if known else BOOT


def _guess_start(system: System, record: SessionRecord, opinion: Opinion | None, *, has_turn: bool = True) -> None:
    """Take it as read by another source's word: it is guessed, for its hooks said nothing.

    Where neither a second source nor a turn tells, its screen may show the line in which a message is written; what it
    does then is unknown. Where that does not tell either, nothing is typed into it.
    """
    ingest_record(system, record)
    before, now = activity_of(system, record), system.clock.now()
    if before is None or (before.state is not ActivityState.STARTING and before.silence is not Silence.UNTOLD):
        return  # they did
    state = ActivityState.BUSY if has_turn else ActivityState.UNKNOWN
    shown = opinion is not None or has_turn or _shows_input_line(system, record)
    mark_silent(system, record, Silence.START if shown else Silence.UNTOLD)
    marked = activity_of(system, record)
    if marked is not None:
        state = opinion.state if opinion is not None else state
        system.activities.put(replace(marked, state=state, since=now, because=None, remarks=()))


def _shows_input_line(system: System, record: SessionRecord) -> bool:
    try:
        return look(system, record).form is Form.INPUT
    except (NotRunning, TmuxSilent):
        return False


def _beginning(record: SessionRecord, turn: TurnSeen) -> Iterator[tuple[Report, tuple[HarnessEvent, ...]]]:
    """Yield the turn's beginning as hooks would have reported it, one for each text that it took."""
    for number, text in enumerate(turn.prompts):
        name = f"{_stamp(turn.began_at)}-record-begin-{number}"
        event = PromptReported(text, turn.internal, turn=turn.turn)
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
    activity = activity_of(system, record)
    if activity is not None and activity.shown.get(Capability.TURN_EDGES) is not False:
        shown = {**activity.shown, Capability.TURN_EDGES: False}
        replace_activity(system, record, activity, replace(activity, shown=shown))


# ---------------------------------------------------------------- the second source


def _ask_elsewhere(
    system: System, record: SessionRecord, activity: Activity, opinion: Opinion | None, *, recorded: bool
) -> None:
    """Let the second source tell what a session does whose hooks are silent. `recorded`: its record has the turn."""
    if opinion is None or activity.silence is Silence.UNTOLD:
        return
    after = _by_second_source(activity, opinion, system.clock.now(), recorded=recorded)
    if after.reason is Reason.END_UNKNOWN and activity.in_turn:
        with system.database.transaction(durable=False):
            if replace_activity(system, record, activity, after):
                turn_over(system, record, after.since, failed=False)
    else:
        replace_activity(system, record, activity, after)


def _by_second_source(activity: Activity, opinion: Opinion, now: datetime, *, recorded: bool) -> Activity:
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
        begun = replace(activity, because=None, remarks=(), turn="", turn_started_at=opinion.written_at or now)
        return second_guess(begun, opinion, now)
    if activity.in_turn:
        told_at, began = opinion.written_at or now, activity.turn_started_at
        if now - told_at < _SETTLED or (began is not None and told_at < began):
            return activity
        after = second_guess(activity, opinion, now)
        told = recorded or after.state is not ActivityState.IDLE
        return after if told else replace(after, because=Because(Reason.END_UNKNOWN))
    return activity if activity.between_turns is opinion.between_turns else second_guess(activity, opinion, now)
