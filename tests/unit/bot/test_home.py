"""The page of the Home tab."""

import json
from typing import Any

from bot.home import home_view


def _as_it_is(text: str, *, verbatim: bool = False) -> str:
    return text


def _page(*rows: dict[str, Any]) -> str:
    return json.dumps(
        home_view((), [{"name": "guide", "status": "idle", **row} for row in rows], lambda *_: "", _as_it_is)
    )


def test_the_page_says_of_which_hosts_it_does_not_show_what_waits() -> None:
    """A gateway's page has the sessions of all hosts, and the requests of its own."""
    other, own = {"host": "build", "hostSeen": "2026-11-30T10:00:00Z"}, {"host": "gate", "hostSeen": None}

    told = "What sessions on `build` wait for is not shown here: see their threads."

    assert told in _page(own, other, other)
    assert "is not shown here" not in _page(own)
    assert "is not shown here" not in _page({})
