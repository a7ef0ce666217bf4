"""What the adapters share: file names of a session's folder, private writes, processes, safe access to JSON, the spool.

The spool holds hook reports that are not taken in yet: one file each, ordered by name. Tools are offered in a file of
MCP servers in Claude Code's form. The second source is the status file that a harness rewrites whenever its state
changes: Claude Code 2.1.197 keeps `sessions/<pid>.json` in its configuration folder. It is undocumented, is the only
source that shows an Escape before the first token, and is removed on every exit but SIGKILL.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from core.base.errors import HarnessNotInstalled, TrustFailed
from core.base.files import open_plain, read_bounded, read_plain
from core.base.processes import answers
from core.base.values import dataclass, replace
from core.model.activity import ActivityState
from core.model.harness import Report, SessionContext, StatusProbe, Working
from core.model.tools import EVERY_TOOL, SERVER

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


def descendants(pid: int) -> list[int]:
    """Return the processes below one; none where it has gone."""
    return _by_proc(pid) if os.path.exists("/proc/thread-self/children") else _by_psutil(pid)  # some kernels lack it


def _by_proc(root: int) -> list[int]:
    """Read /proc, nearest first; psutil would be a megabyte of memory in a service for this alone.

    Linux lists the children of each thread (proc_pid_task(5)), so that what else runs on the machine costs nothing.
    """
    found, level = [], [root]
    while level:
        level = [child for pid in level for child in _children_of(pid)]
        found += level
    return found


def _children_of(pid: int) -> list[int]:
    """Return none of a process that has ended. Raises OSError where no descriptor is left."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                children += map(int, file.readall().split())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return children


def _by_psutil(pid: int) -> list[int]:
    import psutil  # here, since what only lists sessions must not pay for it

    try:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def text_of(mapping: Mapping[str, Any], key: str) -> str:
    """Return a text value, or "" where there is none or it is something else."""
    value = mapping.get(key)
    return _sound(value) if isinstance(value, str) else ""


_MOST = 1 << 53  #: no count, cost or time of a harness is as large: JSON allows numbers that nothing can reckon with


def number_of(mapping: Mapping[str, Any], key: str) -> int | float | None:
    """Return a number from 0 on that can be reckoned with, None where there is none or it is something else."""
    value = mapping.get(key)
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST
    return value if known else None


def whole_of(mapping: Mapping[str, Any], key: str) -> int | None:
    """Return such a number if it is a whole one; see `number_of`."""
    value = number_of(mapping, key)
    return value if isinstance(value, int) else None


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


class Untold:
    """What is answered for a harness whose records do not tell what its agent is doing."""

    def working(self, context: SessionContext) -> Working | None:
        """Return None."""
        return None


SERVERS = "mcp.json"


def install_tools(context: SessionContext) -> None:
    """Write the file that names the server. It holds no secret: the server reads the token from its own file.

    Raises TrustFailed.
    """
    command, *arguments = context.tool_server
    document = {"mcpServers": {SERVER: {"type": "stdio", "command": command, "args": arguments}}}
    try:
        write_private(servers_file(context), json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: the list of its tools cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error


def servers_file(context: SessionContext) -> Path:
    """Return that file."""
    return context.folder / SERVERS


def allowed_tools() -> list[str]:
    """Return the rules that let each of our tools run without a question, and nothing else."""
    return [f"mcp__{SERVER}__{spec.name}" for spec in EVERY_TOOL]


BLOCKED_SUFFIX = ".blocked.json"  #: the turn gate blocked the turn that this report is about
SCHEDULED_PART = ".scheduled."  #: in the name of a report about a prompt of the harness's own schedule
BAD = "bad"  #: folder beside the reports that could not be understood
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")  #: it names a file of the harness's
_ODD = re.compile(rb"[^A-Za-z0-9._-]")
_NAME_LIMIT = 150
_LONGEST = 1 << 24  #: bytes of a report; those that carry a whole file or picture have a few millions
_TOGETHER = 1 << 24  #: bytes of reports that are taken in at once
_WRITTEN_SECONDS = 60.0  #: a report that is not whole by then never will be, unless its writer still runs
_WRITTEN_LATEST = 86_400.0  #: seconds after which another process has its writer's number
_WRITER = re.compile(r"\.[0-9]+-([1-9][0-9]{0,8})-")  #: a hook names what it writes by its process
_NO_FILE = frozenset({errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EOVERFLOW})


@dataclass(frozen=True)
class BadReport:
    """What lay in the spool and is no report: its name, printable, and where it has been moved to."""

    name: str
    moved_to: Path
    reason: str


@dataclass(frozen=True)
class Reports:
    """What lay in the spool: the reports in order, what had to be put aside, and whether there is `more`.

    That is so where they are so large together that they are taken in one part after another.
    """

    reports: tuple[Report, ...]
    bad: tuple[BadReport, ...] = ()
    more: bool = False


def awaits_reading(entry: os.DirEntry[str], now: float) -> bool:
    """Return whether the entry of a spool is a report, or what is left of one whose writer has ended. Raises OSError.

    `now`: seconds since the epoch.
    """
    return _is_report(entry.name) or _is_left(entry.name, lambda: entry.stat(follow_symlinks=False).st_mtime, now)


def _is_left(name: str, written_at: Callable[[], float], now: float) -> bool:
    """Return whether it is a half-written report that nobody goes on with: a hook writes one in milliseconds.

    A hook that was stopped in the middle goes on after that: a machine that slept has a clock far ahead.
    """
    if not (name.startswith(".") and name.endswith(".tmp")):
        return False
    try:
        age = abs(now - written_at())
    except FileNotFoundError:
        return False  # it is whole by now
    return age > (_WRITTEN_LATEST if _is_being_written(name) else _WRITTEN_SECONDS)


def _is_being_written(name: str) -> bool:
    """Return whether the hook that writes it is still there."""
    writer = _WRITER.match(name)
    return writer is not None and answers(int(writer[1]))


def _written_at(path: Path) -> float:
    return os.lstat(path).st_mtime


def read_reports(folder: Path, instance: str, now: float | None = None) -> Reports:
    """Return an instance's reports in the order of their names, or the first of them; half-written ones are not seen.

    A folder that is not there holds none. What is no JSON object in a plain file of a sound name and size, or names a
    conversation by what is no id, is moved to `bad/` and told of; so is a half-written one that is a minute old (`now`:
    seconds since the epoch, None: such are not looked at).
    Raises OSError where the folder or a report cannot be read: that says nothing about whether reports are there.
    """
    try:
        there = os.listdir(folder)
    except FileNotFoundError:
        return Reports(())
    names = sorted(name for name in there if _is_report(name))
    left = [path for name in there if now and _is_left(name, partial(_written_at, path := folder / name), now)]
    bad = [put_aside(path, "it was never finished: whoever wrote it has ended") for path in left]
    reports: list[Report] = []
    size = 0
    for name in names:
        path = folder / name
        try:
            content = _content(path)
            size += len(content)
            reports.append(Report(instance, name, _payload(content)))
        except FileNotFoundError:
            continue  # another process has taken it in
        except (ValueError, RecursionError) as error:
            bad.append(put_aside(path, str(error)))
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise
            bad.append(put_aside(path, error.strerror or str(error)))
        if size >= _TOGETHER:
            return Reports(tuple(reports), tuple(bad), more=name != names[-1])
    return Reports(tuple(reports), tuple(bad))


def discard(folder: Path, report: Report) -> None:
    """Remove a report that has been taken in; absent is fine. Raises OSError."""
    (folder / report.name).unlink(missing_ok=True)


def _is_report(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _content(path: Path) -> bytes:
    """Return what the file holds. Raises ValueError for a name that is no report's, OSError."""
    if not _NAME.fullmatch(path.name):
        raise ValueError("its name is no report's")
    return read_plain(path, _LONGEST)


def _payload(content: bytes) -> dict[str, Any]:
    """Return the report's object. Raises ValueError for what is none."""
    payload = json.loads(content)
    if not isinstance(payload, dict):
        raise ValueError("it is no JSON object")
    session_id = payload.get("session_id")
    if isinstance(session_id, str) and session_id and not _SESSION_ID.fullmatch(session_id):
        raise ValueError("its session_id is no id")
    return payload


def put_aside(path: Path, reason: str) -> BadReport:
    """Move a report to `bad/`, for that reason. Raises OSError."""
    folder = path.parent / BAD
    folder.mkdir(mode=0o700, exist_ok=True)
    name = _ODD.sub(lambda found: b"%%%02x" % found[0][0], os.fsencode(path.name)).decode()[:_NAME_LIMIT]
    target, number = folder / name, 1
    while os.path.lexists(target):
        target, number = folder / f"{name}.{number}", number + 1
    try:
        path.rename(target)
    except FileNotFoundError:
        return BadReport(name, target, f"{reason}; another process put it aside")
    return BadReport(name, target, reason)


_STATUS_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST_STATUS = 1 << 20  #: bytes; it has some hundred
_STATES = {
    "idle": ActivityState.IDLE,
    "shell": ActivityState.BUSY,  # idle, and a background shell of it runs
    "busy": ActivityState.BUSY,
    "waiting": ActivityState.PERMISSION,  # questions show the same words: an Enter would answer either
}


def read_opinion(path: Path) -> StatusProbe | None:
    """Return what a status file says; None where it is absent, unreadable or says something unknown."""
    found = read_status(path)
    return opinion_in(*found) if found is not None else None


def read_status(path: Path) -> tuple[Mapping[str, Any], datetime] | None:
    """Return a status file's object and when it was written (UTC); None where it is absent, unreadable or no object."""
    try:
        with open_plain(path) as file:
            written_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            content = json.loads(read_bounded(file, _LONGEST_STATUS))
    except (OSError, OverflowError, ValueError, RecursionError):
        return None
    return (content, written_at) if isinstance(content, dict) else None


def opinion_in(content: Mapping[str, Any], written_at: datetime) -> StatusProbe | None:
    """Return the opinion that a status object expresses, and which conversation it is about; None for none."""
    opinion = probe_of(content)
    return replace(opinion, written_at=written_at, session_id=_conversation(content)) if opinion else None


def _conversation(content: Mapping[str, Any]) -> str:
    """Return the id of the conversation, which names a file; "" for what is none."""
    found = text_of(content, "sessionId")
    return found if _STATUS_SESSION_ID.fullmatch(found) else ""


def probe_of(content: Mapping[str, Any]) -> StatusProbe | None:
    """Return the opinion that a status object expresses, or None."""
    status = text_of(content, "status")
    state = _STATES.get(status)
    if state is None:
        return None
    if status == "shell":
        return StatusProbe(state, turn_over=True)
    return StatusProbe(state, text_of(content, "waitingFor"), turn_over=status == "idle")
