"""The MCP servers of a project about which Claude Code asks at its start, in a dialog that nobody may answer unseen.

As seen of 2.1.197 and 2.1.332: it takes the servers of `.mcp.json` in the session's folder and in every folder above,
and asks about each that no settings name. `enabledMcpjsonServers` and `disabledMcpjsonServers` are joined over all
settings; of `enableAllProjectMcpServers` the strongest settings' word counts. 2.1.332 takes a name as it is written;
2.1.280 and before compared names with `_` for whatever a tool's name cannot hold. Where permission checks are switched
off it asks nothing; `--strict-mcp-config` changes nothing. What it cannot read, or understand, it passes over.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from core.domain.tools import SERVER
from core.errors import InvalidValue
from core.harness.base import list_of, object_of
from core.harness.claude.arguments import asks_for_bypass, take_settings
from core.harness.claude.files import MANAGED, ClaudeFiles, read_settings

_FILE = ".mcp.json"
_ALL = "enableAllProjectMcpServers"
_DECIDED = ("enabledMcpjsonServers", "disabledMcpjsonServers")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NUMBER = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_LOOSE = (2, 1, 280)  #: the last version that was seen to compare names loosely


def undecided(
    files: ClaudeFiles, cwd: Path, args: Sequence[str], version: Callable[[], str]
) -> dict[Path, tuple[str, ...]]:
    """Return the servers about which it would ask, by the file that names them; empty where there are none.

    `version` tells the installed program's, and is asked only where it matters; where it does not know ("") names count
    as the newest takes them.
    """
    offered = {path: names for path in _project_files(cwd) if (names := _servers(path))}
    if not offered:
        return {}
    rest, sources = _settings(files, cwd, args)
    if asks_for_bypass(rest, *sources) or _all_enabled(sources):
        return {}
    decided = {name for source in sources for key in _DECIDED for name in _texts(source, key)}
    decided.add(SERVER)  # of that name ours alone runs, and our settings say so
    left = _without(offered, decided)
    loosely = {_loose(name) for name in decided}
    if any(_loose(name) in loosely for names in left.values() for name in names) and _compares_loosely(version()):
        return _without(offered, {name for names in offered.values() for name in names if _loose(name) in loosely})
    return left


def _without(offered: Mapping[Path, tuple[str, ...]], decided: Set[str]) -> dict[Path, tuple[str, ...]]:
    left = {path: tuple(name for name in names if name not in decided) for path, names in offered.items()}
    return {path: names for path, names in left.items() if names}


def _loose(name: str) -> str:
    return _NO_NAME.sub("_", name)


def _compares_loosely(version: str) -> bool:
    found = _NUMBER.match(version)
    return found is not None and tuple(map(int, found.groups())) <= _LOOSE


def _project_files(cwd: Path) -> tuple[Path, ...]:
    folder = Path(os.path.realpath(cwd))
    return tuple(above / _FILE for above in (folder, *folder.parents))


def _servers(path: Path) -> tuple[str, ...]:
    """Return the file's servers; one that says neither what to run nor where it is makes the whole file void."""
    servers = object_of(read_settings(path), "mcpServers")
    sound = all(isinstance(server, dict) and ("command" in server or "url" in server) for server in servers.values())
    return tuple(sorted(servers)) if sound else ()


def _settings(files: ClaudeFiles, cwd: Path, args: Sequence[str]) -> tuple[tuple[str, ...], list[Mapping[str, Any]]]:
    """Return the arguments without settings, and the settings that count there, the weakest first."""
    try:
        rest, given = take_settings(args, cwd)
    except InvalidValue:  # a start refuses them, and says why
        rest, given = tuple(args), {}
    projects = object_of(read_settings(files.configuration), "projects")
    paths = (files.settings, cwd / ".claude/settings.json", cwd / ".claude/settings.local.json")
    earlier = object_of(projects, os.path.realpath(cwd))
    return rest, [earlier, *map(read_settings, paths), given, read_settings(MANAGED)]


def _all_enabled(sources: Sequence[Mapping[str, Any]]) -> bool:
    said = [source[_ALL] for source in sources if isinstance(source.get(_ALL), bool)]
    return bool(said) and said[-1]


def _texts(source: Mapping[str, Any], key: str) -> Iterator[str]:
    return (name for name in list_of(source, key) if isinstance(name, str))
