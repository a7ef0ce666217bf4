"""Build the command line from the table of commands: a click command for each row, in the group its words name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from core.cli.completing import complete_session
from core.cli.running import run
from core.cli.session import Session, shared_options
from core.cli.teaching import TASKS, examples_of
from core.cli.terminal import Progress
from core.commandtable import GROUPS, Argument, Command, Kind, check_bound

Handler = Callable[..., int]  #: called with the Session, and with what the command takes by its name; the exit code


def add_commands(root: click.Group, table: Iterable[Command], handlers: dict[str, Handler]) -> None:
    """Add every command of the table to `root`: with its handler, by its words, else with what its row runs.

    Raises NoHandler for one that has neither.
    """
    rows = [command for command in table if command.cli]
    bound = {command.cli: run for command in rows if command.run is not None} | handlers
    check_bound((command.cli for command in rows), bound)
    groups = {name: Group.of(name, text) for name, text in GROUPS.items()}
    for command in rows:
        groups.get(command.group, root).add_command(_command(command, bound[command.cli]))
    for group in groups.values():
        root.add_command(group)


class Group(click.Group):
    """A group whose help shows the commands by what people do with them, and which knows where a verb is elsewhere."""

    @classmethod
    def of(cls, name: str, text: str) -> "Group":
        """Return an empty group of that name, whose help begins with the text."""
        group = click.group(name, help=text, cls=cls)(shared_options(lambda: None))
        assert isinstance(group, Group)
        return group

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their tasks; one that has none comes last."""
        named = {name: found for name in self.list_commands(ctx) if (found := self.get_command(ctx, name))}
        tasks = TASKS.get("" if ctx.parent is None else self.name or "", {})
        listed = {name for names in tasks.values() for name in names}
        rest = [name for name in named if name not in listed]
        width = max(map(len, named), default=0)
        for title, names in {**tasks, "Commands": (*rest,)}.items():
            rows = [
                (name.ljust(width), named[name].get_short_help_str(formatter.width - 6 - width))
                for name in names
                if name in named
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for a word that is none names commands like it, also those of other groups."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            elsewhere = [
                f"{name} {args[0]}"
                for name, group in self.commands.items()
                if isinstance(group, Group) and args[0] in group.commands
            ]
            if not elsewhere:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {elsewhere[0]!r}?", ctx) from error


def _command(command: Command, handler: Handler) -> click.Command:
    @shared_options
    @click.pass_obj
    def callback(session: Session, /, **given: Any) -> int:
        session.begin(command)
        if "@" in (given.get("name") or "") and any(one.word == "NAME" for one in command.takes):
            from core.cli.fleet import elsewhere

            name, answered = elsewhere(session, **given)
            if answered is not None:
                return answered
            given["name"] = name
        if not command.slow:
            return handler(session, **given)
        with Progress(command.slow, session.environ):
            return handler(session, **given)

    name, examples = command.cli.removeprefix(f"{command.group} "), examples_of(command.cli)
    epilog = f"\b\nExamples:\n{examples}" if examples else None
    params = [_param(one) for one in command.takes]
    return click.command(name, help=command.help, epilog=epilog, params=params)(callback)


def _param(argument: Argument) -> click.Parameter:
    given: dict[str, Any] = {"type": _type(argument), "required": argument.required}
    if argument.default is not None:
        given["default"] = argument.default
    if not argument.is_option:
        if argument.word == "NAME":
            given["shell_complete"] = complete_session
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
