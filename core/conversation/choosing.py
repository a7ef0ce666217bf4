"""Answers a dialog in a session's terminal for a person in a chat, by its cursor and never blindly.

The cursor is moved a row at a time until it stands at the choice of that text, and only then is the last key written.
Each key is refused by the server unless the screen still shows each row of the dialog as it was seen a moment before,
after all that takes time was done.
"""

from datetime import timedelta

from core.clock import Deadline
from core.domain.asking import Request, RequestState
from core.domain.pane import View, Written
from core.domain.screens import DOWN, PRESSED, UP, Dialog, offers_of
from core.domain.session import SessionRecord
from core.effects import Effect, effect
from core.errors import NotRunning, TmuxSilent
from core.observing.asking import Requests
from core.observing.dialogs import digest_of
from core.sight.screens import look
from core.system import System
from core.values import dataclass

_LOCK_SECONDS = 5.0
_REDRAW_SECONDS = 2.0  #: in which a screen that is being redrawn has come to rest
_MOVE_SECONDS = 5.0  #: from a key to the cursor that it moves; a busy machine takes its time
_TAKEN_SECONDS = 10.0  #: from the last key to another screen
_POLL_SECONDS = 0.05
_MOVES = 3  #: keys for each choice there is, before the cursor is given up

CLOSED = "the dialog is shown no more as it was"
STUCK = "its cursor could not be brought to that choice, so nothing was chosen"
UNTAKEN = "the key was pressed, and the dialog stands as before: look at the terminal"
SILENT = "tmux does not answer, so that nobody knows whether the key arrived: look at the terminal"


class Chooser:
    """Chooses in the terminals of sessions what was pressed in a chat."""

    def __init__(self, system: System, requests: Requests) -> None:
        self._system = system
        self._requests = requests

    def choose(self, record: SessionRecord, request: Request, place: int, by: str, actor: str) -> str | None:
        """Choose, and return why that came to nothing, "" where it was done; None where somebody was first.

        Raises LockBusy, StoreBroken.
        """
        with self._system.locks.hold(record.name, "answer a dialog", _LOCK_SECONDS):
            hand = _Hand(self._system, record, request)
            try:
                there = hand.see() is not None
            except TmuxSilent:
                return SILENT
            if not there:
                self._requests.end(request, RequestState.GONE, CLOSED)
                return CLOSED
            moved = self._requests.answer(request, by, actor, text=request.questions[0].options[place].label)
            if moved is None:
                return None
            try:
                failed = hand.choose(hand.see(), place)  # anew: a disk may take its time, and so may whoever types
            except TmuxSilent:
                failed = SILENT
            if failed:
                self._requests.end(moved, RequestState.GONE, failed)
            else:
                self._requests.hand_over(moved)
            return failed


@dataclass(frozen=True)
class _Seen:
    """The dialog as one look showed it."""

    view: View
    dialog: Dialog

    @property
    def rows(self) -> range:
        """Return all its rows that the screen shows: what one does not ask about, another may."""
        return range(self.dialog.top, self.dialog.top + len(self.dialog.body) + len(self.dialog.closing))


class _Hand:
    """Looks at one dialog and presses its keys. Raises TmuxSilent."""

    def __init__(self, system: System, record: SessionRecord, request: Request) -> None:
        self._system = system
        self._record = record
        self._request = request
        self._keys = 0

    def see(self, *, waits: bool = True) -> _Seen | None:
        """Return the dialog as it is shown now; None where another, or none, is shown."""
        deadline = Deadline(self._system.clock, _REDRAW_SECONDS if waits else 0.0)
        while True:
            try:
                shown = look(self._system, self._record)
            except NotRunning:
                return None
            if shown.dialog is not None and digest_of(shown.dialog) == self._request.digest:
                return _Seen(shown.view, shown.dialog)
            if deadline.passed():
                return None
            self._system.clock.pause(_POLL_SECONDS)

    def choose(self, seen: _Seen | None, place: int) -> str:
        """Bring the cursor to what was chosen and press its key; return why that failed, "" where it did not."""
        if seen is None:
            return CLOSED
        offer = offers_of(seen.dialog)[place]
        if offer.choice is not None:
            for _ in range(_MOVES * len(seen.dialog.choices)):
                if seen.dialog.at == offer.choice:
                    break
                seen = self._moved(seen, offer.choice)
                if seen is None:
                    return CLOSED
            if seen.dialog.at != offer.choice:
                return STUCK
        if self._press(seen, PRESSED[offer.key]) is not Written.DONE:
            return CLOSED
        return "" if self._over() else UNTAKEN

    def _moved(self, seen: _Seen, target: int) -> _Seen | None:
        """Move the cursor by one, and return what is shown once it has moved, or after a while."""
        at = seen.dialog.at if seen.dialog.at is not None else -1
        form = b"\x1bO" if seen.view.application_keys else b"\x1b["
        self._press(seen, form + (DOWN if target > at else UP).encode())
        deadline = Deadline(self._system.clock, _MOVE_SECONDS)
        while True:
            after = self.see()
            if after is None or after.dialog.at != at or deadline.passed():
                return after
            self._system.clock.pause(_POLL_SECONDS)

    def _over(self) -> bool:
        """Wait until the dialog is another, or gone, and return whether it is."""
        deadline = Deadline(self._system.clock, _TAKEN_SECONDS)
        while self.see(waits=False) is not None:
            if deadline.passed():
                return False
            self._system.clock.pause(_POLL_SECONDS)
        return True

    def _press(self, seen: _Seen, key: bytes) -> Written:
        self._keys += 1
        deadline = self._system.clock.now() + timedelta(
            seconds=self._system.settings.routing.tmux.command_timeout_seconds
        )
        with effect(Effect.DIALOG_KEY):
            return self._system.runner.press(
                self._request.instance,
                key,
                f"{self._request.id}-{self._keys}",
                deadline,
                view=seen.view,
                rows=seen.rows,
            )
