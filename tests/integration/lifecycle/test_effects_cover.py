"""Whatever the verbs change outside this process stands in a named effect, and so has its crash points."""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.base.failpoints import Failpoint, current_failpoint, failpoint
from core.model.activity import ActivityState
from core.model.session import Binding
from core.session.system import System
from core.store.database import Database
from core.tmux.processes import Processes
from core.tmux.runner import Runner
from tests.integration.lifecycle.held import wait_for, work
from tests.support.world import VERBS, World, recorded, waiting_message

_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_OTHERS = (
    "delivery.",
    "watch.",
    "interrupt.",
    "take_back.",
    "loop.",
    "keep.",
    "rebind.",
    "fleet.",
    "dialog.",
    "live.",
    "task.",
)  #: effects of the service's workers
_NOT_THE_SESSIONS = (
    "locks",
    "events.jsonl",
    "the-loop.db",
    "poke",
)  #: nothing of a session; the database by its writes


class Watch:
    """Notes each change under a folder, each write of the database, and each call that changes tmux or processes."""

    def __init__(self) -> None:
        self.root: Path | None = None
        self.seen: list[tuple[str, Failpoint | None]] = []

    def note(self, what: str) -> None:
        """Note one change with the effect in which it is made."""
        self.seen.append((what, current_failpoint()))

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what the interpreter is about to do to a file."""
        if self.root is None or (event not in _CHANGES and event != "open"):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike) or not Path(path).is_relative_to(self.root):
            return
        if str(Path(path).relative_to(self.root)).startswith(_NOT_THE_SESSIONS):
            return
        self.note(f"{event} {path}")

    def wrap(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        """Let the real method note that it is called."""
        method: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(method)
        def noted(*arguments: Any, **named: Any) -> Any:
            if self.root is not None:
                self.note(f"{owner.__name__}.{name}")
            return method(*arguments, **named)

        monkeypatch.setattr(owner, name, noted)


_WATCH = Watch()  # an audit hook cannot be taken off again, so there is one, and it sleeps while `root` is None
sys.addaudithook(_WATCH.audit)


@pytest.fixture
def watch(world: World, system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Give the watch over the world's state folder."""
    for owner, name in (
        (Database, "write"),
        (Runner, "spawn"),
        (Runner, "end"),
        (Runner, "write"),
        (Runner, "paste_all"),
        (Processes, "end_trees"),
    ):
        _WATCH.wrap(monkeypatch, owner, name)
    with system.database.transaction(durable=False):
        pass  # makes folders and database, which are nobody's effect
    for folder in (system.paths.records, system.paths.spool, system.paths.local / "sessions"):
        folder.mkdir(mode=0o700)
    _WATCH.seen.clear()
    _WATCH.root = system.paths.local
    yield _WATCH
    _WATCH.root = None


@pytest.fixture
def world(world: World) -> World:
    """Give a world with threads and loops, so that announcements, closing notes and declared loops are committed."""
    return replace(world, slack=True, loops=True)


def run_every_verb(system: System) -> None:
    """Run each verb on a declared and on a created session, with a thread that is closed in the end."""
    VERBS["start"](system, "scribe")
    VERBS["restart"](system, "scribe")
    VERBS["pause"](system, "scribe")
    with failpoint(Failpoint.DELIVERY_SETTLE):  # stands for whoever says something
        waiting_message(system, "scribe")
    VERBS["cancel"](system, "scribe")
    VERBS["resume"](system, "scribe")
    VERBS["announce"](system, "scribe")
    VERBS["stop"](system, "scribe")
    VERBS["create"](system, "extra")
    record = system.records.read("extra")
    assert record is not None
    with failpoint(Failpoint.DELIVERY_SETTLE):  # stands for the service, which binds the thread that it has posted
        system.bindings.bind(Binding("slack", "T1", "C1", "1.1", record.uid, record.name, system.clock.now()))
    VERBS["start-all"](system, "")
    VERBS["delete"](system, "extra")
    VERBS["stop-all"](system, "")
    VERBS["reconcile"](system, "")


def test_no_verb_changes_anything_outside_of_an_effect(system: System, watch: Watch) -> None:
    """A change without a name would have no crash point, and no test would ever kill us there."""
    run_every_verb(system)

    assert [what for what, named in watch.seen if named is None] == []


def test_every_effect_of_the_verbs_changes_something(system: System, watch: Watch) -> None:
    """A name around nothing would be a crash point that proves nothing."""
    run_every_verb(system)

    verbs = {named for named in Failpoint if not named.value.startswith(_OTHERS)}
    assert verbs - {named for _, named in watch.seen} == set()


def test_an_interruption_changes_nothing_outside_of_its_effects(world: World, watch: Watch) -> None:
    """Its key and what it takes down are effects; what its harness reports is taken in besides, as ever."""
    system = replace(world, harness="bundled", slack=False).system()
    VERBS["start"](system, "scribe")
    wait_for(system, ActivityState.IDLE)
    work(system)
    (system.paths.session(recorded(system, "scribe").uid) / "asking").touch()
    watch.seen.clear()

    VERBS["interrupt"](system, "scribe")

    spool = str(system.paths.spool)
    unnamed = [what for what, named in watch.seen if named is None and what != "Database.write"]
    assert [what for what in unnamed if spool not in what] == []
    assert {named for _, named in watch.seen if named} == {Failpoint.INTERRUPT_KEY, Failpoint.INTERRUPT_SETTLE}
