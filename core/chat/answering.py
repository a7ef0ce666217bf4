"""Answer a request that waits for a person: a permission, a question, a dialog on a screen. All surfaces do it here.

Whoever answers first decides. Whether somebody may answer is asked before, by the surface: it knows who they are.

A dialog in a session's terminal is answered through its cursor. The cursor is moved row by row until it stands at the
choice with that text; only then the last key is written. tmux refuses each key unless the screen still shows the dialog
exactly as it was a moment before.
"""

from datetime import timedelta

from core.base.clock import Deadline
from core.base.errors import InvalidValue, NotRunning, Refused, TmuxSilent, UnknownRequest
from core.base.failpoints import Failpoint, failpoint
from core.base.values import dataclass
from core.delivery.dialogs import digest_of, forget_mode
from core.delivery.permission_requests import Requests
from core.delivery.screens import look
from core.model.asking import REMEMBERED, Request, RequestKind, RequestState, understand
from core.model.dialog import DOWN, LEAVES, PRESSED, UP, Dialog, offers_of
from core.model.framing import clean, defused
from core.model.pane import View, Written
from core.model.session import SessionRecord
from core.session.system import System

_LOCK_SECONDS = 5.0
_REDRAW_SECONDS = 2.0  #: in which a screen that is being redrawn has come to rest
_MOVE_SECONDS = 5.0  #: from a key to the cursor that it moves; a busy machine takes its time
_TAKEN_SECONDS = 10.0  #: from the last key to another screen
_CHOICE_POLL_SECONDS = 0.05
_MOVES = 3  #: keys for each choice there is, before the cursor is given up

CLOSED = "nothing was chosen: the dialog on the screen has changed"
STUCK = "nothing was chosen: the cursor could not be moved to that choice"
UNTAKEN = "the key was pressed, but the dialog is still open: look at the terminal"
SILENT = "tmux does not answer, so it is not known whether the key arrived: look at the terminal"


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
                seen = hand.see()
            except TmuxSilent:
                return SILENT
            if seen is None:
                self._requests.end(request, RequestState.GONE, CLOSED)
                return CLOSED
            moved = self._requests.answer(request, by, actor, text=request.questions[0].options[place].label)
            if moved is None:
                return None
            if offers_of(seen.dialog)[place].key != LEAVES:
                forget_mode(self._system, record)
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
                shown = look(self._system.settings, self._system.runner, self._system.harnesses, self._record)
            except NotRunning:
                return None
            if shown.dialog is not None and digest_of(shown.dialog) == self._request.digest:
                return _Seen(shown.view, shown.dialog)
            if deadline.passed():
                return None
            self._system.clock.pause(_CHOICE_POLL_SECONDS)

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
            self._system.clock.pause(_CHOICE_POLL_SECONDS)

    def _over(self) -> bool:
        """Wait until the dialog is another, or gone, and return whether it is."""
        deadline = Deadline(self._system.clock, _TAKEN_SECONDS)
        while self.see(waits=False) is not None:
            if deadline.passed():
                return False
            self._system.clock.pause(_CHOICE_POLL_SECONDS)
        return True

    def _press(self, seen: _Seen, key: bytes) -> Written:
        self._keys += 1
        deadline = self._system.clock.now() + timedelta(
            seconds=self._system.settings.routing.tmux.command_timeout_seconds
        )
        with failpoint(Failpoint.DIALOG_KEY):
            return self._system.runner.press(
                self._request.instance,
                key,
                f"{self._request.id}-{self._keys}",
                deadline,
                view=seen.view,
                rows=seen.rows,
            )


EARLIER = "This was asked by an earlier instance of the session, which has ended. Nothing was done."
NOBODY_WAITS = "The session cannot be reached at the moment. Press again in a few seconds, or answer at the terminal."
_LONGEST = 4_000  #: characters of an answer in somebody's own words


class NotAnswered(Refused):
    """The answer came to nothing: somebody was first, the request has ended, nobody waits. `said`: a whole sentence."""

    code = "not_answered"

    def __init__(self, said: str) -> None:
        self.said = said
        super().__init__(said.rstrip("."), "look at the open requests again, or at the terminal")


@dataclass(frozen=True)
class Given:
    """An answer: one of `allowed` (a permission), `option` (by its place, from 0) and `text` (in one's own words)."""

    allowed: bool | None = None
    option: int | None = None
    text: str | None = None
    question: int | None = None  #: which one it answers, from 0; None: the next
    remember: bool = False  #: of what is allowed: the like is allowed from now on, by the request's rules


class Answering:
    """Answers requests for those who may."""

    def __init__(self, system: System, requests: Requests) -> None:
        self._system = system
        self._requests = requests
        self._chooser = Chooser(system, requests)

    def answer(self, request_id: str, given: Given, by: str, actor: str) -> Request:
        """Answer, and return the request as it stands then. `by` is what people call whoever answers.

        Raises UnknownRequest, NotAnswered, InvalidValue for what cannot answer this request, LockBusy, StoreBroken.
        """
        request = self._system.requests.get(request_id)
        if request is None:
            raise UnknownRequest(request_id)
        record = self._record(request)
        if record is None or record.instance_id != request.instance:
            raise NotAnswered(EARLIER)
        if request.state is not RequestState.OPEN:
            raise NotAnswered(how_it_stands(request))
        answer = _checked(request, given)
        if request.kind is RequestKind.DIALOG:
            self._choose(record, request, given.option or 0, by, actor)
        else:
            self._tell(request, given.allowed is True, answer, by, actor)
        self._system.notify()
        return self._latest(request)

    def _record(self, request: Request) -> SessionRecord | None:
        record = self._system.records.read(request.name)
        return record if record is not None and record.uid == request.uid else None

    def _latest(self, request: Request) -> Request:
        return self._system.requests.get(request.id) or request

    def _choose(self, record: SessionRecord, request: Request, option: int, by: str, actor: str) -> None:
        failed = self._chooser.choose(record, request, option, by, actor)
        if failed is None:
            raise NotAnswered(how_it_stands(self._latest(request)))
        if failed:
            self._system.notify()
            raise NotAnswered(f"{failed[0].upper()}{failed[1:]}.")

    def _tell(self, request: Request, allowed: bool, answer: str, by: str, actor: str) -> None:
        if not self._requests.waits(request):
            raise NotAnswered(NOBODY_WAITS)
        if reason := self._requests.overtaken(request):
            self._requests.end(request, RequestState.GONE, reason)
            raise NotAnswered(f"This request has ended: {reason}.")
        moved = self._requests.answer(request, by, actor, allowed=allowed, text=answer)
        self._requests.wake()
        if moved is None:
            raise NotAnswered(how_it_stands(self._latest(request)))


def _checked(request: Request, given: Given) -> str:
    """Return the answer's text, "" for a permission. Raises InvalidValue, and NotAnswered for an earlier question."""
    ways = [way for way in ("allowed", "option", "text") if getattr(given, way) is not None]
    fitting = {RequestKind.PERMISSION: ("allowed",), RequestKind.DIALOG: ("option",)}.get(
        request.kind, ("option", "text")
    )
    if len(ways) != 1 or ways[0] not in fitting:
        raise InvalidValue(f"a {request.kind.value} is not answered by that", allowed=f"one of: {', '.join(fitting)}")
    if given.remember and not (given.allowed and request.rules):
        raise InvalidValue("nothing of this answer can be remembered", allowed="an allowed permission that has rules")
    if request.kind is RequestKind.PERMISSION:
        return REMEMBERED if given.remember else ""
    place = len(request.answers)
    if given.question is not None and given.question < place:
        raise NotAnswered(f"{request.by} has already answered that question.")
    if given.question is not None and given.question > place:
        raise InvalidValue(f"question {given.question} is not the next one", allowed=str(place))
    question = request.questions[place]
    if given.text is not None:
        return understand(question, _typed(given.text))
    option = given.option or 0
    if not 0 <= option < len(question.options):
        raise InvalidValue(f"there is no option {option}", allowed=f"0 to {len(question.options) - 1}")
    return question.options[option].label


def _typed(text: str) -> str:
    """Return an answer in somebody's own words, without what a terminal acts on. Raises InvalidValue."""
    words = defused(clean(text).text)
    if not 0 < len(words) <= _LONGEST:
        raise InvalidValue(f"the answer has {len(words):,} characters", allowed=f"1 to {_LONGEST:,}")
    return words


def how_it_stands(request: Request) -> str:
    """Return what somebody is told who comes too late."""
    if request.state is RequestState.ANSWERED:
        if request.kind is RequestKind.PERMISSION:
            return f"{request.by} has already {'allowed' if request.allowed else 'denied'} it."
        return f"{request.by} has already answered it."
    return f"This request has ended: {request.reason}."
