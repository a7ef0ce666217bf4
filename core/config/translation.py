"""pydantic's errors -> problems that name line, key path, what was found and what is allowed."""

import difflib
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from core.config.document import Document
from core.config.problems import KeyPath, described, shortened

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
