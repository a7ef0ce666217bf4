"""One process on this machine for one app-level token: Slack hands each event to any one of an app's connections."""

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.tokens import Token
from core.errors import ChannelError


@contextmanager
def app_lock(token: Token, runtime: str) -> Iterator[None]:
    """Hold the token's lock file, which is named after a hash of it and holds our process id; it goes with us.

    `runtime` is the user's runtime folder (XDG_RUNTIME_DIR), "" where there is none. Raises ChannelError, transient
    since the other process may end, while another one holds it.
    """
    path = _folder(runtime) / f"slack-{hashlib.sha256(token.reveal().encode()).hexdigest()[:24]}.lock"
    descriptor = _taken(path, token)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the lock is let go: whoever waits for it sees that the file is gone
        os.close(descriptor)


def _taken(path: Path, token: Token) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            if _locked(descriptor, path, token):
                break
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        reason = f"Slack: the lock {path} cannot be used: {error.strerror}"
        remedy = "give yourself the rights to it, or set XDG_RUNTIME_DIR to a folder of your own"
        raise ChannelError(reason, remedy, transient=True) from error
    return descriptor


def _check_private(folder: Path) -> None:
    """Raise ChannelError where somebody else could hold our lock: /tmp is everybody's."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ChannelError(
            f"Slack: the folder of its lock, {folder}, was made by another user (uid {found.st_uid})",
            "set XDG_RUNTIME_DIR to a folder of your own",
            transient=False,
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _locked(descriptor: int, path: Path, token: Token) -> bool:
    """Lock the file and tell whether it still is the one of that path. Raises ChannelError if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise ChannelError(
            f"Slack: process {holder} on this machine listens with the app token in {token.variable} already, and "
            "Slack would hand each reply to one of the two",
            f"stop that process, or give each installation an app of its own (its lock is {path})",
            transient=True,
        ) from error
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _folder(runtime: str) -> Path:
    if runtime.startswith("/"):
        return Path(runtime) / "the-loop"
    return Path(tempfile.gettempdir()) / f"the-loop-{os.getuid()}"
