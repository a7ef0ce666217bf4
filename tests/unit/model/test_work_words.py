"""What an agent is doing, in words."""

from datetime import UTC, datetime

from core.model.harness import Limit, PlanItem, PlanState, Usage, Working
from core.model.working import described, in_short, spent

FULL = Working(
    plan=(
        PlanItem("read the code", PlanState.DONE),
        PlanItem("change it", PlanState.IN_PROGRESS),
        PlanItem("test it", PlanState.PENDING),
    ),
    tool="Bash: make test",
    model="opus",
    context_used=90_000,
    context_size=200_000,
    turn=Usage(1_200, 34, 56, 0.0123),
    session=Usage(12_000, 340, 560, 1.5),
    limit=Limit("5-hour limit", datetime(2026, 11, 30, 18, 59, 2, tzinfo=UTC)),
).to_json()


def test_every_part_has_its_words() -> None:
    """Numbers can be read, the end of a limit is in UTC."""
    assert described(FULL) == {
        "plan": "1 of 3 done; [x] read the code; [>] change it; [ ] test it",
        "tool": "Bash: make test",
        "model": "opus",
        "context": "45 % of 200,000 tokens",
        "tokens": "turn: 1,200 in, 34 out, 56 cached; session: 12,000 in, 340 out, 560 cached",
        "cost": "turn: $0.0123; session: $1.5000",
        "limit": "5-hour limit, until 2026-11-30 18:59 UTC",
    }


def test_what_is_not_known_has_no_words() -> None:
    """A plan without an item is as none, and a context of unknown size is told in tokens."""
    assert described(Working(plan=(), tool="").to_json()) == {}
    assert described(Working(context_used=3_210, limit=Limit("weekly limit")).to_json()) == {
        "context": "3,210 tokens",
        "limit": "weekly limit",
    }


def test_a_line_has_what_matters_now() -> None:
    """Without the numbers of tokens; an event has those."""
    assert in_short(FULL) == (
        "1 of 3 done (now: change it)",
        "Bash: make test",
        "opus",
        "context 45 % of 200,000 tokens",
        "$1.50",
        "5-hour limit, until 2026-11-30 18:59 UTC",
    )
    assert in_short(Working().to_json()) == ()
    assert spent(Working(model="opus", turn=Usage(1)).to_json()) == "model opus, tokens turn: 1 in, 0 out, 0 cached"
