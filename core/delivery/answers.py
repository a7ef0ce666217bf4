"""The answer to a message: where it can be read, and waiting for it.

A turn's answer stands in the harness's own record of the conversation, which also tells with which texts the turn
began. A text that was slipped into a running turn began none: its answer is that of the turn which was running then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from core.base.clock import Deadline
from core.base.errors import InvalidValue, RecordUnreadable, StoreBroken, TmuxMissing, TmuxSilent
from core.base.values import dataclass
from core.config.chats import title_of
from core.delivery.deliverer import Deliverer
from core.delivery.hook_ingest import ingest_record, without_secrets
from core.delivery.saying import MOST_SECONDS, Said, is_served
from core.model.framing import takes
from core.model.harness import TurnRecord, TurnSeen
from core.model.message import EXIT_ZERO, InboxRow, MessageState
from core.model.reasons import Because, Reason, because, code_of, text_of
from core.model.session import SessionRecord
from core.session.commands import exact_for
from core.session.folder import context_of
from core.session.sessions import activity_of, resolve_record
from core.session.system import System

_POLL_SECONDS = 0.2
_PANE_SECONDS = 2.0  #: between two looks whether the program still runs
_EARLIER = timedelta(seconds=5)  #: a record's times may be of another clock
_NEVER = frozenset(
    {MessageState.REFUSED, MessageState.EXPIRED, MessageState.CANCELLED, MessageState.FAILED, MessageState.UNKNOWN}
)


class Came(Enum):
    """What came of waiting for an answer."""

    ANSWERED = "answered"
    FAILED = "failed"  #: the turn failed, or was cut off
    NOT_YET = "not-yet"  #: the time was over
    NEVER = "never"  #: no turn will answer it
    UNKNOWN = "unknown"  #: nobody can tell


@dataclass(frozen=True)
class Awaited:
    """What came of waiting for the answer to a message; `text` is the answer, "" where there is none."""

    came: Came
    text: str = ""
    why: Because | None = None

    @property
    def ok(self) -> bool:
        """Return whether the answer is there."""
        return self.came is Came.ANSWERED

    def to_json(self) -> dict[str, Any]:
        """Return `{answer, answerState, answerReason}`; the answer is null where there is none."""
        return {
            "answer": self.text if self.ok else None,
            "answerState": self.came.value,
            "answerReason": code_of(self.why),
        }


def told_where(system: System, said: Said) -> str:
    """Return where the answer to a message can be read, as a sentence; "" where none can come."""
    row = system.inbox.get(said.message_id) if said.state in EXIT_ZERO else None
    if row is None:
        return ""
    bound = system.bindings.of_session(row.message.uid)
    if bound is None or not system.settings.channel(bound.channel_kind).enabled:
        why = because(Reason.ANSWER_ON_SCREEN, name=said.name)
    elif bound.link:
        why = because(Reason.ANSWER_AT, chat=title_of(bound.channel_kind), link=bound.link)
    else:
        why = because(Reason.ANSWER_IN_THREAD, chat=title_of(bound.channel_kind), channel=bound.channel)
    return exact_for(system.settings, system.environ, why.text)


def await_answer(system: System, said: Said, seconds: float) -> Awaited:
    """Wait until the turn that takes the message is over, `seconds` at most, and return its answer.

    Without a service the message is delivered here meanwhile. Raises InvalidValue, RecordUnreadable, StoreBroken.
    """
    if not 0 <= seconds <= MOST_SECONDS:  # which no NaN is
        raise InvalidValue(f"cannot wait {seconds} seconds", f"give 0 to {MOST_SECONDS}")
    return _Wait(system, said, seconds).run()


class _Wait:
    """Waits for one answer."""

    def __init__(self, system: System, said: Said, seconds: float) -> None:
        self._system = system
        self._id = said.message_id
        self._seconds = seconds
        self._deadline = Deadline(system.clock, seconds)
        self._pane_due = Deadline(system.clock, _PANE_SECONDS)
        self._deliverer = Deliverer(system)
        self._opened: tuple[str | None, TurnRecord] | None = None  #: the conversation's id, and its record
        self._turns: dict[Any, TurnSeen] = {}  #: by when they began

    def run(self) -> Awaited:
        """Look until there is an answer, none can come, or the time is over."""
        while True:
            row = self._system.inbox.get(self._id)
            if row is None:
                return Awaited(Came.UNKNOWN, why=Because(Reason.MESSAGE_GONE))
            record = self._system.records.read(row.message.name)
            if record is None or record.uid != row.message.uid:
                return Awaited(Came.NEVER, why=Because(Reason.DELETED))
            over = self._looked(record, row)
            if over is not None:
                return over
            if self._deadline.passed():
                return Awaited(Came.NOT_YET, why=self._why_not_yet(record, row))
            if row.state not in (MessageState.CONFIRMED, *_NEVER) and not is_served(self._system.paths):
                self._deliverer.advance(row.message.uid)
            self._system.clock.pause(min(_POLL_SECONDS, self._deadline.remaining()))

    def _looked(self, record: SessionRecord, row: InboxRow) -> Awaited | None:
        """Return what came of it by now, None where that is open."""
        resolved = resolve_record(record, self._system.settings)
        if not self._system.harnesses.get(resolved.harness).traits.evidence:
            return Awaited(Came.UNKNOWN, why=because(Reason.ANSWERS_UNRECORDED, harness=resolved.harness))
        gone = self._is_gone(record, row)  # asked first: what it wrote before its end is read after that
        turn = self._turn_of(record, row)
        if turn is not None and (turn.over_at is not None or self._was_cut_off(record, turn)):
            return self._answered(turn)
        if row.state in _NEVER:
            unknown = row.state is MessageState.UNKNOWN
            return Awaited(Came.UNKNOWN if unknown else Came.NEVER, why=row.because)
        return Awaited(Came.NEVER, why=Because(Reason.ENDED_UNANSWERED)) if gone else None

    def _was_cut_off(self, record: SessionRecord, turn: TurnSeen) -> bool:
        """Return whether the turn was interrupted before it said anything, of which its record holds no word."""
        activity = activity_of(self._system.activities, record)
        at = activity.cut_off_at if activity is not None else None
        return not turn.answered and at is not None and at >= turn.began_at

    def _answered(self, turn: TurnSeen) -> Awaited:
        if turn.failed is not None:
            words = without_secrets(self._system.settings, self._system.environ, turn.failed.message)
            return Awaited(Came.FAILED, why=because(Reason.SAID, words=words or turn.failed.error))
        if turn.cut_off or turn.over_at is None:
            return Awaited(Came.FAILED, why=Because(Reason.CUT_OFF))
        return Awaited(Came.ANSWERED, without_secrets(self._system.settings, self._system.environ, turn.answer))

    def _turn_of(self, record: SessionRecord, row: InboxRow) -> TurnSeen | None:
        """Return the turn that has the message, as far as the record shows it. Raises StoreBroken."""
        if self._opened is None or self._opened[0] != record.conversation:
            opened = self._open(record, row)
            if opened is None:
                return None
            self._opened = (record.conversation, opened)
        for turn in self._opened[1].new_turns():
            self._turns[turn.began_at] = turn
        seen = [self._turns[at] for at in sorted(self._turns)]
        for turn in seen:
            if any(takes(prompt, row.message) for prompt in turn.prompts):
                return turn
        return self._joined(seen, row) if row.state is MessageState.CONFIRMED else None

    @staticmethod
    def _joined(seen: Sequence[TurnSeen], row: InboxRow) -> TurnSeen | None:
        """Return the turn into which the message was slipped: the first one that was not over when it was typed."""
        typed = row.submitted_at or row.message.created_at
        running = (turn for turn in seen if turn.began_at <= row.updated_at and not turn.internal)
        return next((turn for turn in running if turn.over_at is None or turn.over_at >= typed), None)

    def _open(self, record: SessionRecord, row: InboxRow) -> TurnRecord | None:
        resolved = resolve_record(record, self._system.settings)
        context = context_of(self._system.paths, record, resolved, record.instance_id or "")
        activity = activity_of(self._system.activities, record)
        since = row.message.created_at
        if activity is not None and activity.turn_started_at is not None:
            since = min(since, activity.turn_started_at)
        return self._system.harnesses.get(resolved.harness).turns(context, since - _EARLIER)

    def _is_gone(self, record: SessionRecord, row: InboxRow) -> bool:
        """Return whether the program that got the message has ended; while tmux is silent nobody knows that it has."""
        if row.instance is None or not self._pane_due.passed():
            return False
        self._pane_due = Deadline(self._system.clock, _PANE_SECONDS)
        if record.instance_id != row.instance:
            return row.state is MessageState.CONFIRMED
        try:
            pane = self._system.runner.survey().of_instance(row.instance)
        except (TmuxSilent, TmuxMissing):
            return False
        return pane is None or pane.dead

    def _why_not_yet(self, record: SessionRecord, row: InboxRow) -> Because:
        try:
            ingest_record(self._system, record)
            activity = activity_of(self._system.activities, record)
        except (StoreBroken, RecordUnreadable):
            activity = None
        seconds = round(self._seconds)
        if row.state is not MessageState.CONFIRMED:
            why = row.because or Because(Reason.NOT_SHOWN_YET)
        else:
            why = Because(Reason(activity.state.value)) if activity is not None else Because(Reason.UNKNOWN)
        return because(Reason.NO_ANSWER_WITHIN, seconds=seconds, why=why)


def told_why(system: System, name: str, awaited: Awaited) -> str:
    """Return why there is no answer, as a sentence whose commands can be typed; "" where there is one."""
    if awaited.ok:
        return ""
    words = f"{name}: no answer ({awaited.came.value}): {text_of(awaited.why) or 'the reason is not known'}"
    return exact_for(system.settings, system.environ, words)
