"""What the slash command shows, within Slack's limits."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.views.answers import help_view, list_view, plain_view, refusal_view, status_view
from bot.workspace.limits import check_blocks

_ROW = st.fixed_dictionaries(
    {"name": st.text(max_size=40)},
    optional={
        "running": st.booleans() | st.none(),
        "status": st.text(max_size=10) | st.none(),
        "live": st.sampled_from(["live", "dead", "absent", "foreign", "unknown"]),
        "activity": st.none() | st.text(max_size=400),
        "queued": st.integers() | st.none(),
        "hold": st.none() | st.text(max_size=10) | st.fixed_dictionaries({"kind": st.text(max_size=10)}),
        "detail": st.text(max_size=5000),
        "cwd": st.text(max_size=5000),
        "description": st.text(alphabet="<&>*`", max_size=5000),
    },
)


@given(st.lists(_ROW, max_size=60))
def test_any_rows_make_a_message_that_slack_takes(rows: list[dict[str, Any]]) -> None:
    """Whatever the rows hold, blocks keep their limits and nothing in them can ping."""
    for view in (status_view(rows), list_view(rows)):
        check_blocks(json.loads(json.dumps(list(view.blocks))))
        assert view.text
        assert "<" not in json.dumps(view.blocks)


def test_fifty_sessions_are_all_in_the_status() -> None:
    """A common number of sessions needs no cutting."""
    rows = [{"name": f"session-number-{n}", "running": True, "activity": "idle", "queued": 1} for n in range(50)]

    shown = str(status_view(rows).blocks)

    assert all(f"session-number-{n}" in shown for n in range(50))
    assert "more:" not in shown


def test_states_are_told_apart() -> None:
    """A hold is named before anything else; without one the session's activity, or what tmux said."""
    rows = [
        {"name": "a", "running": True, "activity": "busy"},
        {"name": "b", "running": True, "activity": None},
        {"name": "c", "running": False, "hold": {"kind": "failed"}},
        {"name": "d", "running": False, "hold": None, "live": "foreign", "status": "stopped"},
        {"name": "e", "running": False, "status": "stopped", "live": "absent"},
    ]

    lines = status_view(rows).blocks[1]["text"]["text"].splitlines()

    assert lines == ["● *a* busy", "● *b* running", "○ *c* failed", "○ *d* foreign", "○ *e* stopped"]


def test_no_sessions_is_said() -> None:
    """An empty answer would look like a fault."""
    assert "no standing sessions" in status_view([]).text


def test_an_unknown_verb_cannot_break_out_of_its_quotes() -> None:
    """What was typed comes back as text."""
    shown = str(help_view("`<!channel>`" + "x" * 500).blocks)

    assert "<!channel>" not in shown
    assert "x" * 300 not in shown


def test_a_refusal_says_no_more_than_that() -> None:
    """Its text and its block are the same short line."""
    view = refusal_view()

    assert view.blocks[0]["text"]["text"] == view.text
    assert len(plain_view("y" * 100_000).text) < 3_000
