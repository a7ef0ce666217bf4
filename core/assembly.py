"""Puts the service together from what wiring picks: channels, workers, and who wakes whom."""

import threading
from collections.abc import Callable, Mapping, Sequence

from core.config.settings import Settings
from core.delivery import Deliverer
from core.deliveryworker import DeliveryWorker
from core.domain.message import InboxRow
from core.door import Door
from core.finishing import Finisher
from core.inbound import Inbound, authorized_rows
from core.lifecycle import start_all
from core.mirroring import NullMirror
from core.outbound import OutboundWorker
from core.ports import Channel
from core.service import Connections, Service, Worker
from core.system import System
from core.watching import ObserverWorker
from core.wiring import build_system, load_channel


def build_service(settings: Settings, environ: Mapping[str, str]) -> Service:
    """Put the service together: control client, channels, workers. Raises ConfigError, ChannelMissing."""
    system = build_system(settings, environ, persistent=True)
    channels = _enabled_channels(settings, environ)
    delivery = DeliveryWorker(system, Deliverer(system, _authorized(channels)))
    outbound = {channel.kind: OutboundWorker(system, channel) for channel in channels}

    def wake(uid: str | None) -> None:
        delivery.wake(uid)
        for worker in outbound.values():
            worker.wake()

    connections = Connections([channel.kind for channel in channels])
    workers = [Worker(channel.kind, 0, _serving(system, channel, connections, delivery)) for channel in channels]
    workers.append(Worker("delivery", 1, delivery.run))
    workers += [Worker(f"outbound-{kind}", 2, worker.run) for kind, worker in outbound.items()]
    workers.append(Worker("observer", 2, ObserverWorker(system, wake).run))
    workers.append(Worker("finisher", 0, Finisher(system).run))
    return Service(system, workers, lambda: start_all(system, "supervisor").to_json(), connections)


def _serving(
    system: System, channel: Channel, connections: Connections, delivery: DeliveryWorker
) -> Callable[[threading.Event], None]:
    inbound = Inbound(system, channel.authorized, NullMirror())
    door = Door(system, connections, inbound.receive, delivery.wake)

    def run(stopping: threading.Event) -> None:
        channel.serve(door, stopping.is_set)
        stopping.wait()  # a channel that gave up has said so; the sessions go on without it

    return run


def _enabled_channels(settings: Settings, environ: Mapping[str, str]) -> tuple[Channel, ...]:
    return tuple(load_channel(name, settings, environ) for name, block in settings.channels.items() if block.enabled)


def _authorized(channels: Sequence[Channel]) -> Callable[[InboxRow], bool]:
    """Return the question that delivery asks of a row right before the pane is written to: may its author, still?"""
    questions = {channel.kind: authorized_rows(channel.authorized) for channel in channels}

    def ask(row: InboxRow) -> bool:
        address = row.message.address
        return address is None or (address.channel_kind in questions and questions[address.channel_kind](row))

    return ask
