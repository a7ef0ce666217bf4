"""What the agent answers: a prompt becomes steps and a final text, which the session carries out.

Background tasks are real processes that outlive the turn, and each ends in a notification. A call of an MCP tool starts
its program, speaks with it on its standard streams, and ends it.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from core.base.values import dataclass
from embedded.agent.conversation import shortened, summary

HELP = """\
I am the bundled agent: no model, the same answer every time. I understand:
- `help`, `time`, `history`
- `sleep N`: work for N seconds
- `long N`: answer with N lines
- `plan A | B | C`: make a plan, and work for a second on each item
- `work A | B! | C`: the same with a tool for each item; the tool of one with a `!` fails
- `background N`: start something that ends in N seconds and then speaks up by itself
- `ask permission`: ask before I run a harmless command
- `ask question TEXT | A | B`: ask you
- `menu TEXT | A | B`: the same, as a dialog that no hook announces
- `call TOOL {"argument": …}`: use a tool of the-loop
- `fail login`, `fail limit`, `fail service`: end the turn with such an error
- `/clear`, `/exit`

Anything else I repeat."""
_FRAME = re.compile(r"\A\s*\[[^\]\n]*\]\s*")
_TASK = re.compile(r"<task-id>(.*?)</task-id>.*?<status>(.*?)</status>", re.DOTALL)
MOST_SECONDS = 3600.0
MOST_LINES = 2000
MOST_ITEMS = 50


@dataclass(frozen=True)
class Say:
    """Show a line while the turn goes on."""

    text: str


@dataclass(frozen=True)
class Pause:
    """Work for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Now:
    """Answered with the local time as text."""


@dataclass(frozen=True)
class UseTool:
    """Use a tool that takes its time: seconds of work. `error`: how it fails, "" if it does not."""

    command: str
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Plan:
    """Write down the plan: what it has, and how far each item is (pending, in_progress, completed)."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StartTask:
    """Answered with the id of a background task that ends after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Permission:
    """Answered with True if a person lets the command run, and then with what it printed."""

    command: str


@dataclass(frozen=True)
class Question:
    """Answered with the option that a person picks."""

    text: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Choose:
    """Answered with what a person chooses in a dialog that no hook announces; `told`: the status file tells of it."""

    text: str
    told: bool


@dataclass(frozen=True)
class CallTool:
    """Answered with what a tool of the-loop said."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Fail:
    """End the turn with an error of the model's side, by Claude Code's name for it."""

    error: str
    message: str


Step = Fail | CallTool | Choose | Say | Pause | Now | UseTool | Plan | StartTask | Permission | Question
Steps = Generator[Step, Any, str]


def answer(prompts: Sequence[str], earlier: Sequence[str], *, boot: bool = False) -> Steps:
    """Answer the prompts of one turn; `earlier` is what people said before, `boot` marks the first prompt of all."""
    answers = []
    for prompt in prompts:
        if boot:
            answers.append(f"Ready. I have read my brief ({len(prompt.split())} words). Say help to see what I can do.")
        else:
            answers.append((yield from _answer_one(prompt, earlier)))
    return "\n".join(answers)


def _answer_one(prompt: str, earlier: Sequence[str]) -> Steps:
    task = _TASK.search(prompt) if prompt.startswith("<task-notification>") else None
    if task is not None:
        return f"The background task {task[1]} is over: {task[2]}."
    text = _FRAME.sub("", prompt).strip()
    for pattern, act in _COMMANDS:
        found = re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)
        if found is not None:
            return (yield from act(found, earlier))
    words = len(text.split())
    return f"You said ({words} {'word' if words == 1 else 'words'}): {shortened(text)}"


def _help(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    yield from ()
    return HELP


def _time(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    moment = yield Now()
    return f"It is {moment}."


def _history(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    yield from ()
    first = max(0, len(earlier) - 5)
    lines = [f"{number}. {shortened(text)}" for number, text in enumerate(earlier[first:], first + 1)]
    return "\n".join([f"This conversation: {summary(earlier)}", *lines])


def _sleep(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    yield UseTool(f"sleep {found[1]}", min(float(found[1]), MOST_SECONDS))
    return f"I have slept for {found[1]} s."


def _plan(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    items = [item.strip() for item in found[1].split("|") if item.strip()][:MOST_ITEMS]
    for done in range(len(items) + 1):
        states = ("completed" if place < done else _AHEAD[place > done] for place in range(len(items)))
        yield Plan(tuple(zip(items, states, strict=True)))
        if done < len(items):
            yield Pause(1.0)
    return f"I have worked on {len(items)} {'item' if len(items) == 1 else 'items'}."


def _work(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    items = [item.strip() for item in found[1].split("|") if item.strip()][:MOST_ITEMS]
    names = [item.rstrip("!") for item in items]
    for done, item in enumerate(items):
        states = ("completed" if place < done else _AHEAD[place > done] for place in range(len(items)))
        yield Plan(tuple(zip(names, states, strict=True)))
        yield UseTool(f"do {names[done].lower()}", 1.0, "exit status 1" if item.endswith("!") else "")
    yield Plan(tuple((name, "completed") for name in names))
    lines = [f"- {item.rstrip('!')}: {'**failed**' if item.endswith('!') else 'done'}" for item in items]
    return "\n".join(["I have worked on this:", *lines])


_AHEAD = {False: "in_progress", True: "pending"}


def _long(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    count = min(int(found[1]), MOST_LINES)
    for _ in range(min(count, 20)):
        yield Pause(0.02)
    return "\n".join(f"line {number} of {count}" for number in range(1, count + 1))


def _background(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    task = yield StartTask(min(float(found[1]), MOST_SECONDS))
    return f"The background task {task} runs for {found[1]} s; I will tell when it is over."


def _ask_permission(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    allowed, printed = yield Permission("date")
    return f"I was allowed to: {printed}" if allowed else "I was not allowed to, so I did nothing."


def _ask_question(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    parts = [part.strip() for part in found[1].split("|") if part.strip()]
    picked = yield Question(parts[0] if parts else "Which one?", tuple(parts[1:]) or ("yes", "no"))
    return f"Your answer is: {picked}"


def _fail(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    yield Fail(*_ERRORS[found[1].lower()])
    return ""


_ERRORS = {
    "login": ("authentication_failed", "Not logged in"),
    "limit": ("rate_limit", "API Error: Request rejected (429)"),
    "service": ("server_error", "API Error: Repeated 529 Overloaded errors"),
}


def _menu(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    picked = yield Choose(found[2], told=not found[1])
    return f"You chose: {picked}"


def _call(found: re.Match[str], earlier: Sequence[str]) -> Steps:
    try:
        arguments = json.loads(found[2] or "{}")
    except (ValueError, RecursionError) as error:
        return f"The arguments are no JSON: {error}"
    said = yield CallTool(found[1], arguments)
    return f"{found[1]} said: {said}"


_COMMANDS: tuple[tuple[str, Callable[[re.Match[str], Sequence[str]], Steps]], ...] = (
    (r"help", _help),
    (r"time", _time),
    (r"history", _history),
    (r"sleep (\d{1,6}(?:\.\d{1,3})?)", _sleep),
    (r"plan (.+)", _plan),
    (r"work (.+)", _work),
    (r"long (\d{1,6})", _long),
    (r"background (\d{1,6}(?:\.\d{1,3})?)", _background),
    (r"ask permission", _ask_permission),
    (r"ask question(.*)", _ask_question),
    (r"fail (login|limit|service)", _fail),
    (r"(silent )?menu(.*)", _menu),
    (r"call ([a-z_]+)\s*(\{.*\})?", _call),
)


class Tasks:
    """The background processes of this run of the agent."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}

    def start(self, seconds: float) -> tuple[str, str]:
        """Start one and return its id and its command."""
        task_id, command = f"b{os.urandom(4).hex()}", f"sleep {seconds:g}"
        process = subprocess.Popen(
            command.split(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        self._running[task_id] = (command, process)
        return task_id, command

    def ended(self) -> list[tuple[str, str]]:
        """Return id and notification of those that have ended since the last call."""
        over = [
            (task, command, code)
            for task, (command, process) in self._running.items()
            if (code := process.poll()) is not None
        ]
        for task, _, _ in over:
            del self._running[task]
        return [
            (task, notification(task, command, "completed" if code == 0 else "failed")) for task, command, code in over
        ]

    def listed(self) -> list[dict[str, str]]:
        """Return what runs, as the Stop hook tells it."""
        return [
            {"id": task, "type": "shell", "status": "running", "description": command, "command": command}
            for task, (command, _) in self._running.items()
        ]

    def end_all(self) -> None:
        """Kill what runs."""
        for _, process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()


def notification(task: str, command: str, status: str) -> str:
    """Return the prompt that the agent gives to itself when a task is over."""
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<status>{status}</status>\n"
        f"<summary>Background command {command!r}: {status}</summary>\n</task-notification>"
    )


VERSION = "2025-06-18"
_CALL = 2  #: the id of the request that calls the tool
_READ = 1 << 16


class ToolCall:
    """One call that is under way."""

    def __init__(self, command: Sequence[str], name: str, arguments: Mapping[str, Any]) -> None:
        client = {"name": "bundled-agent", "version": "1"}
        greeting = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
        lines: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": greeting},
            {"method": "notifications/initialized"},
            {"id": _CALL, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        ]
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._read = b""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            for line in lines:
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """Return what becomes readable once the server says something, or ends."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def result(self) -> str | None:
        """Read what is there, and return what the tool said; None while it is at work."""
        data = os.read(self.fileno(), _READ)
        self._read += data
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") == _CALL:
                return _text(message)
        return None if data else "the tool's server ended without an answer"

    def end(self) -> None:
        """End the server."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _text(message: Mapping[str, Any]) -> str:
    if "error" in message:
        return f"error: {message['error'].get('message')}"
    result = message["result"]
    text = "\n".join(part.get("text", "") for part in result.get("content", []))
    return f"error: {text}" if result.get("isError") else text
