"""A reply in a thread while a question is open there: it is the answer, and goes into no pane."""

from collections.abc import Callable, Sequence

from core.domain.asking import Request, understand
from core.domain.buttons import Role
from core.domain.framing import defused
from core.domain.message import WAITING, InboxRow, Kind, MessageState
from core.domain.reasons import Because, Reason
from core.observing.asking import Requests
from core.session.steering import may_steer
from core.system import System

Holds = Callable[[str, Role], bool]


class TypedAnswers:
    """Takes replies as answers. Works under the session's lock, held by whoever delivers."""

    def __init__(self, system: System, holds: Holds, requests: Requests) -> None:
        self._system = system
        self._holds = holds
        self._requests = requests

    def take(self, rows: Sequence[InboxRow]) -> InboxRow | None:
        """Answer the oldest open question with the first reply that was written after it was asked, and return that.

        The reply is confirmed and the request answered in one transaction. None where nothing answers: no reply is
        newer than the question, its author is no approver, or nobody would get the answer now.
        """
        if not rows:
            return None
        for request in self._system.requests.open(rows[0].message.uid):
            row = next((row for row in rows if self._answers(row, request)), None)
            if row is None or not request.answerable_by_typing or not self._requests.waits(request):
                continue
            if not self._requests.overtaken(request):
                return self._taken(row, request)
        return None

    def _answers(self, row: InboxRow, request: Request) -> bool:
        message = row.message
        if row.state not in WAITING or message.kind is not Kind.REPLY or message.address is None:
            return False
        if message.order_us < int(request.asked_at.timestamp() * 1_000_000):
            return False
        author = message.actor.removeprefix(f"{message.address.channel_kind}:")
        return may_steer(self._system, lambda one: self._holds(one, Role.APPROVER), message.name, author)

    def _taken(self, row: InboxRow, request: Request) -> InboxRow | None:
        question = request.pending
        if question is None:
            return None
        message, text = row.message, understand(question, defused(row.message.text))
        with self._system.database.transaction(durable=True):
            moved = self._requests.answer(request, message.who, message.actor, text=text)
            if moved is None:
                return None
            taken = self._system.inbox.advance(row, MessageState.CONFIRMED, Because(Reason.ANSWERED))
        self._requests.wake()
        self._system.poke()
        return taken
