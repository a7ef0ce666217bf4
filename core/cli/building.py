"""Build the command line from the table of commands: a click command for each row, in the group its words name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from core.cli.running import run
from core.cli.session import Session, shared_options
from core.commandtable import GROUPS, Argument, Command, Kind, check_bound

Handler = Callable[..., int]  #: called with the Session, and with what the command takes by its name; the exit code


def add_commands(root: click.Group, table: Iterable[Command], handlers: dict[str, Handler]) -> None:
    """Add every command of the table to `root`: with its handler, by its words, else with what its row runs.

    Raises NoHandler for one that has neither.
    """
    rows = [command for command in table if command.cli]
    bound = {command.cli: run for command in rows if command.run is not None} | handlers
    check_bound((command.cli for command in rows), bound)
    groups = {name: click.group(name, help=text)(shared_options(lambda: None)) for name, text in GROUPS.items()}
    for command in rows:
        groups.get(command.group, root).add_command(_command(command, bound[command.cli]))
    for group in groups.values():
        root.add_command(group)


def _command(command: Command, handler: Handler) -> click.Command:
    @shared_options
    @click.pass_obj
    def callback(session: Session, /, **given: Any) -> int:
        session.begin(command)
        return handler(session, **given)

    name = command.cli.removeprefix(f"{command.group} ")
    return click.command(name, help=command.help, params=[_param(one) for one in command.takes])(callback)


def _param(argument: Argument) -> click.Parameter:
    given: dict[str, Any] = {"type": _type(argument), "required": argument.required}
    if argument.default is not None:
        given["default"] = argument.default
    if not argument.is_option:
        return click.Argument([argument.parameter], metavar=argument.word if argument.required else None, **given)
    flag = argument.word
    if argument.kind is Kind.SWITCH:
        flag += f"/--no-{flag.removeprefix('--')}"
    if argument.variable:
        given["envvar"] = argument.variable
    return click.Option(
        [flag, argument.parameter],
        help=argument.help,
        metavar=argument.shown or None,
        multiple=argument.many,
        is_flag=argument.kind is Kind.FLAG or None,
        show_default=argument.shows_default,
        **given,
    )


def _type(argument: Argument) -> click.ParamType[Any] | None:
    bounded = argument.least is not None or argument.most is not None
    match argument.kind:
        case Kind.FLAG | Kind.SWITCH:
            return None
        case Kind.PATH:
            return click.Path(path_type=Path)
        case Kind.INTEGER:
            return click.IntRange(_whole(argument.least), _whole(argument.most)) if bounded else click.INT
        case Kind.NUMBER:
            return click.FloatRange(argument.least, argument.most) if bounded else click.FLOAT
        case Kind.TEXT:
            return click.Choice(argument.choices) if argument.choices else click.STRING


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
