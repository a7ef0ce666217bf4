"""The agent's command line.

`--state DIR (--session-id ID | --resume ID) [--settings F] [--mcp-config F] [--ask "TEXT | A | B"] [-- TEXT]`
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.values import dataclass


class BadOption(Exception):
    """The command line cannot be obeyed; the message says why."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    state: Path  #: holds the conversations and the status file
    session_id: str
    resume: bool
    hooks: Mapping[str, Any]
    prompt: str | None
    servers: Mapping[str, Sequence[str]]  #: MCP servers: name -> command
    ask: str = ""  #: a menu that comes before everything else


def parse(argv: Sequence[str]) -> Options:
    """Read the command line. Raises BadOption."""
    given: dict[str, str] = {}
    prompt = None
    words = iter(argv)
    for word in words:
        if word == "--":
            prompt = next(words, None)
            break
        if word not in ("--state", "--session-id", "--resume", "--settings", "--mcp-config", "--ask"):
            raise BadOption(f"unknown option '{word}'")
        given[word] = next(words, "")
    if not given.get("--state"):
        raise BadOption("--state is missing: name the folder that keeps the conversations")
    resume = "--resume" in given
    session_id = given.get("--resume") or given.get("--session-id") or str(uuid.uuid4())
    try:
        uuid.UUID(session_id)
    except ValueError as error:
        raise BadOption("Invalid session ID. Must be a valid UUID.") from error
    hooks, servers = _hooks(given.get("--settings")), _servers(given.get("--mcp-config"))
    return Options(Path(given["--state"]), session_id, resume, hooks, prompt, servers, given.get("--ask", ""))


def _hooks(settings: str | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    try:
        hooks = json.loads(Path(settings).read_bytes()).get("hooks", {})
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise BadOption(f"--settings {settings}: {error}") from error
    if not isinstance(hooks, dict):
        raise BadOption(f"--settings {settings}: `hooks` is no object")
    return hooks


def _servers(config: str | None) -> Mapping[str, Sequence[str]]:
    if config is None:
        return {}
    try:
        found = json.loads(Path(config).read_bytes())["mcpServers"]
        return {name: (server["command"], *server["args"]) for name, server in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadOption(f"--mcp-config {config}: {error!r}") from error
