"""The only place that picks adapters, loads channels and puts the service together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.clock import SystemClock
from core.commands import exact_for
from core.config.location import is_default
from core.deferring import deferred
from core.environment import chosen
from core.errors import CoreError
from core.paths import StatePaths
from core.secretnames import secret_variables
from core.store.activities import SqliteActivities
from core.store.bindings import SqliteBindings
from core.store.database import SqliteDatabase
from core.store.inbox import SqliteInbox
from core.store.records import RecordFiles
from core.system import System
from core.tmux.runner import TmuxRunner
from core.tmux.server import UNIT, TmuxServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.clock import Clock
    from core.config.settings import Settings
    from core.domain.session import SessionRecord
    from core.ports import (
        Channel,
        ChannelFactory,
        EventLog,
        Harnesses,
        Locks,
        Loops,
        Marks,
        Outbox,
        Progress,
        RequestBook,
        Retention,
        Watchbook,
    )
    from core.redaction import Redactor
    from core.tmux.processes import LocalProcesses
    from core.tmux.transport import Transport


def build_system(
    settings: Settings, environ: Mapping[str, str], *, persistent: bool = False, clock: Clock | None = None
) -> System:
    """Return the ports for this process; each tmux call is a process, or goes through one `persistent` client.

    What a mere listing does not use is made, and imported, at its first use. Without a `clock` it is the machine's.
    """
    clock, paths = clock or SystemClock(), StatePaths(settings.state_root)

    def begun() -> None:
        from core.session.sessions import tell_database_begun

        tell_database_begun(system)

    database = SqliteDatabase(paths, clock, begun=begun)
    tmux = settings.routing.tmux
    server = _tmux_server(settings, environ)
    clean = server.environ

    def ingest(uid: str) -> None:
        from core.observing.observer import ingest as take_in

        take_in(system, uid)

    def bring_back(record: SessionRecord) -> bool:
        from core.standing.dying import plan_for_keep_alive

        return plan_for_keep_alive(system, record)

    def poke() -> None:
        from core.process.poke import Poke

        Poke(paths.poke).send()

    def close() -> None:
        runner.close()
        processes.close()
        database.close()

    runner = TmuxRunner(
        server,
        _transport(server, persistent=persistent),
        timeout=tmux.command_timeout_seconds,
        remain_on_exit=tmux.remain_on_exit,
        clock=clock,
    )
    processes = deferred(_processes)
    system = System(
        settings=settings,
        paths=paths,
        clock=clock,
        records=RecordFiles(paths),
        locks=deferred(lambda: _locks(paths)),
        database=database,
        inbox=SqliteInbox(database, clock),
        outbox=deferred(lambda: _outbox(database, clock, system)),
        marks=deferred(lambda: _marks(database, clock)),
        progress=deferred(lambda: _progress(database)),
        bindings=SqliteBindings(database),
        activities=SqliteActivities(database),
        watchbook=deferred(lambda: _watchbook(database)),
        requests=deferred(lambda: _requests(database)),
        loops=deferred(lambda: _loops(database, clock)),
        retention=deferred(lambda: _retention(database)),
        events=deferred(lambda: _events(settings, paths, clock, environ)),
        runner=runner,
        processes=processes,
        harnesses=deferred(lambda: _harnesses(settings, chosen(clean), clock)),
        environ=environ,
        ingest=ingest,
        bring_back=bring_back,
        poke=poke,
        close=close,
    )
    return system


def _tmux_server(settings: Settings, environ: Mapping[str, str]) -> TmuxServer:
    secrets = frozenset(secret_variables(settings, environ))
    clean = {name: value for name, value in environ.items() if name not in secrets}
    unit = UNIT if is_default(settings.source, settings.state_root, environ) else ""
    name, conf = settings.routing.tmux.socket_name, StatePaths(settings.state_root).tmux_conf
    return TmuxServer(name, conf, secrets, unit=unit, environ=clean)


def become_tmux(settings: Settings, environ: Mapping[str, str]) -> None:
    """Become the tmux server in the foreground, as its own systemd unit does. Returns never.

    Raises Refused where one lives already, or where the configuration uses the user's own server.
    """
    from core.tmux.birth import be_the_server

    be_the_server(_tmux_server(settings, environ))


def _locks(paths: StatePaths) -> Locks:
    from core.store.locks import SessionLocks

    return SessionLocks(paths)


def _outbox(database: SqliteDatabase, clock: Clock, system: System) -> Outbox:
    from core.store.outbox import SqliteOutbox

    return SqliteOutbox(database, clock, lambda text: exact_for(system, text))


def _marks(database: SqliteDatabase, clock: Clock) -> Marks:
    from core.store.marks import SqliteMarks

    return SqliteMarks(database, clock)


def _progress(database: SqliteDatabase) -> Progress:
    from core.store.progress import SqliteProgress

    return SqliteProgress(database)


def _watchbook(database: SqliteDatabase) -> Watchbook:
    from core.store.watchbook import SqliteWatchbook

    return SqliteWatchbook(database)


def _requests(database: SqliteDatabase) -> RequestBook:
    from core.store.requests import SqliteRequests

    return SqliteRequests(database)


def _loops(database: SqliteDatabase, clock: Clock) -> Loops:
    from core.store.loops import SqliteLoops

    return SqliteLoops(database, clock)


def _retention(database: SqliteDatabase) -> Retention:
    from core.store.retention import SqliteRetention

    return SqliteRetention(database)


def _events(settings: Settings, paths: StatePaths, clock: Clock, environ: Mapping[str, str]) -> EventLog:
    from core.store.eventlog import JsonEventLog

    def redactor() -> Redactor:
        from core.redaction import redactor_of

        return redactor_of(environ, secret_variables(settings, environ))

    log = settings.event_log
    return JsonEventLog(
        paths.events,
        clock,
        max_bytes=log.max_bytes,
        keep=log.keep,
        include_text=log.include_text,
        redactor=redactor,
    )


def _processes() -> LocalProcesses:
    from core.tmux.processes import LocalProcesses

    return LocalProcesses()


def _harnesses(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Harnesses:
    from core.harness.catalogue import catalogue

    trust = settings.routing.harness_trust
    return catalogue(
        clock,
        environ,
        settings.harnesses,
        trust_enabled=trust.enabled,
        accept_bypass=trust.accept_bypass_permissions,
        permission_mode=trust.permission_mode,
    )


def build_rescue_system(config: Path | None, environ: Mapping[str, str], warn: Callable[[str], None]) -> System:
    """Return the ports for `stop`, which must work with a configuration that does not: what is wrong is warned of."""
    from core.config.loading import load_tolerant

    settings, problem = load_tolerant(config, environ)
    if problem is not None:
        warn(f"the-loop: {problem}\nthe-loop: stopping all the same, by what could be read of it")
    return build_system(settings, environ)


def _transport(server: TmuxServer, *, persistent: bool) -> Transport:
    if not persistent:
        return server.process()
    from core.tmux.control import ControlTransport

    return ControlTransport(server)


class ChannelMissing(CoreError):
    """The configuration enables a channel that is not installed."""

    code = "channel_missing"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the channel {name!r} is not installed: no package names it in the entry point group the_loop.channels",
            f"install the package that brings it, or disable channels.{name}",
        )


def load_channel(name: str, settings: Settings, environ: Mapping[str, str]) -> Channel:
    """Make the channel from its block. Raises ChannelMissing, ConfigError; asks nobody anything yet."""
    from importlib.metadata import entry_points

    from core.config.channels import GROUP

    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise ChannelMissing(name)
    factory: ChannelFactory = found.load()
    return factory(settings.channel(name).raw, environ, settings.source)
