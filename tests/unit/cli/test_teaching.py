"""Help teaches: examples that work, commands by task, and a word that was mistyped is recognised."""

from __future__ import annotations

import shlex

import click
import pytest

from core.cli.app import root
from core.cli.session import Session
from core.cli.teaching import EXAMPLES, TASKS
from core.commandtable import COMMANDS, GROUPS
from tests.unit.cli.conftest import Terminal

LINES = [(command, typed) for command, examples in EXAMPLES.items() for typed in examples.values()]


def test_every_command_has_an_example() -> None:
    """And no example is left of a command that is gone."""
    assert EXAMPLES.keys() == {command.cli for command in COMMANDS if command.cli}


@pytest.mark.parametrize(("command", "typed"), LINES, ids=[typed for _, typed in LINES])
def test_an_example_is_understood(command: str, typed: str) -> None:
    """The parser takes it as it stands, and takes it for that command."""
    program, *words = shlex.split(typed)
    found: click.Command = root
    context = root.make_context(program, [], obj=Session(), resilient_parsing=True)
    for word in command.split():
        assert isinstance(found, click.Group)
        assert words.pop(0) == word
        found = found.commands[word]
        parent = context
        context = click.Context(found, parent=parent, info_name=word, obj=Session())

    found.parse_args(context, words)

    assert program == "the-loop"


def test_each_command_stands_under_one_task() -> None:
    """A list of verbs is read by what one wants to do; none is missing, and none is named twice."""
    for group, tasks in TASKS.items():
        named = [name for names in tasks.values() for name in names]
        there = {
            command.cli.removeprefix(f"{group} ") for command in COMMANDS if command.cli and command.group == group
        }
        there |= {name for name in GROUPS if not group}
        assert sorted(named) == sorted(there)


def test_help_shows_tasks_and_examples(terminal: Terminal) -> None:
    """Both stand where somebody looks first."""
    terminal.run("--help")
    lists = terminal.out
    terminal.run("standing", "say", "--help")

    assert lists.index("Everything together:") < lists.index("  start ")
    assert "Examples:" in terminal.out
    assert "the-loop standing say scribe --text 'How far are you?'" in terminal.out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("standing", "lsit"), "'list'"),
        (("staus",), "'status'"),
        (("say", "scribe"), "'standing say'"),
        (("standing", "say", "scribe", "--txet", "x"), "'--text'"),
        (("standing", "get", "scrbe"), "did you mean scribe?"),
        (("standing", "delete", "sribe"), "did you mean scribe?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_was_meant_is_named(terminal: Terminal, words: tuple[str, ...], meant: str) -> None:
    """Of verbs, also of those in another group, of options, and of sessions."""
    assert terminal.run(*words) != 0

    assert meant in terminal.err


def test_nothing_is_guessed_that_is_far_off(terminal: Terminal) -> None:
    """A word like none of ours is only refused."""
    terminal.run("standing", "get", "warehouse")

    assert "did you mean" not in terminal.err


def test_without_a_terminal_there_is_no_colour_and_no_progress(terminal: Terminal) -> None:
    """A pipe gets plain text alone."""
    terminal.run("slack", "check")

    assert "failed   enabled" in terminal.out
    assert "\x1b" not in terminal.out + terminal.err
