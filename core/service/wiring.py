"""Pick adapters, load channels and build what the verbs work with. No other module chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from core.base.clock import SystemClock
from core.base.environment import chosen
from core.base.errors import CoreError
from core.base.paths import StatePaths, is_default
from core.base.values import deferred
from core.config.settings import secret_variables
from core.session.commands import exact_for
from core.session.system import System
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.records import Records
from core.store.sessions import Activities, Bindings
from core.tmux.runner import Runner
from core.tmux.server import UNIT, TmuxServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.base.clock import Clock
    from core.base.locks import Locks
    from core.base.redaction import Redactor
    from core.config.settings import Settings
    from core.harness.catalogue import Harnesses
    from core.model.channel import Channel, ChannelFactory
    from core.model.session import SessionRecord
    from core.store.eventlog import EventLog
    from core.store.live import Lives
    from core.store.loops import Loops
    from core.store.outbox import Marks, Outbox, Progress
    from core.store.requests import RequestBook
    from core.store.retention import Retention
    from core.store.sessions import ExitLedger, Workings
    from core.tmux.processes import Processes
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

        tell_database_begun(system.records, system.database, system.events)

    database = Database(paths, clock, begun=begun)
    tmux = settings.routing.tmux
    server = tmux_server(settings, environ)
    clean = server.environ

    def ingest(uid: str) -> None:
        from core.delivery.hook_ingest import ingest as take_in

        take_in(system, uid)

    def bring_back(record: SessionRecord) -> bool:
        from core.lifecycle.exits import plan_for_keep_alive

        return plan_for_keep_alive(system, record)

    def notify() -> None:
        from core.process.presence import Notifier

        Notifier(paths.notify).send()

    def close() -> None:
        runner.close()
        processes.close()
        database.close()

    runner = Runner(
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
        records=Records(paths),
        locks=deferred(lambda: _locks(paths)),
        database=database,
        inbox=Inbox(database, clock),
        outbox=deferred(lambda: _outbox(database, clock, system)),
        marks=deferred(lambda: _marks(database, clock)),
        progress=deferred(lambda: _progress(database)),
        lives=deferred(lambda: _lives(database)),
        bindings=Bindings(database),
        activities=Activities(database),
        workings=deferred(lambda: _workings(database)),
        exit_ledger=deferred(lambda: _watchbook(database)),
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
        notify=notify,
        close=close,
    )
    return system


def tmux_server(settings: Settings, environ: Mapping[str, str]) -> TmuxServer:
    """Return the tmux server of the sessions, as the configuration says; nothing is asked yet."""
    secrets = frozenset(secret_variables(settings, environ))
    clean = {name: value for name, value in environ.items() if name not in secrets}
    unit = UNIT if is_default(settings.source, settings.state_root, environ) else ""
    name, conf = settings.routing.tmux.socket_name, StatePaths(settings.state_root).tmux_conf
    return TmuxServer(name, conf, secrets, unit=unit, environ=clean)


def become_tmux(settings: Settings, environ: Mapping[str, str]) -> None:
    """Become the tmux server in the foreground, as its own systemd unit does. Returns never.

    Raises Refused where one lives already, or where the configuration uses the user's own server.
    """
    from core.tmux.server import be_the_server

    be_the_server(tmux_server(settings, environ))


def _locks(paths: StatePaths) -> Locks:
    from core.base.locks import Locks

    return Locks(paths)


def _outbox(database: Database, clock: Clock, system: System) -> Outbox:
    from core.session.sessions import own_chat
    from core.store.outbox import Outbox

    return Outbox(
        database,
        clock,
        lambda text: exact_for(system.settings, system.environ, text),
        lambda post: own_chat(system.settings, system.records, system.bindings, post),
    )


def _marks(database: Database, clock: Clock) -> Marks:
    from core.store.outbox import Marks

    return Marks(database, clock)


def _progress(database: Database) -> Progress:
    from core.store.outbox import Progress

    return Progress(database)


def _lives(database: Database) -> Lives:
    from core.store.live import Lives

    return Lives(database)


def _workings(database: Database) -> Workings:
    from core.store.sessions import Workings

    return Workings(database)


def _watchbook(database: Database) -> ExitLedger:
    from core.store.sessions import ExitLedger

    return ExitLedger(database)


def _requests(database: Database) -> RequestBook:
    from core.store.requests import RequestBook

    return RequestBook(database)


def _loops(database: Database, clock: Clock) -> Loops:
    from core.store.loops import Loops

    return Loops(database, clock)


def _retention(database: Database) -> Retention:
    from core.store.retention import Retention

    return Retention(database)


def _events(settings: Settings, paths: StatePaths, clock: Clock, environ: Mapping[str, str]) -> EventLog:
    from core.store.eventlog import EventLog

    def redactor() -> Redactor:
        from core.base.redaction import redactor_of

        return redactor_of(environ, secret_variables(settings, environ))

    log = settings.event_log
    return EventLog(
        paths.events,
        clock,
        max_bytes=log.max_bytes,
        keep=log.keep,
        include_text=log.include_text,
        redactor=redactor,
    )


def _processes() -> Processes:
    from core.tmux.processes import Processes

    return Processes()


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
        warn(f"the-loop: {problem}\nthe-loop: the stop goes on with what could be read of it")
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
    """Make the channel from its block. Asks nobody anything yet.

    Raises ChannelMissing, ChannelBroken, ConfigError, and StoreBroken where the file of its secrets may not be used.
    """
    from core.base.plugins import entry_points
    from core.config.chats import GROUP, load_part

    target = entry_points(GROUP).get(name)
    if target is None:
        raise ChannelMissing(name)
    factory = cast("ChannelFactory", load_part(name, target))
    raw, checked = settings.channel(name).raw, settings.channel(name).checked
    if checked is None:
        from core.config.channels import checked_block  # the validator: the cache holds what it made of a right block

        checked = checked_block(name, raw, settings.source)
    return factory(checked, with_secrets(name, settings, environ))


def with_secrets(chat: str, settings: Settings, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the secrets that the chat's own file holds; what a variable holds counts.

    Raises StoreBroken where that file may not be used; see `read_secrets`.
    """
    from core.config.secrets import read_secrets

    return {**read_secrets(StatePaths(settings.state_root).chat_secrets(chat)), **environ}
