"""What a pressed button does, whether it still counts, and whether this person may press it.

Core checks every press, whatever a chat shows. The message must be a post of ours that has this button, its thread must
be bound to the session that the post speaks of, and the person must belong to our team and be on the list that the
button requires. A press that came too late is answered with what happened meanwhile.

A dialog in a session's terminal is answered through its cursor. The cursor is moved row by row until it stands at the
choice with that text; only then the last key is written. tmux refuses each key unless the screen still shows the dialog
exactly as it was a moment before.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NoReturn, assert_never

from core.base.clock import Deadline
from core.base.errors import NotRunning, Refused, TmuxSilent, UnknownMessage
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_marker, new_message_id
from core.base.redaction import redactor_of
from core.base.values import dataclass
from core.chat.commands import LINES, screen_told
from core.chat.inbound import full, is_full
from core.config.settings import secret_variables
from core.delivery.dialogs import digest_of, forget_mode
from core.delivery.permission_requests import Requests
from core.delivery.saying import cancel_message, confirm_message
from core.delivery.screens import look
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import screen
from core.lifecycle.start import start_standing
from core.model.asking import Button, Press, Request, RequestKind, RequestState, Role
from core.model.channel import IncomingPress, PrivateAnswer
from core.model.dialog import DOWN, LEAVES, PRESSED, UP, Dialog, offers_of
from core.model.message import WAITING, InboxRow, MessageState, NewMessage
from core.model.pane import View, Written
from core.model.posts import NewPost, OutboundKind, OutboxRow
from core.model.reasons import Remedy
from core.model.session import Outcome, SessionRecord
from core.model.texts import text
from core.session.notes import AGAIN
from core.session.sessions import Author, may_steer
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


Holds = Callable[[str, Role], bool]

NOT_YOU = "Only {who} may press this."
STRANGER = "You are not on the list of people who may press this here."
UNKNOWN_BUTTON = "This button is no longer known. Nothing was done."
OTHER_THREAD = "This thread no longer belongs to that session. Nothing was done."
EARLIER = "An instance of the session that has ended asked this. Nothing was done."
NOBODY_WAITS = "The session cannot be reached at the moment. Press again in a few seconds, or answer at the terminal."
_SENT_SECONDS, _POLL_SECONDS = 2.0, 0.05
_WHO = {
    Role.MEMBER: "people who may steer this session",
    Role.APPROVER: "the approvers of this session",
    Role.OPERATOR: "the operators of this session",
}


class _No(Exception):
    """The press is refused; the message is what whoever pressed is told."""


class Presses:
    """The buttons of one channel. `holds` tells who has which role now."""

    def __init__(self, system: System, holds: Holds, requests: Requests) -> None:
        self._system = system
        self._holds = holds
        self._requests = requests
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._chooser = Chooser(system, requests)

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what the button is for, and return what to tell whoever pressed; "" where the thread shows it.

        Raises CoreError for what a verb could not do.
        """
        try:
            row, button = self._judged(press)
            if button.press is Press.SCREEN:
                name = row.post.name
                return screen_told(screen(self._system, name, LINES), self._redactor, name)
            return PrivateAnswer(self._done(press, row, button))
        except _No as refused:
            return PrivateAnswer(str(refused))

    # ------------------------------------------------------------ may they

    def _judged(self, press: IncomingPress) -> tuple[OutboxRow, Button]:
        if not press.author_team or press.is_bot:
            self._refuse(press, STRANGER, "unauthorized-actor")
        if press.author_team != press.team and not press.author.startswith(f"{press.author_team}:"):
            self._refuse(press, STRANGER, "unauthorized-actor")
        binding = self._system.bindings.of_thread(press.channel_kind, press.team, press.channel, press.thread)
        if binding is None:
            self._refuse(press, OTHER_THREAD, "unmapped")
        found = self._found(press)
        if found is None:
            self._refuse(press, UNKNOWN_BUTTON, "unknown-button")
        row, button = found
        if row.post.uid != binding.uid:
            self._refuse(press, OTHER_THREAD, "unmapped")
        author = Author(press.channel_kind, press.author)
        if not may_steer(
            self._system.settings,
            self._system.records,
            lambda one: self._holds(one, button.role),
            binding.name,
            author,
        ):
            self._refuse(press, NOT_YOU.format(who=_WHO[button.role]), "unauthorized-actor")
        return row, button

    def _found(self, press: IncomingPress) -> tuple[OutboxRow, Button] | None:
        """Return our post in that message, and its button. A press may be quicker than the note that it was sent."""
        deadline, wanted = Deadline(self._system.clock, _SENT_SECONDS), (press.action, press.target)
        while True:
            posts = self._system.outbox.with_buttons(press.channel_kind, press.ts)
            pairs = ((row, button) for row in posts for button in row.post.buttons)
            found = next((pair for pair in pairs if (pair[1].action, pair[1].target) == wanted), None)
            if found is not None or deadline.passed():
                return found
            self._system.clock.pause(_POLL_SECONDS)

    def _refuse(self, press: IncomingPress, words: str, reason: str) -> NoReturn:
        self._system.events.emit(
            "channel.dropped", level="warning", actor=_actor(press), reason=reason, detail=press.action,
            message=press.ts, channel=press.channel, thread=press.thread,
        )  # fmt: skip
        raise _No(words)

    # ------------------------------------------------------------ what it does

    def _done(self, press: IncomingPress, row: OutboxRow, button: Button) -> str:
        if button.press in (Press.ALLOW, Press.DENY, Press.OPTION, Press.CHOOSE):
            return self._answered(press, button)
        messages = [self._message(row, message_id) for message_id in button.target.split()]
        words = self._of_messages(press, button.press, messages)
        with self._system.database.transaction(durable=True):
            self._system.outbox.add([_marked(row, button, words)])
            if button.press in (Press.CANCEL, Press.CONFIRM, Press.SEND_AGAIN):  # the note says what became of them
                self._system.outbox.forget_waits(row.post.edits or row.post.id, button.target.split())
        self._system.notify()
        return ""

    def _message(self, row: OutboxRow, message_id: str) -> InboxRow:
        message = self._system.inbox.get(message_id)
        if message is None or message.message.uid != row.post.uid:
            raise _No(UNKNOWN_BUTTON)
        return message

    def _answered(self, press: IncomingPress, button: Button) -> str:
        request = self._system.requests.get(button.target)
        if request is None:
            raise _No(UNKNOWN_BUTTON)
        record = self._record(request)
        if record is None or record.instance_id != request.instance:
            raise _No(EARLIER)
        if request.state is not RequestState.OPEN:
            raise _No(how_it_stands(request))
        question, option = button.place
        if button.press is Press.CHOOSE:
            return self._chosen(press, record, request, option)
        if button.press is Press.OPTION and question != len(request.answers):
            raise _No(f"{request.by} has already answered that question.")
        if not self._requests.waits(request):
            raise _No(NOBODY_WAITS)
        if reason := self._requests.overtaken(request):
            self._requests.end(request, RequestState.GONE, reason)
            raise _No(f"This request has ended: {reason}.")
        text = request.questions[question].options[option].label if button.press is Press.OPTION else ""
        allowed = button.press is Press.ALLOW
        moved = self._requests.answer(request, press.author_name, _actor(press), allowed=allowed, text=text)
        self._requests.wake()
        if moved is None:
            raise _No(how_it_stands(self._system.requests.get(request.id) or request))
        self._system.notify()
        return ""

    def _chosen(self, press: IncomingPress, record: SessionRecord, request: Request, option: int) -> str:
        """Answer a dialog by its keys: the thread shows what was chosen."""
        failed = self._chooser.choose(record, request, option, press.author_name, _actor(press))
        self._system.notify()
        if failed is None:
            raise _No(how_it_stands(self._system.requests.get(request.id) or request))
        if failed:
            raise _No(f"{failed[0].upper()}{failed[1:]}.")
        return ""

    def _record(self, request: Request) -> SessionRecord | None:
        record = self._system.records.read(request.name)
        return record if record is not None and record.uid == request.uid else None

    def _of_messages(self, press: IncomingPress, what: Press, rows: Sequence[InboxRow]) -> str:
        """Do it, and return what the note is to say of it."""
        actor, name = _actor(press), rows[0].message.name
        match what:
            case Press.CANCEL:
                done = self._each(
                    rows, "cancelled", lambda row: cancel_message(self._system, row.message.id, actor, told=False)
                )
            case Press.CONFIRM:
                done = self._each(rows, "confirmed", lambda row: confirm_message(self._system, row.message.id, actor))
            case Press.INTERRUPT:
                [told] = interrupt_standing(self._system, name, actor).sessions
                if told.outcome is not Outcome.INTERRUPTED:
                    return f"{press.author_name} tried to interrupt the turn: {told.detail}"
                done = "the turn was interrupted"
            case Press.START:
                done = self._started(name, actor)
            case Press.START_AND_SEND:
                done = self._each(rows, f"{self._started(name, actor)}, and sent again", self._send_again)
            case Press.SEND_AGAIN:
                done = self._each(rows, "sent again", self._send_again)
            case Press.ALLOW | Press.DENY | Press.OPTION | Press.CHOOSE | Press.SCREEN:
                raise _No(UNKNOWN_BUTTON)  # they are about no message
            case _:
                assert_never(what)
        return f"{done} by {press.author_name}"

    def _started(self, name: str, actor: str) -> str:
        answer = start_standing(self._system, name, actor)
        if not answer.ok:
            raise Refused(f"{name} could not be started: {answer.sessions[0].detail}")
        return "started"

    @staticmethod
    def _each(rows: Sequence[InboxRow], done: str, act: Callable[[InboxRow], object]) -> str:
        """Act on each message, and return the words for it: with how many it no longer applied to, if not to all.

        Raises Refused where it applied to none.
        """
        refused: list[Refused] = []
        for row in rows:
            try:
                act(row)
            except Refused as error:
                refused.append(error)
        if len(refused) == len(rows):
            raise refused[0]
        return f"{len(rows) - len(refused)} of {len(rows)} {done}" if refused else done

    def _send_again(self, row: InboxRow) -> None:
        """Commit the text anew, once, as its own author's, whose right is asked again here and at delivery."""
        message = row.message
        failed = row.state is MessageState.CONFIRMED and self._system.marks.failed(message.id)
        if row.state in WAITING or not (row.state in AGAIN or failed):
            raise Refused(f"message {message.id} is {row.state.value}, so it is not sent again")
        if not message.text:
            raise Refused(f"the text of message {message.id} is no longer kept", "write it again")
        kind, _, author = message.actor.partition(":")
        if not may_steer(
            self._system.settings,
            self._system.records,
            lambda one: self._holds(one, Role.MEMBER),
            message.name,
            Author(kind, author),
        ):
            raise Refused("its author is no longer on the allow-list", "write it again")
        record = self._system.records.read(message.name)
        if record is None or record.uid != message.uid:
            raise UnknownMessage(message.id)
        now = self._system.clock.now()
        again = NewMessage(
            **{
                **message.__dict__,
                "id": new_message_id(),
                "key": f"again:{message.id}",
                "again_of": message.id,
                "generation": record.generation,
                "marker": new_marker(),
                "order_us": int(now.timestamp() * 1_000_000),
                "created_at": now,
            }
        )
        limit = self._system.settings.limits.queued_per_session
        if is_full(self._system.inbox, again, limit):
            raise Refused(full(limit).text, text(Remedy.SEND_AGAIN_THEN))
        if not self._system.inbox.add([again])[0]:
            raise Refused("it was already sent again", "look at what waits: `the-loop standing queue NAME`")


def how_it_stands(request: Request) -> str:
    """Return what somebody is told who comes too late."""
    if request.state is RequestState.ANSWERED:
        if request.kind is RequestKind.PERMISSION:
            return f"{request.by} has already {'allowed' if request.allowed else 'denied'} it."
        return f"{request.by} has already answered it."
    return f"This request has ended: {request.reason}."


def _marked(row: OutboxRow, button: Button, words: str) -> NewPost:
    """Return the note without its buttons, and with what was done by whom."""
    text = f"{row.post.text}\n→ {words}."
    return NewPost(
        **{
            **row.post.__dict__,
            "id": f"{row.post.id}-{button.action}",
            "key": f"pressed:{row.post.key}:{button.action}",
            "kind": OutboundKind.NOTE,
            "text": text,
            "buttons": (Button(Press.SEND_AGAIN, button.target, _again(button)),)
            if button.press is Press.CANCEL
            else (),
            "edits": row.post.edits or row.post.id,
            "about": "",
            "starts": "",
            "note": None,
        }
    )


def _again(button: Button) -> str:
    return "Send all again" if " " in button.target else "Send again"


def _actor(press: IncomingPress) -> str:
    return f"{press.channel_kind}:{press.author}"
