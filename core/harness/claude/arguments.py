"""The operator's arguments for Claude Code: which are refused, and which are taken out to be merged with ours."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from core.base.errors import InvalidValue
from core.base.files import read_plain
from core.harness.base import object_of, text_of
from core.harness.claude.files import MOST_SETTINGS

#: flag -> why an operator cannot give it
OWNED: Mapping[str, str] = {
    "--resume": "which conversation runs is decided by the session's record",
    "--continue": "which conversation runs is decided by the session's record",
    "--session-id": "which conversation runs is decided by the session's record",
    "--fork-session": "which conversation runs is decided by the session's record",
    "--from-pr": "which conversation runs is decided by the session's record",
    "--no-session-persistence": "a conversation that is not kept cannot be resumed",
    "--worktree": "conversations are kept per folder; set the session's cwd instead",
    "--tmux": "the pane is ours",
    "--print": "a standing session is interactive",
    "--input-format": "a standing session is interactive",
    "--output-format": "a standing session is interactive",
    "--background": "it would leave the pane",
    "--bg": "it would leave the pane",
    "--bare": "it switches hooks off, by which we know what the session does",
    "--safe-mode": "it switches hooks off, by which we know what the session does",
    "--version": "it prints and exits",
    "--help": "it prints and exits",
    "--": "the boot prompt follows it; set the session's prompt instead",
}
_SHORT = {"r": "--resume", "c": "--continue", "p": "--print", "w": "--worktree", "v": "--version", "h": "--help"}
_SHORT_WITH_VALUE = frozenset("dn")  # -d [filter], -n <name>: the rest of the word is the value
_BYPASS = "--dangerously-skip-permissions"
_MODE = "--permission-mode"
_BYPASS_MODE = "bypassPermissions"
_SETTINGS = "--settings"


def refuse_owned(args: Sequence[str]) -> None:
    """Refuse the flags that are ours, in their long, short and bundled spellings. Raises InvalidValue."""
    for arg in args:
        for flag in _flags_in(arg):
            if flag in OWNED:
                raise InvalidValue(
                    f"harnessArgs of claude: {arg!r} cannot be given: {OWNED[flag]}", f"remove {arg!r} from harnessArgs"
                )


def _flags_in(arg: str) -> list[str]:
    if arg.startswith("--"):
        return [arg if arg == "--" else arg.partition("=")[0]]
    if not arg.startswith("-"):
        return []
    flags = []
    for letter in arg[1:]:
        if letter in _SHORT_WITH_VALUE or not letter.isalpha():
            break
        flags.append(_SHORT.get(letter, f"-{letter}"))
    return flags


def asks_for_bypass(args: Sequence[str], *settings: Mapping[str, Any]) -> bool:
    """Return whether the arguments, or where they name no mode one of the settings, switch permission checks off."""
    if not _names_mode(args):
        return any(default_mode(each) == _BYPASS_MODE for each in settings)
    return _BYPASS in args or f"{_MODE}={_BYPASS_MODE}" in args or (_MODE, _BYPASS_MODE) in pairwise(args)


def mode_arguments(
    chosen: str | None, args: Sequence[str], given: Mapping[str, Any], own: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return what names the permission mode; () where something more special than `chosen` does.

    `given` are the settings that the arguments came with, `own` those that the operator keeps for every Claude Code.
    Without a flag 2.1.332 runs in its auto mode, and a resumed conversation in whatever mode it was left in.
    """
    if _names_mode(args) or default_mode(given) or chosen == "harness":
        return ()
    if chosen is None and any(default_mode(each) for each in own):
        return ()
    return (_MODE, chosen or "default")


def default_mode(settings: Mapping[str, Any]) -> str:
    """Return the permission mode that settings name, "" for none."""
    return text_of(object_of(settings, "permissions"), "defaultMode")


def _names_mode(args: Sequence[str]) -> bool:
    return any(arg in (_MODE, _BYPASS) or arg.startswith(f"{_MODE}=") for arg in args)


def take_settings(args: Sequence[str], cwd: Path) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the arguments without `--settings`, and the settings that the last one of them gives.

    A value is a file (relative to `cwd`) or inline JSON, as Claude Code takes it. Raises InvalidValue.
    """
    rest: list[str] = []
    value: str | None = None
    waiting = iter(args)
    for arg in waiting:
        if arg == _SETTINGS:
            value = next(waiting, "")
        elif arg.startswith(f"{_SETTINGS}="):
            value = arg.removeprefix(f"{_SETTINGS}=")
        else:
            rest.append(arg)
    return tuple(rest), {} if value is None else _load_settings(value, cwd)


def _load_settings(value: str, cwd: Path) -> dict[str, Any]:
    inline = value.strip().startswith("{")
    where = "inline JSON" if inline else str(cwd / value)
    try:
        settings = json.loads(value if inline else read_plain(cwd / value, MOST_SETTINGS))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"harnessArgs of claude: --settings cannot be read ({where}): {error}", "give a JSON file or a JSON object"
        ) from error
    if not isinstance(settings, dict):
        raise InvalidValue(f"harnessArgs of claude: --settings is no JSON object ({where})", "give a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise InvalidValue(
            f"harnessArgs of claude: `hooks` in --settings is not an object of lists ({where})",
            "write it as Claude Code documents it",
        )
    if settings.get("disableAllHooks") is True:
        raise InvalidValue(
            f"harnessArgs of claude: --settings has disableAllHooks ({where}): we know by hooks what the session does",
            "remove disableAllHooks",
        )
    return settings
