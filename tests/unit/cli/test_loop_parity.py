"""The loop verbs of the command line and the loop tools of agents are the same, parameter by parameter."""

import click
import pytest

from core.cli.app import root
from core.model.tools import EVERY_TOOL, Kind

TOOLS = {spec.name: spec for spec in EVERY_TOOL}
VERBS = {
    "create": "create_loop",
    "list": "list_loops",
    "stop": "stop_loop",
    "pause": "pause_loop",
    "resume": "resume_loop",
    "run": "run_loop_now",
    "schedule": "schedule_next_run",
}
SHARED = {"json", "form", "format", "config", "as_operator", "help"}
KINDS = {Kind.TRUTH: click.types.BoolParamType, Kind.INTEGER: click.types.IntParamType}


def _loop_group() -> click.Group:
    group = root.commands["loop"]
    assert isinstance(group, click.Group)
    return group


def _options(verb: str) -> dict[str, click.Parameter]:
    """Return what a verb takes beside the session's name and what every verb takes, under the tool's names."""
    names = {"loop_id": "id"}
    taken = {str(one.name): one for one in _loop_group().commands[verb].params}
    return {names.get(name, name): one for name, one in taken.items() if name not in SHARED | {"name"}}


def test_each_verb_is_a_tool_and_each_loop_tool_a_verb() -> None:
    """What an operator may do to a loop an agent may do to its own, and nothing beyond."""
    tools = {name for name in TOOLS if "loop" in name or name == "schedule_next_run"}

    assert set(_loop_group().commands) == set(VERBS)
    assert tools == set(VERBS.values())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_what_its_tool_takes(verb: str) -> None:
    """The same names, and required where the tool requires them."""
    options, parameters = _options(verb), {one.name: one for one in TOOLS[VERBS[verb]].parameters}

    assert options.keys() == parameters.keys()
    assert {name for name, one in options.items() if one.required} == {
        name for name, one in parameters.items() if one.required
    }


@pytest.mark.parametrize("verb", VERBS)
def test_values_are_of_the_same_kind(verb: str) -> None:
    """A flag is a truth, a number of runs a whole number, all else a text."""
    options = _options(verb)

    for parameter in TOOLS[VERBS[verb]].parameters:
        expected = KINDS.get(parameter.kind, click.types.StringParamType)
        assert isinstance(options[parameter.name].type, expected), parameter.name
