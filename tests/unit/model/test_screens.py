"""Dialogs that are known by their form: what real programs showed, and what only looks like one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.dialog import Dialog, read_dialog

SCREENS = Path(__file__).parents[1] / "harness" / "screens"
VERSIONS = sorted(path.name for path in SCREENS.iterdir())


def shown(version: str, name: str) -> list[str]:
    """Return a recorded screen's rows."""
    return (SCREENS / version / f"{name}.txt").read_text().rstrip("\n").split("\n")


def dialog(version: str, name: str) -> Dialog:
    """Return the dialog that a recorded screen shows."""
    found = read_dialog(shown(version, name))
    assert found is not None
    return found


def labels(found: Dialog) -> list[str]:
    """Return what can be chosen."""
    return [choice.label for choice in found.choices]


RECORDED = [(version, path.stem) for version in VERSIONS for path in sorted((SCREENS / version).glob("dialog-*.txt"))]


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_every_recorded_dialog_is_known(version: str, name: str) -> None:
    """By a list with a cursor, or by a last line that names keys; what it says stands in its text."""
    found = dialog(version, name)

    assert found.choices or found.keys
    assert found.title
    assert found.title in found.text
    assert found.at is None or shown(version, name)[found.choices[found.at].row].strip().startswith("❯")


@pytest.mark.parametrize("version", VERSIONS)
def test_choices_are_read_without_numbers_cursor_and_boxes(version: str) -> None:
    """Numbered or not, with or without boxes, wherever the cursor is."""
    new = version != "2.1.197"
    servers = dialog(version, "dialog-servers")
    trust, server, bypass = (dialog(version, f"dialog-{name}") for name in ("trust", "server", "bypass"))

    assert sorted(labels(trust)) == ["No, exit", "Yes, I trust this folder"]
    assert labels(trust)[trust.at or 0] == ("No, exit" if new else "Yes, I trust this folder")
    assert labels(server) == [
        "Use this MCP server",
        "Use this and all future MCP servers in this project",
        "Continue without using this MCP server",
    ]
    assert server.at == (2 if new else 0)
    assert labels(bypass) == ["No, exit", "Yes, I accept"]
    assert labels(servers)[:3] == ["one", "two", "the other"]
    assert [choice.ticked for choice in servers.choices] == [True, True, True, *([None] if new else [])]
    assert [key.name for key in servers.keys] == ["Space", *([] if new else ["Enter"]), "Esc"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["dialog-bash", "dialog-bash-narrow", "dialog-bash-long", "dialog-fetch"])
def test_a_permission_is_read_whole(version: str, name: str) -> None:
    """What it is about, and no more of the screen than that."""
    found = dialog(version, name)

    assert labels(found)[0] == "Yes"
    assert labels(found)[-1].startswith("No")
    assert found.title in ("Bash command", "Fetch")
    assert "●" not in found.text
    assert ("touch made" in found.text) is (found.title == "Bash command")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_explanation_below_a_choice_is_none(version: str) -> None:
    """A question's choices have descriptions, and one more stands below a frame, where the cursor may be."""
    found = dialog(version, "dialog-question")
    below = dialog(version, "dialog-question-below-the-frame")

    assert labels(found) == ["red", "blue", "Type something.", "Chat about this"]
    assert (found.at, labels(below)) == (0, labels(found))
    assert below.at == 3
    assert found.same(below)


def test_keys_are_read_where_there_is_no_choice() -> None:
    """Also from a line that a narrow terminal has broken."""
    wide, narrow = (dialog("2.1.332", f"dialog-auto-unchecked{end}") for end in ("", "-narrow"))

    assert [key.name for key in wide.keys] == ["Enter", "Shift+Tab", "Esc"]
    assert wide.keys == narrow.keys
    assert wide.key("Esc") is not None
    assert wide.key("Tab") is None
    assert wide.title == "Auto mode can't check actions in this session"


def test_what_was_asked_for_no_hook_is_read_too() -> None:
    """The second dialog of auto mode has neither numbers nor an Enter in its last line."""
    found = dialog("2.1.332", "dialog-auto-approval")

    assert (labels(found), found.at) == (["No", "Yes"], 0)
    assert "needs your approval" in found.text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_transcript_shows_no_dialog(version: str) -> None:
    """Whatever was said in it: below it a frame closes, and no line names what a key does to a dialog."""
    assert read_dialog(shown(version, "view-transcript")) is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["input-idle", "input-narrow", "mode-shell", "input-half-typed", "input-shortcuts"])
def test_an_input_line_is_no_dialog(version: str, name: str) -> None:
    """It has a mark like a cursor, and no choices."""
    assert read_dialog(shown(version, name)) is None


@pytest.mark.parametrize(
    ("screen", "choices"),
    [
        ("Do it?\n› 1. Yes\n  2. No\n", ["Yes", "No"]),  # Codex
        (
            "Apply this?\n\n● 1. Allow once\n  2. Always\n  3. No (esc)\n",
            ["Allow once", "Always", "No (esc)"],
        ),  # Gemini
        ("? Which one\n> 1) this\n  2) that\n", ["this", "that"]),
        ("Pick\n  ▸ [x] a\n    [ ] b\n\nSpace to select · Enter to confirm\n", ["a", "b"]),
        ("Pick\n  → left\n    right\n\nPress Enter to continue · Esc to go back\n", ["left", "right"]),
    ],
)
def test_other_programs_draw_them_otherwise(screen: str, choices: list[str]) -> None:
    """The cursor's mark, numbers and boxes differ."""
    found = read_dialog(screen.split("\n"))

    assert found is not None
    assert labels(found) == choices
    assert found.at == 0


@pytest.mark.parametrize(
    "screen",
    [
        "",
        "❯ make\nall done\n",
        "● Working\n  esc to interrupt\n",
        "1. Yes\n2. No\n",
        "> 1. quoted\n",
        "Press the button to go on, then add salt to taste\n",
        "Use Ctrl+C to quit · it is easy to do\n",
    ],
)
def test_what_only_looks_like_one_is_none(screen: str) -> None:
    """A prompt of a shell, a busy line, a list without a cursor, a sentence."""
    assert read_dialog(screen.split("\n")) is None


def test_the_same_is_the_same_wherever_it_stands_and_its_cursor_is() -> None:
    """Another question with the same answers is another dialog."""
    first, moved = dialog("2.1.332", "dialog-trust"), shown("2.1.332", "dialog-trust")
    at = next(row for row, text in enumerate(moved) if "❯" in text)
    moved[at], moved[at + 1] = moved[at].replace("❯", " "), f" ❯{moved[at + 1][2:]}"
    other = [row.replace("/home/ann/project", "/home/ann/other") for row in moved]

    again, elsewhere = read_dialog(["", "", *moved]), read_dialog(other)

    assert again is not None
    assert first.same(again)
    assert (first.at, again.at) == (0, 1)
    assert not first.same(elsewhere)
    assert not first.same(None)


@given(st.lists(st.text(alphabet="❯›>●─▔ 1234.)[]xEnter to·Esc✔☐ab\t", max_size=40), max_size=30))
def test_any_screen_is_read(rows: list[str]) -> None:
    """Nothing on a screen stops the reader, and what it finds has its place there."""
    found = read_dialog(rows)

    if found is not None:
        assert found.choices or found.keys
        assert all(0 <= choice.row < len(rows) for choice in found.choices)
        assert found.at is None or found.at < len(found.choices)
        assert found.headless or found.top > 0


@pytest.mark.parametrize("line", ["  ════════════════════", " ────────────", "═" * 20, "──────────"])
def test_no_line_within_a_dialog_hides_what_stands_above_it(line: str) -> None:
    """What looks like a frame is none where it is shorter than the frame, or further in."""
    rows = [
        "● before",
        "─" * 60,
        " Bash command",
        " rm -rf kept ; : '",
        line,
        " ' ; git status",
        "",
        " ❯ 1. Yes",
        "   2. No",
    ]

    found = read_dialog(rows)

    assert found is not None
    assert "rm -rf kept" in found.text
    assert "before" not in found.text
    assert not found.headless


def test_a_dialog_without_a_frame_may_begin_above_the_screen() -> None:
    """All rows that the screen has belong to it, and it is told that there may be more."""
    rows = [f" echo note {number}" for number in range(45)]

    found = read_dialog([*rows, " Go on?", " ❯ 1. Yes", "   2. No"])

    assert found is not None
    assert "echo note 0\n" in found.text
    assert found.headless
