"""`standing list` without the cost of the whole command line: it is what scripts and status lines call often.

Only command lines that are plainly right are answered here. A wrong one, a request for help or completion, and a
process inside an agent's pane are left to the command line proper: one place for each complaint and each right.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.system import System

ELSEWHERE = ("THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE")  #: an agent's process; a shell that completes a word
TOKEN_VARIABLE = "THE_LOOP_MCP_TOKEN_FILE"  #: names the file that holds the token of the session
_FORMATS = {"text": False, "json": True}


@dataclass(frozen=True)
class Request:
    """What a command line asks for: the file that `--config` names, and whether the answer is JSON."""

    config: str | None
    json: bool


def answer(arguments: list[str]) -> int | None:
    """Answer the command if it is a quick one, and return its exit code; None for every other.

    Raises CoreError as the command proper does.
    """
    if any(os.environ.get(name) for name in ELSEWHERE):
        return None
    request = understood(arguments)
    if request is None:
        return None
    gc.disable()  # a process that lives for 40 ms spent 3 of them looking for garbage that it does not make
    try:
        return _list(request)
    finally:
        gc.enable()


def serve_tools(arguments: list[str]) -> int | None:
    """Run `mcp [--token-file FILE]`, and return its exit code; None for every other command line.

    A harness waits for it, so that it imports nothing but what it needs.
    """
    match arguments:
        case ["mcp"]:
            path = os.environ.get(TOKEN_VARIABLE, "")
        case ["mcp", "--token-file", path]:
            pass
        case _:
            return None
    if not path:
        return None
    from core.clients import toolbridge

    return toolbridge.main([path])


def _list(request: Request) -> int:
    from pathlib import Path

    from core.config.loading import load
    from core.wiring import build_system

    environ = dict(os.environ)
    config = None if request.config is None else Path(request.config)
    return show_list(build_system(load(config, environ), environ), as_json=request.json)


def show_list(system: System, *, as_json: bool) -> int:
    """Print a row for every declared and recorded session, and return the exit code."""
    from core.commands import exact_for
    from core.standing.listing import list_standing
    from core.surfaces.cli.printing import EXIT_OK, print_json, print_rows

    rows = [row.to_json() for row in list_standing(system)]
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, lambda text: exact_for(system, text))
    return EXIT_OK


def understood(arguments: list[str]) -> Request | None:
    """Read `[GLOBAL OPTIONS] standing list [--json] [--format text|json]` as click does; None for all else."""
    words = iter(arguments)
    config: str | None = None
    as_json = False
    for word in words:
        if word == "standing":
            break
        match word.partition("="):
            case ("--json", "", ""):
                as_json = True
            case ("--as-operator", "", ""):
                continue  # outside of an agent's pane it changes nothing
            case ("--config", "=", value):
                config = value
            case ("--config", "", ""):
                config = next(words, None)
                if config is None:
                    return None
            case _:
                return None
    if next(words, None) != "list":
        return None
    given = _output_options(words)
    if given is None:
        return None
    return Request(config, [as_json, *given.values()][-1])


def _output_options(words: Iterator[str]) -> dict[str, bool] | None:
    """Return the command's own options in the order of their first appearance, each with its last value."""
    given: dict[str, bool] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--json":
            given["json"] = True
        elif name == "--format":
            form = value if equals else next(words, "")
            if form not in _FORMATS:
                return None
            given["format"] = _FORMATS[form]
        else:
            return None
    return given
