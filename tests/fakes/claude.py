"""A program called `claude` for tests: the bundled agent with the options and the files of Claude Code.

It behaves as Claude Code 2.1.197 does, or differs from that in one thing, by `--behave NAME` among its arguments. What
it really did stands in the file that `--truth FILE` names, a JSON object a line: {"at": epoch seconds, "what", "text"}.

    began, over      a turn, however it ended          received         an Enter submitted this text
    queued, taken    it is in the queue; a turn has it  dropped          a queued one is gone
    dialog, entered  a dialog; an Enter answered it    bounced          a blocked one is in the input line
    left             the program has ended

Standard library and the bundled agent only; it is run by `python -I -S`, as that is. `install` makes it a program.
"""

import json
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embedded.agent import session as agent
from embedded.agent.answers import Pause, Steps, answer
from embedded.agent.conversation import BadOption, Conversation, Options, parse
from embedded.agent.session import Dialog, Key, Press, Terminal

ROOT = Path(__file__).resolve().parents[2]
VERSION = "99.0.0"  #: nobody has tried it, so that nothing is taken for granted
_OPENS, _CLOSES = '<pasted_content id="3770">', '</pasted_content id="3770">'
_VALUED = ("--session-id", "--resume", "--settings", "--mcp-config")


@dataclass(frozen=True)
class Behaviour:
    """In what it differs from Claude Code 2.1.197."""

    unheard: tuple[str, ...] = ()  #: hooks that never fire; "*": none does
    early: bool = False  #: a prompt of mid-turn is reported as it is queued, with the running turn's id, and not again
    twice: tuple[str, ...] = ()  #: hooks that fire two times
    stops_early: bool = False  #: the end of a turn is reported as its first tool begins, and not again
    goes_on: float = (
        0.0  #: seconds for which a turn but the boot's goes on once its end was reported, blocked by another hook
    )
    queues_after: float = (
        0.0  #: seconds from the report of such a prompt to its place in the queue: another hook is slow
    )
    steers: bool = False  #: what is queued is slipped into the running turn as its tool ends, which no hook reports
    bounces: bool = False  #: what a hook blocks comes back into the input line
    forgets: bool = False  #: its queue is gone after an Escape
    stays_busy: bool = False  #: its status file calls it busy while a dialog is open
    wraps: bool = False  #: what is typed or pasted into it reaches its model as pasted from somewhere else
    reads_after: float = 0.0  #: seconds from what comes in to its reading; an Enter read with a paste is a line break
    transcript: str = "usual"  #: renamed | gone | foreign: another file, none, or lines of another form


BEHAVIOURS: Mapping[str, Behaviour] = {
    "usual": Behaviour(),
    "steers": Behaviour(steers=True),
    "newest": Behaviour(early=True, steers=True, bounces=True),
    "boot hook never": Behaviour(unheard=("SessionStart",)),
    "boot hook twice": Behaviour(twice=("SessionStart",)),
    "start hook early": Behaviour(early=True),
    "start hook early and queued late": Behaviour(early=True, queues_after=4.0),
    "start hook never": Behaviour(unheard=("UserPromptSubmit",)),
    "start hook twice": Behaviour(twice=("UserPromptSubmit",)),
    "stop hook early": Behaviour(stops_early=True),
    "stop hook blocked": Behaviour(goes_on=8.0),
    "stop hook never": Behaviour(unheard=("Stop",)),
    "stop hook twice": Behaviour(twice=("Stop",)),
    "hooks never": Behaviour(unheard=("*",)),
    "dialog without a hook": Behaviour(unheard=("PermissionRequest",)),
    "dialog on the screen alone": Behaviour(unheard=("PermissionRequest",), stays_busy=True),
    "transcript renamed": Behaviour(transcript="renamed"),
    "transcript gone": Behaviour(transcript="gone"),
    "transcript of another form": Behaviour(transcript="foreign"),
    "blocked prompts bounce": Behaviour(bounces=True),
    "queue dropped at an escape": Behaviour(forgets=True),
    "pastes are wrapped": Behaviour(wraps=True),
    "input is read late": Behaviour(reads_after=2.0),
}


class Truth:
    """Writes down what really happened."""

    def __init__(self, path: str) -> None:
        self._path = path

    def tell(self, what: str, text: str = "") -> None:
        """Append one thing."""
        line = json.dumps({"at": time.time(), "what": what, "text": text}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class ClaudeConversation(Conversation):
    """One conversation where Claude Code keeps it: by the folder that it works in."""

    form = "usual"

    def __init__(self, state: Path, session_id: str) -> None:
        super().__init__(state, session_id)
        folder = state / "projects" / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(os.getcwd()))
        self.path = folder / f"{session_id}{'.v2' if self.form == 'renamed' else ''}.jsonl"

    def steered(self, text: str) -> None:
        """Append that a queued prompt was slipped into the running turn."""
        self._append({"type": "queue-operation", "operation": "remove", "content": text})
        attachment = {"type": "queued_command", "prompt": text, "origin": {"kind": agent.HUMAN}}
        self._append({"type": "attachment", "attachment": attachment})

    def _append(self, entry: dict[str, Any]) -> None:
        if self.form == "gone":
            self._remember(entry)
        elif self.form == "foreign":
            self._remember(entry)
            super()._append({"schema": 2, "record": {"of": entry.get("type"), "body": str(entry.get("message"))}})
        else:
            super()._append(entry)


class ClaudeDialog(Dialog):
    """A dialog as Claude Code draws it."""

    def text(self) -> str:
        """Return what is shown."""
        first, *others = (f"{number}. {option}" for number, option in enumerate(self._options, 1))
        lines = ["\u2500" * 40, f" {self._question}", f" \u276f {first}", *(f"   {other}" for other in others)]
        return "\n".join([*lines, "", " Esc to cancel · Tab to amend"])


class ClaudeSession(agent.Session):
    """The agent's session, with what it does differently, and what it really does written down."""

    def __init__(
        self, options: Options, conversation: Conversation, terminal: Terminal, behaviour: Behaviour, truth: Truth
    ) -> None:
        super().__init__(options, conversation, terminal)
        self._behaviour = behaviour
        self._truth = truth
        self._reported: list[str] = []  #: queued prompts that a hook has been told of
        self._in_turn = False
        self._stopped = ""  #: the turn whose end was reported early
        self._blocked = ""  #: the turn whose end was blocked
        self._late: list[tuple[float, str]] = []  #: when these are queued whose hooks still run

    # ---- prompts

    def _submit(self, message: str) -> None:
        if self._behaviour.wraps and message.strip():
            message = f"\n\n{_OPENS}\n{message.rstrip()}\n{_CLOSES}\n"
        text = message.rstrip()
        if text.strip():
            self._truth.tell("received", text)
        queues = self._turn is not None and bool(text.strip()) and not text.startswith("/") and text != "exit"
        if queues and self._behaviour.early:
            if self._fire("UserPromptSubmit", prompt=text) is not None:
                self._bounce(text)
                return
            self._reported.append(text)
        if queues and self._behaviour.queues_after:
            self._late.append((time.monotonic() + self._behaviour.queues_after, message))
            timer = threading.Timer(self._behaviour.queues_after, os.kill, (os.getpid(), signal.SIGWINCH))
            timer.daemon = True
            timer.start()  # wakes the loop
            return
        super()._submit(message)
        if queues:
            self._truth.tell("queued", text)

    def _take_in_tasks(self) -> None:
        super()._take_in_tasks()
        now = time.monotonic()
        due = [message for at, message in self._late if at <= now]
        self._late = [(at, message) for at, message in self._late if at > now]
        for message in due:
            queues = self._turn is not None
            super()._submit(message)
            if queues:
                self._truth.tell("queued", message.rstrip())

    def _read(self, terminal: int) -> bytes:
        if not self._behaviour.reads_after:
            return super()._read(terminal)
        time.sleep(self._behaviour.reads_after)  # the behaviour itself: what comes meanwhile is read in one
        return re.sub(rb"(?<=\x1b\[201~)\r+", lambda enters: b"\n" * len(enters[0]), super()._read(terminal))

    def _take(self, text: str, origin: str) -> bool:
        taken = super()._take(text, origin)
        if text in self._reported:
            self._reported.remove(text)
        if not taken:
            self._bounce(text)
            return False
        if not self._in_turn:
            self._in_turn = True
            self._truth.tell("began")
        self._truth.tell("taken", text)
        return True

    def _bounce(self, text: str) -> None:
        if self._behaviour.bounces:
            self._composer.text = text
            self._truth.tell("bounced", text)

    def _finish_tool(self, result: object) -> None:
        steers = self._tool is not None and self._behaviour.steers
        super()._finish_tool(result)
        if steers:
            for text in [text for text, origin in self._queue if origin == agent.HUMAN]:
                self._queue.remove((text, agent.HUMAN))
                assert isinstance(self._conversation, ClaudeConversation)
                self._conversation.steered(text)
                self._truth.tell("taken", text)

    # ---- turns

    def _begin_tool(self, name: str, given: dict[str, object]) -> None:
        super()._begin_tool(name, given)
        if self._behaviour.stops_early:
            self._fire("Stop", stop_hook_active=False, last_assistant_message="", background_tasks=[])
            self._stopped = self._turn_id

    def _over(self) -> None:
        if self._in_turn:
            self._in_turn = False
            self._truth.tell("over")

    def _finish(self, text: str) -> None:
        boot = len(self._conversation.prompts) == 1
        if self._behaviour.goes_on and self._blocked != self._turn_id and not boot:
            self._blocked = self._turn_id
            self._conversation.assistant(text)
            self._fire("Stop", stop_hook_active=False, last_assistant_message=text, background_tasks=[])
            self._turn = _going_on(self._behaviour.goes_on)
            next(self._turn)
            self._wake_at = time.monotonic() + self._behaviour.goes_on
            return
        self._over()
        super()._finish(text)

    def _interrupt(self) -> None:
        if self._turn is not None and self._behaviour.forgets:
            self._drop()
        self._over()
        super()._interrupt()

    def _drop(self) -> None:
        for text, _ in self._queue:
            self._truth.tell("dropped", text)
        self._queue = []

    def _end(self) -> None:
        self._drop()
        self._over()
        super()._end()
        self._truth.tell("left")

    # ---- dialogs, hooks, status

    def _ask(self, dialog: Dialog) -> None:
        self._truth.tell("dialog")
        super()._ask(dialog)

    def _on_press(self, press: Press) -> None:
        if self._dialog is not None and press.key is Key.ENTER:
            self._truth.tell("entered")
        super()._on_press(press)

    def _fire(self, event: str, **fields: object) -> str | None:
        if event == "UserPromptSubmit" and fields["prompt"] in self._reported:
            return None  # it was reported as it was queued
        if event == "Stop" and self._stopped == self._turn_id:
            return None  # it was reported as its tool began
        reason = super()._fire(event, **fields)
        return super()._fire(event, **fields) if reason is None and event in self._behaviour.twice else reason

    def _draw(self) -> None:
        if self._dialog is not None:
            self._terminal.row("")
        else:
            shown = self._composer.shown(self._terminal.width - 3).replace("[Pasted text:", "[Pasted text #1:")
            self._terminal.row(f"\u276f {shown}")

    def _tell_status(self) -> None:
        shown = self._dialog
        if self._behaviour.stays_busy:
            self._dialog = None
        super()._tell_status()
        self._dialog = shown


def run(argv: Sequence[str]) -> int:
    """Run as Claude Code would with these arguments."""
    given, prompt = _given(argv)
    behaviour = BEHAVIOURS[given.pop("--behave", "usual")]
    truth = Truth(given.pop("--truth", os.devnull))
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"]) / ".claude")
    words = ["--state", str(home), *(word for pair in given.items() for word in pair)]
    options = parse([*words, *(() if prompt is None else ("--", prompt))])
    unheard = set(options.hooks) if "*" in behaviour.unheard else set(behaviour.unheard)
    options = replace(options, hooks={event: each for event, each in options.hooks.items() if event not in unheard})
    ClaudeConversation.form = behaviour.transcript
    changes = {"Conversation": ClaudeConversation, "Dialog": ClaudeDialog, "answer": _answer}
    vars(agent).update(changes)  # of this process alone
    conversation = ClaudeConversation(home, options.session_id)
    if options.resume:
        with suppress(OSError):  # it remembers by other means
            conversation.load()
    with Terminal() as terminal:
        return ClaudeSession(options, conversation, terminal, behaviour, truth).run()


def _answer(prompts: Sequence[str], earlier: Sequence[str], *, boot: bool = False) -> Steps:
    """Answer what stands in the prompts, whatever is around it; `think N` is answered after N seconds of silence."""
    plain = [prompt.replace(_OPENS, "").replace(_CLOSES, "").strip() for prompt in prompts]
    thinks = re.search(r"\bthink (\d+)$", plain[-1]) if plain else None
    if thinks:
        return _going_on(float(thinks[1]))
    return answer(plain, earlier, boot=boot)


def _going_on(seconds: float) -> Steps:
    """Go on with a turn for so long, without a word."""
    yield Pause(seconds)
    return "That was all."


def _given(argv: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Return the options that mean something here, and the prompt; whatever else Claude Code would take is let pass."""
    given: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if word == "--":
            return given, next(words, None)
        if word in (*_VALUED, "--behave", "--truth"):
            given[word] = next(words)
    return given, None


def main(argv: Sequence[str]) -> int:
    """Run, and return the exit status."""
    os.umask(0o077)
    if "--version" in argv:
        print(f"{VERSION} (Claude Code)")
        return 0
    try:
        return run(argv)
    except BadOption as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def install(folder: Path) -> None:
    """Write the program `claude` into the folder."""
    lines = ("import sys", f"sys.path.insert(0, {str(ROOT)!r})", "from tests.fakes.claude import main")
    words = [sys.executable, "-I", "-S", "-c", "; ".join((*lines, "sys.exit(main(sys.argv[1:]))"))]
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
