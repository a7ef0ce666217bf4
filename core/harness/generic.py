"""A terminal program that its operator describes in the configuration: no hooks, no evidence, no second source.

Cursor is known here, and refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import InvalidValue, UnsupportedHarness
from core.harness.base import Untold, find_executable, make_folders
from core.model.harness import (
    HarnessEvent,
    IdPolicy,
    Installed,
    Launch,
    PasteStyle,
    Report,
    Retry,
    SessionContext,
    StatusProbe,
    Traits,
)
from core.model.pane import InputLine, View
from core.model.session import Definition

if TYPE_CHECKING:
    from core.model.harness import Transcript, TurnRecord


ID = "{id}"  #: stands for the conversation's id in `start` and `resume`
PROMPT = "{prompt}"  #: stands for the boot prompt in `start`; without it the boot prompt is pasted


class _Unknown(Untold):
    """What is answered for a program of which nothing is known but how it is started."""

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return (): it has no hooks."""
        return ()

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Return None: we know of no record."""
        return None

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Return None: we know of no record."""
        return None

    def end_recorded(self, context: SessionContext, since: datetime) -> bool:
        """Return False: we know of no record."""
        return False

    def probe_status(self, context: SessionContext, pane_pid: int) -> StatusProbe | None:
        """Return None."""
        return None

    def input_line(self, view: View) -> InputLine | None:
        """Return None: what its input line looks like is not known."""
        return None

    def remark(self, dialog: str) -> str:
        """Return "": nothing is known of its dialogs."""
        return ""

    def retry_shown(self, screen: str) -> Retry | None:
        """Return None: nothing is known of what it shows."""
        return None


class GenericHarness(_Unknown):
    """Drives `harnesses.<key>`.

    `start` and `resume` are argument lists. An id is chosen by us where `start` has a place for it, and only then can a
    conversation be resumed. `paste` is "auto", "bracketed" or "plain", `settle_ms` milliseconds, `clear` what a
    terminal sends to empty the composer. Raises InvalidValue for a `ready` that is no regular expression or an empty
    `start`.
    """

    def __init__(
        self,
        key: str,
        start: Sequence[str],
        *,
        resume: Sequence[str] | None = None,
        ready: str | None = None,
        paste: str = "auto",
        settle_ms: int = 300,
        clear: bytes | None = None,
        path: str | None = None,
    ) -> None:
        if not start:
            raise InvalidValue(f"harnesses.{key}.start is empty", "name the program and its arguments as a list")
        self.name = key
        self._start = tuple(start)
        self._resume = None if resume is None else tuple(resume)
        self._ready = _compiled(key, ready)
        self._path = path if path is not None else os.environ.get("PATH")
        preassigned = any(ID in part for part in self._start)
        self.traits = Traits(
            id_policy=IdPolicy.PREASSIGNED if preassigned else IdPolicy.NONE,
            paste=PasteStyle(paste),
            settle=settle_ms / 1000,
            clear=clear,
            prompt_argument=any(PROMPT in part for part in self._start),
        )

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse a program that is not installed. Raises HarnessNotInstalled."""
        find_executable(self.name, self._start[0], self._path)

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": nothing is known of its dialogs."""
        return ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": nothing is known that would keep it from telling what it tells."""
        return ""

    def installed(self) -> Installed | None:
        """Return None: nothing is promised of its versions."""
        return None

    def new_session_id(self) -> str | None:
        """Return a new UUID where `start` has a place for it."""
        import uuid

        return str(uuid.uuid4()) if self.traits.id_policy is IdPolicy.PREASSIGNED else None

    def resumable(self, context: SessionContext) -> bool:
        """Return whether there is an id and a command for it; only a start shows whether the program still knows it."""
        return self._resume is not None and context.session_id is not None

    def missing(self, context: SessionContext) -> str:
        """Return that nothing says how: an id and a command are all that is asked for."""
        return f"harnesses.{self.name}.resume is not set"

    def answered(self, context: SessionContext) -> bool:
        """Return False: we know of no record."""
        return False

    def prepare(self, context: SessionContext) -> None:
        """Make the session's folder. Raises TrustFailed."""
        make_folders(context)

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return the declared command with its places filled in, and the operator's arguments in it.

        Raises HarnessNotInstalled, and UnsupportedHarness where it was asked to resume and no `resume` is declared.
        """
        command = self._start
        if resume:
            if self._resume is None:
                raise UnsupportedHarness(
                    f"{self.name} cannot resume a conversation: harnesses.{self.name}.resume is not set",
                    "set it, or start a fresh conversation",
                )
            command = self._resume
        executable = find_executable(self.name, command[0], self._path)
        given = _with_arguments(command[1:], context.args)
        parts = [part for part in given if part != PROMPT or prompt is not None]
        return Launch((executable, *(_fill(part, context.session_id or "", prompt or "") for part in parts)))

    def screen_ready(self, screen: str) -> bool | None:
        """Return whether the screen shows the declared ready sign; None where none is declared."""
        return None if self._ready is None else self._ready.search(screen) is not None


def _with_arguments(command: tuple[str, ...], args: tuple[str, ...]) -> tuple[str, ...]:
    """Put the operator's arguments where they are still read as options: before `--`, before the prompt, else last."""
    ends = [index for index, part in enumerate(command) if part in ("--", PROMPT)]
    end = ends[0] if ends else len(command)
    return (*command[:end], *args, *command[end:])


def _fill(part: str, session_id: str, prompt: str) -> str:
    """Fill both places in one pass, so that nothing inside the prompt is taken for a place."""
    return re.sub(r"\{id\}|\{prompt\}", lambda place: session_id if place[0] == ID else prompt, part)


def _compiled(key: str, ready: str | None) -> re.Pattern[str] | None:
    if ready is None:
        return None
    try:
        return re.compile(ready, re.MULTILINE)
    except re.error as error:
        raise InvalidValue(
            f"harnesses.{key}.ready is no regular expression: {error}", "write one that finds the program's prompt"
        ) from error


class CursorHarness(_Unknown):
    """Refuses every session. A conversation's id must be known before it starts, or no later start could resume it."""

    name = "cursor"
    traits = Traits(id_policy=IdPolicy.NONE)

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse. Raises UnsupportedHarness."""
        raise self._refusal()

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": it is never run."""
        return ""

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return "": nothing is known that would keep it from telling what it tells."""
        return ""

    def installed(self) -> Installed | None:
        """Return None: it is never run."""
        return None

    def new_session_id(self) -> str | None:
        """Return None: cursor takes no id."""
        return None

    def resumable(self, context: SessionContext) -> bool:
        """Return False."""
        return False

    def missing(self, context: SessionContext) -> str:
        """Return that it keeps none."""
        return "cursor resumes none"

    def answered(self, context: SessionContext) -> bool:
        """Return False: it is never run."""
        return False

    def prepare(self, context: SessionContext) -> None:
        """Refuse. Raises UnsupportedHarness."""
        raise self._refusal()

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Refuse. Raises UnsupportedHarness."""
        raise self._refusal()

    def screen_ready(self, screen: str) -> bool | None:
        """Return None."""
        return None

    @staticmethod
    def _refusal() -> UnsupportedHarness:
        return UnsupportedHarness(
            "cursor cannot host a standing session: it has no pre-assignable conversation id, "
            "so a stopped session could not be resumed",
            "choose another harness for it",
        )
