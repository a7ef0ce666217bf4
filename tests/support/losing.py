"""A session whose database was lost while its thread stands in the chat; also as a service's turn that can be killed.

As a program, given WORLD.json and UID, it takes one turn over a chat whose thread belongs to that session.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from core.chat.outbound import OutboundWorker
from core.config.settings import ChannelBlock
from core.model.session import SessionRecord, Thread
from core.session.system import System
from tests.support.chat import HOME, Chat, Message
from tests.support.outgoing import HandClock
from tests.support.talking import talking
from tests.support.world import declaring, definition, load

THREAD = "1700.000000"
T0 = datetime(2026, 11, 29, tzinfo=UTC)


def thread_of(uid: str) -> Chat:
    """Return a chat with a thread of a session `scribe`, in which the last word is a person's."""
    root = Message("p-up-i-1", HOME, "", THREAD, "scribe is up", "root", "scribe", uid)
    answer = Message("p-answer-1", HOME, THREAD, "1700.000001", "done", "answer", "scribe", uid)
    return Chat(messages=[root, answer], written=["1700.000005"])


def without_database(system: System, clock: HandClock, channel: str = HOME) -> System:
    """Return the ports with `scribe` recorded in its thread, and announced in that channel from now on."""
    block = ChannelBlock("slack", True, {"enabled": True, "channel": channel})
    declared = declaring(system, definition("scribe", slack=True))
    settings = declared.settings._replace(channels={"slack": block})
    record = SessionRecord("scribe", "s-1", definition("scribe", slack=True), T0, instance_id="i-1")
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(replace(record, thread=Thread("slack", HOME, THREAD)))
    return replace(declared, settings=settings, clock=clock)


def main(arguments: Sequence[str]) -> int:
    """Take one turn in the described world."""
    path, uid = arguments
    ports = without_database(talking(load(Path(path))), HandClock())
    OutboundWorker(ports, thread_of(uid)).turn()
    return 0
