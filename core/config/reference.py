"""Write docs/configuration.md from the schema: `python -m core.config.reference` prints it."""

import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from core.config.channels import thread_models
from core.config.schema import with_chats

_HEAD = """\
# Configuration

One YAML file. It is the first of these that is given: `--config FILE`, `$THE_LOOP_CONFIG`,
`$XDG_CONFIG_HOME/the-loop/cli-config.yaml` (`~/.config/the-loop/cli-config.yaml`). A file in the current folder is
never read. Without a file every key has its default.

- `the-loop config init` writes a commented file, `path` says which file is read and why, `check` lists everything that
  is wrong with it (file, line, key, what was found, what is allowed), `show` prints every key in effect, `schema`
  prints the JSON Schema for editors.
- Unknown keys are refused. Values are not converted: `"5"` is text, `no` is a boolean.
- A relative path starts at the folder of the file; `~` is your home folder.
- The file names programs, arguments and folders that run with your rights. Only you should be able to write it.
- It never holds a secret: keys that end in `Env` name the variable that does.
- When a change counts: for a command at once; for a session at its next start (`drift` in its row names what has
  changed); for the `loops` of a session within half a minute; **for the service at its next start**. Until then
  `the-loop status` and `the-loop start` say so in the service's row, with the command that restarts the service alone.
  `the-loop restart` applies a change everywhere: it ends the sessions and the service, and resumes the conversations.

This page is generated from the schema (`python -m core.config.reference`).
"""


def reference_text(models: Mapping[str, type[BaseModel]]) -> str:
    """Return the page: a section for each block, a row for each key. `models` are the channels' own, by name."""
    parts = [_HEAD, *(f"{section}\n" for section in _sections(with_chats(thread_models()), ""))]
    parts += [section + "\n" for name, model in models.items() for section in _sections(model, f"channels.{name}")]
    return "\n".join(parts)


def _sections(model: type[BaseModel], path: str) -> Iterator[str]:
    rows, inner = [], []
    for name, field in model.model_fields.items():
        key = field.alias or name
        below = f"{path}.{key}" if path else key
        found, suffix = _block_of(field.annotation)
        if found is not None:
            inner.append((found, below + suffix))
        if found is None or suffix:
            rows.append(_row(key, field))
    if path or rows:
        title = f"## `{path}`" if path else "## The whole file"
        table = ["", "| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows] if rows else []
        yield "\n".join([title, "", _sentence(model), *table])
    for block, below in inner:
        yield from _sections(block, below)


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _row(key: str, field: FieldInfo) -> str:
    cells = (f"`{key}`", _kind(field), _default(field), field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return f"`{json.dumps(field.get_default(call_default_factory=True, validated_data={}))}`"
    return "must be given" if field.default is PydanticUndefined else f"`{json.dumps(field.default)}`"


def _kind(field: FieldInfo) -> str:
    return _named(field.annotation) + _bounds(field.metadata)


def _named(annotation: Any) -> str:
    """Return the words for a type: `text`, `list of text`, `one of a, b`, `number or null`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _named(arguments[0]) + _bounds(list(arguments[1:]))
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if part is type(None) else _named(part) for part in arguments)
    if origin in (list, tuple):
        return f"list of {_named(arguments[0])}"
    if origin is dict:
        return f"mapping of {_named(arguments[1])}"
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return plain.get(annotation, "block")


def _bounds(metadata: list[Any]) -> str:
    """Return the limits of a number (`, 1 to 100`); those of texts and lists are told by the meaning."""
    low = high = ""
    for limit in metadata:
        for bound in limit.metadata if isinstance(limit, FieldInfo) else [limit]:
            match bound:
                case annotated_types.Gt(gt):
                    low = f"above {gt}"
                case annotated_types.Ge(ge):
                    low = f"from {ge}"
                case annotated_types.Le(le):
                    high = f"up to {le}"
    return "".join(f", {word}" for word in (low, high) if word)


def _block_of(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the model that a field holds, and how its path goes on: "" | "[]" | ".<name>"."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    suffix = {list: "[]", dict: ".<name>"}.get(origin)
    if suffix and isinstance(arguments[-1], type) and issubclass(arguments[-1], BaseModel):
        return arguments[-1], suffix
    return None, ""


if __name__ == "__main__":
    from core.config.channels import installed_models

    print(reference_text(installed_models()), end="")
