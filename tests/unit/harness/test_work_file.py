"""What an agent is doing, by the files that Claude Code 2.1.197 to 2.1.332 writes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import StoreBroken
from core.harness import records
from core.harness.claude.work import WorkFile
from core.model.harness import Limit, PlanItem, PlanState, Usage, Working

T0 = datetime(2026, 11, 30, 10, tzinfo=UTC)
MODEL = "claude-opus-5-5"


def asked(text: str) -> dict[str, Any]:
    """Return the line of a prompt that a turn took."""
    return {"type": "user", "message": {"content": text}, "promptId": text, "origin": {"kind": "human"}}


def block(message: str, fresh: int, kept: int, read: int, written: int, **content: Any) -> dict[str, Any]:
    """Return the line of a block of an answer."""
    usage = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": kept,
        "cache_read_input_tokens": read,
        "output_tokens": written,
    }
    shown = content or {"type": "text", "text": "let me see"}
    return {"type": "assistant", "message": {"id": message, "model": MODEL, "content": [shown], "usage": usage}}


def called(call: str, tool: str, **given: Any) -> dict[str, Any]:
    """Return the block of a tool call."""
    return {"type": "tool_use", "id": call, "name": tool, "input": given}


def result(call: str) -> dict[str, Any]:
    """Return the line of a tool's result."""
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": call, "content": "x"}]}}


def failed(text: str, error: str, **fields: Any) -> dict[str, Any]:
    """Return the line of an error in the place of an answer."""
    message = {"id": "e1", "model": "<synthetic>", "content": [{"type": "text", "text": text}], "usage": {}}
    return {"type": "assistant", "message": message, "error": error, "isApiErrorMessage": True, **fields}


def costs(dollars: float, fresh: int, kept: int, read: int, written: int) -> dict[str, Any]:
    """Return the line that the program writes as it ends."""
    tokens = {
        "inputTokens": fresh,
        "cacheCreationInputTokens": kept,
        "cacheReadInputTokens": read,
        "outputTokens": written,
    }
    usage = {f"{MODEL}[1m]": {**tokens, "costUSD": dollars}}
    return {"type": "cost-state", "totalCostUSD": dollars, "modelUsage": usage, "hasUnknownModelCost": False}


class Written:
    """A conversation's files to which lines are added, a second apart."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.jsonl"
        self.subagents = folder / "c" / "subagents"
        self.tasks = folder / "tasks"
        self.at = T0
        self.reader = WorkFile(self.path, self.tasks)

    def add(self, *entries: dict[str, Any], subagent: str = "") -> None:
        """Append the lines."""
        path = self.subagents / f"agent-{subagent}.jsonl" if subagent else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            for entry in entries:
                self.at += timedelta(seconds=1)
                stream.write(json.dumps({**entry, "timestamp": self.at.isoformat()}) + "\n")

    def task(self, number: int, subject: str, status: str) -> None:
        """Write a task's file."""
        self.tasks.mkdir(exist_ok=True)
        (self.tasks / f"{number}.json").write_text(json.dumps({"subject": subject, "status": status}))

    def look(self) -> Working:
        """Return what is known now."""
        found = self.reader.look()
        assert found is not None
        return found


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Give a conversation without a line."""
    return Written(tmp_path)


def test_each_request_counts_once(written: Written) -> None:
    """Each block of a message has a line of its own with the same numbers; the last line of a message is the right one.

    What was kept for the cache was sent, and not read from it.
    """
    written.add(asked("one"), block("m1", 10, 200, 3000, 1), block("m1", 10, 200, 3000, 50, **called("t1", "Read")))
    first = written.look()
    written.add(result("t1"), block("m2", 11, 201, 3001, 51))

    second = written.look()

    assert (first.turn, first.context_used) == (Usage(210, 50, 3000), 3210)
    assert second.turn == second.session == Usage(210 + 212, 101, 6001)
    assert second.by_model == {MODEL: Usage(422, 101, 6001)}
    assert (second.model, second.context_used, second.context_size) == (MODEL, 3213, None)


def test_a_turn_begins_at_nothing_and_the_session_goes_on(written: Written) -> None:
    """A late line of a message of the turn before counts there."""
    written.add(asked("one"), block("m1", 10, 0, 0, 5), asked("two"), block("m1", 10, 0, 0, 6), block("m2", 1, 0, 0, 2))

    working = written.look()

    assert (working.turn, working.session) == (Usage(1, 2, 0), Usage(11, 8, 0))


def test_subagents_count_and_are_not_the_agent(written: Written) -> None:
    """Their tokens are the session's, and the turn's while they run; model, context and tool are the agent's own."""
    written.add(asked("one"), block("s0", 100, 0, 0, 100), asked("two"), block("m1", 10, 0, 0, 5))
    written.add(block("s1", 1000, 0, 0, 70, **called("t9", "Bash", command="inner")), subagent="a")
    written.at = T0 - timedelta(hours=1)
    written.add(block("s2", 5000, 0, 0, 9), subagent="b")

    working = written.look()

    assert (working.turn, working.session) == (Usage(1010, 75, 0), Usage(6110, 184, 0))
    assert (working.context_used, working.tool) == (10, "")


def test_the_tool_that_runs_has_no_result_yet(written: Written) -> None:
    """Of several the one that was called last is told; an interruption ends all of them."""
    written.add(asked("one"), block("m1", 1, 0, 0, 1, **called("t1", "Read", file_path="/a")))
    written.add(block("m1", 1, 0, 0, 1, **called("t2", "Bash", command="sleep 5\n; ls")))
    both = written.look().tool
    written.add(result("t2"))
    one = written.look().tool
    written.add({"type": "user", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}})

    assert (both, one, written.look().tool) == ("Bash: sleep 5 ; ls", "Read: /a", "")


def test_the_plan_is_the_list_of_tasks(written: Written) -> None:
    """In the order of their numbers; one that is removed is gone, and a list without any is empty."""
    written.add(asked("one"))
    none = written.look().plan
    written.task(10, "last", "pending")
    written.task(2, "first", "in_progress")
    begun = written.look().plan
    written.task(2, "first", "completed")
    (written.tasks / "10.json").unlink()

    assert none == ()
    assert begun == (PlanItem("first", PlanState.IN_PROGRESS), PlanItem("last", PlanState.PENDING))
    assert written.look().plan == (PlanItem("first", PlanState.DONE),)


def test_the_plan_is_the_latest_to_do_list_where_there_are_no_tasks(written: Written) -> None:
    """A call of that tool replaces the whole list."""
    todos = [{"content": "read", "status": "completed"}, {"content": "write", "status": "odd"}]
    written.add(asked("one"), block("m1", 1, 0, 0, 1, **called("t1", "TodoWrite", todos=todos)))

    assert written.look().plan == (PlanItem("read", PlanState.DONE),)


def test_a_limit_is_told_with_its_end_until_the_next_answer(written: Written) -> None:
    """2.1.332 writes the moment down; an error that is no limit says nothing of one."""
    quota = {"status": "rejected", "resetsAt": 1796065142, "rateLimitType": "five_hour"}
    written.add(asked("one"), failed("API Error: overloaded", "overloaded"))
    other = written.look().limit
    written.add(failed("You've hit your 5-hour limit · resets 6:59pm (UTC)", "rate_limit", quotaLimits=quota))
    reached = written.look().limit
    written.add(block("m1", 1, 0, 0, 1))

    until = datetime(2026, 11, 30, 18, 59, 2, tzinfo=UTC)
    assert other is None
    assert reached == Limit("You've hit your 5-hour limit · resets 6:59pm (UTC)", until)
    assert written.look().limit is None


def test_a_limit_without_a_moment_has_no_end(written: Written) -> None:
    """2.1.197 tells it in words alone."""
    written.add(failed("API Error: Request rejected (429)", "rate_limit"))

    assert written.look().limit == Limit("API Error: Request rejected (429)")


@pytest.mark.parametrize("end", [1_764_500_000_000, 10**18, 10**400, -1, True, "soon"])
def test_a_moment_beyond_the_calendar_is_none(written: Written, end: Any) -> None:
    """Such as one in milliseconds, where seconds stood so far."""
    written.add(failed("You've hit your limit", "rate_limit", quotaLimits={"resetsAt": end}))

    assert written.look().limit == Limit("You've hit your limit")


@pytest.mark.parametrize("number", ["1" * 4000, "1e400", "NaN", "-Infinity", "-1"])
def test_numbers_that_cannot_be_added_up_count_as_none(written: Written, number: str) -> None:
    """JSON allows them. What else the conversation tells is told all the same."""
    written.add(asked("go on"), block("m-1", 1, 0, 0, 2, type="text", text="yes"))
    line = json.dumps(block("m-2", 3, 0, 0, 4, type="text", text="no")).replace(
        '"input_tokens": 3', f'"input_tokens": {number}'
    )
    bill = json.dumps(costs(0.5, 1, 0, 0, 6)).replace("0.5", number)
    with written.path.open("a") as stream:
        stream.write(f"{line}\n{bill}\n")

    found = written.look()

    assert found.session == Usage(1, 6, 0)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_none(at: str) -> None:
    """Of a line whose day in UTC there is not, nobody knows when it was written."""
    assert records.moment_of({"timestamp": at}) is None


def test_the_cost_is_known_from_the_end_of_the_program_until_the_next_request(written: Written) -> None:
    """It is of all requests, also of those that are in no line."""
    written.add(asked("one"), block("m1", 10, 200, 3000, 50))
    running = written.look()
    written.add(costs(0.5, 18, 300, 4000, 90))
    ended = written.look()
    written.add(asked("two"), block("m2", 1, 0, 0, 1))

    asked_again = written.look()
    assert [each.session and each.session.cost for each in (running, ended, asked_again)] == [None, 0.5, None]
    assert ended.by_model[MODEL] == Usage(210, 50, 3000, 0.5)


def test_a_cost_that_is_not_of_all_requests_is_not_told(written: Written) -> None:
    """A program that was killed has written none down, and the next one does not know what it asked."""
    written.add(asked("one"), block("m1", 10, 200, 3000, 50), costs(0.1, 1, 0, 0, 1))

    session = written.look().session
    assert session is not None
    assert session.cost is None


def test_a_compacted_context_is_as_large_as_the_program_says(written: Written) -> None:
    """Or of unknown size, where it does not say."""
    boundary = {"type": "system", "subtype": "compact_boundary"}
    written.add(asked("one"), block("m1", 9000, 0, 0, 1), {**boundary, "compactMetadata": {"postTokens": 3414}})
    told = written.look().context_used
    written.add({**boundary, "compactMetadata": {"trigger": "manual"}})

    assert (told, written.look().context_used) == (3414, None)


def test_no_conversation_tells_nothing(written: Written) -> None:
    """Its file is there from the first turn on."""
    assert written.reader.look() is None


def test_a_long_record_is_read_a_part_at_a_look(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told before its end is reached, and no line is read twice."""
    monkeypatch.setattr(records.Parts.new, "__defaults__", (2000,))
    written.add(asked("one"), *(block(f"m{number}", 1, 0, 0, 1) for number in range(40)))

    looks = [written.reader.look() for _ in range(8)]

    told = [look for look in looks if look is not None]
    assert looks[:3] == [None] * 3
    assert {look.session for look in told} == {Usage(40, 40, 0)}


def test_a_record_that_was_replaced_is_read_anew(written: Written) -> None:
    """What the earlier one held does not count, be the new one shorter or longer."""
    written.add(asked("one"), block("m1", 100, 0, 0, 1))
    written.look()
    other = written.path.with_name("other")
    other.write_text(
        "".join(json.dumps(line) + "\n" for line in (asked("one"), block("m1", 7, 0, 0, 1), block("m2", 1, 0, 0, 1)))
    )
    other.rename(written.path)

    assert written.look().session == Usage(8, 2, 0)


def test_lines_that_are_no_such_lines_are_passed_over(written: Written) -> None:
    """Numbers of the wrong kind count as none."""
    odd = block("m1", 1, 0, 0, 1)
    odd["message"]["usage"] = {"input_tokens": True, "output_tokens": -4, "cache_read_input_tokens": "9"}
    written.path.write_text('{"type":"assistant"}\n[1]\n{"type":"assistant","message":{"usage":[]}}\nnonsense\n')
    written.add(odd, {"type": "user", "message": "x"})

    assert written.look().session == Usage()


def test_a_record_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """It is not the same as one that is not there."""
    (tmp_path / "c.jsonl").mkdir()

    with pytest.raises(StoreBroken, match="the conversation cannot be read"):
        WorkFile(tmp_path / "c.jsonl").look()
