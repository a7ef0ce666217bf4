"""list, get, attach and screen."""

from dataclasses import replace

import pytest

from core.base.errors import NotRunning, UnknownSession
from core.config.settings import Standing
from core.lifecycle.look import attach_command, get_standing, list_standing, screen
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.session import Live, Outcome
from core.session.folder import output_path
from core.session.system import System
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, declaring, definition, recorded, waiting_message


def test_row_tells_what_is_known(system: System, world: World) -> None:
    """Target, ref, how to attach, what waits, when it started."""
    start_standing(system, "scribe", ACTOR)
    waiting_message(system, "scribe")

    row = get_standing(system, "scribe")

    record = recorded(system, "scribe")
    assert (row.tmux_target, row.ref) == ("loop-standing-scribe", "standing:scribe")
    assert row.attach == f"tmux -S {world.tmux_socket} attach-session -r -t=loop-standing-scribe:"
    assert (row.queued, row.loops, row.running, row.declared) == (1, 0, True, True)
    assert (row.started_at, row.harness_session_id) == (record.started_at, record.harness_session_id)
    assert (row.harness, row.cwd) == ("script", str(world.cwd))


def test_unknown_name_is_a_lookup_error(system: System) -> None:
    """Neither declared nor recorded."""
    with pytest.raises(UnknownSession):
        get_standing(system, "nobody")


def test_drift_names_what_changed_since_the_start(system: System) -> None:
    """The configuration says something else than what runs."""
    start_standing(system, "scribe", ACTOR)

    row = get_standing(declaring(system, definition("scribe", prompt="something else")), "scribe")

    assert row.drift == ("prompt",)


def test_session_that_is_no_longer_declared_is_still_listed(system: System) -> None:
    """Its record says what it is, so that it can be stopped."""
    start_standing(system, "scribe", ACTOR)

    [row] = list_standing(replace(system, settings=system.settings._replace(standing=Standing(True))))

    assert (row.name, row.declared, row.live) == ("scribe", False, Live.LIVE)


def test_silent_tmux_makes_every_session_unknown(world: World, private: PrivateTmux) -> None:
    """Nobody is told to be down."""
    start_standing(world.system(), "scribe", ACTOR)
    system = replace(world, command_seconds=0.5).system()

    with private.frozen():
        rows = list_standing(system)

    assert [(row.live, row.running) for row in rows] == [(Live.UNKNOWN, None)] * 2
    assert all("no answer" in row.detail for row in rows)


def test_unreadable_record_is_a_row_with_its_path(system: System) -> None:
    """The others are listed all the same."""
    start_standing(system, "scribe", ACTOR)
    path = system.paths.records / "scribe.json"
    path.write_text("{")

    rows = {row.name: row for row in list_standing(system)}

    assert rows["scribe"].outcome is Outcome.UNREADABLE
    assert str(path) in rows["scribe"].detail
    assert rows["scribe-two"].outcome is None


def test_damaged_database_leaves_the_list_readable(system: System, world: World) -> None:
    """What cannot be counted is null, never zero."""
    start_standing(system, "scribe", ACTOR)
    for path in system.paths.local.glob("the-loop.db*"):
        path.write_bytes(b"no database" * 500)

    row = get_standing(world.system(), "scribe")

    assert (row.live, row.queued) == (Live.LIVE, None)
    assert "the-loop.db" in row.detail


def test_screen_shows_the_pane_and_what_was_kept_of_it(system: System) -> None:
    """Alive it is tmux's word, afterwards the copy in the session's folder."""
    start_standing(system, "scribe", ACTOR)
    wait_until(lambda: "READY" in screen(system, "scribe", 50).text, "the screen shows the agent")

    stop_standing(system, "scribe", ACTOR)

    assert "READY" in screen(system, "scribe", 50).text


def test_screen_tells_of_its_window_while_there_is_one(system: System) -> None:
    """Where that is asked for; of what has ended all that was kept is shown, and there is no window."""
    start_standing(system, "scribe", ACTOR)
    wait_until(lambda: "READY" in screen(system, "scribe", 50).text, "the screen shows the agent")

    whole, plain = screen(system, "scribe", 1, history=True, window=True), screen(system, "scribe", 50)
    stop_standing(system, "scribe", ACTOR)
    output_path(system.paths, recorded(system, "scribe").uid).write_text("one\ntwo\n")
    ended = screen(system, "scribe", 1, history=True, window=True)

    assert plain.window is None
    assert whole.window is not None
    assert (whole.window.columns, whole.window.rows) == (200, 50)
    assert whole.text == plain.text
    assert (ended.ended, ended.window, ended.text) == (True, None, "one\ntwo")
    assert screen(system, "scribe", 1).text == "two"


def test_attach_is_read_only_unless_asked_and_needs_a_pane(system: System, world: World) -> None:
    """A person who only looks cannot type into it."""
    with pytest.raises(NotRunning, match="standing start scribe"):
        attach_command(system.settings, system.records, system.runner, "scribe", write=False)
    start_standing(system, "scribe", ACTOR)

    looking, typing = (
        attach_command(system.settings, system.records, system.runner, "scribe", write=write) for write in (False, True)
    )

    assert "-r" in looking
    assert "-r" not in typing
    assert str(world.tmux_socket) in typing
