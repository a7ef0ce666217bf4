"""The conversation's JSONL file as Claude Code writes it (2.1.197 to 2.1.332), read forward.

The bundled agent writes the same.
"""

import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.domain.harness import HarnessEvent, TextQueued, TextReturned, TextTaken, TurnEnded
from core.errors import StoreBroken, TrustFailed
from core.harness.base import object_of, text_of
from core.harness.events import NOTIFICATION, is_internal, pasted_parts
from core.plainfiles import open_plain, too_large, whole_lines

_INTERRUPTED = "[Request interrupted by user"  #: also "… for tool use]"
_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 26  #: bytes; one that holds pictures has some millions
_MOST_UNREAD = 1 << 30  #: bytes; a conversation of weeks has some hundred millions


class ConversationFile:
    """Evidence of which texts the harness has queued and taken. Implements the Transcript port."""

    def __init__(self, path: Path, *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read."""
        self._path = path
        try:
            self._offset = 0 if from_start else _end_of_last_line(path)
        except OSError as error:
            raise _unreadable(path, error) from error

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what whole lines were added since the last call; a file that is not there yet has none.

        Raises StoreBroken where the file is there and cannot be read.
        """
        try:
            return self._read_on()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def _read_on(self) -> tuple[HarnessEvent, ...]:
        events: list[HarnessEvent] = []
        with open_plain(self._path) as stream:
            end = stream.seek(0, os.SEEK_END)
            if end < self._offset:  # a new file under the old name
                self._offset = 0
            if end - self._offset > _MOST_UNREAD:
                raise too_large(_MOST_UNREAD)
            stream.seek(self._offset)
            for offset, line in whole_lines(stream, _LONGEST_LINE, _MOST_UNREAD):
                self._offset = offset
                events += line_events(line)
        return tuple(events)


def _unreadable(path: Path, error: OSError) -> StoreBroken:
    return StoreBroken(
        f"the conversation cannot be read: {path}: {error.strerror}", "make it a readable file, then try again"
    )


def has_turn(path: Path) -> bool:
    """Tell whether the file holds anything that was said; only then can the conversation be resumed.

    Claude Code 2.1.197 writes a file of modes alone when SIGTERM comes within about 0.1 s of the first turn, and then
    answers a resume with `No conversation found`. Raises TrustFailed where the file cannot be read.
    """
    return _holds(path, lambda entry: text_of(entry, "type") in ("user", "assistant"))


def has_answer(path: Path) -> bool:
    """Tell whether the file holds an answer of the model's; an error that stands in its place is none.

    Raises TrustFailed where the file cannot be read.
    """
    return _holds(
        path, lambda entry: text_of(entry, "type") == "assistant" and entry.get("isApiErrorMessage") is not True
    )


def untaken(path: Path) -> str:
    """Return in words why the conversation that would lie there cannot be resumed."""
    return (
        f"its transcript {path} holds no turn"
        if path.exists()
        else f"its transcript is not under {path.parent} any more"
    )


def _holds(path: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> bool:
    try:
        with open_plain(path) as stream:
            lines = whole_lines(stream, _LONGEST_LINE, _MOST_UNREAD)
            return any(wanted(entry) for _, line in lines if (entry := _entry(line)) is not None)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise TrustFailed(
            f"the conversation cannot be read: {path}: {error.strerror}", "make the file readable, then try again"
        ) from error


def _entry(line: bytes) -> Mapping[str, Any] | None:
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


def line_events(line: bytes) -> tuple[HarnessEvent, ...]:
    """Return what one line means; () for one that says nothing about input, or is no JSON object."""
    if not line.strip():
        return ()
    entry = _entry(line)
    return () if entry is None else _entry_events(entry)


def _entry_events(entry: Mapping[str, Any]) -> tuple[HarnessEvent, ...]:
    kind = text_of(entry, "type")
    if kind == "queue-operation":
        text, operation = text_of(entry, "content"), text_of(entry, "operation")
        if not text or is_internal(text):
            return ()
        if operation == "enqueue":
            return (TextQueued(text, _moment(entry), pasted_parts(text)),)
        return (TextReturned(text, _moment(entry)),) if operation == "popAll" else ()
    if kind == "attachment":
        attachment = object_of(entry, "attachment")
        text = _flat(attachment.get("prompt")) if text_of(attachment, "type") == "queued_command" else ""
        if not text:
            return ()
        return (TextTaken(text, is_internal(text), begins=False, at=_moment(entry), pasted=pasted_parts(text)),)
    if kind == "user" and entry.get("isSidechain") is not True:
        return _user_events(entry)
    return ()


def _moment(entry: Mapping[str, Any]) -> datetime | None:
    """Return when the line was written, None where it does not say so in a form that we know."""
    try:
        at = datetime.fromisoformat(text_of(entry, "timestamp"))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _user_events(entry: Mapping[str, Any]) -> tuple[HarnessEvent, ...]:
    text = _flat(object_of(entry, "message").get("content"))
    if text.startswith(_INTERRUPTED):
        return (TurnEnded(""),)
    origin = text_of(object_of(entry, "origin"), "kind")
    if origin == "human":
        turn = text_of(entry, "promptId")
        return (TextTaken(text, at=_moment(entry), turn=turn, pasted=pasted_parts(text)),)
    if entry.get("queueTranscriptOnly") is True:
        return ()  # 2.1.332 writes at a resume what did not finish before; its model hears of it with the next prompt
    if origin == "task-notification" and text.lstrip().startswith(NOTIFICATION):
        return (TextTaken(text, internal=True, at=_moment(entry), turn=text_of(entry, "promptId")),)
    return ()


def _flat(content: Any) -> str:
    """Return the text of a content value: a text, or the text blocks of a list."""
    if isinstance(content, list):
        return "\n".join(text for block in content if isinstance(block, dict) and (text := text_of(block, "text")))
    return text_of({"text": content}, "text")
