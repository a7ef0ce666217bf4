"""A real Bolt app on the workspace, run on a loop of its own so that tests stay synchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from embedded.workspace.thread import WorkspaceThread

_SECONDS = 40.0  #: for what comes in a moment


class BoltBot:
    """AsyncApp with AsyncSocketModeHandler; what its message listener hears lands in `heard`."""

    def __init__(self, workspace: WorkspaceThread) -> None:
        self._workspace = workspace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bolt", daemon=True)
        self._handler: AsyncSocketModeHandler | None = None
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self.app = AsyncApp(client=AsyncWebClient(workspace.bot_token, base_url=workspace.api_url))

    def start(self, configure: Callable[[AsyncApp], None] = lambda app: None) -> Self:
        """Register the listeners, connect, and return once the workspace counts the socket."""
        self._thread.start()
        self.run(self._connect(configure))
        self._workspace.wait_for_connections(1)
        return self

    def stop(self) -> None:
        """Close the socket and end the thread."""
        if self._handler is not None:
            self.run(self._handler.close_async())  # type: ignore[no-untyped-call]
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()

    def next_event(self) -> dict[str, Any]:
        """Return the next message event that was heard."""
        return self.heard.get(timeout=_SECONDS)

    async def _connect(self, configure: Callable[[AsyncApp], None]) -> None:
        async def hear(event: dict[str, Any]) -> None:
            self.heard.put(event)

        self.app.event("message")(hear)
        configure(self.app)
        self._handler = AsyncSocketModeHandler(self.app, self._workspace.app_token, ping_interval=1)
        await self._handler.connect_async()  # type: ignore[no-untyped-call]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the app's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)
