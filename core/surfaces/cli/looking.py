"""`the-loop standing list|get|attach|logs`: what sessions are, and what they show."""

import os
import sys

from core.errors import Refused
from core.surfaces.cli.printing import EXIT_OK, print_json, print_logs, print_row
from core.surfaces.cli.session import Session


def list_all(session: Session) -> int:
    """Run `the-loop standing list`."""
    from core.surfaces.cli.quick import show_list

    session.acting(session.system)
    return show_list(session.system, as_json=session.json)


def get(session: Session, name: str) -> int:
    """Run `the-loop standing get`."""
    from core.standing.listing import get_standing

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
    from core.standing.viewing import attach_command

    session.acting(session.system)
    argv = attach_command(session.system, name, write=write)
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
    from core.standing.recalling import logs_of

    session.acting(session.system)
    answer = logs_of(session.system, name, lines).to_json()
    if session.json:
        print_json(answer)
    else:
        print_logs(answer)
    return EXIT_OK
