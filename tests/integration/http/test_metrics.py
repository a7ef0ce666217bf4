"""What /metrics says is what is so."""

import os
import signal
from collections.abc import Mapping

from core.model.loop import Held
from core.model.message import MessageState
from core.model.session import Live
from tests.integration.http.conftest import Web
from tests.support.descriptors import pidfds
from tests.support.product import DEBUGGABLE, NAME, Product
from tests.support.tmux import wait_until


def test_one_live_session_is_one_subscription_over_restarts_of_the_service(alone: Product, web: Web) -> None:
    """Adopt, release, adopt leaves one, and the service holds that one handle and no other."""
    first = alone.serve().wait_swept()
    wait_until(lambda: web.metrics()["the_loop_subscriptions"] == 1, "the pane is watched")
    first.stop()
    second = alone.serve(env=DEBUGGABLE).wait_swept()

    wait_until(lambda: web.metrics()["the_loop_subscriptions"] == 1, "the pane is watched again")

    assert pidfds(second.pid) == [alone.panes()[NAME]]
    assert web.metrics()['the_loop_sessions{live="live"}'] == 1


def test_a_stopped_session_is_watched_no_more(alone: Product, web: Web) -> None:
    """The subscription goes with the pane, and its handle too."""
    service = alone.serve(env=DEBUGGABLE).wait_swept()
    wait_until(lambda: web.metrics()["the_loop_subscriptions"] == 1, "the pane is watched")

    alone.cli("standing", "stop", NAME)

    wait_until(lambda: web.metrics()["the_loop_subscriptions"] == 0, "nothing is watched")
    wait_until(lambda: not pidfds(service.pid), "no handle is left")
    assert web.metrics()['the_loop_sessions{live="absent"}'] == 1


def test_messages_are_counted_by_state(alone: Product, web: Web) -> None:
    """Every state has a sample; a confirmed say moves one of them."""
    alone.serve().wait_swept()
    before = web.metrics()

    alone.cli("standing", "say", NAME, "--text", "count me")

    after = web.metrics()
    assert after['the_loop_inbox{state="confirmed"}'] == before['the_loop_inbox{state="confirmed"}'] + 1
    assert {f'the_loop_inbox{{state="{state.value}"}}' for state in MessageState} <= after.keys()
    assert after["process_resident_memory_bytes"] > 0


def test_loops_are_counted_by_what_they_do(alone: Product, web: Web) -> None:
    """Every state has a sample; one that is paused counts as that, one that has ended not at all."""
    alone.serve().wait_swept()
    made = [
        alone.cli("loop", "create", NAME, "--instruction", "look", "--interval", "1h", "--json").json["loop"]["id"]
        for _ in range(3)
    ]
    alone.cli("loop", "pause", made[0])
    alone.cli("loop", "stop", made[1])

    after = web.metrics()

    assert after['the_loop_loops{state="active"}'] == after['the_loop_loops{state="paused"}'] == 1
    assert {f'the_loop_loops{{state="held-{held.value}"}}' for held in Held} <= after.keys()


def test_dropped_replies_and_events_are_counted_by_reason(talking: Product) -> None:
    """What the event log leaves out, since it is too common, is counted all the same."""
    web = Web(talking)
    talking.serve().wait_swept()
    thread = talking.root()
    workspace = talking.workspace

    workspace.say("bob", "agents", "let me in", thread)
    workspace.say("alice", "agents", "no business of ours", workspace.say("alice", "agents", "a thread of people"))
    workspace.say("alice", "agents", "after them", thread)
    talking.wait_event("channel.reply_received")  # what came before it was looked at before it

    samples = web.metrics()
    assert samples['the_loop_channel_up{channel="slack"}'] == 1
    assert dropped(samples).keys() >= {"unauthorized-actor", "unmapped"}
    wait_until(lambda: each_but_the_unmapped_is_an_event(web.metrics()), "so many events as drops of other reasons")


def dropped(samples: Mapping[str, float]) -> dict[str, float]:
    """Return how many replies were dropped for each reason.

    Our own posts come back and are dropped, too, and a chat that waited too long for our word sends a reply again.
    """
    counts = {name: count for name, count in samples.items() if name.startswith("the_loop_dropped_total{")}
    return {name.split('"')[1]: count for name, count in counts.items()}


def each_but_the_unmapped_is_an_event(samples: Mapping[str, float]) -> bool:
    """Return whether the log has as many drops as were counted, those of unbound threads left out."""
    counted = dropped(samples)
    return samples['the_loop_events_total{event="channel.dropped"}'] == sum(counted.values()) - counted["unmapped"]


def test_a_silent_tmux_leaves_sessions_unknown(alone: Product, web: Web) -> None:
    """Could not ask is never absent."""
    alone.serve().wait_swept()
    pid = int(alone.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        samples = web.metrics()
    finally:
        os.kill(pid, signal.SIGCONT)

    others = [live for live in Live if live is not Live.UNKNOWN]
    assert [samples[f'the_loop_sessions{{live="{live.value}"}}'] for live in others] == [0] * len(others)
    assert samples['the_loop_sessions{live="unknown"}'] == 1
