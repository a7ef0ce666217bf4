"""What our runner claims of tmux, looked at by another library, which asks and reads the answers in its own way."""

import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from libtmux import Pane as TheirPane
from libtmux import Server

from core.model.pane import Pane, Paste, Receipt, Survey, Written
from core.model.session import LastExit
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, launcher, soon, wait_until

TARGET = "loop-standing-test"


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> Runner:
    """Give a runner over each transport."""
    return private.runner(ControlTransport(private.server) if request.param == "control" else None)


@pytest.fixture
def server(private: PrivateTmux, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Give the private server as libtmux sees it."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")  # libtmux reads no answer of a tmux in the C locale
    return Server(socket_path=private.server.socket)


@pytest.fixture
def pane(private: PrivateTmux, runner: Runner) -> Pane:
    """Give a pane of ours, as the runner told of it."""
    return private.reading(runner)[0]


def theirs(server: Server, pane: Pane) -> TheirPane:
    """Return the pane as libtmux sees it now."""
    return TheirPane.from_pane_id(server, pane.pane_id)


def told(survey: Survey) -> set[tuple[object, ...]]:
    """Return what the runner tells of all panes, as `seen` does."""
    panes = survey.panes
    return {(one.pane_id, one.session_id, one.target, str(one.pid), one.tty, one.dead, one.in_mode) for one in panes}


def seen(server: Server) -> set[tuple[object, ...]]:
    """Return what libtmux sees of all panes."""
    return {
        (
            *(one.pane_id, one.session_id, one.session_name, one.pane_pid, one.pane_tty),
            *(one.pane_dead == "1", one.pane_in_mode == "1"),
        )
        for one in server.panes
    }


def test_a_new_pane_is_what_was_told_of_it(server: Server, pane: Pane) -> None:
    """Its session and process, the size of its window, what is kept of it, and the instance that it was started as."""
    found = theirs(server, pane)

    assert (found.session_id, found.session_name, found.pane_pid) == (pane.session_id, TARGET, str(pane.pid))
    assert (found.window_width, found.window_height, found.history_limit) == ("200", "50", "10000")
    assert f"THE_LOOP_INSTANCE={pane.tag} " in (found.pane_start_command or "")
    assert found.window.show_options() == {"remain-on-exit": True, "window-size": "manual"}


def test_a_survey_tells_of_each_pane_and_of_no_other(server: Server, pane: Pane, runner: Runner) -> None:
    """Those of other people, too; the tag is only on the one that was started with it."""
    other = server.new_session(session_name="mine", window_command="cat")
    beside = other.active_window.split()
    beside.copy_mode()

    survey = runner.survey()

    assert told(survey) == seen(server)
    assert {one.pane_id for one in survey.panes} >= {pane.pane_id, beside.pane_id}
    assert [one.pane_id for one in survey.panes if one.tag] == [pane.pane_id]
    assert survey.server == int(theirs(server, pane).pid or 0)


@pytest.mark.parametrize(("ending", "how"), [("exit 7", LastExit(7, None)), ("kill -9 $$", LastExit(None, 9))])
def test_a_dead_pane_is_dead_and_has_ended_like_that(
    private: PrivateTmux, server: Server, runner: Runner, ending: str, how: LastExit
) -> None:
    """Not before libtmux sees it so, and with its status or its signal."""
    waits = launcher(private.folder / "waits", f"read line; {ending}")
    pane = private.spawn(runner, waits)
    before = runner.survey().of_instance(pane.tag)
    lived = theirs(server, pane).pane_dead != "1"

    theirs(server, pane).send_keys("", enter=True)
    wait_until(lambda: theirs(server, pane).pane_dead == "1", "libtmux sees it dead")
    wait_until(lambda: (now := runner.survey().of_instance(pane.tag)) is not None and now.exit, "its end is told")

    after, found = runner.survey().of_instance(pane.tag), theirs(server, pane)
    assert before is not None
    assert (before.dead, lived) == (False, True)
    assert after is not None
    assert (after.dead, after.exit) == (True, how)
    assert (found.pane_dead_status, found.pane_dead_signal) == (
        None if how.status is None else str(how.status),
        None if how.signal is None else str(how.signal),
    )


def test_who_may_type_is_who_is_attached_and_may_write(
    private: PrivateTmux, server: Server, pane: Pane, runner: Runner
) -> None:
    """A person's client, by its name; a read-only one only looks, and a program's does neither."""

    def people() -> dict[str | None, bool]:
        """Return who libtmux sees attached to the pane's session, and whether they may only read."""
        mine = (one for one in server.clients if one.session_id == pane.session_id)
        return {one.client_name: one.client_readonly == "1" for one in mine if one.client_control_mode != "1"}

    words, pipe = [*private.server.command, "-C", "attach-session", f"-t={TARGET}:"], subprocess.PIPE
    with subprocess.Popen(words, env=private.environ, stdin=pipe, stdout=subprocess.DEVNULL) as program:
        wait_until(lambda: str(program.pid) in {one.client_pid for one in server.clients}, "the program is attached")
        alone = (people(), runner.survey())
    with private.attached("-r", f"-t={TARGET}:"):
        looking = (people(), runner.survey())
        with private.attached(f"-t={TARGET}:"):
            typing = (people(), runner.survey())

    for who, survey in (alone, looking, typing):
        writers = {name for name, readonly in who.items() if not readonly}
        assert {one.client for one in survey.typing.get(pane.tag, ())} == writers
        assert survey.viewed == (frozenset({pane.tag}) if who else frozenset())
    assert [len(who) for who, _ in (alone, looking, typing)] == [0, 1, 2]
    [typist] = typing[1].typing[pane.tag]
    assert abs(datetime.now(UTC) - typist.last_key_at) < timedelta(seconds=60)


def test_what_was_pasted_stands_in_the_pane_with_its_receipts(
    private: PrivateTmux, server: Server, runner: Runner
) -> None:
    """Letter by letter, in that pane alone; no buffer stays behind in the server."""
    first, second = (
        private.spawn(runner, launcher(private.folder / name, "stty -echo; echo READY; exec cat"), target=name)
        for name in ("loop-standing-one", "loop-standing-two")
    )
    for one in (first, second):
        wait_until(lambda one=one: "READY" in theirs(server, one).capture_pane(), "it reads")  # type: ignore[misc]
    text = "größe; #{pane_id} $HOME 'q' 日本 -t %0;"

    pasted = runner.paste_all([Paste(first.tag, text.encode(), "m-1", soon(), "m-1-1")])
    written = runner.write(second.tag, b"another\r", Receipt.PASTED, "m-2", soon())

    assert (pasted, written) == ((Written.DONE,), Written.DONE)
    wait_until(lambda: len(theirs(server, first).capture_pane()) > 1, "the first shows its text")
    wait_until(lambda: len(theirs(server, second).capture_pane()) > 1, "the second shows its text")
    assert theirs(server, first).capture_pane() == ["READY", text]
    assert theirs(server, second).capture_pane() == ["READY", "another"]
    assert theirs(server, first).show_options() == {"@the_loop_pasted": "m-1", "@the_loop_submitted": "m-1-1"}
    assert theirs(server, second).show_options() == {"@the_loop_pasted": "m-2"}
    assert server.list_buffers() == []


def test_a_screen_is_what_stands_in_the_pane(private: PrivateTmux, server: Server, runner: Runner) -> None:
    """The rows of the screen, and the last lines with history where a row's rest is joined to it."""
    body = "i=0; while [ $i -lt 80 ]; do printf 'line %d %0240d\\n' $i 7; i=$((i+1)); done; printf end; exec cat"
    pane = private.spawn(runner, launcher(private.folder / "prints", body))
    wait_until(lambda: theirs(server, pane).capture_pane()[-1:] == ["end"], "everything is shown")

    rows, lines = runner.view(pane.tag).rows, runner.screen(pane.tag, 60)

    assert [row.rstrip() for row in rows] == theirs(server, pane).capture_pane()
    assert lines.split("\n") == theirs(server, pane).capture_pane(start="-", join_wrapped=True)[-60:]


def test_a_window_is_a_row_shorter_until_it_is_drawn_again(server: Server, pane: Pane, runner: Runner) -> None:
    """And as wide as before."""
    sizes = []

    for _ in range(2):
        runner.redraw(pane.tag)
        found = theirs(server, pane)
        sizes.append((found.window_width, found.window_height, found.pane_height))

    assert sizes == [("200", "49", "49"), ("200", "50", "50")]


def test_what_is_ended_is_gone_and_nothing_else(private: PrivateTmux, server: Server, runner: Runner) -> None:
    """Sessions whose names begin like it, or that tmux itself would take for it, stay."""
    work = private.spawn(runner, launcher(private.folder / "a", "exec cat"), target="work")
    others = [private.spawn(runner, launcher(private.folder / "a", "exec cat"), target=f"work{n}") for n in (2, 3)]
    strangers = [server.new_session(session_name=name, window_command="cat") for name in ("wor", "work_x", "x-work")]

    ended = runner.end(work.tag)

    left = {one.session_name for one in server.sessions} - {"_the-loop"}
    assert ended == {work.tag}
    assert left == {*(one.target for one in others), *(one.session_name for one in strangers)}
