"""What `stop` can still use of a broken configuration: where the state is, and how tmux is addressed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.config import cache
from core.config.document import read_document
from core.config.loading import LONGEST
from core.config.resolving import absolute
from core.config.schema import TmuxBlock
from core.config.settings import Settings, tmux_from
from core.plainfiles import open_plain, read_bounded

_TRIES = 20  #: an earlier break may come to light each time the lines after a break are left out


def salvage(path: Path, defaults: Settings, env: Mapping[str, str]) -> Settings:
    """Return the defaults with `state.root` and `routing.tmux` of the file at `path`, as far as they can be had.

    What the file says now goes before what it said when it was last valid. Never raises for what the file holds.
    """
    last = cache.last_valid(path, env) or {}
    now = _readable(path)
    root = _root(_at(now, "state", "root"), path.parent, env) or _root(_at(last, "state", "root"), path.parent, env)
    tmux = _valid_keys(_at(last, "routing", "tmux")) | _valid_keys(_at(now, "routing", "tmux"))
    return defaults._replace(
        state_root=Path(root) if root else defaults.state_root,
        routing=defaults.routing._replace(tmux=tmux_from(tmux)),
        source=path,
        whole=False,
    )


def _readable(path: Path) -> dict[str, Any]:
    """Return the values of the file; where its YAML is broken, of the lines before that."""
    try:
        with open_plain(path) as stream:
            text = read_bounded(stream, LONGEST).decode("utf-8", errors="replace")
    except OSError:
        return {}
    document = read_document(text, str(path))
    lines = text.splitlines(keepends=True)
    for _ in range(_TRIES):
        if document.broken_at is None:
            return document.data
        lines = lines[: min(document.broken_at, len(lines)) - 1]
        document = read_document("".join(lines), str(path))
    return {}


def _at(values: Any, *keys: str) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _root(given: Any, folder: Path, env: Mapping[str, str]) -> str | None:
    return absolute(given, folder, env) if isinstance(given, str) and given else None


def _valid_keys(block: Any) -> dict[str, Any]:
    """Return the keys of a tmux block whose values are allowed, each judged by itself."""
    kept = {}
    for key, value in block.items() if isinstance(block, dict) else ():
        try:
            TmuxBlock.model_validate({key: value})
        except ValidationError:
            continue
        kept[key] = value
    return kept
