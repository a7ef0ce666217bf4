"""What `the-loop top` draws: nothing of a row is lost that somebody must see, whatever the terminal's size."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from core.base.clock import SystemClock
from core.cli.top import Snapshot, View, drawn

CLOCK = SystemClock()


def row(name: str, **changes: Any) -> dict[str, Any]:
    """Return a row of `list`, as far as it is shown."""
    usual = {"phase": "settled", "hold": None, "status": "running", "live": "live", "activity": "idle"}
    more = {"working": None, "hooks": "reporting", "queued": 0, "loops": 0, "harness": "claude"}
    return {"name": name, **usual, **more, **changes}


def working(cost: float | None, tool: str = "", limit: str = "") -> dict[str, Any]:
    """Return what an agent is doing, with its usage."""
    usage = {"session": {"input": 123_456, "output": 4_000, "cached": 9, "costUsd": cost}}
    return {"tool": tool, "usage": usage, "limit": {"what": limit, "until": None} if limit else None}


ROWS = [
    row("scribe", activity="busy", working=working(1.234, "Bash: make test"), queued=3, loops=2),
    row("builder", hold={"kind": "paused", "reason": "lunch\x1b[2J\nand more"}),
    row("gone", live="absent", activity=None, queued=None),
    row("broken", hold={"kind": "failed", "reason": ""}),
    row("limited", activity="busy", working=working(None, limit="5-hour limit")),
]


def shown(width: int, height: int, *, opened: bool = False, rows: list[dict[str, Any]] = ROWS) -> list[str]:
    """Return the lines that a terminal of that size shows."""
    view = View(rows[0]["name"] if rows else "", opened=opened)
    services = [{"name": "service", "running": True}, {"name": "slack", "running": False}]
    view.take(Snapshot(services, rows, "first\n" * 60 + "last line", "scribe", CLOCK.monotonic()))
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as capture:
        console.print(drawn(view, width, height, CLOCK))
    return capture.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 50), (60, 12)])
@pytest.mark.parametrize("opened", [False, True])
def test_it_fits_the_terminal(width: int, height: int, opened: bool) -> None:
    """Exactly its rows, none too wide; the line of keys is the last."""
    lines = shown(width, height, opened=opened)

    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[-1].startswith("up/down")


def test_holds_queues_tools_limits_tokens_and_costs_are_shown() -> None:
    """Each in its column; what is not known is not called nothing."""
    lines = {line.split()[0]: line for line in shown(120, 24) if line.strip()}

    assert "Bash: make test" in lines["scribe"]
    assert lines["scribe"].split()[-5:] == ["3", "2", "127.5k", "$1.23", "claude"]
    assert "paused: lunch[2J and more" in lines["builder"]
    assert "should run: absent" in lines["gone"]
    assert "?" in lines["gone"]
    assert "failed" in lines["broken"]
    assert "limit: 5-hour limit" in lines["limited"]
    assert "slack down" in lines["service"]


def test_the_end_of_a_screen_is_shown() -> None:
    """What is newest is at its end."""
    lines = shown(80, 24, opened=True)

    assert "last line" in lines[-2]
    assert any(line.startswith("── scribe ") for line in lines)


def test_more_sessions_than_rows_follow_the_selected_one() -> None:
    """A selection is never out of sight."""
    view = View("s40")
    view.take(Snapshot((), [row(f"s{number}") for number in range(60)], at=CLOCK.monotonic()))
    console = Console(width=80, height=24, force_terminal=False)
    with console.capture() as capture:
        console.print(drawn(view, 80, 24, CLOCK))

    lines = capture.get().splitlines()
    assert len(lines) == 24
    assert any(line.startswith("s40 ") for line in lines)


def test_what_could_not_be_asked_is_said() -> None:
    """And so is that what is shown is old."""
    view = View()
    view.take(Snapshot(at=CLOCK.monotonic(), trouble="the database is damaged"))
    old = View()
    old.take(Snapshot((), ROWS, at=CLOCK.monotonic() - 30))
    console = Console(width=80, height=24, force_terminal=False)
    with console.capture() as capture:
        console.print(drawn(view, 80, 24, CLOCK))
        console.print(drawn(old, 80, 24, CLOCK, 2.0))

    assert "the database is damaged" in capture.get()
    assert "30 s ago" in capture.get()
