"""The race between an Enter and a dialog that opens at that moment, with real Claude Code."""

import time

import pytest

from tests.harness.claude.dialog_race import by_reply, races, wait_for
from tests.harness.claude.product import ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("permission hook")


def test_no_enter_slips_into_a_dialog(talking: ClaudeProduct) -> None:
    """Replies whose Enter falls around the opening of a dialog answer none; of each is said what became of it."""
    thread = serve(talking)

    tries = races(talking, thread, by_reply, 8)

    assert not [one for one in tries if one.slipped], tries
    assert {one.state for one in tries} <= {"confirmed", "unknown"}, tries
    assert sum(one.state == "confirmed" for one in tries) >= 4


def test_an_escape_as_a_dialog_opens_leaves_none_behind(talking: ClaudeProduct) -> None:
    """Whatever came first, the key or the hook that tells of the dialog: nobody is said to be waited for any more."""
    thread = serve(talking)

    seen = [escape(talking, thread, number, aim) for number, aim in enumerate((-0.1, 0.0, 0.05, 0.1, 0.2, 0.3))]

    # busy: cut off before its tool, found out in 30 s
    assert {activity for activity, _ in seen} <= {"idle", "busy"}, seen
    assert not [one for one in seen if one[1]], seen


def escape(product: ClaudeProduct, thread: str, number: int, aim: float) -> tuple[str, bool]:
    """Press Escape around a tool's call; return what the session is then said to do, and whether a marker stands."""
    product.workspace.say("alice", "agents", f"work {number} [[sleep 1.5]] [[tool bash touch x{number}]]", thread)
    product.wait_request(f"work {number} ")
    wait_for(time.time() + 1.5 + aim)
    product.keys("Escape")
    product.wait_rest()
    marker = product.paths.session(product.record()["uid"]) / "asking"
    end = time.monotonic() + 15  #: nobody is waited for after a second or two; a busy machine takes its time
    wait_until(
        lambda: (product.activity() in ("idle", "busy") and not marker.exists()) or time.monotonic() > end,
        "it is over",
        30,
        every=0.2,
    )
    return product.activity(), marker.exists()
