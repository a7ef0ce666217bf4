"""A Slack-compatible workspace on loopback: the embedded default, and the other side of the tests.

It stands alone: it imports nothing of the product. `Workspace` runs on an event loop, `WorkspaceThread` serves
synchronous callers, `python -m embedded.workspace` is the program.
"""

from __future__ import annotations

from embedded.workspace.model import ControlError
from embedded.workspace.room import Outcome
from embedded.workspace.server import Workspace
from embedded.workspace.thread import WorkspaceThread

__all__ = ["ControlError", "Outcome", "Workspace", "WorkspaceThread"]
