"""Turns of the real program that fail: the thread says why in plain words, what to do, and offers to send again."""

import os

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.asking import buttons, press, wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until

TURN = 60.0


@pytest.mark.capability("turn edges")
@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "the model's service refused the request"), (529, "overloaded"), (404, "its model is not there")],
)
def test_a_turn_that_fails_is_told_and_can_be_sent_again(talking: ClaudeProduct, status: int, words: str) -> None:
    """The mark is a cross with words beside it; the button lets another turn take the same message."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Look after it.", TURN)

    ts = talking.workspace.say("alice", "agents", f"count the swallows [[error {status}]]", thread)
    note = wait_buttons(talking, thread, words, TURN)
    wait_until(lambda: list(talking.workspace.reactions("agents", ts)) == ["x"], "it is marked as failed", TURN)
    [told] = talking.wait_event("standing.turn_failed")
    detail = talking.cli("standing", "get", NAME, "--json").json["detail"]
    press(talking, "alice", note, "Send again")
    wait_until(lambda: len(talking.events("standing.turn_failed")) == 2, "another turn took it, and failed", TURN)

    assert f"Your message to `{NAME}` was taken by a turn that failed" in note["text"]
    assert list(buttons(note)) == ["Send again"]
    assert words in told["reason"]
    assert words in detail


@pytest.mark.capability("turn edges")
def test_a_program_that_is_not_logged_in_says_where_to_log_in(talking: ClaudeProduct) -> None:
    """The boot's turn fails first, which nobody sent; then a message of somebody's does."""
    environ = {name: value for name, value in talking.environ().items() if name != "ANTHROPIC_API_KEY"}
    talking.environ = lambda **changes: {**environ, **changes}  # type: ignore[method-assign]
    talking.serve().wait_swept()
    thread = talking.root()

    boot = talking.wait_reply(thread, f"A turn of `{NAME}` failed", TURN)
    talking.workspace.say("alice", "agents", "hello?", thread)
    note = wait_buttons(talking, thread, "Your message", TURN)

    for text in (boot["text"], note["text"]):
        assert "not logged in" in text
        assert f"on {os.uname().nodename} run `claude` and `/login`" in text
