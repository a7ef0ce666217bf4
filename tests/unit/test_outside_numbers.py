"""Numbers that others wrote, of any size: in the name of a version, a receipt, a request, a time stamp."""

from datetime import UTC, datetime

import pytest

from core.base.names import parse_work_item_ref
from core.chat.inbound import order_of
from core.model.asking import asked_of
from core.model.harness import Installed
from core.model.pane import Receipt, interrupted_at

LONG = "1" * 4400  #: more digits than Python reads as a number
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_a_version_of_any_length_is_compared() -> None:
    """What a program prints as its version is its own affair."""
    assert Installed(f"{LONG}.1", ("2.1.197",)).note()


@pytest.mark.parametrize("digits", [LONG, "9" * 30, "²"])
def test_a_receipt_that_is_no_moment_tells_of_no_interruption(digits: str) -> None:
    """Whoever reaches the tmux server can write a pane's options."""
    assert interrupted_at({Receipt.INTERRUPTED: f"esc-{digits}"}) is None


@pytest.mark.parametrize("wait", [10**400, float("inf"), float("nan"), -1, True, "5"])
def test_a_wait_without_measure_is_none(wait: object) -> None:
    """An agent's client says how long it waits; a limit of ours stands in the place of anything else."""
    asked = asked_of({"op": "request", "instance": "i-1", "key": "k", "tool": "Bash", "input": {}, "wait": wait})

    assert asked is not None
    assert asked.wait is None


@pytest.mark.parametrize("ts", [LONG, "1e400", "1E999999999", f"1700000000.{LONG}", "nan", "-5", ""])
def test_a_time_stamp_that_is_none_counts_as_now(ts: str) -> None:
    """Also one that would take all memory to write out."""
    assert order_of(ts, NOW) == int(NOW.timestamp() * 1_000_000)


def test_a_ticket_of_any_number_is_none() -> None:
    """No ticket has more digits than a counter holds."""
    assert parse_work_item_ref(f"github:a/b#{LONG}") is None
    assert parse_work_item_ref("github:a/b#12") is not None
