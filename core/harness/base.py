"""What the adapters share: file names of a session's folder, private writes, a look at PATH, safe access to JSON."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.domain.harness import SessionContext
from core.errors import HarnessNotInstalled, TrustFailed

ASKING = "asking"  #: there while a dialog may be open, of whichever agent in the harness: an Enter would answer it
TOOL = "tool"  #: its modification time is that of the last PreToolUse
REPORTER = "report"
CLIENT = "ask.py"  #: what the reporter becomes at a PermissionRequest; it names it too
SETTINGS = "hook-settings.json"


def write_private(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file by temp file and rename, so that no reader ever sees half of it. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folders(context: SessionContext) -> None:
    """Make the session's folder and the instance's spool (0700) and drop the markers of an earlier instance.

    Raises TrustFailed if they cannot be made.
    """
    try:
        for folder in (context.folder, context.spool):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for marker in (ASKING, TOOL):
            (context.folder / marker).unlink(missing_ok=True)
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: {error.filename} cannot be prepared: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error


def find_executable(harness: str, executable: str, path: str | None) -> str:
    """Return the absolute path of a program that is on `path`. Raises HarnessNotInstalled."""
    import shutil

    found = shutil.which(executable, path=path)
    if found is None:
        raise HarnessNotInstalled(harness, executable)
    return os.path.abspath(found)


def text_of(mapping: Mapping[str, Any], key: str) -> str:
    """Return a text value, or "" where there is none or it is something else."""
    value = mapping.get(key)
    return _sound(value) if isinstance(value, str) else ""


def _sound(text: str) -> str:
    """Return the text without lone surrogates, which JSON allows and no file or database takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def object_of(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object value, or an empty one."""
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def list_of(mapping: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Return a list value, or an empty one."""
    value = mapping.get(key)
    return value if isinstance(value, list) else ()
