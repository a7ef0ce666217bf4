"""The adapter of the bundled agent, a program of our own that uses Claude Code's hooks and file formats."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import InvalidValue
from core.harness.base import SETTINGS, install_tools, read_opinion, servers_file
from core.harness.claude.files import ConversationFile, TurnsFile, ended_since, has_answer, has_turn, untaken
from core.harness.claude.hooks import install_hooks, interpret
from core.harness.claude.work import WorkFiles
from core.model.harness import (
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
)
from core.model.pane import InputLine, View
from core.model.session import Definition
from embedded import agent

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord


_PROGRAM = Path(agent.__file__).parent  #: what `python` is given to run
_STATE = "agent"  #: folder in the session's folder
ASK = "--ask"  #: `QUESTION | A | B`, a dialog before its start: any but the first choice ends it


class BundledHarness:
    """Drives the bundled agent. Its conversations lie in the session's own folder."""

    name = "bundled"
    traits = Traits(
        id_policy=IdPolicy.PREASSIGNED,
        settle=0.05,
        queues_input=True,
        evidence=True,
        boot_signal=True,
        turn_gate=True,
        tools=True,
        clear=b"\x15" * 40,  # C-u: two clear a line
        take_back=b"\x1b[A",  # Up
        interrupt=b"\x1b",
        stash=b"\x13",  # C-s
        input_line=True,
    )

    def __init__(self) -> None:
        self._work = WorkFiles()

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse arguments: it takes one, a question before everything else. Raises InvalidValue."""
        if args and (args[0] != ASK or len(args) != 2):
            raise InvalidValue(
                f"harnessArgs of bundled: {args[0]!r}: the bundled agent takes `{ASK} QUESTION` alone",
                "remove harnessArgs",
            )

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": it opens none at its start."""
        return ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": nothing is known that would keep it from telling what it tells."""
        return ""

    def installed(self) -> Installed | None:
        """Return None: it comes with the-loop."""
        return None

    def new_session_id(self) -> str | None:
        """Return a new UUID."""
        import uuid

        return str(uuid.uuid4())

    def resumable(self, context: SessionContext) -> bool:
        """Return whether the conversation's file holds a turn. Raises TrustFailed where it cannot be read."""
        return context.session_id is not None and has_turn(_conversation(context, context.session_id))

    def missing(self, context: SessionContext) -> str:
        """Return where its conversation would lie, or that it holds nothing."""
        return untaken(_conversation(context, context.session_id)) if context.session_id else "it has no id"

    def answered(self, context: SessionContext) -> bool:
        """Return whether the conversation's file holds an answer. Raises TrustFailed where it cannot be read."""
        return context.session_id is not None and has_answer(_conversation(context, context.session_id))

    def prepare(self, context: SessionContext) -> None:
        """Write the hooks and the list of tools into the session's folder. Raises TrustFailed."""
        install_hooks(context, {})
        install_tools(context)

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the command. Raises InvalidValue."""
        if context.session_id is None:
            raise InvalidValue(f"{context.name}: bundled needs a conversation id", "take one from new_session_id")
        interpreter = (sys.executable, "-I", "-S", str(_PROGRAM))
        files = ("--state", str(context.folder / _STATE), "--settings", str(context.folder / SETTINGS))
        tools = ("--mcp-config", str(servers_file(context)))
        conversation = ("--resume" if resume else "--session-id", context.session_id)
        last = () if prompt is None else ("--", prompt)
        return Launch((*interpreter, *files, *tools, *conversation, *context.args, *last))

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means."""
        return interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        if context.session_id is None:
            return None
        return ConversationFile(_conversation(context, context.session_id), from_start=from_start)

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the conversation's file, which need not be there yet; None without an id."""
        return TurnsFile(_conversation(context, context.session_id), since=since) if context.session_id else None

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Tell whether the conversation's file holds the end of a turn that is younger."""
        return context.session_id is not None and ended_since(_conversation(context, context.session_id), since)

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Read the agent's status file."""
        return read_opinion(context.folder / _STATE / "sessions" / f"{pane_pid}.json")

    def working(self, context: SessionContext) -> Working | None:
        """Read on in the conversation's file; None without an id, or before its first turn."""
        if context.session_id is None:
            return None
        return self._work.look(context.uid, _conversation(context, context.session_id))

    def input_line(self, view: View) -> InputLine | None:
        """Return the last row that is not empty, if that is the input line."""
        last = next((row for row in reversed(view.rows) if row.strip()), "").removeprefix("✻ ")
        return InputLine(last[1:].strip()) if last.rstrip() == ">" or last.startswith("> ") else None

    def remark(self, dialog: str) -> str:
        """Return "": its dialogs say all there is."""
        return ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return None: a hook tells when it reads."""
        return None

    def retry_shown(self, screen: str) -> Retry | None:
        """Return None: it tries nothing again."""
        return None


def _conversation(context: SessionContext, session_id: str) -> Path:
    return context.folder / _STATE / "conversations" / f"{session_id}.jsonl"
