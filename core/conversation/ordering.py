"""What people say to the-loop itself in a chat, rather than to a session: looks and verbs, by their rights."""

from collections.abc import Callable, Mapping

from core.conversation.looking import screen_told
from core.conversation.refusing import tell_refused
from core.domain.buttons import Role
from core.domain.rows import Answer
from core.domain.session import Outcome
from core.errors import InvalidValue, NotPermitted, UnknownSession
from core.loops.answers import line_of
from core.loops.telling import summary
from core.loops.verbs import Asker, list_loops
from core.names import check_name
from core.ports import IncomingOrder, NewPost, OutboundKind, Told
from core.redaction import redactor_of
from core.secretnames import secret_variables
from core.session.sessions import definition_of
from core.session.steering import may_steer
from core.standing.interrupting import interrupt_standing
from core.standing.pausing import pause_standing
from core.standing.restarting import restart_standing
from core.standing.resuming import resume_standing
from core.standing.saying import say
from core.standing.starting import start_standing
from core.standing.stopping import stop_standing
from core.system import System

Holds = Callable[[str, Role], bool]
_LOOPS = 20  #: that are shown; those that have ended stand last
_SAY_SECONDS = 3.0  #: that somebody waits for their message's first fate

_DONE = frozenset({Outcome.PAUSED, Outcome.UNPAUSED, Outcome.INTERRUPTED})

VERBS: Mapping[str, Role] = {
    "say": Role.MEMBER,
    "screen": Role.MEMBER,
    "loops": Role.MEMBER,
    "pause": Role.MEMBER,
    "resume": Role.MEMBER,
    "interrupt": Role.MEMBER,
    "start": Role.OPERATOR,
    "stop": Role.OPERATOR,
    "restart": Role.OPERATOR,
}


class Orders:
    """The commands of one channel. `holds` tells who has which role now."""

    def __init__(self, system: System, holds: Holds) -> None:
        self._system = system
        self._holds = holds
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))

    def order(self, order: IncomingOrder) -> Told:
        """Do what is said, and return what its author gets to see. Raises CoreError."""
        name, actor = check_name(order.name), f"{order.channel_kind}:{order.author}"
        self._check(order, name)
        system = self._system
        match order.verb:
            case "say":
                said = say(system, name, order.text, actor=actor, who=order.author_name, wait=_SAY_SECONDS)
                return Told("; ".join(said.messages))
            case "screen":
                return screen_told(system, self._redactor, name)
            case "loops":
                return self._loops(name, actor)
            case "pause":
                return self._shared(order, "was paused", pause_standing(system, name, actor))
            case "resume":
                return self._shared(order, "was resumed", resume_standing(system, name, actor))
            case "interrupt":
                return self._shared(order, "was interrupted", interrupt_standing(system, name, actor))
            case "start":
                return _told(start_standing(system, name, actor))
            case "stop":
                return _told(stop_standing(system, name, actor))
            case _:
                return _told(restart_standing(system, name, actor))

    def may_see(self, name: str, author: str) -> bool:
        """Return whether a member is shown anything of the session: whoever may steer it is."""
        return may_steer(self._system, lambda one: self._holds(one, Role.MEMBER), name, author)

    def _shared(self, order: IncomingOrder, what: str, answer: Answer) -> Told:
        """Return the answer, which its author alone sees; what was done stands in the session's thread, with who."""
        [row] = answer.sessions
        bound = self._system.bindings.of_session(row.uid, order.channel_kind) if row.uid else None
        by = row.hold.by if row.outcome is Outcome.PAUSED and row.hold else f"{order.channel_kind}:{order.author}"
        if row.outcome in _DONE and bound is not None and by == f"{order.channel_kind}:{order.author}":
            at = row.hold.at if row.outcome is Outcome.PAUSED and row.hold else self._system.clock.now()
            moment = int(at.timestamp() * 1_000_000)
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
            self._system.poke()
        return _told(answer)

    def _loops(self, name: str, actor: str) -> Told:
        now = self._system.clock.now()
        answer = list_loops(self._system, Asker(actor), name)
        lines = [f"{line_of(loop, now)}\n    {summary(loop)}" for loop in answer.loops[:_LOOPS]]
        return Told(f"{name}: {answer.said}", self._redactor.redact("\n".join(lines)))

    def _check(self, order: IncomingOrder, name: str) -> None:
        """Raise InvalidValue for no verb, NotPermitted without the right: the session's own list counts, too.

        A name that no session has is UnknownSession to whoever has the right, and a record that nobody can read is
        RecordUnreadable: neither is a refusal that an audit counts.
        """
        role = VERBS.get(order.verb)
        if role is None:
            raise InvalidValue(f"{order.verb!r} is no verb", f"one of {', '.join(VERBS)}")
        if self._holds(order.author, role):
            known = definition_of(self._system.settings, self._system.records, name)
            if known.unreadable is not None and not known.declared:
                raise known.unreadable
        if may_steer(self._system, lambda author: self._holds(author, role), name, order.author):
            return
        tell_refused(self._system, order.channel_kind, order.author, order.verb, name=name)
        if role is Role.MEMBER:
            raise UnknownSession(name)  # whoever may not speak to it need not learn that it is there
        raise NotPermitted(f"you may not {order.verb} {name}", "ask one of channels.slack.operators")


def _told(answer: Answer) -> Told:
    [row] = answer.sessions
    outcome = row.outcome.value if row.outcome else "done"
    return Told(f"{row.name}: {outcome}" + (f": {row.detail}" if row.detail else ""))
