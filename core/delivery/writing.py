"""Write into panes what was decided. No other code pastes.

All of it happens under the session's lock. Each change is an effect of its own, and tmux itself enforces a deadline on
everything that is begun.

An Enter is held back until the screen shows that the program has read the text before it. A busy program may read a
paste and its Enter together and take the Enter for a line break (Claude Code). It may also read two Enters together;
the second would then answer what the first has opened. `line_limit` is how much a program's terminal takes in one line.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from core.base.clock import Clock
from core.base.errors import CoreError, InvalidValue, NotRunning, Refused, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.files import write_private
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.delivery.evidence import Transcripts
from core.delivery.recording import Recorder
from core.delivery.snapshot import Looker, Sight
from core.model import delivering
from core.model.delivering import ECHO_UNREAD, ECHO_WITHIN, Attempt, Clear, Settle, Situation, Stash, submit_token
from core.model.framing import (
    SUBMIT,
    at_terminal,
    compose,
    file_of,
    framed,
    holds_one,
    input_line,
    pointer_to,
    shows_text,
    stands_beside,
)
from core.model.harness import Traits
from core.model.message import InboxRow, MessageState
from core.model.pane import Paste, Receipt, Written
from core.model.reasons import Because, Reason, Remedy, said
from core.model.session import Phase, SessionRecord
from core.model.texts import text
from core.session.folder import clear_hold_file, has_hold_file
from core.session.notes import line_emptied
from core.session.sessions import activity_of
from core.session.system import System
from core.tmux.runner import Runner

_ROWS = 60  #: the last of a screen, in which its input line stands


class Echoes:
    """What input lines show of the messages that are entered in them. Belongs to one thread."""

    def __init__(self, paths: StatePaths, clock: Clock, runner: Runner) -> None:
        self._paths = paths
        self._clock = clock
        self._runner = runner
        self._entered: dict[str, tuple[str, str]] = {}  #: by session: an attempt, and its line at the first Enter

    def screen(self, situation: Situation, record: SessionRecord) -> str:
        """Return what is shown, "" where nobody knows how the harness shows its input line. Raises TmuxSilent."""
        if situation.traits.echo is None:
            return ""
        try:
            return self._runner.screen(record.instance_id or "", _ROWS)
        except NotRunning:
            return ""  # what writes will be told

    def hold_up(self, situation: Situation, record: SessionRecord, screen: str, number: int) -> bool:
        """Return whether the Enter of that number has to wait a moment.

        The first until the text is shown. The second while it is shown no more, since a turn may have it, and while
        nothing has changed since the first, which is not read yet then. None for ever: the harness's records tell what
        becomes of a text.
        """
        row, echo, now = situation.row, situation.traits.echo, self._clock.now()
        since = row.pasted_at if number == 1 else row.submitted_at
        if echo is None or not screen or since is None or now >= since + ECHO_WITHIN:
            return False
        line, shown = input_line(screen, echo), self.shows(situation, record, screen)
        if number == 1:
            if shown:
                self._entered[record.uid] = (row.token, line)
            return not shown
        unchanged = self._entered.get(record.uid) == (row.token, line)
        return not shown or (unchanged and now < since + ECHO_UNREAD)

    def shows(self, situation: Situation, record: SessionRecord, screen: str) -> bool:
        """Return whether a screen shows the end of the row's text; False where nobody knows how its harness would."""
        row, echo = situation.row, situation.traits.echo
        file = file_of(row.message.id, self._paths.session(record.uid))
        texts = (framed(row.message), pointer_to(row.message, file))
        return echo is not None and any(shows_text(screen, text, echo) for text in texts)


CANONICAL_BYTES = (
    1023 if sys.platform == "darwin" else 4095
)  #: of a line; the kernel drops what follows, without a word


def line_limit(tty: str) -> int | None:
    """Return how many bytes of a line the terminal keeps for its program; None where the program reads each key itself.

    A program without a line editor leaves its terminal in canonical mode (termios(3)). Of a terminal that cannot be
    asked no more is relied upon.
    """
    import termios  # here, since most harnesses are never asked

    try:
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return CANONICAL_BYTES
    try:
        local_modes = termios.tcgetattr(descriptor)[3]
    except termios.error:
        return CANONICAL_BYTES
    finally:
        os.close(descriptor)
    return CANONICAL_BYTES if local_modes & termios.ICANON else None


LOOK = timedelta(seconds=5)  #: how long a change that nobody told of may go unseen
_MOST_ATTEMPTS = 6  #: of a message that stands beside another one each time, those included that emptied the line
_MAY_STAND = 5  #: messages whose text may stand in an input line that is emptied


@dataclass(frozen=True)
class Plan:
    """An attempt that was decided under the session's lock, which is held until it is over."""

    record: SessionRecord
    situation: Situation
    sight: Sight
    attempt: Attempt
    data: bytes  #: what is pasted


class Writer:
    """Pastes messages, prepares the input line for them, and enters them."""

    def __init__(self, system: System, looker: Looker, transcripts: Transcripts, recorder: Recorder) -> None:
        self._system = system
        self._looker = looker
        self._transcripts = transcripts
        self._recorder = recorder
        self._echoes = Echoes(system.paths, system.clock, system.runner)
        self._not_before: dict[str, datetime] = {}  #: by row: a CR whose line may still run in a silent server

    def not_before(self, row: InboxRow) -> datetime | None:
        """Return until when a CR that was written for the row may still arrive."""
        return self._not_before.get(row.message.id)

    def over(self, row: InboxRow) -> None:
        """Nothing more is written for the row."""
        self._not_before.pop(row.message.id, None)

    # ------------------------------------------------------------ pasting

    def plan(self, situation: Situation, record: SessionRecord, sight: Sight, attempt: Attempt) -> Plan | None:
        """Make ready what an attempt needs; None where there is nothing to paste, and the row is settled.

        Raises StoreBroken.
        """
        row = situation.row
        self._drop_stale_hold(record)
        try:
            pane = sight.survey.of_instance(record.instance_id or "") if sight.survey else None
            limit = line_limit(pane.tty) if pane and not situation.traits.evidence else None
            traits = at_terminal(situation.traits, limit, pane.brackets if pane else None)
            composed = compose(row.message, traits, self._system.paths.session(record.uid))
        except InvalidValue as error:
            self._recorder.settle(row, Settle(MessageState.FAILED, said(error.message), error.remedy, note=True))
            return None
        if composed.file is not None:
            write_private(composed.file, composed.content.encode())
        self._transcripts.open(record)
        return Plan(record, situation, sight, attempt, composed.data)

    def attempt(self, plans: Sequence[Plan]) -> tuple[datetime, ...]:
        """Claim and paste a message of each of several sessions, and return when each is due again.

        One transaction, one exchange with tmux, one transaction: what a process leaves behind that dies in between is
        the same for each as if it had been alone. Raises StoreBroken.
        """
        with failpoint(Failpoint.DELIVERY_CLAIM), self._system.database.transaction(durable=False):
            claimed = [self._claimed(plan) for plan in plans]
        begun = [(plan, row, self._paste(plan, row)) for plan, row in zip(plans, claimed, strict=True) if row]
        outcomes = self._written([paste for _, _, paste in begun])
        due = self._recorded([(*one, outcome) for one, outcome in zip(begun, outcomes, strict=True)])
        now = self._system.clock.now()
        return tuple(due.get(plan.record.uid, now) for plan in plans)

    def _claimed(self, plan: Plan) -> InboxRow | None:
        """Let the attempt begin; None where another process has moved the row on."""
        row, instance = plan.situation.row, plan.record.instance_id or ""
        try:
            return self._recorder.claim(row, instance, plan.attempt.deadline)
        except Refused:
            return None

    def _paste(self, plan: Plan, row: InboxRow) -> Paste:
        """Return the paste. The marks of a dialog are read last, and no Enter follows while one may open."""
        sight, instance = plan.sight, plan.record.instance_id or ""
        try:
            enter = plan.attempt.enter and self._no_dialog(plan.record, sight)
        except CoreError:  # of this session alone: the step that enters it tells of it
            enter = False
        seen = sight.survey.of_instance(instance) if sight.remembered and sight.survey else None
        token = submit_token(row, 1) if enter else ""
        return Paste(instance, plan.data, row.token, plan.attempt.deadline, token, seen)

    def _written(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        try:
            with failpoint(Failpoint.DELIVERY_PASTE):
                outcomes = self._system.runner.paste_all(pastes) if pastes else ()
        except (TmuxSilent, TmuxMissing):
            outcomes = (None,) * len(pastes)
        if None in outcomes:
            self._looker.was_silent()
        return outcomes

    def _recorded(self, written: Sequence[tuple[Plan, InboxRow, Paste, Written | None]]) -> dict[str, datetime]:
        """Write down what became of the pastes, and return by uid when the sessions are due, if not at once."""
        done = [(plan, row, paste) for plan, row, paste, outcome in written if outcome is Written.DONE]
        if pasted := [row for _, row, paste in done if not paste.enter]:
            self._recorder.pasted(pasted)
        if entered := [(row, not plan.situation.provable) for plan, row, paste in done if paste.enter]:
            self._recorder.entered(entered, 1)
        now = self._system.clock.now()
        due: dict[str, datetime] = {}
        for plan, row, _, outcome in written:
            if outcome is None:
                due[plan.record.uid] = now + delivering.SILENCE_RETRY
            elif outcome is Written.CLOSED:
                self._moved(row, MessageState.QUEUED, Because(Reason.INPUT_CLOSED))
                due[plan.record.uid] = now + LOOK
            elif outcome is not Written.DONE:
                why = Because(Reason.SILENT) if outcome is Written.LATE else None
                self._moved(row, MessageState.PENDING, why)
                self._looker.distrust(plan.record)
        return due

    def _moved(self, row: InboxRow, state: MessageState, because: Because | None) -> None:
        with suppress(Refused):  # another process has moved the row on
            self._recorder.move(row, state, because)

    # ------------------------------------------------------------ keys

    def prepare(self, situation: Situation, record: SessionRecord, step: Stash | Clear) -> datetime:
        """Write the keys that make the input line ready, in a write of their own and a moment before the paste."""
        row, instance, traits = situation.row, record.instance_id or "", situation.traits
        stashing = isinstance(step, Stash)
        with failpoint(Failpoint.DELIVERY_STASH if stashing else Failpoint.DELIVERY_CLEAR):
            marked = self._system.inbox.advance(
                row,
                MessageState.QUEUED,
                Because(Reason.STASHING if stashing else Reason.CLEARING),
                instance=instance,
                attempt=row.attempt + 1,
                attempt_deadline=step.deadline,
                stashed=row.stashed or stashing,
            )
            if stashing:
                self._system.runner.write(instance, traits.stash or b"", Receipt.STASHED, marked.token, step.deadline)
            else:
                left = self._system.inbox.attempted(record.uid, frozenset(MessageState), _MAY_STAND)
                if clear_line(self._system, instance, traits, left, marked.token, step.deadline):
                    line_emptied(self._system, record.uid)
        return self._system.clock.now() + timedelta(seconds=traits.settle)

    def submit(
        self, situation: Situation, record: SessionRecord, sight: Sight, number: int, line: str = ""
    ) -> datetime:
        """Write the Enter, unless it might answer a dialog, or send more than the message.

        `line`: what stands in the input line, as far as its harness knows it on the screen.
        """
        row, now = situation.row, self._system.clock.now()
        if not self._no_dialog(record, sight):
            return now + delivering.TOOL_MARGIN
        screen = self._echoes.screen(situation, record)
        echo = situation.traits.echo
        line = line or (input_line(screen, echo) if echo is not None else "")
        if number == 1 and line and self._stands_beside(row, line):
            return self._given_up(row, record)
        if self._echoes.hold_up(situation, record, screen, number):
            return now + delivering.ECHO_POLL
        deadline = now + situation.timing.command
        try:
            with failpoint(Failpoint.DELIVERY_SUBMIT):
                written = self._system.runner.write(
                    record.instance_id or "", SUBMIT, Receipt.SUBMITTED, submit_token(row, number), deadline
                )
        except TmuxSilent:
            self._not_before[row.message.id] = deadline
            raise
        if written is Written.DONE:
            self._recorder.submitted(row, number, final=not situation.provable)
            self.over(row)
            return self._system.clock.now()
        return now + (LOOK if written is Written.CLOSED else delivering.TOOL_MARGIN)

    def _stands_beside(self, row: InboxRow, line: str) -> bool:
        """Return whether the row's text stands in the input line with another of ours: one Enter would send both."""
        others = self._system.inbox.attempted(row.message.uid, frozenset(MessageState), _MAY_STAND)
        return stands_beside(line, row.message, [each.message for each in others if each.message.id != row.message.id])

    def holds_ours(self, row: InboxRow, traits: Traits, line: str) -> bool:
        """Return whether it is a text of ours that stands in the input line, and that can be emptied.

        Put aside it would come back. False after some attempts, which did not empty it.
        """
        if traits.clear is None or row.attempt >= _MOST_ATTEMPTS:
            return False
        lately = self._system.inbox.attempted(row.message.uid, frozenset(MessageState), _MAY_STAND)
        return holds_one(line, [row.message, *(each.message for each in lately)])

    def _given_up(self, row: InboxRow, record: SessionRecord) -> datetime:
        """Take the attempt for lost: the input line is in doubt, so that it is emptied before the next one.

        After some of these a person has to look.
        """
        now, activity = self._system.clock.now(), activity_of(self._system.activities, record)
        because = Because(Reason.IN_DOUBT)
        if activity is None or row.attempt >= _MOST_ATTEMPTS:
            why = Because(Reason.NOT_SHOWN, {"why": because})
            self._recorder.settle(row, Settle(MessageState.UNKNOWN, why, text(Remedy.LOOK_FIRST), note=True))
            return now
        with self._system.database.transaction(durable=False):
            self._system.activities.put(replace(activity, composer_at=now))
            self._system.inbox.advance(row, MessageState.PENDING, because)
        return now

    def shows(self, situation: Situation, record: SessionRecord, screen: str) -> bool:
        """Return whether a screen shows the end of the row's text, as the input line of its harness would."""
        return self._echoes.shows(situation, record, screen)

    def _no_dialog(self, record: SessionRecord, sight: Sight) -> bool:
        """Return whether no dialog is open or about to open: an Enter would answer it. Called right before an Enter."""
        tool_at = self._looker.tool_at(record.uid)
        if tool_at is not None and self._system.clock.now() < tool_at + delivering.TOOL_MARGIN:
            return False
        return not self._looker.asking(record, sight.survey)

    def _drop_stale_hold(self, record: SessionRecord) -> None:
        """Remove the file that blocks turns where a verb died before its mark: no turn would take the message."""
        unheld = record.hold is None and record.phase is Phase.SETTLED
        if unheld and has_hold_file(self._system.paths, record.uid):
            with failpoint(Failpoint.RESUME_UNBLOCK):
                clear_hold_file(self._system.paths, record.uid)


_BURST_SECONDS = 0.15  #: more than some sixty keys in one read are taken for a paste (Claude Code 2.1.197 to 2.1.332)
_MOST_BURSTS = 20


def clear_line(
    system: System, instance: str, traits: Traits, rows: Sequence[InboxRow], token: str, deadline: datetime
) -> bool:
    """Press the keys that empty the input line, as often as these messages have lines, and tell whether all were.

    Raises TmuxSilent. Up to three seconds, for four hundred lines; the server refuses what comes after `deadline`.
    """
    for burst in range(bursts_for(traits, rows)):
        if burst:
            system.clock.pause(_BURST_SECONDS)
        if system.runner.write(instance, traits.clear or b"", Receipt.CLEARED, token, deadline) is not Written.DONE:
            return False
    return True


def bursts_for(traits: Traits, rows: Sequence[InboxRow]) -> int:
    """Return how many times the keys are pressed that empty an input line with these messages in it."""
    lines = sum(row.message.text.count("\n") + 1 for row in rows)
    return max(1, min(_MOST_BURSTS, -(-lines // traits.clear_lines)))
