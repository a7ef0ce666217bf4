"""Panes that are played, for benchmarks of what happens before a pane: each takes a text at once, and is idle again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from core.base.names import target_for
from core.model.activity import Activity, ActivityState
from core.model.pane import Pane, Paste, Receipt, Survey, Typing, Written
from core.model.session import Definition, SessionRecord, Status

if TYPE_CHECKING:
    from core.base.clock import Clock
    from core.session.system import System

HARNESS = "sink"  #: declared without hooks: it proves nothing, so that an Enter settles what was typed

_TURN = timedelta(seconds=1)  #: how long a turn is said to have taken; nobody waits for it


class PlayedClock:
    """Implements Clock: time passes when it is told to."""

    def __init__(self) -> None:
        self._moment = datetime(2026, 5, 4, 12, tzinfo=UTC)
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the moment."""
        return self._moment

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._elapsed

    def pause(self, seconds: float) -> None:
        """Let time pass at once."""
        self._elapsed += seconds
        self._moment += timedelta(seconds=seconds)


class PlayedPanes:
    """The part of Runner that delivery uses, over one pane a session."""

    def __init__(self, clock: Clock, names: Sequence[str]) -> None:
        self._clock = clock
        self._names = {instance_of(name): name for name in names}
        self._receipts: dict[str, dict[Receipt, str]] = {instance: {} for instance in self._names}
        self.system: System | None = None

    def survey(self) -> Survey:
        """See Runner."""
        panes = tuple(
            Pane("%1", "$1", target_for(name), instance, 1, False, None, False, False, self._receipts[instance])
            for instance, name in self._names.items()
        )
        return Survey(panes, self._clock.now(), server=1)

    def recent(self, seconds: float) -> Survey | None:
        """See Runner."""
        return None

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        """See Runner."""
        for paste in pastes:
            self.write(paste.instance, paste.data, Receipt.PASTED, paste.token, paste.deadline)
            if paste.enter:
                self.write(paste.instance, b"\r", Receipt.SUBMITTED, paste.enter, paste.deadline)
        return (Written.DONE,) * len(pastes)

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Written:
        """See Runner. With the Enter a turn begins, and is over."""
        self._receipts[instance] = {**self._receipts[instance], receipt: token}
        if receipt is Receipt.SUBMITTED and self.system is not None:
            at = self._clock.now() + _TURN
            self.system.activities.put(Activity(uid_of(self._names[instance]), instance, ActivityState.IDLE, at))
        return Written.DONE

    def typing(self, instance: str) -> tuple[Typing, ...]:
        """See Runner."""
        return ()

    def close(self) -> None:
        """See the adapter."""


def instance_of(name: str) -> str:
    """Return the session's instance."""
    return f"i-{name}"


def uid_of(name: str) -> str:
    """Return the session's uid."""
    return f"s-{name}"


def record_sessions(system: System, names: Sequence[str]) -> None:
    """Record the sessions as running and idle."""
    now = system.clock.now()
    for name in names:
        definition = Definition(name, harness=HARNESS)
        system.paths.session(uid_of(name)).mkdir(parents=True)
        system.records.write(
            SessionRecord(
                name,
                uid_of(name),
                definition,
                now,
                instance_id=instance_of(name),
                status=Status.RUNNING,
                started_at=now,
            )
        )
        system.activities.put(Activity(uid_of(name), instance_of(name), ActivityState.IDLE, now))
