"""`standing list` and `standing say` without the start-up cost of the whole command line, for scripts and status lines.

Only command lines that are plainly correct are answered here. A wrong one, a request for help or completion, and a call
from inside an agent's pane go to the full command line, so each error message and each check of rights exists once.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from core.base.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from core.delivery.saying import Said
    from core.session.system import System


ELSEWHERE = ("THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE")  #: an agent's process; a shell that completes a word
TOKEN_VARIABLE = "THE_LOOP_MCP_TOKEN_FILE"  #: names the file that holds the token of the session
SAY_SECONDS = 30.0  #: how long `say` waits unless it is told
_FORMATS = {"text": False, "json": True}
_VALUES = frozenset({"--text", "--file", "--actor", "--wait", "--format"})  #: options of `say` that take a value
_FLAGS = frozenset({"--raw", "--no-wait", "--json"})


@dataclass(frozen=True)
class Message:
    """What `say` is to say, as the command line has it."""

    name: str
    source: str | None = None  #: "-": standard input
    text: str | None = None
    file: str | None = None
    actor: str | None = None
    raw: bool = False
    wait: float = SAY_SECONDS


@dataclass(frozen=True)
class Request:
    """What a command line asks for: by which file, whether the answer is JSON, and what to say, None for a list."""

    config: str | None
    json: bool
    message: Message | None = None


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
        return _list(request) if request.message is None else _say(request, request.message)
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


# ---------------------------------------------------------------- answering


def _system(request: Request) -> System:
    from pathlib import Path

    from core.base.loggers import before_first_line
    from core.config.loading import load
    from core.service.wiring import build_system

    before_first_line(_log)
    environ = dict(os.environ)
    config = None if request.config is None else Path(request.config)
    return build_system(load(config, environ), environ)


def _log() -> None:
    """Log as the command line proper does."""
    import logging

    from core.process.logs import log_to_stderr

    log_to_stderr(logging.WARNING)


def _list(request: Request) -> int:
    return show_list(_system(request), as_json=request.json)


def show_list(system: System, *, as_json: bool) -> int:
    """Print a row for every declared and recorded session, and return the exit code."""
    from core.cli.printing import EXIT_OK, print_json, print_rows
    from core.lifecycle.look import list_standing
    from core.session.commands import exact_for

    rows = [row.to_json() for row in list_standing(system)]
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, lambda text: exact_for(system.settings, system.environ, text))
    return EXIT_OK


def _say(request: Request, message: Message) -> int:
    from pathlib import Path

    from core.cli.reading import message_of
    from core.delivery.saying import say
    from core.process.presence import user_name

    text = message_of(message.source, message.text, None if message.file is None else Path(message.file))
    actor = named_actor(user_name() if message.actor is None else message.actor)
    system = _system(request)
    with _waiting(system.environ):
        said = say(system, message.name, text, actor=actor, raw=message.raw, wait=message.wait)
    return show_said(system, said, as_json=request.json)


def _waiting(environ: Mapping[str, str]) -> AbstractContextManager[object]:
    """Return what shows in a terminal that the command waits; elsewhere it does nothing, and costs nothing."""
    if not sys.stderr.isatty():
        from contextlib import nullcontext

        return nullcontext()
    from core.cli.terminal import Progress

    return Progress("waiting until the agent takes it", environ)


def named_actor(name: str) -> str:
    """Return `cli:<name>`, or the name itself where it says by which way it came: `<chat>:U1`."""
    return name if ":" in name else f"cli:{name}"


def show_said(system: System, said: Said, *, as_json: bool) -> int:
    """Print what became of a message and where its answer can be read, and return the exit code."""
    from core.cli.printing import print_json, print_line
    from core.delivery.answers import told_where

    told = {**said.to_json(), "answerComes": told_where(system, said)}
    if as_json:
        print_json(told)
    else:
        for line in told["messages"]:
            print_line(line)
        if told["answerComes"]:
            print_line(told["answerComes"])
    return int(told["exitCode"])


# ---------------------------------------------------------------- understanding


def understood(arguments: list[str]) -> Request | None:
    """Read `[GLOBAL OPTIONS] standing list|say …` as click does; None for all else."""
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
    verb = next(words, None)
    if verb == "list":
        given = _output_options(words)
        return None if given is None else Request(config, _last(as_json, given))
    return _understood_say(config, as_json, words) if verb == "say" else None


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


def _last(as_json: bool, given: dict[str, bool]) -> bool:
    """Return whether the answer is JSON: of the options that say so the last one counts."""
    return [as_json, *given.values()][-1]


def _understood_say(config: str | None, as_json: bool, words: Iterator[str]) -> Request | None:
    """Read `NAME [-] [OPTIONS]`; None where anything is not plainly right."""
    plain: list[str] = []
    given: dict[str, str] = {}
    output: dict[str, bool] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            given[word] = ""
            if word == "--json":
                output["json"] = True
        elif name in _VALUES:
            found = value if equals else next(words, None)
            if found is None or (name == "--format" and found not in _FORMATS):
                return None
            given[name] = found
            if name == "--format":
                output["format"] = _FORMATS[found]
        elif word == "-" or not word.startswith("-"):
            plain.append(word)
        else:
            return None
    wait = _seconds(given.get("--wait", str(SAY_SECONDS)))
    if not 1 <= len(plain) <= 2 or not all(plain) or wait is None or "@" in plain[0]:  # NAME@HOST: another machine's
        return None
    message = Message(
        name=plain[0],
        source=plain[1] if len(plain) == 2 else None,
        text=given.get("--text"),
        file=given.get("--file"),
        actor=given.get("--actor"),
        raw="--raw" in given,
        wait=0.0 if "--no-wait" in given else wait,
    )
    return Request(config, _last(as_json, output), message)


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
