"""`the-loop standing list|get|attach|screen|logs`: what sessions are, and what they show."""

import os
import sys

import click

from core.domain.rights import Verb
from core.errors import Refused
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line, print_logs, print_row, warn
from core.surfaces.cli.session import Session, shared_options


@click.command("list")
@shared_options
@click.pass_obj
def list_command(session: Session) -> int:
    """Every declared and recorded session, one row each."""
    from core.surfaces.cli.quick import show_list

    session.permit(session.system, Verb.LIST)
    return show_list(session.system, as_json=session.json)


@click.command("get")
@click.argument("name")
@shared_options
@click.pass_obj
def get_command(session: Session, name: str) -> int:
    """One session's row, whole."""
    from core.standing.listing import get_standing

    session.permit(session.system, Verb.GET)
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


@click.command("attach")
@click.argument("name")
@click.option("--write", is_flag=True, help="Type into it, too.")
@shared_options
@click.pass_obj
def attach_command(session: Session, name: str, write: bool) -> int:
    """Look at the session's terminal. Read-only unless --write; with --json: the command that does so."""
    from core.standing.viewing import attach_command as command_for

    session.permit(session.system, Verb.ATTACH)
    argv = command_for(session.system, name, write=write)
    if session.json:
        print_json({"name": name, "command": list(argv)})
        return EXIT_OK
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoTerminal(name)
    if not _can_draw(os.environ.get("TERM", "")):
        raise UnknownTerminal(name, os.environ.get("TERM", ""))
    environment = {key: value for key, value in os.environ.items() if key != "TMUX"}
    os.execvpe(argv[0], list(argv), environment)


@click.command("screen")
@click.argument("name")
@click.option(
    "--lines", type=click.IntRange(1, 2000), default=50, show_default=True, help="How many of the last lines."
)
@shared_options
@click.pass_obj
def screen_command(session: Session, name: str, lines: int) -> int:
    """What the session's terminal shows."""
    from core.standing.viewing import screen

    session.permit(session.system, Verb.SCREEN)
    shown = screen(session.system, name, lines)
    if session.json:
        print_json({"name": name, "screen": shown.text, "ended": shown.ended})
    else:
        if shown.ended:
            warn(f"{name} has ended; this was kept of its terminal")
        print_line(shown.text)
    return EXIT_OK


@click.command("logs")
@click.argument("name")
@click.option(
    "--lines", type=click.IntRange(1, 2000), default=50, show_default=True, help="How many of the last lines."
)
@shared_options
@click.pass_obj
def logs_command(session: Session, name: str, lines: int) -> int:
    """What the session's terminal showed last, and how it ended. Of what ended before, too."""
    from core.standing.recalling import logs_of

    session.permit(session.system, Verb.LOGS)
    answer = logs_of(session.system, name, lines).to_json()
    if session.json:
        print_json(answer)
    else:
        print_logs(answer)
    return EXIT_OK
