"""The only place that picks adapters, loads channels and puts the service together."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.config.settings import Settings
from core.launching import secret_variables
from core.paths import StatePaths
from core.poke import Poke
from core.store.activities import SqliteActivities
from core.store.bindings import SqliteBindings
from core.store.database import SqliteDatabase
from core.store.eventlog import JsonEventLog
from core.store.inbox import SqliteInbox
from core.store.locks import SessionLocks
from core.store.outbox import SqliteOutbox
from core.store.records import RecordFiles
from core.system import System
from core.tmux.runner import TmuxRunner
from core.tmux.server import TmuxServer
from core.tmux.transport import Transport


def build_system(
    settings: Settings, environ: Mapping[str, str], transport: Callable[[TmuxServer], Transport] = TmuxServer.process
) -> System:
    """Return the ports for this process; by default each tmux call is a process of its own."""
    from core.harness.catalogue import catalogue
    from core.tmux.processes import LocalProcesses

    clock, paths = SystemClock(), StatePaths(settings.state_root)
    database = SqliteDatabase(paths, clock)
    tmux, trust, log = settings.routing.tmux, settings.routing.harness_trust, settings.event_log
    secrets = frozenset(secret_variables(settings, environ))
    clean = {name: value for name, value in environ.items() if name not in secrets}
    server = TmuxServer(tmux.socket_name, paths.tmux_conf, secrets, environ=clean)

    def ingest(uid: str) -> None:
        from core.observer import ingest as take_in

        take_in(system, uid)

    system = System(
        settings=settings,
        paths=paths,
        clock=clock,
        records=RecordFiles(paths),
        locks=SessionLocks(paths),
        database=database,
        inbox=SqliteInbox(database, clock),
        outbox=SqliteOutbox(database),
        bindings=SqliteBindings(database),
        activities=SqliteActivities(database),
        events=JsonEventLog(paths.events, clock, max_bytes=log.max_bytes, keep=log.keep, include_text=log.include_text),
        runner=TmuxRunner(
            server,
            transport(server),
            timeout=tmux.command_timeout_seconds,
            remain_on_exit=tmux.remain_on_exit,
            clock=clock,
        ),
        processes=LocalProcesses(),
        harnesses=catalogue(
            clock,
            clean,
            settings.harnesses,
            trust_enabled=trust.enabled,
            accept_bypass=trust.accept_bypass_permissions,
        ),
        environ=environ,
        ingest=ingest,
        poke=Poke(paths.poke).send,
    )
    return system


def build_rescue_system(config: Path | None, environ: Mapping[str, str], warn: Callable[[str], None]) -> System:
    """Return the ports for `stop`, which must work with a configuration that does not: what is wrong is warned of."""
    from core.config.loading import load_tolerant

    settings, problem = load_tolerant(config, environ)
    if problem is not None:
        warn(f"the-loop: {problem}\nthe-loop: stopping all the same, by what could be read of it")
    return build_system(settings, environ)


def load_channel(name: str, settings: Settings, environ: Mapping[str, str]) -> Any:
    raise LookupError(name)
