"""Loops on the real product: declared and made by hand, over busy sessions, killed services and crashed agents."""

import os
import signal
from typing import Any

from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

EVERY = "2s"


def configure(product: Product, *loops: dict[str, Any]) -> None:
    """Let loops run every two seconds, and declare these for the session."""
    session = {**product.document()["standingSessions"]["sessions"][0], "loops": list(loops)}
    product.configure(loops={"minInterval": EVERY}, standingSessions={"enabled": True, "sessions": [session]})


def loop(product: Product) -> dict[str, Any]:
    """Return the session's only loop."""
    [found] = product.cli("loop", "list", NAME, "--json").json["loops"]
    return dict(found)


def ticks(product: Product) -> list[str]:
    """Return the ticks that the agent took, in this conversation."""
    return [text for text in product.taken() if "automated tick" in text]


def wait_ticks(product: Product, count: int) -> None:
    """Wait until the agent took so many."""
    wait_until(lambda: len(ticks(product)) >= count, f"{count} ticks are taken; {loop(product)}")


def create(product: Product, *words: str) -> str:
    """Make a loop by hand and return its id."""
    done = product.cli("loop", "create", NAME, "--instruction", "look at the build", *words, "--json")
    assert done.code == 0, done.err
    return str(done.json["loop"]["id"])


def test_a_declared_loop_ticks_defers_while_busy_and_ends_with_its_stop(alone: Product) -> None:
    """An idle session gets one tick after the other; a busy one none; a stopped loop is silent, its count stable."""
    configure(alone, {"name": "build", "instruction": "look at the build", "interval": EVERY})
    alone.serve().wait_swept()
    wait_ticks(alone, 2)

    alone.cli("standing", "say", NAME, "--text", "sleep 600", "--json")
    before = len(ticks(alone))
    wait_until(lambda: alone.events("loop.deferred"), "a tick is deferred")
    during = len(ticks(alone))
    assert alone.cli("standing", "interrupt", NAME).code == 0
    wait_ticks(alone, before + 1)
    stopped = alone.cli("loop", "stop", loop(alone)["id"], "--reason", "enough", "--json")
    wait_until(lambda: not alone.cli("standing", "queue", NAME, "--json").json["messages"], "nothing waits")
    count = loop(alone)["runCount"]
    alone.cli("standing", "say", NAME, "--text", "sleep 4", "--wait", "10", "--json")
    wait_until(lambda: alone.cli("standing", "get", NAME, "--json").json["activity"] == "idle", "that is over")

    assert during == before
    assert stopped.json["loop"]["status"] == "stopped"
    after = loop(alone)
    assert (after["status"], after["reason"], after["runCount"]) == ("stopped", "enough", count)
    assert len(ticks(alone)) == count
    assert [event["reason"] for event in alone.events("loop.stopped")] == ["enough"]


def test_a_keep_alive_loop_outlives_a_killed_service_and_its_crashed_agent(alone: Product) -> None:
    """No policy asks for a restart: the loop does. Its ticks go on in the conversation that was resumed."""
    configure(alone)
    service = alone.serve().wait_swept()
    ident = create(alone, "--interval", EVERY, "--keep-alive")
    wait_ticks(alone, 1)
    service.kill()

    alone.serve().wait_swept()
    wait_ticks(alone, 3)
    before = alone.record()["instanceId"]
    os.kill(alone.panes()[NAME], signal.SIGKILL)
    wait_until(lambda: alone.record()["instanceId"] != before, "it is brought back")
    taken = len(ticks(alone))
    wait_ticks(alone, taken + 2)
    row = alone.cli("standing", "get", NAME, "--json").json

    assert row["loops"] == 1
    assert loop(alone)["id"] == ident
    assert loop(alone)["status"] == "active"
    assert len({text.split("#")[1][:6] for text in ticks(alone)}) == len(ticks(alone))


def test_an_end_is_told_in_the_thread_and_a_pause_holds(talking: Product) -> None:
    """Nothing is posted of a fire but the agent's answer; a paused session takes no tick."""
    configure_talking(talking)
    talking.serve().wait_swept()
    thread = talking.root()
    wait_until(lambda: talking.cli("standing", "get", NAME, "--json").json["activity"] == "idle", "it is idle")
    talking.cli("standing", "pause", NAME)
    ident = create(talking, "--interval", EVERY, "--max-runs", "2")
    talking.wait_event("loop.held")
    held = loop(talking)
    talking.cli("standing", "resume", NAME)

    note = talking.wait_reply(thread, f"Loop `{ident}`")

    assert (held["held"], held["runCount"]) == ("paused", 0)
    assert "has ended: it has run 2 times, as asked" in note["text"]
    assert loop(talking)["status"] == "completed"
    assert len(ticks(talking)) == 2
    notes = [text for text in talking.bot_replies(thread) if "Loop `" in text]
    assert len(notes) == 1


def configure_talking(product: Product) -> None:
    """Let loops run every two seconds."""
    product.configure(loops={"minInterval": EVERY})
