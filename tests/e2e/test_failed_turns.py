"""A turn that fails says in the thread why, what to do, and offers to send its messages again."""

import pytest

from tests.support.asking import buttons, press, wait_buttons
from tests.support.product import NAME, Product
from tests.support.tmux import PATIENCE, wait_until

FAILED = "was taken by a turn that failed"


def reactions(product: Product, ts: str) -> list[str]:
    """Return the reactions that stand at a message of the channel."""
    return list(product.workspace.reactions("agents", ts))


@pytest.mark.parametrize(
    ("why", "words", "remedy"),
    [("login", "not logged in", "log it in on "), ("service", "overloaded", "in some minutes")],
)
def test_a_failed_turn_is_told_with_its_remedy(shared: Product, why: str, words: str, remedy: str) -> None:
    """The mark is that of a failure, and the words beside it say what failed; the row and the events know it too."""
    thread = shared.root()
    before = len(shared.events("standing.turn_failed"))

    ts = shared.workspace.say("alice", "agents", f"fail {why}", thread)
    note = wait_buttons(shared, thread, words, PATIENCE)
    wait_until(lambda: reactions(shared, ts) == ["x"], f"it is marked: {reactions(shared, ts)}")
    detail = shared.cli("standing", "get", NAME, "--json").json["detail"]
    status = shared.cli("status")

    assert f"Your message to `{NAME}` {FAILED}: " in note["text"]
    assert remedy in note["text"]
    assert list(buttons(note)) == ["Send again"]
    assert words in detail
    assert words in status.out
    told = shared.events("standing.turn_failed")[before:]
    assert [(event["name"], event["level"]) for event in told] == [(NAME, "warning")]


def test_a_message_of_a_failed_turn_is_sent_again_once(shared: Product) -> None:
    """The button commits it anew as its author's, and another turn takes it; the row is clear once one went well."""
    thread = shared.root()
    shared.workspace.say("alice", "agents", "fail limit", thread)
    note = wait_buttons(shared, thread, "used up its limit", PATIENCE)

    press(shared, "alice", note, "Send again")
    wait_until(lambda: shared.count("fail limit") == 2, "a turn took it again")

    shared.workspace.say("alice", "agents", "and now?", thread)
    shared.wait_reply(thread, "and now?")
    assert "used up" not in shared.cli("standing", "get", NAME, "--json").json["detail"]
