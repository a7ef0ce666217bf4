"""What a request brings is read as the table of commands says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import InvalidValue
from core.commandtable import Argument, Kind
from core.http.arguments import from_body, from_query, key_of

TAKES = (
    Argument("NAME", required=True),
    Argument("--keep-alive", kind=Kind.FLAG),
    Argument("--max-runs", kind=Kind.INTEGER, least=1, most=9),
    Argument("--wait", kind=Kind.NUMBER, default=10.0, least=0),
    Argument("--restart", choices=("never", "on-failure"), default="never"),
    Argument("--harness-arg", many=True, name="harness_args"),
    Argument("--in", name="delay", default=""),
)
DEFAULTS = {
    "keep_alive": False, "max_runs": None, "wait": 10.0, "restart": "never", "harness_args": (), "delay": "",
}  # fmt: skip


def test_keys_are_the_parameters_in_camel_case() -> None:
    """A word by its place is its own key."""
    assert [key_of(one) for one in TAKES] == [
        "name", "keepAlive", "maxRuns", "wait", "restart", "harnessArgs", "delay",
    ]  # fmt: skip


def test_what_is_not_given_has_its_default() -> None:
    """So has what is null."""
    assert from_body(TAKES, {"name": "a"}) == {"name": "a", **DEFAULTS}
    assert from_body(TAKES, {"name": "a", "wait": None, "maxRuns": None}) == {"name": "a", **DEFAULTS}


def test_what_is_given_is_taken_as_it_is() -> None:
    """Of its own kind."""
    body = {"name": "a", "keepAlive": True, "maxRuns": 9, "wait": 0.5, "restart": "on-failure", "harnessArgs": ["-x"]}

    assert from_body(TAKES, body) == {
        "name": "a", "keep_alive": True, "max_runs": 9, "wait": 0.5, "restart": "on-failure", "harness_args": ("-x",),
        "delay": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "name is missing; give name: a text"),
        ({"name": None}, "name is missing"),
        ({"name": ""}, "is no session name"),
        ({"name": "No!"}, "is no session name"),
        ({"name": 5}, "name: 5 cannot be taken; give a text"),
        ({"name": "\ud800"}, r"name: '\ud800' cannot be taken"),
        ({"name": "a", "nme": 1}, "'nme' is not a key of this request; give only name, keepAlive"),
        ({"name": "a", "keepAlive": 1}, "keepAlive: 1 cannot be taken; give true or false"),
        ({"name": "a", "maxRuns": True}, "maxRuns: True cannot be taken; give a whole number from 1 to 9"),
        ({"name": "a", "maxRuns": 10}, "from 1 to 9"),
        ({"name": "a", "maxRuns": 1.0}, "a whole number"),
        ({"name": "a", "wait": float("nan")}, "wait: nan cannot be taken; give a number from 0"),
        ({"name": "a", "wait": 10**400}, "wait: 1000"),
        ({"name": "a", "restart": "always"}, "give one of never, on-failure"),
        ({"name": "a", "harnessArgs": "-x"}, "harnessArgs: '-x' is not a list of texts"),
        ({"name": "a", "harnessArgs": [1]}, "is not a list of texts"),
        ({"name": "a" * 999, "x": 1}, "'x' is not a key"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(body: dict[str, Any], told: str) -> None:
    """The key, the value, and what may be given."""
    with pytest.raises(InvalidValue) as caught:
        from_body(TAKES, body)

    assert told in str(caught.value)


def test_a_query_says_the_same_in_texts() -> None:
    """Numbers and truth values are read; all else is a text."""
    query = [("name", "5"), ("keepAlive", "true"), ("maxRuns", "3"), ("wait", "1.5")]

    assert from_query(TAKES, query) == {"name": "5", **DEFAULTS, "keep_alive": True, "max_runs": 3, "wait": 1.5}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ([("name", "a"), ("name", "b")], "name is given twice"),
        ([("name", "a"), ("maxRuns", "three")], "is not a whole number; give a whole number from 1 to 9"),
        ([("name", "a"), ("maxRuns", "²")], "is not a whole number"),
        ([("name", "a"), ("wait", "nan")], "wait: nan cannot be taken"),
        ([("name", "a"), ("wait", "soon")], "is not a number"),
        ([("name", "a"), ("keepAlive", "yes")], "is not a truth value; give true or false"),
        ([("nme", "a")], "'nme' is not a key"),
    ],
)
def test_a_query_that_is_wrong_is_named(query: list[tuple[str, str]], told: str) -> None:
    """As a body is."""
    with pytest.raises(InvalidValue) as caught:
        from_query(TAKES, query)

    assert told in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*map(key_of, TAKES), "slack", "x"]), JSON))
def test_nothing_else_is_raised_whatever_comes(body: dict[str, Any]) -> None:
    """Every value of every key is taken, or refused by name."""
    try:
        from_body(TAKES, body, ["slack"])
    except InvalidValue as error:
        str(error).encode()  # half a character could not be told
