"""A whole the-loop for tests: real records, database, tmux and processes, and a small shell script as the agent.

`World` is described by one JSON file, so that a second process can stand in the same one:
`python -m tests.support.world WORLD.json VERB [NAME]`.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.base.names import new_marker, new_message_id, target_for
from core.config.settings import (
    ChannelBlock,
    DeclaredLoop,
    HarnessDeclaration,
    Routing,
    Settings,
    Standing,
    TmuxSettings,
)
from core.delivery.saying import cancel_message
from core.lifecycle.announce import announce_standing
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.everything import start_all, stop_all
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.pause import pause_standing, restart_standing, resume_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.message import WAITING, Kind, NewMessage
from core.model.rows import Answer
from core.model.session import ChatBinding, Definition, HoldKind, Outcome, Phase, Restart, SessionRecord
from core.service.wiring import build_system
from core.session.folder import STARTER
from core.session.system import System
from tests.support.lines import entries
from tests.support.tmux import wait_until

ACTOR = "cli:ann"
AGENT = Path(__file__).with_name("agent.sh")


@dataclass(frozen=True)
class World:
    """Where a test's the-loop lives, and what its configuration says."""

    folder: Path
    socket: str
    tmux_folder: Path
    declared: tuple[str, ...] = ()
    enabled: bool = True
    slack: bool = False
    loops: bool = False  #: whether each declared session is to have a loop
    command_seconds: float = 4.0
    grace_seconds: float = 2.0
    start_seconds: float = 15.0
    harness: str = "script"  #: or bundled
    restart: str = "never"  #: or on-failure, of those that are declared

    @property
    def store(self) -> Path:
        """Where the agent keeps its conversations and its log."""
        return self.folder / "agent"

    @property
    def cwd(self) -> Path:
        """Where the sessions work."""
        return self.folder / "cwd"

    @property
    def tmux_socket(self) -> Path:
        """Where the tmux server listens."""
        return self.tmux_folder / f"tmux-{os.getuid()}" / self.socket

    def save(self) -> Path:
        """Write the world's description and return its path."""
        path = self.folder / "world.json"
        path.write_text(json.dumps({**self.__dict__, "folder": str(self.folder), "tmux_folder": str(self.tmux_folder)}))
        return path

    def log(self) -> list[str]:
        """Return what the agent noted."""
        path = self.store / "log"
        return path.read_text().splitlines() if path.exists() else []

    def settings(self) -> Settings:
        """Return the configuration."""
        agent = ("/bin/sh", str(AGENT), str(self.store))
        return Settings(
            state_root=self.folder / "state",
            routing=Routing(
                default_harness=self.harness,
                spawn_workdir=str(self.cwd),
                tmux=TmuxSettings(
                    socket_name=self.socket,
                    harness_kill_grace_seconds=self.grace_seconds,
                    resume_probe_seconds=0.3,
                    start_timeout_seconds=self.start_seconds,
                    command_timeout_seconds=self.command_seconds,
                ),
            ),
            harnesses={
                "script": HarnessDeclaration(
                    "script", (*agent, "start", "{id}", "{prompt}"), (*agent, "resume", "{id}"), ready="READY"
                ),
                "missing": HarnessDeclaration("missing", ("the-loop-no-such-program",)),
            },
            channels={
                "slack": ChannelBlock(
                    "slack", self.slack, {"enabled": self.slack, "botTokenEnv": "SECRET_OF_TESTS", "channel": "C1"}
                )
            },
            standing=Standing(
                self.enabled,
                tuple(self._definition(name) for name in self.declared),
                {name: (DeclaredLoop("look", "look around", interval="5m"),) for name in self.declared if self.loops},
            ),
        )

    def _definition(self, name: str) -> Definition:
        return definition(name, slack=self.slack, restart=Restart(self.restart))

    def environ(self) -> dict[str, str]:
        """Return the environment in which the verbs run."""
        return {**os.environ, "TMUX_TMPDIR": str(self.tmux_folder)}

    def system(self, settings: Settings | None = None, **changes: Any) -> System:
        """Return the ports over the real adapters; `changes` replace some of them."""
        return replace(build_system(settings or self.settings(), self.environ()), **changes)


def definition(name: str, **changes: Any) -> Definition:
    """Return a definition with a brief; `slack` tells whether it has a thread."""
    chat = {"slack": ChatBinding(True)} if changes.pop("slack", False) else {}
    return replace(Definition(name, prompt="look after the tests", chat=chat), **changes)


def declaring(system: System, *sessions: Definition) -> System:
    """Return the ports with a configuration that declares these."""
    return replace(system, settings=system.settings._replace(standing=Standing(True, sessions)))


def events(system: System, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind."""
    return [event for event in entries(system.paths.events) if event["event"] == kind]


def outcomes(answer: Answer) -> dict[str, Outcome | None]:
    """Return what was done for each session."""
    return {row.name: row.outcome for row in answer.sessions}


def kill_and_wait(system: System, pid: int) -> None:
    """Kill a pane's program and wait until tmux tells that it is dead."""
    os.kill(pid, 9)
    wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes if pane.pid == pid), "the pane is dead")


def starter_ended(system: System, name: str = "scribe") -> None:
    """Let the process that started the session be gone: another one has its pid by now."""
    (system.paths.session(recorded(system, name).uid) / STARTER).write_text("1 0")


def recorded(system: System, name: str) -> SessionRecord:
    """Return the record, which must be there."""
    record = system.records.read(name)
    assert record is not None
    return record


def waiting_message(system: System, name: str) -> NewMessage:
    """Commit a message for the session and return it."""
    record = recorded(system, name)
    now = system.clock.now()
    ident = new_message_id()
    message = NewMessage(
        ident, f"cli:{ident}", record.uid, name, record.generation, Kind.SAY, ACTOR, "ann", "cli", new_marker(),
        "hello", False, 1, now,
    )  # fmt: skip
    system.inbox.add([message])
    return message


def check_consistent(system: System, name: str) -> None:
    """Assert that record and tmux say the same, and that nothing is under way."""
    record = system.records.read(name)
    panes = system.runner.survey().of_target(target_for(name))
    assert len(panes) <= 1
    if record is None:
        assert panes == ()
        return
    assert record.phase is Phase.SETTLED
    assert {pane.tag for pane in panes} <= {record.instance_id}
    assert (system.paths.session(record.uid) / "hold").exists() == (record.hold is not None)
    if record.hold is not None and record.hold.kind is HoldKind.STOPPED:
        assert panes == ()
        assert system.processes.marked(record.instance_id or "") == ()


def load(path: Path) -> World:
    """Return the world that a file describes."""
    raw = json.loads(path.read_text())
    return World(
        **{
            **raw,
            "folder": Path(raw["folder"]),
            "tmux_folder": Path(raw["tmux_folder"]),
            "declared": tuple(raw["declared"]),
        }
    )


def _create(system: System, name: str) -> Answer:
    slack = system.settings.channel("slack").enabled
    return create_standing(system, definition(name, slack=slack), ACTOR)


def _reconcile(system: System, _: str) -> None:
    reconcile(system, ACTOR)


def _cancel(system: System, name: str) -> None:
    """Cancel the first message that waits; one is committed if none does."""
    waiting = [row.message for row in system.inbox.unsettled(recorded(system, name).uid) if row.state in WAITING]
    cancel_message(system, (waiting or [waiting_message(system, name)])[0].id, ACTOR)


VERBS: Mapping[str, Callable[[System, str], Answer | None]] = {
    "start": lambda system, name: start_standing(system, name or None, ACTOR),
    "stop": lambda system, name: stop_standing(system, name or None, ACTOR, "enough"),
    "restart": lambda system, name: restart_standing(system, name, ACTOR),
    "pause": lambda system, name: pause_standing(system, name, ACTOR, "lunch"),
    "pause-hard": lambda system, name: pause_standing(system, name, ACTOR, "stop that", hard=True),
    "resume": lambda system, name: resume_standing(system, name, ACTOR),
    "interrupt": lambda system, name: interrupt_standing(system, name, ACTOR),
    "announce": lambda system, name: announce_standing(system, name, ACTOR),
    "cancel": _cancel,
    "create": _create,
    "delete": lambda system, name: delete_standing(system, name, ACTOR),
    "start-all": lambda system, _: start_all(system, ACTOR),
    "stop-all": lambda system, _: stop_all(system, ACTOR),
    "reconcile": _reconcile,
}


def main(arguments: Sequence[str]) -> int:
    """Run one verb in the described world and print its answer."""
    path, verb, *name = arguments
    answer = VERBS[verb](load(Path(path)).system(), name[0] if name else "")
    if answer is None:
        return 0
    print(json.dumps(answer.to_json()))
    return 0 if answer.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
