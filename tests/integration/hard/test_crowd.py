"""Many senders at once: each text once, in its session, none merged with another, in its sender's order."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.hard.stage import declare, framed_texts, started, taken_texts
from tests.support.product import Product
from tests.support.tmux import wait_until

NAMES = ("work", "work2")


def texts_of(sender: str, name: str, count: int) -> list[str]:
    """Return what a sender says to a session, in order."""
    return [f"{sender} to {name}, number {number}." for number in range(count)]


def speak(product: Product, sender: str, count: int, *words: str) -> None:
    """Say texts to both sessions by turns, a process each."""
    for number in range(count):
        for name in NAMES:
            text = texts_of(sender, name, count)[number]
            said = product.cli("standing", "say", name, "--text", text, "--actor", sender, *words)
            assert said.code == 0, said


def together(*senders: Callable[[], Any]) -> None:
    """Let all of them speak at once."""
    with ThreadPoolExecutor(len(senders)) as pool:
        for sender in [pool.submit(sender) for sender in senders]:
            sender.result()


def check(product: Product, counts: Sequence[tuple[str, int]]) -> None:
    """Check what each session took."""
    for name in NAMES:
        expected = {sender: texts_of(sender, name, count) for sender, count in counts}
        total = sum(len(texts) for texts in expected.values())
        wait_until(lambda name=name, total=total: len(taken_texts(product, name)) >= total, f"{name} took all")  # type: ignore[misc]
        took = taken_texts(product, name)
        assert sorted(took) == sorted(text for texts in expected.values() for text in texts)
        for sender, texts in expected.items():
            assert [text for text in took if text.startswith(f"{sender} ")] == texts
        assert all(len(re.findall(r"\[\w+ via \w+ #", text)) == 1 for text in framed_texts(product, name))


def test_forty_messages_by_two_commands_and_by_replies(threaded: Product) -> None:
    """Two people at terminals and one in Slack speak to two sessions at once, while the service delivers."""
    document = threaded.document()["standingSessions"]
    document["sessions"] = [{"name": name, "prompt": "Help.", "slack": {"enabled": True}} for name in NAMES]
    threaded.configure(standingSessions=document)
    threaded.serve().wait_swept()
    threads = {name: threaded.root(name) for name in NAMES}

    def reply() -> None:
        for number in range(6):
            for name in NAMES:
                text = texts_of("alice", name, 6)[number]
                threaded.workspace.say("alice", "agents", text, threads[name])

    together(lambda: speak(threaded, "ann", 7, "--no-wait"), lambda: speak(threaded, "bob", 7, "--no-wait"), reply)

    check(threaded, [("ann", 7), ("bob", 7), ("alice", 6)])


@pytest.mark.long
def test_two_commands_that_deliver_themselves_do_not_disturb_one_another(alone: Product) -> None:
    """Without a service each command takes its own message and those before it into the pane."""
    declare(alone, *NAMES)
    started(alone, *NAMES)

    together(lambda: speak(alone, "ann", 4), lambda: speak(alone, "bob", 4))

    check(alone, [("ann", 4), ("bob", 4)])
