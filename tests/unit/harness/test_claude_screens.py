"""Claude Code's input line, on screens that were recorded of three versions."""

from pathlib import Path

import pytest

from core.domain.pane import InputLine, View
from core.harness.claude.screens import read_input_line

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
    assert read(FRAME, row, FRAME) == InputLine(mode=mode)


def test_a_message_may_begin_with_the_sign_of_a_mode() -> None:
    """Behind the mark of the line it is text."""
    line = read(FRAME, "❯\xa0#mem", FRAME)

    assert line is not None
    assert line.mode == ""
