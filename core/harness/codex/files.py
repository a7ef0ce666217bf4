"""Read what Codex writes: a conversation's record (its rollout), which conversation a process has open, and its screen.

- A rollout is made at the first turn, `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl` by local time, and goes on in the
  same file at a resume. Each line has `timestamp`, `type` and `payload`. Seen of 0.159.3 and 0.171.0.
- A process holds `thread-writer-locks/ID.lock` open for each conversation that it has loaded, from its boot on. After
  `/new` these are two.
- The input line stands behind the last `›` at the left edge, above a line that names model and folder.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.clock import from_epoch
from core.base.files import open_plain
from core.base.values import dataclass, replace
from core.harness.base import list_of, object_of, text_of
from core.harness.records import LATEST, Lines, entry_of, holds, moment_of, written_after
from core.model.activity import Failure
from core.model.harness import HarnessEvent, Retry, TextTaken, TurnFailed, TurnSeen
from core.model.pane import InputLine, View

_LOCKS = "thread-writer-locks"
_DAY = 86_400  #: seconds
_TIMED = re.compile(r"(?P<high>[0-9a-f]{8})-(?P<low>[0-9a-f]{4})-7[0-9a-f]{3}-")  #: an id that begins with its time
_TAIL = 1 << 20  #: bytes in which the latest beginning or end of a turn stands, else the turn goes on
_EDGE = re.compile(rb'"type":"event_msg","payload":\{"type":"(task_started|task_complete|turn_aborted)"')


@dataclass(frozen=True)
class CodexFiles:
    """Codex's files under one home."""

    home: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "CodexFiles":
        """Return the files that a process with this environment would use."""
        given, home = environ.get("CODEX_HOME"), environ.get("HOME")
        return cls(Path(given) if given else (Path(home) if home else Path.home()) / ".codex")

    @property
    def sessions(self) -> Path:
        """The folder of conversations."""
        return self.home / "sessions"

    def conversation(self, session_id: str) -> Path | None:
        """Return the conversation's record; None where there is none yet. Raises OSError."""
        for folder in self._folders(session_id):
            found = _of_id(folder, session_id)
            if found is not None:
                return found
        return None

    def _folders(self, session_id: str) -> Iterator[Path]:
        """Yield where its record may lie: the days around the one in its id, or all of them where it names none."""
        timed = _TIMED.match(session_id)
        seconds = int(timed["high"] + timed["low"], 16) / 1000 if timed else 0.0
        days = [from_epoch(seconds + shift) for shift in (0, -_DAY, _DAY)] if timed else []
        if not days or None in days:
            for folder, _, _ in os.walk(self.sessions):
                yield Path(folder)
            return
        for day in filter(None, days):
            yield self.sessions / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}"


def _of_id(folder: Path, session_id: str) -> Path | None:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    ending = f"-{session_id}.jsonl"
    return next(
        (folder / name for name in sorted(names) if name.startswith("rollout-") and name.endswith(ending)), None
    )


def open_conversations(files: CodexFiles, pids: list[int]) -> tuple[str, ...]:
    """Return the ids of the conversations that one of these processes has open; () where none tells (Linux alone)."""
    folder = str(files.home / _LOCKS)
    for pid in pids:
        found = []
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                place, _, lock = os.readlink(f"/proc/{pid}/fd/{name}").rpartition("/")
                if lock.endswith(".lock") and not lock.startswith(".") and os.path.realpath(folder) == place:
                    found.append(lock.removesuffix(".lock"))
        except OSError:
            continue  # it has ended, or opened and closed a file meanwhile: it is asked again
        if found:
            return tuple(sorted(found))
    return ()


@dataclass(frozen=True)
class Edge:
    """The latest beginning or end of a turn in a record."""

    over: bool
    at: datetime | None


def latest_edge(path: Path) -> Edge | None:
    """Return it; None where the record's latest lines hold none, and so a turn goes on. Raises OSError."""
    with open_plain(path) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - _TAIL))
        tail = stream.read(_TAIL)
    edges = list(_EDGE.finditer(tail))
    if not edges:
        return None
    last = edges[-1]
    begin = tail.rfind(b"\n", 0, last.start()) + 1
    line = entry_of(tail[begin : tail.find(b"\n", begin)])
    return Edge(last[1] != b"task_started", moment_of(line) if line else None)


class _Record:
    """The new entries of a conversation whose file may not be there yet."""

    def __init__(self, find: Callable[[], Path | None], opened: Callable[[Path], Lines]) -> None:
        """`opened` opens a file that is there now; one that comes later is read from its start."""
        self._find = find
        path = find()
        self._lines = opened(path) if path is not None else None

    def new(self) -> Iterator[Mapping[str, Any]]:
        """Yield what was added since the last call. Raises StoreBroken."""
        if self._lines is None:
            path = self._find()
            if path is None:
                return
            self._lines = Lines(path, from_start=True)
        for line in self._lines.new():
            entry = entry_of(line)
            if entry is not None:
                yield entry


class Rollout:
    """Evidence of which texts turns have taken: a Transcript (core.model.harness)."""

    def __init__(self, find: Callable[[], Path | None], *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read."""
        self._record = _Record(find, lambda path: Lines(path, from_start=from_start))
        self._turn = ""  #: of the latest text

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where it cannot be read."""
        return tuple(event for entry in self._record.new() for event in self._events(entry))

    def _events(self, entry: Mapping[str, Any]) -> tuple[HarnessEvent, ...]:
        payload = object_of(entry, "payload")
        item = _completed(entry, payload)
        if text_of(item, "type") != "UserMessage":
            return ()
        turn = text_of(payload, "turn_id")
        begins, self._turn = turn != self._turn, turn
        return (TextTaken(_text(item), begins=begins, at=moment_of(entry), turn=turn),)


class RolloutTurns:
    """The turns that a conversation's record shows: a TurnRecord (core.model.harness)."""

    def __init__(self, find: Callable[[], Path | None], *, since: datetime) -> None:
        """Begin with what was written after that moment. Raises StoreBroken where it cannot be read."""
        self._since = since
        self._turn: TurnSeen | None = None
        self._record = _Record(find, lambda path: Lines(path, from_start=written_after(path, since), latest=LATEST))

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written, each as it stands now, in their order.

        Raises StoreBroken where the record cannot be read.
        """
        changed: dict[datetime, TurnSeen] = {}
        for entry in self._record.new():
            at = moment_of(entry)
            if at is None or at <= self._since:
                continue
            after = _followed(self._turn, entry, at)
            if after is not None and after != self._turn:
                self._turn = changed[after.began_at] = after
        return tuple(changed.values())


def _followed(turn: TurnSeen | None, entry: Mapping[str, Any], at: datetime) -> TurnSeen | None:
    """Return the turn with what the line adds, or the new one that it begins; None where it is about no turn."""
    payload = object_of(entry, "payload")
    kind, name = text_of(payload, "type"), text_of(payload, "turn_id")
    if text_of(entry, "type") != "event_msg":
        return turn
    if kind == "task_started":
        return TurnSeen(at, (name,), ())
    if turn is None or name != turn.turn:
        return turn  # a job of an earlier turn has ended
    if kind == "turn_aborted":
        return replace(turn, over_at=at, cut_off=True)
    if kind == "task_complete":
        error = object_of(payload, "error")
        failed = _failed(error, name) if error else None
        answer = text_of(payload, "last_agent_message") or turn.answer
        return replace(turn, over_at=at, answered=True, answer=answer, failed=failed)
    item = _completed(entry, payload)
    if text_of(item, "type") == "UserMessage":
        return turn if turn.answered else replace(turn, prompts=(*turn.prompts, _text(item)))
    if text_of(item, "type") == "AgentMessage":
        return replace(turn, answered=True, answer=_text(item))
    return turn


def _completed(entry: Mapping[str, Any], payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the item that the line tells of, an empty one for every other line."""
    done = text_of(entry, "type") == "event_msg" and text_of(payload, "type") == "item_completed"
    return object_of(payload, "item") if done else {}


def _text(item: Mapping[str, Any]) -> str:
    parts = (text_of(part, "text") for part in list_of(item, "content") if isinstance(part, dict))
    return "\n".join(part for part in parts if part)


def _failed(error: Mapping[str, Any], turn: str) -> TurnFailed:
    info = error.get("codex_error_info")
    name, details = next(iter(info.items()), ("", {})) if isinstance(info, dict) else (info, {})
    name = name if isinstance(name, str) else ""
    status = details.get("http_status_code") if isinstance(details, dict) else None
    failure = _BY_STATUS.get(status) if isinstance(status, int) else None
    return TurnFailed(name or "other", text_of(error, "message"), failure or _FAILURES.get(name, Failure.OTHER), turn)


_FAILURES = {
    "unauthorized": Failure.LOGIN,
    "usage_limit_exceeded": Failure.LIMIT,
    "context_window_exceeded": Failure.LENGTH,
    "server_overloaded": Failure.SERVICE,
    "internal_server_error": Failure.SERVICE,
    "http_connection_failed": Failure.SERVICE,
    "response_stream_connection_failed": Failure.SERVICE,
    "response_stream_disconnected": Failure.SERVICE,
    "response_too_many_failed_attempts": Failure.SERVICE,
}
_BY_STATUS = {
    401: Failure.LOGIN,
    402: Failure.ACCOUNT,
    403: Failure.ACCOUNT,
    404: Failure.MODEL,
    429: Failure.LIMIT,
}


def has_turn(path: Path) -> bool:
    """Return whether the record holds a turn. Raises TrustFailed where it cannot be read."""
    return holds(path, lambda entry: text_of(object_of(entry, "payload"), "type") == "task_started")


def has_answer(path: Path) -> bool:
    """Return whether the record holds an answer of the model's. Raises TrustFailed where it cannot be read."""

    def answers(entry: Mapping[str, Any]) -> bool:
        return text_of(_completed(entry, object_of(entry, "payload")), "type") == "AgentMessage"

    return holds(path, answers)


_COMPOSER = re.compile(r"[›!](?:\s|$)")
_KEYS = re.compile(r"\s*(?:press )?enter (?:to )?[a-z]+\b.*|\s*esc (?:to )?[a-z]+\b.*", re.IGNORECASE)
_SHELL = "shell mode"


def read_input_line(view: View) -> InputLine | None:
    """Return the line in which a message is written, None where the screen does not show it.

    A dialog has a `›` at the choice that its cursor is at, and ends in a line that names keys.
    """
    rows = view.rows
    while rows and not rows[-1].strip():
        rows = rows[:-1]
    foot = next((number for number in range(len(rows) - 1, -1, -1) if not rows[number].strip()), 0)
    top = next((number for number in range(foot, -1, -1) if number < len(rows) and _COMPOSER.match(rows[number])), None)
    if top is None or any(_KEYS.fullmatch(row) for row in rows[foot:]):
        return None
    text = "\n".join(view.typed(row) for row in range(top, foot))[1:].strip()
    return InputLine(text, _SHELL if rows[top].startswith("!") else "")


_LOGIN = re.compile(r"Sign in with ChatGPT")


def asks_for_login(dialog: str) -> bool:
    """Return whether a dialog's text asks how to log in."""
    return _LOGIN.search(dialog) is not None


_WORKS_WITH = re.compile(r"\s+\S.* · \S")


def reads(screen: str) -> bool:
    """Return whether a screen shows the input line, with model and folder below it: these stand there last."""
    rows = [row for row in screen.splitlines() if row.strip()]
    return read_input_line(View(tuple(screen.splitlines()))) is not None and any(map(_WORKS_WITH.match, rows[-2:]))


_RETRY = re.compile(r"^[•◦] Reconnecting\.\.\. (?P<attempt>\d{1,4})/(?P<most>\d{1,4}) \(")
_WHY = re.compile(r"^\s+└ (?P<reason>.+?)\s*$")


def retry_of(screen: str) -> Retry | None:
    """Return what the screen tells of a request that is tried again by itself; None where it tells of none."""
    lines = [line for line in screen.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        found = _RETRY.match(line)
        if found:
            why = _WHY.match(lines[number + 1]) if number + 1 < len(lines) else None
            return Retry(why["reason"] if why else "", int(found["attempt"]), int(found["most"]))
    return None
