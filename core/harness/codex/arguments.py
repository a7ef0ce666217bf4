"""The operator's arguments for Codex: which are refused, and what they and the operator's own settings decide.

Codex takes settings as `-c key=value`, each value in TOML. What is given so goes before every file of settings, for
this one process, and is written nowhere.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.base.errors import InvalidValue
from core.base.files import read_plain
from core.harness.base import object_of, text_of

#: flag -> why an operator cannot give it
OWNED: Mapping[str, str] = {
    "--cd": "the session's cwd is its folder",
    "--worktree": "the session's cwd is its folder",
    "--remote": "its turns would run in another process, which nobody ends with the session",
    "--remote-auth-token-env": "its turns would run in another process, which nobody ends with the session",
    "--last": "which conversation runs is decided by the session's record",
    "--version": "it prints and exits",
    "--help": "it prints and exits",
    "--": "the boot prompt follows it; set the session's prompt instead",
}
_SHORT = {
    "-C": "--cd", "-V": "--version", "-h": "--help", "-c": "--config", "-a": "--ask-for-approval", "-s": "--sandbox",
    "-m": "--model", "-p": "--profile", "-i": "--image",
}  # fmt: skip
_WITH_VALUE = frozenset(
    {
        *("--config", "--ask-for-approval", "--sandbox", "--model", "--profile", "--image", "--enable", "--disable"),
        *("--local-provider", "--add-dir", "--cd", "--remote", "--remote-auth-token-env"),
    }
)
_APPROVAL = "approval_policy"
_DECIDES_APPROVAL = frozenset(
    {"--ask-for-approval", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox", "--yolo", "--full-auto"}
)
MOST_SETTINGS = 1 << 20  #: bytes of a file of settings
MANAGED = Path("/etc/codex/requirements.toml")  #: what the machine's owner settles for all of its users


def toml(value: Any) -> str:
    """Return a text, number, list or mapping as a TOML value in one line."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}={toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def given(args: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each argument by its long name, with its value; a word that is no flag has the name ""."""
    waiting = iter(args)
    for arg in waiting:
        if arg == "--" or not arg.startswith("-") or arg == "-":
            yield ("--", None) if arg == "--" else ("", arg)
            continue
        if arg.startswith("--"):
            name, equals, value = arg.partition("=")
        else:
            name, equals, value = _SHORT.get(arg[:2], arg[:2]), arg[2:], arg[2:].removeprefix("=")
        yield name, value if equals else next(waiting, None) if name in _WITH_VALUE else None


def refuse_owned(args: Sequence[str]) -> None:
    """Refuse the flags that are ours, and words that would be a prompt or a subcommand. Raises InvalidValue."""
    for name, value in given(args):
        if name == "":
            why = "a word alone is a prompt or a subcommand; set the session's prompt instead"
        elif name == "--config" and (value or "").partition("=")[0].strip().partition(".")[0] == "hooks":
            why = "it would replace the hooks by which we know what the session does; write yours into config.toml"
        elif name in OWNED:
            why = OWNED[name]
        else:
            continue
        told = value if name == "" else name
        raise InvalidValue(
            f"harnessArgs of codex: {told!r} cannot be given: {why}", f"remove {told!r} from harnessArgs"
        )


def settings_of(home: Path, args: Sequence[str]) -> Mapping[str, Any]:
    """Return what the operator's configuration holds, its profile and `-c` on top, as far as it can be read.

    A file that cannot be read or understood counts as empty: Codex itself tells of it at its start.
    """
    names = [value for name, value in given(args) if name == "--profile" and value]
    files = [home / "config.toml", *(home / f"{name}.config.toml" for name in names[-1:] if "/" not in name)]
    found: dict[str, Any] = {}
    for path in files:
        found = merged(found, read_toml(path))
    for name, value in given(args):
        if name == "--config" and value is not None:
            found = merged(found, _one_setting(value))
        elif name in ("--enable", "--disable") and value:
            found = merged(found, {"features": {value: name == "--enable"}})
    return found


def read_toml(path: Path) -> Mapping[str, Any]:
    """Return the file's table; an empty one where it is none, or cannot be read."""
    import tomllib  # whoever only lists sessions must not pay for it

    try:
        return tomllib.loads(read_plain(path, MOST_SETTINGS).decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _one_setting(text: str) -> dict[str, Any]:
    """Return what `dotted.key=value` sets. A value that is no TOML is a text, as Codex takes it."""
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        key, _, value = text.partition("=")
        found: dict[str, Any] = {}
        place = found
        *above, last = key.strip().split(".")
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value.strip()
        return found


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, the second on top: tables are merged, everything else is replaced."""
    result = dict(under)
    for key, value in over.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return result


def asks_by_itself(args: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Return whether the operator has settled when Codex asks for a permission, by a flag or by a setting."""
    return any(name in _DECIDES_APPROVAL for name, _ in given(args)) or _APPROVAL in settings


def trusts(settings: Mapping[str, Any], folder: Path) -> bool:
    """Return whether the operator has decided about the folder, or one above it, whichever way."""
    projects = object_of(settings, "projects")
    return any(text_of(object_of(projects, str(each)), "trust_level") for each in (folder, *folder.parents))
