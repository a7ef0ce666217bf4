"""Turn the text of a configuration file into its resolved form, or report all that is wrong with it.

The resolved form is JSON-able: every key is present under the file's own name, and paths are absolute. From a broken
configuration, `salvage` returns what `stop` still needs: where the state is, and how tmux is addressed.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.base.files import open_plain, read_bounded
from core.base.paths import default_state_root, home
from core.config import cache
from core.config.channels import thread_models
from core.config.chats import ChannelBroken
from core.config.checks import SESSIONS, add_schema_problems, check_document, check_loops
from core.config.document import ConfigError, Document, KeyPath, in_order, read_document, shortened
from core.config.loading import LONGEST
from core.config.schema import ConfigFile, TmuxBlock, with_chats
from core.config.settings import Settings, tmux_from


def resolve(config: ConfigFile, document: Document, folder: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the resolved form. `~` is the home folder; other relative paths start at `folder`, the file's.

    A path that names the home of a user who does not exist becomes a problem of the document.
    """
    resolved = config.model_dump(by_alias=True, mode="json")
    paths = _Paths(document, folder, env)
    state, routing = resolved["state"], resolved["routing"]
    state["root"] = (
        str(default_state_root(env)) if state["root"] is None else paths.at(state["root"], ("state", "root"))
    )
    routing["spawnWorkdir"] = paths.at(routing["spawnWorkdir"], ("routing", "spawnWorkdir"))
    for index, session in enumerate(resolved["standingSessions"]["sessions"]):
        for key in ("cwd", "promptFile"):
            if session[key]:
                session[key] = paths.at(session[key], (*SESSIONS, index, key))
    return resolved


def absolute(text: str, folder: Path, env: Mapping[str, str]) -> str | None:
    """Return the absolute path, or None where it begins with the home of a user who does not exist."""
    if text == "~" or text.startswith("~/"):
        return str(home(env) / text[2:])
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        return None
    return str(folder / expanded)


class _Paths:
    """Makes paths absolute, and notes those that cannot be."""

    def __init__(self, document: Document, folder: Path, env: Mapping[str, str]) -> None:
        self._document, self._folder, self._env = document, folder, env

    def at(self, text: str, path: KeyPath) -> str:
        found = absolute(text, self._folder, self._env)
        if found is None:
            allowed = "a path; ~ and ~user for users of this machine"
            self._document.add(path, f'"{shortened(text)}"', allowed, "no such user: write the path out")
            return text
        return found


def validate(text: str, path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the resolved form of the file's text (see `settings`). Raises ConfigError with every problem."""
    document = read_document(text, str(path))
    config = None
    if document.broken_at is None:
        try:
            model = with_chats(thread_models())
            config = model.of(document.data)
        except ValidationError as error:
            add_schema_problems(document, error, model)
        except ChannelBroken as error:
            document.add(("channels",), error.message, "chats whose packages can be loaded", error.remedy)
        check_document(document)
        check_loops(document)
    resolved = resolve(config, document, path.parent, env) if config is not None else {}
    if document.problems:
        raise ConfigError(in_order(document.problems))
    return resolved


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
