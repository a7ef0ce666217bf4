"""The sessions' records: one JSON file each. Read by every command, so nothing heavy is imported here."""

import os
from pathlib import Path

from core.clock import SystemClock
from core.domain.session import SessionRecord
from core.errors import InvalidValue, RecordUnreadable
from core.names import check_name
from core.paths import StatePaths
from core.plainfiles import read_plain
from core.store.files import broken, private_folder, remove_file, write_private
from core.store.recordcodec import Malformed, decode_record, encode_record

_SUFFIX = ".json"
_LONGEST = 1 << 22  #: bytes; briefs are the longest part of a record
_TICK_SECONDS = 0.1  #: longer than a file system's clock stands still
_State = tuple[int, int, int, int, int]  #: device, inode, size, times of the content and of the inode


class RecordFiles:
    """Implements Records in `local/standing`. A file that cannot be understood is neither replaced nor removed."""

    def __init__(self, paths: StatePaths) -> None:
        self._folder = paths.records
        self._prefix = f"{paths.records}{os.sep}"
        self._last: dict[str, tuple[_State, SessionRecord]] = {}  #: what each file held when it was read last

    def read(self, name: str) -> SessionRecord | None:
        """Return the record, or None if there is none. Raises RecordUnreadable, InvalidValue."""
        path = f"{self._prefix}{check_name(name)}{_SUFFIX}"
        try:
            state = _state(os.lstat(path))
            known = self._last.get(name)
            if known is not None and known[0] == state:
                return known[1]
            record = decode_record(read_plain(Path(path), _LONGEST), name)
            if _rests(state):
                self._last[name] = (state, record)
            return record
        except FileNotFoundError:
            self._last.pop(name, None)
            return None
        except (Malformed, OSError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise RecordUnreadable(name, path, reason) from error

    def all(self) -> tuple[SessionRecord | RecordUnreadable, ...]:
        """Return every record by name, unreadable ones as the error. Raises StoreBroken if the folder cannot be listed.

        A file whose name is no session's is nobody's record.
        """
        found = (self._read_or_error(name) for name in self._names())
        return tuple(record for record in found if record is not None)

    def write(self, record: SessionRecord) -> None:
        """Replace the file in one step. Raises StoreBroken, and RecordUnreadable rather than overwrite such a file."""
        path = self._path(record.name)
        private_folder(self._folder)
        self.read(record.name)
        write_private(path, encode_record(record))

    def remove(self, name: str) -> None:
        """Remove the file; absent is fine. Raises StoreBroken, and RecordUnreadable rather than remove such a file."""
        if self.read(name) is not None:
            remove_file(self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / (check_name(name) + _SUFFIX)

    def _names(self) -> list[str]:
        try:
            files = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise broken(error, self._folder, "list the records") from error
        return sorted(name for file in files if file.endswith(_SUFFIX) and _is_name(name := file.removesuffix(_SUFFIX)))

    def _read_or_error(self, name: str) -> SessionRecord | RecordUnreadable | None:
        try:
            return self.read(name)
        except RecordUnreadable as error:
            return error


def _state(found: os.stat_result) -> _State:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _rests(state: _State) -> bool:
    """Tell whether a file of that state would show by its times that it was changed since: they go by ticks."""
    return SystemClock().now().timestamp() - max(state[3], state[4]) / 1e9 > _TICK_SECONDS


def _is_name(text: str) -> bool:
    try:
        return check_name(text) == text
    except InvalidValue:
        return False
