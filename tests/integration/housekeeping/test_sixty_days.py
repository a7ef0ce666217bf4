"""Sixty days of a service with loops: after the time that texts are kept, nothing grows any more."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.names import new_marker
from core.chat.backfill import swept
from core.chat.outbound import OutboundWorker
from core.delivery.deliverer import Deliverer
from core.model.channel import Swept
from core.model.message import Kind, ReplyAddress
from core.model.session import Binding
from core.service.housekeeping import Housekeeper
from tests.support.chat import Chat
from tests.support.simulated import Simulation, simulated
from tests.unit.store.samples import a_binding, a_message

NAMES = ("builder", "scribe", "watcher")
KEPT = 14  #: days, as is the default
TABLES = (
    "inbox",
    "outbox",
    "reports",
    "ended_turns",
    "marks",
    "attachments",
    "requests",
    "loop_runs",
    "spoken",
    "ends",
)


def thread_of(name: str) -> str:
    """Return the session's thread."""
    return f"17000000{NAMES.index(name):02}.000100"


@dataclass
class Season:
    """Three sessions whose loops fire, who answer, are replied to, and post."""

    simulation: Simulation
    chat: Chat = field(default_factory=Chat)
    replies: int = 0

    def __post_init__(self) -> None:
        """Give each session its thread and a loop that does not age."""
        system = self.simulation.system
        self.simulation.deliverer = Deliverer(system, lambda row: True)
        self.posts = OutboundWorker(system, self.chat)
        self.housekeeper = Housekeeper(system)
        for name in NAMES:
            record = self.simulation.session(name)
            system.bindings.bind(self.binding(name))
            self.simulation.loop(
                uid=record.uid, name=name, interval=timedelta(hours=1), keep_alive=True, created_by=f"agent:{name}"
            )

    @staticmethod
    def binding(name: str) -> Binding:
        """Return the session's binding."""
        return a_binding(uid=f"s-{name}", name=name, thread=thread_of(name))

    def reply(self, name: str) -> None:
        """Let somebody reply in the session's thread."""
        self.replies += 1
        now = self.simulation.clock.now()
        ts = f"{now.timestamp():.6f}"
        address = ReplyAddress("slack", "T1", "C1", thread_of(name), ts)
        message = a_message(
            self.replies, uid=f"s-{name}", name=name, kind=Kind.REPLY, key=f"slack:T1:C1:{ts}", address=address,
            order_us=int(now.timestamp() * 1_000_000), created_at=now, text="how does it go? " * 50,
            marker=new_marker(),
        )  # fmt: skip
        self.simulation.system.inbox.add([message])

    def hour(self, *, of_day: int, every: int) -> None:
        """Let the loops' hours pass, the agents answer, the posts go out, and the housekeeper look."""
        simulation, system = self.simulation, self.simulation.system
        simulation.clock.pause(every * 3600)
        if of_day == 12:
            self.reply(NAMES[self.replies % len(NAMES)])
        for _ in range(2):  # a reply, then the tick behind it
            simulation.turn()
            for name in NAMES:
                answer = {"hook_event_name": "Stop", "last_assistant_message": f"{name} has looked. " * 30}
                simulation.tmux.panes[f"i-{name}"].report(answer)
                system.ingest(f"s-{name}")
        while system.outbox.due("slack", simulation.clock.now()):
            self.posts.turn()
            simulation.clock.pause(1.1)
        self.housekeeper.turn()

    def sweep(self) -> None:
        """Let a sweep read each thread to its end."""
        now = self.simulation.clock.now().timestamp()
        for name in NAMES:
            swept(
                self.simulation.system,
                "slack",
                "T1",
                Swept("C1", thread_of(name), f"{now:.6f}", f"{now - 600:.6f}", 0, ""),
            )

    def day(self, *, every: int) -> None:
        """Let a day pass, with a loop that fires every so many hours."""
        for of_day in range(0, 24, every):
            self.hour(of_day=of_day, every=every)
        self.sweep()

    def size(self) -> Mapping[str, int]:
        """Return how many rows each table holds, and how many pages and files there are."""
        database = self.simulation.system.database
        rows = {table: database.read(f"SELECT count(*) AS rows FROM {table}")[0]["rows"] for table in TABLES}
        return {
            **rows,
            "pages": database.read("PRAGMA page_count")[0]["page_count"],
            "files": sum(len(files) for _, _, files in os.walk(self.simulation.system.paths.sessions)),
        }


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_nothing_grows_once_texts_are_as_old_as_they_become(tmp_path: Path, every: int) -> None:
    """Rows, file and folders are as large on the sixtieth day as on the twentieth, and in between."""
    season = Season(simulated(tmp_path / "state", slack=True))

    sizes = []
    for _ in range(60):
        season.day(every=every)
        sizes.append(season.size())
    season.simulation.system.close()
    season.simulation.system.close()

    first, later = sizes[KEPT + 5], sizes[KEPT + 6 :]
    assert len(season.chat.messages) >= 60 * len(NAMES) * (24 // every)
    assert first["inbox"] >= KEPT  # what is young is there
    assert first["outbox"] >= KEPT * len(NAMES) * (24 // every)
    for what in first:
        assert max(size[what] for size in later) <= first[what] * 1.1 + 5, what
