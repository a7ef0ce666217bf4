"""Claude Code's input line, on screens that were recorded of three versions."""

from pathlib import Path

import pytest

from core.harness.claude.screens import shows_input_line

SCREENS = sorted((Path(__file__).parent / "screens").glob("*/*.txt"))


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_input_line_is_told_from_dialogs_and_views(path: Path) -> None:
    """Idle, busy, half typed, with a list of commands above it or help below it; and where it is not shown."""
    rows = path.read_text().rstrip("\n").split("\n")

    assert shows_input_line(rows) is path.stem.startswith("input-")


def test_all_tried_versions_were_recorded() -> None:
    """Each by many screens."""
    assert {path.parent.name for path in SCREENS} == {"2.1.197", "2.1.280", "2.1.332"}
    assert len(SCREENS) > 70


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ["─" * 40],
        ["─" * 40, "─" * 40],
        ["─" * 40, "text", "─" * 40],
        ["─" * 40, "❯ ", "─" * 40, "  ❯ an agent"],
        ["❯ ", "─" * 40],
        ["  " + "─" * 40, "❯ ", "─" * 40],
    ],
)
def test_half_a_screen_has_none(rows: list[str]) -> None:
    """A redraw half way, or frames of something else."""
    assert shows_input_line(rows) is False


def test_a_frame_may_carry_a_name() -> None:
    """A session that was named has its name in the frame; a long text has several rows."""
    assert shows_input_line(["─" * 20 + " bob ──", "❯ one", "  two", "  three", "─" * 40, "  ? for shortcuts"])
