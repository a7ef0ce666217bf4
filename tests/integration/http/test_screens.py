"""Terminals are looked at while somebody watches, once for all who do, and at no other time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import UnknownSession
from core.http import screens
from core.http.screens import Screens, TooManyWatchers
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.session.system import System
from tests.support.tmux import PATIENCE, private_tmux
from tests.support.world import ACTOR, World

NAME = "scribe"


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A session whose program runs in a real pane."""
    with private_tmux() as private:
        world = World(tmp_path, private.server.socket_name, private.folder, declared=(NAME,))
        world.store.mkdir()
        world.cwd.mkdir()
        ports = world.system()
        start_standing(ports, NAME, ACTOR)
        yield ports
        stop_standing(ports, NAME, ACTOR, "")
        ports.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The looks that were really made."""
    made: list[float] = []
    real = screens.look_at

    def counted(system: System, name: str) -> dict[str, Any]:
        made.append(system.clock.monotonic())
        return real(system, name)

    monkeypatch.setattr(screens, "look_at", counted)
    return made


async def first_of(watching: AsyncIterator[bytes]) -> dict[str, Any]:
    """Return the first look."""
    told: dict[str, Any] = json.loads(await asyncio.wait_for(anext(watching), PATIENCE))
    return told


async def test_looking_ends_with_the_last_who_watches(system: System, looks: list[float]) -> None:
    """Two are served by one look; when both have gone, no terminal is looked at any more."""
    live = Screens(system, threading.Event())
    one, other = live.lines(NAME), live.lines(NAME)
    seen = await first_of(one), await first_of(other)
    shared = len(looks)
    await one.aclose()
    await other.aclose()
    await asyncio.sleep(0.3)
    made = len(looks)
    await asyncio.sleep(1.5)

    assert seen[0] == seen[1]
    assert seen[0]["columns"] == 200
    assert shared == 1
    assert len(looks) == made


async def test_a_quiet_screen_is_looked_at_less_often(system: System, looks: list[float]) -> None:
    """Within three seconds of nothing new there are a few looks, and no line for each."""
    live = Screens(system, threading.Event())
    watching = live.lines(NAME)
    await first_of(watching)
    await asyncio.sleep(3)
    await watching.aclose()

    assert len(looks) <= 10
    assert all(later - earlier >= 0.14 for earlier, later in pairwise(looks))


async def test_an_ended_terminal_is_told_with_its_last_output(system: System) -> None:
    """Whoever watches sees how it ended, and the stream goes on for the next start."""
    live = Screens(system, threading.Event())
    watching = live.lines(NAME)
    before = await first_of(watching)
    await asyncio.to_thread(stop_standing, system, NAME, ACTOR, "")
    after = before
    while not after.get("ended"):
        after = json.loads(await asyncio.wait_for(anext(watching), PATIENCE) or b"{}")
    await asyncio.to_thread(start_standing, system, NAME, ACTOR)
    again: dict[str, Any] = {}
    while "instance" not in again:
        again = json.loads((await asyncio.wait_for(anext(watching), PATIENCE)).strip() or b"{}")
    await watching.aclose()

    assert again["instance"] != before["instance"]


async def test_so_many_may_watch(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is told so; a session that is not there is named before anything begins."""
    monkeypatch.setattr(screens, "MOST_WATCHERS", 1)
    live = Screens(system, threading.Event())
    live.check(NAME)
    watching = live.lines(NAME)
    await first_of(watching)

    with pytest.raises(TooManyWatchers):
        live.check(NAME)
    with pytest.raises(UnknownSession):
        live.check("nobody")
    await watching.aclose()
    live.check(NAME)


async def test_a_service_that_ends_ends_the_streams(system: System) -> None:
    """Within the time that requests get at its end."""
    stopping = threading.Event()
    live = Screens(system, stopping)
    watching = live.lines(NAME)
    await first_of(watching)
    stopping.set()

    async with asyncio.timeout(5):
        rest = [line async for line in watching]

    assert len(rest) <= 1
