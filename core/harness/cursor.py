"""Cursor: known, and refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.harness import (
    HarnessEvent,
    IdPolicy,
    Installed,
    Launch,
    Opinion,
    Report,
    Retry,
    SessionContext,
    Traits,
)
from core.domain.pane import InputLine, View
from core.domain.session import Definition
from core.errors import UnsupportedHarness

if TYPE_CHECKING:
    from core.ports import Transcript, TurnRecord


class CursorHarness:
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

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return (): it is never run."""
        return ()

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Return None."""
        return None

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Return None."""
        return None

    def second_opinion(self, context: SessionContext, pane_pid: int) -> Opinion | None:
        """Return None."""
        return None

    def input_line(self, view: View) -> InputLine | None:
        """Return None: what its input line looks like is not known."""
        return None

    def remark(self, dialog: str) -> str:
        """Return "": nothing is known of its dialogs."""
        return ""

    def screen_ready(self, screen: str) -> bool | None:
        """Return None."""
        return None

    def retry_shown(self, screen: str) -> Retry | None:
        """Return None."""
        return None

    @staticmethod
    def _refusal() -> UnsupportedHarness:
        return UnsupportedHarness(
            "cursor cannot host a standing session: it has no pre-assignable conversation id, "
            "so a stopped session could not be resumed",
            "choose another harness for it",
        )
