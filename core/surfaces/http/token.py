"""The token of the HTTP surface: the operator's by a variable, else one that is made once and kept."""

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from core.errors import StoreBroken
from core.store.files import broken, write_private

_BYTES = 32
_LONGEST = 4096


def api_token(path: Path, variable: str, environ: Mapping[str, str]) -> str:
    """Return the variable's value, else what the file holds, else a new token that is now in the file.

    Raises StoreBroken for a file that cannot be read or written, or that others may read or write.
    """
    given = environ.get(variable, "").strip()
    if given:
        return given
    kept = _kept(path)
    if kept:
        return kept
    token = secrets.token_urlsafe(_BYTES)
    write_private(path, f"{token}\n".encode())
    return token


def _kept(path: Path) -> str:
    """Return the file's token, "" where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise broken(error, path, "read the token") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise StoreBroken(
                f"{path}: the token is not used, for others may read or change that file",
                "remove it: the next start of the service makes a new one",
            )
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace").strip()
    except OSError as error:
        raise broken(error, path, "read the token") from error
    finally:
        os.close(descriptor)
