"""Change keys of a block of the configuration file, and leave all else in it, comments too, as somebody wrote it.

The text is changed where YAML's own parser says that a key or its value stands, and read again: what is not exactly the
wanted change is refused, and the file stays as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from core.base.errors import Refused
from core.base.files import write_private


class CannotEdit(Refused):
    """The file is written in a form that cannot be changed for somebody."""

    code = "cannot_edit"

    def __init__(self, path: Path, keys: Sequence[str], changes: Mapping[str, Any]) -> None:
        wanted: Any = dict(changes)
        for key in reversed(keys):
            wanted = {key: wanted}
        shown = yaml.safe_dump(wanted, default_flow_style=None, sort_keys=False, allow_unicode=True).rstrip()
        super().__init__(f"{path} is not written in a form that can be changed here", f"write into it:\n{shown}")


def change_file(path: Path, keys: Sequence[str], changes: Mapping[str, Any]) -> None:
    """Set keys of the block at `keys` in the file, which keeps its mode. Raises CannotEdit, StoreBroken, OSError."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        changed = changed_text(text, keys, changes)
    except (ValueError, yaml.YAMLError) as error:
        raise CannotEdit(path, keys, changes) from error
    if changed != text:
        write_private(path.resolve(), changed.encode(), mode=path.stat().st_mode & 0o777)


def changed_text(text: str, keys: Sequence[str], changes: Mapping[str, Any]) -> str:
    """Return the text with these keys of the block set. Raises ValueError, YAMLError where that cannot be done."""
    wanted = _wanted(yaml.safe_load(text), keys, changes)
    for key, value in changes.items():
        text = _with(text, [*keys, key], value)
    if yaml.safe_load(text) != wanted:
        raise ValueError("the text does not say what it should after the change")
    return text


def _wanted(document: Any, keys: Sequence[str], changes: Mapping[str, Any]) -> Any:
    whole = _unshared(document) or {}
    block = whole
    for key in keys:
        if block.get(key) is None:
            block[key] = {}
        block = block[key]
    block.update(changes)
    return whole


def _unshared(value: Any) -> Any:
    """Return a copy in which no two keys share a value, as those of an anchor do."""
    if isinstance(value, dict):
        return {key: _unshared(held) for key, held in value.items()}
    return [_unshared(held) for held in value] if isinstance(value, list) else value


def _with(text: str, keys: Sequence[str], value: Any) -> str:
    """Return the text with the value at these keys: in the place of what is there, or as a new line of its block."""
    root = yaml.compose(text)
    if root is None or (isinstance(root, yaml.ScalarNode) and root.value == ""):
        return f"{text.rstrip()}\n{_block(keys, value, 0)}".lstrip("\n")
    node: Any = root
    for depth, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            raise ValueError(f"{'.'.join(keys[:depth])} is no mapping")
        pair = next(((name, held) for name, held in node.value if name.value == key), None)
        if pair is None:
            return _added(text, node, keys[depth:], value)
        name, held = pair
        if depth == len(keys) - 1 or not isinstance(held, yaml.MappingNode) or not held.value:
            rest = keys[depth + 1 :]
            return _replaced(text, name, held, _nested(rest, value))
        node = held
    raise ValueError("no key is named")


def _added(text: str, node: yaml.MappingNode, keys: Sequence[str], value: Any) -> str:
    if node.flow_style or not node.value:
        end = node.end_mark.index - 1  # the closing brace
        lead = ", " if node.value else ""
        return f"{text[:end].rstrip()}{lead}{_flow(keys[0])}: {_flow(_nested(keys[1:], value))}{text[end:]}"
    column = node.start_mark.column
    line = node.value[0][0].start_mark
    begin = line.index - line.column
    return f"{text[:begin]}{_block(keys, value, column)}{text[begin:]}"


def _replaced(text: str, name: yaml.Node, held: yaml.Node, value: Any) -> str:
    """Put a value in the place of another; of one that goes over lines, the line break behind it stays."""
    begin, end = name.end_mark.index, held.end_mark.index
    colon = text.index(":", begin) + 1
    old = text[colon:end]
    tail = old[len(old.rstrip()) :] if not isinstance(held, yaml.ScalarNode) or held.style in ("|", ">") else ""
    kept = tail if "\n" in tail else ""
    return f"{text[:colon]} {_flow(value)}{kept}{text[end:]}"


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _block(keys: Sequence[str], value: Any, column: int) -> str:
    lines = [f"{' ' * (column + 2 * depth)}{_flow(key)}:" for depth, key in enumerate(keys)]
    lines[-1] += f" {_flow(value)}"
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """Return the value in one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")
