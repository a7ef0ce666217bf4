"""The judge of the chaos runs finds each kind of wrong, and nothing where all is well."""

from dataclasses import replace

import pytest

from tests.chaos.judging import Row, Said, doubled_posts, judge, untrue_marks, untrue_notes

_SAID = [Said(1, "ann", "a@h1", "10.1"), Said(2, "ann", "a@h1", "10.2"), Said(3, "ann", "a@h2", "10.3")]
_ROW = Row("", "confirmed", "", False, False)
_ROWS = {one.ts: replace(_ROW, ts=one.ts) for one in _SAID}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([1, 2], [3], set()),
        ([1], [3], {"lost"}),
        ([1, 2, 2], [3], {"doubled"}),
        ([1, 2, 3], [3], {"misrouted"}),
        ([2, 1], [3], {"out of order (per person and session)"}),
    ],
)
def test_what_the_agents_took_is_compared(first: list[int], second: list[int], found: set[str]) -> None:
    """Two sessions of the same name at two hosts are two sessions."""
    verdict = judge(_SAID, {"a@h1": first, "a@h2": second}, _ROWS)

    assert {kind for kind, wrong in verdict.kinds.items() if wrong} == found
    assert verdict.good is not bool(found)


@pytest.mark.parametrize(
    ("mark", "at", "wrong"),
    [
        ("eyes", "10.1", False),
        ("x", "10.1", True),
        ("question", "10.2", True),
        ("x", "10.3", False),
        ("eyes", "10.3", True),
    ],
)
def test_a_mark_may_not_contradict_the_agent(mark: str, at: str, wrong: bool) -> None:
    """The first two were taken, the third was not."""
    assert bool(untrue_marks(_SAID, {"a@h1": [1, 2], "a@h2": []}, {at: [mark]})) is wrong


@pytest.mark.parametrize(
    ("text", "state", "silent", "wrong"),
    [
        ("It is not known whether it has this:", "confirmed", False, True),
        ("It is not known whether it has this:", "unknown", False, False),
        ("`h1` was last heard of at 14:03 UTC. Your reply is kept", "confirmed", False, True),
        ("`h1` was last heard of at 14:03 UTC. Your reply is kept", "confirmed", True, False),
        ("Ready.", "confirmed", False, False),
    ],
)
def test_a_note_needs_what_it_tells_of(text: str, state: str, silent: bool, wrong: bool) -> None:
    """A note of doubt needs a reply in doubt; one of a silent host a host that was silent."""
    assert bool(untrue_notes("a@h1", [text], [replace(_ROW, state=state)], silent=silent)) is wrong


def test_a_post_stands_once() -> None:
    """Which is looked at by its text."""
    assert doubled_posts("a@h1", ["one", "two"]) == []
    assert doubled_posts("a@h1", ["one", "two", "one"]) == ["a@h1: 2 times 'one'"]
