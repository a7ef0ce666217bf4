"""One socket to its end: nothing of it is left to the garbage collector, however it ends."""

from __future__ import annotations

import asyncio

import pytest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from bot.clients import async_web_client
from bot.connection import Socket
from bot.settings import SlackSettings
from embedded.workspace.thread import WorkspaceThread


async def opened(workspace: WorkspaceThread, begun: asyncio.Event | None = None) -> Socket:
    """Return a greeted socket whose envelopes are never done with; `begun` is set once one is in hand."""

    async def handle(_client: SocketModeClient, _request: SocketModeRequest) -> None:
        if begun is not None:
            begun.set()
        await asyncio.Event().wait()

    client = async_web_client(SlackSettings.of({"apiUrl": workspace.api_url}))
    answer = await client.apps_connections_open(app_token=workspace.app_token)
    made = Socket(client, str(answer["url"]), handle, 0.5, 30.0)
    await made.connect()
    async with asyncio.timeout(5):
        await made.hello
    return made


async def has_one_in_hand(workspace: WorkspaceThread, begun: asyncio.Event) -> None:
    """Let an envelope come, and return once it is in hand."""
    await asyncio.to_thread(workspace.say, "alice", "agents", "hello")
    async with asyncio.timeout(5):
        await begun.wait()


def left(socket: Socket) -> list[str]:
    """Return what of the socket is still open."""
    session = socket.current_session
    parts = {"socket": session is None or session.closed, "client session": socket.aiohttp_client_session.closed}
    return [name for name, closed in parts.items() if not closed]


@pytest.mark.parametrize("how", ["idle", "handling", "silence", "rst", "fin"])
async def test_an_ended_socket_is_closed(workspace: WorkspaceThread, how: str) -> None:
    """Also while an envelope is in hand that nobody will ever be done with, or nothing answers any more."""
    begun = asyncio.Event()
    socket = await opened(workspace, begun)
    if how == "handling":
        await has_one_in_hand(workspace, begun)
    elif how != "idle":
        await asyncio.to_thread(workspace.break_sockets, how)

    await socket.end(0.2)

    assert left(socket) == []


@pytest.mark.parametrize("after", [0.0, 0.05])
async def test_an_end_that_is_cut_short_closes_it_all_the_same(workspace: WorkspaceThread, after: float) -> None:
    """A service that is stopped while it stops."""
    begun = asyncio.Event()
    socket = await opened(workspace, begun)
    await has_one_in_hand(workspace, begun)
    ending = asyncio.ensure_future(socket.end(5.0))
    await asyncio.sleep(after)

    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)

    assert left(socket) == []
