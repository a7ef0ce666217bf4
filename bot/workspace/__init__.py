"""A Slack-compatible workspace on loopback: the embedded default, and the other side of the tests.

It stands alone: it imports nothing of the product. `Workspace` runs on an event loop, `WorkspaceThread` serves
synchronous callers, `python -m bot.workspace` is the program.
"""

from __future__ import annotations

from bot.workspace.errors import ControlError
from bot.workspace.interactions import Outcome
from bot.workspace.server import Workspace
from bot.workspace.thread import WorkspaceThread

__all__ = ["ControlError", "Outcome", "Workspace", "WorkspaceThread"]
