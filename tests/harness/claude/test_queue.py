"""What Claude Code holds in its own queue: never called taken before a turn took it, and never lost or doubled."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from core.model.delivering import RETURNING
from core.model.harness import PromptReported, TextTaken, TurnBlocked, TurnEnded
from tests.fakes.model import ModelServer
from tests.harness.claude.product import ClaudeProduct, times_in
from tests.integration.harness.stage import Stage
from tests.support.product import NAME
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("queue evidence")
BUSY = {"waiting": "[[sleep 25]]", "tool": "[[tool bash sleep 0 25]]"}
QUEUED = "keep the heron in mind"


def busy_with(product: ClaudeProduct, busy: str, *queued: str) -> None:
    """Let the session work, and give its own queue these messages."""
    product.serve().wait_swept()
    product.wait_activity("idle")
    said = product.cli("standing", "say", NAME, "--text", f"work {busy}", "--json")
    assert said.json["state"] == "confirmed", said.out
    for text in queued:
        told = product.cli("standing", "say", NAME, "--text", text, "--json")
        assert told.json["state"] == "accepted", told.out


def requested(product: ClaudeProduct, text: str) -> int:
    """Return how often people said the text, by the conversation that the model was sent last."""
    messages = product.model.requests()[-1].body["messages"]
    return sum(json.dumps(message).count(text) for message in messages if message["role"] == "user")


def asked_with(product: ClaudeProduct, text: str) -> bool:
    """Return whether any request held the text."""
    return any(times_in(request, text) for request in product.model.requests())


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY)
def test_a_queued_message_survives_a_restart(alone: ClaudeProduct, busy: str) -> None:
    """It is accepted and no more; Claude Code forgets its queue as it ends, and ours delivers it to the next one."""
    busy_with(alone, busy, QUEUED)

    before = (alone.state_of(QUEUED), asked_with(alone, QUEUED))
    restarted = alone.cli("restart", "--json", seconds=120)
    alone.wait_state(QUEUED, "confirmed")
    alone.wait_activity("idle")

    assert before == ("accepted", False)
    assert restarted.code == 0
    assert requested(alone, QUEUED) == 1


def test_a_queued_message_survives_a_crash(alone: ClaudeProduct) -> None:
    """kill -9 takes the queue with it; what was in it is delivered to the next start, once."""
    busy_with(alone, BUSY["waiting"], QUEUED)
    pid = alone.panes()[NAME]

    os.kill(pid, signal.SIGKILL)
    alone.wait_state(QUEUED, "pending", "queued")
    started = alone.cli("standing", "start", NAME, "--json", seconds=120)
    alone.wait_state(QUEUED, "confirmed")
    alone.wait_activity("idle")

    assert started.row["outcome"] == "resumed"
    assert requested(alone, QUEUED) == 1


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
def test_a_pause_holds_what_its_queue_held(alone: ClaudeProduct, hard: bool) -> None:
    """No turn begins with it, however the running one ends; after the resume it goes in once, glued to nothing."""
    busy_with(alone, "[[sleep 8]]", QUEUED, "and the grebe\nof two lines")

    paused = alone.cli("standing", "pause", NAME, *(["--hard"] if hard else []), "--json")
    alone.wait_state(QUEUED, "pending", "queued")
    alone.wait_rest(3.0)
    during = (asked_with(alone, QUEUED), alone.activity())
    alone.cli("standing", "resume", NAME)
    alone.wait_state("and the grebe\nof two lines", "confirmed")
    alone.wait_activity("idle")

    assert (paused.code, paused.row["outcome"]) == (0, "paused")
    assert during == (False, "idle")
    markers = alone.markers(QUEUED, "and the grebe\nof two lines")
    assert [requested(alone, f"#{marker}]") for marker in markers] == [1, 1]


def test_what_a_person_takes_back_is_said_and_proved_later(talking: ClaudeProduct) -> None:
    """Up moves the queue into the input line: nobody can tell what becomes of it, until it is sent there."""
    busy_with(talking, "[[sleep 12]]", QUEUED)

    talking.keys("Up")
    talking.wait_state(QUEUED, "unknown")
    talking.keys("Enter")
    talking.wait_state(QUEUED, "confirmed")
    talking.wait_activity("idle")

    assert requested(talking, QUEUED) == 1


def test_a_session_whose_queue_begins_a_turn_is_busy(alone: ClaudeProduct) -> None:
    """No hook tells that it begins; its end is told, and then the session is idle."""
    busy_with(alone, "[[sleep 12]]", "the next one [[sleep 6]]")

    alone.wait_request("the next one")
    during = alone.activity()
    alone.wait_activity("idle")

    assert during == "busy"
    assert alone.state_of("the next one [[sleep 6]]") == "confirmed"
    wait_until(lambda: alone.status() == "idle", "its own file says so a moment after its hook", 3)


def test_a_blocked_text_is_reported_and_the_clear_keys_remove_it(stage: Stage, model: ModelServer) -> None:
    """What the turn-start hook blocks may be left in the input line: it is emptied before the next message."""
    hold = Path(stage.context.folder / "hold")
    stage.start_ready()

    hold.touch()
    stage.paste("[alice via slack #k3f9x2] do not begin yet")
    stage.expect(TurnBlocked)
    hold.unlink()
    time.sleep(RETURNING.total_seconds())  # as long as the product waits: nothing tells when the text is back
    stage.clear()
    stage.say("echo1", "alone")
    stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))

    [prompt] = [event.prompt for event in stage.of(PromptReported) if "#echo1]" in event.prompt]
    assert prompt.strip() == "[ann #echo1] alone"
    assert not [event for event in stage.of(TextTaken) if "#k3f9x2]" in event.prompt]
    wait_until(lambda: model.requests("alone"), "the model was asked")
    assert not model.requests("do not begin yet")
