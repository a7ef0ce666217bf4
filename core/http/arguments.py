"""What a command of the table takes, as a request brings it: a JSON object, or the query of an address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.base.errors import InvalidValue
from core.base.names import check_name
from core.commandtable import Argument, Kind

_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})
_LONGEST_SHOWN = 60  #: characters of a value in an error
_LARGEST = 2**53 - 1  #: RFC 8259, section 6: beyond it programs do not agree on what a number is


def key_of(argument: Argument) -> str:
    """Return the key of an argument: `name`, `id`, `keepAlive`."""
    if not argument.is_option:
        return argument.word.lower()
    first, *rest = argument.parameter.split("_")
    return first + "".join(part.capitalize() for part in rest)


#: What a request says of a session's thread in a chat.
CHAT_BLOCK = (
    Argument("--enabled", "Whether the session gets a thread there.", Kind.SWITCH, default=False),
    Argument("--channel", "The channel's id; default: the chat's own.", default=""),
)


def from_body(takes: Sequence[Argument], given: Mapping[str, Any], chats: Iterable[str] = ()) -> dict[str, Any]:
    """Return what the command is called with, by its parameters. Raises InvalidValue for the first thing wrong.

    A key that is null is as if it were not there. `chats`: keys that hold a CHAT_BLOCK each.
    """
    known, blocks = {key_of(one): one for one in takes}, frozenset(chats)
    unknown = next((key for key in given if key not in known and key not in blocks), None)
    if unknown is not None:
        raise InvalidValue(f"{shown(unknown)} is not a key of this request", allowed=_listed((*known, *blocks)))
    read = {one.parameter: _value(one, key, given.get(key)) for key, one in known.items()}
    return {**read, **{kind: _block(kind, given.get(kind)) for kind in blocks}}


def _block(kind: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise InvalidValue(f"{kind}: {shown(value)} is not an object", allowed="an object with enabled and channel")
    return from_body(CHAT_BLOCK, value or {})


def from_query(takes: Sequence[Argument], given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the same for the parts of a query, each of which is a text. Raises InvalidValue."""
    known, body = {key_of(one): one for one in takes}, dict[str, Any]()
    for key, text in given:
        if key in body:
            raise InvalidValue(f"{key} is given twice", "give it once")
        argument = known.get(key)
        body[key] = text if argument is None else _read(argument, key, text)
    return from_body(takes, body)


def _read(argument: Argument, key: str, text: str) -> Any:
    """Return what a text of a query stands for."""
    match argument.kind:
        case Kind.FLAG | Kind.SWITCH:
            if text.lower() not in _TRUE | _FALSE:
                raise InvalidValue(f"{key}: {shown(text)} is not a truth value", allowed="true or false")
            return text.lower() in _TRUE
        case Kind.INTEGER:
            if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() and len(text) < 20):
                raise InvalidValue(f"{key}: {shown(text)} is not a whole number", allowed=_allowed(argument))
            return int(text)
        case Kind.NUMBER:
            try:
                return float(text)
            except ValueError:
                raise InvalidValue(f"{key}: {shown(text)} is not a number", allowed=_allowed(argument)) from None
        case Kind.TEXT | Kind.PATH:
            return text


def _value(argument: Argument, key: str, value: Any) -> Any:
    """Return an argument's value, or its default. Raises InvalidValue."""
    if value is None:
        if argument.required:
            raise InvalidValue(f"{key} is missing", f"give {key}: {_allowed(argument)}")
        if argument.kind is Kind.FLAG:
            return False
        return () if argument.many else argument.default
    if argument.many:
        if not isinstance(value, list) or not all(isinstance(one, str) and _is_text(one) for one in value):
            raise InvalidValue(f"{key}: {shown(value)} is not a list of texts", allowed="a list of texts")
        return tuple(value)
    if not _fits(argument, value):
        raise InvalidValue(f"{key}: {shown(value)} cannot be taken", allowed=_allowed(argument))
    return check_name(value) if argument.word == "NAME" else value


def _fits(argument: Argument, value: Any) -> bool:
    match argument.kind:
        case Kind.FLAG | Kind.SWITCH:
            return isinstance(value, bool)
        case Kind.INTEGER | Kind.NUMBER:
            return _is_number(value, whole=argument.kind is Kind.INTEGER) and _within(argument, value)
        case Kind.TEXT | Kind.PATH:
            return isinstance(value, str) and _is_text(value) and (not argument.choices or value in argument.choices)


def _is_number(value: Any, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return abs(value) <= _LARGEST  # which no NaN is


def _within(argument: Argument, value: float) -> bool:
    above = argument.least is None or value >= argument.least
    return above and (argument.most is None or value <= argument.most)


def _is_text(value: str) -> bool:
    """Return whether it is whole: JSON can spell half of a character, which nothing can be done with."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _allowed(argument: Argument) -> str:
    """Return what may be given, in a few words."""
    if argument.choices:
        return f"one of {', '.join(argument.choices)}"
    match argument.kind:
        case Kind.FLAG | Kind.SWITCH:
            return "true or false"
        case Kind.INTEGER | Kind.NUMBER:
            what = "a whole number" if argument.kind is Kind.INTEGER else "a number"
            least, most = (None if bound is None else f"{bound:g}" for bound in (argument.least, argument.most))
            return " ".join([what, *([f"from {least}"] if least else []), *([f"to {most}"] if most else [])])
        case Kind.TEXT | Kind.PATH:
            return "a text"


def _listed(known: Sequence[str]) -> str:
    return f"only {', '.join(known)}" if known else "nothing"


def shown(value: Any) -> str:
    """Return a value as an error shows it."""
    text = repr(value)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return text.encode("utf-8", "backslashreplace").decode()
