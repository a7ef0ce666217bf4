"""Presses a button of an announcement, as a process that can be killed: WORLD.json ACTION UID."""

from collections.abc import Sequence
from pathlib import Path

from core.base.values import replace
from core.chat.presses import Presses
from core.delivery.permission_requests import Requests
from core.model.channel import IncomingPress
from core.session.system import System
from tests.support.talking import talking
from tests.support.world import load

THREAD = "1700.000001"


def with_slack(system: System) -> System:
    """Return the ports with a configuration that has the channel."""
    channels = {"slack": system.settings.channel("slack")._replace(enabled=True)}
    return replace(system, settings=system.settings._replace(channels=channels))


def press(system: System, action: str, uid: str) -> str:
    """Press it as somebody who may, and return what they are told."""
    made = IncomingPress("slack", "T1", "C1", THREAD, THREAD, "U1", "ann", "T1", False, action, uid)
    return Presses(system, lambda _, __: True, Requests(system)).press(made).text


def main(arguments: Sequence[str]) -> int:
    """Press it, and print what whoever pressed is told."""
    path, action, uid = arguments
    print(press(with_slack(talking(load(Path(path)))), action, uid))
    return 0
