"""Two machines as two homes: one speaks with Slack, the other has no token; between them a PostgreSQL server."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.fleet import membership
from embedded.workspace.thread import WorkspaceThread
from tests.support.fleets import made_database
from tests.support.postgres import Cluster
from tests.support.product import Product, Serving, product
from tests.support.tmux import wait_until

HERE, THERE = "scribe", "guide"
_PATIENCE = 90.0  #: a gateway that begins waits until no request of the last one can be under way


@dataclass
class Pair:
    """`gate` is the gateway; `build` is a host without tokens, whose session is `guide`."""

    gate: Product
    build: Product
    workspace: WorkspaceThread

    def up(self) -> tuple[str, Serving, Serving]:
        """Let both serve, and return the thread of the session at `build`, and both services."""
        gate = self.gate.serve().wait_swept()
        build = self.build.serve().wait_swept()
        thread = self.build.root(THERE, 60)
        self.build.wait_reply(thread, "Ready.", 60)
        return thread, gate, build

    def answers(self, thread: str, part: str) -> list[str]:
        """Return the bot's messages in the thread that hold the part."""
        return [text for text in self.build.bot_replies(thread) if part in text]


@pytest.fixture
def pair(workspace: WorkspaceThread, fleet_cluster: Cluster, tmp_path: Path) -> Iterator[Pair]:
    """Give two homes of one fleet, with nothing started."""
    url = fleet_cluster.url(made_database(fleet_cluster))
    with ExitStack() as stack:
        gate, build = stack.enter_context(product(workspace)), stack.enter_context(product(workspace))
        for one, name, session, gateway in ((gate, "gate", HERE, True), (build, "build", THERE, False)):
            sessions: list[dict[str, Any]] = [{"name": session, "prompt": "Look after it.", "slack": {"enabled": True}}]
            one.relayed = False
            one.configure(
                fleet={"enabled": True, "host": name, "gateway": gateway},
                standingSessions={"enabled": True, "sessions": sessions},
            )
            one.paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            membership.join(membership.invite(url, name, gateway=gateway), one.paths.fleet)
        build.forget_tokens()
        yield Pair(gate, build, workspace)
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_host_without_a_token_is_spoken_to_through_the_gateway(pair: Pair) -> None:
    """Its session is announced, hears a reply, and answers in its thread; the other host's session hears nothing."""
    thread, _, build = pair.up()

    pair.workspace.say("alice", "agents", "over the fleet", thread)
    pair.build.wait_reply(thread, "over the fleet", 60)
    wait_until(lambda: pair.build.cli("status", "--json").services.get("fleet", {}).get("running"), "status tells it")
    status = pair.build.cli("status", "--json").services

    assert pair.build.count("over the fleet", THERE) == 1
    assert pair.gate.count("over the fleet", HERE) == 0
    assert "the gateway is gate" in status["fleet"]["detail"]
    assert "the gateway is gate" in status["slack"]["detail"]
    hosts = pair.build.cli("fleet", "list", "--json").json
    rows = pair.build.cli("standing", "list", "--all", "--json").json
    there = pair.gate.cli("standing", "get", f"{THERE}@build", "--json").json
    assert [(one["host"], one["speaks"]) for one in hosts["hosts"]] == [("build", False), ("gate", True)]
    assert [(row["host"], row["name"]) for row in rows] == [("build", THERE), ("gate", HERE)]
    assert (there["host"], there["status"]) == ("build", "running")
    assert build.stop() == 0


@pytest.mark.parametrize(
    ("whose", "point"),
    [
        ("build", "fleet.acknowledge:before"),
        ("gate", "fleet.send:after"),
        *(
            pytest.param(whose, point, marks=pytest.mark.long)
            for whose, point in (
                ("build", "fleet.acknowledge:after"),
                ("build", "fleet.hand_over:before"),
                ("build", "fleet.hand_over:after"),
                ("build", "fleet.forget:before"),
                ("gate", "fleet.send:before"),
                ("gate", "fleet.post:before"),
                ("gate", "fleet.post:after"),
                ("gate", "fleet.posted:before"),
                ("gate", "fleet.posted:after"),
            )
        ),
    ],
)
def test_a_kill_between_two_steps_loses_and_doubles_nothing(pair: Pair, whose: str, point: str) -> None:
    """A reply is taken once, and its answer stands in the thread once, whoever is killed where."""
    thread, gate, build = pair.up()
    victim, running = (pair.gate, gate) if whose == "gate" else (pair.build, build)
    assert running.stop() == 0
    dying = victim.serve(env={"THE_LOOP_CRASH_AT": point})

    pair.workspace.say("alice", "agents", "over the edge", thread)
    assert dying.ended(60) == -9
    victim.serve().wait_swept()
    wait_until(lambda: pair.answers(thread, "over the edge"), "it is answered", _PATIENCE)
    pair.workspace.say("alice", "agents", "and after it", thread)
    wait_until(lambda: pair.answers(thread, "and after it"), "what follows is answered", _PATIENCE)

    assert pair.build.count("over the edge", THERE) == 1
    assert pair.build.count("and after it", THERE) == 1
    assert len(pair.answers(thread, "over the edge")) == 1
    assert len(pair.answers(thread, "and after it")) == 1
