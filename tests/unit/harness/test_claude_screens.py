"""Claude Code's input line, on screens that were recorded of three versions."""

from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.harness.claude.adapter import ClaudeHarness
from core.harness.claude.files import read_input_line
from core.model.pane import InputLine, View
from core.tmux.guard import without_styles

SCREENS = sorted((Path(__file__).parent / "screens").glob("*/*.txt"))
FRAME = "─" * 40


def read(*rows: str) -> InputLine | None:
    """Return the input line of a screen of these rows."""
    return read_input_line(View(rows))


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_input_line_is_told_from_dialogs_and_views(path: Path) -> None:
    """Idle, busy, half typed, with a list of commands above it or help below it; and where it is not shown."""
    line = read(*path.read_text().rstrip("\n").split("\n"))

    what = "none" if line is None else "mode" if line.mode else "input"
    assert what == {"dialog": "none", "view": "none"}.get(kind := path.stem.partition("-")[0], kind)


def test_auto_mode_is_told_with_what_helps_and_not_with_where_it_asks() -> None:
    """The thread shows that very dialog, with its buttons."""
    dialog = (Path(__file__).parent / "screens" / "2.1.332" / "dialog-auto-unchecked.txt").read_text()

    remark = ClaudeHarness(SystemClock(), {"HOME": "/", "PATH": "/nowhere"}).remark(dialog)

    assert "permissionMode: default" in remark
    assert "in the terminal" not in remark
    assert "in the thread" not in remark


def test_all_tried_versions_were_recorded() -> None:
    """Each by many screens."""
    assert {path.parent.name for path in SCREENS} == {"2.1.197", "2.1.280", "2.1.332"}
    assert len(SCREENS) > 70


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [FRAME],
        [FRAME, FRAME],
        [FRAME, "text", FRAME],
        [FRAME, "❯ ", FRAME, "  ❯ an agent"],
        ["❯ ", FRAME],
        ["  " + FRAME, "❯ ", FRAME],
    ],
)
def test_half_a_screen_has_none(rows: list[str]) -> None:
    """A redraw half way, or frames of something else."""
    assert read(*rows) is None


def test_a_frame_may_carry_a_name() -> None:
    """A session that was named has its name in the frame; a long text has several rows."""
    assert read("─" * 20 + " bob ──", "❯ one", "  two", "  three", FRAME, "  ? for shortcuts") is not None


@pytest.mark.parametrize(
    ("row", "mode"),
    [("!\xa0", "shell mode"), ("!\xa0ls", "shell mode"), ("# mem", "memory mode"), ("&", "background mode")],
)
def test_a_line_in_another_mode_takes_no_message(row: str, mode: str) -> None:
    """What stands behind `!` is run by a shell."""
    line = read(FRAME, row, FRAME)

    assert line is not None
    assert line.mode == mode


def test_a_message_may_begin_with_the_sign_of_a_mode() -> None:
    """Behind the mark of the line it is text."""
    line = read(FRAME, "❯\xa0#mem", FRAME)

    assert line is not None
    assert line.mode == ""


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (["❯\xa0"], ""),
        (["❯\xa0 "], ""),
        (["❯\xa0/clear [name]"], "/clear [name]"),
        (["❯\xa0one", "  two", "  "], "one\n  two"),
        (["!\xa0touch x; "], "touch x;"),
    ],
)
def test_what_stands_in_the_line_is_read(rows: list[str], text: str) -> None:
    """All rows of it, without the mark; blanks alone are nothing."""
    line = read(FRAME, *rows, FRAME)

    assert line is not None
    assert line.text == text


@pytest.mark.parametrize("version", ["2.1.197", "2.1.280", "2.1.332"])
@pytest.mark.parametrize(("name", "text"), [("idle", ""), ("narrow", ""), ("half-typed", "half\n  typed")])
def test_the_recorded_lines_are_read(version: str, name: str, text: str) -> None:
    """Of each version."""
    line = read(*(SCREENS[0].parents[1] / version / f"input-{name}.txt").read_text().rstrip("\n").split("\n"))

    assert line is not None
    assert line.text == text


@pytest.mark.parametrize(
    ("row", "column", "text"),
    [
        (
            "\x1b[38;5;246m❯\xa0\x1b[7m\x1b[39mP\x1b[0;2m\x1b[39m\x1b[49mress up to edit queued messages",
            2,
            "",
        ),
        ("❯\xa0\x1b[7mP\x1b[0;2mress\x1b[0m \x1b[2mup\x1b[0m", 2, ""),
        ("\x1b[39m❯\xa0\x1b[7mp\x1b[0m\x1b[39m\x1b[49mlease do not", 2, "please do not"),
        ("\x1b[39m❯\xa0\x1b[7mp\x1b[0m", 2, "p"),
        ("❯\xa0yes, d\x1b[7mo\x1b[0;2m that\x1b[0m", 8, "yes, d"),
        ("❯\xa0\x1b[38;5;2mgreen\x1b[48;2;1;2;3m words\x1b[39m", 13, "green words"),
    ],
    ids=["332", "197", "cursor-at-start", "one-letter", "completed", "colours"],
)
def test_what_claude_suggests_is_no_text_of_a_person(row: str, column: int, text: str) -> None:
    """It is drawn faint, but for the letter under the cursor; a colour is no faintness (2.1.197, 2.1.332)."""
    plain, bright = without_styles([f"\x1b[38;5;244m{FRAME}", row, f"\x1b[0m\x1b[38;5;244m{FRAME}"])
    line = read_input_line(View(plain, (column, 1), bright=bright))

    assert line == InputLine(text)
