"""What a pressed button does, whether it still counts, and whether this person may press it.

Core checks every press, whatever a chat shows. The message must be a post of ours that has this button, its thread must
be bound to the session that the post speaks of, and the person must belong to our team and be on the list that the
button requires. A press that came too late is answered with what happened meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from core.base.clock import Deadline
from core.base.errors import RecordUnreadable, Refused, UnknownMessage, UnknownRequest
from core.base.names import new_marker, new_message_id
from core.base.redaction import redactor_of
from core.chat.answering import Answering, Given, NotAnswered
from core.chat.commands import LINES, screen_told, share, told_of_one
from core.chat.inbound import Holds, full, is_full
from core.config.settings import secret_variables
from core.delivery.permission_requests import Requests, post_of
from core.delivery.saying import cancel_message, confirm_message
from core.lifecycle.announce import renew_announcement
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import get_standing, screen
from core.lifecycle.pause import change_conversation, pause_standing, restart_standing, resume_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.loops.verbs import Asker, stop_loop
from core.model.asking import LOOKS, OF_SESSION, Button, Press, Request, Role, buttons_of, text_of
from core.model.channel import IncomingPress, PrivateAnswer, Waiting
from core.model.message import WAITING, InboxRow, MessageState, sent_again
from core.model.posts import ANNOUNCEMENTS, NewPost, OutboundKind, OutboxRow
from core.model.reasons import Remedy
from core.model.rows import Answer
from core.model.session import Outcome
from core.model.texts import text
from core.session.notes import AGAIN
from core.session.sessions import Author, may_steer
from core.session.system import System

NOT_YOU = "Only {who} may press this."
STRANGER = "You are not on the list of people who may press this here."
UNKNOWN_BUTTON = "This button is no longer known. Nothing was done."
OTHER_THREAD = "This thread no longer belongs to that session. Nothing was done."
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
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._answering = Answering(system, requests)

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what the button is for, and return what to tell whoever pressed; "" where the thread shows it.

        Raises CoreError for what a verb could not do.
        """
        try:
            row, button = self._judged(press)
            if button.press in LOOKS:
                return self._seen(row.post.name, button.press)
            return PrivateAnswer(self._done(press, row, button))
        except _No as refused:
            return PrivateAnswer(str(refused))

    def waiting(self, kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits for an answer in sessions that the author may steer, the oldest first.

        Only what stands in a thread, with those of its buttons that the author may press. Raises StoreBroken.
        """
        found = (self._waits(kind, Author(kind, author), request) for request in self._system.requests.open())
        return tuple(one for one in found if one is not None)

    def _waits(self, kind: str, author: Author, request: Request) -> Waiting | None:
        if not self._may(author, Role.MEMBER, request.name):
            return None
        binding = self._system.bindings.of_session(request.uid, kind)
        first = self._system.outbox.get(post_of(request).id)
        if binding is None or first is None or not first.ts:
            return None
        buttons = tuple(button for button in buttons_of(request) if self._may(author, button.role, request.name))
        text = self._redactor.redact(text_of(request))
        return Waiting(request.name, text, buttons, binding.channel, binding.thread, first.ts)

    def _may(self, author: Author, role: Role, name: str) -> bool:
        settings, records = self._system.settings, self._system.records
        return may_steer(settings, records, lambda one: self._holds(one, role), name, author)

    def _seen(self, name: str, what: Press) -> PrivateAnswer:
        """Return what whoever pressed it is shown of the session. Raises CoreError."""
        if what is Press.SCREEN:
            return screen_told(screen(self._system, name, LINES), self._redactor, name)
        row = get_standing(self._system, name)
        return PrivateAnswer("", rows=(self._redactor.redact_all(row.to_json()),))

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
        if not self._may(author, button.role, binding.name):
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
        if button.press in (Press.ALLOW, Press.DENY, Press.REMEMBER, Press.OPTION, Press.CHOOSE):
            return self._answered(press, button)
        if button.press in OF_SESSION:
            return self._to_session(press, row, button)
        messages = [self._message(row, message_id) for message_id in button.target.split()]
        words = self._of_messages(press, button.press, messages)
        with self._system.database.transaction(durable=True):
            self._system.outbox.add([_marked(row, button, words)])
            if button.press in (Press.CANCEL, Press.CONFIRM, Press.SEND_AGAIN):  # the note says what became of them
                self._system.outbox.forget_waits(row.post.edits or row.post.id, button.target.split())
        self._system.notify()
        return ""

    def _to_session(self, press: IncomingPress, row: OutboxRow, button: Button) -> str:
        """Do it to the session, and return what whoever pressed is told. Raises CoreError.

        A note says in the place of its buttons what was done, an announcement what the session does now.
        """
        name, announced = row.post.name, row.post.kind in ANNOUNCEMENTS
        if button.press is not Press.STOP_LOOP and button.target != row.post.uid:
            raise _No(UNKNOWN_BUTTON)
        try:
            done, answer = self._acted(_actor(press), row, button, note=announced)
        finally:
            if announced:
                self._renew(name, row.post.uid)
        if announced:
            share(self._system, press.channel_kind, press.author_name, answer)
            return told_of_one(answer)
        if not answer.ok:
            raise Refused(f"{name} was not {done}: {answer.sessions[0].detail}")
        self._system.outbox.add([_marked(row, button, f"{done} by {press.author_name}")])
        self._system.notify()
        return ""

    def _acted(self, actor: str, row: OutboxRow, button: Button, *, note: bool) -> tuple[str, Answer]:
        """Do it, and return what was done, in words, and what the verb answered. `note`: the thread is told of it."""
        name, system = row.post.name, self._system
        match button.press:
            case Press.PAUSE:
                return "paused", pause_standing(system, name, actor)
            case Press.BREAK:
                return "interrupted", interrupt_standing(system, name, actor)
            case Press.RESUME:
                return "resumed", resume_standing(system, name, actor, note=note)
            case Press.BRING_UP:
                return "started", start_standing(system, name, actor)
            case Press.STOP:
                return "stopped", stop_standing(system, name, actor, note=note)
            case Press.RESTART:
                return "restarted", restart_standing(system, name, actor)
            case Press.ANEW:
                return "started with a new conversation", change_conversation(system, name, actor, "")
            case Press.STOP_LOOP:
                loop = system.loops.get(button.target)
                if loop is None or loop.uid != row.post.uid:
                    raise _No(UNKNOWN_BUTTON)
                stop_loop(system, Asker(actor), loop.id)
                return f"{loop.id} was stopped", Answer(())
            case _:
                raise _No(UNKNOWN_BUTTON)

    def _renew(self, name: str, uid: str) -> None:
        """Let the announcement say what the session does now, and have the buttons for that."""
        try:
            record = self._system.records.read(name)
        except RecordUnreadable:
            return  # the verb has said so
        if record is not None and record.uid == uid:
            renew_announcement(self._system, record)
            self._system.notify()

    def _message(self, row: OutboxRow, message_id: str) -> InboxRow:
        message = self._system.inbox.get(message_id)
        if message is None or message.message.uid != row.post.uid:
            raise _No(UNKNOWN_BUTTON)
        return message

    def _answered(self, press: IncomingPress, button: Button) -> str:
        """Answer a request; the thread shows how. Raises CoreError."""
        question, option = button.place
        match button.press:
            case Press.ALLOW | Press.DENY | Press.REMEMBER:
                given = Given(allowed=button.press is not Press.DENY, remember=button.press is Press.REMEMBER)
            case _:
                given = Given(question=question, option=option)
        try:
            self._answering.answer(button.target, given, press.author_name, _actor(press))
        except UnknownRequest:
            raise _No(UNKNOWN_BUTTON) from None
        except NotAnswered as refused:
            raise _No(refused.said) from refused
        return ""

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
            case _:
                raise _No(UNKNOWN_BUTTON)  # it is about no message
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
        if not self._may(Author(kind, author), Role.MEMBER, message.name):
            raise Refused("its author is no longer on the allow-list", "write it again")
        record = self._system.records.read(message.name)
        if record is None or record.uid != message.uid:
            raise UnknownMessage(message.id)
        now = self._system.clock.now()
        again = sent_again(message, record.generation, new_marker(), new_message_id(), now)
        limit = self._system.settings.limits.queued_per_session
        if is_full(self._system.inbox, again, limit):
            raise Refused(full(limit).text, text(Remedy.SEND_AGAIN_THEN))
        if not self._system.inbox.add([again])[0]:
            raise Refused("it was already sent again", "look at what waits: `the-loop standing queue NAME`")


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
