"""How many modules a reply crosses on its way into the pane."""

import json
import sys
from pathlib import Path

from tests.support.product import Product

TRACED = Path(__file__).parents[1] / "support" / "traced.py"
WORD = "count the swallows"
MOST = 6


def test_a_reply_crosses_few_modules(talking: Product) -> None:
    """At most six modules stand between the one that hears Slack and the one that writes into tmux. It prints them."""
    file = talking.folder / "way"
    environ = {"REPLY_WAY": str(file), "REPLY_TEXT": WORD, "PYTHONPATH": str(TRACED.parents[2])}
    talking.serve(env=environ, within=(sys.executable, str(TRACED))).wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", WORD, thread)
    talking.wait_reply(thread, "You said (3 words)")

    moments = dict(json.loads(line) for line in reversed(file.read_text().splitlines()))
    steps = [*moments["heard"], *moments["handed over"], *moments["kept"], *moments["pasted"]]
    way = list(dict.fromkeys(steps))
    print(" -> ".join(way))
    assert (way[0], way[-1]) == ("bot.connection", "core.tmux.runner")
    assert {"core.chat.inbound", "core.store.inbox", "core.delivery.deliverer"} < set(way)
    assert len(way[1:-1]) <= MOST, way
