"""The program between a harness and the service, while the service comes and goes."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.tools.conftest import Desk, called, error_of
from tests.integration.tools.test_calls import DOORS, Door
from tests.support.asking import press_stale, wait_buttons
from tests.support.product import NAME, PROGRAM, Product
from tests.support.tmux import wait_until


@pytest.fixture
def unserved(alone: Product) -> Desk:
    """Give a session that runs without a service."""
    assert alone.cli("standing", "start", NAME).code == 0
    return Desk(alone)


async def test_without_a_service_the_tools_are_there_and_say_what_to_do(unserved: Desk) -> None:
    """The list is whole; a call fails with the command that helps, and works once the service runs."""
    async with unserved.stdio() as session:
        listed = (await session.list_tools()).tools
        failed = await called(session, "list_standing_sessions")
        unserved.product.serve().wait_swept()
        after = await called(session, "list_standing_sessions")

    assert len(listed) >= 5
    assert error_of(failed) == "no_service"
    assert "the-loop start" in failed.structured_content["error"]["remedy"]
    assert error_of(after) == ""


@pytest.mark.parametrize("crash", [False, True])
async def test_a_restart_of_the_service_loses_no_tools(unserved: Desk, crash: bool) -> None:
    """One client goes on over it, whether the service ended in order or not."""
    first = unserved.product.serve().wait_swept()
    async with unserved.stdio() as session:
        before = await called(session, "list_standing_sessions")
        if crash:
            first.kill()
        else:
            first.stop()
        unserved.product.serve().wait_swept()
        after = await called(session, "list_standing_sessions")

    assert (error_of(before), error_of(after)) == ("", "")


async def test_a_question_outlives_a_restart_of_the_service(talking: Desk) -> None:
    """It stands in the thread once, and its answer reaches whoever asked."""
    thread, product = talking.product.root(), talking.product
    async with talking.stdio() as session:
        asking = asyncio.create_task(called(session, "ask", question="Which colour?", options=["red", "green"]))
        asked = await asyncio.to_thread(wait_buttons, product, thread, "Which colour?")
        await asyncio.to_thread(talking.restart)
        await asyncio.to_thread(wait_until, lambda: _pressed_until_taken(product, asked), "the press is taken", 30)
        answer = await asking

    assert answer.structured_content == {"name": NAME, "answer": "green", "by": "alice"}
    assert len(product.events("standing.asked")) == 1


def _pressed_until_taken(product: Product, asked: dict[str, str]) -> bool:
    """Press as a person does who is told to try again."""
    if product.events("standing.answered"):
        return True
    press_stale(product, "alice", asked, "2. green")
    return bool(product.events("standing.answered"))


def _is_over(product: Product, thread: str) -> bool:
    """Return whether the thread says that nobody waits for an answer."""
    return any("no longer waits" in text for text in product.bot_replies(thread))


async def test_a_question_that_is_taken_back_ends(talking: Desk) -> None:
    """Where the harness gives up, nobody is asked any more, and its tools go on."""
    thread, product = talking.product.root(), talking.product
    async with talking.stdio() as session:
        asking = asyncio.create_task(called(session, "ask", question="Which colour?"))
        await asyncio.to_thread(product.wait_reply, thread, "Which colour?")
        asking.cancel()
        await asyncio.to_thread(wait_until, lambda: _is_over(product, thread), "it is over")
        after = await called(session, "list_standing_sessions")

    assert error_of(after) == ""


@pytest.mark.parametrize("door", DOORS)
async def test_a_question_of_a_client_that_goes_away_ends(talking: Desk, door: Door) -> None:
    """Whoever hung up gets no answer, so that nobody is asked for one."""
    thread, product = talking.product.root(), talking.product
    async with door(talking) as session:
        asking = asyncio.create_task(called(session, "ask", question="Which colour?"))
        await asyncio.to_thread(product.wait_reply, thread, "Which colour?")
        asking.cancel()

    await asyncio.to_thread(wait_until, lambda: _is_over(product, thread), "it is over")


HOSTILE = [
    (b"no json", -32700),
    (b"[" * 100_000, -32700),
    (b"17", -32600),
    (b'{"id": 1}', -32600),
    (b'{"id": {"a": 1}, "method": "ping"}', -32600),
    (b'{"id": 1, "method": "resources/list"}', -32601),
    (b'{"id": 1, "method": "tools/call", "params": {"name": 7}}', -32602),
    (b'{"id": 1, "method": "tools/call", "params": [1]}', -32602),
]


@pytest.fixture
def speaking(unserved: Desk) -> "Iterator[subprocess.Popen[bytes]]":
    """Give the program itself, as `the-loop mcp` runs it inside a session."""
    token = str(unserved.folder() / "mcp-token")
    env = unserved.product.environ(THE_LOOP_MCP_TOKEN_FILE=token)
    with subprocess.Popen([PROGRAM, "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_whatever_a_client_writes_the_next_request_is_answered(speaking: "subprocess.Popen[bytes]") -> None:
    """What is no request is refused by JSON-RPC's codes."""
    assert speaking.stdin is not None
    assert speaking.stdout is not None
    codes = []
    for line, _ in HOSTILE:
        speaking.stdin.write(line + b"\n")
        speaking.stdin.flush()
        codes.append(json.loads(speaking.stdout.readline())["error"]["code"])
    speaking.stdin.write(b'{"method": "notifications/what", "params": 3}\n{"id": "x", "method": "ping"}\n')
    speaking.stdin.flush()

    assert codes == [code for _, code in HOSTILE]
    assert json.loads(speaking.stdout.readline()) == {"jsonrpc": "2.0", "id": "x", "result": {}}


def test_a_token_that_is_not_there_is_named(alone: Product) -> None:
    """Exit 1 with the path; without any path, exit 2 with what to do."""
    named = alone.program(("mcp", "--token-file", "/nonexistent/mcp-token"), env=alone.environ())
    unnamed = alone.program(("mcp",), env=alone.environ())

    assert (named.code, "/nonexistent/mcp-token" in named.err) == (1, True)
    assert (unnamed.code, "--token-file" in unnamed.err) == (2, True)


def test_the_program_imports_the_standard_library_alone(desk: Desk) -> None:
    """It runs by itself in the session's folder, without any package."""
    folder = desk.folder()
    listed = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(folder / "toolbridge.py"), str(folder / "mcp-token")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )

    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in listed.stderr.splitlines() if "|" in line}
    assert not modules & {"mcp", "core", "pydantic", "asyncio", "typing", "dataclasses", "inspect"}
    assert Path(folder / "toolbridge.py").stat().st_mode & 0o777 == 0o600
