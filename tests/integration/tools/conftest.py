"""A real service, and the official MCP client on both of its doors.

The client is imported where it is used: every worker reads this module, and few are given a test of it. It is a quarter
of what all modules of the tests take to import.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.integration.http.conftest import Web
from tests.support.product import NAME, Product, Serving, product
from tests.support.tmux import wait_until

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp_types import CallToolResult

OTHER = "builder"


class Desk:
    """The product with its service up, seen from the desks of its agents."""

    def __init__(self, running: Product, serving: Serving | None = None) -> None:
        self.product = running
        self._serving = serving
        self.web = Web(running)

    def restart(self) -> None:
        """Restart the service."""
        assert self._serving is not None
        self._serving.stop()
        self._serving = self.product.serve().wait_swept()

    def folder(self, name: str = NAME) -> Path:
        """Return the session's folder."""
        return self.product.paths.session(self.product.record(name)["uid"])

    def token(self, name: str = NAME) -> str:
        """Return the session's token as it is now."""
        return (self.folder(name) / "mcp-token").read_text().strip()

    @asynccontextmanager
    async def http(self, token: str | None = None) -> AsyncIterator[ClientSession]:
        """Give a client of /mcp; the session's own unless another token is given."""
        import httpx2
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {self.token() if token is None else token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as client,
            streamable_http_client(f"{self.web.url}/mcp", http_client=client) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            yield session

    @asynccontextmanager
    async def stdio(self, name: str = NAME) -> AsyncIterator[ClientSession]:
        """Give a client of the program that the session's harness runs."""
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        folder = self.folder(name)
        arguments = ["-I", "-S", str(folder / "toolbridge.py"), str(folder / "mcp-token")]
        async with (
            stdio_client(StdioServerParameters(command=sys.executable, args=arguments)) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            yield session


async def called(session: ClientSession, tool: str, /, **arguments: Any) -> CallToolResult:
    """Call a tool."""
    from mcp_types import CallToolResult

    result = await session.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    return result


def error_of(result: CallToolResult) -> str:
    """Return the code of a failed call, "" of another."""
    return str(result.structured_content["error"]["code"]) if result.is_error else ""


def hire(desk: Desk) -> None:
    """Create the second session, `builder`."""
    made = desk.product.cli("standing", "create", OTHER, "--prompt", "Build.")
    assert made.code == 0, made.err


@contextmanager
def talking_desk() -> Iterator[Desk]:
    """Give a service whose session has a thread in a workspace, for the block."""
    with WorkspaceThread() as workspace, product(workspace) as running:
        serving = running.serve().wait_swept()
        thread = running.root()
        running.wait_reply(thread, "Ready.")
        wait_until(lambda: running.cli("standing", "get", NAME, "--json").json["slackThread"], "the thread is known")
        yield Desk(running, serving)


@pytest.fixture
def alone() -> Iterator[Product]:
    """Give a product without a channel."""
    with product() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Desk]:
    """Give a service with both sessions to all of a module's tests that leave things as they are."""
    with product() as running:
        desk = Desk(running, running.serve().wait_swept())
        hire(desk)
        yield desk


@pytest.fixture(scope="module")
def threaded() -> Iterator[Desk]:
    """Give a service whose session has a thread, to all of a module's tests that only speak there."""
    with talking_desk() as desk:
        yield desk


@pytest.fixture
def desk(alone: Product) -> Desk:
    """Give a service whose session `scribe` runs."""
    return Desk(alone, alone.serve().wait_swept())


@pytest.fixture
def both(desk: Desk) -> Desk:
    """Give a service with a second session, `builder`."""
    hire(desk)
    return desk


@pytest.fixture
def talking() -> Iterator[Desk]:
    """Give a service whose session has a thread in a workspace."""
    with talking_desk() as desk:
        yield desk
