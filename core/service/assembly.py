"""Put the service together from what wiring picks: channels, workers, and who wakes whom."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from core.base.errors import StoreBroken
from core.base.redaction import redactor_of
from core.chat.api import ChatApi
from core.chat.backfill import CatchingUp
from core.chat.commands import Orders
from core.chat.creating import Creations
from core.chat.inbound import Changes, Inbound, NullMirror, TypedAnswers
from core.chat.live import LivePosts
from core.chat.outbound import OutboundWorker
from core.chat.presses import Presses
from core.chat.signals import SignalWorker
from core.chat.tasks import TaskIntake, TaskWorker
from core.config.loading import load_apart
from core.config.settings import Settings, secret_variables
from core.delivery.deliverer import Deliverer, DeliveryWorker
from core.delivery.permission_requests import Requests
from core.delivery.working import WorkWorker
from core.http.facts import HTTP_ROW, Facts
from core.http.host import HttpHost
from core.lifecycle.everything import start_all
from core.lifecycle.supervise import Supervisor
from core.loops.scheduler import Scheduler
from core.model.channel import Channel, CoreApi, WebHook
from core.model.message import InboxRow
from core.process.presence import Connections
from core.service.housekeeping import Reconciler
from core.service.service import Service, Worker, import_ahead
from core.service.watching import ObserverWorker
from core.service.wiring import build_system, load_channel, with_secrets
from core.session.sessions import authorized_rows, chat_of
from core.session.system import System
from core.store.tasks import Tasks

if TYPE_CHECKING:
    from core.base.paths import StatePaths
    from core.http.guard import Authenticator
    from core.process.control import Listener, Peer, Talk
    from core.service.fleet import Joined
    from core.store.records import Records
    from core.tools.toolbox import Toolbox


_LOG = logging.getLogger(__name__)


def build_service(settings: Settings, environ: Mapping[str, str]) -> Service:
    """Put the service together: control client, channels, workers. Raises ConfigError, ChannelMissing.

    What the workers use is imported now, but for what answers over HTTP (docs/adr/0007).
    """
    import_ahead()
    environ = _with_secrets(settings, environ)
    system = build_system(settings, environ, persistent=True)
    channels, joined = _enabled_channels(settings, environ), None
    connections = Connections([HTTP_ROW, *(channel.kind for channel in channels)])
    if settings.fleet.enabled:
        joined = _joined(system, settings, environ, channels, connections)
        channels = joined.channels
    for channel in channels:
        channel.redact_with(redactor_of(environ, secret_variables(settings, environ)))
    requests = Requests(system, replies=any(channel.sweeps() for channel in channels))
    typed = {channel.kind: TypedAnswers(system, channel.has_role, requests) for channel in channels}
    catching_up = CatchingUp(system.clock, system.bindings, *(channel.kind for channel in channels if channel.sweeps()))
    deliverer = Deliverer(
        system, _authorized(system.settings, system.records, channels), _answering(typed), catching_up.holds
    )
    delivery = DeliveryWorker(system.clock, system.inbox, deliverer)
    lives = {channel.kind: LivePosts(system, channel, connections.note) for channel in channels}
    signals = {channel.kind: SignalWorker(system, channel, lives[channel.kind]) for channel in channels}
    outbound = {
        channel.kind: OutboundWorker(
            system,
            channel,
            _posted(signals[channel.kind].posted, joined),
            connections.shut_out,
            connections.sent,
            lives[channel.kind],
        )
        for channel in channels
    }

    swept = threading.Event()
    supervisor = Supervisor(system, lambda: load_apart(settings.source, environ), swept.is_set)

    scheduler = Scheduler(system, delivery.wake, swept.is_set)

    def wake(uid: str | None) -> None:
        delivery.wake(uid)
        scheduler.wake()
        supervisor.wake()
        for kind, worker in outbound.items():
            worker.wake()
            signals[kind].wake()
        if joined is not None:
            joined.publisher.wake()

    inbounds = {channel.kind: Inbound(system, channel.authorized, NullMirror()) for channel in channels}
    observer = ObserverWorker(system, wake, ended=supervisor.wake, swept=swept.is_set)
    toolbox = _toolbox(system, requests.talk)
    facts = Facts(
        system,
        connections.rows,
        observer.tmux,
        observer.watching,
        system.events.counts,
        _dropped(inbounds),
        toolbox,
        requests,
        lambda: _status(system),
        _hooks(channels),
        {channel.kind: channel.link for channel in channels},
    )
    http = HttpHost(facts, connections.set, lambda: _browsers(facts))
    workers, doors = [Worker(HTTP_ROW, 0, http.run)], dict[str, CoreApi]()
    for channel in channels:
        changes = Changes(system, channel.authorized)
        presses, orders = Presses(system, channel.has_role, requests), Orders(system, channel.kind, channel.has_role)
        task_wake, tasks = threading.Event(), Tasks(system.database)
        inbound, creations = inbounds[channel.kind], Creations(system, channel.kind, channel.has_role)
        door = ChatApi(
            system,
            connections,
            inbound,
            changes,
            delivery.wake,
            presses,
            orders,
            creations,
            catching_up,
            delivery.at_once,
            channel.typed,
            TaskIntake(system, tasks, channel.kind, channel.has_role, task_wake),
        )
        task_worker = TaskWorker(system, tasks, channel.kind, inbound, task_wake)
        workers.append(Worker(f"tasks-{channel.kind}", 0, task_worker.run))
        doors[channel.kind] = door
        workers.append(Worker(channel.kind, 0, _serving(channel, door)))
    if joined is not None:
        workers += joined.workers(doors, {kind: _waking(outbound[kind], signals[kind]) for kind in doors})
    workers.append(Worker("scheduler", 0, scheduler.run))
    workers.append(Worker("delivery", 1, delivery.run))
    workers += [Worker(f"outbound-{kind}", 2, worker.run) for kind, worker in outbound.items()]
    workers += [Worker(f"signals-{kind}", 2, worker.run) for kind, worker in signals.items()]
    workers.append(Worker("observer", 2, observer.run))
    workers.append(Worker("requests", 2, requests.run))
    workers.append(Worker("working", 2, WorkWorker(system).run))
    workers.append(Worker("finisher", 0, Reconciler(system).run))
    workers.append(Worker("supervisor", 0, supervisor.run))
    talks = {
        "request": requests.talk,
        "ask": requests.talk,
        "tool": _calls(system.settings, system.paths, system.records, toolbox),
        "page": _page(facts, lambda: http.port),
        "page-end": _page_end(facts),
    }
    if joined is not None:
        talks["fleet"] = joined.talk
    return Service(system, workers, _sweeping(system, swept), connections, talks)


def _joined(
    system: System,
    settings: Settings,
    environ: Mapping[str, str],
    channels: Sequence[Channel],
    connections: Connections,
) -> Joined:
    from core.service.fleet import join, open_fleet

    return join(system, settings, open_fleet(settings, environ), channels, connections)


def _posted(told: Callable[[str], None], joined: Joined | None) -> Callable[[str], None]:
    """Return what is told that a session's thread has got a post: one that is new has to be known to the fleet."""
    if joined is None:
        return told

    def tell(uid: str) -> None:
        told(uid)
        joined.publisher.wake()

    return tell


def _waking(*workers: OutboundWorker | SignalWorker) -> Callable[[], None]:
    def wake() -> None:
        for worker in workers:
            worker.wake()

    return wake


def _with_secrets(settings: Settings, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the secrets of the chats' own files.

    Without those of a file that may not be used: sessions do not depend on a chat.
    """
    for name, block in settings.channels.items():
        if block.enabled:
            try:
                environ = with_secrets(name, settings, environ)
            except StoreBroken as error:
                _LOG.error("secrets of a chat are not used", extra={"reason": str(error)})
    return environ


def _toolbox(system: System, ask: Callable[[Mapping[str, Any], Listener], None]) -> Callable[[], Toolbox]:
    """Return what makes the agents' tools at the first call of one, and imports what they need."""

    @cache
    def made() -> Toolbox:
        from core.tools.toolbox import Toolbox, loop_tools, standard_tools

        return Toolbox(system.settings, system.environ, (*standard_tools(system, ask), *loop_tools(system)))

    return made


def _calls(settings: Settings, paths: StatePaths, records: Records, toolbox: Callable[[], Toolbox]) -> Talk:
    def talk(line: Mapping[str, Any], peer: Peer) -> None:
        from core.tools.toolbox import ToolSocket

        ToolSocket(settings, paths, records, toolbox()).talk(line, peer)

    return talk


def _browsers(facts: Facts) -> Sequence[Authenticator]:
    from core.http.webpage import PageAuthenticator

    return (PageAuthenticator(facts.logins, facts.page_actor),)


def _page(facts: Facts, port: Callable[[], int | None]) -> Talk:
    """Return what makes a link to the page: `{"key", "port"}`; `port` null: there is the Unix socket alone."""

    def talk(line: Mapping[str, Any], peer: Peer) -> None:
        facts.system.events.emit("page.link_made", actor=str(line.get("actor", "")))
        peer.send({"key": facts.logins.link(), "port": port()})

    return talk


def _page_end(facts: Facts) -> Talk:
    """Return what logs all browsers out: `{"ended"}` tells how many."""

    def talk(line: Mapping[str, Any], peer: Peer) -> None:
        ended = facts.logins.end_all()
        facts.system.events.emit("page.logged_out", actor=str(line.get("actor", "")), detail=f"{ended} browsers")
        peer.send({"ended": ended})

    return talk


def _status(system: System) -> Mapping[str, Any]:
    from core.service.hosting import status

    return status(system)


def _sweeping(system: System, swept: threading.Event) -> Callable[[], Mapping[str, Any]]:
    """Return the boot's sweep, after which the observer and the supervisor see to what it has left."""

    def sweep() -> Mapping[str, Any]:
        try:
            return start_all(system, "supervisor").to_json()
        finally:
            swept.set()

    return sweep


def _dropped(inbounds: Mapping[str, Inbound]) -> Callable[[], Mapping[str, int]]:
    return lambda: sum((inbound.counters for inbound in inbounds.values()), Counter[str]())


def _hooks(channels: Sequence[Channel]) -> Mapping[str, WebHook]:
    found = {channel.kind: channel.webhook() for channel in channels}
    return {kind: hook for kind, hook in found.items() if hook is not None}


def _serving(channel: Channel, door: ChatApi) -> Callable[[threading.Event], None]:
    def run(stopping: threading.Event) -> None:
        channel.serve(door, stopping.is_set)
        stopping.wait()  # a channel that gave up has said so; the sessions go on without it

    return run


def _enabled_channels(settings: Settings, environ: Mapping[str, str]) -> tuple[Channel, ...]:
    return tuple(load_channel(name, settings, environ) for name, block in settings.channels.items() if block.enabled)


def _authorized(settings: Settings, records: Records, channels: Sequence[Channel]) -> Callable[[InboxRow], bool]:
    """Return the question that delivery asks of a row right before the pane is written to: may its author, still?"""
    questions = {channel.kind: authorized_rows(settings, records, channel.authorized) for channel in channels}

    def ask(row: InboxRow) -> bool:
        kind = chat_of(settings, row)
        return kind is None or (kind in questions and questions[kind](row))

    return ask


def _answering(typed: Mapping[str, TypedAnswers]) -> Callable[[Sequence[InboxRow]], InboxRow | None]:
    """Return what settles a reply that answers an open question, whichever chat it came from."""

    def settle(rows: Sequence[InboxRow]) -> InboxRow | None:
        taken = (answers.take(rows) for answers in typed.values())
        return next((row for row in taken if row is not None), None)

    return settle
