"""Reading the event log, across rotations and, if asked, on and on."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Any

from core.clock import Clock
from core.store.files import broken
from core.store.logfiles import LogFiles

_LONGEST = 1 << 24  #: bytes of a line; one that is longer is no event
_log = logging.getLogger(__name__)


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
        _log.warning("line of the event log is no event", extra={"length": len(line)})
    return None
