"""A screen as cells: colours of every kind, wide and composed letters, and what hides a secret."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.redaction import Redactor
from core.model.cells import MOST_COLUMNS, MOST_ROWS, Rows, Style, colour, drawing_of, masked, rows_of
from core.model.pane import Frame

ESC = "\x1b["
SECRET = "ghp_" + "Ab3" * 12


def frame(*lines: str, columns: int = 80, cursor: tuple[int, int] = (0, 0)) -> Frame:
    """Return a screen of these lines."""
    return Frame(columns, len(lines), cursor, True, "\n".join(lines))


def text(rows: Rows) -> list[str]:
    """Return what can be read."""
    return ["".join(cell.text for cell in row) for row in rows]


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("1", Style(bold=True)),
        ("1;2;3;4;7;8;9", Style("", "", True, True, True, True, True, True, True)),
        ("31", Style(front=colour(1))),
        ("97;104", Style(front=colour(15), back=colour(12))),
        ("38;5;208", Style(front="#ff8700")),
        ("48;5;16", Style(back="#000000")),
        ("38;5;232", Style(front="#080808")),
        ("38;5;255", Style(front="#eeeeee")),
        ("38;2;1;2;3;1", Style(front="#010203", bold=True)),
        ("48:2::255:128:0", Style(back="#ff8000")),
        ("38:5:9", Style(front=colour(9))),
        ("4:3", Style(underlined=True)),
        ("4:0", Style()),
        ("1;0", Style()),
        ("1;;31", Style(front=colour(1))),
        ("38;5;300", Style()),
        ("38;2;1", Style(front="#010000")),
        ("38", Style()),
        ("77;200", Style()),
    ],
)
def test_a_style_is_what_its_codes_say(codes: str, style: Style) -> None:
    """16, 256 and true colours, by semicolons and by colons; what is not known changes nothing."""
    [row] = rows_of(frame(f"{ESC}{codes}mx"))

    assert [(cell.text, cell.style) for cell in row] == [("x", style)]


def test_a_style_ends_where_it_is_told_and_goes_on_over_a_rows_end() -> None:
    """As tmux writes it: a row does not begin anew."""
    first, second = rows_of(frame(f"{ESC}1;3;4;7;9;31;41ma", f"b{ESC}22;23;24;27;29;39;49mc"))

    assert first[0].style == second[0].style
    assert (second[0].style.bold, second[1].style) == (True, Style())


def test_wide_and_composed_letters_take_the_columns_that_they_take() -> None:
    """What is composed with a letter stands in its cell; line drawing is what it draws."""
    [row] = rows_of(frame("日e\u0301x\x0elqk\x0fl"))

    assert [(cell.text, cell.width) for cell in row] == [
        *(("日", 2), ("e\u0301", 1), ("x", 1)),
        *(("┌", 1), ("─", 1), ("┐", 1), ("l", 1)),
    ]
    drawn = drawing_of(frame("日x"), rows_of(frame("日x")))["rows"]
    assert drawn == [[[0, "日", 2, "", "", []], [2, "x", 1, "", "", []]]]


def test_what_is_inverse_hidden_or_empty_is_drawn_so() -> None:
    """Blanks without a colour are left out, hidden letters are not drawn at all."""
    shown = frame(f"a {ESC}7mb{ESC}0;8mc{ESC}0;44m ")
    assert drawing_of(shown, rows_of(shown))["rows"] == [
        [[0, "a", 1, "", "", []], [2, "b", 1, "back", "front", []], [4, " ", 1, "", colour(4), []]]
    ]


def test_a_picture_is_bounded_and_keeps_the_end_of_the_screen() -> None:
    """What is asked of a person stands below; the cursor moves along."""
    shown = frame(*[f"{number}" + "x" * 400 for number in range(200)], columns=400, cursor=(2, 199))
    drawing = drawing_of(shown, rows_of(shown))

    assert (drawing["columns"], len(drawing["rows"])) == (MOST_COLUMNS, MOST_ROWS)  # type: ignore[arg-type]
    assert drawing["cursor"] == [2, MOST_ROWS - 1]
    assert "".join(cell[1] for cell in drawing["rows"][-1]).startswith("199x")  # type: ignore[index]


def test_what_is_empty_is_cut_away() -> None:
    """A tall, wide terminal with a few words in it is a small picture; the cursor is always in it."""
    words = frame("one", "two", "", "", "", columns=200, cursor=(1, 1))
    low = frame("one", "", "", "", columns=200, cursor=(90, 2))
    bare = frame("", "", columns=200, cursor=(0, 5))

    assert [drawing_of(shown, rows_of(shown))["columns"] for shown in (words, low, bare)] == [40, 91, 40]
    assert [len(drawing_of(shown, rows_of(shown))["rows"]) for shown in (words, low, bare)] == [2, 3, 0]  # type: ignore[arg-type]
    assert drawing_of(low, rows_of(low))["cursor"] == [90, 2]


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ([f"the token is {SECRET} here"], 80),
        ([f"{ESC}31mghp_{ESC}32mAb3{ESC}0m" + "Ab3" * 11], 80),  # coloured apart
        ([SECRET[:20], SECRET[20:]], 20),  # broken where the terminal ends
        (["│ " + SECRET[:17] + "│", "│ " + SECRET[17:].ljust(23) + "│"], 20),  # within a box
    ],
)
def test_no_part_of_a_secret_can_be_read(lines: list[str], columns: int) -> None:
    """However its program wrote it; all around it stays."""
    shown = frame(*lines, columns=columns)
    rows = masked(rows_of(shown), columns, Redactor().cuts)
    read = "".join(text(rows))

    assert "Ab3" not in read
    assert sum(cell.masked for row in rows for cell in row) >= len(SECRET) - 4
    assert ("the token is" in read) == ("the token is" in lines[0])
    assert "Ab3" not in json.dumps(drawing_of(shown, rows))


def test_what_was_found_above_the_screen_is_masked_on_it() -> None:
    """A key whose first line has scrolled off: its other lines are known from the longer text."""
    lines = [base64.b64encode(hashlib.sha512(bytes([number])).digest()).decode()[:64] for number in range(4)]
    key = ["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"]
    longer = "\n".join(["above", *key, "below"])
    known = [longer[cut.start : cut.end] for cut in Redactor().cuts(longer)]
    shown = frame(*key[3:], "below")

    read = text(masked(rows_of(shown), 80, Redactor().cuts, known))

    assert not [line for line in lines if line[:8] in "".join(read)]
    assert read[-1] == "below"


@given(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=200), st.integers(1, 300))
def test_any_text_has_cells(line: str, columns: int) -> None:
    """Nothing that a program writes ends in an error."""
    shown = frame(line, columns=columns)
    rows = masked(rows_of(shown), columns, Redactor(["supersecretvalue"]).cuts)

    json.dumps(drawing_of(shown, rows))
