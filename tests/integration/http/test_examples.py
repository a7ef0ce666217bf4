"""The examples run as their first lines say."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.lifecycle.start import start_standing
from core.model.session import Binding
from tests.support.hook import Hook, key_of
from tests.support.talking import record_of, talking
from tests.support.tmux import private_tmux
from tests.support.web import Web, serving
from tests.support.world import ACTOR, World

NAME = "scribe"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """Give the API of a the-loop with a session that runs and has a thread, and one that does not run."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder, declared=(NAME, "other"), slack=True)
        world.cwd.mkdir()
        system = talking(world)
        service = system.settings.service._replace(port=0)
        system = replace(system, settings=system.settings._replace(service=service))
        assert start_standing(system, NAME, ACTOR).ok
        uid, _ = record_of(system)
        system.bindings.bind(Binding("slack", "T1", "C1", "1700.1", uid, NAME, system.clock.now()))
        with serving(system) as running:
            yield running
        system.close()


def run(name: str, *words: str, folder: Path, token: str = "") -> "subprocess.CompletedProcess[str]":
    """Run an example in a folder."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)} | ({"THE_LOOP_API_TOKEN": token} if token else {})
    command = [sys.executable, str(ROOT / "examples" / name), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=folder, env=environ)


def test_every_example_has_a_test() -> None:
    """And none of them is left behind."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {"morning.py", "follow.py", "allow_reads.py"}


def test_morning_says_it_to_those_that_run(web: Web, tmp_path: Path) -> None:
    """And prints what became of it."""
    done = run("morning.py", "What is left to do?", str(web.client.path), folder=tmp_path)

    assert (done.stdout, done.stderr, done.returncode) == (f"{NAME}: confirmed\n", "", 0)


def test_follow_goes_on_where_it_was_left(web: Web, tmp_path: Path) -> None:
    """Each event is printed once, by one run or the next."""
    emit = web.system.events.emit
    (tmp_path / "last-event").write_text(web.system.events.latest(0).end)
    emit("standing.said", name=NAME, detail="one")
    emit("standing.said", name="other", detail="not mine")
    emit("standing.said", name=NAME, detail="two")

    first = run("follow.py", str(web.client.path), NAME, "1", folder=tmp_path)
    second = run("follow.py", str(web.client.path), NAME, "1", folder=tmp_path)

    assert [done.stdout.split()[-1] for done in (first, second)] == ["one", "two"], (first, second)


def test_allow_reads_allows_reading_and_nothing_else(web: Web, tmp_path: Path) -> None:
    """What else is asked still waits."""
    instance = record_of(web.system)[1]
    asked = {
        tool: Hook(web.requests, instance, key_of(web.system, f"k-{tool}"), tool=tool, input={"path": "/etc/hosts"})
        for tool in ("Read", "Bash")
    }
    for hook in asked.values():
        hook.wait_until_shown()

    done = run("allow_reads.py", web.url, "1", folder=tmp_path, token=web.token)
    [left] = web.client.get("/requests").json["requests"]
    asked["Bash"].hang_up()

    assert (done.stdout, done.stderr) == (f"{NAME}: Read allowed: path: /etc/hosts\n", "")
    assert asked["Read"].lines()[1] == {"answer": {"allowed": True}}
    assert left["tool"] == "Bash"
