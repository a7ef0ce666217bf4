"""A whole the-loop whose agent is the bundled one, for tests of messages; also as a process that can be killed.

As a program, given WORLD.json NAME TEXT [WAIT [HARNESS]], it says something and prints the answer.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from core.config.settings import HarnessDeclaration, Settings
from core.delivery.saying import say
from core.model.message import InboxRow, MessageState
from core.session.system import System
from tests.support.lines import entries
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, load


def settings_of(world: World, harness: str = "bundled") -> Settings:
    """Return the world's configuration with an agent that takes messages."""
    plain = world.settings()
    words = ("/bin/sh", "-c", 'stty raw -echo; echo READY; cat >>"$0"', str(world.folder / "heard"))
    mute = HarnessDeclaration("mute", words, paste="bracketed")
    return plain._replace(
        routing=plain.routing._replace(default_harness=harness),
        harnesses={
            **plain.harnesses,
            "mute": mute._replace(ready="READY"),
            "brisk": mute._replace(ready="READY", settle_ms=0),
        },
    )


def talking(world: World, harness: str = "bundled") -> System:
    """Return the ports of such a world."""
    return world.system(settings_of(world, harness))


def record_of(system: System, name: str = "scribe") -> tuple[str, str]:
    """Return the session's uid and instance."""
    record = system.records.read(name)
    assert record is not None
    return record.uid, record.instance_id or ""


def rows(system: System, name: str = "scribe") -> list[InboxRow]:
    """Return the session's messages but its boot prompt, oldest first."""
    uid, _ = record_of(system, name)
    found = system.inbox.with_states(uid, frozenset(MessageState))
    return [row for row in reversed(found) if row.message.kind.value != "boot"]


def taken(system: System, name: str = "scribe") -> list[str]:
    """Return the texts that turns took, by the conversation's own file, in order."""
    record = system.records.read(name)
    assert record is not None
    texts: list[str] = []
    for path in system.paths.session(record.uid).rglob(f"{record.harness_session_id}.jsonl"):
        for entry in entries(path):
            if entry.get("type") == "user" and entry.get("origin", {}).get("kind") == "human":
                texts.append(str(entry["message"]["content"]))
    return texts


def times(system: System, text: str, name: str = "scribe") -> int:
    """Wait until a turn took the text by the conversation's file, which follows the hook, and return how many did."""
    wait_until(lambda: any(text in told for told in taken(system, name)), f"a turn took {text!r}")
    return sum(text in told for told in taken(system, name))


def main(arguments: Sequence[str]) -> int:
    """Say something in the described world and print the answer."""
    path, name, text, *options = arguments
    wait, harness = (*options, *("10", "bundled")[len(options) :])
    system = talking(load(Path(path)), harness)
    said = say(system, name, text, actor=ACTOR, wait=float(wait))
    print(json.dumps(said.to_json()))
    return 0
