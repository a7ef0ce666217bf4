"""Core's door for a chat of the tests."""

import threading
from collections.abc import Callable, Collection

from core.chat.api import ChatApi
from core.chat.backfill import CatchingUp
from core.chat.commands import Orders
from core.chat.creating import Creations
from core.chat.inbound import Changes, Inbound, NullMirror
from core.chat.presses import Presses
from core.chat.tasks import TaskIntake
from core.delivery.permission_requests import Requests
from core.process.presence import Connections
from core.session.system import System
from core.store.tasks import Tasks
from tests.support.chat import Chat


def door_of(
    system: System,
    chat: Chat,
    at_once: Callable[[Collection[str]], None] = lambda uids: None,
    catching_up: CatchingUp | None = None,
) -> ChatApi:
    """Return core's side of a chat; `at_once`: the way into the terminals of these sessions."""
    return ChatApi(
        system,
        Connections([]),
        Inbound(system, chat.authorized, NullMirror()),
        Changes(system, chat.authorized),
        lambda: None,
        Presses(system, chat.has_role, Requests(system)),
        Orders(system, "slack", chat.has_role),
        Creations(system, "slack", chat.has_role),
        catching_up or CatchingUp(system.clock, system.bindings),
        at_once,
        chat.typed,
        TaskIntake(system, Tasks(system.database), "slack", chat.has_role, threading.Event()),
    )
