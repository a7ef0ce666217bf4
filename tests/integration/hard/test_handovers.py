"""The service is killed after Slack had its answer and before the delivery: the next one delivers once."""

import pytest

from tests.integration.hard.stage import taken_texts, wait_taken
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until


def acknowledged(product: Product, text: str) -> bool:
    """Return whether Slack had its answer for the message."""
    envelopes = product.workspace.envelopes("events_api")
    return any(text in str(envelope) and envelope["acknowledged"] for envelope in envelopes)


def test_a_message_that_waited_is_delivered_by_the_next_service(threaded: Product) -> None:
    """It waits for a dialog when the service is killed; afterwards it goes in, once, and Slack sent it once."""
    first = threaded.serve().wait_swept()
    thread = threaded.root()
    threaded.cli("standing", "say", NAME, "--text", "ask permission")
    wait_until(lambda: "Escape: none" in threaded.screen(), "the dialog shows")

    threaded.workspace.say("alice", "agents", "do not lose me", thread)
    wait_until(lambda: acknowledged(threaded, "do not lose me"), "Slack had its answer")
    first.kill()
    undelivered = threaded.count("do not lose me")
    threaded.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "2")
    threaded.serve().wait_swept()
    wait_taken(threaded, NAME, "do not lose me")

    assert undelivered == 0
    assert taken_texts(threaded, NAME) == ["ask permission", "do not lose me"]
    assert len(threaded.events("channel.reply_received")) == 1


@pytest.mark.parametrize(
    "point",
    [
        "claim:before",
        *(pytest.param(at, marks=pytest.mark.long) for at in ("claim:after", "submit:after")),
        "paste:after",
    ],
)
def test_a_service_that_dies_while_it_delivers_hands_over(threaded: Product, point: str) -> None:
    """Wherever it dies, the next one finds out how far the message came: it is taken by one turn, and answered."""
    doomed = threaded.serve(env={"THE_LOOP_CRASH_AT": f"delivery.{point}"}).wait_swept()
    thread = threaded.root()

    threaded.workspace.say("alice", "agents", "once and for all", thread)
    code = doomed.ended()
    threaded.serve().wait_swept()
    threaded.wait_reply(thread, "once and for all")

    assert code == -9
    assert taken_texts(threaded, NAME) == ["once and for all"]
    assert len(threaded.events("channel.reply_received")) == 1
    assert len([text for text in threaded.bot_replies(thread) if "once and for all" in text]) == 1
