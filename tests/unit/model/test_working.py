"""What an agent is doing, as a value."""

from datetime import UTC, datetime

from core.model.harness import Limit, PlanItem, PlanState, Usage, Working


def test_cost_of_several_is_told_only_where_each_is_known() -> None:
    """Tokens are summed in any case."""
    known, unknown = Usage(10, 2, 30, 0.5), Usage(1, 1, 1)

    assert known + known == Usage(20, 4, 60, 1.0)
    assert known + unknown == Usage(11, 3, 31, None)


def test_what_the_records_do_not_say_is_null() -> None:
    """Nothing is made up: no plan is not the same as an empty one, and no tool is not the same as an unknown one."""
    nothing, empty = Working().to_json(), Working(plan=(), tool="").to_json()

    assert nothing == {
        "plan": None,
        "tool": None,
        "model": None,
        "context": {"used": None, "size": None},
        "usage": {"turn": None, "session": None, "byModel": {}},
        "limit": None,
    }
    assert (empty["plan"], empty["tool"]) == ([], "")


def test_a_plan_and_a_limit_are_told_in_words_and_utc() -> None:
    """The state of an item is a word, a time ISO 8601."""
    until = datetime(2026, 11, 30, 15, 26, tzinfo=UTC)
    told = Working(
        plan=(PlanItem("read the code", PlanState.DONE), PlanItem("change it", PlanState.IN_PROGRESS)),
        limit=Limit("5-hour limit reached", until),
    ).to_json()

    assert told["plan"] == [
        {"text": "read the code", "state": "done"},
        {"text": "change it", "state": "in progress"},
    ]
    assert told["limit"] == {"what": "5-hour limit reached", "until": "2026-11-30T15:26:00.000000Z"}
