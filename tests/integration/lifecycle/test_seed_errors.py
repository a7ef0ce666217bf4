"""Every row of the error table of the standing sessions' design: situation, what happens, what is said.

The rows about the configuration's own grammar are asked through the door that the commands use; that every verb refuses
a malformed block, and stop works, is shown by the commands themselves in tests/integration/hard/test_malformed.py.
"""

import os
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import ChannelError, DeclaredSession, InvalidValue, NameTaken, NotRunning, UnknownSession
from core.base.names import new_instance, target_for
from core.chat.outbound import OutboundWorker
from core.config.document import ConfigError
from core.config.loading import load, load_tolerant
from core.delivery.saying import say
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.everything import start_all
from core.lifecycle.look import get_standing
from core.lifecycle.spawn import Opened, StartOrder
from core.lifecycle.start import begin_each, finish_all, start_standing
from core.lifecycle.stop import stop_standing
from core.model.pane import Spawn
from core.model.rows import Answer, misconfigured_row
from core.model.session import Live, Outcome, Phase, SessionRecord, Status
from core.session.system import System
from tests.support.chat import Chat
from tests.support.tmux import PrivateTmux, Reader, launcher, soon, wait_until
from tests.support.world import ACTOR, World, declaring, definition, events, kill_and_wait, outcomes


def config(folder: Path, sessions: str) -> Path:
    """Write a configuration with this list of sessions and return its path."""
    path = folder / "cli-config.yaml"
    path.write_text(f"state: {{root: {folder / 'state'}}}\nstandingSessions:\n  sessions: {sessions}\n")
    return path


# ---------------------------------------------------------------- standingSessions malformed


def test_malformed_block_is_refused_with_its_key(tmp_path: Path) -> None:
    """standingSessions malformed: every verb but stop raises with the offending key named."""
    path = config(tmp_path, "[{name: scribe, autoStrat: true}]")

    with pytest.raises(ConfigError, match="autoStrat") as caught:
        load(path, {"HOME": str(tmp_path)})

    assert isinstance(caught.value, ValueError)


def test_malformed_block_is_one_misconfigured_row_of_the_lifecycle() -> None:
    """standingSessions malformed: the-loop start renders it as one misconfigured row."""
    answer = Answer((misconfigured_row("standingSessions.sessions[0].autoStrat: unknown key"),))

    assert outcomes(answer) == {"standingSessions": Outcome.MISCONFIGURED}
    assert not answer.ok


def test_malformed_block_leaves_stop_working(system: System, world: World, tmp_path: Path) -> None:
    """standingSessions malformed: stop still works off the records, so that what runs stays stoppable."""
    start_standing(system, "scribe", ACTOR)
    broken = (
        f"state: {{root: {world.folder / 'state'}}}\n"
        f"routing: {{tmux: {{socketName: {world.socket}}}}}\n"
        "standingSessions: {sessions: [{nome: scribe}]}\n"
    )
    path = tmp_path / "broken.yaml"
    path.write_text(broken)
    settings, problem = load_tolerant(path, {"HOME": str(tmp_path)})

    answer = stop_standing(world.system(settings), "scribe", ACTOR)

    assert problem is not None
    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert system.runner.survey().panes == ()


def test_duplicate_name_refuses_the_block_and_names_both_positions(tmp_path: Path) -> None:
    """duplicate name: the whole block is refused, both positions named."""
    path = config(tmp_path, "[{name: scribe}, {name: other}, {name: scribe}]")

    with pytest.raises(ConfigError) as caught:
        load(path, {"HOME": str(tmp_path)})

    assert "sessions[0]" in str(caught.value)
    assert "sessions[2]" in str(caught.value)


def test_prompt_and_prompt_file_are_refused_by_name(system: System, tmp_path: Path) -> None:
    """prompt and promptFile: that entry is refused by name, declared or created."""
    path = config(tmp_path, "[{name: scribe, prompt: a, promptFile: b.md}]")

    with pytest.raises(ConfigError, match="promptFile"):
        load(path, {"HOME": str(tmp_path)})
    with pytest.raises(InvalidValue, match="extra: prompt and promptFile"):
        create_standing(system, definition("extra", prompt_file="/b.md"), ACTOR)


# ---------------------------------------------------------------- what cannot run


def test_unreadable_prompt_file_fails_that_session_and_others_start(system: System, tmp_path: Path) -> None:
    """promptFile unreadable at start: that session failed, others still start."""
    lost = definition("lost", prompt=None, prompt_file=str(tmp_path / "none.md"))

    answer = start_standing(declaring(system, lost, definition("well")), None, ACTOR)

    assert outcomes(answer) == {"lost": Outcome.FAILED, "well": Outcome.STARTED}
    assert "none.md cannot be read" in answer.sessions[0].detail


def test_missing_cwd_fails_that_session_and_names_the_path(system: System) -> None:
    """cwd does not exist: that session failed, naming the path; never spawned into a missing directory."""
    answer = start_standing(declaring(system, definition("lost", cwd="/no/such/folder")), "lost", ACTOR)

    assert outcomes(answer) == {"lost": Outcome.FAILED}
    assert "/no/such/folder does not exist" in answer.sessions[0].detail
    assert system.runner.survey().panes == ()


def test_missing_binary_is_an_error_event_and_a_failed_row(system: System) -> None:
    """harness binary missing: standing.spawn_failed at error, row failed, naming the binary."""
    answer = start_standing(declaring(system, definition("lost", harness="missing")), "lost", ACTOR)

    [event] = events(system, "standing.spawn_failed")
    assert outcomes(answer) == {"lost": Outcome.FAILED}
    assert "the-loop-no-such-program" in answer.sessions[0].detail
    assert (event["level"], event["name"]) == ("error", "lost")


def test_cursor_is_a_failed_row_with_the_adapters_message(system: System) -> None:
    """cursor as the harness: row failed with the adapter's message."""
    answer = start_standing(declaring(system, definition("lost", harness="cursor")), "lost", ACTOR)

    assert outcomes(answer) == {"lost": Outcome.FAILED}
    assert "no pre-assignable conversation id" in answer.sessions[0].detail


# ---------------------------------------------------------------- what is in the way


def test_live_session_without_a_record_is_refused_by_start(system: System, private: PrivateTmux, world: World) -> None:
    """live tmux session, no record: refused loudly, naming tmux attach and the remedy."""
    pane, _ = private.reading(private.runner(), target=target_for("scribe"))

    answer = start_standing(system, "scribe", ACTOR)

    [row] = answer.sessions
    assert (row.outcome, row.live) == (Outcome.FAILED, Live.FOREIGN)
    assert f"tmux -S {world.tmux_socket} attach-session -r -t=loop-standing-scribe:" in row.detail
    assert "kill-session" in row.detail
    assert [seen.pid for seen in system.runner.survey().panes] == [pane.pid]


def test_live_session_without_a_record_is_not_signalled_by_stop(system: System, private: PrivateTmux) -> None:
    """live tmux session, no record: stop refuses to signal it too."""
    pane, _ = private.reading(private.runner(), target=target_for("scribe"))

    answer = stop_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.FAILED}
    assert "is left alone" in answer.sessions[0].detail
    assert system.processes.alive(pane.pid)


def test_dead_pane_with_a_record_is_cleared_and_respawned(system: System) -> None:
    """dead retained pane, with a record: cleared and respawned."""
    start_standing(system, "scribe", ACTOR)
    [pane] = system.runner.survey().panes
    kill_and_wait(system, pane.pid)

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert [seen.dead for seen in system.runner.survey().panes] == [False]


def test_dead_pane_without_a_record_is_cleared_and_respawned(system: System) -> None:
    """dead retained pane, without a record: cleared and respawned."""
    start_standing(system, "scribe", ACTOR)
    [pane] = system.runner.survey().panes
    kill_and_wait(system, pane.pid)
    system.records.remove("scribe")

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert [seen.dead for seen in system.runner.survey().panes] == [False]


@pytest.mark.parametrize("verb", ["start", "create", "the-loop start"])
def test_dead_pane_of_nobody_is_cleared_and_respawned(system: System, private: PrivateTmux, verb: str) -> None:
    """dead retained pane, without a record and without our tag: nothing runs in it, so it costs nobody anything."""
    name = "extra" if verb == "create" else "scribe"
    dead_pane_of_nobody(private, name)

    if verb == "create":
        answer = create_standing(system, definition(name), ACTOR)
    elif verb == "start":
        answer = start_standing(system, name, ACTOR)
    else:
        answer = start_all(declaring(system, definition(name)), ACTOR)

    assert outcomes(answer) == {name: Outcome.STARTED}
    assert [(seen.dead, seen.tag != "") for seen in system.runner.survey().panes] == [(False, True)]


def test_dead_pane_of_nobody_in_a_recorded_sessions_place_is_cleared(system: System, private: PrivateTmux) -> None:
    """dead retained pane, with a record whose own pane is gone, and without our tag: cleared and respawned."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    dead_pane_of_nobody(private, "scribe")

    before = get_standing(system, "scribe")
    answer = start_standing(system, "scribe", ACTOR)

    assert (before.live, before.running) == (Live.DEAD, False)
    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert [seen.dead for seen in system.runner.survey().panes] == [False]


def test_session_with_a_dead_and_a_live_pane_is_nobodys_to_clear(system: System, private: PrivateTmux) -> None:
    """live tmux session, no record: one live pane among dead ones is enough."""
    dead_pane_of_nobody(private, "scribe")
    private.tmux("split-window", "-d", "-t", f"={target_for('scribe')}:", "exec cat")

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.FAILED}
    assert answer.sessions[0].live is Live.FOREIGN
    assert sorted(seen.dead for seen in system.runner.survey().panes) == [False, True]


def dead_pane_of_nobody(private: PrivateTmux, name: str) -> None:
    """Leave a dead pane that we did not make under the session's target."""
    target = target_for(name)
    private.spawn(private.runner(), launcher(private.folder / "brief", "exec true"), target=target)
    private.tmux("set-option", "-p", "-u", "-t", f"={target}:", "@the_loop_instance")
    wait_until(lambda: "1" in private.tmux("list-panes", "-t", f"={target}:", "-F", "#{pane_dead}"), "it is dead")


def test_silent_tmux_spawns_nothing(world: World, private: PrivateTmux, tmp_path: Path) -> None:
    """tmux does not answer the probe: nothing spawned, and nothing is recorded; silence is not absence."""
    system = replace_command_seconds(world, 0.5)
    runner = private.runner()
    runner.spawn(Spawn("other", new_instance(), Reader(tmp_path / "other").launcher, tmp_path, {}, soon()))

    with private.frozen():
        answer = start_standing(system, "scribe", ACTOR)

    [row] = answer.sessions
    assert (row.outcome, row.live, row.running) == (Outcome.UNCONFIRMED, Live.UNKNOWN, None)
    assert system.records.read("scribe") is None
    assert {pane.target for pane in runner.survey().panes} == {"other"}


def replace_command_seconds(world: World, seconds: float) -> System:
    """Return the world's ports with a shorter deadline for each call of tmux."""
    return replace(world, command_seconds=seconds).system()


def test_resume_that_dies_falls_back_to_a_fresh_conversation(system: System, world: World) -> None:
    """resume did not survive the probe: a fresh conversation; standing.resume_failed at warning, then started."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    first = system.records.read("scribe")
    assert first is not None
    (world.store / str(first.harness_session_id)).unlink()

    answer = start_standing(system, "scribe", ACTOR)

    again = system.records.read("scribe")
    assert again is not None
    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert "No conversation found" in answer.sessions[0].detail
    assert again.harness_session_id != first.harness_session_id
    assert [event["level"] for event in events(system, "standing.resume_failed")] == ["warning"]
    assert len(events(system, "standing.started")) == 2
    assert len(system.runner.survey().panes) == 1


def resuming(system: System) -> tuple[SessionRecord, Opened]:
    """Stop the session and begin to resume it; return its record before, and the pane that nobody watches yet."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    before = system.records.read("scribe")
    opened = begin_each(system, {"scribe": StartOrder(ACTOR, "a test", clear_holds=True)})["scribe"]
    assert before is not None
    assert isinstance(opened, Opened)
    assert opened.resumed
    return before, opened


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_resume_that_is_killed_keeps_its_conversation(system: System, number: signal.Signals) -> None:
    """A signal says nothing about the conversation: the row failed, and the next start resumes it."""
    before, opened = resuming(system)
    os.kill(opened.pane.pid, number)
    wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes), "the pane is dead")

    told = finish_all(system, {"scribe": opened})["scribe"]

    after = system.records.read("scribe")
    assert after is not None
    assert told.outcome is Outcome.FAILED
    assert f"its conversation {before.harness_session_id} is kept" in told.detail
    assert after.harness_session_id == before.harness_session_id
    assert (after.status, after.phase) == (Status.RUNNING, Phase.SETTLED)
    assert events(system, "standing.resume_failed") == []
    assert outcomes(start_standing(system, "scribe", ACTOR)) == {"scribe": Outcome.RESUMED}


def test_resume_whose_server_is_lost_keeps_its_conversation(system: System, private: PrivateTmux) -> None:
    """A pane that vanished with its server says nothing about the conversation."""
    before, opened = resuming(system)
    private.tmux("kill-server")

    told = finish_all(system, {"scribe": opened})["scribe"]

    after = system.records.read("scribe")
    assert after is not None
    assert told.outcome in (Outcome.FAILED, Outcome.UNCONFIRMED)
    assert after.harness_session_id == before.harness_session_id
    assert outcomes(start_standing(system, "scribe", ACTOR)) == {"scribe": Outcome.RESUMED}


# ---------------------------------------------------------------- announcing, speaking


def test_announcement_that_fails_costs_nobody_the_session(world: World) -> None:
    """Slack post fails, here since it could not even be committed: announce_failed at warning; the session is up."""
    system = replace(world, slack=True).system()
    with system.database.transaction(durable=False):
        pass  # the database is made by its first use
    with sqlite3.connect(system.paths.database) as database:
        database.execute("DROP TABLE outbox")
    database.close()

    answer = start_standing(system, "scribe", ACTOR)

    [event] = events(system, "standing.announce_failed")
    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert event["level"] == "warning"
    assert answer.sessions[0].live is Live.LIVE


def test_post_that_slack_refuses_costs_nobody_the_session(world: World) -> None:
    """Slack post fails: the refusal is told as standing.announce_failed at warning; the session lives on."""
    system = replace(world, slack=True).system()
    chat = Chat(faults=[("post", ChannelError("is_archived", "unarchive the channel", transient=False))])
    answer = start_standing(system, "scribe", ACTOR)

    OutboundWorker(system, chat).turn()

    [event] = events(system, "standing.announce_failed")
    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert (event["level"], event["name"]) == ("warning", "scribe")
    assert "is_archived" in event["reason"]
    assert get_standing(system, "scribe").live is Live.LIVE


def test_say_into_a_stopped_session_names_start(system: System) -> None:
    """say into a stopped session: LookupError naming the-loop standing start <name>."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)

    with pytest.raises(NotRunning, match="`the-loop standing start scribe`") as caught:
        say(system, "scribe", "hello", actor=ACTOR)

    assert isinstance(caught.value, LookupError)
    assert system.runner.survey().panes == ()


# ---------------------------------------------------------------- create and delete


def test_create_of_a_declared_name_names_start(system: System) -> None:
    """create for a name already declared: ValueError naming which, and start as the alternative."""
    with pytest.raises(NameTaken, match=r"standingSessions\.sessions.*standing start scribe") as caught:
        create_standing(system, definition("scribe"), ACTOR)

    assert isinstance(caught.value, ValueError)


def test_create_of_a_recorded_name_names_start_and_delete(system: System) -> None:
    """create for a name already recorded: ValueError naming which, and start and delete as the alternatives."""
    create_standing(system, definition("extra"), ACTOR)

    with pytest.raises(NameTaken, match=r"recorded already.*start extra.*delete extra") as caught:
        create_standing(system, definition("extra"), ACTOR)

    assert isinstance(caught.value, ValueError)


def test_delete_of_a_declared_session_names_the_key_and_stop(system: System) -> None:
    """delete of a declared session: ValueError naming standingSessions.sessions and stop."""
    start_standing(system, "scribe", ACTOR)

    with pytest.raises(DeclaredSession, match=r"standingSessions\.sessions.*standing stop scribe") as caught:
        delete_standing(system, "scribe", ACTOR)

    assert isinstance(caught.value, ValueError)
    assert get_standing(system, "scribe").live is Live.LIVE


def test_delete_of_an_unrecorded_name_is_a_lookup_error(system: System) -> None:
    """delete of an unrecorded name: LookupError."""
    with pytest.raises(UnknownSession) as caught:
        delete_standing(system, "nobody", ACTOR)

    assert isinstance(caught.value, LookupError)
