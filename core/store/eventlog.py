"""The event log: one JSON object a line, appended by any number of processes, rotated by size."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from core.base.clock import Clock, Deadline, iso
from core.base.errors import InvalidValue, StoreBroken
from core.base.files import broken, checked, private_folder, write_all
from core.base.loggers import logger
from core.base.names import STANDING_PREFIX
from core.base.values import dataclass
from core.model.events import check_event
from core.model.message import MessageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from core.base.redaction import Redactor


_LOCK_SECONDS = 0.25
_LOCK_POLL = 0.002


class LogFiles:
    """`path` and the ones put aside before it, under one short lock in `path.lock`, which is never renamed.

    What was written to stays open. Threads may share it. Raises OSError everywhere, and StoreBroken where the folder
    cannot be made.
    """

    def __init__(self, path: Path, clock: Clock, max_bytes: int, keep: int) -> None:
        self.path = path
        self._lock = path.with_name(path.name + ".lock")
        self._clock = clock
        self._max_bytes = max_bytes
        self._keep = keep
        self._appending = threading.Lock()  #: flock does not part threads that share an open file
        self._kept = _Kept()

    def append(self, line: bytes) -> None:
        """Append one line whole, or lines that belong together; or nothing of it.

        One write to a file opened with O_APPEND is whole on a local disk, so a process that sleeps in the lock costs
        others a moment and a rotation, and no line.
        """
        with self._appending:
            try:
                self._append(line)
            except BaseException:
                self._kept.close()
                raise

    def _append(self, line: bytes) -> None:
        lock = self._kept.lock(self._lock)
        alone = self._take(lock)
        found = self._found()
        if alone and found is not None and found.st_size > 0 and found.st_size + len(line) > self._max_bytes:
            self._rotate()
            found = None
        if known := self._kept.is_log(found):
            self._write(self._kept.log, line, alone)
        else:
            self._write(self._kept.open_log(self.path), line, alone)
        if known:
            fcntl.flock(lock, fcntl.LOCK_UN)
        else:
            self._kept.close_lock()  # whoever took the log away may have taken the lock's file with it

    def open_all(self) -> list[BufferedReader]:
        """Open every file for reading, oldest first, at one moment."""
        with self._locked():
            found = (self._open_reader(path) for path in reversed(self._paths()))
            return [reader for reader in found if reader is not None]

    def is_current(self, reader: BufferedReader) -> bool:
        """Return whether the open file is still the one that is written to."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False
        opened = os.fstat(reader.fileno())
        return (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino)

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Take the lock, and tell whether it was to be had before the deadline."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield self._take(descriptor)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> bool:
        deadline = Deadline(self._clock, _LOCK_SECONDS)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if deadline.passed():
                    return False
                self._clock.pause(_LOCK_POLL)
            else:
                return True

    def _found(self) -> os.stat_result | None:
        try:
            return os.lstat(self.path)
        except FileNotFoundError:
            return None

    @staticmethod
    def _open_reader(path: Path) -> BufferedReader | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            return os.fdopen(checked(descriptor, path), "rb")
        except FileNotFoundError:
            return None

    def _write(self, descriptor: int, line: bytes, alone: bool) -> None:
        """Write the line; begin a new one where a power cut left half of one. A full disk gets none of it."""
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        try:
            write_all(descriptor, line)
        except OSError:
            if alone:
                os.ftruncate(descriptor, size)
            raise

    def _paths(self) -> list[Path]:
        """The files by age, the current one first."""
        return [self.path, *(self.path.with_name(f"{self.path.name}.{number}") for number in range(1, self._keep + 1))]

    def _rotate(self) -> None:
        """Put each file one place on; the oldest gives way. With `keep` 0 the current one does."""
        *younger, oldest = self._paths()
        oldest.unlink(missing_ok=True)
        following = oldest
        for path in reversed(younger):
            if path.exists():
                path.rename(following)
            following = path


class _Kept:
    """The lock's file and the log, open, in the process that opened them: a child shares no lock with its parent."""

    def __init__(self) -> None:
        self.log = -1
        self._lock = -1
        self._is: tuple[int, int] | None = None  #: device and inode of the log
        self._pid = 0

    def lock(self, path: Path) -> int:
        """Return the lock's descriptor, opened if need be."""
        if self._pid != os.getpid():
            self.close()
        if self._lock < 0:
            self._lock, self._pid = _opened(path, os.O_RDWR | os.O_CREAT), os.getpid()
        return self._lock

    def is_log(self, found: os.stat_result | None) -> bool:
        """Return whether that file is the log that is open."""
        return found is not None and self._is == (found.st_dev, found.st_ino)

    def open_log(self, path: Path) -> int:
        """Open the log anew, and return its descriptor."""
        self._close_log()
        self.log = _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        found = os.fstat(self.log)
        self._is = (found.st_dev, found.st_ino)
        return self.log

    def close_lock(self) -> None:
        """Close the lock's file, which frees the lock."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def close(self) -> None:
        """Close both."""
        self.close_lock()
        self._close_log()

    def _close_log(self) -> None:
        if self.log >= 0:
            os.close(self.log)
        self.log, self._is = -1, None

    def __del__(self) -> None:
        self.close()


def _opened(path: Path, flags: int) -> int:
    """Open a file that only we can read, and make its folder where that is missing; what else stands there is refused.

    A FIFO would take some lines, and then keep whoever writes waiting.
    """
    private_folder(path.parent)
    return checked(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600), path)


_LOG = logger(__name__)


class Fields(TypedDict, total=False):
    """What an event says besides its name, in the order in which its line has it."""

    level: str  #: `info` where it is left out
    name: str | None  #: of the session
    actor: str | None
    reason: str | None
    detail: str | MessageState | None
    instance: str | None
    generation: int | None
    message: str | None  #: its id
    channel: str | None
    thread: str | None
    text: str | None
    conversation: str | None  #: of a session that was deleted: the id, and the two that follow
    harness: str | None
    cwd: str | None


_ORDER = tuple(Fields.__annotations__)


class EventLog:
    """The event log in `path`, with `path.1` (the latest) to `path.<keep>` behind it.

    A file is put aside before it would grow above `max_bytes`. `include_text` writes messages in full. What a reason, a
    detail or a text may hold of a dying program's output, or of a person's words, loses its secrets first.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        max_bytes: int,
        keep: int,
        include_text: bool = False,
        redactor: Callable[[], Redactor] | None = None,
    ) -> None:
        """`redactor` makes the one that knows this process's secrets; without it they are known by their look alone."""
        self._files = LogFiles(path, clock, max_bytes, keep)
        self._clock = clock
        self._include_text = include_text
        self._make_redactor = redactor
        self._redact: Callable[[str], str] | None = None  #: keeps the latest: most reasons and details are one of a few
        self._counting = threading.Lock()
        self._counts: dict[str, int] = {}

    def emit(self, event: str, **fields: Unpack[Fields]) -> None:
        """Append one event. Raises ValueError for a name that is not in core.model.events, and nothing else.

        A log that cannot be written is reported on the standard log and stops nobody. `text` is written as its length
        and hash unless the operator asked for texts.
        """
        self.emit_all([(event, fields)])

    def emit_all(self, events: Sequence[tuple[str, Fields]]) -> None:
        """Append several events at once. Raises as `emit` does."""
        data = "".join(self._line(event, fields) for event, fields in events).encode()
        with self._counting:
            for event, _ in events:
                self._counts[event] = self._counts.get(event, 0) + 1
        try:
            self._files.append(data)
        except (OSError, StoreBroken) as error:
            for event, fields in events:
                _report(error, event, fields.get("name"))

    def read(
        self, *, follow: bool = False, stopping: Callable[[], bool] = lambda: False, interval: float = 0.2
    ) -> Iterator[dict[str, Any]]:
        """Yield every event that is kept, oldest first; with `follow` also those to come, until `stopping` says so.

        `interval` is in seconds, between two looks for more. A line that is no event is reported on the standard log
        and left out. Raises StoreBroken if the log cannot be read; none at all is an empty one.
        """
        if follow:
            return follow_events(self._files, self._clock, stopping, interval)
        return read_events(self._files)

    def after(self, position: str, most: int) -> Page:
        """Return at most so many kept events behind a position, oldest first; see `events_after`."""
        return events_after(self._files, position, most)

    def latest(self, most: int, wanted: Callable[[Mapping[str, Any]], bool] = lambda event: True) -> Page:
        """Return the latest kept events that are wanted, at most so many, oldest first; see `latest_events`."""
        return latest_events(self._files, most, wanted)

    def stamp(self) -> object:
        """Return what is another thing once events were appended. Raises nothing: a log that is not there has one."""
        try:
            found = self._files.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size

    def counts(self) -> Mapping[str, int]:
        """Return how often this process emitted each event."""
        with self._counting:
            return dict(self._counts)

    def _line(self, event: str, fields: Fields) -> str:
        name, detail, text = fields.get("name"), fields.get("detail"), fields.get("text")
        line = {
            "ts": iso(self._clock.now()),
            "event": check_event(event).value,
            "level": "info",
            "ref": None if name is None else STANDING_PREFIX + name,
            **{key: fields[key] for key in sorted(fields, key=_ORDER.index)},  # type: ignore[literal-required]
            "reason": self._redacted(fields.get("reason")),
            "detail": detail.value if isinstance(detail, MessageState) else self._redacted(detail),
            "text": None if text is None else self._text(text, fields.get("message")),
        }
        return json.dumps({key: value for key, value in line.items() if value is not None}) + "\n"

    def _redacted(self, text: str | None) -> str | None:
        if not text:
            return text
        if self._redact is None:
            from core.base.redaction import Redactor  # costs a third of what a short command takes

            redactor = self._make_redactor() if self._make_redactor else Redactor()
            self._redact = lru_cache(maxsize=8)(redactor.redact)
        return self._redact(text)

    def _text(self, text: str, message: str | None) -> str | dict[str, Any] | None:
        """Return the text, or what identifies it: the message's id, its length in characters, the hash of its UTF-8."""
        if self._include_text:
            return self._redacted(text)
        import hashlib  # loads OpenSSL

        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return {"id": message, "length": len(text), "sha256": digest}


def _report(error: Exception, event: str, name: str | None) -> None:
    extra = {"event": event, "session": name, "reason": str(error)}
    _LOG.error("event log cannot be written", extra=extra)


_LONGEST = 1 << 24  #: bytes of a line; one that is longer is no event


def read_events(files: LogFiles) -> Iterator[dict[str, Any]]:
    """Yield every event that is kept, oldest first. Raises StoreBroken."""
    readers = _open(files)
    try:
        for reader in readers:
            yield from _events(files, reader)
    finally:
        _close(readers)


def follow_events(
    files: LogFiles, clock: Clock, stopping: Callable[[], bool], interval: float
) -> Iterator[dict[str, Any]]:
    """Yield every event that is kept and those to come, oldest first, until `stopping` says so. Raises StoreBroken."""
    readers = _open(files)
    try:
        while not stopping():
            while len(readers) > 1:
                yield from _events(files, readers[0])
                readers.pop(0).close()
            was_current = bool(readers) and files.is_current(readers[0])
            if readers:
                yield from _events(
                    files, readers[0]
                )  # after the question: if it was put aside by then, this is the rest
            if not was_current:
                readers = _newer(files, readers)
            if len(readers) < 2:
                clock.pause(interval)
    finally:
        _close(readers)


START = "0-0"  #: the position before all that is kept


@dataclass(frozen=True)
class Page:
    """Some events of the log, each with its position: where whoever has read it goes on."""

    events: tuple[tuple[str, dict[str, Any]], ...]
    end: str  #: the position behind all that was looked at
    complete: bool = True  #: no more events are kept behind it
    lost: bool = False  #: what the given position names is kept no more; these events begin with the oldest


def events_after(files: LogFiles, position: str, most: int) -> Page:
    """Return at most so many kept events behind a position, oldest first.

    A position is the name of a file and a place in it. Files are called by their first line: that stays when they are
    put aside, copied or restored, and whoever was away goes on where it was. START is before all that is kept.

    Raises InvalidValue for what is no position, StoreBroken.
    """
    name, place = _understood(position)
    readers = _open(files)
    try:
        found = [(called, reader) for reader in readers if (called := _called(files, reader))]
        at = next((index for index, (called, _) in enumerate(found) if called == name), None)
        lost = position != START and (at is None or not _begins_line(files, found[at][1], place))
        if lost:
            at = None
        events, end = list[tuple[str, dict[str, Any]]](), START if lost else position
        for index, (called, reader) in enumerate(found[at or 0 :]):
            reader.seek(place if index == 0 and at is not None else 0)
            for event in _events(files, reader):
                end = f"{called}-{reader.tell()}"
                events.append((end, event))
                if len(events) == most:
                    return Page(tuple(events), end, False, lost)
        return Page(tuple(events), end, True, lost)
    finally:
        _close(readers)


def latest_events(files: LogFiles, most: int, wanted: Callable[[Mapping[str, Any]], bool]) -> Page:
    """Return the latest kept events that are wanted, at most so many, oldest first. Raises StoreBroken.

    The latest file is read first, and no more files than are needed.
    """
    readers = _open(files)
    try:
        if most < 1:
            return Page((), next(filter(None, (_end_of(files, reader) for reader in reversed(readers))), START))
        events, end = list[tuple[str, dict[str, Any]]](), ""
        for reader in reversed(readers):
            called, kept = _called(files, reader), deque[tuple[str, dict[str, Any]]](maxlen=most - len(events))
            reader.seek(0)
            for event in _events(files, reader):
                if wanted(event):
                    kept.append((f"{called}-{reader.tell()}", event))
            end = end or (f"{called}-{reader.tell()}" if called else "")
            events = [*kept, *events]
            if len(events) >= most:
                break
        return Page(tuple(events), end or START)
    finally:
        _close(readers)


def _understood(position: str) -> tuple[str, int]:
    """Return the name of the file and the place in it. Raises InvalidValue."""
    name, _, place = position.partition("-")
    if not (name.isascii() and name.isalnum() and place.isascii() and place.isdecimal() and len(place) < 19):
        raise InvalidValue("this is no position of the event log", allowed="an id that an event came with")
    return name, int(place)


def _called(files: LogFiles, reader: BufferedReader) -> str:
    """Return what a file is called by in positions, "" for one that has no whole line yet. Raises StoreBroken."""
    try:
        reader.seek(0)
        line = reader.readline(_LONGEST)
    except OSError as error:
        raise broken(error, files.path, "read the log") from error
    import zlib

    return f"{zlib.crc32(line):08x}" if line.endswith(b"\n") else ""


def _end_of(files: LogFiles, reader: BufferedReader) -> str:
    """Return the position behind a file's last whole line, "" for one that has none yet. Raises StoreBroken."""
    called = _called(files, reader)
    if not called:
        return ""
    try:
        place = reader.seek(0, os.SEEK_END)
        while not _begins_line(files, reader, place):  # half a line, of a write that is under way or was cut off
            place -= 1
    except OSError as error:
        raise broken(error, files.path, "read the log") from error
    return f"{called}-{place}"


def _begins_line(files: LogFiles, reader: BufferedReader, place: int) -> bool:
    """Return whether a line of the file begins or may begin at that place. Raises StoreBroken."""
    try:
        if place == 0:
            return True
        reader.seek(place - 1)
        return reader.read(1) == b"\n"
    except OSError as error:
        raise broken(error, files.path, "read the log") from error


def _newer(files: LogFiles, readers: list[BufferedReader]) -> list[BufferedReader]:
    """Return the files after the one that was read last, or that one if nothing came after it yet."""
    found = _open(files)
    if not readers:
        return found
    last = _identity(readers[0])
    places = [place for place, reader in enumerate(found) if _identity(reader) == last]
    first_new = places[0] + 1 if places else 0  # so old that it is gone: all there are came after it
    _close(found[:first_new])
    if not found[first_new:]:
        return readers
    _close(readers)
    return found[first_new:]


def _close(readers: list[BufferedReader]) -> None:
    for reader in readers:
        reader.close()


def _identity(reader: BufferedReader) -> tuple[int, int]:
    status = os.fstat(reader.fileno())
    return status.st_dev, status.st_ino


def _open(files: LogFiles) -> list[BufferedReader]:
    try:
        return files.open_all()
    except FileNotFoundError:
        return []  # no folder, so no log yet
    except OSError as error:
        raise broken(error, files.path, "read the log") from error


def _events(files: LogFiles, reader: BufferedReader) -> Iterator[dict[str, Any]]:
    """Yield the whole lines from where the reader stands; half a line is left for the next look."""
    try:
        while line := reader.readline(_LONGEST):
            if not line.endswith(b"\n") and len(line) < _LONGEST:
                reader.seek(-len(line), os.SEEK_CUR)
                return
            if (event := _event(line)) is not None:
                yield event
    except OSError as error:
        raise broken(error, files.path, "read the log") from error


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, dict):
        return event
    if line.strip():
        _LOG.warning("line of the event log is no event", extra={"length": len(line)})
    return None
