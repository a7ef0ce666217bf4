"""What tools take, and how they are told of."""

import json
import math
from typing import Any

import pytest
from hypothesis import given as holds
from hypothesis import strategies as st

from core.base.errors import InvalidValue, UnknownSession
from core.model.session import ActorKind, Verb, permitted
from core.model.tools import EVERY_TOOL, Kind, Parameter, ToolAnswer, ToolSpec, failure, refused, tools_for

SPEC = ToolSpec(
    "paint",
    "Paint it. Returns nothing.",
    Verb.SAY,
    (
        Parameter("colour", Kind.TEXT, "Which.", required=True, longest=10),
        Parameter("coats", Kind.INTEGER, "How many."),
        Parameter("hours", Kind.NUMBER, "How long."),
        Parameter("until", Kind.SPAN, "When."),
        Parameter("gloss", Kind.TRUTH, "Whether it shines."),
        Parameter("walls", Kind.TEXTS, "Where.", longest=5, most=2),
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_what_is_right_is_taken_as_it_is() -> None:
    """A number may be whole; what is null counts as left out."""
    given = {"colour": "red", "coats": 2, "hours": 1, "until": "5m", "gloss": False, "walls": ["north", "east"]}

    assert SPEC.checked(given) == given
    assert SPEC.checked({"colour": "red", "coats": None}) == {"colour": "red"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (None, "needs colour"),
        ([], "give an object"),
        ("red", "give an object"),
        ({}, "needs colour"),
        ({"colour": None}, "needs colour"),
        ({"colour": 7}, "give a text"),
        ({"colour": "x" * 11}, "at most 10 characters"),
        ({"colour": "red", "coats": 1.5}, "give a whole number"),
        ({"colour": "red", "coats": True}, "give a whole number"),
        ({"colour": "red", "hours": "1"}, "give a number"),
        ({"colour": "red", "hours": math.nan}, "give a number"),
        ({"colour": "red", "hours": math.inf}, "give a number"),
        ({"colour": "red", "coats": 10**400}, "give a whole number"),
        ({"colour": "red", "until": [1]}, "give a span such as 10m, or seconds"),
        ({"colour": "red", "until": 10**400}, "give a span such as 10m, or seconds"),
        ({"colour": "red", "gloss": 1}, "give true or false"),
        ({"colour": "red", "walls": "north"}, "give a list of texts"),
        ({"colour": "red", "walls": [1]}, "give a list of texts"),
        ({"colour": "red", "walls": ["a", "b", "c"]}, "give at most 2"),
        ({"colour": "red", "walls": ["toolong"]}, "at most 5 characters"),
        ({"colour": "red", "brush": "big"}, "it takes colour, coats, hours, until, gloss, walls"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(arguments: Any, told: str) -> None:
    """The caller reads what to give instead."""
    with pytest.raises(InvalidValue, match=told):
        SPEC.checked(arguments)


@holds(JSON)
def test_whatever_is_sent_is_taken_or_refused(arguments: Any) -> None:
    """Nothing else is raised, and a refusal is short."""
    for spec in EVERY_TOOL:
        told, checked = "", {}
        try:
            checked = dict(spec.checked(arguments))
        except InvalidValue as error:
            told = str(error)
        assert len(told) < 400
        assert {*checked} <= {parameter.name for parameter in spec.parameters}


@pytest.mark.parametrize("spec", EVERY_TOOL, ids=lambda spec: spec.name)
def test_every_tool_is_something_that_an_agent_may_do(spec: ToolSpec) -> None:
    """Its verb is allowed to agents, its schema says what its check does, and its gist fits a line."""
    schema = spec.schema()

    assert permitted(ActorKind.AGENT, spec.verb)
    assert {*schema["required"]} <= {*schema["properties"]}
    assert json.loads(json.dumps(spec.listed()))["inputSchema"] == schema
    assert 10 < len(spec.gist) < 120


def test_a_session_without_a_thread_is_not_told_of_tools_that_need_one() -> None:
    """They are there all the same: it may be given a thread later."""
    named = {spec.name for spec in tools_for(has_thread=False)}

    assert {spec.name for spec in EVERY_TOOL} - named == {"post", "ask"}
    assert tools_for(has_thread=True) == tuple(EVERY_TOOL)


def test_an_answer_says_the_same_in_text_and_structure() -> None:
    """A failure's text holds code, message and remedy."""
    answer = ToolAnswer({"name": "scribe", "text": "grün"})
    failed = refused(UnknownSession("nobody"))

    assert json.loads(answer.to_json()["content"][0]["text"]) == answer.to_json()["structuredContent"]
    assert (failed.failed, failed.content["error"]["code"]) == (True, "unknown_session")
    assert failed.text.startswith("unknown_session: no standing session is called 'nobody'")
    assert failure("a", "b", "").text == "a: b"
