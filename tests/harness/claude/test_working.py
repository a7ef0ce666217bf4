"""What real Claude Code's agent is doing is what its files say, and these say what the model server sent."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.base.clock import from_iso
from core.model.harness import Usage
from tests.fakes.model import ModelServer
from tests.harness.claude.product import CLAUDE, KIT, LONG, ClaudeProduct, claude_product
from tests.harness.counting import Counting, wait_used, working
from tests.harness.product import Kit
from tests.harness.recording import LACKS
from tests.support.product import NAME
from tests.support.tmux import wait_until

TURN = 60.0
TASKS = ("TaskCreate", "TaskUpdate")
INNER = "<<tool bash echo inner>>"
SUBAGENT = f'[[call Agent {{"description":"inner","prompt":"{INNER}","subagent_type":"general-purpose"}}]]'


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Return it as a value."""
    return Usage(told["input"], told["output"], told["cached"], told["costUsd"])


def say(product: ClaudeProduct, text: str) -> None:
    """Say it, and wait until its turn is over."""
    product.cli("standing", "say", NAME, "--text", text)
    product.wait_request(text.partition("[[")[0])
    product.wait_activity("idle")


@pytest.fixture
def served(alone: ClaudeProduct) -> ClaudeProduct:
    """Give a product whose session may do all that these cases do, and is through with its brief."""
    alone.allow("Bash(sleep:*)", "Bash(echo:*)", "Agent", "Task", *TASKS)
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    return alone


class TestTokens(Counting):
    """What every harness's records are held against."""

    @pytest.fixture
    def kit(self) -> Kit:
        """Claude Code."""
        return KIT


@pytest.mark.capability("transcript form")
def test_a_subagents_tokens_are_the_sessions(served: ClaudeProduct) -> None:
    """2.1.197 writes down of its last answer what its beginning told, which is all of it here."""
    say(served, f"delegate {SUBAGENT}")
    wait_until(lambda: [one.user for one in served.model.requests()].count(INNER) == 2, "it has worked", TURN)
    served.wait_activity("idle")

    wait_used(served, "session")


@pytest.mark.capability("transcript form")
def test_the_plan_and_the_tool_that_runs_are_shown(served: ClaudeProduct) -> None:
    """The list of tasks, as it stands; no tool runs once the turn is over."""
    calls = (
        '[[call TaskCreate {"subject":"read the code","description":"all of it"}]]',
        '[[call TaskCreate {"subject":"change it","description":"a little"}]]',
        '[[call TaskUpdate {"taskId":"1","status":"in_progress"}]]',
        f"[[tool bash {LONG}]]",
    )
    served.cli("standing", "say", NAME, "--text", f"plan {' '.join(calls)}")

    wait_until(lambda: str(working(served).get("tool")).startswith("Bash: sleep"), "the tool runs", TURN)
    running = working(served)
    served.cli("standing", "interrupt", NAME)
    wait_until(lambda: working(served).get("tool") == "", "no tool runs", TURN)

    assert running["plan"] == [
        {"text": "read the code", "state": "in progress"},
        {"text": "change it", "state": "pending"},
    ]
    told = "0 of 2 done"  # such events are some seconds apart
    wait_until(lambda: told in [event["detail"] for event in served.events("standing.plan")], told, TURN)


@pytest.mark.capability("transcript form")
def test_the_cost_is_told_between_two_runs(
    served: ClaudeProduct, record_property: Callable[[str, object], None]
) -> None:
    """As the program writes it down at its end, and no longer once more was asked; it goes on after a resume. Where it
    writes none down, none is told."""
    say(served, "what does it cost?")
    wait_used(served, "session")
    used = Usage(*served.model.used())
    served.cli("standing", "stop", NAME)
    if CLAUDE.before("2.1.280"):
        record_property(LACKS, "it writes no costs down")
        assert working(served)["usage"]["session"]["costUsd"] is None
        return
    wait_until(lambda: working(served)["usage"]["session"]["costUsd"] is not None, "its cost is told", TURN)
    stopped = usage_of(working(served)["usage"]["session"])

    assert stopped.cost is not None
    assert stopped.cost > 0
    assert (stopped.input, stopped.output, stopped.cached) == (used.input, used.output, used.cached)
    served.cli("standing", "start", NAME)
    served.wait_activity("idle")
    say(served, "and now?")
    wait_used(served, "session")
    served.cli("standing", "stop", NAME)
    wait_until(
        lambda: (working(served)["usage"]["session"]["costUsd"] or 0) > (stopped.cost or 0), "it has grown", TURN
    )


class AccountProduct(ClaudeProduct):
    """One whose Claude Code is logged in with an account, which may reach a limit."""

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the environment with a token in the place of the key."""
        environ = super().environ(**changes)
        del environ["ANTHROPIC_API_KEY"]
        return {**environ, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-test-token-of-nobody-0123456789"}


@pytest.mark.capability("transcript form")
def test_a_limit_is_told_with_its_end(model: ModelServer) -> None:
    """To the second that the server named, where the program writes that down."""
    with claude_product(None, model, AccountProduct) as product:
        product.serve().wait_swept()
        product.wait_activity("idle")
        begun = datetime.now(UTC).replace(microsecond=0)
        product.cli("standing", "say", NAME, "--text", "too much [[limit 5400]]")

        wait_until(lambda: working(product).get("limit"), f"the limit is told: {working(product)}", TURN)
        limit = working(product)["limit"]

    assert "limit" in limit["what"]
    if CLAUDE.before("2.1.280"):
        assert limit["until"] is None
        return
    until = from_iso(limit["until"]) - timedelta(seconds=5400)
    assert begun <= until <= datetime.now(UTC)
