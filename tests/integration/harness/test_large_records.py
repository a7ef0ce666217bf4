"""What an agent is doing is read from a record of 200 MB as quickly as the service looks at it."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import pytest

from core.harness.claude.work import WorkFile as ClaudeRecord
from core.harness.codex.working import WorkingFile as CodexRecord
from core.harness.gemini.work import WorkFile as GeminiRecord
from core.harness.records import PART
from core.model.harness import Usage, Working

SIZE = 200_000_000
EVERY = 2.0  #: seconds after which the service looks again
TOOL_OUTPUT = "x" * 20_000  #: most of a long record is what tools have printed


class Record(Protocol):
    """What reads a record."""

    def look(self) -> Working | None:
        """Return what it tells."""


def claude(number: int) -> Iterable[object]:
    """Return the lines of a request and of a tool's result in a record of Claude Code."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": 3, "output_tokens": 2}
    call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "ls"}}
    yield {"type": "assistant", "message": {"id": f"m{number}", "model": "m", "content": [call], "usage": usage}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": TOOL_OUTPUT}
    yield {"type": "user", "message": {"content": [result]}}


def codex(number: int) -> Iterable[object]:
    """Return the same in a rollout of Codex."""
    total = {
        "input_tokens": 4 * (number + 1),
        "cached_input_tokens": 3 * (number + 1),
        "output_tokens": 2 * (number + 1),
    }
    yield {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}}}
    arguments = json.dumps({"cmd": "ls"})
    call = {"type": "function_call", "name": "exec_command", "call_id": f"c{number}", "arguments": arguments}
    yield {"type": "response_item", "payload": call}
    output = {"type": "function_call_output", "call_id": f"c{number}", "output": TOOL_OUTPUT}
    yield {"type": "response_item", "payload": output}


def gemini(number: int) -> Iterable[object]:
    """Return the same in a chat of Gemini CLI."""
    call = {"name": "run_shell_command", "status": "success", "args": {}, "result": TOOL_OUTPUT}
    tokens = {"input": 4, "cached": 3, "output": 2}
    yield {"id": f"m{number}", "type": "gemini", "model": "m", "content": "", "tokens": tokens, "toolCalls": [call]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "opened"),
    [
        (claude, lambda path: ClaudeRecord(path, path.parent / "tasks")),
        (codex, CodexRecord),
        (gemini, GeminiRecord),
    ],
    ids=["claude", "codex", "gemini"],
)
def test_a_record_of_200_mb_is_read_in_its_parts(
    tmp_path: Path, lines: Callable[[int], Iterable[object]], opened: Callable[[Path], Record]
) -> None:
    """No look computes for longer than the time until the next one, and the last one tells all of it."""
    path, requests = tmp_path / "record.jsonl", 0
    with path.open("w") as stream:
        while stream.tell() < SIZE:
            stream.writelines(f"{json.dumps(line)}\n" for line in lines(requests))
            requests += 1
    record = opened(path)

    told, spans = None, list[float]()
    while told is None and len(spans) < 100:
        begun = time.thread_time()
        told = record.look()
        spans.append(time.thread_time() - begun)
    path.unlink()

    assert told is not None
    assert told.session == Usage(requests, 2 * requests, 3 * requests)
    assert len(spans) <= SIZE // PART + 2
    assert max(spans) < EVERY
