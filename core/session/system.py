"""The ports and settings that the verbs work with, in one value. Only `wiring` builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.base.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.base.clock import Clock
    from core.base.locks import Locks
    from core.base.paths import StatePaths
    from core.config.settings import Settings
    from core.harness.catalogue import Harnesses
    from core.model.session import SessionRecord
    from core.store.database import Database
    from core.store.eventlog import EventLog
    from core.store.inbox import Inbox
    from core.store.live import Lives
    from core.store.loops import Loops
    from core.store.outbox import Marks, Outbox, Progress
    from core.store.records import Records
    from core.store.requests import RequestBook
    from core.store.retention import Retention
    from core.store.sessions import Activities, Bindings, ExitLedger, Workings
    from core.tmux.processes import Processes
    from core.tmux.runner import Runner


@dataclass(frozen=True)
class System:
    """One the-loop.

    Any call of a port over the database may raise StoreBroken: a damaged database or a full disk must not keep
    anybody from stopping a session.
    """

    settings: Settings
    paths: StatePaths
    clock: Clock
    records: Records
    locks: Locks
    database: Database
    inbox: Inbox
    outbox: Outbox
    marks: Marks
    progress: Progress
    lives: Lives
    bindings: Bindings
    activities: Activities
    workings: Workings
    exit_ledger: ExitLedger
    requests: RequestBook
    loops: Loops
    retention: Retention
    events: EventLog
    runner: Runner
    processes: Processes
    harnesses: Harnesses
    environ: Mapping[str, str]
    ingest: Callable[[str], None]  #: take in the hook reports of the session of that uid, once; raises StoreBroken
    bring_back: Callable[[SessionRecord], bool]  #: have a crashed session resumed, within its budget; under its lock
    notify: Callable[[], None]  #: wake the service, if one runs
    close: Callable[[], None]  #: end the control client and the database's connections; panes stay
