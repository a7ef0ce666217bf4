"""The MCP servers of a project about which Claude Code asks at its start, in a dialog that nobody may answer unseen.

As seen of 2.1.197: it takes the servers of `.mcp.json` in the session's folder and in every folder above, and asks
about each that no settings name. `enabledMcpjsonServers` and `disabledMcpjsonServers` are joined over all settings, and
names compared with `_` for whatever a tool's name cannot hold; of `enableAllProjectMcpServers` the strongest settings'
word counts. Where permission checks are switched off it asks nothing; `--strict-mcp-config` changes nothing. What it
cannot read, or understand, it passes over.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.domain.tools import SERVER
from core.errors import InvalidValue
from core.harness.base import list_of, object_of
from core.harness.claude.arguments import asks_for_bypass, take_settings
from core.harness.claude.files import ClaudeFiles
from core.plainfiles import read_plain

_FILE = ".mcp.json"
_ALL = "enableAllProjectMcpServers"
_DECIDED = ("enabledMcpjsonServers", "disabledMcpjsonServers")
_MANAGED = Path("/etc/claude-code/managed-settings.json")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def undecided(files: ClaudeFiles, cwd: Path, args: Sequence[str]) -> dict[Path, tuple[str, ...]]:
    """Return the servers about which it would ask, by the file that names them; empty where there are none."""
    offered = {path: names for path in _project_files(cwd) if (names := _servers(path))}
    if not offered:
        return {}
    rest, sources = _settings(files, cwd, args)
    if any(asks_for_bypass(rest, source) for source in sources) or _all_enabled(sources):
        return {}
    decided = {_NO_NAME.sub("_", name) for source in sources for key in _DECIDED for name in _texts(source, key)}
    decided.add(SERVER)  # of that name ours alone runs, and our settings say so
    left = {
        path: tuple(name for name in names if _NO_NAME.sub("_", name) not in decided) for path, names in offered.items()
    }
    return {path: names for path, names in left.items() if names}


def _project_files(cwd: Path) -> tuple[Path, ...]:
    folder = Path(os.path.realpath(cwd))
    return tuple(above / _FILE for above in (folder, *folder.parents))


def _servers(path: Path) -> tuple[str, ...]:
    """Return the file's servers; one that says neither what to run nor where it is makes the whole file void."""
    servers = object_of(_read(path), "mcpServers")
    sound = all(isinstance(server, dict) and ("command" in server or "url" in server) for server in servers.values())
    return tuple(sorted(servers)) if sound else ()


def _settings(files: ClaudeFiles, cwd: Path, args: Sequence[str]) -> tuple[tuple[str, ...], list[Mapping[str, Any]]]:
    """Return the arguments without settings, and the settings that count there, the weakest first."""
    try:
        rest, given = take_settings(args, cwd)
    except InvalidValue:  # a start refuses them, and says why
        rest, given = tuple(args), {}
    projects = object_of(_read(files.configuration), "projects")
    paths = (files.folder / "settings.json", cwd / ".claude/settings.json", cwd / ".claude/settings.local.json")
    earlier = object_of(projects, os.path.realpath(cwd))
    return rest, [earlier, *map(_read, paths), given, _read(_MANAGED)]


def _all_enabled(sources: Sequence[Mapping[str, Any]]) -> bool:
    said = [source[_ALL] for source in sources if isinstance(source.get(_ALL), bool)]
    return bool(said) and said[-1]


def _texts(source: Mapping[str, Any], key: str) -> Iterator[str]:
    return (name for name in list_of(source, key) if isinstance(name, str))


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_plain(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
