"""Checks that need more than one key: duplicate names, flags that we set ourselves, unknown harnesses, declared loops.

Each check takes plain values of any type; a wrong type is reported by the schema. Errors of pydantic become problems
that name the line, the key, what was found and what is allowed.
"""

import difflib
import typing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from core.base.errors import InvalidValue
from core.base.names import check_name
from core.base.plugins import entry_points
from core.base.text import interval_text, parse_duration, parse_interval
from core.config.document import Document, KeyPath, described, key_text, shortened
from core.config.settings import LoopSettings, Routing
from core.harness.catalogue import BUILT_IN, GROUP, refuse_arguments
from core.model.loop import Bounds, LoopRequest, check_cron, check_instruction, check_together, zone_of

SESSIONS: KeyPath = ("standingSessions", "sessions")


def check_document(document: Document) -> None:
    """Add a problem to the document for everything that its schema alone cannot see."""
    _harness_keys(document)
    _harness_names(document)
    _owned_flags(document)
    _resume_ids(document)
    _session_names(document)
    _prompts(document)


def value_at(document: Document, *path: str) -> Any:
    """Return the plain value at that path, None where there is none."""
    value: Any = document.data
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def declared_sessions(document: Document) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield each declared session that is a mapping, with its path."""
    declared = value_at(document, "standingSessions", "sessions")
    for index, session in enumerate(declared if isinstance(declared, list) else []):
        if isinstance(session, dict):
            yield (*SESSIONS, index), session


def _ready_made() -> tuple[str, ...]:
    """Return the harnesses that need no declaration: our own, and those that packages bring."""
    return tuple(dict.fromkeys((*BUILT_IN, *entry_points(GROUP))))


def _harness_keys(document: Document) -> None:
    for key in _mapping(document.data.get("harnesses")):
        path = ("harnesses", key)
        if key in _ready_made():
            document.add(path, f'the key "{key}"', "a key that the-loop does not use itself", "choose another name")
        try:
            check_name(key)
        except InvalidValue as error:
            document.add(path, f'the key "{shortened(key)}"', error.remedy, "choose another name")


def _harness_names(document: Document) -> None:
    known = (*_ready_made(), *_mapping(document.data.get("harnesses")))
    chosen: list[tuple[KeyPath, Any]] = [
        (("routing", "defaultHarness"), value_at(document, "routing", "defaultHarness")),
        *((("routing", "harnessArgs", key), key) for key in _mapping(value_at(document, "routing", "harnessArgs"))),
        *(((*path, "harness"), session.get("harness")) for path, session in declared_sessions(document)),
    ]
    for path, name in chosen:
        if not isinstance(name, str) or name in known or (not name and path[0] == SESSIONS[0]):
            continue
        found = f'the harness "{shortened(name)}"'
        document.add(path, found, _choice(known), f"declare it under harnesses (harnesses.{shortened(name)}.start)")


def _owned_flags(document: Document) -> None:
    declared = _mapping(document.data.get("harnesses"))
    default = value_at(document, "routing", "defaultHarness") or Routing().default_harness
    given: list[tuple[KeyPath, Any, Any]] = [
        (("routing", "harnessArgs", key), key, args)
        for key, args in _mapping(value_at(document, "routing", "harnessArgs")).items()
    ]
    for path, session in declared_sessions(document):
        given.append(((*path, "harnessArgs"), session.get("harness") or default, session.get("harnessArgs")))
    for path, harness, args in given:
        if harness not in declared and isinstance(args, list):
            _refuse_arguments(document, path, harness, args)


def _refuse_arguments(document: Document, path: KeyPath, harness: Any, args: list[Any]) -> None:
    if harness == "bundled" and args:
        document.add(path, "arguments for the bundled agent", "none: it takes no arguments", "remove them")
    texts = [argument if isinstance(argument, str) else "" for argument in args]
    for index in range(len(texts)):
        try:
            refuse_arguments(harness, texts[: index + 1])
        except InvalidValue as error:
            found, allowed = shortened(error.message), "flags that the-loop does not give itself"
            document.add((*path, index), found, allowed, shortened(error.remedy))
            return


def _resume_ids(document: Document) -> None:
    for key, block in _mapping(document.data.get("harnesses")).items():
        resume = _mapping(block).get("resume")
        if isinstance(resume, list) and resume and not any("{id}" in part for part in resume if isinstance(part, str)):
            document.add(
                ("harnesses", key, "resume"),
                "a command without {id}",
                "a command with {id} in one of its arguments, or null",
                "say where the conversation's id goes; without it another conversation would be taken up",
            )


def _session_names(document: Document) -> None:
    places: dict[str, list[KeyPath]] = {}
    for path, session in declared_sessions(document):
        if isinstance(name := session.get("name"), str):
            places.setdefault(name, []).append((*path, "name"))
    for name, paths in places.items():
        if len(paths) < 2:
            continue
        where = " and ".join(f"{key_text(path[:-1])} (line {document.line_of(path)})" for path in paths)
        for path in paths:
            document.add(path, f'"{shortened(name)}", the name of {where}', "each name once",
                         "rename all but one; until then no declared session is used")  # fmt: skip


def _prompts(document: Document) -> None:
    for path, session in declared_sessions(document):
        if session.get("prompt") is not None and session.get("promptFile") is not None:
            document.add(
                (*path, "promptFile"),
                f'prompt and promptFile in "{shortened(str(session.get("name")))}"',
                "one of the two",
                "move the text into the file, or remove promptFile",
            )


def _choice(names: tuple[str, ...]) -> str:
    return ", ".join(names)


_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)  #: whether an expression ever comes true depends on no day


def check_loops(document: Document) -> None:
    """Add a problem to the document for everything about loops that its schema alone cannot see."""
    bounds = _bounds(document)
    most = value_at(document, "loops", "maxOpenPerSession")
    most = most if isinstance(most, int) else LoopSettings().max_open_per_session
    for path, session in declared_sessions(document):
        loops = list(_loops(path, session))
        if len(loops) > most:
            found, allowed = f"{len(loops)} loops", f"at most {most} (loops.maxOpenPerSession)"
            document.add((*path, "loops"), found, allowed, "remove some, or raise loops.maxOpenPerSession")
        _names(document, loops)
        for at, loop in loops:
            _one(document, at, loop, bounds)


def _bounds(document: Document) -> Bounds:
    defaults = LoopSettings()
    least = _span(value_at(document, "loops", "minInterval"), defaults.min_interval)
    most = _span(value_at(document, "loops", "maxInterval"), defaults.max_interval)
    if least > most:
        found = f"loops between {interval_text(least)} and {interval_text(most)} apart"
        document.add(("loops",), found, "a minInterval not above maxInterval", "raise maxInterval or lower minInterval")
    return Bounds(least, most)


def _span(value: Any, default: timedelta) -> timedelta:
    try:
        return parse_duration(value) if isinstance(value, str) else default
    except ValueError:
        return default


def _loops(path: KeyPath, session: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    declared = session.get("loops")
    for index, loop in enumerate(declared if isinstance(declared, list) else []):
        if isinstance(loop, dict):
            yield (*path, "loops", index), loop


def _names(document: Document, loops: list[tuple[KeyPath, dict[str, Any]]]) -> None:
    seen: dict[str, KeyPath] = {}
    for path, loop in loops:
        name = loop.get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            found = f'"{shortened(name)}", the name of the loop on line {document.line_of(seen[name])}, too'
            document.add((*path, "name"), found, "each name once within a session", "rename one of the two")
        seen.setdefault(name, path)


def _one(document: Document, path: KeyPath, loop: dict[str, Any], bounds: Bounds) -> None:
    def text(key: str) -> str | None:
        return value if isinstance(value := loop.get(key), str) else None

    def given(key: str) -> str | None:
        return None if (value := loop.get(key)) is None else str(value)

    def check(key: str, judge: Callable[[str], object]) -> None:
        if (value := text(key)) is not None:
            _judged(document, (*path, key), described(value), lambda: judge(value))

    check("instruction", check_instruction)
    check("interval", lambda value: parse_interval(value, bounds.least, bounds.most))
    check("cron", lambda value: check_cron(value, "", bounds.least, _SOME_DAY))
    check("timeZone", zone_of)
    keep_alive = loop.get("keepAlive") is True
    asked = LoopRequest("", given("interval"), given("cron"), given("timeZone"), keep_alive)
    _judged(document, path, "keys that do not go together", lambda: check_together(asked))


def _judged(document: Document, path: KeyPath, found: str, judge: Callable[[], object]) -> None:
    """Add a problem with what was `found` where `judge` refuses it, and with the reason that this gives."""
    try:
        judge()
    except InvalidValue as error:
        told = (error.allowed, "change the value") if error.allowed else ("another value", error.remedy)
        document.add(path, f"{found}: {error.message}", *told)


_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_SPANS = frozenset({"interval", "minInterval", "maxInterval", "stopAfter"})  #: keys whose value is a span of time


def add_schema_problems(document: Document, error: ValidationError, model: type[BaseModel], base: KeyPath = ()) -> None:
    """Add a problem for each of the errors that `model` found at `base` in the document.

    What the document itself has refused is not reported a second time.
    """
    for detail in error.errors(include_url=False):
        path: KeyPath = (*base, *detail["loc"])
        if any(path[: len(refused)] == refused for refused in document.refused):
            continue
        if detail["type"] == "extra_forbidden":
            _unknown_key(document, path, model, base)
        elif detail["type"] == "missing":
            allowed = f"`{path[-1]}` must be given"
            document.add(path[:-1], f"no key `{path[-1]}`", allowed, f"add `{path[-1]}:` here")
        else:
            document.add(path, described(detail["input"]), *_allowed_and_remedy(path, detail))


def _allowed_and_remedy(path: KeyPath, detail: ErrorDetails) -> tuple[str, str]:
    given = detail["input"]
    if path[-1] in _SPANS and isinstance(given, int | float) and not isinstance(given, bool):
        return "a number and its unit", "give it a unit, such as 5m"
    return _allowed(detail), "change the value or remove the key"


def _allowed(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _KINDS:
        return _KINDS[kind]
    match kind:
        case "literal_error":
            return str(context["expected"]).replace("'", "")
        case "greater_than":
            return f"a number above {context['gt']:g}"
        case "greater_than_equal":
            return f"a number not below {context['ge']:g}"
        case "less_than_equal":
            return f"a number not above {context['le']:g}"
        case "string_too_short" | "too_short":
            return "one that is not empty"
        case "string_pattern_mismatch":
            return f"text that matches {context['pattern']}"
        case "value_error":
            return str(context["error"])
        case _:
            return detail["msg"]


def _unknown_key(document: Document, path: KeyPath, model: type[BaseModel], base: KeyPath) -> None:
    key = str(path[-1])
    siblings = _keys_at(model, path[len(base) : -1])
    found = f"the unknown key `{shortened(key)}`"
    document.add(path, found, "one of " + ", ".join(sorted(siblings)), _hint(key, siblings, model, base))


def _hint(key: str, siblings: list[str], model: type[BaseModel], base: KeyPath) -> str:
    plain = {_plain(sibling): sibling for sibling in siblings}
    if near := difflib.get_close_matches(_plain(key), plain, n=1):
        return f"did you mean `{plain[near[0]]}`?"
    for path in _all_keys(model):
        if path[-1] == key:
            return f"it belongs to `{'.'.join(str(part) for part in (*base, *path[:-1]))}`: move it there"
    return "remove it"


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the keys that are allowed in the block at `path`."""
    block: type[BaseModel] = model
    annotation: Any = model
    for part in path:
        inner = _model_in(annotation)
        if inner is not None:
            block = inner
            named = {field.alias or name: field.annotation for name, field in block.model_fields.items()}
            annotation = named.get(str(part))
    block = _model_in(annotation) or block
    return [field.alias or name for name, field in block.model_fields.items()]


def _all_keys(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield (key,)
        inner = _model_in(field.annotation)
        if inner is not None and typing.get_origin(field.annotation) is None:
            for rest in _all_keys(inner):
                yield (key, *rest)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation is, or holds: `X`, `X | None`, `list[X]`, `dict[str, X]`."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in reversed(typing.get_args(annotation)):
        if (found := _model_in(argument)) is not None:
            return found
    return None
