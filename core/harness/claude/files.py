"""Read what Claude Code writes: configuration, a conversation's JSONL file, a process's status, and its screen.

- The conversation's file is read forward (2.1.197 to 2.1.332). The bundled agent writes the same format.
- The input line stands between two lines across the screen, the last ones apart from what follows them (seen of
  2.1.197, 2.1.280 and 2.1.332). A dialog, the whole transcript (ctrl+o) and, in newer versions, the history search
  (ctrl+r) stand in its place.
- While a failed request is retried, for some three minutes, only the screen says so: `✻ API error · Retrying in 4s ·
  attempt 4/10` (2.1.197), `✻ 500 fake error 500 · retrying in 4s · attempt 4/10`, `✻ API error · retrying… · attempt
  2/10` (2.1.332). No hook and no line of the conversation's file tells of it.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.files import read_plain
from core.base.processes import is_running
from core.base.values import dataclass, replace
from core.harness.base import object_of, opinion_in, read_status, text_of
from core.harness.claude.hooks import NOTIFICATION, failure_of, is_internal, pasted_parts
from core.harness.records import LATEST, Lines, entry_of, holds, moment_of, written_after
from core.model.harness import (
    HarnessEvent,
    Retry,
    StatusProbe,
    TextBlocked,
    TextQueued,
    TextReturned,
    TextTaken,
    TurnEnded,
    TurnFailed,
    TurnSeen,
)
from core.model.pane import InputLine, View

MANAGED = Path("/etc/claude-code/managed-settings.json")  #: what the machine's owner settles for all of its users
MOST_SETTINGS = 1 << 20  #: bytes of a file of settings
LONGEST = 1 << 26  #: bytes of the operator's own configuration, which holds every project; some have some millions
_LONGEST = 200  #: longer folder names are cut and end in a hash


@dataclass(frozen=True)
class ClaudeFiles:
    """Claude Code's files under one home. `config_dir` is $CLAUDE_CONFIG_DIR where it is set."""

    home: Path
    config_dir: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "ClaudeFiles":
        """Return the files that a process with this environment would use."""
        given = environ.get("CLAUDE_CONFIG_DIR")
        home = environ.get("HOME")
        return cls(Path(home) if home else Path.home(), Path(given) if given else None)

    @property
    def folder(self) -> Path:
        """The folder of conversations, settings and status files."""
        return self.config_dir or self.home / ".claude"

    @property
    def configuration(self) -> Path:
        """The file that holds trust and onboarding; an old installation keeps it inside the folder."""
        old = self.folder / ".config.json"
        return old if old.exists() else (self.config_dir or self.home) / ".claude.json"

    @property
    def settings(self) -> Path:
        """The user's settings, for whatever they start."""
        return self.folder / "settings.json"

    def conversation(self, cwd: Path, session_id: str) -> Path:
        """Return the conversation's JSONL file, which exists from its first turn on."""
        return self.folder / "projects" / project_folder(os.path.realpath(cwd)) / f"{session_id}.jsonl"

    def tasks(self, session_id: str) -> Path:
        """Return the folder of a conversation's list of tasks."""
        return self.folder / "tasks" / session_id

    def status(self, pid: int) -> Path:
        """Return the status file of a process."""
        return self.folder / "sessions" / f"{pid}.json"


_Identity = tuple[int, int, int, int]
_MOST_KEPT = 64
_kept: dict[Path, tuple[_Identity, Mapping[str, Any]]] = {}  #: the files of settings that were read last


def read_settings(path: Path, most: int = MOST_SETTINGS) -> Mapping[str, Any]:
    """Return a file's JSON object, read once for each change of it, whoever asks.

    An empty one where it is none, or cannot be read, which Claude Code passes over, or has more bytes than `most`: a
    cloned repository may bring a file of any size.
    """
    try:
        found = path.stat()
    except OSError:
        return {}
    identity = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    kept = _kept.get(path)
    if kept is not None and kept[0] == identity:
        return kept[1]
    try:
        content = json.loads(read_plain(path, most))
    except (OSError, ValueError, RecursionError):
        content = {}
    settings = content if isinstance(content, dict) else {}
    while len(_kept) >= _MOST_KEPT:
        _kept.pop(next(iter(_kept), path), None)
    _kept[path] = (identity, settings)
    return settings


def is_unread(path: Path) -> bool:
    """Return whether a file of settings is too large to be read."""
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > MOST_SETTINGS


def project_folder(cwd: str) -> str:
    """Return the name that Claude Code gives to a folder's conversations.

    Every UTF-16 unit that is no ASCII letter or digit becomes `-`; a name of more than 200 units is cut there and gets
    a hash of the whole path (seen in 2.1.197; `make test-harness` holds it against the program).
    """
    units = memoryview(cwd.encode("utf-16-le", "surrogatepass")).cast("H").tolist()
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{_base36(abs(_hash32(units)))}"


def _hash32(units: list[int]) -> int:
    """Return the signed 32-bit hash `h = h * 31 + unit`."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text or "0"


_BLOCKED = re.compile(
    r"UserPromptSubmit operation blocked by hook:\s*(?:\[[^\n]*?\]:)?(?P<why>.*?)\s*Original prompt: (?P<prompt>.*)",
    re.DOTALL,
)
HELD = "the-loop: this session is held"  #: begins what our reporter says where it blocks a prompt
_INTERRUPTED = "[Request interrupted by user"  #: also "… for tool use]"
_LAST_LINES = 1 << 20  #: bytes in which the end of a turn stands that was over a moment ago
_TURN_OVER = b"turn_duration"
_PARKED = "parkedJobId"  #: in a status file: the job that goes on with the conversation
_TROUBLE = 300  #: characters of why a hook could not run
_SAYS = re.compile(rb'"type": ?"(?:user|assistant|system|attachment)"')  #: of a line that is worth parsing


class ConversationFile:
    """Evidence of which texts the harness has queued and taken: a Transcript (core.model.harness)."""

    def __init__(self, path: Path, *, from_start: bool) -> None:
        """Begin at its start, or behind what it holds now. Raises StoreBroken where that cannot be read."""
        self._lines = Lines(path, from_start=from_start)

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where the file is there and cannot be read."""
        return tuple(event for line in self._lines.new() for event in line_events(line))


class TurnsFile:
    """The turns that a conversation's file shows: a TurnRecord (core.model.harness)."""

    def __init__(self, path: Path, *, since: datetime) -> None:
        """Begin with what was written after that moment. Raises StoreBroken where the file cannot be read."""
        self._since = since
        self._turn: TurnSeen | None = None  #: the latest one
        self._message = ""  #: the id of the message that its answer stands in
        self._branch: set[str] = set()  #: the ids of its lines, for as long as it has no answer
        self._lines = Lines(path, from_start=written_after(path, since), latest=LATEST)

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written, each as it stands now, in their order.

        Raises StoreBroken where the file is there and cannot be read.
        """
        changed: dict[datetime, TurnSeen] = {}
        for line in self._lines.new():
            entry = entry_of(line) if self._is_unanswered or _SAYS.search(line) else None
            if entry is None or entry.get("isSidechain") is True:
                continue
            at = moment_of(entry)
            if at is None or at <= self._since:
                continue
            if (left := self._left(entry, at)) is not None:
                changed[left.began_at] = left
            if self._follow(entry, at) and self._turn is not None:
                changed[self._turn.began_at] = self._turn
            self._note_line(entry)
        return tuple(changed.values())

    @property
    def _is_unanswered(self) -> bool:
        return self._turn is not None and self._turn.over_at is None and not self._turn.answered

    def _left(self, entry: Mapping[str, Any], at: datetime) -> TurnSeen | None:
        """Return the turn before, as it ended, where a text begins another one beside it.

        Interrupted before the model has said anything, a turn leaves the conversation: what is taken next hangs on the
        line before it. What is taken together with it hangs on its own lines (2.1.197 to 2.1.332).
        """
        if self._turn is None or not self._is_unanswered or not self._branch:
            return None
        parent = entry.get("parentUuid")
        begins = text_of(entry, "type") == "user" and any(isinstance(each, TextTaken) for each in user_events(entry))
        if not begins or not isinstance(parent, str) or parent in self._branch:
            return None
        self._turn = replace(self._turn, over_at=at, cut_off=True, abandoned=True)
        return self._turn

    def _note_line(self, entry: Mapping[str, Any]) -> None:
        """Follow the turn's lines; after a compaction they hang on its summary."""
        if not self._is_unanswered or text_of(entry, "subtype") == "compact_boundary":
            self._branch.clear()
        elif (found := text_of(entry, "uuid")) and (not self._branch or entry.get("parentUuid") in self._branch):
            self._branch.add(found)

    def _follow(self, entry: Mapping[str, Any], at: datetime) -> bool:
        """Take in a line, and return whether it says something of a turn."""
        kind = text_of(entry, "type")
        if kind == "user":
            return self._user(entry, at)
        if self._turn is None:
            return False
        if kind == "assistant":
            self._turn = self._assistant(self._turn, entry, at)
        elif kind == "system" and text_of(entry, "subtype") == "turn_duration":
            self._turn = replace(self._turn, over_at=self._turn.over_at or at)
        elif kind == "attachment" and text_of(object_of(entry, "attachment"), "type") == "hook_non_blocking_error":
            self._turn = replace(self._turn, hook_trouble=_trouble(object_of(entry, "attachment")))
        else:
            return False
        return True

    def _user(self, entry: Mapping[str, Any], at: datetime) -> bool:
        events = user_events(entry)
        if events and isinstance(events[0], TextTaken):
            self._begin(events[0], at)
            return True
        if events and self._turn is not None and self._turn.over_at is None:
            self._turn = replace(self._turn, over_at=at, cut_off=True)
            return True
        return False

    def _begin(self, taken: TextTaken, at: datetime) -> None:
        """A text was taken: by a new turn, or together with the one before it."""
        before = self._turn
        if before is not None and before.over_at is None and not before.answered:
            turns = before.turns if taken.turn in before.turns else (*before.turns, taken.turn)
            self._turn = replace(before, turns=turns, prompts=(*before.prompts, taken.prompt))
        else:
            self._turn = TurnSeen(at, (taken.turn,), (taken.prompt,), taken.internal)
            self._message = ""

    def _assistant(self, turn: TurnSeen, entry: Mapping[str, Any], at: datetime) -> TurnSeen:
        """Return the turn with what the line adds. Each block of a message has a line of its own, with its id."""
        message = object_of(entry, "message")
        text = _flat(message.get("content"))
        if entry.get("isApiErrorMessage") is True:
            error = text_of(entry, "error") or "unknown"
            failed = TurnFailed(error, text, failure_of(error, text), turn.turn)
            return replace(turn, answered=True, over_at=at, failed=failed)  # newer versions write no end of it
        same = self._message == text_of(message, "id") and bool(self._message)
        self._message = text_of(message, "id")
        answer = "\n".join(part for part in (turn.answer if same else "", text) if part)
        over_at = None if turn.failed is not None else turn.over_at  # it was tried once more, and went on
        return replace(turn, answered=True, answer=answer, over_at=over_at, failed=None)


def _trouble(attachment: Mapping[str, Any]) -> str:
    """Return in a line why a hook could not run."""
    return " ".join((text_of(attachment, "stderr") or text_of(attachment, "hookEvent")).split())[:_TROUBLE]


def read_opinion(path: Path) -> tuple[bool, StatusProbe | None]:
    """Return whether the conversation of a process is parked, by its status file, and what is said of its turns.

    In 2.1.332 a turn goes on in a process of its own once its person has looked at the list of agents (Left in an empty
    input line), also after they have come back. The file of the process in the pane then stands still, and names the
    job; the file of the process with that job tells what it does. A killed process leaves its file: one whose process
    has ended, or whose pid another process has by now, tells nothing. None where nothing tells.
    """
    found = _told_by(path, lives=True)  # whoever asks has seen it
    job = text_of(found[0], _PARKED) if found is not None else ""
    if found is None or not job:
        return False, opinion_in(*found) if found is not None else None
    others = (_told_by(other) for other in path.parent.glob("*.json"))
    told = [one for one in others if one is not None and text_of(one[0], "jobId") == job]
    return True, opinion_in(*max(told, key=lambda one: one[1])) if told else None


def _told_by(path: Path, *, lives: bool = False) -> tuple[Mapping[str, Any], datetime] | None:
    """Return what `sessions/PID.json` tells, and since when; None where that process does not write it any more.

    Newer versions note when their process began (`procStart`, seen of 2.1.332). `lives`: a process with that pid does.
    """
    found = read_status(path)
    if found is None or not path.stem.isdecimal():
        return None
    began = text_of(found[0], "procStart")
    return found if (lives and not began) or is_running(int(path.stem), began) else None


def has_turn(path: Path) -> bool:
    """Return whether the file holds anything that was said; only then can the conversation be resumed.

    Claude Code 2.1.197 writes a file of modes alone when SIGTERM comes within about 0.1 s of the first turn, and then
    answers a resume with `No conversation found`. Raises TrustFailed where the file cannot be read.
    """
    return holds(path, lambda entry: text_of(entry, "type") in ("user", "assistant"))


def has_answer(path: Path) -> bool:
    """Return whether the file holds an answer of the model's; an error that stands in its place is none.

    Raises TrustFailed where the file cannot be read.
    """
    return holds(
        path, lambda entry: text_of(entry, "type") == "assistant" and entry.get("isApiErrorMessage") is not True
    )


def untaken(path: Path) -> str:
    """Return in words why the conversation that would lie there cannot be resumed."""
    return (
        f"its transcript {path} holds no turn"
        if path.exists()
        else f"its transcript is not under {path.parent} any more"
    )


def ended_since(path: Path, since: datetime) -> bool:
    """Return whether the file's latest lines tell that a turn went to its end since then, all hooks included.

    Raises StoreBroken where the file cannot be read.
    """
    for line in Lines(path, from_start=True, latest=_LAST_LINES).new():
        entry = entry_of(line) if _TURN_OVER in line else None
        if entry is None or text_of(entry, "type") != "system" or text_of(entry, "subtype") != "turn_duration":
            continue
        at = moment_of(entry)
        if at is not None and at >= since:
            return True
    return False


def line_events(line: bytes) -> tuple[HarnessEvent, ...]:
    """Return what one line means; () for one that says nothing about input, or is no JSON object."""
    if not line.strip():
        return ()
    entry = entry_of(line)
    return () if entry is None else _entry_events(entry)


def _entry_events(entry: Mapping[str, Any]) -> tuple[HarnessEvent, ...]:
    kind = text_of(entry, "type")
    if kind == "queue-operation":
        text, operation = text_of(entry, "content"), text_of(entry, "operation")
        if is_internal(text):
            return ()  # without a text (2.1.332, during `/compact`) it may be anybody's
        if operation == "enqueue":
            return (TextQueued(text, moment_of(entry), pasted_parts(text)),)
        return (TextReturned(text, moment_of(entry)),) if operation == "popAll" else ()
    if kind == "attachment":
        attachment = object_of(entry, "attachment")
        text = _flat(attachment.get("prompt")) if text_of(attachment, "type") == "queued_command" else ""
        if not text:
            return ()
        return (TextTaken(text, is_internal(text), begins=False, at=moment_of(entry), pasted=pasted_parts(text)),)
    if kind == "user" and entry.get("isSidechain") is not True:
        return user_events(entry)
    if kind == "system" and text_of(entry, "subtype") == "informational":
        return _blocked(text_of(entry, "content"), moment_of(entry))
    return ()


def _blocked(content: str, at: datetime | None) -> tuple[HarnessEvent, ...]:
    """Return that a hook has blocked a prompt; our own tells of that itself."""
    found = _BLOCKED.match(content)
    if found is None or HELD in found["why"]:
        return ()
    return (TextBlocked(found["prompt"], " ".join(found["why"].split())[:_TROUBLE], at),)


def user_events(entry: Mapping[str, Any]) -> tuple[HarnessEvent, ...]:
    """Return what a line of type `user` tells: a text that a turn took, or that one was interrupted."""
    text = _flat(object_of(entry, "message").get("content"))
    if text.startswith(_INTERRUPTED):
        return (TurnEnded(""),)
    origin = text_of(object_of(entry, "origin"), "kind")
    if text_of(entry, "turnOrigin") == "scheduled" or (entry.get("isMeta") is True and _is_put_off(entry)):
        return (TextTaken(text, internal=True, at=moment_of(entry), turn=text_of(entry, "promptId")),)
    if origin == "human":
        turn = text_of(entry, "promptId")
        return (TextTaken(text, at=moment_of(entry), turn=turn, pasted=pasted_parts(text)),)
    if entry.get("queueTranscriptOnly") is True:
        return ()  # 2.1.332 writes at a resume what did not finish before; its model hears of it with the next prompt
    if origin == "task-notification" and text.lstrip().startswith(NOTIFICATION):
        return (TextTaken(text, internal=True, at=moment_of(entry), turn=text_of(entry, "promptId")),)
    return ()


def _is_put_off(entry: Mapping[str, Any]) -> bool:
    """Return whether a line holds a prompt of the harness's own that waited for the turn's end (2.1.197's schedule)."""
    return text_of(entry, "promptSource") == "system" and text_of(entry, "queuePriority") == "later"


def _flat(content: Any) -> str:
    """Return the text of a content value: a text, or the text blocks of a list."""
    if isinstance(content, list):
        return "\n".join(text for block in content if isinstance(block, dict) and (text := text_of(block, "text")))
    return text_of({"text": content}, "text")


_FRAME = re.compile(r"─{8,}")
_MARK = re.compile(r"(?P<mark>[❯>!#&])(?:\s|$)")
_MODES = {"!": "shell mode", "#": "memory mode", "&": "background mode"}  #: the text is run, or kept, but no message
#: Below the input line: keys go to a list, to a search, or to the view of agents (2.1.332, Left in an empty line).
_ELSEWHERE = re.compile(r"\s+(?:❯\s|search prompts:|.*\benter to (?:return|open)\b.* · )")
_UNCHECKED = re.compile(r"auto mode can.t check actions", re.IGNORECASE)

UNCHECKED = (
    "its check cannot be reached from here, so auto mode shows a dialog for each action that needs it. To get "
    "permission requests with Allow and Deny instead, set `routing.harnessTrust.permissionMode: default`; if the "
    "arguments of the session name a mode, take it out of them. Then `the-loop standing restart {name}`"
)


def read_input_line(view: View) -> InputLine | None:
    """Return the line in which a message is written, None where the screen does not show it."""
    rows = view.rows
    frames = [number for number, row in enumerate(rows) if _FRAME.match(row)]
    if len(frames) < 2:
        return None
    upper, lower = frames[-2:]
    marked = _MARK.match(rows[upper + 1])
    if upper + 1 == lower or marked is None or any(_ELSEWHERE.match(row) for row in rows[lower + 1 :]):
        return None
    text = "\n".join(view.typed(row) for row in range(upper + 1, lower))[1:].strip()
    return InputLine(text, _MODES.get(marked["mark"], ""))


def tells_unchecked(dialog: str) -> bool:
    """Return whether a dialog's text says that auto mode's check cannot be reached (2.1.332)."""
    return _UNCHECKED.search(" ".join(dialog.split())) is not None


_SHOWN = re.compile(
    r"^[^\s●\u276f⎿] (?P<reason>.+?) · retrying(?:…| in \d{1,6}s) · attempt (?P<attempt>\d{1,4})/(?P<most>\d{1,4})\s*$",
    re.IGNORECASE,
)

_LINES = 12  #: above the input line: a hint stands between, and what is longer than a line
_NO_REASON = "api error"


def retry_of(screen: str) -> Retry | None:
    """Return what the lines right above the input line tell of a retry; None where they tell of none."""
    lines = [line for line in screen.splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    upper = frames[-2] if len(frames) > 1 else len(lines)
    for line in reversed(lines[max(0, upper - _LINES) : upper]):
        found = _SHOWN.match(line)
        if found:
            reason = "" if found["reason"].casefold() == _NO_REASON else found["reason"]
            return Retry(reason, int(found["attempt"]), int(found["most"]))
    return None
