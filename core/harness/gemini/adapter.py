"""The adapter of Gemini CLI: its traits, its launch, and which versions were tried."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.errors import InvalidValue, UnsupportedHarness
from core.harness.base import find_executable, object_of, text_of
from core.harness.gemini.home import FILES, home_of, hooks_off, install_home, login_missing, person_of, read_settings
from core.harness.gemini.hooks import DIALOG, hook_settings, install_reporter, interpret
from core.harness.gemini.record import (
    Conversation,
    Turns,
    find_conversation,
    has_answer,
    has_turn,
    is_answered,
    messages_of,
    probe_of,
    read_input_line,
)
from core.harness.gemini.work import WorkFile
from core.harness.programs import Programs
from core.model.activity import Capability, Failure
from core.model.harness import (
    Echo,
    HarnessEvent,
    IdPolicy,
    Installed,
    Launch,
    Report,
    Retry,
    SessionContext,
    StatusProbe,
    Traits,
    Working,
    numbers_of,
)
from core.model.pane import InputLine, View
from core.model.session import Definition
from core.model.tools import SERVER

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord

#: Whose cases of tests/harness were run, oldest first.
TRIED = ("0.61.0",)
NEEDED = (0, 53)  #: whose hooks and arguments are known to do; older ones are refused
_PROGRAM = "gemini"
_PACKAGE = "@google/gemini-cli"
_SECONDS = 20.0  #: it takes a second or two to say its version, and more on a busy machine
_UPDATE = f"update it: `npm install -g {_PACKAGE}`"
_LOGIN = (
    "run `gemini` once in a terminal and log in, or set GEMINI_API_KEY in the environment of whoever starts sessions"
)

#: flag -> why an operator cannot give it
OWNED: Mapping[str, str] = {
    **dict.fromkeys(
        ("--resume", "-r", "--session-id", "--session-file"),
        "which conversation runs is decided by the session's record",
    ),
    **dict.fromkeys(
        ("--prompt", "-p", "--output-format", "-o", "--acp", "--experimental-acp"), "a standing session is interactive"
    ),
    **dict.fromkeys(("--prompt-interactive", "-i", "--"), "set the session's prompt instead"),
    **dict.fromkeys(("--worktree", "-w"), "conversations are kept per folder; set the session's cwd instead"),
    **dict.fromkeys(
        ("--version", "-v", "--help", "-h", "--list-sessions", "--list-extensions", "-l", "--delete-session"),
        "it prints and exits",
    ),
    "--screen-reader": "the-loop reads its usual screen, which this flag changes",
}
_MODES = ("--approval-mode", "--yolo", "-y")


class GeminiHarness:
    """Drives Gemini CLI in its pane.

    `environ` is what the pane will inherit: HOME, GEMINI_CLI_HOME, PATH and the variables of its login are read from
    it. `trust_enabled`: the session's folder counts as trusted, so that Gemini does not ask.
    """

    name = "gemini"
    traits = Traits(
        id_policy=IdPolicy.PREASSIGNED,
        title="Gemini CLI",
        settle=0.5,  # an Enter within 0.04 s after the paste was read is a newline; a busy machine needs longer
        echo=Echo("\n > ", r"\[Pasted Text: \d+"),
        evidence=True,
        recorded_within=5.0,  # 0.3 s where it has the machine for itself
        boot_signal=True,
        turn_gate=True,
        tools=True,
        clear=b"\x05" + b"\x15\x7f" * 20,  # C-e, then C-u, which empties a line, and a backspace, which leaves it
        interrupt=b"\x1b",
        inline_limit=120_000,  # what is longer lies outside of its workspace, and it asks before it reads that
        argument_limit=120 * 1024,
        remedies={
            Failure.LOGIN: "on {host} run `gemini` and `/auth`; if it uses an API key, correct that key and run "
            "`the-loop restart`",
            Failure.LENGTH: "type `/compress` or `/clear` at its terminal, {attach}",
            Failure.MODEL: "choose another by `/model` at its terminal, {attach}",
        },
        input_line=True,
        lacks=frozenset({Capability.PERMISSION_HOOK, Capability.MODE, Capability.BACKGROUND_TASKS}),
    )

    def __init__(self, environ: Mapping[str, str], *, trust_enabled: bool = True) -> None:
        self._environ = environ
        self._person = person_of(environ)
        self._trust_enabled = trust_enabled
        self._programs = Programs(TRIED, package=_PACKAGE, seconds=_SECONDS)
        self._work: dict[str, WorkFile] = {}  #: by session

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run: without the program, with one that is too old, or without a login.

        Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue.
        """
        for arg in args:
            flag = arg.partition("=")[0]
            if flag in OWNED:
                raise InvalidValue(
                    f"harnessArgs of gemini: {arg!r} cannot be given: {OWNED[flag]}",
                    f"remove {arg!r} from harnessArgs",
                )
        self._executable()
        installed = self.installed()
        if installed is not None and installed.version and numbers_of(installed.version) < NEEDED:
            raise UnsupportedHarness(
                f"gemini {installed.version} is too old: the hooks and arguments of {'.'.join(map(str, NEEDED))} and "
                "newer are known to do",
                _UPDATE,
            )
        if login_missing(self._person, self._environ, Path(definition.cwd) if definition.cwd else None):
            raise UnsupportedHarness("gemini is not logged in: neither its settings nor a key say how", _LOGIN)

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": what it would ask at its start is settled, or `check` refuses it."""
        return ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return which settings would keep our hooks from running; "" for none."""
        path = hooks_off(self._person, cwd)
        if path is None:
            return ""
        return (
            f"Gemini runs no hooks of ours, because hooksConfig in {path} switches them off: what its sessions do is "
            "known only from their records and screens; remove it there, then restart the session"
        )

    def installed(self) -> Installed | None:
        """Tell the program's version: by its package, else by asking it, once for each program that it is."""
        return self._programs.installed(self._executable, self._environ)

    def new_session_id(self) -> str | None:
        """Return a new UUID; Gemini takes nothing else."""
        import uuid

        return str(uuid.uuid4())

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the conversation holds anything that was said. Raises TrustFailed where it cannot be read.

        Its file is there from the start on, and Gemini refuses to resume one in which nothing was said.
        """
        path = self._conversation(context)
        return path is not None and has_turn(messages_of(path))

    def missing(self, context: SessionContext) -> str:
        """Return where its conversation would lie, or that it holds nothing."""
        path = self._conversation(context)
        return f"its record {path} holds no turn" if path else f"its record is not below {home_of(context.folder)}"

    def answered(self, context: SessionContext) -> bool:
        """Return whether the conversation's file holds an answer. Raises TrustFailed where it cannot be read."""
        path = self._conversation(context)
        return path is not None and has_answer(messages_of(path))

    def prepare(self, context: SessionContext) -> None:
        """Write the hooks and the session's own home of Gemini's.

        Raises TrustFailed, and InvalidValue for settings of the person's that cannot be read.
        """
        reporter = install_reporter(context)
        command, *arguments = context.tool_server
        ours: dict[str, Any] = {
            "hooks": hook_settings(reporter),
            "mcpServers": {SERVER: {"command": command, "args": arguments, "trust": True}},
            "context": {"includeDirectories": [str(context.folder / FILES)]},
        }
        install_home(context.folder, self._person, self._environ, ours, context.cwd, trusts=self._trust_enabled)

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the command. Without its own relaunch it is one process, which a TERM ends.

        Raises HarnessNotInstalled, InvalidValue.
        """
        if context.session_id is None:
            raise InvalidValue(f"{context.name}: gemini needs a conversation id", "take one from new_session_id")
        conversation = ("--resume" if resume else "--session-id", context.session_id)
        last = () if prompt is None else (f"--prompt-interactive={prompt}",)
        argv = (self._executable(), *conversation, *self._mode(context.args), *context.args, *last)
        environ = {"GEMINI_CLI_HOME": str(home_of(context.folder)), "GEMINI_CLI_NO_RELAUNCH": "true"}
        return Launch(argv, environ)

    def _mode(self, args: Sequence[str]) -> tuple[str, ...]:
        """Return the argument that names the approval mode; () where the operator's arguments do.

        What a project's settings name does not count: a folder that was cloned must not choose what its agent may do.
        """
        if any(arg.partition("=")[0] in _MODES for arg in args):
            return ()
        chosen = text_of(object_of(read_settings(self._person / "settings.json"), "general"), "defaultApprovalMode")
        return ("--approval-mode", chosen or "default")

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means."""
        return interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return Conversation(home_of(context.folder), context.session_id, from_start=from_start)

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        return Turns(home_of(context.folder), context.session_id, since=since) if context.session_id else None

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Tell whether the answer to the latest prompt is there. It is asked once a hook has told of the turn's end."""
        return context.session_id is not None and is_answered(home_of(context.folder), context.session_id)

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Read the conversation's latest lines, and whether a dialog may be open."""
        if context.session_id is None:
            return None
        return probe_of(home_of(context.folder), context.session_id, context.folder / DIALOG)

    def working(self, context: SessionContext) -> Working | None:
        """Read on in the conversation's file; None where it is not there. Raises StoreBroken."""
        path = self._conversation(context)
        if path is None:
            return None
        known = self._work.get(context.uid)
        if known is None or known.path != path:
            known = self._work[context.uid] = WorkFile(path)
        return known.look()

    def input_line(self, view: View) -> InputLine | None:
        """Return the line in which a message is written; None where it is not shown."""
        return read_input_line(view)

    def remark(self, dialog: str) -> str:
        """Return "": its dialogs say all there is."""
        return ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return None: a hook tells when it reads."""
        return None

    def retry_shown(self, screen: str) -> Retry | None:
        """Return None: its screen does not tell of a request that it tries again."""
        return None

    def _executable(self) -> str:
        return find_executable(self.name, _PROGRAM, self._environ.get("PATH", os.defpath))

    def _conversation(self, context: SessionContext) -> Path | None:
        return find_conversation(home_of(context.folder), context.session_id) if context.session_id else None
