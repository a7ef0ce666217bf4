"""Settings that keep Claude Code from running our hooks, by which we know what a session does.

As seen of 2.1.197 to 2.1.332: `disableAllHooks` counts in the user's settings, in those of the session's folder and in
its local ones, the last of them that says so; what `--settings` says goes before these. From some version between
2.1.197 and 2.1.280 on, the local settings of a git checkout are those of its top folder. What the machine's owner
settles goes before all; there `allowManagedHooksOnly` does the same.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import InvalidValue
from core.harness.claude.arguments import take_settings
from core.harness.claude.files import MANAGED, ClaudeFiles, read_settings

_OFF = "disableAllHooks"
_OURS_OFF = "allowManagedHooksOnly"
_TOLD = (
    "Claude Code runs no hooks there, for {key} is set in {path}: its turns are told late, by its own files, and its "
    "dialogs are known by its screen alone; {remedy}"
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
