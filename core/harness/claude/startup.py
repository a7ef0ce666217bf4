"""Prepare Claude Code's start: answer its first dialogs, and find dialogs and settings that would make it deaf or mute.

- The first dialogs would swallow the first message. Their answers are in one JSON file that every running Claude Code
  rewrites. It guards its writes by a folder `<file>.lock` (stale after ten seconds without a touch), and so do we.
- It asks about the MCP servers of a project in a dialog, and nobody may answer that unseen. Observed with 2.1.197 and
  2.1.332: it reads `.mcp.json` in the session's folder and in every folder above, and asks about each server that no
  settings name. `enabledMcpjsonServers` and `disabledMcpjsonServers` are joined over all settings; for
  `enableAllProjectMcpServers` the strongest settings decide. 2.1.332 takes a name as it is written; 2.1.280 and older
  compared names with `_` for each character that a tool's name cannot hold. It does not ask while permission checks are
  switched off; `--strict-mcp-config` changes nothing. A file that it cannot read or understand is passed over.
- Settings can keep our hooks from running. Observed with 2.1.197 to 2.1.332: `disableAllHooks` counts in the user's
  settings, in the folder's, and in its local ones, and the last of them that sets it decides; `--settings` goes before
  these. Since a version between 2.1.197 and 2.1.280, the local settings of a git checkout are those of its top folder.
  Managed settings go before all; `allowManagedHooksOnly` there has the same effect.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.base.clock import Clock, Deadline
from core.base.errors import InvalidValue, TrustFailed
from core.base.files import read_plain
from core.harness.base import list_of, object_of, write_private
from core.harness.claude.arguments import asks_for_bypass, take_settings
from core.harness.claude.files import LONGEST, MANAGED, ClaudeFiles, is_unread, read_settings
from core.model.tools import SERVER

_LOCK_WAIT = 5.0  #: seconds until we give up on somebody's lock
_LOCK_STALE = 10.0  #: seconds after which nobody holds it any more
_LOCK_POLL = 0.02
_ATTEMPTS = 5
_KEY_TAIL = 20  #: a key is remembered by its last characters

_Content = dict[str, Any]


class ClaudeTrust:
    """Writes what is missing into Claude Code's configuration, and nothing else."""

    def __init__(self, configuration: Path, clock: Clock) -> None:
        self._path = configuration
        self._clock = clock

    def accept(self, cwd: Path, api_key: str | None) -> bool:
        """Mark onboarding as done, the folder as trusted and the key as approved; tell whether anything was missing.

        Raises TrustFailed; a file that does not parse is left as it is.
        """
        folder = os.path.realpath(cwd)
        try:
            if _completed(self._read(), folder, api_key) is None:
                return False
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock():
                return self._write_missing(folder, api_key)
        except OSError as error:
            raise TrustFailed(
                f"claude: {self._path} cannot be prepared: {error.strerror}",
                "make it readable and writable, or set routing.harnessTrust.enabled to false",
            ) from error

    def _write_missing(self, folder: str, api_key: str | None) -> bool:
        target = Path(os.path.realpath(self._path))  # a link stays a link
        for _ in range(_ATTEMPTS):
            before = _identity(target)
            completed = _completed(self._read(), folder, api_key)
            if completed is None:
                return False
            if _identity(target) == before:
                mode = 0o600 if before is None else stat.S_IMODE(before[0])
                write_private(target, json.dumps(completed, ensure_ascii=False, indent=2), mode)
                return True
        raise TrustFailed(
            f"claude: {self._path} is being rewritten all the time, so trust cannot be written into it",
            "try again",
        )

    def _read(self) -> _Content:
        try:
            content = json.loads(read_plain(self._path, LONGEST))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise self._malformed(str(error)) from error
        if not isinstance(content, dict):
            raise self._malformed("it holds no JSON object")
        for key in ("projects", "customApiKeyResponses"):
            if not isinstance(content.get(key, {}), dict):
                raise self._malformed(f"{key!r} is no object")
        return content

    def _malformed(self, reason: str) -> TrustFailed:
        return TrustFailed(
            f"claude: {self._path} cannot be understood and was left as it is: {reason}",
            "repair the file, or move it away, then try again",
        )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = Path(f"{self._path}.lock")
        deadline = Deadline(self._clock, _LOCK_WAIT)
        while True:
            try:
                lock.mkdir()
                break
            except FileExistsError:
                if self._is_stale(lock):
                    _remove(lock)
                elif deadline.passed():
                    raise TrustFailed(
                        f"claude: {self._path} is locked by another Claude Code ({lock})",
                        "try again; if no Claude Code runs, remove that folder",
                    ) from None
                else:
                    self._clock.pause(_LOCK_POLL)
        try:
            yield
        finally:
            _remove(lock)

    def _is_stale(self, lock: Path) -> bool:
        try:
            touched = lock.stat().st_mtime
        except FileNotFoundError:
            return False
        return self._clock.now().timestamp() - touched > _LOCK_STALE


def _completed(content: _Content, folder: str, api_key: str | None) -> _Content | None:
    """Return the content with what is missing, or None where nothing is."""
    from copy import deepcopy

    result = deepcopy(content)
    result["hasCompletedOnboarding"] = True
    project = result.setdefault("projects", {}).setdefault(folder, {})
    if not isinstance(project, dict):
        raise TrustFailed(f"claude: projects[{folder!r}] of its configuration is no object", "repair the file")
    project["hasTrustDialogAccepted"] = True
    if api_key:
        _approve(result.setdefault("customApiKeyResponses", {}), api_key[-_KEY_TAIL:])
    return None if result == content else result


def _approve(responses: _Content, tail: str) -> None:
    """Approve the key, unless its operator has rejected it."""
    for key in ("approved", "rejected"):
        if not isinstance(responses.setdefault(key, []), list):
            raise TrustFailed(f"claude: customApiKeyResponses.{key} is no list", "repair the file")
    if tail not in responses["approved"] and tail not in responses["rejected"]:
        responses["approved"].append(tail)


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _remove(lock: Path) -> None:
    try:
        lock.rmdir()
    except FileNotFoundError:
        return


_FILE = ".mcp.json"
_ALL = "enableAllProjectMcpServers"
_DECIDED = ("enabledMcpjsonServers", "disabledMcpjsonServers")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NUMBER = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_LOOSE = (2, 1, 280)  #: the last version that was seen to compare names loosely


def unread(cwd: Path) -> tuple[Path, ...]:
    """Return the project's files that are too large to be read."""
    project = cwd / ".claude" / "settings.json"
    return tuple(path for path in (*_project_files(cwd), project, *_local(cwd)) if is_unread(path))


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
    projects = object_of(read_settings(files.configuration, LONGEST), "projects")
    paths = (files.settings, cwd / ".claude/settings.json", cwd / ".claude/settings.local.json")
    earlier = object_of(projects, os.path.realpath(cwd))
    return rest, [earlier, *map(read_settings, paths), given, read_settings(MANAGED)]


def _all_enabled(sources: Sequence[Mapping[str, Any]]) -> bool:
    said = [source[_ALL] for source in sources if isinstance(source.get(_ALL), bool)]
    return bool(said) and said[-1]


def _texts(source: Mapping[str, Any], key: str) -> Iterator[str]:
    return (name for name in list_of(source, key) if isinstance(name, str))


_OFF = "disableAllHooks"
_OURS_OFF = "allowManagedHooksOnly"
_TOLD = (
    "Claude Code runs no hooks, because {key} is set in {path}: its turns are reported late, from its own files, and "
    "its dialogs are recognised only on its screen; {remedy}"
)
_REMEDY = (
    'remove it there, or give the session `--settings` and `{"disableAllHooks": false}` in its harnessArgs, then '
    "restart it"
)


def hooks_off(files: ClaudeFiles, cwd: Path, args: Sequence[str]) -> str:
    """Return which settings switch the hooks off and what can be done, "" where none do."""
    managed = read_settings(MANAGED)
    for key in (_OFF, _OURS_OFF):
        if managed.get(key) is True:
            return _TOLD.format(key=key, path=MANAGED, remedy="only the machine's owner can change that")
    path, off = next(_said(files, cwd, args), ("", False))
    return _TOLD.format(key=_OFF, path=path, remedy=_REMEDY) if off else ""


def _said(files: ClaudeFiles, cwd: Path, args: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield what each of the settings says of it, the strongest first."""
    try:
        given: Mapping[str, Any] = take_settings(args, cwd)[1]
    except InvalidValue:  # a start refuses them, and says why
        given = {}
    yield from _word("--settings", given)
    project = cwd / ".claude"
    for path in (*_local(cwd), project / "settings.json", files.settings):
        yield from _word(str(path), read_settings(path))


def _word(path: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    value = settings.get(_OFF)
    if isinstance(value, bool):
        yield path, value


def _local(cwd: Path) -> tuple[Path, ...]:
    folder = Path(os.path.realpath(cwd))
    top = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    return tuple(dict.fromkeys(place / ".claude" / "settings.local.json" for place in (folder, top)))
