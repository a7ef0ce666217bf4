"""Write docs/commands.md from the table of commands: `python -m core.cli.reference` prints it."""

from collections.abc import Iterator, Sequence

from core.cli.teaching import EXAMPLES
from core.commandtable import COMMANDS, GROUPS, Argument, Command, Kind, in_chat
from core.model.asking import Role
from core.model.session import ActorKind, permitted

_HEAD = """\
# Commands

Every command of the command line and of the slash command. `the-loop COMMAND --help` shows the same.

- `--config FILE`, `--as-operator` and `--format text|json` (`--json`) may stand before a command's words, between them
  or after them. If one is given twice, the last one is used. With JSON, standard output has JSON only.
- In a terminal, `the-loop completion bash|zsh|fish` prints what completes commands, options and names of sessions.
  Colours are written to a terminal only, and not if `NO_COLOR` is set; a command that takes long says so on standard
  error, if that is a terminal.
- Exit codes: 0 well, 1 refused or failed, 2 bad input.
- *Agents may*: a command that runs inside a session's pane acts as its agent, which may use only these. `--as-operator`
  overrides that, and is logged. See [security](security.md).

This page is generated from the table of commands (`python -m core.cli.reference`).
"""
_CHAT = """\
## In a chat

The lists of `channels.<chat>` say who may: members are `authorizedUsers`, operators are `operators`. Only the caller
sees the answer.

| command | who | what it does |
| --- | --- | --- |"""
_WHO = {Role.MEMBER: "members", Role.APPROVER: "approvers", Role.OPERATOR: "operators"}


def reference_text(table: Sequence[Command]) -> str:
    """Return the page: the slash command's verbs, then every command of the command line in its group."""
    chat = [_row(f"`/the-loop {one.chat}`", _WHO[one.role], one.summary) for one in in_chat(table).values()]
    parts = [_HEAD, "\n".join([_CHAT, *chat]) + "\n"]
    for group, text in {"": "The service, all sessions together, and the rest.", **GROUPS}.items():
        title = f"`the-loop {group}`" if group else "`the-loop`"
        rows = [one for one in table if one.cli and one.group == group]
        parts += [f"## {title}\n\n{text}\n", *(_section(one) for one in rows)]
    return "\n".join(parts)


def _section(command: Command) -> str:
    notes = [f"In a chat: `/the-loop {command.chat}` ({_WHO[command.role]})."] if command.chat else []
    if command.right is None or permitted(ActorKind.AGENT, command.right):
        notes.append("Agents may.")
    usage = " ".join([f"the-loop {command.cli}", *_usage(command.takes)])
    options = [_row(f"`{_named(one)}`", one.help + _bounds(one)) for one in command.takes if one.is_option]
    table = ["", "| option | meaning |", "| --- | --- |", *options] if options else []
    examples = [f"    # {what}\n    {typed}" for what, typed in EXAMPLES.get(command.cli, {}).items()]
    shown = ["", "\n\n".join(examples)] if examples else []
    return "\n".join([f"### `{usage}`", "", " ".join([command.help, *notes]), *table, *shown, ""])


def _usage(takes: Sequence[Argument]) -> Iterator[str]:
    """Yield what stands in a usage line: what must be given, and a word for the options that need not be."""
    for one in takes:
        if not one.is_option:
            yield one.value if one.required else f"[{one.value}]"
    yield from (_named(one) for one in takes if one.is_option and one.required)
    if any(one.is_option and not one.required for one in takes):
        yield "[OPTIONS]"


def _named(argument: Argument) -> str:
    match argument.kind:
        case Kind.FLAG:
            return argument.word
        case Kind.SWITCH:
            return f"{argument.word}|--no-{argument.word.removeprefix('--')}"
        case _:
            return f"{argument.word} {argument.value}"


def _bounds(argument: Argument) -> str:
    """Return ` Default: 50, from 1 to 2000.`, as far as there is something to say."""
    said = ", ".join(_limits(argument))
    return f" {said[0].upper()}{said[1:]}." if said else ""


def _limits(argument: Argument) -> Iterator[str]:
    if argument.choices or argument.shows_default:
        yield f"default: {argument.default}"
    least, most = (None if bound is None else f"{bound:g}" for bound in (argument.least, argument.most))
    if least is not None:
        yield f"from {least}" + (f" to {most}" if most is not None else "")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(reference_text(COMMANDS), end="")
