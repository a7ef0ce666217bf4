"""Read what Gemini CLI writes: a conversation's JSONL file, and its screen (0.53.0 to 0.61.0).

- The file of a conversation is there from the start on. Its name tells the minute of the start. A resume in another
  minute makes a second file of that id, which stays without a turn: the conversation goes on in the first.
- A line holds a message (`id`, `type`, `content`), what is told of the conversation (`$set`; with `messages` these
  take the place of all earlier ones), or how far it was taken back (`$rewindTo`). A message that gets its tool calls'
  results is written once more under its id. An Escape is the message `Request cancelled.` of the type info, wherever
  the turn was. Then the last prompt may be written again behind what describes the session: no turn has taken that.
- No line tells that a turn is over: the AfterAgent hook does, but after an Escape in a tool or at a dialog.
- The input line stands below the last line across the screen. A dialog, in a box, stands in its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.errors import TrustFailed
from core.base.files import open_plain, whole_lines
from core.base.values import dataclass, replace
from core.harness.base import list_of, object_of, text_of
from core.harness.records import Lines, entry_of, moment_of
from core.model.activity import ActivityState, Failure
from core.model.harness import (
    HarnessEvent,
    StatusProbe,
    TextTaken,
    TurnEnded,
    TurnFailed,
    TurnSeen,
)
from core.model.pane import InputLine, View

_LONGEST_LINE = 1 << 26  #: bytes; one that repeats a whole conversation has some millions
_MOST = 1 << 30  #: bytes of a file
_LATEST = 1 << 22  #: bytes in which the latest turn is looked for
_MESSAGE, _RESUMED = b'{"id":', b'{"$set":{"sessionId":'  #: begin lines
_CANCELLED = "Request cancelled."
_ABOUT = ("<session_context>", "<hook_context>")  #: begin what Gemini itself tells its model
_FAILED = re.compile(r"\[API Error: (?P<said>.*)\]\s*\Z", re.DOTALL)
_STATUS = re.compile(r'"code": ?(\d{3})')
_SAID = re.compile(r'"message": ?"((?:[^"\\]|\\.){1,400})')

_Entry = Mapping[str, Any]


def find_conversation(home: Path, session_id: str) -> Path | None:
    """Return the file of that conversation below a home of Gemini's, None where there is none.

    Of several the largest: a resume leaves others behind that hold no turn.
    """
    found = (home / ".gemini" / "tmp").glob(f"*/chats/session-*-{session_id[:8]}.jsonl")
    return max((path for path in found if _begins(path, session_id)), key=_size, default=None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _begins(path: Path, session_id: str) -> bool:
    try:
        with open_plain(path) as stream:
            entry = entry_of(stream.readline(1 << 16))
    except OSError:
        return False
    return entry is not None and text_of(entry, "sessionId") == session_id


def said_by(entry: _Entry) -> str:
    """Return the text of a message: a text, or the text parts of a list without the model's thoughts."""
    content = entry.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("thought") is not True]
        return "".join(text_of(part, "text") for part in parts)
    return text_of(entry, "content")


def typed_in(entry: _Entry) -> str:
    """Return what a person typed, or we did; "" for any other message."""
    text = said_by(entry) if text_of(entry, "type") == "user" else ""
    return "" if text.lstrip().startswith(_ABOUT) else text


def answer_of(entry: _Entry) -> str:
    """Return what the agent says in a message; "" for any other message."""
    return said_by(entry).strip() if text_of(entry, "type") == "gemini" else ""


def _is_cancel(entry: _Entry) -> bool:
    return text_of(entry, "type") == "info" and text_of(entry, "content") == _CANCELLED


def end_of(payload: _Entry) -> TurnFailed | TurnEnded:
    """Return how the turn ended, by the latest messages that the reporter has put into a report."""
    for entry in reversed([one for one in list_of(payload, "records") if isinstance(one, dict)]):
        failed = failure_in(entry)
        if failed is not None:
            return failed
        if text_of(entry, "type") in ("user", "gemini") or _is_cancel(entry):
            return TurnEnded(answer_of(entry))
    return TurnEnded("")


def failure_in(entry: _Entry) -> TurnFailed | None:
    """Return the failure that a message tells of, None for any other message."""
    found = _FAILED.search(said_by(entry)) if text_of(entry, "type") == "error" else None
    if found is None:
        return None
    status, message = _STATUS.search(found["said"]), _SAID.search(found["said"])
    code = status[1] if status else ""
    return TurnFailed(code or "error", message[1] if message else found["said"], _FAILURES.get(code, Failure.OTHER))


_FAILURES = {
    "401": Failure.LOGIN,
    "403": Failure.LOGIN,
    "404": Failure.MODEL,
    "429": Failure.LIMIT,
    "500": Failure.SERVICE,
    "503": Failure.SERVICE,
}


# ---------------------------------------------------------------- read forward


class _Messages:
    """The messages of a conversation's file that are new since the last look; it is looked for until it is there."""

    def __init__(self, home: Path, session_id: str, *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read."""
        self._home, self._session_id = home, session_id
        path = find_conversation(home, session_id)
        self._lines = None if path is None else Lines(path, from_start=from_start)

    def new(self) -> Iterator[_Entry]:
        """Yield the messages that were added since the last call. Raises StoreBroken where the file cannot be read."""
        if self._lines is None:
            path = find_conversation(self._home, self._session_id)
            if path is None:
                return
            self._lines = Lines(path, from_start=True)
        for line in self._lines.new():
            entry = entry_of(line) if line.startswith(_MESSAGE) else None
            if entry is not None:
                yield entry


class Conversation:
    """Evidence of which texts turns have taken: a Transcript (core.model.harness)."""

    def __init__(self, home: Path, session_id: str, *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read."""
        self._messages = _Messages(home, session_id, from_start=from_start)

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where the file is there and cannot be read."""
        return tuple(event for entry in self._messages.new() for event in _events(entry))


def _events(entry: _Entry) -> tuple[HarnessEvent, ...]:
    text = typed_in(entry)
    if text:
        return (TextTaken(text, at=moment_of(entry)),)
    return (TurnEnded(""),) if _is_cancel(entry) else ()


class Turns:
    """The turns that a conversation's file shows: a TurnRecord (core.model.harness)."""

    def __init__(self, home: Path, session_id: str, *, since: datetime) -> None:
        """Tell of what was written after that moment."""
        self._since = since
        self._turn: TurnSeen | None = None
        self._messages = _Messages(home, session_id, from_start=True)

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written, each as it stands now, in their order.

        Raises StoreBroken where the file is there and cannot be read.
        """
        changed: dict[datetime, TurnSeen] = {}
        for entry in self._messages.new():
            at = moment_of(entry)
            if at is None or at <= self._since:
                continue
            self._turn = followed(self._turn, entry, at)
            if self._turn is not None:
                changed[self._turn.began_at] = self._turn
        return tuple(changed.values())


def followed(turn: TurnSeen | None, entry: _Entry, at: datetime) -> TurnSeen | None:
    """Return the latest turn with what a message says of it."""
    text = typed_in(entry)
    if text:
        return TurnSeen(at, ("",), (text,))
    if turn is None or turn.over_at is not None:
        return turn
    failed = failure_in(entry)
    if failed is not None:
        return replace(turn, answered=True, over_at=at, failed=failed)
    if _is_cancel(entry):
        return replace(turn, over_at=at, cut_off=True)
    if text_of(entry, "type") == "gemini":
        return replace(turn, answered=True, answer=answer_of(entry) or turn.answer)
    return turn


# ---------------------------------------------------------------- as a whole


def messages_of(path: Path) -> tuple[_Entry, ...]:
    """Return the messages that the conversation holds now, as a resume reads them. Raises TrustFailed."""
    kept: dict[str, _Entry] = {}
    try:
        with open_plain(path) as stream:
            for _, line in whole_lines(stream, _LONGEST_LINE, _MOST):
                entry = entry_of(line)
                if entry is None:
                    continue
                if text_of(entry, "$rewindTo"):
                    names = list(kept)
                    back = text_of(entry, "$rewindTo")
                    kept = {name: kept[name] for name in (names[: names.index(back)] if back in kept else ())}
                elif text_of(entry, "id"):
                    kept[text_of(entry, "id")] = entry
                elif "messages" in object_of(entry, "$set"):
                    listed = [one for one in list_of(object_of(entry, "$set"), "messages") if isinstance(one, dict)]
                    kept = {text_of(one, "id"): one for one in listed}
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TrustFailed(
            f"the conversation cannot be read: {path}: {error.strerror}", "make the file readable, then try again"
        ) from error
    return tuple(kept.values())


def has_turn(messages: Sequence[_Entry]) -> bool:
    """Return whether there is anything to resume: what only describes the session is nothing."""
    return any(
        text_of(entry, "type") == "gemini" and (said_by(entry).strip() or list_of(entry, "toolCalls"))
        for entry in messages
    ) or any(not typed_in(entry).lstrip().startswith(("/", "?")) for entry in messages if typed_in(entry).strip())


def has_answer(messages: Sequence[_Entry]) -> bool:
    """Return whether the model has answered."""
    return any(answer_of(entry) or list_of(entry, "toolCalls") for entry in messages)


@dataclass(frozen=True)
class _Latest:
    """What the latest lines of a conversation's file say of its latest turn."""

    began: datetime | None = None
    works: bool = False  #: the model or a tool has been given something since
    over: datetime | None = None  #: when it was cut off, or failed


_read: dict[Path, tuple[tuple[int, int], _Latest]] = {}  #: the files that were read last, each as it was
_MOST_READ = 64


def probe_of(home: Path, session_id: str, dialog: Path) -> StatusProbe | None:
    """Return what the conversation's latest lines, and the marker of a dialog, say of the session.

    None where they do not say it: between an answer and the hook that tells of its end they may tell of either.
    """
    path = find_conversation(home, session_id)
    latest = None if path is None else _latest(path)
    if latest is None:
        return None
    marked, over = _modified(dialog), latest.over
    if marked is not None and (over is None or marked > over):
        return StatusProbe(ActivityState.PERMISSION, written_at=marked)
    if over is not None:
        return StatusProbe(ActivityState.IDLE, turn_over=True, written_at=over)
    if latest.works and latest.began is not None:
        return StatusProbe(ActivityState.BUSY, written_at=latest.began)
    return None


def is_answered(home: Path, session_id: str) -> bool:
    """Return whether the latest lines hold an answer to the latest prompt, and nothing that the model was given since.

    A tool may still be called: only together with the hook's word this is the end of a turn.
    """
    path = find_conversation(home, session_id)
    latest = None if path is None else _latest(path)
    return latest is not None and latest.began is not None and not latest.works


def _latest(path: Path) -> _Latest | None:
    """Return what the file says, read once for each change of it; None where it cannot be read."""
    try:
        found = path.stat()
        identity, kept = (found.st_size, found.st_mtime_ns), _read.get(path)
        if kept is not None and kept[0] == identity:
            return kept[1]
        with open_plain(path) as stream:
            stream.seek(max(0, found.st_size - _LATEST))
            latest = _Latest()
            for _, line in whole_lines(stream, _LONGEST_LINE, _MOST):
                entry = entry_of(line) if line.startswith((_MESSAGE, _RESUMED)) else None
                latest = latest if entry is None else _followed(latest, entry)
    except OSError:
        return None
    while len(_read) >= _MOST_READ:
        _read.pop(next(iter(_read), path), None)
    _read[path] = (identity, latest)
    return latest


def _followed(latest: _Latest, entry: _Entry) -> _Latest:
    if typed_in(entry):
        return _Latest(moment_of(entry), works=True)
    if "$set" in entry:  # a resume: whatever was under way is over
        return _Latest()
    if _is_cancel(entry) or failure_in(entry) is not None:
        return replace(latest, over=moment_of(entry))
    kind = text_of(entry, "type")
    return replace(latest, works=kind == "user") if kind in ("user", "gemini") else latest


def _modified(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


# ---------------------------------------------------------------- the screen

_FRAME = re.compile(r"─{20,}")
_LINE = re.compile(r" (?P<mark>[>!*])(?:\s|$)")
_BELOW = re.compile(r"▀{20,}")
_HINT = re.compile(r"Type your message or @path/to/file|Type your shell command")


def read_input_line(view: View) -> InputLine | None:
    """Return the line in which a message is written, None where the screen does not show it."""
    frames = [number for number, row in enumerate(view.rows) if _FRAME.match(row)]
    if not frames:
        return None
    below = range(frames[-1] + 1, len(view.rows))
    start = next((row for row in below if _LINE.match(view.rows[row])), None)
    if start is None:
        return None
    found = _LINE.match(view.rows[start])
    assert found is not None
    end = next((row for row in range(start, len(view.rows)) if _BELOW.match(view.rows[row])), None)
    if end is None:  # with few colours a blank row stands in its place
        end = next((row for row in range(start, len(view.rows)) if not view.rows[row].strip()), len(view.rows))
    text = "\n".join(view.typed(row)[3:].rstrip() for row in range(start, end)).strip()
    return InputLine("" if _HINT.match(text) else text, "shell mode" if found["mark"] == "!" else "")
