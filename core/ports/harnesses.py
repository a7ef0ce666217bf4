"""Agent programs."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from core.domain.harness import (
    HarnessEvent,
    Installed,
    Launch,
    Opinion,
    Report,
    Retry,
    SessionContext,
    Traits,
    TurnSeen,
)
from core.domain.pane import InputLine, View
from core.domain.session import Definition


class Transcript(Protocol):
    """The harness's own record of one conversation, read forward from where it was opened."""

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where it cannot be read."""
        ...


class TurnRecord(Protocol):
    """The turns of one conversation, by the harness's own record of it."""

    def new_turns(self) -> tuple[TurnSeen, ...]:
        """Return the turns of which something new was written since the last call, each as it stands now.

        In their order. Raises StoreBroken where the record cannot be read.
        """
        ...


class Harness(Protocol):
    """One agent program."""

    name: str
    traits: Traits

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue."""
        ...

    def dialog_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return which dialog the program would open at its start there, and what settles it; "" where none is known.

        It is a person's to answer, and nothing of ours does.
        """
        ...

    def installed(self) -> Installed | None:
        """Return which version of the program a start would run; None where none was ever tried against another."""
        ...

    def silence_ahead(self, cwd: Path, args: Sequence[str]) -> str:
        """Return what would keep a session there from telling what it does, and the remedy; "" for nothing known."""
        ...

    def new_session_id(self) -> str | None:
        """Return an id for a fresh conversation, or None where it is learnt later."""
        ...

    def resumable(self, context: SessionContext) -> bool:
        """Tell whether the context's conversation can be resumed, by the harness's own files."""
        ...

    def missing(self, context: SessionContext) -> str:
        """Return why a conversation that is not resumable is not, in words that name the place that was looked at."""
        ...

    def answered(self, context: SessionContext) -> bool:
        """Tell whether the context's conversation has had a turn. Asked of those alone whose records are evidence."""
        ...

    def prepare(self, context: SessionContext) -> None:
        """Write hook settings into the session's folder and pre-seed trust. Raises TrustFailed."""
        ...

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return what the pane runs; `prompt` is the boot prompt, within the argument limit."""
        ...

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means; () for one that means nothing to us. Pure."""
        ...

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's record; None where the harness keeps none."""
        ...

    def turns(self, context: SessionContext, since: datetime) -> TurnRecord | None:
        """Open the record of the turns that were written down after that moment; None where none is kept.

        Raises StoreBroken where it cannot be read.
        """
        ...

    def second_opinion(self, context: SessionContext, pane_pid: int) -> Opinion | None:
        """Ask a source other than the hooks what the live harness does; None where none knows."""
        ...

    def input_line(self, view: View) -> InputLine | None:
        """Return the line in which a message is written; None where it is not shown. See Traits.input_line."""
        ...

    def remark(self, dialog: str) -> str:
        """Return what a person should know of a dialog of that text besides what it says itself; "" for nothing."""
        ...

    def screen_ready(self, screen: str) -> bool | None:
        """Tell from the screen whether a harness without a boot signal reads; None where it has no ready sign."""
        ...

    def retry_shown(self, screen: str) -> Retry | None:
        """Return what the screen tells of a request that is tried again by itself; None where there is none."""
        ...


class Harnesses(Protocol):
    """The catalogue: name -> adapter."""

    def get(self, name: str) -> Harness:
        """Return the adapter. Raises UnsupportedHarness naming the ones there are."""
        ...
