"""A sweeper on a real client, without a socket, and a workspace whose time a test moves on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.app import Self
from bot.backfill import Looked, Sweeper, SweepPace
from bot.clients import Tokens, async_web_client
from bot.directory import Directory
from bot.intake import AsyncDoor, Intake
from bot.payloads import Identity
from bot.settings import SlackSettings
from core.model.channel import BoundThread, IncomingChange
from embedded.workspace import model
from embedded.workspace.shapes import bot_fields
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import SWEEP_PACE, Door


class Hand:
    """A clock that moves on only by hand; the workspace and the sweeper go by it."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> datetime:
        """Return its time."""
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        """Return the machine's."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Let that much pass at once."""
        self.at += seconds


@contextmanager
def by_hand() -> Iterator[Hand]:
    """Let the time of all workspaces of this process be that of a hand."""
    hand = Hand()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "now", lambda: hand.at)
        yield hand


class Remembering(Door):
    """Knows which replies it has, as core does: every second one waits, the others were typed."""

    def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the threads with what is known of their replies."""
        return tuple(self._with_known(thread) for thread in super().threads(channel_kind, team))

    def _with_known(self, thread: BoundThread) -> BoundThread:
        gone = {change.reply.ts for change in self.changes if change.deleted}
        place = (thread.channel, thread.thread)
        mine = [reply.ts for reply in self.replies if (reply.channel, reply.thread) == place and reply.ts not in gone]
        waiting = tuple(ts for ts in dict.fromkeys(mine) if self.waits(ts))
        return replace(thread, waiting=waiting, taken=tuple(ts for ts in dict.fromkeys(mine) if ts not in waiting))

    def waits(self, ts: str) -> bool:
        """Return whether a reply is one of those that wait."""
        return int(ts[-6:]) % 2 == 0

    def first_sights(self) -> list[tuple[str, str]]:
        """Return time stamp and text of each reply, once, in order."""
        return list(dict.fromkeys((reply.ts, reply.text) for reply in self.replies))

    def changed_while_waiting(self) -> set[tuple[str, str, bool]]:
        """Return the edits and deletions of those that wait."""
        return {self._change(change) for change in self.changes if self.waits(change.reply.ts)}

    def _change(self, change: IncomingChange) -> tuple[str, str, bool]:
        return change.reply.ts, change.reply.text, change.deleted


class Counting:
    """The calls of a client, in order."""

    def __init__(self, client: AsyncWebClient) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._ask = client.api_call
        client.api_call = self._asked  # type: ignore[method-assign]

    async def _asked(self, api_method: str, **arguments: Any) -> Any:
        self.calls.append((api_method, dict(arguments.get("params") or {})))
        return await self._ask(api_method, **arguments)

    def of(self, method: str) -> int:
        """Return how many there were of a method."""
        return sum(called == method for called, _ in self.calls)

    def read(self) -> list[str]:
        """Return the threads that were read, in order, one that has several pages once."""
        asked = (str(given["ts"]) for called, given in self.calls if called == "conversations.replies")
        return list(dict.fromkeys(asked))


class Sweeps:
    """A sweeper in an event loop of its own, which stands still between two sweeps."""

    def __init__(self, workspace: WorkspaceThread, door: Door, clock: Hand, pace: SweepPace = SWEEP_PACE) -> None:
        self._runner = asyncio.Runner()
        settings = SlackSettings.of(
            {"enabled": True, "apiUrl": workspace.api_url, "authorizedUsers": [workspace.user_id("alice")]}
        )
        tokens, own = Tokens(settings, {"THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token}), Self()
        own.identity = Identity(workspace.team_id, workspace.bot_user_id, workspace.bot_id, "the-loop")
        client = async_web_client(settings)
        self.calls = Counting(client)
        self._door = AsyncDoor(door)
        self._intake = Intake(self._door, Directory(client, tokens, clock), settings, clock)
        self.sweeper = self._runner.run(self._made(client, tokens, own, clock, pace))

    async def _made(self, client: AsyncWebClient, tokens: Tokens, own: Self, clock: Hand, pace: SweepPace) -> Sweeper:
        sweeper = Sweeper(client, tokens, own, self._door, self._intake, clock, pace)
        self._intake.missed = sweeper.missed
        return sweeper

    def look(self, *, only_new: bool = False) -> Looked:
        """Sweep once, and return what came of it; the calls of an earlier sweep are forgotten."""
        self.calls.calls.clear()
        return self._runner.run(self._looked(only_new))

    async def _looked(self, only_new: bool) -> Looked:
        taking = asyncio.ensure_future(self._intake.run())
        try:
            return await self.sweeper.look(only_new=only_new)
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    def close(self) -> None:
        """End the loop and the threads."""
        with closing(self._door):
            self._runner.close()


@contextmanager
def sweeping(workspace: WorkspaceThread, door: Door, clock: Hand, pace: SweepPace = SWEEP_PACE) -> Iterator[Sweeps]:
    """Give a sweeper."""
    with closing(Sweeps(workspace, door, clock, pace)) as sweeps:
        yield sweeps


def announce(workspace: WorkspaceThread, channel: str, name: str, thread: str = "") -> str:
    """Post as the bot, a root or an answer, and return the ts."""

    def post(controls: Any) -> str:
        room = controls._room
        fields = {**bot_fields(room.main_app, room.team["id"]), "text": f"{name} is up"}
        place = controls.channel(channel)
        return str(room.posting.post(place, fields | ({"thread_ts": thread} if thread else {}))["ts"])

    return workspace.do(post)


def bind(door: Door, channel: str, name: str, root: str, cursor: str = "", *, shared: bool = True) -> None:
    """Let the door know a thread that was read up to the cursor; the channel `agents` is a shared one."""
    door.bound.append(BoundThread(name, channel, root, cursor or root, shared))
