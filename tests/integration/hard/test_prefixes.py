"""Two sessions of which one's name begins the other's: what is done to the one never reaches the other.

tmux itself takes a target for any session whose name it begins.
"""

import json

import pytest

from tests.integration.hard.stage import declare, started, taken_texts
from tests.support.product import Product


@pytest.mark.parametrize(("down", "up"), [("work", "work2"), pytest.param("work2", "work", marks=pytest.mark.long)])
def test_the_verbs_on_a_stopped_session_leave_the_live_one_alone(alone: Product, down: str, up: str) -> None:
    """say, attach, stop and restart are refused or have nothing to do, screen shows its own last words."""
    declare(alone, "work", "work2")
    started(alone, down, up)
    alone.cli("standing", "say", down, "--text", f"this is {down}.")
    alone.cli("standing", "say", up, "--text", f"this is {up}.")
    assert alone.cli("standing", "stop", down).code == 0
    [before] = alone.panes().items()

    said = alone.cli("standing", "say", down, "--text", "for the stopped one", "--json")
    attached = alone.cli("standing", "attach", down, "--json")
    again = alone.cli("standing", "stop", down, "--json")
    restarted = alone.cli("standing", "restart", down, "--json")
    shown = alone.cli("standing", "screen", down)
    rows = {row["name"]: row for row in alone.cli("standing", "list", "--json").json}

    assert [done.code for done in (said, attached, restarted)] == [1, 1, 1]
    assert (again.code, again.row["outcome"]) == (0, "not-running")
    assert f"this is {down}." in shown.out
    assert f"this is {up}." not in shown.out
    assert (rows[down]["live"], rows[up]["live"]) == ("absent", "live")
    assert alone.panes() == dict([before])
    assert taken_texts(alone, up, 1) == [f"this is {up}."]


@pytest.mark.parametrize(("gone", "kept"), [("work", "work2"), pytest.param("work2", "work", marks=pytest.mark.long)])
def test_stop_and_delete_end_the_one_that_was_named(alone: Product, gone: str, kept: str) -> None:
    """The other lives on in the same process, takes messages, and is what attach and screen show."""
    alone.configure(standingSessions={"enabled": True, "sessions": []})
    for name in (gone, kept):
        assert alone.cli("standing", "create", name, "--prompt", "Help.").code == 0
    pids = alone.panes()

    stopped = alone.cli("standing", "stop", gone, "--json")
    after_stop = alone.panes()
    deleted = alone.cli("standing", "delete", gone, "--json")
    said = alone.cli("standing", "say", kept, "--text", "for the live one", "--json")
    command = json.loads(alone.cli("standing", "attach", kept, "--json").out)["command"]
    shown = alone.cli("standing", "screen", kept)

    assert (stopped.row["outcome"], deleted.row["outcome"]) == ("stopped", "deleted")
    assert after_stop == alone.panes() == {kept: pids[kept]}
    assert said.json["state"] == "confirmed"
    assert taken_texts(alone, kept, 1) == ["for the live one"]
    assert command[-1] == f"-t=loop-standing-{kept}:"
    assert "for the live one" in shown.out


def test_the_shorter_name_starts_beside_the_longer_one(alone: Product) -> None:
    """A live `work2` is neither taken for `work` nor in its way."""
    declare(alone, "work", "work2")
    started(alone, "work2")
    [longer] = alone.panes().values()

    answer = alone.cli("standing", "start", "work", "--json")
    said = alone.cli("standing", "say", "work", "--text", "for the shorter", "--json")

    assert (answer.code, answer.row["outcome"]) == (0, "started")
    assert said.json["state"] == "confirmed"
    assert alone.panes()["work2"] == longer
    assert len(set(alone.panes().values())) == 2
    assert taken_texts(alone, "work", 1) == ["for the shorter"]
    assert taken_texts(alone, "work2") == []
