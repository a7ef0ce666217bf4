"""Ask tmux: what both ways have in common, and the way of one process for each line.

Also how a command line is written: as arguments of a process, and as a line for tmux's own parser (pure). A control
client can take data only from files, so those are made here too.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from core.base.clock import SystemClock
from core.base.environment import MARKER, shed_limit, with_utf8
from core.base.errors import TmuxMissing, TmuxSilent
from core.base.files import at_usual_limit
from core.base.values import dataclass

Command = Sequence[str]  #: one tmux command, a word each
Line = Sequence[Command]  #: commands that run back to back, the rest skipped after the first that fails

DATA = "-"  #: the word of `load-buffer` in whose place a transport puts where the data is

_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\$~]')
_PLAIN = re.compile(r"[A-Za-z0-9_@/.-]+|%[0-9]+")  #: words that the parser takes as they are


@lru_cache(maxsize=128)  # a line has some fifty words, most of which are those of the line before
def quote(word: str) -> str:
    """Return the word as tmux's parser reads it: in double quotes, unless it is plain.

    Control characters and what the parser would expand are written as three octal digits, so a word never holds a
    line break and never ends one.
    """
    return word if _PLAIN.fullmatch(word) else f'"{_SPECIAL.sub(_octal, word)}"'


def _octal(found: re.Match[str]) -> str:
    return f"\\{ord(found[0]):03o}"


def spell(line: Line) -> str:
    """Return the line for tmux's parser: the input of a control client, or the inner commands of `if-shell`."""
    return " ; ".join([" ".join(map(quote, command)) for command in line])


def arguments(line: Line) -> list[str]:
    """Return the line as arguments of the tmux program.

    tmux takes a `;` at the end of any argument for the end of a command, unless it is written `\\;`.
    """
    words: list[str] = []
    for command in line:
        if words:
            words.append(";")
        words += [f"{word[:-1]}\\;" if word.endswith(";") else word for word in command]
    return words


def literal_format(text: str) -> str:
    """Return the text so that expanding it as a tmux format gives it back (`#` stands for itself)."""
    return text.replace("#", "##")


OLDEST = (3, 2)  #: new-session -e, and the flags no-output and ignore-size of control clients

_NO_SERVER = ("no server running on ", "(No such file or directory)", "(Connection refused)")
_NOT_ALLOWED = "access not allowed"  #: another user's server; tmux 3.3a says it with rc 0
_GONE = ("server exited", "lost server")


@dataclass(frozen=True)
class Reply:
    """What tmux answered: exit code (0 or 1), standard output, standard error.

    `by_server`: over a control client, whose stream has the texts of screens in it. A line of a screen may look like
    the end of an answer, so nothing in such a reply says that there is no server, or another's: the answer itself is
    the proof that ours is there.
    """

    rc: int
    out: str
    err: str
    by_server: bool = False

    @property
    def no_server(self) -> bool:
        """Return whether tmux said that no server listens on our socket."""
        said = any(text in self.err for text in _NO_SERVER)
        return self.rc != 0 and said and not self.by_server and not self.gone

    @property
    def gone(self) -> bool:
        """Return whether the server went away while it was asked: the line may or may not have been run."""
        return not self.by_server and any(text in self.err for text in _GONE)

    @property
    def denied(self) -> bool:
        """Return whether the server belongs to somebody else."""
        return not self.by_server and _NOT_ALLOWED in self.err


Job = tuple[Line, bytes | None]  #: a line, and what its `load-buffer -b NAME DATA` loads


class Transport(Protocol):
    """Runs tmux command lines. One line is run in one turn of the server, unless a command of it waits."""

    def run(self, line: Line, timeout: float, data: bytes | None = None) -> Reply:
        """Run the line and return the answer; `data` is what `load-buffer -b NAME DATA` of the line loads.

        Raises TmuxSilent if there was no answer within `timeout` seconds, and then the line may still be run later;
        TmuxMissing if there is no tmux.
        """
        ...

    def run_all(self, jobs: Sequence[Job], timeout: float) -> Reply:
        """Run lines that do not depend on one another, one behind the other, and return all that they answered.

        Raises as `run` does; then any of them may have been run.
        """
        ...

    def close(self) -> None:
        """Let go of what is held; nothing in tmux ends."""
        ...


class ProcessTransport:
    """One `tmux` process a line. `command` gives the words that begin it, as they are at that moment."""

    def __init__(self, command: Callable[[], Sequence[str]], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = dict(environ)

    def run(self, line: Line, timeout: float, data: bytes | None = None) -> Reply:
        """See Transport. The data goes by standard input; a client that outlives its deadline is killed."""
        process = self._started([*self._command(), *arguments(line)], with_input=data is not None)
        try:
            out, err = process.communicate(data, max(timeout, 0.01))
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise silent(f"no answer to {line[0][0]} within {timeout:g} s") from error
        return Reply(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def run_all(self, jobs: Sequence[Job], timeout: float) -> Reply:
        """See Transport. All of them together have that time."""
        end = time.monotonic() + timeout
        replies = [self.run(line, end - time.monotonic(), data) for line, data in jobs]
        return joined(replies)

    def close(self) -> None:
        """Nothing is held."""

    def version(self, timeout: float) -> str:
        """Return what `tmux -V` says, without the word tmux. Raises TmuxMissing, TmuxSilent."""
        process = self._started([self._command()[0], "-V"], with_input=False)
        try:
            out, _ = process.communicate(None, timeout)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise silent(f"no answer to -V within {timeout:g} s") from error
        return out.decode(errors="replace").removeprefix("tmux ").strip()

    def _started(self, words: list[str], *, with_input: bool) -> subprocess.Popen[bytes]:
        shed_limit()  # the process may become the server
        try:
            return subprocess.Popen(
                at_usual_limit(words, self._environ),
                stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environ,
                cwd="/",  # a server that it starts stays where it was started, and keeps that folder in use
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise missing(f"{words[0]!r} cannot be run: {error.strerror}") from error
        except OSError as error:
            raise silent(f"{words[0]!r} could not be started: {error.strerror}") from error


def joined(replies: Sequence[Reply]) -> Reply:
    """Return several answers as one: it failed where one of them did."""
    return Reply(
        max(reply.rc for reply in replies),
        "".join(reply.out for reply in replies),
        "".join(reply.err for reply in replies),
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a client of ours; its pipes are closed unread, since a server that it started may hold them."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # what was still to be flushed has no reader any more, and nobody wants it
                continue


def silent(reason: str, remedy: str = "") -> TmuxSilent:
    """Return the error for a tmux that could not be asked; `remedy`: where trying again does not help."""
    return TmuxSilent(
        f"tmux: {reason}", remedy or "nothing was concluded from it; try again, or look at `the-loop status`"
    )


def missing(reason: str) -> TmuxMissing:
    """Return the error for a tmux that cannot be used."""
    return TmuxMissing(f"tmux: {reason}", f"install tmux {OLDEST[0]}.{OLDEST[1]} or newer, and have it on PATH")


def version_of(text: str) -> tuple[int, int]:
    """Return (major, minor) of `3.3a`, `next-3.8` or `openbsd-7.5`-like texts; (0, 0) where none is named."""
    numbers = text.rpartition("-")[2].split(".")
    try:
        return int(numbers[0]), int("".join(c for c in numbers[1] if c.isdigit()))
    except (IndexError, ValueError):
        return (0, 0)


def check_version(text: str) -> tuple[int, int]:
    """Return the version. Raises TmuxMissing for one that is too old; `master` counts as new."""
    if text == "master":
        return (99, 0)
    version = version_of(text)
    if version < OLDEST:
        raise missing(f"version {text or 'unknown'} is too old")
    return version


def base_environment(environ: Mapping[str, str], without: frozenset[str]) -> dict[str, str]:
    """Return the environment for tmux clients, and so for a server that one of them starts.

    It lacks the named variables, those of an outer tmux, and the mark of an agent's own processes: a server that
    carried it would be taken for a process of that agent. A UTF-8 locale is made sure of, since in the C locale tmux
    replaces every character outside ASCII in its answers.
    """
    dropped = without | {"TMUX", "TMUX_PANE", MARKER}
    kept = with_utf8({name: value for name, value in environ.items() if name not in dropped})
    kept.setdefault("TERM", "xterm-256color")
    return kept


def our_environment() -> Mapping[str, str]:
    """Return this process's environment."""
    return os.environ


_LEFTOVER_AGE = 60.0  # seconds: no load takes as long


class LoadFile:
    """A file that is open here and read by tmux under its path."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def write(self, data: bytes) -> bool:
        """Let the data be all that it holds; False where the file has gone from its path. Raises OSError."""
        rest, at = memoryview(data), 0
        while at < len(data):
            at += os.pwrite(self._descriptor, rest[at:], at)
        return os.fstat(self._descriptor).st_nlink > 0

    def remove(self) -> None:
        """Remove and close it."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        os.close(self._descriptor)


class LoadFiles:
    """Files of people's texts that only we can read, each for one load: a late line never finds another's text there.

    The next one is made ahead, since making a file takes many times as long as writing to it. Belongs to one thread at
    a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder_name = str(folder)
        self._next: LoadFile | None = None
        self._remove_leftovers()

    def written(self, data: bytes) -> LoadFile | None:
        """Return a file that holds the data; None where that cannot be done, or tmux not read it.

        tmux expands the path as a format, so it must not hold a `#`.
        """
        if "#" in self._folder_name:
            return None
        load, self._next = self._next, None
        with suppress(OSError):
            if load is not None and load.write(data):
                return load
        if load is not None:
            load.remove()  # another process took it for a leftover, or the disk is full
        return self._written_anew(data)

    def _written_anew(self, data: bytes) -> LoadFile | None:
        try:
            load = self._made()
        except OSError:  # the process that takes the line instead needs no file
            return None
        with suppress(OSError):
            if load.write(data):
                return load
        load.remove()
        return None

    def prepare(self) -> None:
        """Make the file for the next load, if there is none; where that cannot be done, the load tries it again."""
        if self._next is None and "#" not in self._folder_name:
            with suppress(OSError):
                self._next = self._made()

    def close(self) -> None:
        """Remove the file that nobody has used."""
        if self._next is not None:
            self._next.remove()
        self._next = None

    def _made(self) -> LoadFile:
        """Make a file, and its folder where that is missing. Raises OSError."""
        import secrets  # whoever lists sessions loads nothing into tmux

        path = f"{self._folder_name}/load-{secrets.token_hex(8)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return LoadFile(path, os.open(path, flags, 0o600))
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LoadFile(path, os.open(path, flags, 0o600))

    def _remove_leftovers(self) -> None:
        """Remove the files of a process that was killed during a load: they hold people's text."""
        oldest = SystemClock().now().timestamp() - _LEFTOVER_AGE
        for path in self._folder.glob("load-*"):
            _remove_if_older(path, oldest)


def _remove_if_older(path: Path, than: float) -> None:
    with suppress(FileNotFoundError):  # another process removes its own
        if path.stat().st_mtime < than:
            path.unlink()
