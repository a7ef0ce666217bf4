"""What can still be used of a broken configuration: all but the declared sessions, each value judged by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.config import cache
from core.config.document import Document, read_document
from core.config.problems import KeyPath
from core.config.resolving import absolute, resolve
from core.config.schema import ConfigFile
from core.config.settings import BUILT_IN_HARNESSES, Settings, settings_from
from core.errors import InvalidValue
from core.names import check_name

_TRIES = 20  #: more may come to light each time that something is left out
_PATHS: tuple[KeyPath, ...] = (("state", "root"), ("routing", "spawnWorkdir"))
_DECLARED = "standingSessions"


def salvage(path: Path, env: Mapping[str, str]) -> Settings:
    """Return what the file at `path` says, without the declared sessions and without each value that is not allowed.

    What it says now goes before what it said when it was last valid, and that before the defaults. Nobody knows then
    what is declared. Never raises for what the file holds.
    """
    last = _sound(cache.last_valid(path, env) or {}, path, env)
    now = _sound(_readable(path), path, env)
    config = _valid(_over(last, now))
    return settings_from(resolve(config, Document(str(path)), path.parent, env), path)._replace(whole=False)


def _readable(path: Path) -> dict[str, Any]:
    """Return the values of the file; where its YAML is broken, of the lines before that."""
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return {}
    document = read_document(text, str(path))
    lines = text.splitlines(keepends=True)
    for _ in range(_TRIES):
        if document.broken_at is None:
            return _without_refused(document)
        lines = lines[: min(document.broken_at, len(lines)) - 1]
        document = read_document("".join(lines), str(path))
    return {}


def _without_refused(document: Document) -> dict[str, Any]:
    """Return the values without those that stand as None because the document has refused them."""
    for path in document.refused:
        if path and _at(document.data, path) is None:
            _drop(document.data, path)
    return document.data


def _sound(data: dict[str, Any], path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the data without what is not allowed, or is more than one value can tell; it is changed."""
    data.pop(_DECLARED, None)
    for key in _PATHS:
        given = _at(data, key)
        if isinstance(given, str) and absolute(given, path.parent, env) is None:
            _drop(data, key)
    harnesses = data.get("harnesses")
    if isinstance(harnesses, dict):
        data["harnesses"] = {key: block for key, block in harnesses.items() if _may_name_a_harness(key)}
    _valid(data)
    return data


def _may_name_a_harness(key: str) -> bool:
    try:
        check_name(key)
    except InvalidValue:
        return False
    return key not in BUILT_IN_HARNESSES


def _valid(data: dict[str, Any]) -> ConfigFile:
    """Return the file without each value that is not allowed; they are taken out of `data`."""
    for _ in range(_TRIES):
        try:
            return ConfigFile.of(data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                missing = detail["type"] == "missing"
                _drop(data, tuple(detail["loc"][:-1] if missing else detail["loc"]))
    return ConfigFile()


def _drop(data: dict[Any, Any], path: KeyPath) -> None:
    """Take the value at the path out, or the nearest one above it: of a list the whole, which means something."""
    around = data
    for key in path[:-1]:
        inner = around.get(key)
        if not isinstance(inner, dict):
            around.pop(key, None)
            return
        around = inner
    around.pop(path[-1], None)


def _at(values: Any, path: KeyPath) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _over(last: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return both together, block by block; of one key what is said now."""
    together = {**last, **now}
    for key in last.keys() & now.keys():
        if isinstance(last[key], dict) and isinstance(now[key], dict):
            together[key] = _over(last[key], now[key])
    return together
