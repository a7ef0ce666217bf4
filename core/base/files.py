"""Open, read and write files safely, where an agent with our rights may have put something else in their place.

A read is bounded, and refuses anything but a plain file. Private folders are 0700 and private files 0600; a private
file is replaced as a whole or not at all.

The limit on open files is raised for the service, and set back to the usual one for the programs that it starts.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from core.base.errors import StoreBroken

_NOT_PLAIN = "it is no plain file"
_CHUNK = 1 << 16  # bytes


def open_plain(path: Path | str) -> BinaryIO:
    """Open a plain file for reading. What else may stand under its name, a folder or a FIFO, is refused, and waited for
    never. Raises OSError.
    """
    return os.fdopen(checked(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), "rb")


def open_plain_log(path: Path) -> int:
    """Open a plain file to write at its end, and return the descriptor; a missing one is made for us alone to read.

    What else may stand under its name is refused, and waited for never. Raises OSError.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return checked(os.open(path, how, 0o600), path)
    except OSError as error:
        if error.errno != errno.ENXIO:  # what open(2) says of a FIFO that nobody reads, and of a socket
            raise
        raise OSError(errno.EINVAL, _NOT_PLAIN, str(path)) from error


def checked(descriptor: int, path: Path | str) -> int:
    """Return the descriptor if it is a plain file's; else close it, and raise OSError."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, _NOT_PLAIN, str(path))


def read_plain(path: Path | str, most: int) -> bytes:
    """Return what a plain file holds; see `open_plain` and `read_bounded`. Raises OSError."""
    with open_plain(path) as stream:
        return read_bounded(stream, most)


def read_bounded(stream: BinaryIO, most: int) -> bytes:
    """Return what is left of the stream. Raises OSError, EOVERFLOW where that is more than `most` bytes.

    Of a file that is known before anything is read; of anything else no more is read than that.
    """
    found = os.fstat(stream.fileno())
    fits = not stat.S_ISREG(found.st_mode) or found.st_size - stream.tell() <= most
    content = stream.read(most + 1) if fits else b""
    if fits and len(content) <= most:
        return content
    raise too_large(most)


def whole_lines(stream: BinaryIO, longest: int, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield each whole line with the offset behind it, b"" in the place of one of more than `longest` bytes.

    A last line without its end is half written, and not yielded. Raises OSError, EOVERFLOW after `most` bytes.
    """
    begin = stream.tell()
    while part := stream.readline(longest):
        whole = part if part.endswith(b"\n") else b""
        while part and not part.endswith(b"\n") and stream.tell() - begin <= most:
            part = stream.readline(_CHUNK)
        if not part:
            return
        if stream.tell() - begin > most:
            raise too_large(most)
        yield stream.tell(), whole


def too_large(most: int) -> OSError:
    """Return the error that says so."""
    return OSError(errno.EOVERFLOW, f"it holds more than {most:,} bytes")


_LONGEST_TOKEN = 4096  # bytes
_ROOM = 1 << 16  # bytes, without which no session can be started
_REMEDIES = {
    errno.ENOSPC: "free some space on that disk, then try again",
    errno.EDQUOT: "free some of your quota on that disk, then try again",
    errno.EFBIG: "raise the limit on file size (`ulimit -f`), then try again",
    errno.EROFS: "mount that disk writable, or point state.root at one that is",
    errno.EACCES: "give yourself the rights to it, or point state.root elsewhere",
    errno.EPERM: "give yourself the rights to it, or point state.root elsewhere",
    errno.ENOTDIR: "move away the file that stands where a folder should be",
    errno.EISDIR: "move away the folder that stands where a file should be",
    errno.EINVAL: "move away what stands there: only a plain file should",
    errno.EOVERFLOW: "move it away: nothing of ours is so large",
    errno.ELOOP: "move the symbolic link away: it may lead anywhere",
    errno.EMFILE: "raise the limit on open files (`ulimit -n`), then try again",
}


def broken(error: OSError, path: Path | str, doing: str) -> StoreBroken:
    """Return the error that tells what could not be done to which path, why, and what helps."""
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0, "look at that path and its disk, then try again")
    return StoreBroken(f"{path}: cannot {doing}: {reason}", remedy)


def is_there(path: Path) -> bool:
    """Return whether anything stands under that name. Raises StoreBroken where that cannot be seen."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise broken(error, path, "look for the file") from error
    return True


def is_file(path: Path | str) -> bool:
    """Return whether a plain file stands under that name. Raises StoreBroken where something else does."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise broken(error, path, "look for the file") from error
    if stat.S_ISREG(mode):
        return True
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ELOOP if stat.S_ISLNK(mode) else errno.EINVAL
    raise broken(OSError(code, os.strerror(code)), path, "use the file")


def holds_files(folder: str) -> bool:
    """Return whether any plain file lies in the folder; in none where it is not there. Raises StoreBroken."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_file() for entry in entries)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise broken(error, Path(folder), "look into the folder") from error


def private_folder(folder: Path) -> None:
    """Make the folder and its missing parents with mode 0700; tighten it if it is there.

    Raises StoreBroken, also for one that is another user's: its owner could put anything into it.
    """
    try:
        found = _there(folder)
        _check_owner(folder, found, os.geteuid())
        if found.st_mode & 0o777 != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise broken(error, folder, "make the folder") from error


def own_folder(folder: Path) -> None:
    """Make it as `private_folder` does, and refuse a symbolic link in its place. Raises StoreBroken."""
    if folder.is_symlink():
        raise broken(OSError(errno.ELOOP, "it is a symbolic link"), folder, "use the folder")
    private_folder(folder)


def secure_root(root: Path) -> None:
    """See to it that nobody else can put something of theirs in the place of what lies in the state root.

    The right to write is taken from others where the folder is ours, unless its sticky bit does that already. Raises
    StoreBroken where it is neither ours nor root's, or is root's and others may write to it.
    """
    try:
        found = _there(root)
        _check_owner(root, found, os.geteuid(), 0)
        if not found.st_mode & 0o022 or found.st_mode & stat.S_ISVTX:
            return
        _check_owner(root, found, os.geteuid())
        root.chmod(stat.S_IMODE(found.st_mode) & ~0o022)
    except OSError as error:
        raise broken(error, root, "secure the folder") from error


def _check_owner(folder: Path, found: os.stat_result, *owners: int) -> None:
    """Raise StoreBroken for a folder of somebody who is not among these users."""
    if found.st_uid not in owners:
        raise StoreBroken(
            f"{folder} belongs to another user (uid {found.st_uid}), who can read and replace all that lies in it",
            f"point state.root at a folder of your own, or `chown {os.geteuid()} {folder}`",
        )


def _there(folder: Path) -> os.stat_result:
    """Return what is known of the folder, made where it is missing. Raises OSError."""
    with suppress(FileNotFoundError):
        found = os.stat(folder)
        if stat.S_ISDIR(found.st_mode):
            return found
    _make_missing(folder)
    return os.stat(folder)


def _make_missing(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make_missing(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file of that name is there", str(folder)) from None


def write_private(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace the file in one step and sync it: a crash leaves the old content or the new. Raises StoreBroken.

    `mode` is 0600, or 0700 for what is to be run. The folder must exist. What is not `durable` outlives a crash of
    ours, and may be empty after one of the machine.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        _write_new(temporary, data, mode, durable=durable)
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):  # the first error is the one to tell, and the next write of this name clears the rest
            temporary.unlink(missing_ok=True)
        raise broken(error, path, "write the file") from error


def _write_new(path: Path, data: bytes, mode: int, *, durable: bool) -> None:
    path.unlink(missing_ok=True)  # a process with our id died here
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_room(folder: Path) -> None:
    """Raise StoreBroken where a few pages cannot be written into the folder.

    They are written: neither a quota nor a limit on the size of files shows in what the disk says of its free space.
    """
    path = folder / f".room.{os.getpid()}.tmp"
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            path.unlink()
            write_all(descriptor, bytes(_ROOM))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise broken(error, folder, "write into the folder") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, in as few writes as the system allows. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Make renames and removals in the folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: Path, *, durable: bool = True) -> None:
    """Remove the file, and sync that if it is to be `durable`; absent is fine. Raises StoreBroken."""
    try:
        path.unlink()
        if durable:
            sync_folder(path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise broken(error, path, "remove the file") from error


def read_token(path: Path) -> str | None:
    """Return the token that the file holds, None where there is none.

    Raises StoreBroken for a file that cannot be read, or that others may read or change.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise broken(error, path, "read the token") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise StoreBroken(
                f"{path}: the token is not used, because others may read or change that file",
                "remove it: the next start makes a new one",
            )
        return os.read(descriptor, _LONGEST_TOKEN).decode("utf-8", "replace").strip()
    except OSError as error:
        raise broken(error, path, "read the token") from error
    finally:
        os.close(descriptor)


WANTED = 8192
_AT_LIMIT = 'ulimit -Sn "$0" && exec "$@"'  # for /bin/sh

_usual: list[int] = []  # the soft limit before it was raised, where it was


def raise_limit() -> None:
    """Raise this process's soft limit, as far as the hard one lets it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _usual[:] = [soft]


def at_usual_limit(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the command that runs `words` with the limit that this process began with.

    Programs that use select(2), which cannot be told of a descriptor from 1024 on, rely on the usual one. A program
    that is not found is left to whoever starts it, who then says so.
    """
    if not _usual:
        return list(words)
    import shutil

    if shutil.which(words[0], path=environ.get("PATH")) is None:
        return list(words)
    return ["/bin/sh", "-c", _AT_LIMIT, str(_usual[0]), *words]
