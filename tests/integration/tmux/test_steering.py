"""What a write meets in a real server, over both transports."""

import os
import select
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from core.model.pane import Receipt, Written
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, alive, launcher, soon, wait_until


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> Runner:
    """Give a runner over each transport."""
    return private.runner(ControlTransport(private.server) if request.param == "control" else None)


def _shown(terminal: int, mark: bytes) -> bytes:
    """Return what a client has drawn, once the mark is there."""
    drawn = b""

    def read() -> bool:
        nonlocal drawn
        while select.select([terminal], [], [], 0)[0]:
            drawn += os.read(terminal, 65_536)
        return mark in drawn

    wait_until(read, f"{mark!r} is drawn")
    return drawn


_TEXTS = {
    "semicolon": b";",
    "trailing semicolon": b"done;",
    "escaped semicolon": b"done\\;",
    "dashes": b"--",
    "flag": b"-t %0 -x",
    "key name": b"Enter",
    "control key name": b"C-c",
    "format": b"#{pane_id} #(date) %H:%M $HOME ~ `id` \\n",
    "quotes": b"'\"`$(id)\\",
    "CRLF": b"one\r\ntwo\nthree\r",
    "CJK": "漢字かな交じり文".encode(),
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u202eabc".encode(),
    "controls": bytes(c for c in range(1, 32)) + b"\x7f",
    "markers": b"\x1b[200~text\nmore\x1b[201~",
    "invalid UTF-8": b"\xff\xfe\x80",
    "NUL": b"a\0b",
    "20 kB": os.urandom(10_000).hex().encode(),
    "120 kB": os.urandom(60_000).hex().encode(),
    "1 MB": os.urandom(500_000).hex().encode(),
}


@pytest.mark.parametrize("data", _TEXTS.values(), ids=_TEXTS.keys())
def test_text_arrives_byte_by_byte(private: PrivateTmux, runner: Runner, data: bytes) -> None:
    """No text is read as a command, a key or a format, none is cut, and none stays behind in the server or on disk."""
    pane, reader = private.reading(runner)

    written = runner.write(pane.tag, data, Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(data)
    assert reader.received() == data
    assert private.tmux("list-buffers") == ""
    assert [path for path in private.folder.glob("load/*") if path.stat().st_size] == []


def test_threads_write_whole_texts_in_their_own_order(private: PrivateTmux, runner: Runner) -> None:
    """Writers of several panes, two a pane, neither mix nor lose nor delete one another's text."""
    panes = [private.reading(runner, target=f"pane-{number}") for number in range(3)]
    failed: list[str] = []

    def write(instance: str, name: str) -> None:
        for number in range(15):
            text = f"<{name}{number}{'x' * 5000}>".encode()
            if runner.write(instance, text, Receipt.PASTED, f"{name}-{number}", soon()) is not Written.DONE:
                failed.append(f"{name}{number}")

    threads = [threading.Thread(target=write, args=(pane.tag, name)) for pane, _ in panes for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    for _, reader in panes:
        reader.wait_for_count(b">", 30)
        texts = reader.received().decode().replace("x", "").removeprefix("<").removesuffix(">").split("><")
        for name in "ab":
            assert [text for text in texts if text.startswith(name)] == [f"{name}{number}" for number in range(15)]


def test_nothing_to_write_is_refused(private: PrivateTmux, runner: Runner) -> None:
    """tmux makes no buffer of no bytes, so an empty write is an error of the caller."""
    pane, _ = private.reading(runner)

    with pytest.raises(ValueError, match="nothing to write"):
        runner.write(pane.tag, b"", Receipt.PASTED, "m-1", soon())


def test_copy_mode_takes_nothing_away(private: PrivateTmux, runner: Runner) -> None:
    """A person who scrolls back keeps scrolling, and the text and its Enter arrive all the same."""
    pane, reader = private.reading(runner)
    private.tmux("copy-mode", "-t", pane.pane_id)

    pasted = runner.write(pane.tag, b"\x1b[200~quit now\x1b[201~", Receipt.PASTED, "m-1", soon())
    submitted = runner.write(pane.tag, b"\r", Receipt.SUBMITTED, "m-1", soon())

    assert (pasted, submitted) == (Written.DONE, Written.DONE)
    expected = b"\x1b[200~quit now\x1b[201~\r"
    reader.wait_for(expected)
    assert reader.received() == expected
    listed = runner.survey().of_instance(pane.tag)
    assert listed is not None
    assert listed.in_mode
    assert listed.receipts == {Receipt.PASTED: "m-1", Receipt.SUBMITTED: "m-1"}


def test_pane_without_input_answers_closed(private: PrivateTmux, runner: Runner) -> None:
    """tmux would swallow the paste into a pane whose input is off, and call it done."""
    pane, reader = private.reading(runner)
    private.tmux("select-pane", "-d", "-t", pane.pane_id)

    closed = runner.write(pane.tag, b"lost", Receipt.PASTED, "m-1", soon())
    private.tmux("select-pane", "-e", "-t", pane.pane_id)
    done = runner.write(pane.tag, b"kept", Receipt.PASTED, "m-2", soon())

    assert (closed, done) == (Written.CLOSED, Written.DONE)
    reader.wait_for(b"kept")
    assert reader.received() == b"kept"


def test_write_after_its_deadline_answers_late(private: PrivateTmux, runner: Runner) -> None:
    """The server itself refuses what comes after the deadline."""
    pane, reader = private.reading(runner)

    late = runner.write(pane.tag, b"lost", Receipt.PASTED, "m-1", datetime.now(UTC) - timedelta(milliseconds=1))
    done = runner.write(pane.tag, b"kept", Receipt.PASTED, "m-2", soon())

    assert (late, done) == (Written.LATE, Written.DONE)
    reader.wait_for(b"kept")
    assert reader.received() == b"kept"


def test_unknown_instance_answers_absent(private: PrivateTmux, runner: Runner) -> None:
    """No pane carries the tag: with a server, without one, and where the pane was taken away since."""
    before = runner.write("i-none", b"x", Receipt.PASTED, "m-1", soon())
    pane, _ = private.reading(runner)
    private.reading(runner, target="other")
    runner.write(pane.tag, b"x", Receipt.PASTED, "m-1", soon())
    private.tmux("kill-pane", "-t", pane.pane_id)

    after = runner.write(pane.tag, b"x", Receipt.PASTED, "m-2", soon())

    assert (before, after) == (Written.ABSENT, Written.ABSENT)
    assert private.tmux("list-buffers") == ""


def test_pane_id_of_a_restarted_server_is_somebody_else(private: PrivateTmux, runner: Runner) -> None:
    """After a restart of tmux the same pane id is another pane: it gets nothing, and the tag is looked for."""
    first, _ = private.reading(runner)
    runner.write(first.tag, b"x", Receipt.PASTED, "m-1", soon())
    server = private.pid()
    private.tmux("kill-server")
    wait_until(lambda: not alive(server), "the server is gone")
    second, reader = private.reading(private.runner())
    assert second.pane_id == first.pane_id

    written = runner.write(first.tag, b"for the first", Receipt.PASTED, "m-1", soon())

    assert written is Written.ABSENT
    assert runner.write(second.tag, b"mine", Receipt.PASTED, "m-2", soon()) is Written.DONE
    reader.wait_for(b"mine")
    assert reader.received() == b"mine"


def test_moved_panes_and_zoomed_neighbours_change_nothing(private: PrivateTmux, runner: Runner) -> None:
    """A person who splits, zooms and synchronises the window does not turn text aside or double it."""
    pane, reader = private.reading(runner)
    private.tmux("split-window", "-t", pane.pane_id, "cat > /dev/null")
    private.tmux("set-option", "-w", "-t", pane.pane_id, "synchronize-panes", "on")
    private.tmux("resize-pane", "-Z", "-t", "=loop-standing-test:")

    written = runner.write(pane.tag, b"here", Receipt.PASTED, "m-1", soon())

    assert written is Written.DONE
    reader.wait_for(b"here")
    assert reader.received() == b"here"
    assert [found.tag for found in runner.survey().panes if found.tag] == [pane.tag]


def test_who_looks_on_is_told_that_they_do_and_how_to_leave(private: PrivateTmux, runner: Runner) -> None:
    """Each client by what it may; the way out is that of the prefix that is in use."""
    pane, _ = private.reading(runner)
    private.tmux("set-option", "-g", "prefix", "C-a")

    with private.attached("-r", "-t=loop-standing-test:") as terminal:
        looking = _shown(terminal, b"leave")
    with private.attached("-t=loop-standing-test:") as terminal:
        typing = _shown(terminal, b"leave")

    assert b"read-only: keys do nothing" in looking
    assert b"attach test --write" in looking
    assert b"what you type goes to the agent" in typing
    assert b"read-only" not in typing
    assert b"leave: C-a d" in looking
    assert b"leave: C-a d" in typing
    assert [found.tag for found in runner.survey().panes if found.tag] == [pane.tag]


def test_only_writable_clients_type(private: PrivateTmux, runner: Runner) -> None:
    """A client that may write is told with the time of its last key; a read-only one and the control client are not."""
    pane, _ = private.reading(runner)
    private.reading(runner, target="other")

    with private.attached("-r", "-t=loop-standing-test:"), private.attached("-t=other:"):
        watching = runner.typing(pane.tag)
        with private.attached("-t=loop-standing-test:") as terminal:
            os.write(terminal, b"k")
            typing = runner.typing(pane.tag)

    assert watching == ()
    assert len(typing) == 1
    assert abs(datetime.now(UTC) - typing[0].last_key_at) < timedelta(seconds=10)


@pytest.mark.parametrize("words", [("-r",), ()], ids=["read-only", "writing"])
def test_whoever_looks_leaves_the_terminal_as_it_is(
    private: PrivateTmux, runner: Runner, words: tuple[str, ...]
) -> None:
    """However small or large their own one is, the agent's keeps its size, while they look and after."""
    body = "printf '%0180d\\n' 7; exec cat"
    pane = private.spawn(runner, launcher(private.folder / "wide", body))
    wait_until(lambda: runner.screen(pane.tag, 5).endswith("7"), "it is shown")
    sizes = set()

    for size in ((1, 2), (90, 300)):
        with private.attached(*words, "-t=loop-standing-test:", size=size):
            sizes.add(private.tmux("display-message", "-p", "-t", pane.pane_id, "#{pane_width}x#{pane_height}"))
    sizes.add(private.tmux("display-message", "-p", "-t", pane.pane_id, "#{pane_width}x#{pane_height}"))

    assert sizes == {"200x50\n"}
    assert runner.screen(pane.tag, 5) == "7".rjust(180, "0")


def test_client_of_a_grouped_session_types_too(private: PrivateTmux, runner: Runner) -> None:
    """A session that shares the window counts, and the pane is still listed once, for the session it was made in."""
    pane, _ = private.reading(runner)
    private.tmux("new-session", "-d", "-s", "aaa-mine", "-t", "=loop-standing-test:")

    with private.attached("-t=aaa-mine:"):
        typing = runner.typing(pane.tag)
        panes = [found for found in runner.survey().panes if found.tag]

    assert len(typing) == 1
    assert [(found.pane_id, found.target) for found in panes] == [(pane.pane_id, "loop-standing-test")]


def test_end_takes_the_pane_from_every_session_that_shows_it(private: PrivateTmux, runner: Runner) -> None:
    """A grouped session does not keep an ended pane, and a session that only borrowed the window stays."""
    pane, _ = private.reading(runner)
    private.tmux("new-session", "-d", "-s", "grouped", "-t", "=loop-standing-test:")
    private.tmux("new-session", "-d", "-s", "borrower", "cat")
    private.tmux("link-window", "-s", pane.pane_id, "-t", "=borrower:")

    ended = runner.end(pane.tag)

    assert ended
    assert {found.target for found in runner.survey().panes} - {"_the-loop"} == {"borrower"}


def test_read_only_client_does_not_stand_in_the_way(private: PrivateTmux, runner: Runner) -> None:
    """Text arrives while somebody watches read-only."""
    pane, reader = private.reading(runner)

    with private.attached("-r", "-t=loop-standing-test:"):
        written = runner.write(pane.tag, b"seen", Receipt.PASTED, "m-1", soon())
        reader.wait_for(b"seen")

    assert written is Written.DONE
    assert reader.received() == b"seen"


def test_program_killed_around_a_write_never_takes_the_server_along(private: PrivateTmux, runner: Runner) -> None:
    """Whenever a program dies next to a write, the server lives on (tmux 3.3a exits on a paste into a dead pane)."""
    private.reading(runner, target="keeper")
    server = private.pid()
    answers = set()

    for number in range(25):
        pane = private.spawn(runner, launcher(private.folder / "cat", "exec cat"), target=f"victim-{number}")
        os.kill(pane.pid, signal.SIGKILL)
        answers.add(runner.write(pane.tag, b"text", Receipt.PASTED, f"m-{number}", soon()))

    assert private.pid() == server
    assert answers <= {Written.DONE, Written.DEAD}
