"""The runner against a real tmux server, one process a call."""

import os
from pathlib import Path

import pytest

from core.base.errors import NotRunning, SpawnFailed
from core.base.names import new_instance
from core.model.pane import Receipt, Spawn, Written
from core.model.session import LastExit, Live
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, Reader, alive, launcher, soon, wait_until


def test_no_server_is_an_empty_survey(private: PrivateTmux, runner: Runner) -> None:
    """Where no server runs there are no panes, and asking starts none."""
    survey = runner.survey()

    assert survey.panes == ()
    assert not (private.folder / f"tmux-{os.getuid()}" / private.server.socket_name).exists()


def test_spawned_pane_is_found_by_its_tag(private: PrivateTmux, runner: Runner) -> None:
    """A spawned pane is tagged, of 200 by 50, in its folder, with the given environment and the marker."""
    report = private.folder / "report"
    facts = "pwd; stty size; echo $GIVEN; echo $THE_LOOP_INSTANCE"
    body = f"{{ {facts}; }} > {report}.new; mv {report}.new {report}; exec cat"

    pane = private.spawn(runner, launcher(private.folder / "launch", body), GIVEN='a;b; $HOME "#{pid}" \\ é\n;')

    wait_until(report.exists, "the program ran")
    listed = runner.survey().of_instance(pane.tag)
    assert listed is not None
    assert (listed.pane_id, listed.session_id, listed.pid) == (pane.pane_id, pane.session_id, pane.pid)
    assert runner.survey().live("loop-standing-test", pane.tag) is Live.LIVE
    text = report.read_text()
    assert text == f'{private.folder}\n50 200\na;b; $HOME "#{{pid}}" \\ é ;\n{pane.tag}\n'


@pytest.mark.parametrize("name", ["plain", "with space", "hash#{pid}", "semi;", "quote'\"$x"])
def test_spawn_enters_folders_of_any_name(private: PrivateTmux, runner: Runner, name: str) -> None:
    """The folder is the one that was named, whatever characters its name has."""
    folder = private.folder / name
    folder.mkdir()
    report = private.folder / "report"
    launch = launcher(private.folder / "launch", f"pwd > {report}.new; mv {report}.new {report}; exec cat")

    runner.spawn(Spawn("loop-standing-x", new_instance(), launch, folder, {}, soon()))

    wait_until(report.exists, "the program ran")
    assert report.read_text() == f"{folder}\n"


def test_spawn_into_a_missing_folder_runs_nothing(private: PrivateTmux, runner: Runner) -> None:
    """The program never starts in another folder than its own."""
    report = private.folder / "report"
    launch = launcher(private.folder / "launch", f"pwd > {report}; exec cat")

    pane = runner.spawn(Spawn("loop-standing-x", new_instance(), launch, private.folder / "missing", {}, soon()))

    wait_until(lambda: runner.survey().live("loop-standing-x", pane.tag) is Live.DEAD, "the pane is dead")
    assert not report.exists()


def test_taken_name_is_refused_and_keeps_its_tag(private: PrivateTmux, runner: Runner) -> None:
    """A second spawn under the same name fails with tmux's words; the first pane and its tag stay."""
    pane, _ = private.reading(runner)

    with pytest.raises(SpawnFailed, match="duplicate session"):
        private.spawn(runner, Path("/bin/cat"))

    assert [found.tag for found in runner.survey().panes] == [pane.tag]


def test_session_of_somebody_else_is_foreign(private: PrivateTmux, runner: Runner) -> None:
    """A session that a person made under our name is told as foreign, and neither taken, written to nor ended."""
    gone = private.spawn(runner, Path("/bin/cat"))
    runner.end(gone.tag)
    private.tmux("new-session", "-d", "-s", "loop-standing-test", "cat")

    live = runner.survey().live("loop-standing-test", gone.tag)

    assert live is Live.FOREIGN
    assert runner.write(gone.tag, b"x", Receipt.PASTED, "m-1", soon()) is Written.ABSENT
    assert not runner.end(gone.tag)
    assert len(runner.survey().of_target("loop-standing-test")) == 1


def test_spawn_after_its_deadline_makes_nothing(private: PrivateTmux, runner: Runner) -> None:
    """The server itself refuses a spawn that comes too late."""
    with pytest.raises(SpawnFailed, match="after its deadline"):
        runner.spawn(Spawn("loop-standing-x", new_instance(), Path("/bin/cat"), private.folder, {}, soon(-1)))

    assert runner.survey().panes == ()


def test_name_that_begins_another_hits_only_itself(private: PrivateTmux, runner: Runner) -> None:
    """Ending `work` leaves `work2` alone, and a spawn of `work` is not taken for `work2`."""
    second = private.spawn(runner, Path("/bin/cat"), target="work2")
    first = private.spawn(runner, Path("/bin/cat"), target="work")

    ended = runner.end(first.tag)

    assert ended
    assert [pane.tag for pane in runner.survey().panes] == [second.tag]
    assert not runner.end(first.tag)
    assert [pane.tag for pane in runner.survey().panes] == [second.tag]


def test_write_arrives_and_leaves_its_receipt(private: PrivateTmux, runner: Runner) -> None:
    """What is written is read by the program, and the pane carries the token."""
    pane, reader = private.reading(runner)

    written = runner.write(pane.tag, b"hello\r", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"hello\r")
    assert reader.received() == b"hello\r"
    listed = runner.survey().of_instance(pane.tag)
    assert listed is not None
    assert listed.receipts == {Receipt.PASTED: "m-1"}
    assert private.tmux("list-buffers") == ""


def test_dead_pane_tells_its_exit(private: PrivateTmux, runner: Runner) -> None:
    """A program that has ended leaves a dead pane with its exit status or its signal."""
    exited = private.spawn(runner, launcher(private.folder / "a", "exit 7"), target="a")
    killed = private.spawn(runner, launcher(private.folder / "b", "kill -9 $$"), target="b")
    wait_until(lambda: all(pane.dead for pane in runner.survey().panes), "both programs ended")

    survey = runner.survey()

    exits = {pane.tag: pane.exit for pane in survey.panes}
    assert exits == {exited.tag: LastExit(7, None), killed.tag: LastExit(None, 9)}


def test_dead_pane_takes_no_write_and_the_server_lives(private: PrivateTmux, runner: Runner) -> None:
    """tmux 3.3a would exit on a paste into a dead pane; the guard answers DEAD, and no text stays in a buffer."""
    pane = private.spawn(runner, launcher(private.folder / "a", "exit 0"))
    wait_until(lambda: runner.survey().panes[0].dead, "the program ended")
    server = private.pid()

    written = runner.write(pane.tag, b"text", Receipt.PASTED, "m-1", soon())

    assert written is Written.DEAD
    assert private.pid() == server
    assert private.tmux("list-buffers") == ""
    assert private.tmux("show-options", "-p", "-t", pane.pane_id, "-v", "@the_loop_refused") == "m-1\n"


def test_ended_session_is_gone_with_its_dead_pane(private: PrivateTmux, runner: Runner) -> None:
    """A dead pane's session is ended as well, and its program's name is free again."""
    pane = private.spawn(runner, launcher(private.folder / "a", "exit 0"))
    wait_until(lambda: runner.survey().panes[0].dead, "the program ended")

    ended = runner.end(pane.tag)

    assert ended
    assert runner.survey().panes == ()
    assert alive(private.pid())


def test_screen_shows_the_last_lines(private: PrivateTmux, runner: Runner) -> None:
    """The last lines come with history, wrapped ones joined, without the empty rest of the screen."""
    body = "i=0; while [ $i -lt 120 ]; do echo line $i; i=$((i+1)); done; printf '%0300d\\n' 7; exec cat"
    pane = private.spawn(runner, launcher(private.folder / "a", body))
    wait_until(lambda: runner.screen(pane.tag, 5).endswith("7"), "everything is shown")

    shown = runner.screen(pane.tag, 100).split("\n")

    assert shown == [f"line {i}" for i in range(21, 120)] + ["7".rjust(300, "0")]
    with pytest.raises(NotRunning):
        runner.screen("i-other", 5)


def test_first_line_of_a_screen_is_whole(private: PrivateTmux, runner: Runner) -> None:
    """A line that takes three rows of the terminal is shown from its beginning, wherever the looked-at rows begin."""
    body = "i=0; while [ $i -lt 90 ]; do printf 'line %d %0480d\\n' $i 7; i=$((i+1)); done; echo end; exec cat"
    pane = private.spawn(runner, launcher(private.folder / "a", body))
    wait_until(lambda: runner.screen(pane.tag, 5).endswith("end"), "everything is shown")

    shown = runner.screen(pane.tag, 51).split("\n")

    assert [line.split(" ")[:2] for line in shown] == [["line", str(i)] for i in range(40, 90)] + [["end"]]


def test_first_line_says_where_its_beginning_is_not_shown(private: PrivateTmux, runner: Runner) -> None:
    """More rows than are ever captured at once: what stands first may be the rest of a line, and a mark says so."""
    pane = private.spawn(runner, launcher(private.folder / "a", "printf 'begin %0600000d\\nend\\n' 7; exec cat"))
    wait_until(lambda: runner.screen(pane.tag, 1).endswith("end"), "everything is shown")

    first, last = runner.screen(pane.tag, 50).split("\n")

    assert last == "end"
    assert first.startswith("… 0000")


_HOOKS = {
    "a pane beside": "split-window -h",
    "a pane before": "split-window -hb",
    "a window": "new-window",
    "a window and a pane": "new-window ; split-window",
    "a window before": "new-window -b",
}


@pytest.mark.parametrize("hook", _HOOKS.values(), ids=_HOOKS.keys())
def test_hooks_of_a_person_turn_nothing_aside(private: PrivateTmux, runner: Runner, hook: str) -> None:
    """Whatever a person has tmux make beside each new session, the tag is the agent's, and so is every text."""
    private.tmux("new-session", "-d", "-s", "mine", "cat")
    private.tmux("set-hook", "-g", "after-new-session", hook)
    pane, reader = private.reading(runner)

    listed = runner.survey().of_instance(pane.tag)
    written = runner.write(pane.tag, b"for the agent\r", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"for the agent\r")
    assert listed is not None
    assert (listed.pane_id, listed.pid) == (pane.pane_id, pane.pid)
    others = private.tmux("list-panes", "-s", "-t", "=loop-standing-test:", "-F", "#{pane_id}").split()
    shown = [private.tmux("capture-pane", "-p", "-t", other) for other in others if other != pane.pane_id]
    assert shown
    assert not any("for the agent" in text for text in shown)


def test_program_that_ends_at_once_is_kept_beside_a_hooks_window(private: PrivateTmux, runner: Runner) -> None:
    """Its pane stays, with its exit and its last output, though another window is the current one."""
    private.tmux("new-session", "-d", "-s", "mine", "cat")
    private.tmux("set-option", "-g", "remain-on-exit", "off")
    private.tmux("set-hook", "-g", "after-new-session", "new-window")

    pane = private.spawn(runner, launcher(private.folder / "a", "exit 7"))

    wait_until(lambda: runner.survey().live("loop-standing-test", pane.tag) is Live.DEAD, "the pane is dead")


def test_pane_that_runs_something_else_is_foreign(private: PrivateTmux, runner: Runner) -> None:
    """A pane of ours in which a person has started another program is not ours: nothing is typed into it."""
    pane, _ = private.reading(runner)
    other = Reader(private.folder / "other")
    private.tmux("respawn-pane", "-k", "-t", pane.pane_id, str(other.launcher))
    other.wait_ready()

    written = runner.write(pane.tag, b"for the agent\r", Receipt.PASTED, "m-1", soon())

    assert written is Written.ABSENT
    assert runner.survey().live("loop-standing-test", pane.tag) is Live.FOREIGN
    with pytest.raises(NotRunning):
        runner.screen(pane.tag, 5)
    assert not runner.end(pane.tag)
    assert other.received() == b""


def test_mention_of_an_instance_makes_no_pane_ours(private: PrivateTmux, runner: Runner) -> None:
    """A person who looks into an instance's files names it on a command line, too."""
    pane, _ = private.reading(runner)
    private.tmux("split-window", "-t", pane.pane_id, f"cat /dev/null THE_LOOP_INSTANCE={pane.tag} - ; exec cat")

    found = [listed.pane_id for listed in runner.survey().panes if listed.tag == pane.tag]

    assert found == [pane.pane_id]


@pytest.mark.parametrize("word", ["absent", "done", "late", "dead", "refused", ""])
def test_screen_that_shows_our_words_is_shown(private: PrivateTmux, runner: Runner, word: str) -> None:
    """What a program prints is never taken for tmux's answer to us, on whichever line it stands."""
    pane = private.spawn(runner, launcher(private.folder / "a", f"echo the-loop:{word}; echo end; exec cat"))
    wait_until(lambda: "end" in private.tmux("capture-pane", "-p", "-t", pane.pane_id), "it has printed")

    shown = runner.screen(pane.tag, 10)

    assert shown == f"the-loop:{word}\nend"
