"""Socket Mode at the level of frames: greeting, tickets, acknowledgements, repeated deliveries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import ClientWebSocketResponse, WSMsgType

from embedded.workspace.server import Workspace

_SECONDS = 40.0  #: for what comes in a moment


@pytest_asyncio.fixture
async def running() -> AsyncIterator[Workspace]:
    """A workspace on the test's own loop, with short minutes."""
    workspace = Workspace(retry_scale=0.001, ack_seconds=0.2, ping_seconds=0.2)
    await workspace.start()
    yield workspace
    await workspace.stop()


@pytest_asyncio.fixture
async def patient() -> AsyncIterator[Workspace]:
    """A workspace that repeats nothing because its client took a moment."""
    workspace = Workspace(ack_seconds=_SECONDS)
    await workspace.start()
    yield workspace
    await workspace.stop()


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP client."""
    async with aiohttp.ClientSession() as opened:
        yield opened


async def test_hello_counts_the_connections(running: Workspace, session: aiohttp.ClientSession) -> None:
    """The greeting names the app and how many sockets it has; the server pings."""
    first = await _connect(running, session)
    second = await _connect(running, session)

    greetings = [await _frame(first), await _frame(second)]
    ping = await asyncio.wait_for(second.receive(), _SECONDS)

    assert [greeting["type"] for greeting in greetings] == ["hello", "hello"]
    assert [greeting["num_connections"] for greeting in greetings] == [1, 2]
    assert greetings[0]["connection_info"] == {"app_id": running.room.main_app.id}
    assert greetings[0]["debug_info"]["approximate_connection_time"] > 0
    assert ping.type is WSMsgType.PING


async def test_ticket_opens_one_socket_only(running: Workspace, session: aiohttp.ClientSession) -> None:
    """A used ticket is refused."""
    url = running.room.sockets.open_ticket(running.room.main_app)
    await session.ws_connect(url)

    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect(url)

    assert refused.value.status == 403


async def test_eleventh_socket_is_too_many(running: Workspace, session: aiohttp.ClientSession) -> None:
    """Ten sockets are served; the next one is told so and closed."""
    served = [await _connect(running, session) for _ in range(10)]

    eleventh = await _connect(running, session)

    assert await _frame(eleventh) == _disconnect("too_many_websockets")
    assert (await _next(eleventh)).type is WSMsgType.CLOSE
    assert running.controls.connections() == len(served)


async def test_unacknowledged_event_comes_four_times(running: Workspace, session: aiohttp.ClientSession) -> None:
    """An event nobody acknowledges is repeated three times with its number and reason, then given up."""
    socket = await _greeted(running, session)

    running.controls.say("alice", "agents", "hello")
    envelopes = [await _frame(socket) for _ in range(4)]
    await running.room.changes.until(lambda: running.controls.given_up() or None, _SECONDS)

    assert [envelope["retry_attempt"] for envelope in envelopes] == [0, 1, 2, 3]
    assert [envelope["retry_reason"] for envelope in envelopes] == ["", "timeout", "timeout", "timeout"]
    assert len({envelope["payload"]["event_id"] for envelope in envelopes}) == 1
    assert len({envelope["envelope_id"] for envelope in envelopes}) == 4
    assert list(running.room.store.deliveries()) == []


async def test_acknowledged_event_comes_once(patient: Workspace, session: aiohttp.ClientSession) -> None:
    """An acknowledgement ends the deliveries; the payload is shaped as Slack's."""
    socket = await _greeted(patient, session)

    patient.controls.say("alice", "agents", "hello")
    envelope = await _frame(socket)
    await socket.send_json({"envelope_id": envelope["envelope_id"]})
    await patient.room.changes.until(lambda: not list(patient.room.store.deliveries()), _SECONDS)

    payload = envelope["payload"]
    assert (envelope["type"], envelope["accepts_response_payload"]) == ("events_api", False)
    assert (payload["type"], payload["api_app_id"]) == ("event_callback", patient.room.main_app.id)
    assert payload["authorizations"][0]["user_id"] == patient.room.main_app.bot_user
    assert payload["event_id"].startswith("Ev")
    assert isinstance(payload["event_time"], int)
    assert len(patient.controls.envelopes()) == 1


async def test_event_without_a_socket_is_among_the_repeated(running: Workspace, session: aiohttp.ClientSession) -> None:
    """What happened while no socket was open comes with a later delivery."""
    running.room.events.hold()
    running.controls.say("alice", "agents", "hello")
    running.room.events.release()
    await running.room.changes.until(lambda: _attempts(running) == [2] or None, _SECONDS)

    socket = await _greeted(running, session)
    envelope = await _frame(socket)

    assert envelope["retry_attempt"] >= 2
    assert envelope["payload"]["event"]["text"] == "hello"


async def test_envelope_goes_to_one_of_the_sockets(patient: Workspace, session: aiohttp.ClientSession) -> None:
    """Of two sockets exactly one gets an event."""
    sockets = [await _greeted(patient, session), await _greeted(patient, session)]
    waits = [asyncio.create_task(_frame(socket)) for socket in sockets]

    patient.controls.say("alice", "agents", "hello")
    done, waiting = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=_SECONDS)
    envelope = done.pop().result()
    await sockets[waits.index(next(task for task in waits if task not in waiting))].send_json(
        {"envelope_id": envelope["envelope_id"]}
    )
    await patient.room.changes.until(lambda: not list(patient.room.store.deliveries()), _SECONDS)

    assert len(patient.controls.envelopes()) == 1
    assert len(waiting) == 1
    waiting.pop().cancel()


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled"])
async def test_disconnect_frames(running: Workspace, session: aiohttp.ClientSession, reason: str) -> None:
    """A warning leaves the socket open; link_disabled closes it and no further ticket is given."""
    socket = await _greeted(running, session)

    await running.controls.disconnect(reason)

    assert await _frame(socket) == _disconnect(reason)
    assert running.room.main_app.socket_mode is (reason != "link_disabled")
    if reason == "link_disabled":
        assert (await _next(socket)).type is WSMsgType.CLOSE


async def test_silent_socket_answers_no_ping(running: Workspace, session: aiohttp.ClientSession) -> None:
    """A half-open socket swallows what is sent to it and answers nothing, while its connection stays up."""
    socket = await _greeted(running, session)
    await running.controls.break_sockets("silence")

    await socket.ping()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(socket.receive(), 0.6)
    assert not socket.closed


async def test_same_event_twice_with_attempt_zero(running: Workspace, session: aiohttp.ClientSession) -> None:
    """A repeated delivery can look like a first one: other envelope, same event."""
    socket = await _greeted(running, session)
    ts = running.controls.say("alice", "agents", "hello")
    first = await _acknowledged(socket)

    running.controls.redeliver(ts)
    second = await _acknowledged(socket)

    assert second["payload"] == first["payload"]
    assert (second["retry_attempt"], second["envelope_id"] != first["envelope_id"]) == (0, True)


async def test_lost_delivery_arrives_as_a_retry(running: Workspace, session: aiohttp.ClientSession) -> None:
    """When the first delivery is lost, the retry is the only copy."""
    socket = await _greeted(running, session)
    running.controls.lose_events(1)

    running.controls.say("alice", "agents", "hello")

    assert (await _acknowledged(socket))["retry_attempt"] == 1


async def _connect(workspace: Workspace, session: aiohttp.ClientSession) -> ClientWebSocketResponse:
    return await session.ws_connect(
        workspace.room.sockets.open_ticket(workspace.room.main_app), autoping=False, autoclose=False
    )


async def _greeted(workspace: Workspace, session: aiohttp.ClientSession) -> ClientWebSocketResponse:
    socket = await _connect(workspace, session)
    await _frame(socket)
    return socket


async def _next(socket: ClientWebSocketResponse) -> aiohttp.WSMessage:
    """Return the next frame that is no ping."""
    while True:
        message = await asyncio.wait_for(socket.receive(), _SECONDS)
        if message.type is not WSMsgType.PING:
            return message


async def _frame(socket: ClientWebSocketResponse) -> dict[str, Any]:
    return dict(json.loads((await _next(socket)).data))


async def _acknowledged(socket: ClientWebSocketResponse) -> dict[str, Any]:
    envelope = await _frame(socket)
    await socket.send_json({"envelope_id": envelope["envelope_id"]})
    return envelope


def _disconnect(reason: str) -> dict[str, Any]:
    debug = {"host": "applink-loopback", "build_number": 1, "approximate_connection_time": 18060}
    return {"type": "disconnect", "reason": reason, "debug_info": debug}


def _attempts(workspace: Workspace) -> list[int]:
    return [doc["attempt"] for _, doc in workspace.room.store.deliveries()]
