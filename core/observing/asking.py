"""Permissions and questions on their way to a thread, and the answers on their way back.

A harness's hook, or an agent's command, asks on the service's socket and waits. The request is a row before anybody is
shown it, and it moves once, by compare and set: whoever comes second is told so. An answer counts as handed over once
it was written to whoever waits; until then, and over the service's death, the row is what both sides go by.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from core.clock import Deadline
from core.commands import exact_for
from core.domain.activity import ASKING_STATES
from core.domain.asking import (
    Asked,
    Request,
    RequestKind,
    RequestState,
    asked_of,
    buttons_of,
    ended_text,
    text_of,
    view_of,
)
from core.domain.binding import CHANNEL
from core.domain.harness import stamped
from core.domain.session import SessionRecord
from core.errors import CoreError, StoreBroken, TmuxMissing, TmuxSilent
from core.names import new_request_id
from core.ports import NewPost, OutboundKind
from core.process.controlsocket import Listener
from core.redaction import redactor_of
from core.secretnames import secret_variables
from core.session.instead import attach_of
from core.session.sessions import record_of_instance
from core.session.threads import has_thread
from core.sight.situations import opinion_of
from core.system import System
from core.values import replace

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.25  #: how soon a hook that was ended is noticed
_LOOK_SECONDS = 1.0
_FRESH = timedelta(minutes=1)
_GRACE = timedelta(seconds=20)  #: for a client to come back to a service that was restarted

AT_THE_TERMINAL = "answered at the terminal"
LEFT = "answered at the terminal, or its turn was ended there"
EXPIRED = "nobody answered in time; the dialog stays in the terminal"
ASK_EXPIRED = "nobody answered in time"
LOST = "nobody waits for this answer any more; look at the terminal"
ENDED = "the session has ended since"


class Requests:
    """Answers the hooks and commands that ask. One a service; its methods may be called from any thread."""

    def __init__(self, system: System, *, replies: bool = True) -> None:
        """`replies` tells whether what people write in the threads is read."""
        self._system = system
        self._replies = replies
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._changed = threading.Condition()
        self._waiting: dict[str, int] = {}  #: request -> how many clients wait for it
        self._began = system.clock.now()
        self._over = False  #: the service ends: whoever waits is hung up on, and comes back to the next one

    # ------------------------------------------------------------ whoever asks

    def talk(self, line: Mapping[str, Any], peer: Listener) -> None:
        """Speak with a client: `{"wait": seconds}` when it is shown, then `{"answer": …}`, or `{"undecided": why}`."""
        try:
            request, why = self._meant(line)
            if request is None:
                peer.send({"undecided": why})
                return
            self._enter(request.id)
            try:
                self._converse(self._opened(request), peer)
            finally:
                self._leave(request.id)
        except CoreError as error:
            _LOG.warning("a request was not taken", extra={"reason": str(error)})
            peer.send({"undecided": str(error)})

    def _meant(self, line: Mapping[str, Any]) -> tuple[Request | None, str]:
        """Return the request that the client means, which may be new; or why it cannot be asked here."""
        system, asked = self._system, asked_of(line)
        if asked is None:
            return None, "the request cannot be understood"
        record = record_of_instance(system, asked.instance)
        if record is None:
            return None, "no session's present instance asks"
        known = system.requests.of_key(asked.instance, asked.key)
        if known is not None:
            return known, ""
        if not has_thread(system, record):
            return None, f"{record.name} has no thread in which somebody could answer"
        if asked.kind is RequestKind.ASK and not self._replies:
            return None, f"replies in the thread of {record.name} are not read (read.mode), so nobody could answer"
        return self._request(asked, record), ""

    def _opened(self, request: Request) -> Request:
        """Store a request that is new, and let it be shown; its client waits already when it is."""
        system = self._system
        with system.database.transaction(durable=True):
            new = system.requests.add(request)
            if new:
                system.outbox.add([post_of(request, self._terminal(request))])
        if new:
            system.events.emit(
                "standing.asked", name=request.name, instance=request.instance, reason=request.kind.value,
                message=request.id, detail=request.tool or None, actor=f"agent:{request.name}",
            )  # fmt: skip
            system.poke()
        return system.requests.get(request.id) or request

    def _request(self, asked: Asked, record: SessionRecord) -> Request:
        now, limit = self._system.clock.now(), self._system.settings.limits.approval_wait_seconds
        told = stamped(asked.key, now)  # an answer at the terminal may be quicker than the client
        permission = asked.kind is RequestKind.PERMISSION
        redact = self._redactor.redact
        return Request(
            id=new_request_id(),
            key=asked.key,
            uid=record.uid,
            name=record.name,
            instance=asked.instance,
            agent=asked.agent,
            kind=asked.kind,
            asked_at=told if now - _FRESH < told < now else now,
            expires_at=now + timedelta(seconds=min(asked.wait or limit, limit)),
            tool=asked.tool,
            detail=view_of(_each_text(redact, asked.given)) if permission else "",
            questions=asked.questions,
        )

    def _terminal(self, request: Request) -> str:
        """Return the command by which a question is answered where no reply is read, "" elsewhere."""
        return "" if self._replies else exact_for(self._system, attach_of(request.name))

    def _converse(self, request: Request, peer: Listener) -> None:
        left = (request.expires_at - self._system.clock.now()).total_seconds()
        if request.state is RequestState.OPEN and (left <= 0 or not peer.send({"wait": left})):
            return
        settled = self._settled(request, peer)
        if settled is None:
            return
        if settled.state is not RequestState.ANSWERED:
            peer.send({"undecided": settled.reason})
            return
        handed = peer.send({"answer": answer_of(settled)})
        self._hand_over(settled, handed=handed)

    def _settled(self, request: Request, peer: Listener) -> Request | None:
        """Wait until the request is over, which it is at the latest when its time is up or its client hangs up.

        None where the service ends first.
        """
        look = Deadline(self._system.clock, 0.0)
        while not self._over:
            if look.passed():
                request = self._system.requests.get(request.id) or replace(request, state=RequestState.GONE)
                look = Deadline(self._system.clock, _LOOK_SECONDS)
            if request.state is not RequestState.OPEN:
                return request
            if peer.gone():
                reason = LEFT if request.kind is not RequestKind.ASK else LOST
                return self.end(request, RequestState.GONE, reason) or request
            if self._system.clock.now() >= request.expires_at:
                return self.end(request, RequestState.EXPIRED, _expired(request)) or request
            with self._changed:
                if self._changed.wait(_POLL_SECONDS):
                    look = Deadline(self._system.clock, 0.0)
        return None

    def _hand_over(self, settled: Request, *, handed: bool) -> None:
        """Note that the answer arrived, and say so in the thread; one that did not arrive decided nothing."""
        if not handed:
            self.end(settled, RequestState.GONE, LOST)
            return
        with self._system.database.transaction(durable=True):
            told = self._system.requests.move(settled, told=True)
            if told is not None:
                self._system.outbox.add([edit_of(told)])
        self._system.poke()

    # ------------------------------------------------------------ whoever answers

    def waits(self, request: Request) -> bool:
        """Tell whether somebody would get an answer now."""
        with self._changed:
            return self._waiting.get(request.id, 0) > 0

    def answer(self, request: Request, by: str, actor: str, *, allowed: bool = False, text: str = "") -> Request | None:
        """Answer the request, or its next question, and return how it stands; None if somebody was first.

        Part of the caller's open transaction, if there is one; then `wake` follows its commit.
        """
        now = self._system.clock.now()
        answers = request.answers if request.kind is RequestKind.PERMISSION else (*request.answers, text)
        over = len(answers) == len(request.questions)
        state = RequestState.ANSWERED if over else RequestState.OPEN
        with self._system.database.transaction(durable=True):
            moved = self._system.requests.move(
                request, state=state, allowed=allowed, answers=answers, by=by, settled_at=now if over else None
            )
            if moved is not None and not over:
                self._system.outbox.add([edit_of(moved, self._terminal(moved))])
        if moved is not None and over:
            word = {True: "allowed", False: "denied"}[allowed] if request.kind is RequestKind.PERMISSION else "answered"
            self._system.events.emit(
                "standing.answered", name=request.name, actor=actor, reason=word, instance=request.instance,
                message=request.id,
            )  # fmt: skip
        return moved

    def wake(self) -> None:
        """Let whoever waits look at the rows."""
        with self._changed:
            self._changed.notify_all()

    def overtaken(self, request: Request) -> str:
        """Return why no answer counts any more, "" where one does.

        The harness's other source is asked, since no hook tells of an Enter in its dialog. One that cannot be asked, or
        says nothing, leaves the answer to whoever is first.
        """
        record = record_of_instance(self._system, request.instance)
        if record is None:
            return ENDED
        try:
            pane = self._system.runner.survey().of_instance(request.instance)
        except (TmuxSilent, TmuxMissing):
            return ""
        if pane is None or pane.dead:
            return ENDED
        opinion = opinion_of(self._system, record, pane.pid) if request.kind is not RequestKind.ASK else None
        if opinion is None or opinion.state in ASKING_STATES or opinion.written_at is None:
            return ""
        return AT_THE_TERMINAL if opinion.written_at > request.asked_at else ""

    def end(self, request: Request, state: RequestState, reason: str) -> Request | None:
        """Settle an open request, or one whose answer did not arrive; see `settle`."""
        ended = settle(self._system, request, state, reason)
        self.wake()
        return ended

    # ------------------------------------------------------------ what nobody waits for

    def run(self, stopping: threading.Event) -> None:
        """Settle requests whose time is up, and those that nobody came back for after a restart."""
        while not stopping.wait(_LOOK_SECONDS):
            try:
                self.turn()
            except StoreBroken as error:
                _LOG.warning("requests cannot be looked at", extra={"reason": str(error)})
        self._over = True
        self.wake()

    def turn(self) -> None:
        """Look once at what is open or was not handed over."""
        now = self._system.clock.now()
        for request in (*self._system.requests.open(), *self._system.requests.untold()):
            if self.waits(request):
                continue
            if request.state is RequestState.OPEN and now >= request.expires_at:
                self.end(request, RequestState.EXPIRED, _expired(request))
            elif record_of_instance(self._system, request.instance) is None:
                self.end(request, RequestState.GONE, ENDED)
            elif now >= max(request.asked_at, self._began) + _GRACE:
                self.end(request, RequestState.GONE, LOST)

    def _enter(self, request_id: str) -> None:
        with self._changed:
            self._waiting[request_id] = self._waiting.get(request_id, 0) + 1

    def _leave(self, request_id: str) -> None:
        with self._changed:
            self._waiting[request_id] -= 1
            if not self._waiting[request_id]:
                del self._waiting[request_id]


def _expired(request: Request) -> str:
    return ASK_EXPIRED if request.kind is RequestKind.ASK else EXPIRED


def _each_text(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {str(key): _each_text(change, each) for key, each in value.items()}
    return [_each_text(change, each) for each in value] if isinstance(value, list) else value


def answer_of(request: Request) -> Mapping[str, Any]:
    """Return the answer in the words of the socket."""
    if request.kind is RequestKind.PERMISSION:
        message = f"{request.by} denied this in {CHANNEL.capitalize()}"
        return {"allowed": request.allowed, **({} if request.allowed else {"message": message})}
    pairs = zip(request.questions, request.answers, strict=True)
    return {"answers": {question.text: answer for question, answer in pairs}, "by": request.by}


def post_of(request: Request, terminal: str = "") -> NewPost:
    """Return the post that shows an open request; see `text_of`."""
    return _post(request, request.id, text_of(request, terminal))


def edit_of(request: Request, terminal: str = "") -> NewPost:
    """Return what that post becomes: the next question, or how the request ended."""
    suffix = f"{len(request.answers)}-{request.state.value}"
    text = text_of(request, terminal) if request.state is RequestState.OPEN else ended_text(request)
    return replace_post(_post(request, f"{request.id}-{suffix}", text), edits=f"p-{request.id}")


def replace_post(post: NewPost, **changes: Any) -> NewPost:
    """Return the post with other fields."""
    return NewPost(**{**post.__dict__, **changes})


def _post(request: Request, suffix: str, text: str) -> NewPost:
    return NewPost(
        id=f"p-{suffix}",
        key=f"request:{suffix}",
        kind=OutboundKind.REQUEST,
        uid=request.uid,
        name=request.name,
        channel_kind=CHANNEL,
        text=text,
        buttons=buttons_of(request),
    )


def settle(system: System, request: Request, state: RequestState, reason: str) -> Request | None:
    """End a request without an answer, and say so in its thread; None if it was over already.

    Part of the caller's open transaction, if there is one.
    """
    now = system.clock.now()
    with system.database.transaction(durable=True):
        moved = system.requests.move(request, state=state, reason=reason, settled_at=now, told=True)
        if moved is not None:
            system.outbox.add([edit_of(moved)])
    if moved is not None:
        system.poke()
    return moved


def went_on(system: System, record: SessionRecord, agent: str, at: datetime, *, everything: bool) -> None:
    """End the requests of an agent that has gone on since: they were answered at the terminal.

    Part of the observer's open transaction. `everything`: the harness has ended, and nobody in it waits.
    """
    for request in system.requests.open(record.uid):
        if request.instance != record.instance_id or request.kind is RequestKind.ASK:
            continue
        if everything or (request.agent == agent and request.asked_at < at):
            settle(system, request, RequestState.GONE, ENDED if everything else AT_THE_TERMINAL)
