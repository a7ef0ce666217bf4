"""Puts the service together from what wiring picks: channels, workers, and who wakes whom."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from core.config.loading import load
from core.config.settings import Settings
from core.conversation.answering import TypedAnswers
from core.conversation.catchingup import CatchingUp
from core.conversation.changing import Changes
from core.conversation.door import Door
from core.conversation.inbound import Inbound
from core.conversation.mirroring import NullMirror
from core.conversation.ordering import Orders
from core.conversation.outbound import OutboundWorker
from core.conversation.pressing import Presses
from core.conversation.signalling import SignalWorker
from core.delivery.deliverer import Deliverer
from core.delivery.worker import DeliveryWorker
from core.domain.message import InboxRow
from core.loops.scheduler import Scheduler
from core.observing.asking import Requests
from core.observing.observer import ingest
from core.ports import Channel, WebHook
from core.process.connections import Connections
from core.redaction import redactor_of
from core.secretnames import secret_variables
from core.serving.ahead import import_ahead
from core.serving.finishing import Finisher
from core.serving.service import Service, Worker
from core.serving.watching import ObserverWorker
from core.session.steering import authorized_rows, chat_of
from core.standing.dying import plan_for_keep_alive
from core.standing.lifecycle import start_all
from core.supervision.worker import Supervisor
from core.surfaces.http.counting import CountingEvents
from core.surfaces.http.facts import HTTP_ROW, Facts
from core.surfaces.http.host import HttpHost
from core.system import System
from core.values import replace
from core.wiring import build_system, load_channel

if TYPE_CHECKING:
    from core.process.controlsocket import Listener, Peer, Talk
    from core.tools.toolbox import Toolbox


def build_service(settings: Settings, environ: Mapping[str, str]) -> Service:
    """Put the service together: control client, channels, workers. Raises ConfigError, ChannelMissing.

    What the workers use is imported now, but for what answers over HTTP (docs/adr/0007).
    """
    import_ahead()
    system, events = _counted(build_system(settings, environ, persistent=True))
    channels = _enabled_channels(settings, environ)
    for channel in channels:
        channel.redact_with(redactor_of(environ, secret_variables(settings, environ)))
    requests = Requests(system, replies=any(channel.sweeps() for channel in channels))
    typed = {channel.kind: TypedAnswers(system, channel.holds, requests) for channel in channels}
    catching_up = CatchingUp(system.clock, system.bindings, *(channel.kind for channel in channels if channel.sweeps()))
    deliverer = Deliverer(system, _authorized(system, channels), _answering(typed), catching_up.holds)
    delivery = DeliveryWorker(system, deliverer)
    signals = {channel.kind: SignalWorker(system, channel) for channel in channels}
    connections = Connections([HTTP_ROW, *(channel.kind for channel in channels)])
    outbound = {
        channel.kind: OutboundWorker(system, channel, signals[channel.kind].posted, connections.shut_out)
        for channel in channels
    }

    swept = threading.Event()
    supervisor = Supervisor(system, lambda: load(settings.source, environ), swept.is_set)

    scheduler = Scheduler(system, delivery.wake, swept.is_set)

    def wake(uid: str | None) -> None:
        delivery.wake(uid)
        scheduler.wake()
        supervisor.wake()
        for kind, worker in outbound.items():
            worker.wake()
            signals[kind].wake()

    inbounds = {channel.kind: Inbound(system, channel.authorized, NullMirror()) for channel in channels}
    observer = ObserverWorker(system, wake, ended=supervisor.wake, swept=swept.is_set)
    toolbox = _toolbox(system, requests.talk)
    facts = Facts(
        system,
        connections.rows,
        observer.tmux,
        observer.watching,
        events.counts,
        _dropped(inbounds),
        toolbox,
        _hooks(channels),
    )
    workers = [Worker(HTTP_ROW, 0, HttpHost(facts, connections.set).run)]
    for channel in channels:
        changes = Changes(system, channel.authorized)
        presses, orders = Presses(system, channel.holds, requests), Orders(system, channel.holds)
        inbound = inbounds[channel.kind]
        door = Door(
            system, connections, inbound, changes, delivery.wake, presses, orders, catching_up, delivery.at_once
        )
        workers.append(Worker(channel.kind, 0, _serving(channel, door)))
    workers.append(Worker("scheduler", 0, scheduler.run))
    workers.append(Worker("delivery", 1, delivery.run))
    workers += [Worker(f"outbound-{kind}", 2, worker.run) for kind, worker in outbound.items()]
    workers += [Worker(f"signals-{kind}", 2, worker.run) for kind, worker in signals.items()]
    workers.append(Worker("observer", 2, observer.run))
    workers.append(Worker("requests", 2, requests.run))
    workers.append(Worker("finisher", 0, Finisher(system).run))
    workers.append(Worker("supervisor", 0, supervisor.run))
    talks = {"request": requests.talk, "ask": requests.talk, "tool": _calls(system, toolbox)}
    return Service(system, workers, _sweeping(system, swept), connections, talks)


def _toolbox(system: System, ask: Callable[[Mapping[str, Any], Listener], None]) -> Callable[[], Toolbox]:
    """Return what makes the agents' tools at the first call of one, and imports what they need."""

    @cache
    def made() -> Toolbox:
        from core.tools.loops import loop_tools
        from core.tools.toolbox import Toolbox
        from core.tools.toolset import standard_tools

        return Toolbox(system, (*standard_tools(system, ask), *loop_tools(system)))

    return made


def _calls(system: System, toolbox: Callable[[], Toolbox]) -> Talk:
    def talk(line: Mapping[str, Any], peer: Peer) -> None:
        from core.tools.toolsocket import ToolSocket

        ToolSocket(system, toolbox()).talk(line, peer)

    return talk


def _sweeping(system: System, swept: threading.Event) -> Callable[[], Mapping[str, Any]]:
    """Return the boot's sweep, after which the observer and the supervisor see to what it has left."""

    def sweep() -> Mapping[str, Any]:
        try:
            return start_all(system, "supervisor").to_json()
        finally:
            swept.set()

    return sweep


def _counted(system: System) -> tuple[System, CountingEvents]:
    """Return the system with an event log that counts, for itself and for what reports and restarts bring about."""
    events = CountingEvents(system.events)
    counted = replace(system, events=events)
    return replace(
        counted,
        ingest=lambda uid: ingest(counted, uid),
        bring_back=lambda record: plan_for_keep_alive(counted, record),
    ), events


def _dropped(inbounds: Mapping[str, Inbound]) -> Callable[[], Mapping[str, int]]:
    return lambda: sum((inbound.counters for inbound in inbounds.values()), Counter[str]())


def _hooks(channels: Sequence[Channel]) -> Mapping[str, WebHook]:
    found = {channel.kind: channel.webhook() for channel in channels}
    return {kind: hook for kind, hook in found.items() if hook is not None}


def _serving(channel: Channel, door: Door) -> Callable[[threading.Event], None]:
    def run(stopping: threading.Event) -> None:
        channel.serve(door, stopping.is_set)
        stopping.wait()  # a channel that gave up has said so; the sessions go on without it

    return run


def _enabled_channels(settings: Settings, environ: Mapping[str, str]) -> tuple[Channel, ...]:
    return tuple(load_channel(name, settings, environ) for name, block in settings.channels.items() if block.enabled)


def _authorized(system: System, channels: Sequence[Channel]) -> Callable[[InboxRow], bool]:
    """Return the question that delivery asks of a row right before the pane is written to: may its author, still?"""
    questions = {channel.kind: authorized_rows(system, channel.authorized) for channel in channels}

    def ask(row: InboxRow) -> bool:
        kind = chat_of(system.settings, row)
        return kind is None or (kind in questions and questions[kind](row))

    return ask


def _answering(typed: Mapping[str, TypedAnswers]) -> Callable[[Sequence[InboxRow]], InboxRow | None]:
    """Return what settles a reply that answers an open question, whichever chat it came from."""

    def settle(rows: Sequence[InboxRow]) -> InboxRow | None:
        taken = (answers.take(rows) for answers in typed.values())
        return next((row for row in taken if row is not None), None)

    return settle
