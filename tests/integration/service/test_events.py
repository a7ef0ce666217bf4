"""`the-loop events`: what happened, and what happens."""

import json
import signal

from tests.support.product import NAME, Product
from tests.support.tmux import wait_until


def test_following_shows_an_event_when_it_happens(alone: Product) -> None:
    """Each line is there at once, also where a program reads it; Ctrl-C ends it quietly."""
    following, output = alone.begin("--config", str(alone.config), "events", "--follow", "--json")
    alone.cli("standing", "create", "extra", "--no-start")

    wait_until(lambda: "standing.created" in output.read_text(), "the event is shown")
    following.send_signal(signal.SIGINT)
    code = following.wait(10)

    lines = [json.loads(line) for line in output.read_text().splitlines() if line]
    assert [(line["event"], line["name"]) for line in lines] == [("standing.created", "extra")]
    assert code == 130


def test_events_are_chosen_by_name_and_number(alone: Product) -> None:
    """--name keeps one session's, --last the newest."""
    for name in ("one", "two", "three"):
        alone.cli("standing", "create", name, "--no-start")

    named = alone.cli("events", "--name", "two", "--json")
    last = alone.cli("events", "--last", "2", "--json")

    assert [json.loads(line)["name"] for line in named.out.splitlines()] == ["two"]
    assert [json.loads(line)["name"] for line in last.out.splitlines()] == ["two", "three"]


def test_people_get_a_line_for_each_event(alone: Product) -> None:
    """Without --json it is words: when, what, how grave, who."""
    alone.cli("standing", "start", NAME)

    told = alone.cli("events", "--name", NAME)

    [started] = [line for line in told.out.splitlines() if "standing.started" in line]
    assert started.split()[1:4] == ["standing.started", "info", NAME]
