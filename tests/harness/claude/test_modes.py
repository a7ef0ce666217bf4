"""The permission mode of real Claude Code: which one runs, what the row says of it, and what a resume makes of it."""

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.asking import press, wait_buttons, wait_text
from tests.support.product import NAME

TOUCH = "[[tool bash touch made-by-test]]"


def mode(product: ClaudeProduct) -> str:
    """Return what the row says."""
    return str(product.cli("standing", "get", NAME, "--json").json["permissionMode"])


def trust(product: ClaudeProduct, **changes: str) -> None:
    """Set keys of `routing.harnessTrust`."""
    routing = product.document()["routing"]
    product.configure(routing={**routing, "harnessTrust": changes})


@pytest.mark.capability("mode")
def test_buttons_answer_whatever_the_versions_own_mode_is(talking: ClaudeProduct) -> None:
    """Nobody has chosen a mode: it is the one that asks, told by the row, and a person in the thread decides."""
    thread = serve(talking)
    told = mode(talking)

    talking.workspace.say("alice", "agents", TOUCH, thread)
    asked = wait_buttons(talking, thread, "asks for permission", 60)
    press(talking, "alice", asked, "Allow")
    wait_text(talking, thread, asked["ts"], "Allowed* by alice", 30)
    talking.wait_status("idle")

    assert told == "default"
    assert (talking.folder / "work" / "made-by-test").exists()


@pytest.mark.capability("mode")
@pytest.mark.parametrize("chosen", ["plan", "acceptEdits"])
def test_the_chosen_mode_runs_and_is_kept_over_a_resume(alone: ClaudeProduct, chosen: str) -> None:
    """Also where a person has left the conversation in another: no flag would mean no choice."""
    trust(alone, permissionMode=chosen)
    alone.cli("standing", "start", NAME)
    alone.wait_activity("idle")  # its first prompt's report names the mode
    before = mode(alone)
    alone.keys("BTab")
    alone.cli("standing", "say", NAME, "--text", "in another mode", seconds=60)
    other = mode(alone)

    alone.cli("standing", "restart", NAME, seconds=120)
    alone.cli("standing", "say", NAME, "--text", "resumed", seconds=60)

    assert (before, mode(alone)) == (chosen, chosen)
    assert other != chosen
