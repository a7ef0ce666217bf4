"""Slash commands: what people say to the-loop itself, by their rights; `screen` is shown to the caller alone."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, assert_never

from core.base.errors import InvalidValue, NotPermitted, UnknownSession
from core.base.names import check_name
from core.base.redaction import Redactor, redactor_of
from core.chat.inbound import tell_refused
from core.commandtable import COMMANDS, Call, Command, check_bound, in_chat
from core.config.settings import secret_variables
from core.delivery.answers import told_where
from core.delivery.saying import Said
from core.lifecycle.look import Screen
from core.loops.transitions import summary
from core.loops.verbs import LoopAnswer, line_of
from core.model.asking import Role
from core.model.channel import IncomingOrder, PrivateAnswer
from core.model.posts import NewPost, OutboundKind
from core.model.rows import Answer
from core.model.session import Outcome
from core.session.sessions import Author, definition_of, may_steer
from core.session.system import System

if TYPE_CHECKING:
    from core.commandtable import Result


LINES = 40  #: of the end of a terminal


def screen_told(shown: Screen, redactor: Redactor, name: str) -> PrivateAnswer:
    """Return what a terminal shows, without secrets."""
    lines = redactor.redact(shown.text).rstrip().splitlines()
    head = f"{name} has ended; its last output:" if shown.ended else f"{name}:"
    return PrivateAnswer(head, "\n".join(line.rstrip() for line in lines) or "(nothing)")


Holds = Callable[[str, Role], bool]
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
        name, actor = check_name(order.name), f"{order.channel_kind}:{order.author}"
        command = self._commands.get(order.verb)
        if command is None or command.run is None:
            raise InvalidValue(f"{order.verb!r} is not a command", f"one of {', '.join(self._commands)}")
        self._check(order, command.role, name)
        call = Call(self._system, actor, order.author_name)
        text = {"text": order.text} if command.takes_text else {}
        return self._answered(order, name, command.run(call, name, **text))

    def _answered(self, order: IncomingOrder, name: str, result: "Result") -> PrivateAnswer:
        match result:
            case Answer():
                return self._shared(order, result)
            case LoopAnswer():
                return self._loops(result, name)
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

    def _shared(self, order: IncomingOrder, answer: Answer) -> PrivateAnswer:
        """Return the answer, which its author alone sees; what all should know stands in the session's thread."""
        [row] = answer.sessions
        bound = self._system.bindings.of_session(row.uid, order.channel_kind) if row.uid else None
        what = _SHARED.get(row.outcome) if row.outcome else None
        if what is not None and bound is not None:
            moment = int(self._system.clock.now().timestamp() * 1_000_000)
            note = NewPost(
                id=f"p-{order.verb}-{bound.uid}-{moment}",
                key=f"{order.verb}:{bound.uid}:{moment}",
                kind=OutboundKind.NOTE,
                uid=bound.uid,
                name=row.name,
                channel_kind=order.channel_kind,
                text=f"`{row.name}` {what} by {order.author_name}.",
            )
            self._system.outbox.add([note])
            self._system.notify()
        return _told(answer)

    def _loops(self, answer: LoopAnswer, name: str) -> PrivateAnswer:
        now = self._system.clock.now()
        lines = [f"{line_of(loop, now)}\n    {summary(loop)}" for loop in answer.loops[:_LOOPS]]
        return PrivateAnswer(f"{name}: {answer.said}", self._redactor.redact("\n".join(lines)))

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
            known = definition_of(self._system.settings, self._system.records, name)
            if known.unreadable is not None and not known.declared:
                raise UnknownSession(name)
        tell_refused(self._system, order.channel_kind, order.author, order.verb, name=name)
        if holds or role is Role.MEMBER:
            raise UnknownSession(name)
        raise NotPermitted(f"you may not {order.verb} {name}", f"ask one of channels.{order.channel_kind}.operators")


def _told(answer: Answer) -> PrivateAnswer:
    [row] = answer.sessions
    outcome = row.outcome.value if row.outcome else "done"
    return PrivateAnswer(f"{row.name}: {outcome}" + (f": {row.detail}" if row.detail else ""))
