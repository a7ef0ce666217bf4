"""What a turn's live post shows, and what of it has to be told."""

from datetime import UTC, datetime, timedelta

import pytest

from core.model.live import (
    MOST_ITEMS,
    MOST_STEPS,
    LiveRow,
    LiveShown,
    LiveState,
    LiveStep,
    StepState,
    TurnStep,
    changed,
    compose,
    instance_of,
    merged,
    reopens_at,
    settled,
    shown_of,
    turn_key,
)

S = StepState
NOTHING = LiveShown()
T0 = datetime(2026, 12, 1, tzinfo=UTC)


def step(number: int, tool: str = "Bash", detail: str = "make", state: StepState = S.RUNNING) -> TurnStep:
    """Return a tool that was called."""
    return TurnStep(number, "", tool, detail, state)


def item(text: str, state: str = "pending") -> dict[str, str]:
    """Return an item of a plan."""
    return {"text": text, "state": state}


def test_plan_and_tools_are_shown_with_their_states() -> None:
    """The plan first, then each tool with what it works on; the title counts both."""
    plan = [item("read", "done"), item("write", "in progress"), item("ask")]

    shown = compose(plan, [step(1, state=S.FAILED), step(2, detail="test")], NOTHING)

    assert shown.title == "1 of 3 done, 2 steps"
    assert [(one.title, one.state) for one in shown.steps] == [
        ("read", S.DONE),
        ("write", S.RUNNING),
        ("ask", S.PENDING),
        ("Bash make", S.FAILED),
        ("Bash test", S.RUNNING),
    ]


def test_a_plan_that_was_done_before_the_turn_is_none_of_it() -> None:
    """Unless the turn has written it down, or it is shown already."""
    done = [item("read", "done")]
    written = compose(done, [step(1, "TodoWrite")], NOTHING)

    assert compose(done, [step(1)], NOTHING).title == "1 step"
    assert [one.title for one in written.steps] == ["read"]
    assert compose(done, [step(1)], written).title == "1 of 1 done, 1 step"


def test_what_is_too_much_is_counted() -> None:
    """A chat bounds what a message holds: the last line tells how many there are more, and which is the latest."""
    plan = [item(f"item {number}") for number in range(MOST_ITEMS + 3)]
    steps = [step(number, detail=f"{number} " + "ä" * 500) for number in range(1, MOST_STEPS + 6)]

    shown = compose(plan, steps, NOTHING)

    titles = [one.title for one in shown.steps]
    assert len(titles) == MOST_ITEMS + MOST_STEPS + 2
    assert titles[MOST_ITEMS] == "… and 3 more of the plan"
    assert titles[-1].startswith(f"… and 5 more, the latest: Bash {MOST_STEPS + 5} ä")
    assert max(len(title.encode()) for title in titles) <= 120


def test_a_tool_without_an_end_ends_with_its_turn() -> None:
    """It is not told as gone well, and nothing seems to run."""
    [one] = compose([], [step(1)], NOTHING, over=True).steps

    assert (one.title, one.state) == ("Bash make (how it ended was not told)", S.DONE)


def test_only_what_has_changed_is_told() -> None:
    """A step that is new, another title or state; what is gone from the plan is struck off, once."""
    before = compose([item("read"), item("write")], [step(1)], NOTHING)
    after = compose([item("read", "done")], [step(1, state=S.DONE), step(2)], before)

    change = changed(before, after)
    shown = merged(before, change)

    assert [(one.id, one.title) for one in change.steps] == [
        ("plan-1", "read"),
        ("tool-1", "Bash make"),
        ("tool-2", "Bash make"),
        ("plan-2", "write (taken off the plan)"),
    ]
    assert change.title == "1 of 1 done, 2 steps"
    assert changed(shown, after) == NOTHING


def test_at_its_end_nothing_seems_to_run() -> None:
    """An item of the plan that was at work is not done; a tool was at work."""
    shown = settled(compose([item("read", "in progress")], [step(1)], NOTHING), "it goes on")

    assert shown.title == "0 of 1 done, 1 step: it goes on"
    assert [(one.title, one.state) for one in shown.steps] == [("read", S.PENDING), ("Bash make (was at work)", S.DONE)]


def test_what_is_stored_is_read_again() -> None:
    """And what is none of ours is refused."""
    shown = LiveShown("a", (LiveStep("tool-1", "b", S.FAILED),))

    assert shown_of(shown.to_json()) == shown
    with pytest.raises(ValueError, match="stuck"):
        shown_of({"title": "", "steps": [["a", "b", "stuck"]]})


def test_a_turn_is_known_by_its_instance_and_its_beginning() -> None:
    """The instance can be read off."""
    assert instance_of(turn_key("i-7-x", T0)) == "i-7-x"


@pytest.mark.parametrize(("rounds", "minutes"), [(0, 8), (1, 16), (2, 32), (9, 512)])
def test_each_fresh_one_comes_after_a_longer_while(rounds: int, minutes: int) -> None:
    """A turn of hours makes few messages."""
    row = LiveRow("l", "s", "t", "slack", "C", "1", "U", "2", LiveState.PARKED, T0, rounds, NOTHING, "")

    assert reopens_at(row, timedelta(minutes=4)) == T0 + timedelta(minutes=minutes)
