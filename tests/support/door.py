"""Core's door for a chat of the tests."""

from collections.abc import Callable, Collection

from core.conversation.catchingup import CatchingUp
from core.conversation.changing import Changes
from core.conversation.door import Door
from core.conversation.inbound import Inbound
from core.conversation.mirroring import NullMirror
from core.conversation.ordering import Orders
from core.conversation.pressing import Presses
from core.observing.asking import Requests
from core.process.connections import Connections
from core.system import System
from tests.support.chat import Chat


def door_of(system: System, chat: Chat, at_once: Callable[[Collection[str]], None] = lambda uids: None) -> Door:
    """Return core's side of a chat; `at_once`: the way into the terminals of these sessions."""
    return Door(
        system,
        Connections([]),
        Inbound(system, chat.authorized, NullMirror()),
        Changes(system, chat.authorized),
        lambda: None,
        Presses(system, chat.holds, Requests(system)),
        Orders(system, chat.holds),
        CatchingUp(system.clock, system.bindings),
        at_once,
    )
