"""A permission dialog is open: no Enter of ours answers it, and what was said meanwhile goes in afterwards."""

import pytest

from tests.integration.hard.stage import declare, person, started, taken_texts, wait_taken
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

SHOWN = "Escape: none"
REFUSED = "I was not allowed to"


def open_dialog(product: Product) -> None:
    """Make the agent ask for a permission, and wait until its dialog takes keys."""
    assert product.cli("standing", "say", NAME, "--text", "ask permission").code == 0
    wait_until(lambda: SHOWN in product.screen(), "the dialog shows")


def still_open(product: Product) -> bool:
    """Return whether nobody has answered yet."""
    asking = product.paths.session(product.record()["uid"]) / "asking"
    return asking.exists() and REFUSED not in product.screen() and "I was allowed" not in product.screen()


@pytest.mark.parametrize(
    "served", [pytest.param(False, marks=pytest.mark.long), True], ids=["commands alone", "with the service"]
)
def test_a_message_waits_for_the_answer_to_the_dialog(alone: Product, served: bool) -> None:
    """It is queued with the reason; the person's own key answers, with a refusal, and then it goes in, once."""
    declare(alone, NAME)
    if served:
        alone.serve().wait_swept()
    else:
        started(alone, NAME)
    open_dialog(alone)

    said = alone.cli("standing", "say", NAME, "--text", "and then this", "--json")
    more = alone.cli("standing", "say", NAME, "--text", "and that", "--json")
    open_during = still_open(alone)
    with person(alone, NAME, "--write") as operator:
        operator.press(b"2")
        wait_until(lambda: REFUSED in alone.screen(), "the refusal was taken")
    if not served:
        assert alone.cli("standing", "say", NAME, "--text", "at last", "--json").json["state"] == "confirmed"
    wait_taken(alone, NAME, "and that")

    for done in (said, more):
        assert (done.code, done.json["state"]) == (0, "queued")
        assert "permission" in done.json["messages"][0]
    assert open_during
    assert "I was allowed" not in alone.screen()
    expected = ["ask permission", "and then this", "and that", *([] if served else ["at last"])]
    assert taken_texts(alone, NAME, len(expected)) == expected


def test_a_reply_in_the_thread_is_told_of_the_dialog_and_goes_in_afterwards(threaded: Product) -> None:
    """One note in the thread says what it waits for, and nothing was approved."""
    threaded.serve().wait_swept()
    thread = threaded.root()
    open_dialog(threaded)

    threaded.workspace.say("alice", "agents", "when you can", thread)
    threaded.wait_reply(thread, "asks for a permission")
    open_during = still_open(threaded)
    threaded.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "2")
    wait_taken(threaded, NAME, "when you can")

    notes = [text for text in threaded.bot_replies(thread) if "asks for a permission" in text]
    assert open_during
    assert len(notes) == 1
    assert "I was allowed" not in threaded.screen()
    assert taken_texts(threaded, NAME) == ["ask permission", "when you can"]
