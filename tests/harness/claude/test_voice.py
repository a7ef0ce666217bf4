"""Whose words the model takes for its operator's: what its server receives of messages and ticks of every length."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from core.model.framing import PASTE_END, PASTE_START, SUBMIT
from core.model.harness import PromptReported, TextTaken
from tests.fakes.model import ModelServer, Request
from tests.harness.claude.product import CLAUDE, ClaudeProduct
from tests.integration.harness.stage import Stage
from tests.support.product import NAME
from tests.support.tmux import wait_until

WRAPPED = "<pasted_content"  #: 2.1.332 tells its model so that a text may not be the user's own words


def wrapped(request: Request) -> bool:
    """Return whether the model was told of pasted text anywhere in its conversation."""
    return WRAPPED in json.dumps(request.body["messages"], ensure_ascii=False)


@pytest.mark.capability("pasting")
def test_messages_of_every_length_arrive_as_their_authors_own(alone: ClaudeProduct) -> None:
    """One line, three, four, forty and almost 100 kB: letter by letter behind the frame, and nothing around them."""
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    texts = ["\n".join(f"{lines} lines, number {number}" for number in range(lines)) for lines in (1, 3, 4, 40)]
    texts += [
        "one line of " + "many words " * 100,
        "\n\n\nblank\n\n\n\nlines",
        "\U0001f469\U0001f3fd\u200d\U0001f52c" * 150,
    ]
    texts += ["".join(f"row {number:04} {'x' * 140}\n" for number in range(640))]
    for number, text in enumerate(texts):
        file = alone.folder / f"text-{number}"
        file.write_text(f"text {number}: {text}")

        said = alone.cli("standing", "say", NAME, "--file", str(file), "--actor", "alice", "--json")

        request = alone.wait_request(f"text {number}: ")
        assert said.json["state"] in ("confirmed", "accepted")
        assert request.user.partition("] ")[2] == f"text {number}: {text}".strip()
        assert request.user.startswith("[alice via ")
        assert not wrapped(request)
        alone.wait_activity("idle")


@pytest.mark.capability("input line")
def test_what_was_written_over_its_screen_keeps_no_message_waiting(alone: ClaudeProduct) -> None:
    """Claude Code draws only what it changes itself: its screen is drawn anew, and the input line is found."""
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    alone.cli("standing", "say", NAME, "--text", "before it", "--no-wait")
    alone.wait_state("before it", "confirmed")  # its input line has been seen
    alone.wait_activity("idle")
    terminal = alone.tmux("display-message", "-p", "-t", f"=loop-standing-{NAME}:", "#{pane_tty}").strip()
    Path(terminal).write_bytes(b"\x1b[2J\x1b[Hsomething else\r\n" * 3)
    wait_until(lambda: "something else" in alone.screen(), "it is overwritten")

    alone.cli("standing", "say", NAME, "--text", "drawn anew", "--no-wait")

    alone.wait_state("drawn anew", "confirmed")
    assert alone.wait_request("drawn anew").user.endswith("] drawn anew")


@pytest.mark.capability("pasting")
def test_an_enter_waits_until_the_text_was_read(alone: ClaudeProduct) -> None:
    """A program that stands still would read both in one, and take the Enter for a line break of the text."""
    behind = alone.folder / "behind"  # tmux lets none of its own children stand still
    behind.mkdir()
    (behind / "claude").write_text(f'#!/bin/sh\n{CLAUDE.programs}/claude "$@"\nexit $?\n')
    (behind / "claude").chmod(0o755)
    alone.serve(env={"PATH": f"{behind}:{alone.environ()['PATH']}"}).wait_swept()
    alone.wait_activity("idle")
    [pane] = alone.panes().values()
    pid = psutil.Process(pane).children()[0].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        alone.cli("standing", "say", NAME, "--text", "read late", "--no-wait")
        alone.wait_state("read late", "pasted", "submitted")
        since = time.monotonic()
        wait_until(lambda: time.monotonic() - since > 2, "the time for two Enters is over")
        meanwhile = alone.state_of("read late")
    finally:
        os.kill(pid, signal.SIGCONT)
    alone.wait_state("read late", "confirmed")

    assert meanwhile == "pasted"
    request = alone.wait_request("read late")
    assert request.user.endswith("] read late")


@pytest.mark.capability("pasting")
def test_a_message_too_long_for_the_terminal_is_said_to_be_its_authors(alone: ClaudeProduct) -> None:
    """More lines than it reads in a moment go by a file that it may read; the line that says so is plain."""
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    file = alone.folder / "long"
    file.write_text('[[call Read {"file_path":"$FILE"}]]\n' + "line\n" * 3000)

    alone.cli("standing", "say", NAME, "--file", str(file), "--actor", "alice", "--json")

    request = alone.wait_request("Read all of it in ")
    assert "as if I had typed it here" in request.user
    assert not wrapped(request)


@pytest.mark.capability("pasting")
def test_a_long_tick_arrives_as_the_operators_own(alone: ClaudeProduct) -> None:
    """The instruction of a loop may have many lines; its tick has more."""
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    instruction = "\n".join(f"step {number} of the round" for number in range(40))
    made = alone.cli("loop", "create", NAME, "--instruction", instruction, "--interval", "1h", "--json")
    alone.cli("loop", "run", made.json["loop"]["id"], "--json")

    request = alone.wait_request("step 39 of the round")

    assert all(line in request.user for line in instruction.splitlines())
    assert not wrapped(request)


@pytest.mark.capability("pasting")
def test_what_its_model_gets_as_pasted_is_told_by_its_records(stage: Stage, model: ModelServer) -> None:
    """A text that goes in as one paste is marked as such by newer versions, and then hook and conversation say so."""
    stage.start_ready()
    stage.say("first1", "hello")  # what it takes for pasted is settled some moments after its start
    stage.expect_turns(1)
    text = "[ann #echo1] one\n" + "\n".join(f"line {number}" for number in range(8))

    stage.keys(PASTE_START + text.encode() + PASTE_END)
    wait_until(lambda: "[Pasted text #1" in stage.screen(), "it shows that it has the paste")
    stage.keys(SUBMIT)
    stage.expect_turns(2)

    [request] = model.requests("line 7")
    taken = stage.expect(TextTaken, lambda event: "#echo1" in event.prompt)
    parts = (text,) if wrapped(request) else ()
    [reported] = [event for event in stage.of(PromptReported) if "#echo1" in event.prompt]
    assert taken.pasted == parts
    assert reported.pasted == parts
    assert wrapped(request) is not CLAUDE.before("2.1.332")
