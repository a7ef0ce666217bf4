"""What the slash command shows, within Slack's limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.views import Draft, View, help_view, list_view, loops_view, plain_view, refusal_view, status_view, told_view
from core.commandtable import COMMANDS
from core.model.channel import PrivateAnswer
from core.model.harness import Limit, PlanItem, PlanState, Working
from embedded.workspace.limits import check_blocks

SECRET = "hunter2<&>and-more"


def hidden(text: str, *, verbatim: bool = False) -> str:
    """Take one word for a secret."""
    return text.replace(SECRET, "[redacted]")


def drawn(draft: Draft) -> View:
    """Return what a draft shows."""
    return draft(hidden)


_ROW = st.fixed_dictionaries(
    {"name": st.text(max_size=40)},
    optional={
        "running": st.booleans() | st.none(),
        "status": st.text(max_size=10) | st.none(),
        "live": st.sampled_from(["live", "dead", "absent", "foreign", "unknown"]),
        "activity": st.none() | st.text(max_size=400),
        "permissionMode": st.none() | st.text(max_size=40),
        "queued": st.integers() | st.none(),
        "loops": st.integers(0) | st.none(),
        "hold": st.none() | st.text(max_size=10) | st.fixed_dictionaries({"kind": st.text(max_size=10)}),
        "detail": st.text(max_size=5000),
        "cwd": st.text(max_size=5000),
        "description": st.text(alphabet="<&>*`", max_size=5000),
    },
)


@given(st.lists(_ROW, max_size=60))
def test_any_rows_make_a_message_that_slack_takes(rows: list[dict[str, Any]]) -> None:
    """Whatever the rows hold, blocks keep their limits and nothing in them can ping."""
    for view in (drawn(status_view(rows)), drawn(list_view(rows)), drawn(loops_view(rows))):
        check_blocks(json.loads(json.dumps(list(view.blocks))))
        assert view.text
        assert "<" not in json.dumps(view.blocks)


def test_fifty_sessions_are_all_in_the_status() -> None:
    """A common number of sessions needs no cutting."""
    rows = [{"name": f"session-number-{n}", "running": True, "activity": "idle", "queued": 1} for n in range(50)]

    shown = str(drawn(status_view(rows)).blocks)

    assert all(f"session-number-{n}" in shown for n in range(50))
    assert "more:" not in shown


def test_states_are_told_apart() -> None:
    """A hold is named before anything else; without one the session's activity, or what tmux said."""
    rows = [
        {"name": "a", "running": True, "activity": "busy", "permissionMode": "default"},
        {"name": "b", "running": True, "activity": None, "permissionMode": "auto"},
        {"name": "c", "running": False, "hold": {"kind": "failed"}},
        {"name": "d", "running": False, "hold": None, "live": "foreign", "status": "stopped"},
        {"name": "e", "running": False, "status": "stopped", "live": "absent"},
        {"name": "f", "running": False, "hold": {"kind": "stopped", "reason": "lunch <now>"}},
    ]

    lines = drawn(status_view(rows)).blocks[1]["text"]["text"].splitlines()

    assert lines == ["● *a* busy", "● *b* running, in auto mode", "○ *c* failed", "○ *d* foreign", "○ *e* stopped",
                     "○ *f* stopped (lunch &lt;now&gt;)"]  # fmt: skip


def test_what_an_agent_is_doing_stands_in_its_line() -> None:
    """What the records say, and no word of what they do not; a tool's command cannot ping anybody."""
    plan = (PlanItem("look", PlanState.DONE), PlanItem("act", PlanState.IN_PROGRESS))
    told = Working(plan, "bash: echo <!here>", "opus", context_used=50, context_size=200, limit=Limit("5 hours"))
    rows = [
        {"name": "a", "running": True, "activity": "busy", "working": told.to_json()},
        {"name": "b", "running": True, "activity": "idle", "working": Working().to_json()},
    ]

    lines = drawn(status_view(rows)).blocks[1]["text"]["text"].splitlines()

    assert lines == [
        "● *a* busy, 1 of 2 done (now: act), bash: echo &lt;!here&gt;, opus, context 25 % of 200 tokens, 5 hours",
        "● *b* idle",
    ]


def test_no_sessions_is_said() -> None:
    """An empty answer would look like a fault."""
    assert "no standing sessions" in drawn(status_view([])).text


def test_an_unknown_verb_cannot_break_out_of_its_quotes() -> None:
    """What was typed comes back as text."""
    shown = str(drawn(help_view("`<!channel>`" + "x" * 500, COMMANDS)).blocks)

    assert "<!channel>" not in shown
    assert "x" * 300 not in shown


def test_an_unknown_verb_is_told_which_one_is_like_it() -> None:
    """Of those that its caller may use; of a word like none there is no guess."""
    near, far = (drawn(help_view(word, COMMANDS)).text for word in ("statsu", "xyzzy"))

    assert "Did you mean `/the-loop status`?" in near
    assert "Did you mean" not in far


def test_a_refusal_says_no_more_than_that() -> None:
    """Its text and its block are the same short line, with the id that a list would name."""
    view = drawn(refusal_view("press this", "U123"))

    assert view.blocks[0]["text"]["text"] == view.text
    assert view.text == "You are not on the list of people who may press this here. Your member id is `U123`."
    assert len(drawn(plain_view("y" * 100_000)).text) < 3_000


@pytest.mark.parametrize("padding", [0, 160, 190, 1_440, 2_395])
def test_no_view_shows_a_secret_whole_or_cut(padding: int) -> None:
    """It is taken out before a text is cut or escaped, wherever the cut would have fallen."""
    text = "x" * padding + SECRET
    row = {"name": "scribe", "running": True, **dict.fromkeys(("activity", "cwd", "detail", "description"), text)}
    drafts = (
        plain_view(text),
        help_view(text, COMMANDS),
        told_view(PrivateAnswer(text)),
        told_view(PrivateAnswer(text, SECRET + text)),
        status_view([row, {"name": text, "hold": {"kind": text}}]),
        list_view([row]),
    )

    shown = [str(drawn(draft)) for draft in drafts]

    assert not [view for view in shown if "hunter2" in view]


def test_the_command_that_shows_all_sessions_is_as_it_can_be_typed() -> None:
    """As every command that a person is told."""
    view = list_view([{"name": f"s-{n}", "cwd": "d" * 300} for n in range(200)])(
        lambda text, *, verbatim=False: text.replace("`the-loop ", "`/opt/the-loop ")
    )

    assert "`/opt/the-loop standing list`" in str(view.blocks[-1])


def test_loops_are_counted_by_session() -> None:
    """A session without any is left out, and none at all is said."""
    rows = [{"name": "scribe", "loops": 2}, {"name": "digger", "loops": 0}, {"name": "builder", "loops": 1}]

    view = drawn(loops_view(rows))

    assert view.text == "3 open loops"
    shown = json.dumps(view.blocks)
    assert "*scribe*: 2 open loops; `/the-loop loops scribe` shows them" in shown
    assert "*builder*: 1 open loop;" in shown
    assert "digger" not in shown
    assert drawn(loops_view(rows[1:2])).text == "No session has an open loop."


def test_in_a_fleet_each_host_has_a_line_above_its_sessions() -> None:
    """With when it was last heard of; without a fleet there is none."""
    rows: list[dict[str, Any]] = [
        {"host": "hub", "hostSeen": None, "name": "scribe", "running": True},
        {"host": "lap", "hostSeen": "2026-12-01T14:03:00+00:00", "name": "guide", "running": False},
        {"host": "lap", "hostSeen": "2026-12-01T14:03:00+00:00", "name": "scribe", "running": True},
    ]

    lines = drawn(status_view(rows)).blocks[1]["text"]["text"].splitlines()
    alone = drawn(status_view([{"name": "scribe", "running": True}])).blocks[1]["text"]["text"]

    assert lines[0] == "*on hub*: 1 of 1 running"
    assert lines[2].startswith("*on lap*: 1 of 2 running, last heard of at ")
    assert len(lines) == 5
    assert "*on" not in alone
