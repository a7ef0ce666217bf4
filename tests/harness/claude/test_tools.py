"""Real Claude Code with its tools: found, called without a question, and kept over restarts of the service."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.asking import wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("tools")
TURN = 60.0
SERVER = Path(__file__).with_name("server_of_an_operator.py")


def call(tool: str, **arguments: Any) -> str:
    """Return what makes the model call one of our tools."""
    return f"[[call mcp__the-loop__{tool} {json.dumps(arguments)}]]"


def tools_seen(product: ClaudeProduct) -> set[str]:
    """Return the tools that the model was offered last."""
    return set(product.model.requests()[-1].tools)


def wait_result(product: ClaudeProduct, *parts: str) -> str:
    """Return what the model made of a tool's result, once it holds the parts."""

    def found() -> list[str]:
        replies = [request.reply for request in product.model.requests() if request.reply.startswith("DONE")]
        return [reply for reply in replies if all(part in reply for part in parts)]

    wait_until(lambda: bool(found()), f"a result with {parts}", TURN)
    return found()[-1]


def answered(product: ClaudeProduct, thread: str, part: str) -> str:
    """Return the reply that holds the part."""
    return str(product.wait_reply(thread, part, TURN)["text"])


def test_it_lists_and_posts_without_a_question(talking: ClaudeProduct) -> None:
    """The tools are there, run at once, and what they answer reaches the model."""
    thread = serve(talking)

    talking.workspace.say("alice", "agents", call("list_standing_sessions"), thread)
    listed = answered(talking, thread, "DONE")
    talking.workspace.say("alice", "agents", call("post", text="half way there"), thread)
    answered(talking, thread, "half way there")
    answered(talking, thread, "postId")

    assert f'"you": "{NAME}"' in listed.replace('":"', '": "')
    assert {name for name in tools_seen(talking) if name.startswith("mcp__")} == {
        f"mcp__the-loop__{name}" for name in tool_names(talking)
    }
    assert talking.events("standing.asked") == []
    assert talking.events("standing.posted")[-1]["actor"] == f"agent:{NAME}"


def tool_names(product: ClaudeProduct) -> list[str]:
    """Return the tools that the session was given."""
    told = product.paths.session(product.record()["uid"]) / "tools.json"
    return [tool["name"] for tool in json.loads(told.read_text())["tools"]]


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_of_the_service_keeps_the_tools(alone: ClaudeProduct, crash: bool) -> None:
    """A session that was started without a service has them, says what to do while there is none, and goes on."""
    assert alone.cli("standing", "start", NAME).code == 0
    alone.wait_status("idle")
    alone.cli("standing", "say", NAME, "--text", call("list_standing_sessions"))
    failed = wait_result(alone, "no_service")
    first = alone.serve().wait_swept()
    alone.cli("standing", "say", NAME, "--text", call("list_standing_sessions"))
    wait_result(alone, '"you"')
    if crash:
        first.kill()
    else:
        first.stop()
    alone.serve().wait_swept()

    alone.cli("standing", "say", NAME, "--text", call("get_standing_session", name=NAME))

    assert "the-loop start" in failed
    assert wait_result(alone, '"session"', "harnessSessionId")


def test_an_operators_own_servers_go_on_and_still_ask(talking: ClaudeProduct) -> None:
    """A server of `harnessArgs` is there beside ours; none of its tools is allowed by us."""
    config = talking.folder / "theirs.json"
    config.write_text(
        json.dumps({"mcpServers": {"mine": {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}}})
    )
    document = talking.document()
    document["routing"]["harnessArgs"] = {"claude": ["--mcp-config", str(config)]}
    talking.configure(routing=document["routing"])
    thread = serve(talking)

    talking.workspace.say("alice", "agents", "[[call mcp__mine__whisper {}]]", thread)
    asked = wait_buttons(talking, thread, "asks for permission", TURN)

    assert "mcp__mine__whisper" in asked["text"]
    assert {"mcp__mine__whisper", "mcp__the-loop__post"} <= tools_seen(talking)


@pytest.mark.capability("MCP approval")
def test_a_projects_server_of_our_name_neither_asks_nor_runs(alone: ClaudeProduct) -> None:
    """A cloned repository cannot put its own tools in the place of those that are allowed."""
    servers = {"the-loop": {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}}
    (alone.folder / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    document = alone.document()
    everything = json.dumps({"enableAllProjectMcpServers": True})
    document["routing"]["harnessArgs"] = {"claude": ["--settings", everything]}
    alone.configure(routing=document["routing"])

    started = alone.cli("standing", "start", NAME, "--json")
    alone.wait_status("idle")
    alone.cli("standing", "say", NAME, "--text", call("list_standing_sessions"))
    wait_result(alone, "no_service")

    assert started.row["outcome"] == "started"
    assert "mcp__the-loop__post" in tools_seen(alone)
    assert "mcp__the-loop__whisper" not in tools_seen(alone)


def test_a_loop_that_it_makes_outlives_its_turn_and_the_service(alone: ClaudeProduct) -> None:
    """Its turn ends, the service is restarted, the loop goes on; it stops the loop, and the count of runs stays."""
    alone.configure(loops={"minInterval": "1s"})
    service = alone.serve().wait_swept()
    alone.wait_status("idle")
    made = call("create_loop", instruction="Look at the build.", interval="4s", keep_alive=True)
    alone.cli("standing", "say", NAME, "--text", made)
    wait_until(lambda: len(ticks(alone)) >= 1, "a tick", TURN)
    before = len(ticks(alone))

    service.stop()
    alone.serve().wait_swept()
    wait_until(lambda: len(ticks(alone)) > before, "a tick after the restart", TURN)
    [loop] = alone.cli("loop", "list", NAME, "--json").json["loops"]
    alone.cli("standing", "say", NAME, "--text", call("stop_loop", id=loop["id"], reason="the build is done"))
    [stopped] = alone.wait_event("loop.stopped", seconds=TURN)
    [ended] = alone.cli("loop", "list", NAME, "--json").json["loops"]
    alone.cli("standing", "say", NAME, "--text", "and now?", seconds=TURN)
    [later] = alone.cli("loop", "list", NAME, "--json").json["loops"]

    assert "the tool stop_loop" in ticks(alone)[-1]
    assert (stopped["actor"], stopped["reason"]) == (f"agent:{NAME}", "the build is done")
    assert (ended["status"], ended["keepAlive"], ended["createdBy"]) == ("stopped", True, f"agent:{NAME}")
    assert later == ended
    assert ended["runCount"] >= 2


def ticks(product: ClaudeProduct) -> list[str]:
    """Return the prompts of the loop's runs, as the model saw them."""
    return [request.user for request in product.model.requests("automated tick")]
