"""A valid file -> its resolved form: every key there, paths absolute. JSON-able, with the file's own key names."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config.checks import SESSIONS
from core.config.document import Document
from core.config.location import default_state_root, home
from core.config.problems import KeyPath, shortened
from core.config.schema import ConfigFile


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
