"""Commands for sessions that need more than a row of the table: own arguments, a terminal, standard input, rows.

These are `standing create|stop|list|get|attach|logs|say|queue|cancel|confirm`, `loop create`, `post`, `ask`, `mcp` and
`events`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.base.errors import InvalidValue, Refused
from core.base.paths import absolute_path
from core.cli.printing import (
    EXIT_FAILED,
    EXIT_OK,
    print_history,
    print_json,
    print_line,
    print_logs,
    print_row,
    warn,
)
from core.cli.quick import named_actor, show_said
from core.cli.reading import message_of, text_or_input
from core.cli.running import run, show, show_queue
from core.cli.session import Session
from core.commandtable import CHATS, thread_options
from core.model.reasons import code_of

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.delivery.saying import Said
    from core.model.message import InboxRow
    from core.store.eventlog import EventLog
    from core.store.records import Records


def create(
    session: Session,
    name: str,
    harness: str,
    cwd: str,
    prompt: str | None,
    prompt_file: str | None,
    description: str,
    harness_args: tuple[str, ...],
    no_auto_start: bool,
    restart: str,
    no_start: bool,
    **threads: Any,
) -> int:
    """Run `the-loop standing create`. `threads`: for each chat whether it has a thread there, and its channel."""
    from core.lifecycle.create import create_standing
    from core.model.session import ChatBinding, Definition, Restart, stated

    actor = session.acting(session.system)
    definition = Definition(
        name=name,
        description=description,
        harness=harness,
        harness_args=harness_args or None,
        cwd=_absolute(cwd),
        prompt=prompt,
        prompt_file=_absolute(prompt_file) if prompt_file else None,
        auto_start=not no_auto_start,
        restart=Restart(restart),
        chat=stated({kind: ChatBinding(*(threads[one] for one in thread_options(kind))) for kind in CHATS}),
    )
    return show(session, create_standing(session.system, definition, actor, start=not no_start), name)


def _absolute(path: str) -> str:
    return str(absolute_path(Path(path))) if path else ""


def stop(session: Session, **given: Any) -> int:
    """Run `the-loop standing stop`, even where the configuration is not valid."""
    from core.service.wiring import build_rescue_system

    return run(session, system=build_rescue_system(session.config, session.environ, warn), **given)


def create_loop(session: Session, instruction: str, **given: Any) -> int:
    """Run `the-loop loop create`, the instruction from standard input where it is `-`."""
    return run(session, instruction=text_or_input(instruction), **given)


def list_all(session: Session, everywhere: bool, host: str) -> int:
    """Run `the-loop standing list`."""
    from core.cli.quick import show_list

    session.acting(session.system)
    if everywhere or host:
        from core.cli.fleet import list_fleet

        return list_fleet(session, host)
    return show_list(session.system, as_json=session.json)


def get(session: Session, name: str) -> int:
    """Run `the-loop standing get`."""
    from core.lifecycle.look import get_standing

    session.acting(session.system)
    row = get_standing(session.system, name).to_json()
    if session.json:
        print_json(row)
    else:
        print_row(row)
    return EXIT_OK


class NoTerminal(Refused):
    """`attach` is run where there is no terminal to show a session in."""

    code = "no_terminal"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: standard input or output is not a terminal, so it cannot be attached to",
            f"run it in a terminal, or look at `the-loop standing screen {name}`",
        )


class UnknownTerminal(Refused):
    """tmux would not show a session in a terminal of this kind."""

    code = "unknown_terminal"

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"{name}: tmux cannot draw in a terminal of this kind, TERM={kind or '(not set)'}: this machine has no "
            "description of it, or it cannot clear its screen",
            f"name another kind: `TERM=xterm-256color the-loop standing attach {name}`",
        )


def _can_draw(kind: str) -> bool:
    """Return whether terminals of that kind are known here and can do what tmux needs at least."""
    import curses

    try:
        curses.setupterm(kind, sys.stdout.fileno())
    except curses.error:
        return False
    return all(curses.tigetstr(capability) for capability in ("clear", "cup"))


def attach(session: Session, name: str, write: bool) -> int:
    """Run `the-loop standing attach`."""
    from core.lifecycle.look import attach_command

    session.acting(session.system)
    argv = attach_command(session.system.settings, session.system.records, session.system.runner, name, write=write)
    if session.json:
        print_json({"name": name, "command": list(argv)})
        return EXIT_OK
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoTerminal(name)
    if not _can_draw(os.environ.get("TERM", "")):
        raise UnknownTerminal(name, os.environ.get("TERM", ""))
    environment = {key: value for key, value in os.environ.items() if key != "TMUX"}
    os.execvpe(argv[0], list(argv), environment)


def logs(session: Session, name: str, lines: int) -> int:
    """Run `the-loop standing logs`."""
    from core.lifecycle.look import logs_of

    session.acting(session.system)
    answer = logs_of(session.system, name, lines).to_json()
    if session.json:
        print_json(answer)
    else:
        print_logs(answer)
    return EXIT_OK


def history(session: Session, name: str) -> int:
    """Run `the-loop standing history`."""
    from core.lifecycle.history import history_of

    session.acting(session.system)
    system = session.system
    answer = history_of(system.settings, system.records, system.events, name)
    if session.json:
        print_json(answer.to_json())
    else:
        print_history(answer, session.exact)
    return EXIT_OK


def say(
    session: Session,
    name: str,
    source: str | None,
    text: str | None,
    file: Path | None,
    actor: str | None,
    raw: bool,
    wait: float,
    no_wait: bool,
    wait_answer: bool,
    answer_within: float,
) -> int:
    """Run `the-loop standing say`."""
    from core.delivery.saying import say as say_standing

    message = message_of(source, text, file)
    speaker = session.acting(session.system)
    said = say_standing(
        session.system,
        name,
        message,
        actor=_speaker(session, speaker, actor),
        raw=raw,
        wait=0.0 if no_wait else wait,
    )
    if not wait_answer:
        return show_said(session.system, said, as_json=session.json)
    return _show_answer(session, said, answer_within)


def _show_answer(session: Session, said: Said, seconds: float) -> int:
    """Print the answer to a message alone on standard output, and the rest on standard error; 1 if there is none."""
    from core.delivery.answers import await_answer, told_why

    if not session.json:
        for line in said.messages:
            warn(line)
    awaited = await_answer(session.system, said, seconds)
    if session.json:
        print_json({**said.to_json(), "exitCode": int(not awaited.ok), **awaited.to_json()})
    elif awaited.ok:
        print_line(awaited.text)
    else:
        warn(told_why(session.system, said.name, awaited))
    return EXIT_OK if awaited.ok else EXIT_FAILED


def _speaker(session: Session, speaker: str, actor: str | None) -> str:
    """Return who says it: `actor` where one is given, which no agent may. Raises InvalidValue."""
    if actor is None:
        return speaker
    if session.agent is not None:
        raise InvalidValue("an agent speaks in its own name", "leave --actor out")
    return named_actor(actor)


def queue(session: Session, name: str, text: bool) -> int:
    """Run `the-loop standing queue`."""
    from core.delivery.saying import queue_of

    session.acting(session.system)
    return show_queue(session, queue_of(session.system, name), text=text)


def cancel(session: Session, message_id: str) -> int:
    """Run `the-loop standing cancel`."""
    from core.delivery.saying import cancel_message

    actor = session.acting(session.system)
    row = cancel_message(session.system, message_id, actor)
    return _report_message(session, row, row.detail)


def confirm(session: Session, message_id: str) -> int:
    """Run `the-loop standing confirm`."""
    from core.delivery.saying import confirm_message

    actor = session.acting(session.system)
    row = confirm_message(session.system, message_id, actor)
    return _report_message(session, row, "confirmed")


def _report_message(session: Session, row: InboxRow, done: str) -> int:
    message = row.message
    if session.json:
        told = {"state": row.state.value, "reason": code_of(row.because), "detail": row.detail}
        print_json({"id": message.id, "name": message.name, **told})
    else:
        print_line(f"{message.name}: {message.id} is {done}")
    return EXIT_OK


def post(session: Session, name: str, text: str, file: Path | None) -> int:
    """Run `the-loop post`."""
    from core.chat.speaking import post as post_in_thread
    from core.chat.speaking import redaction_told, speaker

    actor = session.acting(session.system)
    record = speaker(session.system.settings, session.system.records, session.agent, name)
    content, files, agent = text_or_input(text), [file] if file else [], session.agent is not None
    said = post_in_thread(session.system, record, actor, content, files, agent=agent)
    redaction = redaction_told(said.redacted)
    if session.json:
        print_json({"name": record.name, "postId": said.post_id, **redaction})
    else:
        print_line("; ".join([f"{record.name}: posted ({said.post_id})", *([redaction["said"]] if redaction else [])]))
    return EXIT_OK


def ask(session: Session, name: str, question: str, options: tuple[str, ...], wait: float | None) -> int:
    """Run `the-loop ask`."""
    from core.chat.speaking import ask as ask_in_thread
    from core.chat.speaking import speaker

    session.acting(session.system)
    record = speaker(session.system.settings, session.system.records, session.agent, name)
    answer = ask_in_thread(session.system, record, question, options, wait)
    if session.json:
        print_json({"name": record.name, **answer})
    else:
        print_line(answer["answer"])
    return EXIT_OK


def mcp(session: Session, token_file: str | None) -> int:
    """Run `the-loop mcp`."""
    from core.clients import toolbridge

    if not token_file:
        raise InvalidValue("no session's token is named", "run it inside a session, or give --token-file")
    return toolbridge.main([token_file])


_LEAD = ("ts", "event", "level", "name", "actor", "reason", "detail")


def events(session: Session, name: str | None, last: int | None, follow: bool) -> int:
    """Run `the-loop events`."""
    session.acting(session.system)
    if name is not None:
        _check_known(session.system.settings, session.system.records, session.system.events, name)
    for event in _chosen(session.system.events.read(follow=follow), name, last, follow):
        print_line(json.dumps(event, ensure_ascii=False) if session.json else _line(event))
        if follow:
            sys.stdout.flush()  # a pipe would keep it until it is full
    return EXIT_OK


def _check_known(settings: Settings, records: Records, events: EventLog, name: str) -> None:
    """Raise UnknownSession for a name that no session has and no event names, InvalidValue for what is no name."""
    from core.base.errors import UnknownSession
    from core.session.sessions import definition_of

    try:
        definition_of(settings, records, name)
    except UnknownSession:
        if not any(event.get("name") == name for event in events.read()):
            raise


def _chosen(
    events: Iterable[Mapping[str, Any]], name: str | None, last: int | None, follow: bool
) -> Iterable[Mapping[str, Any]]:
    if last is not None and follow:
        raise click.UsageError("--last and --follow do not go together: --follow begins with all that is kept")
    ours = (event for event in events if name is None or event.get("name") == name)
    return ours if last is None else list(ours)[-last:]


def _line(event: Mapping[str, Any]) -> str:
    """Return the event in one line: what agents and their programs have put into it adds none of its own."""
    lead = (str(event[key]) for key in _LEAD if event.get(key) is not None)
    rest = (f"{key}={value}" for key, value in event.items() if key not in (*_LEAD, "ref", "text"))
    return "  ".join(" ".join(part.split()) for part in chain(lead, rest))
