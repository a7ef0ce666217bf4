"""What the fake model makes of the requests that Claude Code sends: the same in every version."""

from typing import Any

import pytest

from tests.fakes.model import Piece, decide, heard, parse

OPENING = "The user sent a new message while you were working:\n"
CLOSINGS = {
    "2.1.197": "\n\nIMPORTANT: After completing your current task, you MUST address the user's message above.",
    "2.1.332": "\n\nThis is how Claude Code surfaces messages the user sends mid-turn \u2014 within the running turn.",
}
WRAPPED = '<pasted_content id="0205">\none\ntwo\n</pasted_content id="0205">'
BASH = {"name": "Bash", "input_schema": {}}


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
