"""Read a conversation's record: a file of JSON lines that a harness adds to, and that may have any size."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.clock import from_iso
from core.base.errors import StoreBroken, TrustFailed
from core.base.files import open_plain, too_large, whole_lines
from core.harness.base import text_of
from core.model.harness import Usage

_CHUNK = 1 << 16
LATEST = 1 << 25  #: bytes of a conversation in which turns are looked for that nobody has told of
_LONGEST_LINE = 1 << 26  #: bytes; one that holds pictures has some millions
_MOST_UNREAD = 1 << 30  #: bytes; a conversation of weeks has some hundred millions


class Lines:
    """The lines of a conversation's file that are new since the last look."""

    def __init__(self, path: Path, *, from_start: bool, latest: int = _MOST_UNREAD) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read.

        From its start on no more is read than the `latest` so many bytes; what is cut off there is no whole line.
        """
        self.path = path
        try:
            self._offset = _start(path, latest) if from_start else _end_of_last_line(path)
        except OSError as error:
            raise _unreadable(path, error) from error

    def new(self) -> Iterator[bytes]:
        """Yield the whole lines that were added since the last call; a file that is not there yet has none.

        Raises StoreBroken where the file is there and cannot be read.
        """
        try:
            yield from self._read_on()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _read_on(self) -> Iterator[bytes]:
        with open_plain(self.path) as stream:
            end = stream.seek(0, os.SEEK_END)
            if end < self._offset:  # a new file under the old name
                self._offset = 0
            if end - self._offset > _MOST_UNREAD:
                raise too_large(_MOST_UNREAD)
            stream.seek(self._offset)
            for offset, line in whole_lines(stream, _LONGEST_LINE, _MOST_UNREAD):
                self._offset = offset
                yield line


PART = 1 << 24  #: bytes of a record that one look reads of what it has not read yet


class Parts:
    """A record's lines from its start on, for what is summed over all: PART bytes a look, none of them twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0  #: behind the last line that was read
        self.whole = False  #: whether the last look came to the record's end
        self._file: tuple[int, int] | None = None

    def is_replaced(self) -> bool:
        """Return whether what was read is not what stands there now: its lines count no more. Raises StoreBroken."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return self._file is not None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return self._file not in (None, (found.st_dev, found.st_ino)) or found.st_size < self.offset

    def new(self, most: int = PART) -> Iterator[bytes]:
        """Yield the whole lines that follow those of the last call, until they are `most` bytes together.

        Raises StoreBroken where the record is there and cannot be read.
        """
        begin, self.whole = self.offset, False
        try:
            with open_plain(self.path) as stream:
                found = os.fstat(stream.fileno())
                self._file = (found.st_dev, found.st_ino)
                stream.seek(begin)
                for offset, line in whole_lines(stream, _LONGEST_LINE, _MOST_UNREAD):
                    self.offset = offset
                    yield line
                    if offset - begin >= most:
                        return
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self.whole = True


class Tally:
    """What a conversation has used: each request once, however often its message is written down."""

    def __init__(self, latest: int | None = None) -> None:
        """`latest`: how many messages are remembered, None for all; a message that is written again must be known."""
        self.by_model: dict[str, Usage] = {}
        self.turn = Usage()
        self._latest = latest
        self._counted: dict[str, tuple[str, Usage, bool]] = {}  #: by the message's id: model, usage, of the turn

    def begin(self) -> None:
        """A turn begins; what is written again of an earlier message counts for the turn that it was counted for."""
        self.turn = Usage()
        self._counted = {message: (*told[:2], False) for message, told in self._counted.items()}

    def count(self, message: str, model: str, usage: Usage, *, in_turn: bool = True) -> None:
        """Count a request; what was counted for its message ("": it has no id) before counts no more."""
        before = self._counted.pop(message, None)
        if before is not None:
            in_turn = before[2]
            self._add(before[0], Usage(-before[1].input, -before[1].output, -before[1].cached), in_turn)
        self._add(model, usage, in_turn)
        if message:
            self._counted[message] = (model, usage, in_turn)
        while self._latest is not None and len(self._counted) > self._latest:
            self._counted.pop(next(iter(self._counted)))

    def total(self) -> Usage:
        """Return all of it."""
        return sum(self.by_model.values(), Usage())

    def _add(self, model: str, usage: Usage, in_turn: bool) -> None:
        self.by_model[model] = self.by_model.get(model, Usage()) + usage
        if in_turn:
            self.turn += usage


def _start(path: Path, latest: int) -> int:
    """Return where the file's latest so many bytes begin; 0 where it has no more, or is not there. Raises OSError."""
    try:
        return max(0, path.stat().st_size - latest) if latest < _MOST_UNREAD else 0
    except FileNotFoundError:
        return 0


def written_after(path: Path, moment: datetime) -> bool:
    """Return whether the file was written after that moment; True where there is none yet. Raises StoreBroken."""
    try:
        return path.stat().st_mtime > moment.timestamp()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StoreBroken:
    return StoreBroken(
        f"the conversation cannot be read: {path}: {error.strerror}", "make it a readable file, then try again"
    )


def moment_of(entry: Mapping[str, Any]) -> datetime | None:
    """Return when the line was written, None where it does not say so in a form that we know."""
    try:
        return from_iso(text_of(entry, "timestamp"))
    except ValueError:
        return None


def holds(path: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether a line of the file is wanted. Raises TrustFailed where the file cannot be read."""
    try:
        with open_plain(path) as stream:
            lines = whole_lines(stream, _LONGEST_LINE, _MOST_UNREAD)
            return any(wanted(entry) for _, line in lines if (entry := entry_of(line)) is not None)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise TrustFailed(
            f"the conversation cannot be read: {path}: {error.strerror}", "make the file readable, then try again"
        ) from error


def entry_of(line: bytes) -> Mapping[str, Any] | None:
    """Return the line's JSON object, None where it is none."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _end_of_last_line(path: Path) -> int:
    """Return the offset behind the file's last line break; 0 where there is no file. Raises OSError."""
    try:
        stream = open_plain(path)
    except FileNotFoundError:
        return 0
    with stream:
        size = end = stream.seek(0, os.SEEK_END)
        while end > 0:
            if size - end > _LONGEST_LINE:
                raise too_large(_LONGEST_LINE)
            begin = max(0, end - _CHUNK)
            stream.seek(begin)
            found = stream.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0
