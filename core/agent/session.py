"""The agent's session: keys in, turns, hooks, the queue, dialogs, and an orderly end."""

import json
import os
import select
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from core.agent.answers import (
    CallTool,
    Choose,
    Fail,
    Now,
    Pause,
    Permission,
    Question,
    Say,
    StartTask,
    Step,
    Steps,
    UseTool,
    answer,
)
from core.agent.composer import Composer
from core.agent.conversation import Conversation, summary, working_folder
from core.agent.dialog import Dialog, Menu, OpenDialog, menu_of
from core.agent.hooks import Hooks, Running
from core.agent.keyboard import Key, Keyboard, Press
from core.agent.options import BadOption, Options
from core.agent.signals import HUNG_UP, watch_signals
from core.agent.tasks import Tasks, notification
from core.agent.terminal import Terminal
from core.agent.tools import ToolCall

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
            case UseTool(command, seconds):
                self._begin_tool("Bash", {"command": command})
                self._wake_at = time.monotonic() + seconds
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
        self._fire("PreToolUse", tool_name=tool, tool_input=given)
        self._terminal.show(f"· {tool}: {given.get('command', '')}", "dim")

    def _finish_tool(self, result: object) -> None:
        if self._tool is not None:
            (tool, given), self._tool = self._tool, None
            self._fire("PostToolUse", tool_name=tool, tool_input=given, tool_response={"result": result})

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
        """Rewrite the status file: idle, shell, busy or waiting."""
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
        self._status_file.unlink(missing_ok=True)
