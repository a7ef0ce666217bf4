"""Run what a row of the table of commands names, and print its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from core.cli.printing import (
    EXIT_FAILED,
    EXIT_OK,
    print_json,
    print_line,
    print_loops,
    print_queue,
    print_rows,
    print_window,
    warn,
)
from core.commandtable import Call, NoHandler

if TYPE_CHECKING:
    from core.cli.session import Session
    from core.commandtable import Result
    from core.delivery.saying import Queue
    from core.lifecycle.look import Screen
    from core.loops.verbs import LoopAnswer
    from core.model.rows import Answer
    from core.session.system import System


def run(session: Session, /, system: System | None = None, **given: Any) -> int:
    """Run the row of this command with what is given, by its names, and print its answer; return the exit code.

    `system`: another than the configuration's. Raises CoreError.
    """
    does = session.command.run
    if does is None:
        raise NoHandler(session.command.cli)
    system = system or session.system
    call = Call(system, session.acting(system), instance=session.agent)
    return show(session, does(call, **given), given.get("name", ""))


def show(session: Session, result: Result, name: str) -> int:
    """Print what a command answered, about the session of that name, and return the exit code."""
    from core.cli.quick import show_said
    from core.delivery import saying
    from core.lifecycle import look
    from core.loops import verbs
    from core.model import rows

    match result:
        case rows.Answer():
            return _show_rows(session, result)
        case verbs.LoopAnswer():
            return _show_loops(session, result)
        case saying.Queue():
            return show_queue(session, result, text=False)
        case saying.Said():
            return show_said(session.system, result, as_json=session.json)
        case look.Screen():
            return _show_screen(session, result, name)
        case _:
            assert_never(result)


def show_queue(session: Session, queue: Queue, *, text: bool) -> int:
    """Print a session's queue, with the texts if asked for."""
    told = queue.to_json(text=text)
    if session.json:
        print_json(told)
    else:
        print_queue(told)
    return EXIT_OK


def _show_rows(session: Session, answer: Answer) -> int:
    told = answer.to_json()
    if session.json:
        print_json(told)
    else:
        print_rows(told["sessions"], session.exact)
    return EXIT_OK if answer.ok else EXIT_FAILED


def _show_loops(session: Session, answer: LoopAnswer) -> int:
    told = answer.to_json()
    told["said"] = session.exact(told["said"])
    if session.json:
        print_json(told)
    else:
        print_loops(told)
    return EXIT_OK


def _show_screen(session: Session, screen: Screen, name: str) -> int:
    if session.json:
        window = {"window": screen.window.to_json()} if screen.window is not None else {}
        print_json({"name": name, "screen": screen.text, "ended": screen.ended, **window})
        return EXIT_OK
    if screen.ended:
        warn(f"{name} has ended; this was kept of its terminal")
    if screen.window is not None:
        print_window(screen.window.to_json(), screen.text)
    else:
        print_line(screen.text)
    return EXIT_OK
