"""The agent's command line: `--state DIR (--session-id ID | --resume ID) [--settings FILE] [-- PROMPT]`."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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


def parse(argv: Sequence[str]) -> Options:
    """Read the command line. Raises BadOption."""
    given: dict[str, str] = {}
    prompt = None
    words = iter(argv)
    for word in words:
        if word == "--":
            prompt = next(words, None)
            break
        if word not in ("--state", "--session-id", "--resume", "--settings"):
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
    return Options(Path(given["--state"]), session_id, resume, _hooks(given.get("--settings")), prompt)


def _hooks(settings: str | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    try:
        hooks = json.loads(Path(settings).read_bytes()).get("hooks", {})
    except (OSError, ValueError, AttributeError) as error:
        raise BadOption(f"--settings {settings}: {error}") from error
    if not isinstance(hooks, dict):
        raise BadOption(f"--settings {settings}: `hooks` is no object")
    return hooks
