"""The plugin that reports from OpenCode's terminal program, run by node: what it makes of the program's events."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from core.harness.base import ASKING, read_reports
from core.harness.opencode.reports import PLUGIN, install_plugin, interpret
from core.model.harness import DialogReported, HarnessEvent, SessionContext, ToolEnded, ToolStarted, TurnEnded

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="node, by which OpenCode's plugins run elsewhere, is not installed"
)
DRIVER = """
import plugin from "./%s"
const steps = new Map()
const none = () => []
const api = {
  event: { on: (type, step) => steps.set(type, step) },
  route: { current: { name: "session", params: { sessionID: "ses_1" } } },
  renderer: { currentFocusedRenderable: {} },
  state: { session: { status: none, permission: none, question: none, messages: none }, provider: [] },
  client: { permission: { reply: async () => {} }, question: {} },
  lifecycle: { onDispose: none },
}
await plugin.tui(api)
for (const [type, properties] of JSON.parse(process.argv[2])) steps.get(type)({ properties })
await new Promise((done) => setTimeout(done, 300)) // it looks at its terminal ten times a second
process.exit(0)
"""

Event = tuple[str, dict[str, Any]]
BEGUN: list[Event] = [
    ("session.created", {"info": {"id": "ses_1"}}),
    ("message.updated", {"info": {"id": "msg_1", "role": "user", "sessionID": "ses_1"}}),
    (
        "message.part.updated",
        {"part": {"id": "prt_1", "type": "text", "messageID": "msg_1", "sessionID": "ses_1", "text": "work"}},
    ),
    ("message.updated", {"info": {"id": "msg_2", "role": "assistant", "sessionID": "ses_1", "parentID": "msg_1"}}),
]
IDLE: Event = ("session.status", {"sessionID": "ses_1", "status": {"type": "idle"}})
ABORTED: Event = ("session.error", {"sessionID": "ses_1", "error": {"name": "MessageAbortedError"}})
ASKED: Event = (
    "permission.asked",
    {"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["touch x"], "metadata": {}},
)


def tool(status: str) -> Event:
    """Return the event of a shell command in that state."""
    state = {"status": status, "input": {"command": "sleep 60"}}
    part = {"type": "tool", "callID": "call_1", "tool": "bash", "sessionID": "ses_1", "messageID": "msg_2"}
    return "message.part.updated", {"part": {**part, "state": state}}


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session, with its plugin."""
    session = SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=tmp_path,
        folder=tmp_path / "s-1",
        spool=tmp_path / "spool" / "i-1",
        notify=tmp_path / "poke",
        args=(),
        session_id=None,
    )
    os.mkfifo(session.notify)
    install_plugin(session, {})
    (session.folder / "package.json").write_text('{"type": "module"}')
    (session.folder / "driver.js").write_text(DRIVER % PLUGIN)
    return session


def reported(context: SessionContext, *events: Event) -> list[HarnessEvent]:
    """Let the program say this, and return what the plugin reports."""
    command = [str(NODE), str(context.folder / "driver.js"), json.dumps(events)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = read_reports(context.spool, context.instance)
    assert found.bad == ()
    return [event for report in found.reports for event in interpret(report)]


def test_a_tool_runs_within_its_turn(context: SessionContext) -> None:
    """Its beginning and its end are told, and the turn's end after them."""
    told = reported(context, *BEGUN, tool("running"), tool("running"), tool("completed"), IDLE)

    assert told[-3:] == [ToolStarted("bash", "sleep 60", "msg_1"), ToolEnded("bash"), TurnEnded("", turn="msg_1")]


def test_a_tool_that_ends_after_its_turn_begins_no_work(context: SessionContext) -> None:
    """An interruption ends the turn first: what is told of the tool behind it would leave the session busy for ever."""
    told = reported(context, *BEGUN, tool("running"), ABORTED, IDLE, tool("running"), tool("error"))

    assert told[-1] == TurnEnded("", turn="msg_1")


def test_a_question_stays_one_while_its_tool_runs(context: SessionContext) -> None:
    """The tool is said to run after the question was asked: that is no sign of an answer."""
    asked = {"id": "que_1", "sessionID": "ses_1", "questions": [{"question": "Which?", "options": []}]}
    part = {"type": "tool", "callID": "c", "tool": "question", "sessionID": "ses_1", "messageID": "msg_2"}
    runs: Event = ("message.part.updated", {"part": {**part, "state": {"status": "running", "input": {}}}})

    assert reported(context, *BEGUN, ("question.asked", asked), runs)[-1] == DialogReported(
        question=True, summary="Which?"
    )


def test_a_dialog_that_is_over_after_its_turn_begins_no_work(context: SessionContext) -> None:
    """Whoever rejects it at the terminal may end the turn with it; the marker goes all the same."""
    told = reported(context, *BEGUN, ASKED, ABORTED, IDLE, ("permission.replied", {"requestID": "per_1"}))

    assert any(isinstance(event, DialogReported) for event in told)
    assert told[-1] == TurnEnded("", turn="msg_1")
    assert not (context.folder / ASKING).exists()
