"""The file of a chat's secrets: a line `NAME=value` each, as in systemd's `EnvironmentFile=`. Only we may read it.

A variable of the environment wins over it. No value of it is ever printed, logged, or handed to a pane.
"""

import errno
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from core.base.errors import StoreBroken
from core.base.files import broken, private_folder, read_bounded, secure_root, write_private

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_MOST = 1 << 16  # bytes
_QUOTES = ("'", '"')


def read_secrets(path: Path) -> dict[str, str]:
    """Return what the file holds, by the variables' names; nothing where there is none.

    Raises StoreBroken for a file that cannot be read, or that others may read or change.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise broken(error, path, "read the secrets") from error
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise broken(OSError(errno.EINVAL, "it is no plain file"), path, "read the secrets")
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise StoreBroken(
                f"{path}: the secrets in it are not used, because others may read or change that file "
                f"(owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):o})",
                f"`chmod 600 {path}`, and make new tokens if others may have read them",
            )
        try:
            text = read_bounded(stream, _MOST).decode()
        except (OSError, UnicodeDecodeError) as error:
            told = error if isinstance(error, OSError) else OSError(errno.EILSEQ, "it is not UTF-8")
            raise broken(told, path, "read the secrets") from error
    lines = map(_LINE.fullmatch, text.splitlines())
    return {line[1]: value for line in lines if line and (value := _unquoted(line[2].strip()))}


def write_secrets(root: Path, path: Path, changes: Mapping[str, str]) -> None:
    """Write the values into the file below the state root, and keep its others; the file is made with mode 0600.

    Raises StoreBroken.
    """
    secure_root(root)
    private_folder(path.parent)
    kept = {**read_secrets(path), **changes}
    text = "".join(f"{name}={value}\n" for name, value in sorted(kept.items()))
    write_private(path, text.encode())


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES
    return value[1:-1] if quoted else value
