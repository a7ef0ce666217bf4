"""What installed packages add to the-loop: entry points, found without `importlib.metadata`.

That module takes longer to import than a command that only lists sessions takes as a whole. Here the folders of
`sys.path` are listed once, and of each installed package `entry_points.txt` is read where it has one (about a
millisecond for a hundred packages). Packages inside of archives are not looked for.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

_PREFIX = "the_loop."
_METADATA = (".dist-info", ".egg-info")


def entry_points(group: str) -> Mapping[str, str]:
    """Return what installed packages name in the group: by name, sorted, `module:attribute`. The first found counts."""
    return _groups(tuple(sys.path)).get(group, {})


def load(target: str) -> Any:
    """Import and return what `module:attribute` names. Raises ImportError, AttributeError, and what importing does."""
    from importlib import import_module

    module, _, attributes = target.partition(":")
    found: Any = import_module(module)
    for name in filter(None, attributes.split(".")):
        found = getattr(found, name)
    return found


@cache
def _groups(folders: tuple[str, ...]) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        for text in _texts(folder or os.curdir):
            for group, name, target in _entries(text):
                found.setdefault(group, {}).setdefault(name, target)
    return {group: dict(sorted(named.items())) for group, named in found.items()}


def _texts(folder: str) -> Iterator[str]:
    """Yield the texts of the folder's packages that name something in a group of ours; what cannot be read is none."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_METADATA))
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        if f"[{_PREFIX}" in text:
            yield text


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield group, name and target of each line `name = module:attribute [extras]` in a group of ours."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group.startswith(_PREFIX) and "=" in line and line[0] not in "#;":
            name, _, target = line.partition("=")
            yield group, name.strip(), "".join(target.partition("[")[0].split())
