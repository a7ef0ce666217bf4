"""Prepare a home of Gemini's own for one session, in the session's folder (Gemini CLI 0.53.0 to 0.61.0).

Gemini reads its settings from one place, and takes neither hooks nor MCP servers by an argument. So `GEMINI_CLI_HOME`
names a home of the session's own: its settings are the person's with ours added, and everything else of the person's
is there by a link: login, memory, commands, extensions, policies. Nothing of theirs is written by us.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.base.errors import InvalidValue, TrustFailed
from core.base.files import read_plain
from core.harness.base import REPORTER, list_of, object_of, text_of, write_private

HOME = "gemini"  #: folder in the session's folder
FOLDER = ".gemini"  #: in a home
FILES = "files"  #: in the session's folder: what people send along with their messages
_SETTINGS, _TRUSTED = "settings.json", "trustedFolders.json"
SYSTEM = Path("/etc/gemini-cli/settings.json")  #: what the machine's owner settles for all of its users
_MOST = 1 << 20  #: bytes of a file of settings
_OWN = frozenset({_SETTINGS, _TRUSTED, "tmp", "history", "projects.json", "state.json"})  #: each session has its own


def person_of(environ: Mapping[str, str]) -> Path:
    """Return the folder in which the person keeps what Gemini reads.

    In a session's own shell GEMINI_CLI_HOME names that session's home, which is nobody's.
    """
    given = environ.get("GEMINI_CLI_HOME")
    if given and Path(given).name == HOME and (Path(given).parent / REPORTER).exists():
        given = None
    given = given or environ.get("HOME")
    return (Path(given) if given else Path.home()) / FOLDER


def home_of(folder: Path) -> Path:
    """Return the session's own home, by the session's folder."""
    return folder / HOME


def read_settings(path: Path) -> dict[str, Any]:
    """Return a file's settings; an empty object where there is none. Raises InvalidValue for one that Gemini refuses.

    Gemini takes comments in it.
    """
    try:
        found = json.loads(without_comments(read_plain(path, _MOST).decode()) or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidValue(f"gemini: {path} cannot be read: {error}", "repair the file, then try again") from error
    if not isinstance(found, dict):
        raise InvalidValue(f"gemini: {path} holds no JSON object", "repair the file, then try again")
    return found


def without_comments(text: str) -> str:
    """Return JSON with blanks in the place of its comments."""
    kept: list[str] = []
    place, quoted = 0, False
    while place < len(text):
        pair = text[place : place + 2]
        if quoted or pair not in ("//", "/*"):
            if quoted and text[place] == "\\":
                kept.append(pair)
                place += 2
                continue
            quoted ^= text[place] == '"'
            kept.append(text[place])
            place += 1
            continue
        end = text.find("\n" if pair == "//" else "*/", place + 2)
        place = len(text) if end < 0 else end + (0 if pair == "//" else 2)
    return "".join(kept)


def install_home(
    folder: Path, person: Path, environ: Mapping[str, str], ours: Mapping[str, Any], cwd: Path, *, trusts: bool
) -> None:
    """Write the session's home: settings, trust and links.

    `trusts`: `cwd` counts as trusted; the folder of what people send along does in any case. Raises TrustFailed, and
    InvalidValue for settings of the person's that cannot be read.
    """
    own = home_of(folder) / FOLDER
    settings = _merged(read_settings(person / _SETTINGS), ours)
    auth = settings.setdefault("security", {}).setdefault("auth", {})
    if not text_of(auth, "selectedType") and (kind := _kind(environ)):
        auth["selectedType"] = kind
    trusted = read_settings(person / _TRUSTED)
    for place in (folder / FILES, *([cwd] if trusts else [])):
        trusted.setdefault(os.path.realpath(place), "TRUST_FOLDER")
    try:
        for place in (own, folder / FILES):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(own / _SETTINGS, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
        write_private(own / _TRUSTED, json.dumps(trusted, ensure_ascii=False, indent=2) + "\n")
        _link(own, person)
    except OSError as error:
        raise TrustFailed(
            f"gemini: {error.filename} cannot be prepared: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error


def _merged(theirs: dict[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the person's settings with ours; of hooks that they have switched off ours alone are left."""
    if object_of(theirs, "hooksConfig").get("enabled") is False:
        theirs = {key: value for key, value in theirs.items() if key not in ("hooks", "hooksConfig")}
    result = dict(theirs)
    for key, value in ours.items():
        result[key] = _joined(result.get(key), value)
    security = result.get("security", {})
    if not isinstance(security, dict) or not isinstance(security.get("auth", {}), dict):
        raise InvalidValue("gemini: security in its settings is no object", "repair the file, then try again")
    return result


def _joined(theirs: Any, ours: Any) -> Any:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {**theirs, **{key: _joined(theirs.get(key), value) for key, value in ours.items()}}
    if isinstance(theirs, list) and isinstance(ours, list):
        return [*theirs, *ours]
    return ours


def _link(own: Path, person: Path) -> None:
    """Let what the person has stand in the session's home as well, and remove links to what is gone."""
    there = {entry.name for entry in os.scandir(person)} - _OWN if person.is_dir() else set[str]()
    for entry in list(os.scandir(own)):
        if entry.is_symlink() and (entry.name not in there or os.readlink(entry.path) != str(person / entry.name)):
            os.unlink(entry.path)
    for name in sorted(there):
        if not os.path.lexists(own / name):
            (own / name).symlink_to(person / name)


def _kind(environ: Mapping[str, str]) -> str:
    """Return how Gemini logs in by its environment alone; "" where it asks."""
    if environ.get("GOOGLE_GENAI_USE_GCA") == "true":
        return "oauth-personal"
    if environ.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return "vertex-ai"
    return "gemini-api-key" if environ.get("GEMINI_API_KEY") else ""


def login_missing(person: Path, environ: Mapping[str, str], cwd: Path | None) -> bool:
    """Return whether Gemini would ask how to log in: neither the person's settings nor the environment say it.

    A file `.env` of the person's, of the session's folder or of one above it may say it. Whether what they name is
    valid only Gemini finds out. Raises InvalidValue for settings that cannot be read.
    """
    for path in (SYSTEM, person / _SETTINGS):
        if text_of(object_of(object_of(read_settings(path), "security"), "auth"), "selectedType"):
            return False
    places = (person, person.parent, *((cwd, *cwd.parents) if cwd else ()))
    return not (_kind(environ) or any((place / name).exists() for place in places for name in (".env", ".gemini/.env")))


def hooks_off(person: Path, cwd: Path) -> Path | None:
    """Return the file that switches hooks off where we cannot switch them on: the folder's own, or the machine's."""
    for path in (SYSTEM, cwd / FOLDER / _SETTINGS):
        try:
            config = object_of(read_settings(path), "hooksConfig")
        except InvalidValue:
            continue  # Gemini refuses it and says so
        if config.get("enabled") is False or "the-loop" in list_of(config, "disabled"):
            return path
    return None
