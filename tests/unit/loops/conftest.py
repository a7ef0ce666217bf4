"""A the-loop with two recorded sessions and a clock that the test sets; nothing runs in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.values import replace
from core.config.settings import ChannelBlock, Settings
from core.model.session import ChatBinding, Definition, SessionRecord, Status
from core.service.wiring import build_system
from core.session.system import System
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.loops import Loops
from tests.unit.store.samples import NOON, StandingClock


def a_session(name: str) -> SessionRecord:
    """Return the record of a session with a thread that should run."""
    definition = Definition(name, chat={"slack": ChatBinding(True)})
    return SessionRecord(name, f"s-{name}", definition, NOON, instance_id=f"i-{name}", status=Status.RUNNING)


@pytest.fixture
def clock() -> StandingClock:
    """Return a clock that stands still."""
    return StandingClock()


@pytest.fixture
def system(tmp_path: Path, clock: StandingClock) -> Iterator[System]:
    """Return the ports of a the-loop with the sessions scribe and other."""
    settings = Settings(tmp_path / "state", channels={"slack": ChannelBlock("slack", True)})
    built = build_system(settings, {})
    database = built.database
    assert isinstance(database, Database)
    system = replace(built, clock=clock, inbox=Inbox(database, clock), loops=Loops(database, clock))
    for name in ("scribe", "other"):
        system.records.write(a_session(name))
    yield system
    system.close()
