"""What a screen shows, and keys that are written only while it still shows that, over both transports."""

import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from core.base.errors import NotRunning
from core.model.harness import Launch
from core.model.pane import Pane, View, Written
from core.session.launching import launcher_text
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, launcher, soon, wait_until

ROWS = (
    " Which? [a-z]{2} \\d #{pid},  'q' \"w\" $HOME ~",
    "",
    " ❯ No, exit (a+b)",
    "   Yes·… 日本",
    "",
    " Enter to confirm",
)


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> Runner:
    """Give a runner over each transport."""
    return private.runner(ControlTransport(private.server) if request.param == "control" else None)


def drawn(private: PrivateTmux, runner: Runner, *rows: str, keys: str = "") -> tuple[Pane, View]:
    """Draw the rows, the cursor behind the third, and return the pane and what it shows then."""
    text = private.folder / "rows"
    text.write_text("\r\n".join(rows) + f"\x1b[3;3H{keys}", encoding="utf-8")
    pane = private.spawn(runner, launcher(private.folder / "draw", f"stty raw -echo; cat {text}; exec cat -v"))
    wait_until(lambda: any(rows[-1] in row for row in runner.view(pane.tag).rows), "it is drawn")
    return pane, runner.view(pane.tag)


def changed(runner: Runner, pane: Pane, before: View) -> str:
    """Return what a key has made of the third row."""
    wait_until(lambda: runner.view(pane.tag).rows[2] != before.rows[2], "the key was read")
    return runner.view(pane.tag).rows[2]


def test_a_screen_is_shown_row_by_row(private: PrivateTmux, runner: Runner) -> None:
    """All rows of the screen and no more, exactly as they are, and where the cursor is."""
    _, view = drawn(private, runner, *ROWS)

    assert view.rows[: len(ROWS)] == ROWS
    assert len(view.rows) == 50
    assert (view.cursor, view.application_keys) == ((2, 2), False)


def test_a_row_that_is_too_wide_moves_none_below_it(private: PrivateTmux, runner: Runner) -> None:
    """A harness that draws rows may count fewer columns than the terminal: what is beyond the edge is cut."""
    show = Launch(("/bin/sh", "-c", "printf '%0300d\\nthe frame' 0; exec cat"), keeps_rows=True)
    path = private.folder / "too-wide"
    path.write_text(launcher_text(show, ()))
    path.chmod(0o700)
    pane = private.spawn(runner, path)
    wait_until(lambda: any("the frame" in row for row in runner.view(pane.tag).rows), "it is drawn")

    assert runner.view(pane.tag).rows[:3] == ("0" * 200, "the frame", "")


def test_a_program_is_let_draw_anew_by_a_row_less_and_a_row_more(private: PrivateTmux, runner: Runner) -> None:
    """It is told of a new size, and gets no key; another instance's pane is left alone."""
    draws = 'stty raw -echo; n=0; trap "n=\\$((n+1)); echo drawn \\$n" WINCH; echo drawn 0; while :; do sleep 0.1; done'
    pane = private.spawn(runner, launcher(private.folder / "draws", f"exec sh -c '{draws}'"))

    def drew(number: int) -> bool:
        return f"drawn {number}" in "\n".join(runner.view(pane.tag).rows)

    wait_until(partial(drew, 0), "it is drawn")
    heights = [len(runner.view(pane.tag).rows)]

    for number in (1, 2):
        runner.redraw(pane.tag)
        wait_until(partial(drew, number), "it is drawn anew")
        heights.append(len(runner.view(pane.tag).rows))

    assert heights == [50, 49, 50]
    with pytest.raises(NotRunning):
        runner.redraw("i-of-another")


def test_the_other_form_of_the_arrow_keys_is_told(private: PrivateTmux, runner: Runner) -> None:
    """A program may have asked for it."""
    _, view = drawn(private, runner, *ROWS, keys="\x1b[?1h")

    assert view.application_keys is True


def test_a_key_is_written_while_the_rows_stand(private: PrivateTmux, runner: Runner) -> None:
    """Whatever stands in them, also where the pane is in copy mode."""
    pane, view = drawn(private, runner, *ROWS)
    private.tmux("copy-mode", "-t", pane.pane_id)

    written = runner.press(pane.tag, b"k", "k-1", soon(), view=view, rows=(0, 2, 3, 5))

    assert written is Written.DONE
    assert changed(runner, pane, view) == " ❯kNo, exit (a+b)"


@pytest.mark.parametrize("row", [0, 2, 3, 5])
def test_no_key_is_written_once_a_row_is_another(private: PrivateTmux, runner: Runner, row: int) -> None:
    """One letter is enough; nothing of the key stays behind."""
    pane, view = drawn(private, runner, *ROWS)
    other = list(view.rows)
    other[row] = other[row].replace("i", "j").replace("Y", "y").replace("E", "e").replace("N", "n")

    written = runner.press(pane.tag, b"k", "k-1", soon(), view=View(tuple(other), view.cursor), rows=(0, 2, 3, 5))

    assert written is Written.CHANGED
    assert runner.view(pane.tag) == view
    assert private.tmux("list-buffers") == ""


WIDE = "日本" * 50  #: 300 bytes of a row
UNLIKE = (
    ("   ls -la", "   rm -rf ~/x"),
    ("   fetch a.example/b?", "   fetch a/example.b!"),
    ("   }#,#{pid}", "   },#{pid}#"),
    ("   a;", "   a:"),
    ("", "   rm -rf ~/x"),
    ("again", "other"),
    ("日本 x", "日夲 x"),
    ("─" * 200, "─" * 199 + "┄"),
    ("$HOME \\$HOME", "$HOME \\\\HOME"),
    ("a" * 198 + "^b", "a" * 198 + "^c"),
    (WIDE, f"{WIDE[:-1]}木"),
    (WIDE, WIDE[:-1]),
    ("x" * 190 + "]\\}^#,.*+(", "x" * 190 + "]\\}^#,.*+)"),
)


@pytest.mark.parametrize(("seen", "now"), UNLIKE, ids=range(len(UNLIKE)))
def test_no_key_is_written_once_any_row_is_another_by_a_letter(
    private: PrivateTmux, runner: Runner, seen: str, now: str
) -> None:
    """Whatever sign it is, however wide the row, and though the same text stands elsewhere as well."""
    rows = [seen, now, "again", "", " ❯ Yes", now, " Enter"]
    pane, view = drawn(private, runner, *rows)
    before = View((*view.rows[:5], seen, *view.rows[6:]), view.cursor)

    refused = runner.press(pane.tag, b"k", "k-1", soon(), view=before, rows=range(4, 7))

    assert refused is Written.CHANGED
    assert private.tmux("list-buffers") == ""
    assert "@the_loop" not in private.tmux("show-options", "-s")


def test_a_key_is_written_while_any_such_rows_stand(private: PrivateTmux, runner: Runner) -> None:
    """However they are spelled for tmux, and though some stand twice."""
    pane, view = drawn(private, runner, *(seen for seen, _ in UNLIKE), " Enter")

    assert runner.press(pane.tag, b"k", "k-1", soon(), view=view, rows=range(len(UNLIKE) + 1)) is Written.DONE


def test_a_key_is_written_where_the_dialog_fills_a_screen_of_wide_rows(private: PrivateTmux, runner: Runner) -> None:
    """Each row is compared, and both transports take so long a line."""
    pane, view = drawn(private, runner, *(f"{number:02} {'w' * 110}" for number in range(1, 50)), " Enter")

    assert runner.press(pane.tag, b"k", "k-1", soon(), view=view, rows=range(50)) is Written.DONE


def test_what_somebody_copied_stays(private: PrivateTmux, runner: Runner) -> None:
    """The comparison makes buffers of its own, and deletes those alone."""
    pane, view = drawn(private, runner, *ROWS)
    private.tmux("set-buffer", "copied")

    assert runner.press(pane.tag, b"k", "k-1", soon(), view=view, rows=range(6)) is Written.DONE
    assert private.tmux("list-buffers", "-F", "#{buffer_sample}").strip() == "copied"


def test_no_key_is_written_once_the_cursor_is_elsewhere(private: PrivateTmux, runner: Runner) -> None:
    """A program may have gone on and left the rows on the screen."""
    pane, view = drawn(private, runner, *ROWS)

    written = runner.press(pane.tag, b"k", "k-1", soon(), view=View(view.rows, (9, 9)), rows=(2,))

    assert written is Written.CHANGED


def test_a_row_that_stands_twice_is_no_obstacle(private: PrivateTmux, runner: Runner) -> None:
    """A conversation above may show the same text."""
    pane, view = drawn(private, runner, " Enter to confirm", *ROWS[1:])

    assert runner.press(pane.tag, b"k", "k-1", soon(), view=view, rows=(2, 5)) is Written.DONE


def test_what_has_ended_shows_its_last_and_takes_no_key(private: PrivateTmux, runner: Runner) -> None:
    """A pane that is gone altogether is said to be."""
    pane, view = drawn(private, runner, *ROWS)
    late = datetime.now(UTC) - timedelta(seconds=2)

    too_late = runner.press(pane.tag, b"k", "k-1", late, view=view, rows=(2,))
    private.tmux("kill-session", "-t", "=loop-standing-test:")

    assert too_late in (Written.LATE, Written.CHANGED)
    assert runner.press(pane.tag, b"k", "k-2", soon(), view=view, rows=(2,)) is Written.ABSENT
    with pytest.raises(NotRunning):
        runner.view(pane.tag)


def test_a_dead_pane_takes_no_key(private: PrivateTmux, runner: Runner) -> None:
    """tmux 3.3a would end with all sessions on a paste into it."""
    text = private.folder / "rows"
    text.write_text("\r\n".join(ROWS), encoding="utf-8")
    pane = private.spawn(runner, launcher(private.folder / "draw", f"cat {text}"))
    wait_until(lambda: (seen := runner.survey().of_instance(pane.tag)) is not None and seen.dead, "it has ended")

    written = runner.press(pane.tag, b"k", "k-1", soon(), view=runner.view(pane.tag), rows=(2,))

    assert written is Written.DEAD
    assert subprocess.run([*private.server.command, "list-panes"], env=private.environ, check=True).returncode == 0
