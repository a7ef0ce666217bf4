"""logs: what a session showed, of the instance that lives and of the one that ended before."""

import os

import pytest

from core.base.errors import NotRunning, StoreBroken
from core.lifecycle.look import logs_of, screen
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.session import LastExit, Live
from core.session.folder import output_path
from core.session.system import System
from tests.integration.lifecycle.held import kill
from tests.support.world import ACTOR, recorded


def test_a_live_session_shows_its_screen(system: System) -> None:
    """Nothing ended before it."""
    start_standing(system, "scribe", ACTOR)

    logs = logs_of(system, "scribe", 50)

    assert (logs.live, logs.ended) == (Live.LIVE, None)
    assert "READY" in (logs.screen or "")


def test_a_stopped_session_shows_what_was_kept_and_how_it_ended(system: System) -> None:
    """When, how, and the last of its screen."""
    start_standing(system, "scribe", ACTOR)
    before = system.clock.now()
    stop_standing(system, "scribe", ACTOR)

    logs = logs_of(system, "scribe", 50)

    assert logs.screen is None
    assert logs.ended is not None
    assert logs.ended.exit == LastExit(143, None)
    assert "READY" in logs.ended.output
    assert logs.ended.at is not None
    assert abs((logs.ended.at - before).total_seconds()) < 30


def test_a_killed_one_shows_its_dead_pane_with_the_signal(system: System) -> None:
    """The pane is there still."""
    start_standing(system, "scribe", ACTOR)
    kill(system)

    logs = logs_of(system, "scribe", 50)

    assert logs.live is Live.DEAD
    assert logs.ended is not None
    assert logs.ended.exit == LastExit(None, 9)
    assert "READY" in logs.ended.output


def test_after_the_next_start_both_are_told(system: System) -> None:
    """The screen of the one that lives, and how the killed one ended."""
    start_standing(system, "scribe", ACTOR)
    kill(system)
    start_standing(system, "scribe", ACTOR)

    answer = logs_of(system, "scribe", 50).to_json()

    assert answer["live"] == "live"
    assert "READY" in answer["screen"]
    assert answer["ended"]["exit"] == {"status": None, "signal": 9}
    assert "READY" in answer["ended"]["output"]


def test_lines_are_limited_and_a_session_that_never_ran_is_refused(system: System) -> None:
    """The last ones count."""
    with pytest.raises(NotRunning, match="never ran"):
        logs_of(system, "scribe", 50)
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)

    logs = logs_of(system, "scribe", 1)

    assert logs.ended is not None
    assert len(logs.ended.output.splitlines()) == 1


@pytest.mark.timeout(30)
def test_what_the_agent_put_in_the_outputs_place_holds_nobody_up(system: System) -> None:
    """Its folder is its own: a FIFO there is named, and text that is none is shown as far as it goes."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    kept = output_path(system.paths, recorded(system, "scribe").uid)

    kept.write_bytes(b"READY \xff")
    shown = logs_of(system, "scribe", 50), screen(system, "scribe", 50)
    kept.unlink()
    os.mkfifo(kept)

    assert shown[0].ended is not None
    assert "READY" in shown[0].ended.output
    assert "READY" in shown[1].text
    with pytest.raises(StoreBroken, match=r"last-output.*no plain file"):
        logs_of(system, "scribe", 50)
    with pytest.raises(StoreBroken, match=r"last-output.*no plain file"):
        screen(system, "scribe", 50)
