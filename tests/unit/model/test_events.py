"""docs/events.md is the list of what stands in the event log."""

import re
from pathlib import Path

from core.model.events import Event
from core.store.eventlog import Fields

PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z._]+)` \| (.*) \|$", PAGE, re.MULTILINE)


def test_every_event_is_listed_once() -> None:
    """No event is missing, none is invented, and each says when it is told."""
    listed = [name for name, _ in ROWS if "." in name]

    assert sorted(listed) == sorted(event.value for event in Event)
    assert all(when for _, when in ROWS)


def test_every_field_is_listed_once() -> None:
    """The time, the reference that follows from the name, and all that an event may be given."""
    listed = [name for name, _ in ROWS if "." not in name]

    assert sorted(listed) == sorted([*Fields.__annotations__, "event", "ts", "ref"])
