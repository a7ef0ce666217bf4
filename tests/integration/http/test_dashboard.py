"""deploy/grafana/the-loop.json, and docs/operations.md, name the metrics that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.lifecycle.create import create_standing
from core.model.activity import ActivityState
from core.model.message import MessageState
from core.model.posts import PostState
from tests.support.tmux import private_tmux
from tests.support.web import Web, serving
from tests.support.world import ACTOR, World, definition

ROOT = Path(__file__).parents[3]
_NAME = re.compile(r"\b((?:the_loop|process)_\w+)")
_SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
_LABEL = re.compile(r'(\w+)=~?"([^"]*)"')


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """Give the metrics of a service with a session that was recorded, and one request of the API."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder)
        world.cwd.mkdir()
        system = world.system()
        create_standing(system, definition("two"), ACTOR, start=False)
        with serving(system) as running:
            yield metrics(running)
        system.close()


def metrics(web: Web) -> str:
    """Return the page, after a request that is counted."""
    assert web.client.get("/standing-sessions/one?name=nope").status == 404
    return web.client.send("GET", "/metrics", None, {}).body.decode()


def expressions() -> list[str]:
    """Return every query of the dashboard."""
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "the-loop.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def families(page: str) -> set[str]:
    """Return the names of the metrics as a query has them."""
    return {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")}


def test_each_metric_of_the_dashboard_exists(page: str) -> None:
    """And the dashboard shows all that are ours."""
    named = {name for expression in expressions() for name in _NAME.findall(expression)}

    assert named - families(page) == set()
    assert {name for name in families(page) if name.startswith("the_loop_")} - named == set()


def test_each_label_of_the_dashboard_exists(page: str) -> None:
    """Where the page has samples of the metric; and each state is one that there is."""
    states = {state.value for kind in (MessageState, PostState, ActivityState) for state in kind}
    for expression in expressions():
        for name, selected in _SELECTED.findall(expression):
            samples = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
            for label, value in _LABEL.findall(selected):
                assert label == "job" or not samples or f"{label}=" in samples[0], (name, label)
                assert label != "state" or set(value.split("|")) <= states, value


def test_the_documentation_names_each_metric(page: str) -> None:
    """With its labels' meaning."""
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")

    assert {name for name in families(page) if name.startswith("the_loop_") and name not in table} == set()


def test_answered_requests_are_counted_by_path_and_status(page: str) -> None:
    """Errors too; not by what was asked for, which would be without end."""
    assert 'the_loop_http_requests_total{method="GET",path="/standing-sessions/one",status="404"} 1.0' in page
    assert 'the_loop_sessions{live="absent"} 1.0' in page
    assert 'the_loop_requests{kind="permission"} 0.0' in page
