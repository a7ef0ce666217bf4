"""What a model of ours is asked and what it answers, whatever protocol carries it. See tests/fakes/model.py."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_DIRECTIVE = re.compile(r"\[\[(sleep|drip|tool bash|bg|call|say|text|error|limit)\s+(.*?)\]\]", re.DOTALL)
_ERROR = re.compile(r"(\d{3})(?: for ([\d.]+)| (now))?\s*(.*)", re.DOTALL)
_FILE = re.compile(r"(?:\(file: |Read all of it in )(/\S+) [,:]")
#: by which names a shell is offered: Claude Code; Codex, in its generations; OpenCode; Gemini CLI
_SHELLS = ("Bash", "shell_command", "exec_command", "shell", "bash", "run_shell_command")
_EMPTY = {"boolean": False, "number": 0, "integer": 0}  #: what an argument that must be given is, by its type


@dataclass(frozen=True)
class Piece:
    """A part of what a person said, as the model was given it: typed, or marked as pasted."""

    text: str
    pasted: bool = False


@dataclass(frozen=True)
class Turn:
    """What a request says: the last thing that was said, and what followed it."""

    user: str
    last: str  #: of its prompts, where it has several
    results: tuple[str, ...]
    steers: tuple[str, ...]
    tools: tuple[
        str, ...
    ]  #: whatever it may call: Claude Code names those of MCP servers, and describes them when asked
    model: str
    stream: bool
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: of the arguments, by the tool's name
    groups: Mapping[str, str] = field(default_factory=dict)  #: Codex: the group that a tool is called in, by its name


@dataclass
class Reply:
    """What is answered."""

    text: str
    call: tuple[str, dict[str, Any]] | None = None
    sleep: float = 0.0
    drip: float = 0.0
    error: int = 0
    message: str = ""  #: of the error
    final: bool = False  #: the error is not worth trying again
    limit: float = 0.0  #: seconds until the account's limit ends
    fresh: int = 10  #: tokens that were sent, and not read from a cache
    cached: int = 0  #: tokens that were sent, and read from a cache
    thought: int = 0  #: tokens that it thought

    @property
    def tokens(self) -> int:
        """Return what its text costs."""
        return max(1, len(self.text) // 4)

    @property
    def written(self) -> int:
        """Return all tokens that it wrote."""
        return self.tokens + self.thought


def decide(turn: Turn, texts: Mapping[str, str], since: float = 0.0) -> Reply:
    """Return the reply to a request; `since` is how many seconds ago the same was first asked.

    It depends on these, and on the texts that the test has given, alone.
    """
    if not turn.tools:
        return Reply(f"ECHO: {turn.user}"[:60])
    reply = Reply(f"ECHO: {turn.user}", fresh=11 + len(turn.results), cached=1000 + len(turn.user), thought=3)
    calls: list[tuple[str, dict[str, Any]]] = []
    said = None
    obeyed = turn.user if "[[" in turn.user else turn.user.replace("<<", "[[").replace(">>", "]]")
    named = _FILE.search(turn.user)
    for kind, written in _DIRECTIVE.findall(obeyed):
        argument = written.replace("$FILE", named[1]) if named else written
        if kind == "sleep":
            reply.sleep += 0.0 if turn.results else float(argument)
        elif kind == "drip":
            reply.drip = float(argument)
        elif kind in ("say", "text"):
            said = argument if kind == "say" else texts[argument]
        elif kind in ("error", "limit"):
            if written in turn.last:
                _fail(reply, kind, argument, since)
        elif kind == "call":
            calls.append(_named_call(turn, argument))
        else:
            calls.append(_shell_call(turn, argument, background=kind == "bg"))
    done = len(turn.results)
    if done < len(calls):
        reply.call = calls[done]
    elif said is not None:
        reply.text = said
    elif done:
        reply.text = f"DONE: {turn.results[-1].strip()}"
    reply.text += "".join(f"\nSTEER: {text}" for text in turn.steers)
    return reply


def _fail(reply: Reply, kind: str, argument: str, since: float) -> None:
    if kind == "limit":
        reply.error, reply.limit, reply.final = 429, float(argument), True
        return
    found = _ERROR.fullmatch(argument)
    assert found is not None, f"[[error {argument}]]"
    code, seconds, final, message = found.groups()
    if seconds is None or since < float(seconds):
        reply.error, reply.message, reply.final = int(code), message, final is not None


def _named_call(turn: Turn, argument: str) -> tuple[str, dict[str, Any]]:
    """Return a call of the tool of that name, or of the one whose name ends with it: each harness adds a prefix."""
    asked, _, given = argument.strip().partition(" ")
    name = asked if asked in turn.tools else next((each for each in turn.tools if each.endswith(f"_{asked}")), asked)
    return name, json.loads(given or "{}")


def _shell_call(turn: Turn, command: str, *, background: bool) -> tuple[str, dict[str, Any]]:
    """Return a call of the shell that the harness offers, in the form that its schema asks for."""
    name = next((shell for shell in _SHELLS if shell in turn.tools), _SHELLS[0])
    schema = turn.schemas.get(name, {})
    offered: Mapping[str, Any] = schema.get("properties") or {}
    key = next((each for each in ("command", "cmd") if each in offered), "command")
    is_list = str(offered.get(key, {}).get("type", "")).lower() == "array"
    given: dict[str, Any] = {key: ["bash", "-lc", command] if is_list else command}
    for need in ("description", *(schema.get("required") or ())):
        kind = str(offered.get(need, {}).get("type", "string")).lower()
        if need in offered or not offered:
            given.setdefault(need, _EMPTY.get(kind, "run a command"))
    flag = "is_background" if "is_background" in offered else "run_in_background"
    if background and (flag in offered or not offered):
        given[flag] = True
    if background and "yield_time_ms" in offered:  # Codex lets a command run on that is not over by then
        given["yield_time_ms"] = 250
    return name, given


def flat(content: Any) -> str:
    """Return the text of a content: a string, a list of parts, or parts within parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return flat(content.get("text") or content.get("content") or content.get("output"))
    return "\n".join(filter(None, map(flat, content))) if isinstance(content, list) else ""
