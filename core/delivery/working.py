"""Look at what each agent is doing, by its harness's own records, and keep it: for rows, events and metrics."""

import logging
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.base.clock import Deadline
from core.base.errors import CoreError
from core.base.redaction import Redactor, redactor_of
from core.base.text import plain
from core.base.values import replace
from core.config.settings import secret_variables
from core.model.activity import Activity
from core.model.harness import Working
from core.model.session import Phase, SessionRecord, Status
from core.model.working import limit, plan_lines, progress, spent
from core.session.folder import context_of
from core.session.sessions import each_apart, resolve_record
from core.session.system import System

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 2.0
_EVENT_SECONDS = 5.0  #: between two events of one session
_MOST_ITEMS = 100  #: of a plan that are kept
_LONGEST = 300  #: characters of each text

Told = Mapping[str, Any]


class WorkWorker:
    """Asks the harness of each session that should run, and of each that has just ended."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._redactor: Redactor | None = None
        self._stored: dict[str, tuple[str, Told]] = {}  #: by session: instance, and what is stored of it
        self._emitted: dict[str, Told] = {}  #: what the latest events told
        self._free: dict[str, Deadline] = {}  #: when the next ones may be emitted
        self._ran: frozenset[str] = frozenset()
        self._trouble: dict[str, str] = {}

    def run(self, stopping: threading.Event) -> None:
        """Look every two seconds until told to stop. Raises StoreBroken."""
        while not stopping.wait(_LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Look at each session once. Raises StoreBroken where the state cannot be read at all."""
        records = [one for one in self._system.records.all() if isinstance(one, SessionRecord) and one.instance_id]
        running = frozenset(
            one.uid for one in records if one.status is Status.RUNNING or one.phase is not Phase.SETTLED
        )
        activities = self._system.activities.all()
        wanted = [record for record in records if record.uid in running or record.uid in self._ran]
        each_apart(self._system.events, wanted, lambda record: self._look_at(record, activities.get(record.uid)))
        self._ran = running
        there = {record.uid for record in records}
        for kept in (self._stored, self._emitted, self._free, self._trouble):
            for uid in kept.keys() - there:
                del kept[uid]

    def _look_at(self, record: SessionRecord, activity: Activity | None) -> None:
        instance = record.instance_id or ""
        working = self._asked(record, instance)
        if working is None:
            return
        told = self._told(working, activity if activity and activity.instance == instance else None)
        before = self._stored.get(record.uid) or self._system.workings.get(record.uid) or ("", {})
        if before != (instance, told):
            self._system.workings.put(record.uid, instance, told)
        self._stored[record.uid] = (instance, told)
        self._emitted.setdefault(record.uid, before[1])
        self._emit(record, told)

    def _asked(self, record: SessionRecord, instance: str) -> Working | None:
        """Ask the harness; that its records cannot be read is told once, and changes nothing."""
        resolved = resolve_record(record, self._system.settings)
        context = context_of(self._system.paths, record, resolved, instance)
        try:
            working = self._system.harnesses.get(resolved.harness).working(context)
        except CoreError as error:
            if self._trouble.get(record.uid) != str(error):
                _LOG.warning("what it does is not known", extra={"session": record.name, "reason": str(error)})
            self._trouble[record.uid] = str(error)
            return None
        self._trouble.pop(record.uid, None)
        return working

    def _told(self, working: Working, activity: Activity | None) -> Told:
        """Return what is shown: without secrets, without a tool where no turn runs, without a limit that is over."""
        if self._redactor is None:
            names = secret_variables(self._system.settings, self._system.environ)
            self._redactor = redactor_of(self._system.environ, names)
        if activity is not None and not activity.in_turn and working.tool:
            working = replace(working, tool="")
        if working.limit is not None and _is_over(working.limit.until, self._system.clock.now()):
            working = replace(working, limit=None)
        plan = working.plan and working.plan[:_MOST_ITEMS]
        told = _clean(replace(working, plan=plan).to_json(), self._redactor)
        assert isinstance(told, dict)
        return told

    def _emit(self, record: SessionRecord, told: Told) -> None:
        """Emit what has changed since the latest events, not more often than every few seconds."""
        before = self._emitted[record.uid]
        free = self._free.get(record.uid)
        if told == before or (free is not None and not free.passed()):
            return
        plan, used = _changed(before, told, "plan"), _changed(before, told, "usage", "model", "context", "limit")
        if plan and (told["plan"] or before.get("plan")):
            self._system.events.emit(
                "standing.plan",
                name=record.name,
                instance=record.instance_id,
                detail=progress(told) or "no plan",
                text=plan_lines(told),
            )
        if used and spent(told):
            self._system.events.emit(
                "standing.usage",
                name=record.name,
                instance=record.instance_id,
                detail=spent(told),
                reason=limit(told) or None,
            )
        self._emitted[record.uid] = told
        self._free[record.uid] = Deadline(self._system.clock, _EVENT_SECONDS)


def _changed(before: Told, after: Told, *names: str) -> bool:
    return any(before.get(name) != after[name] for name in names)


def _is_over(until: datetime | None, now: datetime) -> bool:
    return until is not None and until <= now


def _clean(value: Any, redactor: Redactor) -> Any:
    """Return the value with each text in it as it may be shown: without secrets, in one line, not too long."""
    if isinstance(value, str):
        text = redactor.redact(" ".join(plain(value).split()))
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    if isinstance(value, dict):
        return {key: _clean(one, redactor) for key, one in value.items()}
    return [_clean(one, redactor) for one in value] if isinstance(value, list) else value
