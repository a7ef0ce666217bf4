"""Slash commands: what people say to the-loop itself, by their rights; `screen` is shown to the caller alone."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, assert_never

from core.base.errors import InvalidValue, NotPermitted, UnknownSession
from core.base.names import check_name
from core.base.redaction import Redactor, redactor_of
from core.base.text import duration_text, plain
from core.chat.inbound import Holds, tell_refused
from core.commandtable import COMMANDS, Call, Command, check_bound, in_chat
from core.config.settings import secret_variables
from core.delivery.answers import told_where
from core.delivery.saying import Queue, Queued, Said
from core.lifecycle.look import Screen, list_standing
from core.loops.transitions import summary
from core.loops.verbs import LoopAnswer, line_of
from core.model.asking import Role
from core.model.channel import IncomingOrder, PrivateAnswer
from core.model.posts import NewPost, OutboundKind
from core.model.rows import Answer, Row, concerns
from core.model.session import Outcome
from core.session.sessions import Author, definition_of, may_steer, names_of
from core.session.system import System

if TYPE_CHECKING:
    from core.commandtable import Result


LINES = 40  #: of the end of a terminal


def screen_told(shown: Screen, redactor: Redactor, name: str) -> PrivateAnswer:
    """Return what a terminal shows, without secrets."""
    lines = redactor.redact(shown.text).rstrip().splitlines()
    head = f"{name} has ended; its last output:" if shown.ended else f"{name}:"
    text = "\n".join(line.rstrip() for line in lines) or "(nothing)"
    return PrivateAnswer(head, text, terminal="" if shown.ended else name)


_QUEUE = 2_000  #: characters of a queue
_QUEUED_TEXT = 160  #: characters of one message of it
_LOOPS = 20  #: that are shown; those that have ended stand last

#: What was done to a session that all in its thread should know; of a pause, its end and a stop the verbs tell.
_SHARED = {
    Outcome.INTERRUPTED: "was interrupted",
}


def orders_of(table: Iterable[Command]) -> Mapping[str, Command]:
    """Return the commands that can name a session in a chat, by their verbs. Raises NoHandler for one without a run."""
    found = {verb: command for verb, command in in_chat(table).items() if command.names}
    check_bound(found, (verb for verb, command in found.items() if command.run is not None))
    return found


_ORDERS = orders_of(COMMANDS)


class Orders:
    """The commands of one chat. `holds` tells who has which role now."""

    def __init__(self, system: System, kind: str, holds: Holds, commands: Mapping[str, Command] = _ORDERS) -> None:
        self._system = system
        self._kind = kind
        self._holds = holds
        self._commands = commands
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))

    def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Do what is said, and return what its author gets to see. Raises CoreError."""
        command = self._commands.get(order.verb)
        if command is None or command.run is None:
            raise InvalidValue(f"{order.verb!r} is not a command", f"one of {', '.join(self._commands)}")
        call = Call(self._system, f"{order.channel_kind}:{order.author}", order.author_name)
        if not order.name and command.several is not None:
            return self._of_all(order, command, call)
        name = check_name(order.name)
        self._check(order, command.role, name)
        text = {"text": order.text} if command.takes_text else {}
        return self._answered(order, name, command.run(call, name, **text))

    def _of_all(self, order: IncomingOrder, command: Command, call: Call) -> PrivateAnswer:
        """Do it to every session that it changes and that its author may do it to."""
        author = Author(order.channel_kind, order.author)
        names = [
            row.name
            for row in list_standing(self._system, working=False)
            if concerns(order.verb, row.to_json()) and self._may_steer(row.name, command.role, author)
        ]
        if command.several is None or not names:
            return PrivateAnswer(f"{order.verb}: no session is left to which that could be done.")
        answer = command.several(call, names)
        return PrivateAnswer("\n".join(_told_of(row) for row in answer.sessions))

    def _answered(self, order: IncomingOrder, name: str, result: "Result") -> PrivateAnswer:
        match result:
            case Answer():
                share(self._system, order.channel_kind, order.author_name, result)
                return PrivateAnswer(told_of_one(result))
            case LoopAnswer():
                return self._loops(result, name)
            case Queue():
                return self._queue(result)
            case Said():
                return PrivateAnswer("; ".join(filter(None, (*result.messages, told_where(self._system, result)))))
            case Screen():
                return screen_told(result, self._redactor, name)
            case _:
                assert_never(result)

    def may_see(self, name: str, author: str) -> bool:
        """Return whether a member is shown anything of the session: whoever may steer it is."""
        return self._may_steer(name, Role.MEMBER, Author(self._kind, author))

    def _may_steer(self, name: str, role: Role, author: Author) -> bool:
        settings, records = self._system.settings, self._system.records
        return may_steer(settings, records, lambda one: self._holds(one, role), name, author)

    def _loops(self, answer: LoopAnswer, name: str) -> PrivateAnswer:
        now = self._system.clock.now()
        lines = [f"{line_of(loop, now)}\n    {summary(loop)}" for loop in answer.loops[:_LOOPS]]
        return PrivateAnswer(f"{name}: {answer.said}", self._redactor.redact("\n".join(lines)))

    def _queue(self, queue: Queue) -> PrivateAnswer:
        """Return what waits, in its order: the text of each in one line, without secrets."""
        if not queue.messages:
            return PrivateAnswer(f"{queue.name}: nothing waits.")
        lines, room = list[str](), _QUEUE
        for queued in queue.messages:
            line = self._redactor.redact(_queued_line(queued))
            room -= len(line) + 1
            if room < 0:
                lines.append(f"… and {len(queue.messages) - len(lines)} more")
                break
            lines.append(line)
        number = len(queue.messages)
        head = f"{queue.name}: {number} {'message' if number == 1 else 'messages'}, at most {queue.limit} may wait."
        return PrivateAnswer(head, "\n".join(lines))

    def _check(self, order: IncomingOrder, role: Role, name: str) -> None:
        """Raise NotPermitted without the role, whatever the name is; UnknownSession where the session is not for them.

        Whoever may not speak to a session, a member or an operator whom its own list leaves out, need not learn that it
        is there. Of one whose record nobody can read nobody knows who may. An audit counts what was refused for want of
        rights: neither that, nor a name that no session has.
        """
        if self._may_steer(name, role, Author(order.channel_kind, order.author)):
            return
        holds = self._holds(order.author, role)
        if holds:
            try:
                known = definition_of(self._system.settings, self._system.records, name)
            except UnknownSession as error:  # which would name those that are like it, whoever may know them
                raise UnknownSession(name, self._names(order)) from error
            if known.unreadable is not None and not known.declared:
                raise UnknownSession(name, self._names(order))
        tell_refused(self._system, order.channel_kind, order.author, order.verb, name=name)
        if holds or role is Role.MEMBER:
            raise UnknownSession(name, self._names(order))
        raise NotPermitted(f"you may not {order.verb} {name}", f"ask one of channels.{order.channel_kind}.operators")

    def _names(self, order: IncomingOrder) -> list[str]:
        """Return the sessions that the author of a command may know of."""
        names = names_of(self._system.settings, self._system.records)
        return [name for name in names if self.may_see(name, order.author)]


def share(system: System, channel_kind: str, who: str, answer: Answer) -> None:
    """Commit a note for what all in the session's thread should know: whoever did it alone sees the answer.

    Raises StoreBroken.
    """
    [row] = answer.sessions
    bound = system.bindings.of_session(row.uid, channel_kind) if row.uid else None
    what = _SHARED.get(row.outcome) if row.outcome else None
    if what is None or bound is None:
        return
    moment = int(system.clock.now().timestamp() * 1_000_000)
    note = NewPost(
        id=f"p-shared-{bound.uid}-{moment}",
        key=f"shared:{bound.uid}:{moment}",
        kind=OutboundKind.NOTE,
        uid=bound.uid,
        name=row.name,
        channel_kind=channel_kind,
        text=f"`{row.name}` {what} by {who}.",
    )
    system.outbox.add([note])
    system.notify()


def _queued_line(queued: Queued) -> str:
    """Return a message of a queue: who sent it when, what it waits for, and the beginning of its text."""
    message = queued.row.message
    age = duration_text(queued.now - message.created_at)
    words = " ".join(plain(message.text).split())
    shown = words if len(words) <= _QUEUED_TEXT else f"{words[: _QUEUED_TEXT - 1]}…"
    why = f": {queued.detail}" if queued.detail else ""
    return f"{message.id}  {message.who}, {age} ago, {queued.row.state.value}{why}\n    {shown}"


def told_of_one(answer: Answer) -> str:
    """Return what was done to the one session of an answer."""
    [row] = answer.sessions
    return _told_of(row)


def _told_of(row: Row) -> str:
    outcome = row.outcome.value if row.outcome else "done"
    return f"{row.name}: {outcome}" + (f": {row.detail}" if row.detail else "")
