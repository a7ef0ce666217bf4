"""Chooses in a session's dialog, as a process that can be killed: WORLD.json NAME PLACE."""

from collections.abc import Sequence
from pathlib import Path

from core.chat.answering import Chooser
from core.delivery.permission_requests import Requests
from tests.support.talking import talking
from tests.support.world import load, recorded


def main(arguments: Sequence[str]) -> int:
    """Choose what stands at that place of the open dialog, and print why that came to nothing."""
    path, name, place = arguments
    system = talking(load(Path(path)))
    record = recorded(system, name)
    [request] = system.requests.open(record.uid)
    print(Chooser(system, Requests(system)).choose(record, request, int(place), "alice", "slack:U1"))
    return 0
