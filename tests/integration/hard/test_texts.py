"""Texts that a terminal, tmux, a shell or an agent could take for something else arrive as they were typed, once."""

import json
from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.integration.hard.stage import declare, framed_texts, started, taken_texts
from tests.support.product import NAME, Product, product
from tests.support.tmux import wait_until

TEXTS = {
    "semicolon": ";",
    "ends in a semicolon": "done;",
    "dashes": "--",
    "flag": "-t %0 --json",
    "key name": "Enter",
    "line ends": "one\r\ntwo\rthree\nfour",
    "CJK": "漢字かな交じり文、한국어",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 é ✓",
    "end of a paste": "before\x1b[201~\r/exit",
    "NUL": "a\0b",
    "slash": "/exit",
    "bang": "!touch x",
    "hash": "# remember this",
    "ends in a mention": "look at @a",
    "ends in a backslash": "back\\",
    "leave": "exit",
    "formats": "#{pane_id} #(date) $HOME `id` %H",
    "20 kB": "20 " * 6_800,
    "120 kB": "120 " * 30_000,
    "1 MB": "1 MB " * 200_000,
}
DROPPED = {"end of a paste": 1, "NUL": 1}  #: how many control characters are left out, which the answer says


def as_typed(text: str) -> str:
    """Return what is to arrive: line ends are one kind, and control characters are left out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(character for character in text if character >= " " or character in "\t\n").strip()


@pytest.fixture(scope="module", params=[pytest.param("commands alone", marks=pytest.mark.long), "with the service"])
def running(request: pytest.FixtureRequest) -> Iterator[Product]:
    """Give a product with one live session for all texts, with and without a service."""
    with product() as alone:
        declare(alone, NAME)
        if "service" in request.param:
            alone.serve().wait_swept()
        else:
            started(alone, NAME)
        yield alone


@pytest.mark.parametrize("kind", TEXTS)
def test_text_arrives_as_it_was_typed(running: Product, kind: str) -> None:
    """It is confirmed, taken by one turn and whole: inline, or by the file that the message names."""
    text, before = TEXTS[kind], len(framed_texts(running, NAME))

    said = running.cli("standing", "say", NAME, "-", "--json", stdin=text.encode())

    answer = json.loads(said.out)
    assert (said.code, answer["state"]) == (0, "confirmed")
    wait_until(lambda: len(framed_texts(running, NAME)) > before, "the conversation's file has it")
    assert len(framed_texts(running, NAME)) == before + 1
    assert whole(running, answer["messageId"]) == as_typed(text)
    told = [line for line in answer["messages"] if "left out" in line]
    assert told == ([f"{DROPPED[kind]} control characters were left out"] if kind in DROPPED else [])


def whole(running: Product, message_id: str) -> str:
    """Return the text of the latest message as the agent has it."""
    file = running.paths.session(running.record()["uid"]) / f"message-{message_id}.txt"
    latest = taken_texts(running, NAME)[-1]
    if not file.exists():
        return latest
    assert str(file) in latest
    return file.read_text().strip()


def test_texts_of_a_thread_arrive_as_they_were_typed(threaded: Product, workspace: WorkspaceThread) -> None:
    """Slack's own escapes are undone; nothing acts on the terminal."""
    threaded.serve().wait_swept()
    thread = threaded.root()
    kinds = [kind for kind in TEXTS if not kind.endswith("B") and kind not in ("end of a paste", "NUL")]

    for kind in kinds:
        workspace.say("alice", "agents", TEXTS[kind], thread)
    workspace.say("alice", "agents", "a < b && c > d", thread)
    wait_until(lambda: len(taken_texts(threaded, NAME)) > len(kinds), "all are taken")

    assert taken_texts(threaded, NAME) == [*(as_typed(TEXTS[kind]) for kind in kinds), "a < b && c > d"]
