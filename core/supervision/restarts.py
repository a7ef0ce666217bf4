"""Brings back what is due: after crashes within the budget, after a lost tmux server, after a restart cut short."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from core.domain.ending import given_up_text
from core.domain.restarting import WINDOW, BringBack, exit_text, may_be_brought_back, plan_restart
from core.domain.session import Outcome, Phase, SessionRecord
from core.domain.watchbook import End
from core.effects import Effect, effect
from core.errors import CoreError
from core.session.apart import Unforeseen, apart
from core.session.comeback import comes_back, lacks_harness
from core.standing.announcing import edit_root
from core.standing.awaiting import FirstDialogs, Looks
from core.standing.common import Told, lock, write_record
from core.standing.dying import SUPERVISOR, add_note, emit_held, hold_failed
from core.standing.spawning import Opened, StartOrder
from core.standing.starting import begin_each, conclude
from core.system import System

_LOG = logging.getLogger(__name__)
_AGAIN = timedelta(seconds=5)  #: after tmux was silent
_KILLED = timedelta(minutes=1)  #: when an attempt is made again whose outcome nobody recorded
_UP = frozenset({Outcome.STARTED, Outcome.RESUMED})


class Restarts:
    """Belongs to the supervisor's thread. A session that comes up slowly holds up no other."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._opened: dict[str, tuple[End, Opened]] = {}
        self._dialogs = FirstDialogs(system)

    @property
    def under_way(self) -> bool:
        """Tell whether a session is coming up."""
        return bool(self._opened)

    def turn(self, records: Mapping[str, SessionRecord]) -> None:
        """Begin what is due and see to what was begun. `records` are by instance. Raises StoreBroken."""
        now = self._system.clock.now()
        ends = [end for end in self._system.watchbook.due() if end.due_at is not None and end.due_at <= now]
        self._begin([(end, records.get(end.instance)) for end in ends])
        looks = Looks(self._system, [opened for _, opened in self._opened.values()], self._dialogs)
        for name, (end, opened) in list(self._opened.items()):
            self._apart(name, partial(self._follow, name, end, opened, looks))

    def _apart(self, name: str, act: Callable[[], object]) -> None:
        try:
            with apart(self._system.events, name):
                act()
        except Unforeseen as error:
            _LOG.warning("session not brought back", extra={"session": name, "reason": str(error)})

    def _follow(self, name: str, end: End, opened: Opened, looks: Looks) -> None:
        seen = looks.at(opened)
        if seen is not None:
            del self._opened[name]
            self._go_on(name, end, conclude(self._system, opened, seen))

    def next_due(self) -> timedelta | None:
        """Return how long until the next restart is due, None if none is. Raises StoreBroken."""
        due = [end.due_at for end in self._system.watchbook.due() if end.due_at is not None]
        return max(timedelta(), due[0] - self._system.clock.now()) if due else None

    # ------------------------------------------------------------ one session

    def _begin(self, due: Sequence[tuple[End, SessionRecord | None]]) -> None:
        orders: dict[str, StartOrder] = {}
        ends: dict[str, End] = {}

        def order(end: End, record: SessionRecord | None) -> None:
            if record is None:
                self._put_off(end, None)
            elif self._may_begin(end, record):
                why = f"brought back after {exit_text(record.last_exit)}" if end.counted else "brought back"
                orders[record.name] = StartOrder(SUPERVISOR, why, skip_held=True, after=end.instance)
                ends[record.name] = end

        for end, record in due:
            self._apart(record.name if record else end.uid, partial(order, end, record))
        for name, step in begin_each(self._system, orders).items():
            self._apart(name, partial(self._go_on, name, ends[name], step))

    def _may_begin(self, end: End, record: SessionRecord) -> bool:
        """Tell whether the session is to be started now, which counts; else see to what else is to be done."""
        if record.phase is not Phase.SETTLED:
            return False  # a verb is at work on it, and decides
        if not may_be_brought_back(record):
            self._put_off(end, None)
            return False
        lacking = lacks_harness(self._system, record)
        if lacking:
            self._put_off(end, _KILLED)
            self._failed(record.name, end, lacking, hopeless=True)
            return False
        with effect(Effect.WATCH_COUNT), self._system.database.transaction(durable=True):
            if end.counted:
                self._system.watchbook.count_restart(record.uid, self._system.clock.now())
            self._system.watchbook.put_off(end.instance, self._system.clock.now() + _KILLED)
        return True

    def _go_on(self, name: str, end: End, step: Told | Opened) -> None:
        if isinstance(step, Opened):
            self._opened[name] = (end, step)
        elif step.outcome in _UP:
            self._put_off(end, None)
            self._system.events.emit("standing.restarted", name=name, actor=SUPERVISOR, detail=step.outcome.value)
        elif step.outcome is Outcome.UNCONFIRMED:
            self._put_off(end, _AGAIN)
        elif step.outcome is Outcome.FAILED:
            self._failed(name, end, step.detail)
        else:
            self._put_off(end, None)

    def _failed(self, name: str, end: End, detail: str, *, hopeless: bool = False) -> None:
        """See to a session that could not be started at all. One whose new program died is a new end, told as such.

        `hopeless`: no further attempt of this service can do better, so that it is held at once.
        """
        try:
            with lock(self._system, name, "bring back"):
                record = self._system.records.read(name)
                if record is None or record.instance_id != end.instance or not may_be_brought_back(record):
                    self._put_off(end, None)
                    return
                if hopeless:
                    self._hold(record, end, detail, detail)
                else:
                    self._plan_again(record, end, detail)
        except CoreError as error:
            _LOG.warning("restart not planned again", extra={"session": name, "reason": str(error)})

    def _plan_again(self, record: SessionRecord, end: End, detail: str) -> None:
        now, system = self._system.clock.now(), self._system
        if not (end.counted and comes_back(system, record)):
            self._give_up(record, end, detail)
            return
        restarts = system.watchbook.restarts(record.uid, now - WINDOW)
        plan = plan_restart(restarts, now, system.settings.limits.restarts_per_hour)
        if isinstance(plan, BringBack):
            self._put_off(end, plan.at - now)
            return
        self._hold(record, end, f"{plan.reason}; {detail}", plan.reason)

    def _hold(self, record: SessionRecord, end: End, reason: str, told: str) -> None:
        """Hold the session as failed; `told` is the event's reason."""
        held = hold_failed(self._system, record, reason)
        with effect(Effect.WATCH_RECORD):
            write_record(self._system, held)
        self._give_up(held, end, reason)
        emit_held(self._system, held, told)

    def _give_up(self, record: SessionRecord, end: End, reason: str) -> None:
        with effect(Effect.WATCH_PUT_OFF), self._system.database.transaction(durable=True):
            self._system.watchbook.put_off(end.instance, None)
            add_note(self._system, record, f"down-{end.instance}", given_up_text(record.name, reason))
            edit_root(self._system, record)
        self._system.poke()

    def _put_off(self, end: End, by: timedelta | None) -> None:
        with effect(Effect.WATCH_PUT_OFF):
            due_at = None if by is None else self._system.clock.now() + by
            self._system.watchbook.put_off(end.instance, due_at)
