"""The documentation's state diagrams are the tables'."""

from pathlib import Path

import pytest

from core.model.events import DIAGRAMS, filled
from core.model.loop import LoopStatus
from core.model.message import MessageState
from core.model.session import Phase

DOCS = Path(__file__).parents[3] / "docs"


def test_documented_diagrams_are_drawn_from_the_tables() -> None:
    """`python -m core.model.events docs/lifecycle.md docs/loops.md` would change nothing."""
    text = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("lifecycle.md", "loops.md"))

    assert filled(text) == text
    assert all(f"<!-- diagram: {name} -->" in text for name in DIAGRAMS)


@pytest.mark.parametrize(("name", "states"), [("phases", Phase), ("messages", MessageState), ("loops", LoopStatus)])
def test_diagram_shows_every_state(name: str, states: type[Phase] | type[MessageState] | type[LoopStatus]) -> None:
    """A state that no arrow names would be one that nobody knows the way out of."""
    assert all(f"    {state.value} --> " in DIAGRAMS[name] for state in states)
