"""What a pressed button does: whose it is, whether it still counts, and whether whoever pressed may.

Every press is checked here, whatever a chat shows: the message must be a post of ours that has this button, its thread
bound to the session that the post speaks of, and the person of our own team and on the list that the button needs. A
button that came too late says what became of the matter.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from core.clock import Deadline
from core.conversation.choosing import Chooser
from core.conversation.inbound import full, is_full
from core.conversation.looking import LINES, screen_told
from core.domain.asking import Request, RequestKind, RequestState
from core.domain.buttons import Button, Press, Role
from core.domain.message import WAITING, InboxRow, MessageState, NewMessage
from core.domain.reasons import Remedy
from core.domain.session import Outcome, SessionRecord
from core.domain.texts import text
from core.errors import Refused, UnknownMessage
from core.names import new_marker, new_message_id
from core.observing.asking import Requests
from core.ports import IncomingPress, NewPost, OutboundKind, OutboxRow, Told
from core.redaction import redactor_of
from core.secretnames import secret_variables
from core.session.notes import AGAIN
from core.session.steering import may_steer
from core.standing.cancelling import cancel_message
from core.standing.confirming import confirm_message
from core.standing.interrupting import interrupt_standing
from core.standing.starting import start_standing
from core.standing.viewing import screen
from core.system import System

Holds = Callable[[str, Role], bool]

NOT_YOU = "You may not press this: it is for {who} of this session."
STRANGER = "You are not on the list of people who may press this here."
UNKNOWN_BUTTON = "This button is not known any more. Nothing was done."
OTHER_THREAD = "This thread does not belong to that session any more. Nothing was done."
EARLIER = "This was asked by an earlier run of the session, which has ended. Nothing was done."
NOBODY_WAITS = "The session cannot be told at the moment. Press again in a few seconds, or answer at the terminal."
_SENT_SECONDS, _POLL_SECONDS = 2.0, 0.05
_WHO = {Role.MEMBER: "those who may steer", Role.APPROVER: "the approvers", Role.OPERATOR: "the operators"}


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

    def press(self, press: IncomingPress) -> Told:
        """Do what the button is for, and return what to tell whoever pressed; "" where the thread shows it.

        Raises CoreError for what a verb could not do.
        """
        try:
            row, button = self._judged(press)
            if button.press is Press.SCREEN:
                name = row.post.name
                return screen_told(screen(self._system, name, LINES), self._redactor, name)
            return Told(self._done(press, row, button))
        except _No as refused:
            return Told(str(refused))

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
        if not may_steer(self._system, lambda author: self._holds(author, button.role), binding.name, press.author):
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
            self._system.outbox.add([_marked(row, press, button, words)])
            if button.press in (Press.CANCEL, Press.CONFIRM, Press.SEND_AGAIN):  # the note says what became of them
                self._system.outbox.forget_waits(row.post.edits or row.post.id, button.target.split())
        self._system.poke()
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
            raise _No(f"That question was answered by {request.by} already.")
        if not self._requests.waits(request):
            raise _No(NOBODY_WAITS)
        if reason := self._requests.overtaken(request):
            self._requests.end(request, RequestState.GONE, reason)
            raise _No(f"It is over: {reason}.")
        text = request.questions[question].options[option].label if button.press is Press.OPTION else ""
        allowed = button.press is Press.ALLOW
        moved = self._requests.answer(request, press.author_name, _actor(press), allowed=allowed, text=text)
        self._requests.wake()
        if moved is None:
            raise _No(how_it_stands(self._system.requests.get(request.id) or request))
        self._system.poke()
        return ""

    def _chosen(self, press: IncomingPress, record: SessionRecord, request: Request, option: int) -> str:
        """Answer a dialog by its keys: the thread shows what was chosen."""
        failed = self._chooser.choose(record, request, option, press.author_name, _actor(press))
        self._system.poke()
        if failed is None:
            raise _No(how_it_stands(self._system.requests.get(request.id) or request))
        if failed:
            raise _No(f"It came to nothing: {failed}.")
        return ""

    def _record(self, request: Request) -> SessionRecord | None:
        record = self._system.records.read(request.name)
        return record if record is not None and record.uid == request.uid else None

    def _of_messages(self, press: IncomingPress, what: Press, rows: Sequence[InboxRow]) -> str:
        """Do it, and return what the note is to say of it."""
        actor, name = _actor(press), rows[0].message.name
        if what is Press.CANCEL:
            return self._each(
                rows, "cancelled", lambda row: cancel_message(self._system, row.message.id, actor, told=False)
            )
        if what is Press.CONFIRM:
            return self._each(rows, "confirmed", lambda row: confirm_message(self._system, row.message.id, actor))
        if what is Press.INTERRUPT:
            [told] = interrupt_standing(self._system, name, actor).sessions
            done = told.outcome is Outcome.INTERRUPTED
            return "the turn was interrupted" if done else f"an interrupt was tried ({told.detail})"
        if what in (Press.START, Press.START_AND_SEND):
            answer = start_standing(self._system, name, actor)
            if not answer.ok:
                raise Refused(f"{name} could not be started: {answer.sessions[0].detail}")
            if what is Press.START:
                return "started"
        sent = "started, and sent again" if what is Press.START_AND_SEND else "sent again"
        return self._each(rows, sent, self._send_again)

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
            raise Refused(f"the text of message {message.id} is no longer kept", "write it anew")
        author = message.actor.partition(":")[2]
        if not may_steer(self._system, lambda one: self._holds(one, Role.MEMBER), message.name, author):
            raise Refused("its author is no longer on the allow-list", "write it anew")
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
        if is_full(self._system, again, limit):
            raise Refused(full(limit).text, text(Remedy.SEND_AGAIN_THEN))
        if not self._system.inbox.add([again])[0]:
            raise Refused("it was sent again already", "look at what waits: `the-loop standing queue NAME`")


def how_it_stands(request: Request) -> str:
    """Return what somebody is told who comes too late."""
    if request.state is RequestState.ANSWERED:
        if request.kind is RequestKind.PERMISSION:
            return f"{request.by} has {'allowed' if request.allowed else 'denied'} it already."
        return f"{request.by} has answered it already."
    return f"It is over: {request.reason}."


def _marked(row: OutboxRow, press: IncomingPress, button: Button, words: str) -> NewPost:
    """Return the note without its buttons, and with what was done by whom."""
    text = f"{row.post.text}\n→ {words} by {press.author_name}."
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
