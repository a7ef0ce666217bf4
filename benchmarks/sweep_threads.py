"""How many calls a sweep of a thousand threads takes, ten of which have news.

Ours is the sweeper on the service's own client and door, at a workspace in this process: all calls count. The floor is
one call for each page of the channel's history and one for each thread with news. No time is measured: at Slack each
call of a reading method takes its turn, 1.2 s after the one before.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from benchmarks.measuring import Ratio, report
from benchmarks.stage import stage
from bot.app import Self
from bot.backfill import Sweeper, SweepPace
from bot.clients import Tokens, async_web_client
from bot.directory import Directory
from bot.intake import AsyncDoor, Intake
from bot.payloads import KIND, Identity
from bot.settings import SlackSettings
from core.base.clock import SystemClock
from core.base.names import new_uid
from core.chat.api import ChatApi
from core.chat.backfill import CatchingUp
from core.chat.commands import Orders
from core.chat.creating import Creations
from core.chat.inbound import Changes, Inbound, NullMirror
from core.chat.presses import Presses
from core.chat.tasks import TaskIntake
from core.delivery.permission_requests import Requests
from core.model.asking import Role
from core.model.session import Binding, Definition, SessionRecord
from core.process.presence import Connections
from core.session.system import System
from core.store.tasks import Tasks
from embedded.workspace import model
from embedded.workspace.controls import Controls
from embedded.workspace.shapes import bot_fields
from embedded.workspace.thread import WorkspaceThread

BOUND = 2.0
THREADS, NEWS, PAGE = 1_000, 10, 200
CHANNEL = "agents"
_APART = 600.0  #: seconds between what is said in two threads
_DAYS_AGO = 14 * 86_400.0


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the calls."""
    with WorkspaceThread() as workspace, stage() as here:
        here.configure({"channels": {"slack": {"authorizedUsers": [workspace.user_id("alice")]}}})
        system = here.system()
        try:
            _announce(workspace, system)
            calls = asyncio.run(_sweep(workspace, system))
        finally:
            system.close()
    pages = math.ceil((THREADS + 1) / PAGE)
    ours, floor = (
        f"calls of a sweep of {THREADS:,} threads, {NEWS} of them with news",
        "a call for each page and each of",
    )
    yield Ratio(ours, f"{floor} these", "calls", (float(calls),), (float(pages + NEWS),), BOUND)


def _announce(workspace: WorkspaceThread, system: System) -> None:
    """Announce each session and answer once in its thread, bind it as read up to there, then say something in ten."""
    with _clock() as clock:
        for number, (root, answer) in enumerate(workspace.do(lambda controls: _threads(controls, clock))):
            name, uid, now = f"session-{number:04}", new_uid(), system.clock.now()
            system.records.write(SessionRecord(name, uid, Definition(name), now))
            place = Binding(KIND, workspace.team_id, workspace.channel_id(CHANNEL), root, uid, name, now, shared=True)
            system.bindings.bind(place)
            with system.database.transaction(durable=False):
                system.bindings.move_cursor(place, answer)
                system.bindings.note_sharing(place, shared=True)
            if number % (THREADS // NEWS) == 0:
                workspace.say("alice", CHANNEL, "news", root)


@contextmanager
def _clock() -> Iterator[list[float]]:
    """Let the workspace go by a clock of ours, which is the only item of the list."""
    real, clock = model.now, [model.now() - _DAYS_AGO]
    setattr(model, "now", lambda: clock[0])  # noqa: B010  mypy takes no other function for it
    try:
        yield clock
    finally:
        setattr(model, "now", real)  # noqa: B010


def _threads(controls: Controls, clock: list[float]) -> list[tuple[str, str]]:
    """Return the time stamps of each announcement and of the answer in its thread."""
    room, channel = controls._room, controls.channel(CHANNEL)
    fields = {**bot_fields(room.main_app, room.team["id"]), "text": "standing session is up"}
    made = []
    for _ in range(THREADS):
        root = room.posting.post(channel, fields)["ts"]
        clock[0] += 1
        made.append((root, room.posting.post(channel, fields | {"thread_ts": root})["ts"]))
        clock[0] += _APART
    room.posting.post(channel, fields)
    return made


def _door(system: System) -> ChatApi:
    def holds(author: str, role: Role) -> bool:
        return role is Role.MEMBER

    def authorized(author: str) -> bool:
        return True

    return ChatApi(
        system,
        Connections([]),
        Inbound(system, authorized, NullMirror()),
        Changes(system, authorized),
        lambda: None,
        Presses(system, holds, Requests(system)),
        Orders(system, KIND, holds),
        Creations(system, KIND, holds),
        CatchingUp(system.clock, system.bindings),
        lambda uids: None,
        lambda role: "",
        TaskIntake(system, Tasks(system.database), KIND, holds, threading.Event()),
    )


async def _sweep(workspace: WorkspaceThread, system: System) -> int:
    """Sweep once, as after a start, and return the number of calls; each thread with news must have been read."""
    block = {"enabled": True, "apiUrl": workspace.api_url, "authorizedUsers": [workspace.user_id("alice")]}
    settings, own, clock = SlackSettings.of(block), Self(), SystemClock()
    tokens = Tokens(settings, {"THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token})
    own.identity = Identity(workspace.team_id, workspace.bot_user_id, workspace.bot_id, "the-loop")
    client = async_web_client(settings)
    calls = _counted(client)
    with closing(AsyncDoor(_door(system))) as door:
        intake = Intake(door, Directory(client, tokens, clock), settings, clock)
        sweeper = Sweeper(client, tokens, own, door, intake, clock, SweepPace(between=0.0))
        taking = asyncio.ensure_future(intake.run())
        looked = await sweeper.look()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
    taken = sum(bool(system.inbox.of_thread(binding)) for binding in system.bindings.all(KIND))
    if (looked.read, looked.unread, taken) != (THREADS, 0, NEWS):
        raise RuntimeError(f"the sweep is not whole: {looked}, {taken} threads with a reply")
    return len(calls)


def _counted(client: AsyncWebClient) -> list[str]:
    """Return the list of the client's calls, which grows with each."""
    calls: list[str] = []
    ask = client.api_call

    async def asked(api_method: str, **arguments: Any) -> Any:
        calls.append(api_method)
        return await ask(api_method, **arguments)

    client.api_call = asked  # type: ignore[method-assign]
    return calls


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
