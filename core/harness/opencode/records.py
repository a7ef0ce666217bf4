"""Read what OpenCode keeps of its conversations, and what its screen shows. Nothing here writes.

All conversations are in one SQLite database (1.18.4 to 1.18.33): a row for each session, for each message and for each
part of a message, their content as JSON. A message's id begins with its time, so that ids sort as messages do. An
answer names the message of a person that it answers (`parentID`): with it the model has taken that message and all
before it. A message that came in the middle of a turn has no such answer yet.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from core.base.clock import from_epoch
from core.base.errors import StoreBroken, TrustFailed
from core.base.values import dataclass
from core.harness.base import list_of, number_of, object_of, text_of
from core.harness.opencode.reports import failure_of
from core.model.harness import (
    HarnessEvent,
    PlanItem,
    PlanState,
    TextQueued,
    TextTaken,
    TurnFailed,
    TurnSeen,
    Usage,
    Working,
)
from core.model.pane import InputLine, View

_WAIT = 2.0  #: seconds for a writer that holds the database
_MOST = 200  #: messages that are looked through at once
_ABORTED = "MessageAbortedError"
_GOES_ON = frozenset({"tool-calls", "unknown", ""})  #: how an answer ends after which the turn goes on


def database_of(environ: Mapping[str, str]) -> Path:
    """Return the database that a process with this environment would use."""
    home = Path(environ.get("HOME") or Path.home())
    folder = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    named = environ.get("OPENCODE_DB")
    return folder / named if named else folder / "opencode.db"  # an absolute name stands for itself


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    id: str
    role: str
    parent: str
    finish: str
    created: datetime
    completed: datetime | None
    error: Mapping[str, Any]
    text: str
    data: Mapping[str, Any]

    @property
    def is_over(self) -> bool:
        """Return whether it is an answer with which its turn ends, unless messages wait."""
        return bool(self.error) or (self.completed is not None and self.finish not in _GOES_ON)


class Conversation:
    """One conversation in the database."""

    def __init__(self, path: Path, session: str) -> None:
        self._path = path
        self._session = session

    def messages(self, after: str = "", most: int = _MOST) -> list[Message]:
        """Return the latest messages, oldest first; `after`: none up to this id. Raises StoreBroken.

        Of their parts the texts and the tools that run: what tools have printed may be large.
        """
        rows = self._rows(
            "SELECT id, data, (SELECT json_group_array(json(data)) FROM (SELECT data FROM part WHERE message_id = "
            "message.id AND (json_extract(data, '$.type') = 'text' OR "
            "json_extract(data, '$.state.status') = 'running') ORDER BY id)) "
            "FROM message WHERE session_id = ? AND id > ? ORDER BY id DESC LIMIT ?",
            self._session,
            after,
            most,
        )
        return [message for row in reversed(rows) if (message := _message(*row)) is not None]

    def has(self, role: str) -> bool:
        """Return whether a message of that role is there; an answer counts once it is whole. Raises StoreBroken."""
        whole = "" if role == "user" else " AND json_extract(data, '$.time.completed') IS NOT NULL"
        failed = "" if role == "user" else " AND json_extract(data, '$.error') IS NULL"
        query = (
            f"SELECT 1 FROM message WHERE session_id = ? AND json_extract(data, '$.role') = ?{whole}{failed} LIMIT 1"
        )
        return bool(self._rows(query, self._session, role))

    def working(self, context_size: int | None) -> Working | None:
        """Return what its agent does; None where the conversation is not there. Raises StoreBroken."""
        session = self._rows(
            "SELECT cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write FROM "
            "session WHERE id = ?",
            self._session,
        )
        if not session:
            return None
        todo = self._rows("SELECT content, status FROM todo WHERE session_id = ? ORDER BY position", self._session)
        messages = self.messages()
        answers = [each for each in messages if each.role == "assistant"]
        latest = answers[-1] if answers else None
        asked = [each for each in messages if each.role == "user"]
        begun = next((each.id for each in reversed(asked) if latest is not None and each.id <= latest.parent), "")
        turn = [_usage(each.data) for each in answers if each.parent >= begun] if begun else []
        counted = next((each for each in reversed(answers) if _context(each.data)), None)
        cost, *tokens = session[0]
        return Working(
            plan=tuple(PlanItem(str(content), _PLAN[status]) for content, status in todo if status in _PLAN),
            tool=_tool(latest),
            model=_model(latest),
            context_used=_context(counted.data) if counted else None,
            context_size=context_size,
            turn=sum(turn[1:], turn[0]) if turn else None,
            session=Usage(tokens[0] + tokens[4], tokens[1] + tokens[2], tokens[3], float(cost)),
        )

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            if not self._path.exists():
                return []
            with closing(_opened(self._path)) as database:
                return database.execute(query, values).fetchall()
        except (sqlite3.Error, OSError) as error:
            raise StoreBroken(
                f"the conversation cannot be read: {self._path}: {error}", "make it a readable file, then try again"
            ) from error


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_WAIT)


_PLAN = {
    "pending": PlanState.PENDING,
    "in_progress": PlanState.IN_PROGRESS,
    "completed": PlanState.DONE,
}  #: what is cancelled is on the plan no more


def _usage(data: Mapping[str, Any]) -> Usage:
    tokens = object_of(data, "tokens")
    cache = object_of(tokens, "cache")
    cost = number_of(data, "cost")
    return Usage(
        _number(tokens, "input") + _number(cache, "write"),
        _number(tokens, "output") + _number(tokens, "reasoning"),
        _number(cache, "read"),
        None if cost is None else float(cost),
    )


def _context(data: Mapping[str, Any]) -> int:
    used = _usage(data)
    return used.input + used.cached


def _number(mapping: Mapping[str, Any], key: str) -> int:
    return int(number_of(mapping, key) or 0)


def _model(message: Message | None) -> str | None:
    if message is None:
        return None
    names = (text_of(message.data, "providerID"), text_of(message.data, "modelID"))
    return "/".join(name for name in names if name) or None


def _tool(message: Message | None) -> str:
    """Return the tool that the latest answer waits for, with its command or file; "" for none."""
    if message is None or message.completed is not None or message.error:
        return ""
    for part in list_of(message.data, "parts"):
        state = object_of(part, "state") if isinstance(part, dict) else {}
        if text_of(state, "status") == "running":
            given = object_of(state, "input")
            detail = text_of(given, "command") or text_of(given, "filePath")
            return f"{text_of(part, 'tool')}: {detail}" if detail else text_of(part, "tool")
    return ""


def _message(id: str, data: str, parts: str) -> Message | None:
    """Return a row as a message; None for one that is not understood."""
    try:
        content, pieces = json.loads(data), json.loads(parts)
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(pieces, list):
        return None
    time = object_of(content, "time")
    created = _moment(time, "created")
    if created is None:
        return None
    texts = (text_of(part, "text") for part in pieces if isinstance(part, dict) and _is_said(part))
    return Message(
        id=str(id),
        role=text_of(content, "role"),
        parent=text_of(content, "parentID"),
        finish=text_of(content, "finish"),
        created=created,
        completed=_moment(time, "completed"),
        error=object_of(content, "error"),
        text="\n".join(text for text in texts if text),
        data={**content, "parts": pieces},
    )


def _is_said(part: Mapping[str, Any]) -> bool:
    """Return whether a part is text that a person typed or the model answered."""
    return text_of(part, "type") == "text" and part.get("synthetic") is not True and part.get("ignored") is not True


def _moment(time: Mapping[str, Any], key: str) -> datetime | None:
    value = number_of(time, key)
    return None if value is None else from_epoch(value / 1000)


class TakenTexts:
    """Evidence of which texts the harness has queued and taken: a Transcript (core.model.harness)."""

    def __init__(self, conversation: Conversation, *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken."""
        self._conversation = conversation
        self._after = ""  #: the latest message that needs no look any more
        self._queued: set[str] = set()
        self._taken: set[str] = set()
        if not from_start:
            self.new_events()

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken."""
        events: list[HarnessEvent] = []
        before: Message | None = None  #: the latest answer so far
        messages = self._conversation.messages(self._after)
        taken_up_to = max((each.parent for each in messages if each.role == "assistant"), default="")
        for message in messages:
            if message.role == "assistant":
                before = message
                continue
            if not message.text:
                continue  # its row comes before its text
            runs = before is not None and not before.is_over
            if message.id <= taken_up_to and message.id not in self._taken:
                self._taken.add(message.id)
                events.append(
                    TextTaken(message.text, begins=not _slipped_in(before), at=message.created, turn=message.id)
                )
            elif message.id > taken_up_to and runs and message.id not in self._queued:
                self._queued.add(message.id)
                events.append(TextQueued(message.text, message.created))
        self._after = self._seen(messages, taken_up_to)
        self._taken = {id for id in self._taken if id > self._after}
        self._queued = {id for id in self._queued if id > self._after}
        return tuple(events)

    def _seen(self, messages: list[Message], taken_up_to: str) -> str:
        """Return the id of the last message whose fate is known: answers that run are looked at again."""
        waiting = next((each.id for each in messages if each.role == "user" and each.id > taken_up_to), "~")
        runs = next((each.id for each in messages if each.role == "assistant" and not each.is_over), "~")
        known = [each.id for each in messages if each.role == "assistant" and each.id < min(waiting, runs)]
        return max([self._after, *known])


def _slipped_in(before: Message | None) -> bool:
    """Return whether a text was taken by the turn of the answer before it, and began none of its own."""
    return before is not None and not before.is_over and before.completed is not None


class Turns:
    """The turns that a conversation shows: a TurnRecord (core.model.harness)."""

    def __init__(self, conversation: Conversation, *, since: datetime) -> None:
        """Begin with what was written after that moment."""
        self._conversation = conversation
        self._since = since
        self._told: dict[str, TurnSeen] = {}

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written, each as it stands now. Raises StoreBroken."""
        changed = []
        for turn in turns_of(self._conversation.messages()):
            if turn.began_at > self._since and self._told.get(turn.turns[0]) != turn:
                self._told[turn.turns[0]] = turn
                changed.append(turn)
        return tuple(changed)


def turns_of(messages: list[Message]) -> list[TurnSeen]:
    """Return the turns of these messages; what no turn has taken is in none."""
    taken_up_to = max((each.parent for each in messages if each.role == "assistant"), default="")
    groups: list[tuple[list[Message], list[Message]]] = []  #: what each began with, and its answers
    for message in messages:
        if message.role == "assistant":
            if groups:
                groups[-1][1].append(message)
        elif message.id <= taken_up_to:
            before = groups[-1][1] if groups else []
            if groups and (not before or _slipped_in(before[-1])):
                groups[-1][0].append(message)
            else:
                groups.append(([message], []))
    return [_turn(begun, answers) for begun, answers in groups]


def _turn(begun: list[Message], answers: list[Message]) -> TurnSeen:
    latest = answers[-1] if answers else None
    over = latest is not None and latest.is_over
    error = latest.error if latest is not None else {}
    name, said = text_of(error, "name"), object_of(error, "data")
    failed = bool(name) and name != _ABORTED
    return TurnSeen(
        began_at=begun[0].created,
        turns=tuple(each.id for each in begun),
        prompts=tuple(each.text for each in begun),
        answered=bool(answers),
        answer=next((each.text for each in reversed(answers) if each.text), ""),
        over_at=(latest.completed or latest.created) if latest is not None and over else None,
        failed=TurnFailed(name, text_of(said, "message"), failure_of(name, said.get("statusCode")), begun[-1].id)
        if failed
        else None,
        cut_off=name == _ABORTED,
    )


@contextmanager
def trusted() -> Iterator[None]:
    """Tell a database that cannot be read as what a start is told. Raises TrustFailed."""
    try:
        yield
    except StoreBroken as error:
        raise TrustFailed(error.message, error.remedy) from error


_BOTTOM = re.compile(r"^\s*╹▀{8,}")
_SIDE = re.compile(r"^(\s*)┃(.*)$")
_WIDE = frozenset("WF")
_SUGGESTED = re.compile(r"^Ask anything(…|\.\.\.) ")


def read_input_line(view: View) -> InputLine | None:
    """Return the line in which a message is written, None where the screen does not show it.

    It stands in a box: a bar at the left of each row, an empty row, the text, an empty row, the name of the agent and
    its model, and a line below. A permission dialog and a question stand in its place, without that line. What stands
    beside the box, on a wide screen, is no part of it.
    """
    rows = view.rows
    found = ((number, line) for number in range(len(rows) - 1, 3, -1) if (line := _BOTTOM.match(rows[number])))
    bottom, line = next(found, (0, None))
    if line is None:
        return None
    inside: list[str] = []
    for number in range(bottom - 1, -1, -1):
        side = _SIDE.match(_columns(rows[number], line.end()))
        if side is None:
            break
        inside.append(side[2].strip())
    above = inside[2:] if len(inside) > 2 and inside[0] and not inside[1] else []
    text = "\n".join(reversed(above)).strip()
    if not above:
        return None
    return InputLine("" if _SUGGESTED.match(text) else text, "shell mode" if inside[0].startswith("Shell") else "")


def _columns(row: str, most: int) -> str:
    """Return the beginning of a row that fills at most so many columns."""
    if row.isascii():
        return row[:most]
    width = 0
    for number, letter in enumerate(row):
        width += 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
        if width > most:
            return row[:number]
    return row
