"""The agent's session: keys, the input line, turns, hooks, the queue, dialogs, signals, and an orderly end.

In a dialog, Enter picks the first option, a digit picks its own, and pasted text is ignored; a hook may answer first.
"""

import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from core.base.values import dataclass
from embedded.agent.answers import (
    CallTool,
    Choose,
    Fail,
    Now,
    Pause,
    Permission,
    Plan,
    Question,
    Say,
    StartTask,
    Step,
    Steps,
    Tasks,
    ToolCall,
    UseTool,
    answer,
    notification,
)
from embedded.agent.conversation import BadOption, Conversation, Hooks, Options, Running, summary, working_folder

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"


class Key(Enum):
    """What was pressed."""

    TEXT = "text"
    PASTE = "paste"
    ENTER = "enter"
    NEWLINE = "newline"  #: C-j
    BACKSPACE = "backspace"
    KILL_LINE = "kill-line"  #: C-u
    STASH = "stash"  #: C-s
    INTERRUPT = "interrupt"  #: C-c
    ESCAPE = "escape"
    UP = "up"
    DOWN = "down"
    VIEW = "view"  #: C-o


_ARROWS = {b"\x1b[A": Key.UP, b"\x1bOA": Key.UP, b"\x1b[B": Key.DOWN, b"\x1bOB": Key.DOWN}
_CONTROLS = {
    0x0D: Key.ENTER,
    0x0A: Key.NEWLINE,
    0x7F: Key.BACKSPACE,
    0x08: Key.BACKSPACE,
    0x15: Key.KILL_LINE,
    0x13: Key.STASH,
    0x03: Key.INTERRUPT,
    0x0F: Key.VIEW,
}


@dataclass(frozen=True)
class Press:
    """One key, or one run of text."""

    key: Key
    text: str = ""


class Keyboard:
    """Takes bytes as they come, cut anywhere, and gives whole keys back."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def undecided(self) -> bool:
        """Whether bytes wait that may be an Escape, or the beginning of something longer."""
        return bool(self._rest) and not self._rest.startswith(_PASTE_BEGIN)

    def feed(self, data: bytes) -> list[Press]:
        """Return the keys that are whole now."""
        self._rest += data
        presses: list[Press] = []
        while self._rest:
            taken = self._take()
            if taken is None:
                break
            length, press = taken
            self._rest = self._rest[length:]
            if press is not None:
                presses.append(press)
        return presses

    def settle(self) -> list[Press]:
        """Decide that nothing more comes: a lone Escape is the Escape key, half a character is dropped."""
        lone = self._rest == b"\x1b"
        if self.undecided:
            self._rest = b""
        return [Press(Key.ESCAPE)] if lone else []

    def _take(self) -> tuple[int, Press | None] | None:
        """Return the length of the first key and the key (None: it means nothing to us); None while it is not whole."""
        first = self._rest[0]
        if first == 0x1B:
            return self._take_escape()
        if first in _CONTROLS:
            return 1, Press(_CONTROLS[first])
        if first < 0x20 and first != 0x09:
            return 1, None
        return self._take_text()

    def _take_escape(self) -> tuple[int, Press | None] | None:
        rest = self._rest
        if rest.startswith(_PASTE_BEGIN):
            end = rest.find(_PASTE_END)
            if end < 0:
                return None
            return end + len(_PASTE_END), Press(Key.PASTE, rest[len(_PASTE_BEGIN) : end].decode("utf-8", "replace"))
        if len(rest) == 1:
            return None
        if rest[1] not in b"[O":
            return 1, Press(Key.ESCAPE)
        for index in range(2, len(rest)):
            if 0x40 <= rest[index] <= 0x7E:  # an arrow or a function key
                arrow = _ARROWS.get(rest[: index + 1])
                return index + 1, Press(arrow) if arrow is not None else None
        return None

    def _take_text(self) -> tuple[int, Press | None] | None:
        end = next((index for index, byte in enumerate(self._rest) if byte in _CONTROLS or byte in b"\x1b"), None)
        run = self._rest if end is None else self._rest[:end]
        text = run.decode("utf-8", "ignore")
        whole = len(text.encode()) if end is None and _cut_short(run) else len(run)
        return None if whole == 0 else (whole, Press(Key.TEXT, "".join(c for c in text if c >= " " or c == "\t")))


def _cut_short(run: bytes) -> bool:
    """Return whether the run ends in the middle of a character."""
    try:
        run.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


_COLLAPSE = 800  #: characters of a paste that are still shown


class Composer:
    """Text typed and pasted so far; `stash` puts it aside until the next message has been sent."""

    def __init__(self) -> None:
        self.text = ""
        self._stashed: str | None = None

    def edit(self, press: Press) -> None:
        """Do what the key does to the text; one that does nothing to it is let pass."""
        if press.key in (Key.TEXT, Key.PASTE):
            self.add(press.text)
        elif press.key is Key.NEWLINE:
            self.add("\n")
        elif press.key is Key.BACKSPACE:
            self.backspace()
        elif press.key is Key.KILL_LINE:
            self.kill_line()
        elif press.key is Key.STASH:
            self.stash()

    def add(self, text: str) -> None:
        """Append what was typed or pasted; line ends of any kind are one."""
        self.text += text.replace("\r\n", "\n").replace("\r", "\n")

    def backspace(self) -> None:
        """Remove the last character."""
        self.text = self.text[:-1]

    def kill_line(self) -> None:
        """Remove the current line, or, where it is empty, the line break before it."""
        head, broken, line = self.text.rpartition("\n")
        self.text = head + broken if line else head

    def stash(self) -> None:
        """Put the text aside; on an empty line bring back what was put aside."""
        if self.text:
            self._stashed, self.text = self.text, ""
        elif self._stashed is not None:
            self.text, self._stashed = self._stashed, None

    def take(self) -> str:
        """Return the message, emptying the line; what was put aside comes back."""
        message = self.text
        self.text, self._stashed = self._stashed or "", None
        return message

    def shown(self, width: int) -> str:
        """Return the text as one row of at most `width` columns, its end kept."""
        lines = self.text.count("\n") + 1
        if len(self.text) > _COLLAPSE or lines > 3:
            text = f"[Pasted text: {lines} lines, {len(self.text)} characters]"
        else:
            text = self.text.replace("\n", "⏎").replace("\t", " ")
        kept, room = "", width
        for character in reversed(text):
            room -= columns(character)
            if room < 0:
                break
            kept = character + kept
        return kept


def columns(character: str) -> int:
    """Return how many columns a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Dialog:
    """A question with at most nine options."""

    def __init__(self, question: str, options: Sequence[str]) -> None:
        self._question = question
        self._options = tuple(options[:9])

    def text(self) -> str:
        """Return what is shown."""
        lines = [f"  {number}. {option}" for number, option in enumerate(self._options, 1)]
        return "\n".join([f"? {self._question}", *lines, "  Enter: the first · Escape: none, and the turn ends"])

    def picked(self, press: Press) -> str | None:
        """Return the option that a key picks, or None."""
        if press.key is Key.ENTER:
            return self._options[0]
        if press.key is not Key.TEXT or not press.text.isdecimal() or not press.text.isascii():
            return None
        number = int(press.text)
        return self._options[number - 1] if 1 <= number <= len(self._options) else None


class Menu:
    """A dialog that no hook announces: arrow keys move its cursor, Enter takes the choice it is at."""

    def __init__(self, question: str, options: Sequence[str], *, told: bool = True) -> None:
        """`told`: the status file says that somebody is waited for."""
        self._question = question
        self._options = tuple(options) or ("yes", "no")
        self._at = 0
        self.told = told

    @property
    def first(self) -> str:
        """Return the choice that the cursor is at in the beginning."""
        return self._options[0]

    def text(self) -> str:
        """Return what is shown in the place of the input line."""
        marks = ("❯" if place == self._at else " " for place in range(len(self._options)))
        lines = [f"  {mark} {option}" for mark, option in zip(marks, self._options, strict=True)]
        question = self._question.replace("\n", "\n  ")  # no line of it is taken for the frame
        return "\n".join(["─" * 40, f"  {question}", "", *lines, "", "  Enter to choose · Esc to cancel"])

    def pressed(self, press: Press) -> str | None:
        """Return what a key chooses, None for one that chooses nothing."""
        if press.key is Key.ENTER:
            return self._options[self._at]
        if press.key in (Key.UP, Key.DOWN):
            step = 1 if press.key is Key.DOWN else -1
            self._at = (self._at + step) % len(self._options)
        return None


def menu_of(text: str, *, told: bool = True) -> Menu:
    """Return the menu that `QUESTION | A | B` describes."""
    question, *options = [part.strip() for part in text.split("|") if part.strip()] or [""]
    return Menu(question or "Which one?", options, told=told)


class OpenDialog:
    """A dialog that is shown, about a tool, and the hooks that may answer it before somebody at the terminal does."""

    def __init__(self, dialog: Dialog, tool: str, deciding: Sequence[Running]) -> None:
        self._dialog = dialog
        self._tool = tool
        self.deciding = list(deciding)

    def picked(self, press: Press) -> str | None:
        """Return what the key picks; None where it picks nothing."""
        return self._dialog.picked(press)

    def decided(self, ended: Sequence[Running]) -> str | None:
        """Return what the first of these hooks that has decided picks; the others, and what they say, are left."""
        for hook in ended:
            self.deciding.remove(hook)
            picked = self._picked_by(hook.decision())
            if picked is not None:
                return picked
        return None

    def close(self) -> None:
        """End the hooks that have not decided."""
        for hook in self.deciding:
            hook.end()

    def _picked_by(self, decision: Mapping[str, object]) -> str | None:
        if decision.get("behavior") not in ("allow", "deny"):
            return None
        if decision["behavior"] == "deny" or self._tool == "Bash":
            return "Yes" if decision["behavior"] == "allow" else "No"
        given = decision.get("updatedInput")
        answers = given.get("answers") if isinstance(given, dict) else None
        return ", ".join(map(str, answers.values())) if isinstance(answers, dict) else None


HUNG_UP = 129
_ENDS = {signal.SIGTERM: 143, signal.SIGHUP: HUNG_UP, signal.SIGINT: 0}


def watch_signals(end_with: Callable[[int], None]) -> int:
    """Call `end_with` with the exit status of a signal that ends, and return what becomes readable at every signal."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def ended(number: int, frame: FrameType | None) -> None:
        end_with(_ENDS[signal.Signals(number)])

    for number in _ENDS:
        signal.signal(number, ended)
    for number in (signal.SIGCHLD, signal.SIGWINCH):
        signal.signal(number, lambda *_: None)
    return reading


_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Terminal:
    """Prints above one row that is drawn again after each print. A context manager: raw mode, bracketed paste."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno()
        self._before: list[Any] = []
        self._row = ""
        self._back = ""  #: what goes up to the first of several rows

    def __enter__(self) -> "Terminal":
        self._before = termios.tcgetattr(self.descriptor)
        tty.setraw(self.descriptor, termios.TCSADRAIN)
        self._write("\x1b[?2004h")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write("\r\x1b[K\x1b[?2004l")
        termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)

    @property
    def width(self) -> int:
        """The terminal's columns."""
        return os.get_terminal_size(self.descriptor).columns

    def show(self, text: str, style: str = "") -> None:
        """Print lines above the row: `style` is "", "bold" or "dim"."""
        begin = {"bold": _BOLD, "dim": _DIM}.get(style, "")
        lines = "\r\n".join(f"{begin}{line}{_PLAIN}" for line in _harmless(text).split("\n"))
        self._write(f"{self._back}\r\x1b[J{lines}\r\n{self._row}")

    def row(self, text: str) -> None:
        """Replace the row, which may be several."""
        back, rows = self._back, text.split("\n")
        self._row = "\r\n".join(rows)
        self._back = f"\x1b[{len(rows) - 1}A" if len(rows) > 1 else ""
        self._write(f"{back}\r\x1b[J{self._row}")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def _harmless(text: str) -> str:
    """Show control characters instead of obeying them."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


HUMAN, TASK = "human", "task-notification"
_ESCAPE_WAIT = 0.05  #: seconds after which a lone ESC byte is the Escape key
_READ = 1 << 16


def run_agent(options: Options) -> int:
    """Run until it is told to end, and return the exit status. Raises BadOption."""
    conversation = Conversation(options.state, options.session_id)
    if options.resume:
        try:
            conversation.load()
        except OSError as error:
            raise BadOption(f"No conversation found with session ID: {options.session_id}") from error
    elif conversation.path.exists():
        raise BadOption(f"Session ID {options.session_id} is already in use.")
    if not sys.stdin.isatty():
        raise BadOption("the bundled agent needs a terminal")
    with Terminal() as terminal:
        return Session(options, conversation, terminal).run()


class Session:
    """One process of the agent. At any moment it is idle, in a turn, or in a dialog of a turn."""

    def __init__(self, options: Options, conversation: Conversation, terminal: Terminal) -> None:
        self._options = options
        self._conversation = conversation
        self._terminal = terminal
        self._hooks = Hooks(options.hooks)
        self._keyboard = Keyboard()
        self._composer = Composer()
        self._tasks = Tasks()
        self._queue: list[tuple[str, str]] = []  #: (text, origin)
        self._turn: Steps | None = None
        self._turn_id = ""  #: of the turn that runs, or ran last
        self._wake_at: float | None = None  #: when the turn's pause is over
        self._tool: tuple[str, dict[str, object]] | None = None  #: the tool call that is under way
        self._call_id = ""  #: its id
        self._tool_error = ""  #: why it is going to fail
        self._dialog: OpenDialog | None = None
        self._menu: Menu | None = None
        self._chosen: str | None = None  #: in the latest menu; None: it was left
        self._view = False  #: something stands in the place of the input line
        self._calling: ToolCall | None = None  #: a tool of an MCP server is at work
        self._exit: int | None = None
        self._end_reason = "other"
        self._interrupted_once = False
        self._status_file = options.state / "sessions" / f"{os.getpid()}.json"

    def run(self) -> int:
        """Read and answer until the end."""
        wakeup = watch_signals(self._end_with)
        self._terminal.show("the bundled agent · help tells what it understands", "bold")
        if self._options.resume:
            self._terminal.show(f"resumed: {summary(self._conversation.prompts)}", "dim")
        if self._options.ask and not self._let_in(wakeup):
            return self._exit or 1
        self._fire("SessionStart", source="resume" if self._options.resume else "startup")
        self._tell_status()
        self._first_turns()
        try:
            while self._exit is None:
                self._wait(wakeup)
            return self._exit
        finally:
            self._end()

    def _let_in(self, wakeup: int) -> bool:
        """Show the menu that comes before the session, and return whether its first choice was taken."""
        menu = self._menu = menu_of(self._options.ask)  # no hook has run, and no status file is there
        while self._exit is None and self._menu is menu:
            self._wait(wakeup)
        return self._chosen == menu.first

    def _first_turns(self) -> None:
        """Run what starts by itself: the ends of tasks that nobody was told of, and the prompt of the command line."""
        for task, command in self._conversation.open_tasks.items():
            self._queue.append((notification(task, command, "stopped"), TASK))
        if self._options.prompt:
            self._queue.append((self._options.prompt, HUMAN))
        self._next_turn(boot=bool(self._options.prompt) and not self._options.resume)

    # ---- waiting

    def _end_with(self, status: int) -> None:
        self._exit = status

    def _wait(self, wakeup: int) -> None:
        """Wait for a key, a signal or the end of a pause, and act on it."""
        self._draw()
        ends = [self._wake_at - time.monotonic()] if self._wake_at is not None else []
        if self._keyboard.undecided:
            ends.append(_ESCAPE_WAIT)
        terminal = self._terminal.descriptor
        calling = [self._calling] if self._calling is not None else []
        deciding = self._dialog.deciding if self._dialog is not None else []
        sources = [terminal, wakeup, *deciding, *calling]
        ready, _, _ = select.select(sources, [], [], max(0.0, min(ends)) if ends else None)
        if wakeup in ready:
            os.read(wakeup, _READ)
        if self._calling in ready:
            self._take_result()
        self._take_decisions([hook for hook in deciding if hook in ready])
        presses = self._keyboard.settle() if not ready else []
        if terminal in ready:
            presses = self._keyboard.feed(self._read(terminal))
        for press in presses:
            self._on_press(press)
        self._take_in_tasks()
        if self._wake_at is not None and time.monotonic() >= self._wake_at:
            self._wake_at = None
            self._advance(None)

    def _read(self, terminal: int) -> bytes:
        try:
            data = os.read(terminal, _READ)
        except OSError:  # the terminal is gone
            data = b""
        if not data and self._exit is None:
            self._exit = HUNG_UP
        return data

    def _draw(self) -> None:
        if self._dialog is not None:
            self._terminal.row("? ")
            return
        if self._menu is not None or self._view:
            self._terminal.row(self._menu.text() if self._menu is not None else "a view · C-o leaves it")
            return
        mark = "✻ > " if self._turn is not None else "> "
        self._terminal.row(mark + self._composer.shown(self._terminal.width - len(mark) - 1))

    # ---- keys

    def _on_press(self, press: Press) -> None:
        if press.key is not Key.INTERRUPT:
            self._interrupted_once = False
        if press.key is Key.INTERRUPT or (press.key is Key.ESCAPE and self._turn is not None):
            self._interrupt()
        elif self._menu is not None:
            self._answer_menu(self._menu, press)
        elif self._dialog is not None:
            self._answer_dialog(self._dialog.picked(press))
        elif press.key is Key.VIEW:
            self._view = not self._view
        elif self._view:
            return
        elif press.key is Key.ENTER:
            self._submit(self._composer.take())
        elif press.key is Key.UP:
            self._take_back()
        else:
            self._composer.edit(press)

    def _interrupt(self) -> None:
        """End the turn without a Stop; on C-c without one clear the line, and the second time leave."""
        if self._turn is not None:
            self._turn.close()
            self._turn, self._wake_at, self._tool = None, None, None
            self._close_dialog()
            self._menu = None
            self._end_call()
            self._conversation.interrupted()
            self._terminal.show("interrupted", "dim")
            self._tell_status()
            self._next_turn()
        elif self._interrupted_once:
            self._leave()
        else:
            self._composer = Composer()
            self._interrupted_once = True
            self._terminal.show("C-c again to leave", "dim")

    def _submit(self, message: str) -> None:
        text = message.rstrip()
        if not text.strip():
            return
        if text.startswith("/") or text == "exit":
            self._command(text)
        elif self._turn is None:
            self._start_turn([(text, HUMAN)])
        else:
            self._conversation.queue("enqueue", text)
            self._queue.append((text, HUMAN))
            self._terminal.show(f"queued: {text}", "dim")

    def _take_back(self) -> None:
        """Move what people have queued into the input line, before what stands there."""
        texts = [text for text, origin in self._queue if origin == HUMAN]
        if not texts:
            return
        self._queue = [entry for entry in self._queue if entry[1] != HUMAN]
        for text in texts:
            self._conversation.queue("popAll", text)
        self._composer.text = "\n".join([*texts, *([self._composer.text] if self._composer.text else [])])

    def _command(self, text: str) -> None:
        if text in ("/exit", "exit"):
            self._leave()
        elif text == "/clear" and self._turn is None:
            self._fire("SessionEnd", reason="clear")
            self._conversation = Conversation(self._options.state, str(uuid.uuid4()))
            self._terminal.show("a new conversation", "dim")
            self._fire("SessionStart", source="clear")
            self._tell_status()
        else:
            self._terminal.show(f"{text}: unknown, or not while a turn runs", "dim")

    # ---- turns

    def _next_turn(self, *, boot: bool = False) -> None:
        if self._turn is not None or not self._queue:
            return
        inputs, self._queue = self._queue, []
        self._start_turn(inputs, boot=boot)

    def _start_turn(self, inputs: list[tuple[str, str]], *, boot: bool = False) -> None:
        earlier = list(self._conversation.prompts)
        self._turn_id = str(uuid.uuid4())
        taken = [(text, origin) for text, origin in inputs if self._take(text, origin)]
        if not taken:
            self._tell_status()
            return
        alone = boot and len(taken) == 1 and taken[0][1] == HUMAN
        self._turn = answer([text for text, _ in taken], earlier, boot=alone)
        self._tell_status()
        self._advance(None)

    def _take(self, text: str, origin: str) -> bool:
        """Let the hook see a prompt, and write it down; False if it is blocked."""
        reason = self._fire("UserPromptSubmit", prompt=text)
        if reason is not None:
            self._conversation.blocked(text, reason)
            self._terminal.show(f"blocked by a hook: {reason}", "dim")
            return False
        self._conversation.user(text, origin, self._turn_id)
        for task, command in list(self._conversation.open_tasks.items()) if origin == TASK else []:
            if f"<task-id>{task}</task-id>" in text:
                self._conversation.task(task, command, "reported")
        self._terminal.show(f"> {text}", "bold" if origin == HUMAN else "dim")
        return True

    def _advance(self, result: object) -> None:
        """Carry the turn on until it pauses, asks or ends."""
        while self._turn is not None:
            self._finish_tool(result)
            try:
                step = self._turn.send(result)
            except StopIteration as end:
                self._finish(str(end.value))
                return
            result = self._carry_out(step)
            if self._wake_at is not None or self._calling is not None:
                return
            if self._dialog is not None or self._menu is not None:
                return

    def _carry_out(self, step: Step) -> object:
        match step:
            case Say(text):
                self._terminal.show(text)
            case Pause(seconds):
                self._wake_at = time.monotonic() + seconds
            case Now():
                return datetime.now(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
            case Fail(error, message):
                self._fail(error, message)
            case UseTool(command, seconds, error):
                self._begin_tool("Bash", {"command": command})
                self._wake_at, self._tool_error = time.monotonic() + seconds, error
            case Plan(items):
                todos = [{"content": text, "status": state, "activeForm": text} for text, state in items]
                self._begin_tool("TodoWrite", {"todos": todos})
            case StartTask(seconds):
                return self._start_task(seconds)
            case CallTool(name, arguments):
                return self._begin_call(name, dict(arguments))
            case Permission(command):
                self._begin_tool("Bash", {"command": command})
                self._ask(Dialog(f"May I run `{command}`?", ("Yes", "No")))
            case Choose(text, told):
                self._open_menu(menu_of(text, told=told))
            case Question(text, options):
                labels = [{"label": option, "description": option} for option in options]
                question = {"question": text, "header": "Question", "options": labels, "multiSelect": False}
                self._begin_tool("AskUserQuestion", {"questions": [question]})
                self._ask(Dialog(text, options))
        return None

    def _finish(self, text: str) -> None:
        self._turn = None
        self._conversation.assistant(text)
        self._terminal.show(f"● {text}")
        self._fire("Stop", stop_hook_active=False, last_assistant_message=text, background_tasks=self._tasks.listed())
        self._conversation.over()
        self._end_turn()

    def _fail(self, error: str, message: str) -> None:
        self._turn = None
        self._conversation.assistant(message, error)
        self._terminal.show(f"● {message}", "bold")
        self._fire("StopFailure", error=error, last_assistant_message=message)
        self._end_turn()

    def _end_turn(self) -> None:
        self._tell_status()
        for queued, _ in self._queue:
            self._conversation.queue("dequeue", queued)
        self._next_turn()

    # ---- tools, dialogs, tasks

    def _begin_tool(self, tool: str, given: dict[str, object]) -> None:
        self._tool = (tool, given)
        self._call_id = self._conversation.called(tool, given)
        self._fire("PreToolUse", tool_name=tool, tool_input=given, tool_use_id=self._call_id)
        self._terminal.show(f"· {tool}: {given.get('command', '')}", "dim")

    def _finish_tool(self, result: object) -> None:
        if self._tool is not None:
            (tool, given), self._tool = self._tool, None
            self._conversation.returned()
            told = {"tool_name": tool, "tool_input": given, "tool_use_id": self._call_id}
            if self._tool_error:
                self._fire("PostToolUseFailure", **told, error=self._tool_error)
                self._tool_error = ""
            else:
                self._fire("PostToolUse", **told, tool_response={"result": result})

    def _begin_call(self, name: str, arguments: dict[str, object]) -> str | None:
        """Start the call; what cannot be called is answered at once."""
        server = next(iter(self._options.servers), None)
        if server is None:
            return "error: there is no tool at all"
        self._begin_tool(f"mcp__{server}__{name}", arguments)
        self._calling = ToolCall(self._options.servers[server], name, arguments)
        return None

    def _take_result(self) -> None:
        result = self._calling.result() if self._calling is not None else None
        if result is not None:
            self._end_call()
            self._advance(result)

    def _end_call(self) -> None:
        if self._calling is not None:
            self._calling.end()
            self._calling = None

    def _ask(self, dialog: Dialog) -> None:
        tool, given = self._tool or ("", {})
        session, transcript = self._conversation.session_id, str(self._conversation.path)
        deciding = self._hooks.start(
            "PermissionRequest", session, transcript, prompt_id=self._turn_id, tool_name=tool, tool_input=given
        )
        self._dialog = OpenDialog(dialog, tool, deciding)
        self._terminal.show(dialog.text())
        self._tell_status()

    def _close_dialog(self) -> None:
        if self._dialog is not None:
            self._dialog.close()
            self._dialog = None

    def _take_decisions(self, ended: list[Running]) -> None:
        """Let a hook answer the dialog; one that says nothing leaves it to the terminal."""
        picked = self._dialog.decided(ended) if self._dialog is not None else None
        if picked is not None:
            self._terminal.show("· answered by a hook", "dim")
            self._answer_dialog(picked)

    def _answer_dialog(self, picked: str | None) -> None:
        if picked is None or self._tool is None:
            return
        self._close_dialog()
        self._tell_status()
        if self._tool[0] != "Bash":
            self._advance(picked)
        elif picked == "Yes":
            printed = subprocess.run([str(self._tool[1]["command"])], capture_output=True, text=True, check=False)
            self._advance((True, printed.stdout.strip()))
        else:
            self._advance((False, ""))

    def _open_menu(self, menu: Menu) -> None:
        self._menu = menu
        self._tell_status()

    def _answer_menu(self, menu: Menu, press: Press) -> None:
        picked = menu.pressed(press)
        if picked is None and press.key is not Key.ESCAPE:
            return
        self._menu, self._chosen = None, picked
        if self._turn is not None:
            self._tell_status()
            self._advance(picked)

    def _start_task(self, seconds: float) -> str:
        task, command = self._tasks.start(seconds)
        given = {"command": command, "run_in_background": True}
        self._fire("PreToolUse", tool_name="Bash", tool_input=given)
        self._conversation.task(task, command, "running")
        self._fire("PostToolUse", tool_name="Bash", tool_input=given, tool_response={"backgroundTaskId": task})
        return task

    def _take_in_tasks(self) -> None:
        for _, text in self._tasks.ended():
            if self._turn is None:
                self._start_turn([(text, TASK)])
            else:
                self._conversation.queue("enqueue", text)
                self._queue.append((text, TASK))

    # ---- the outside

    def _fire(self, event: str, **fields: object) -> str | None:
        session, transcript = self._conversation.session_id, str(self._conversation.path)
        turn = {"prompt_id": self._turn_id} if self._turn_id else {}
        return self._hooks.run(event, session, transcript, **turn, **fields)

    def _tell_status(self) -> None:
        """Rewrite the status file: idle, shell, busy or waiting. Hooks tell that too, where it cannot be written."""
        quiet = "shell" if self._tasks.listed() else "idle"
        waits = self._dialog is not None or (self._menu is not None and self._menu.told)
        status = "waiting" if waits else "busy" if self._turn is not None else quiet
        what = "permission prompt" if self._dialog is not None else "dialog open"
        content = {
            "pid": os.getpid(),
            "sessionId": self._conversation.session_id,
            "cwd": working_folder(),
            "status": status,
            **({"waitingFor": what} if status == "waiting" else {}),
        }
        with suppress(OSError):
            self._status_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = Path(f"{self._status_file}.tmp")
            temporary.write_text(json.dumps(content), encoding="utf-8")
            temporary.replace(self._status_file)

    def _leave(self) -> None:
        self._exit, self._end_reason = 0, "prompt_input_exit"

    def _end(self) -> None:
        self._close_dialog()
        self._end_call()
        self._tasks.end_all()
        self._fire("SessionEnd", reason=self._end_reason)
        with suppress(OSError):
            self._status_file.unlink(missing_ok=True)
