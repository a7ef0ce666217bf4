"""A chat that comes as a package of its own is spoken in as Slack is: core has no line about it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.linechat import ENTRY_POINTS, LineServer
from tests.support.product import NAME, Product, product
from tests.support.tmux import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, LineServer]]:
    """Give a product whose session has its thread in the other chat, and the room."""
    with product() as loop:
        installed = loop.folder / "installed" / "linechat-1.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: linechat\nVersion: 1\n")
        (installed / "entry_points.txt").write_text(ENTRY_POINTS)
        server = LineServer(loop.folder / "line")
        block = {"enabled": True, "channel": "room", "socket": str(server.path), "authorizedUsers": ["ann"]}
        declared = {"name": NAME, "prompt": "Look after it.", "line": {"enabled": True}}
        loop.configure(channels={"line": block}, standingSessions={"enabled": True, "sessions": [declared]})
        try:
            yield loop, server
        finally:
            server.close()


def test_a_chat_of_a_package_of_its_own_does_what_slack_does(room: tuple[Product, LineServer]) -> None:
    """Announcement, reply in, answer out, a permission by its button, and the word that the session was stopped."""
    loop, line = room
    installed = {"PYTHONPATH": os.pathsep.join((str(loop.folder / "installed"), str(ROOT)))}
    loop.serve(env=installed).wait_swept()

    root = line.wait("an announcement", lambda m: not m["thread"] and f"`standing:{NAME}`" in m["text"])
    thread = root["ts"]
    line.wait("a ready agent", lambda m: m["thread"] == thread and "Ready." in m["text"])
    line.say("mallory", thread, "drop everything")
    line.say("ann", thread, "hello from the room")
    line.wait("an answer", lambda m: m["author"] == "the-loop" and "hello from the room" in m["text"])
    assert [text.split("] ")[-1] for text in loop.taken() if "room" in text] == ["hello from the room"]
    assert loop.count("via line #") == 1
    assert not loop.count("drop everything")

    line.say("ann", thread, "ask permission")
    asked = line.wait("a request", lambda m: m.get("buttons") and "asks for permission" in m["text"])
    line.press("ann", asked, "Deny")
    line.wait("the refusal", lambda m: "I was not allowed" in m["text"])
    line.wait("who refused", lambda m: m["ts"] == asked["ts"] and "**Denied** by ann" in m["text"])

    row = loop.cli("standing", "get", NAME, "--json", env=installed).json
    assert row["chat"] == {"line": {"channel": "room", "thread": thread}}
    assert row["slackThread"] is None
    wait_until(lambda: loop.record()["thread"] == {"chat": "line", "channel": "room", "thread": thread}, "its copy")

    loop.cli("standing", "stop", NAME, env=installed)
    line.wait("the stop", lambda m: m["ts"] == thread and "stopped" in m["text"])


def test_the_command_line_has_the_chats_that_are_installed(room: tuple[Product, LineServer]) -> None:
    """Its options, its commands and its keys are there by its entry point, and go with it."""
    loop, _ = room
    installed = {"PYTHONPATH": os.pathsep.join((str(loop.folder / "installed"), str(ROOT)))}

    told = loop.cli("standing", "create", "--help", env=installed).out
    checked = loop.cli("line", "check", "--json", env=installed)
    made = loop.cli("standing", "create", "extra", "--line", "--no-start", env=installed)
    without = loop.cli("config", "check")

    assert "Whether the session gets a Line Chat thread." in " ".join(told.split())
    assert checked.json["findings"][0]["name"] == "room"
    assert made.code == 0
    assert json.loads((loop.paths.records / "extra.json").read_text())["chat"] == {
        "line": {"enabled": True, "channel": ""}
    }
    assert without.code == 1
    assert "line" in without.out + without.err
