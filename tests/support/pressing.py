"""Presses a button of an announcement, as a process that can be killed: WORLD.json ACTION UID."""

from collections.abc import Sequence
from pathlib import Path

from core.base.values import replace
from core.chat.presses import Presses
from core.delivery.permission_requests import Requests
from core.lifecycle.start import start_standing
from core.model.channel import IncomingPress
from core.model.session import Binding
from core.session.system import System
from tests.support.talking import record_of, talking
from tests.support.world import ACTOR, World, load

THREAD = "1700.000001"


def with_slack(system: System) -> System:
    """Return the ports with a configuration that has the channel."""
    channels = {"slack": system.settings.channel("slack")._replace(enabled=True)}
    return replace(system, settings=system.settings._replace(channels=channels))


def threaded(world: World) -> System:
    """Return the ports of a world whose session `scribe` runs, with a thread, in a configuration with the channel."""
    system = with_slack(talking(world))
    assert start_standing(system, "scribe", ACTOR).ok
    uid, _ = record_of(system)
    system.bindings.bind(Binding("slack", "T1", "C1", THREAD, uid, "scribe", system.clock.now()))
    return system


def press(system: System, action: str, uid: str) -> str:
    """Press it as somebody who may, and return what they are told."""
    made = IncomingPress("slack", "T1", "C1", THREAD, THREAD, "U1", "ann", "T1", False, action, uid)
    return Presses(system, lambda _, __: True, Requests(system)).press(made).text


def main(arguments: Sequence[str]) -> int:
    """Press it, and print what whoever pressed is told."""
    path, action, uid = arguments
    print(press(with_slack(talking(load(Path(path)))), action, uid))
    return 0
