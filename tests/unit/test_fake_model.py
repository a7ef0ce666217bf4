"""What the fake model makes of the requests that harnesses send: the same in every version, by each protocol."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fakes import protocols
from tests.fakes.model import ModelServer, serving
from tests.fakes.protocols import Messages
from tests.fakes.turns import Piece, Turn, decide

OPENING = "The user sent a new message while you were working:\n"
CLOSINGS = {
    "2.1.197": "\n\nIMPORTANT: After completing your current task, you MUST address the user's message above.",
    "2.1.332": "\n\nThis is how Claude Code surfaces messages the user sends mid-turn \u2014 within the running turn.",
}
WRAPPED = '<pasted_content id="0205">\none\ntwo\n</pasted_content id="0205">'
BASH = {"name": "Bash", "input_schema": {}}


def parse(body: Mapping[str, Any]) -> Turn:
    """Read a request of Claude Code."""
    return Messages().parse("/v1/messages", body)


def heard(body: Mapping[str, Any], part: str) -> tuple[tuple[Piece, ...], ...]:
    """Return the texts of people that hold the part, in pieces."""
    return protocols.heard(Messages().said(body), part)


def text(said: str) -> dict[str, str]:
    """Return a block of text."""
    return {"type": "text", "text": said}


def slipped_in(version: str, *said: str) -> list[dict[str, Any]]:
    """Return the messages of a tool loop into which texts were slipped, as that version sends them."""
    working = {"role": "user", "content": [text("[[tool bash sleep 4]]")]}
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "slept"}
    told = [OPENING + each + CLOSINGS[version] for each in said]
    if version == "2.1.197":
        joined = {"role": "system", "content": [text("\n\n".join(told))]}
        return [working, called, {"role": "user", "content": [result]}, joined]
    return [working, called, {"role": "user", "content": [result, *map(text, told)]}]


def request(*messages: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request."""
    return {"tools": [BASH], "messages": list(messages)}


@pytest.mark.parametrize("version", CLOSINGS)
def test_text_slipped_into_a_tool_loop_is_no_new_prompt(version: str) -> None:
    """The loop goes on with its result, and what was slipped in is added to the answer."""
    turn = parse(request(*slipped_in(version, "[ann #a] first", "[ann #b] second")))

    assert turn.user == "[[tool bash sleep 4]]"
    assert turn.steers == ("[ann #a] first", "[ann #b] second")
    assert decide(turn, {}).text == "DONE: slept\nSTEER: [ann #a] first\nSTEER: [ann #b] second"


@pytest.mark.parametrize("version", CLOSINGS)
def test_a_prompt_after_a_tool_loop_is_a_prompt(version: str) -> None:
    """What the next turn is asked stands alone."""
    messages = slipped_in(version, "first")

    turn = parse(request(*messages, {"role": "assistant", "content": "DONE"}, {"role": "user", "content": "next"}))

    assert (turn.user, turn.results, turn.steers) == ("next", (), ())


def test_a_paste_is_understood_without_what_is_put_round_it() -> None:
    """A directive in it is carried out, and it is echoed as it was pasted."""
    turn = parse(request({"role": "user", "content": [text(f"look\n\n{WRAPPED}\n")]}))

    assert turn.user == "look\none\ntwo"


@pytest.mark.parametrize("version", CLOSINGS)
def test_a_paste_slipped_into_a_tool_loop_is_understood_whole(version: str) -> None:
    """The closing mark of the paste ends nothing."""
    assert parse(request(*slipped_in(version, WRAPPED))).steers == ("one\ntwo",)


def test_what_the_model_was_given_is_told_piece_by_piece() -> None:
    """What a person typed is told apart from what was pasted, in order."""
    body = request({"role": "user", "content": [text(f"[ann #a] look\n\n{WRAPPED}\nand tell")]})

    assert heard(body, "one") == ((Piece("[ann #a] look"), Piece("one\ntwo", pasted=True), Piece("and tell")),)


@pytest.mark.parametrize("version", CLOSINGS)
def test_what_was_slipped_in_is_told_alike(version: str) -> None:
    """Each text once, without the harness's words about it."""
    body = request(*slipped_in(version, "[ann #a] plain", WRAPPED))

    assert heard(body, "[ann #a]") == ((Piece("[ann #a] plain"),),)
    assert heard(body, "two") == ((Piece("one\ntwo", pasted=True),),)


def test_an_error_may_pass_or_be_final() -> None:
    """With a time it is answered for so long only; one that says so is final, and words are its message."""
    turn = parse(request({"role": "user", "content": "[[error 529 for 3]] [[say well again]]"}))
    told = parse(request({"role": "user", "content": "[[error 401 now Invalid bearer token]]"}))

    assert decide(turn, {}, since=2.9).error == 529
    assert (decide(turn, {}, since=3.1).error, decide(turn, {}, since=3.1).text) == (0, "well again")
    assert (decide(told, {}).error, decide(told, {}).message, decide(told, {}).final) == (
        401,
        "Invalid bearer token",
        True,
    )


def test_a_reached_limit_tells_its_end() -> None:
    """The account's limit is an error 429 with the time until it ends."""
    reply = decide(parse(request({"role": "user", "content": "[[limit 3600]]"})), {})

    assert (reply.error, reply.limit) == (429, 3600.0)


def test_an_error_is_over_once_something_else_is_said() -> None:
    """A prompt that failed is sent again with the next one, and fails no more."""
    turn = parse(request({"role": "user", "content": [text("[[error 400]]"), text("[[limit 9]]"), text("and now?")]}))

    assert decide(turn, {}).error == 0
    assert turn.user == "[[error 400]]\n[[limit 9]]\nand now?"


def test_tools_that_are_only_named_are_told_with_the_others() -> None:
    """2.1.332 names the tools of MCP servers in a message, and describes one when it is asked for."""
    told = (
        "The following deferred tools are now available via ToolSearch. Their schemas are NOT loaded \u2014 use it "
        "before calling them:\nmcp__the-loop__ask\nmcp__the-loop__post\n\n# MCP Server Instructions\n\nmore"
    )
    body = request({"role": "user", "content": "hello"}, {"role": "system", "content": [text(told)]})

    assert parse(body).tools == ("Bash", "mcp__the-loop__ask", "mcp__the-loop__post")


SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
YIELDS = {"type": "object", "properties": {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}}
#: by protocol: the path, the tools that are offered, and the model where the path does not name it
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/messages", {"tools": [{"name": "Bash", "input_schema": SHELL}, {"name": "mcp__loop__post"}]}),
    "responses": (
        "/v1/responses",
        {
            "tools": [
                {"type": "function", "name": "exec_command", "parameters": YIELDS},
                {"type": "namespace", "name": "mcp__loop__", "tools": [{"name": "loop_post"}]},
            ]
        },
    ),
    "completions": (
        "/v1/chat/completions",
        {
            "tools": [
                {"type": "function", "function": {"name": "bash", "parameters": SHELL}},
                {"type": "function", "function": {"name": "loop_post", "parameters": {}}},
            ]
        },
    ),
    "generate": (
        "/v1beta/models/m:generateContent",
        {
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "run_shell_command", "parametersJsonSchema": SHELL},
                        {"name": "mcp_loop_post"},
                    ]
                }
            ]
        },
    ),
}


def conversation(protocol: str, *said: str) -> dict[str, Any]:
    """Return a request in which people say these texts, one after the other."""
    users = [{"role": "user", "content": each} for each in said]
    if protocol == "responses":
        return {**ASKED[protocol][1], "model": "m", "input": [{"type": "message", **user} for user in users]}
    if protocol == "generate":
        return {**ASKED[protocol][1], "contents": [{"role": "user", "parts": [{"text": each} for each in said]}]}
    return {**ASKED[protocol][1], "model": "m", "messages": users}


def post(model: ModelServer, protocol: str, body: Mapping[str, Any], path: str = "") -> str:
    """Send a request and return what is answered, whatever its status."""
    told = json.dumps(body).encode()
    asked = urllib.request.Request(model.url + (path or ASKED[protocol][0]), told, method="POST")
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode()}"


def calls(answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the tool calls of an answer, whatever its protocol."""
    [call] = [
        *(part for part in answer.get("content", ()) if part["type"] == "tool_use"),
        *(item for item in answer.get("output", ()) if item["type"] == "function_call"),
        *(call["function"] for choice in answer.get("choices", ()) for call in choice["message"]["tool_calls"]),
        *(part["functionCall"] for one in answer.get("candidates", ()) for part in one["content"]["parts"]),
    ]
    given = call.get("input") or call.get("args") or call.get("arguments")
    return [(call["name"], json.loads(given) if isinstance(given, str) else given)]


@pytest.mark.parametrize("protocol", ASKED)
def test_each_protocol_echoes_the_last_thing_said(protocol: str) -> None:
    """The conversation's other texts are kept, so that a test sees what arrived."""
    with serving() as model:
        answer = post(model, protocol, conversation(protocol, "first", "second"))
        [request] = model.requests("second")

    assert "ECHO: second" in answer
    assert request.said == ("first", "second")


@pytest.mark.parametrize(
    ("protocol", "shell", "given"),
    [
        ("messages", "Bash", {"command": "ls"}),
        ("responses", "exec_command", {"cmd": "ls"}),
        ("completions", "bash", {"command": "ls"}),
        ("generate", "run_shell_command", {"command": "ls"}),
    ],
)
def test_each_protocol_calls_the_shell_that_is_offered(protocol: str, shell: str, given: Mapping[str, str]) -> None:
    """By its name and in its form."""
    with serving() as model:
        answer = json.loads(post(model, protocol, conversation(protocol, "[[tool bash ls]]")))

    assert calls(answer) == [(shell, given)]


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("messages", "mcp__loop__post"),
        ("responses", "loop_post"),
        ("completions", "loop_post"),
        ("generate", "mcp_loop_post"),
    ],
)
def test_a_tool_of_a_server_is_found_by_the_end_of_its_name(protocol: str, name: str) -> None:
    """Each harness puts something else before it; Codex names the group apart."""
    with serving() as model:
        answer = json.loads(post(model, protocol, conversation(protocol, '[[call post {"text": "x"}]]')))

    assert calls(answer) == [(name, {"text": "x"})]
    assert [item.get("namespace") for item in answer.get("output", ())] in ([], ["mcp__loop__"])


def test_a_command_that_is_to_run_on_is_let_run_on() -> None:
    """Codex has no background: what is not over after a while runs on."""
    with serving() as model:
        answer = json.loads(post(model, "responses", conversation("responses", "[[bg sleep 9]]")))

    assert calls(answer) == [("exec_command", {"cmd": "sleep 9", "yield_time_ms": 250})]


@pytest.mark.parametrize("protocol", ASKED)
def test_each_protocol_streams_what_it_answers(protocol: str) -> None:
    """The text is whole in it, and the end is told."""
    ends = {"messages": "message_stop", "responses": "response.completed", "completions": "[DONE]", "generate": "STOP"}
    path = ASKED[protocol][0].replace(":generate", ":streamGenerate")
    with serving() as model:
        answer = post(model, protocol, {**conversation(protocol, "a heron"), "stream": True}, path)

    lines = [line.removeprefix("data: ") for line in answer.splitlines() if line.startswith("data: ")]
    assert any("ECHO: a heron" in line for line in lines)
    assert ends[protocol] in lines[-1]


@pytest.mark.parametrize("protocol", ASKED)
def test_each_protocol_refuses_as_it_is_told(protocol: str) -> None:
    """With the status and the words that were given."""
    with serving() as model:
        answer = post(model, protocol, conversation(protocol, "[[error 400 out of herons]]"))

    assert answer.startswith("400 ")
    assert "out of herons" in answer


RESULTS: dict[str, list[dict[str, Any]]] = {
    "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "slept"}]}],
    "responses": [{"type": "function_call_output", "call_id": "1", "output": "slept"}],
    "completions": [{"role": "tool", "tool_call_id": "1", "content": "slept"}],
    "generate": [{"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {"output": "slept"}}}]}],
}


@pytest.mark.parametrize("protocol", ASKED)
def test_each_protocol_goes_on_with_a_tools_result(protocol: str) -> None:
    """When the last result is back the turn is over."""
    body = conversation(protocol, "[[tool bash sleep 4]]")
    [key] = [key for key in ("messages", "input", "contents") if key in body]
    with serving() as model:
        answer = post(model, protocol, {**body, key: [*body[key], *RESULTS[protocol]]})

    assert "DONE: slept" in answer
