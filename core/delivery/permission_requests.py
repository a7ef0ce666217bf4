"""Permissions and questions on their way to a thread, and the answers on their way back.

A harness's hook, or an agent's command, asks on the service's socket and waits. The request is a row before anybody
sees it, and it moves once, by compare and set; whoever answers second is told so. An answer counts as handed over when
it was written to the waiting side. Until then, and if the service dies, both sides go by the row. A prompt that came
from elsewhere (a command, another agent, the keyboard) is shown in the thread, because its answer will be.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from core.base.clock import Deadline
from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.files import read_token
from core.base.names import new_request_id
from core.base.redaction import redactor_of
from core.base.values import replace
from core.clients.askclient import NONCE
from core.config.chats import title_of
from core.config.settings import secret_variables
from core.delivery.snapshot import probe_of
from core.model.activity import ASKING_STATES
from core.model.asking import (
    HookQuestion,
    Press,
    Request,
    RequestKind,
    RequestState,
    Unseen,
    asked_of,
    buttons_of,
    ended_text,
    session_buttons,
    text_of,
    view_of,
)
from core.model.framing import head, takes
from core.model.harness import MAIN, PromptReported, Report, stamped
from core.model.message import InboxRow, Kind, MessageState
from core.model.posts import OWN_CHAT, NewPost, OutboundKind, asked_text
from core.model.reasons import Reason
from core.model.session import SessionRecord
from core.model.texts import text
from core.process.control import Listener
from core.session.commands import exact_for
from core.session.notes import attach_of
from core.session.sessions import apart, chat_of, has_thread, record_of_instance
from core.session.system import System

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.model.posts import OWN_CHAT, NewPost
    from core.store.inbox import Inbox


_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.25  #: how soon a hook that was ended is noticed
_LOOK_SECONDS = 1.0
_FRESH = timedelta(minutes=1)
_GRACE = timedelta(seconds=20)  #: for a client to come back to a service that was restarted

AT_THE_TERMINAL = "answered at the terminal"
LEFT = "answered at the terminal, or its turn was ended there"
CLOSED_THERE = "answered or rejected at the terminal"  #: of which nobody can tell which of both
BY_EITHER = "rejected by {by}, or answered at the terminal: it is not known which"
EXPIRED = "nobody answered in time; the dialog stays in the terminal"
ASK_EXPIRED = "nobody answered in time"
UNWATCHED = "nobody was there to answer; the dialog stays in the terminal"
LOST = "the program no longer waits for this answer; look at the terminal"
ENDED = "the session has ended"


class _NotAsked(Exception):
    """The request is not shown to anybody; the message says why."""


class Requests:
    """Answers the hooks and commands that ask. One a service; its methods may be called from any thread."""

    def __init__(self, system: System, *, replies: bool = True) -> None:
        """`replies` tells whether what people write in the threads is read."""
        self._system = system
        self._replies = replies
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._changed = threading.Condition()
        self._waiting: dict[str, int] = {}  #: request -> how many clients wait for it
        self._opening = threading.Lock()  #: of two who ask at once under one key, the second finds the first's row
        self._began = system.clock.now()
        self._watchers = 0  #: clients that show requests to somebody who answers, besides the threads
        self._left = Deadline(system.clock, 0.0)  #: from the last one's end on
        self._over = False  #: the service ends: whoever waits is hung up on, and comes back to the next one

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take requests of sessions without a thread, too, for the block: somebody is there who answers them."""
        with self._changed:
            self._watchers += 1
        try:
            yield
        finally:
            with self._changed:
                self._watchers -= 1
                self._left = Deadline(self._system.clock, _GRACE.total_seconds())

    def _is_watched(self) -> bool:
        with self._changed:
            return self._watchers > 0

    # ------------------------------------------------------------ whoever asks

    def talk(self, line: Mapping[str, Any], peer: Listener) -> None:
        """Speak with a client: `{"wait": seconds}` when it is shown, then `{"answer": …}`, or `{"undecided": why}`."""
        try:
            asked, record = self._understood(line)
            with self._opening:
                request = self._joined(asked, record)
            try:
                gone = self._converse(request, peer)
            finally:
                last = self._leave(request.id)
            if gone and last:
                self._give_up(request.id)
        except _NotAsked as refused:
            peer.send({"undecided": str(refused)})
        except CoreError as error:
            _LOG.warning("a request was not taken", extra={"reason": str(error)})
            peer.send({"undecided": str(error)})

    def _understood(self, line: Mapping[str, Any]) -> tuple[HookQuestion, SessionRecord]:
        """Return what is asked, and the session whose present instance does. Raises _NotAsked, StoreBroken."""
        asked = asked_of(line)
        if asked is None:
            raise _NotAsked("the request cannot be understood")
        record = record_of_instance(self._system.records, asked.instance)
        if record is None:
            raise _NotAsked("the request does not come from any session's current instance")
        if asked.kind is not RequestKind.ASK and not self._proven(asked, record):
            self._refuse(asked, record, asked.instance, Reason.ASKER_UNPROVEN)
        return asked, record

    def _proven(self, asked: HookQuestion, record: SessionRecord) -> bool:
        """Return whether the key ends in the instance's secret: anybody can read the name of its hook's report."""
        nonce = read_token(self._system.paths.session(record.uid) / NONCE)
        given = asked.key.rpartition(".")[2]
        return bool(nonce) and hmac.compare_digest(given.encode("utf-8", "replace"), (nonce or "").encode())

    def _refuse(self, asked: HookQuestion, record: SessionRecord, about: str, why: Reason) -> NoReturn:
        """Say in the log, and once in the thread, that a request is not shown. Raises _NotAsked.

        `about`: the id of the request, or of the instance, that is spoken of.
        """
        system = self._system
        if has_thread(system.settings, system.bindings, record):
            with system.database.transaction(durable=True):
                system.outbox.add(
                    [_refusal(record, about, lambda text: exact_for(system.settings, system.environ, text), why)]
                )
        system.events.emit(
            "standing.ask_refused", level="warning", name=record.name, instance=asked.instance, reason=text(why),
            message=about, detail=asked.tool or None,
        )  # fmt: skip
        system.notify()
        raise _NotAsked(f"{text(why)}; answer it at the terminal")

    def _joined(self, asked: HookQuestion, record: SessionRecord) -> Request:
        """Return the request that the client now waits for: a new one, or the same that was asked under its key before.

        Raises _NotAsked, StoreBroken.
        """
        system = self._system
        known = system.requests.of_key(asked.instance, asked.key)
        if known is not None:
            if known.digest != asked.digest:
                self._refuse(asked, record, known.id, Reason.ASKED_OTHERWISE)
            self._enter(known.id)
            return known
        watched = self._is_watched()
        if not watched and not has_thread(system.settings, system.bindings, record):
            raise _NotAsked(f"{record.name} has no thread in which somebody could answer")
        if asked.kind is RequestKind.ASK and not self._replies and not watched:
            raise _NotAsked(f"replies in the thread of {record.name} are not read (read.mode), so nobody could answer")
        request = self._request(asked, record)
        self._enter(request.id)  # whoever is shown it finds that somebody waits
        try:
            self._open(request)
        except BaseException:
            self._leave(request.id)
            raise
        return request

    def _open(self, request: Request) -> None:
        """Store a new request, and let it be shown. Raises StoreBroken."""
        system = self._system
        with system.database.transaction(durable=True):
            system.requests.add(request)
            system.outbox.add([post_of(request, self._terminal(request))])
        system.events.emit(
            "standing.asked", name=request.name, instance=request.instance, reason=request.kind.value,
            message=request.id, detail=request.tool or None, actor=f"agent:{request.name}",
        )  # fmt: skip
        system.notify()

    def _request(self, asked: HookQuestion, record: SessionRecord) -> Request:
        now, limit = self._system.clock.now(), self._system.settings.limits.approval_wait_seconds
        told = stamped(asked.key, now)  # an answer at the terminal may be quicker than the client
        permission = asked.kind is RequestKind.PERMISSION
        detail, unseen = view_of(asked.tool, asked.given, self._hide, asked.missing) if permission else ("", Unseen())
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
            detail=detail,
            unseen=unseen,
            rules=() if any(self._hide(rule)[1] for rule in asked.rules) else asked.rules,
            questions=asked.questions,
            digest=asked.digest,
        )

    def _hide(self, text: str) -> tuple[str, int, int]:
        redacted = self._redactor.counted(text, asked=True)
        return redacted.text, redacted.count, redacted.characters

    def _terminal(self, request: Request) -> str:
        """Return the command by which a question is answered where no reply is read, "" elsewhere."""
        return "" if self._replies else exact_for(self._system.settings, self._system.environ, attach_of(request.name))

    def _chat(self, request: Request) -> str:
        """Return what people call the place where it was answered."""
        bound = self._system.bindings.of_session(request.uid)
        return title_of(bound.channel_kind) if bound else "its thread"

    def _converse(self, request: Request, peer: Listener) -> bool:
        """Wait with the client for the end of the request and tell it; True where it has gone without an answer."""
        left = (request.expires_at - self._system.clock.now()).total_seconds()
        if request.state is RequestState.OPEN and (left <= 0 or not peer.send({"wait": left})):
            return left > 0
        settled = self._settled(request, peer)
        if settled is None:
            return not self._over
        if settled.state is not RequestState.ANSWERED:
            peer.send({"undecided": settled.reason})
            return False
        if not peer.send({"answer": answer_of(settled, self._chat(settled))}):
            return True
        self.hand_over(settled)
        return False

    def _give_up(self, request_id: str) -> None:
        """End a request whose last client has gone: it decides nothing any more. Raises StoreBroken."""
        request = self._system.requests.get(request_id)
        if request is None or self.waits(request) or request.told:
            return
        if request.state is RequestState.OPEN:
            self.end(request, RequestState.GONE, LEFT if request.kind is not RequestKind.ASK else LOST)
        elif request.state is RequestState.ANSWERED:
            self.end(request, RequestState.GONE, LOST)

    def _settled(self, request: Request, peer: Listener) -> Request | None:
        """Wait until the request is over, at the latest when its time is up.

        None where its client hangs up, or the service ends, before that.
        """
        look = Deadline(self._system.clock, 0.0)
        while not self._over:
            if look.passed():
                request = self._system.requests.get(request.id) or replace(request, state=RequestState.GONE)
                look = Deadline(self._system.clock, _LOOK_SECONDS)
            if request.state is not RequestState.OPEN:
                return request
            if peer.gone():
                return None
            if self._system.clock.now() >= request.expires_at:
                return self.end(request, RequestState.EXPIRED, _expired(request)) or request
            with self._changed:
                if self._changed.wait(_POLL_SECONDS):
                    look = Deadline(self._system.clock, 0.0)
        return None

    def hand_over(self, settled: Request) -> None:
        """Note that the answer arrived, and say so in the thread."""
        with self._system.database.transaction(durable=True):
            told = self._system.requests.move(settled, told=True)
            if told is not None:
                self._system.outbox.add([edit_of(told)])
        self._system.notify()

    # ------------------------------------------------------------ whoever answers

    def waits(self, request: Request) -> bool:
        """Return whether somebody would get an answer now."""
        with self._changed:
            return self._waiting.get(request.id, 0) > 0

    def answer(self, request: Request, by: str, actor: str, *, allowed: bool = False, text: str = "") -> Request | None:
        """Answer the request, or its next question, and return how it stands; None if somebody was first.

        `text` of a permission: REMEMBERED, or "".
        Part of the caller's open transaction, if there is one; then `wake` follows its commit.
        """
        now = self._system.clock.now()
        answers = (*request.answers, *([text] if text or request.kind is not RequestKind.PERMISSION else []))
        over = request.kind is RequestKind.PERMISSION or len(answers) == len(request.questions)
        state = RequestState.ANSWERED if over else RequestState.OPEN
        with self._system.database.transaction(durable=True):
            moved = self._system.requests.move(
                request,
                state=state,
                allowed=allowed,
                answers=answers,
                by=by,
                reason="",
                settled_at=now if over else None,
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
        says nothing, leaves the answer to whoever is first. Of a background agent's dialog it says nothing: while its
        hook waits, Claude Code calls itself busy.
        """
        record = record_of_instance(self._system.records, request.instance)
        if record is None:
            return ENDED
        try:
            pane = self._system.runner.survey().of_instance(request.instance)
        except (TmuxSilent, TmuxMissing):
            return ""
        if pane is None or pane.dead:
            return ENDED
        opinion = (
            probe_of(self._system.settings, self._system.paths, self._system.harnesses, record, pane.pid)
            if request.kind is not RequestKind.ASK and request.agent == MAIN
            else None
        )
        if opinion is None or opinion.state in ASKING_STATES or opinion.written_at is None:
            return ""
        return LEFT if opinion.written_at > request.asked_at else ""

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
            except CoreError as error:
                _LOG.warning("requests cannot be looked at", extra={"reason": str(error)})
        self._over = True
        self.wake()

    def turn(self) -> None:
        """Look once at what is open or was not handed over."""
        for request in (*self._system.requests.open(), *self._system.requests.untold()):
            if self.waits(request) and not self._is_left(request):
                continue
            on_screen = request.kind is RequestKind.DIALOG and request.state is RequestState.OPEN
            if on_screen and record_of_instance(self._system.records, request.instance) is not None:
                continue
            try:
                with apart(self._system.events, request.name):
                    self._look(request)
            except CoreError as error:
                _LOG.warning("request passed over", extra={"session": request.name, "reason": str(error)})

    def _is_left(self, request: Request) -> bool:
        """Return whether nobody is there any more who could answer: it was shown in no thread, and all watchers left.

        A program may show its own dialog only once it has our answer.
        """
        if request.state is not RequestState.OPEN or self._is_watched() or not self._left.passed():
            return False
        record = record_of_instance(self._system.records, request.instance)
        return record is not None and not has_thread(self._system.settings, self._system.bindings, record)

    def _look(self, request: Request) -> None:
        if self.waits(request):
            self.end(request, RequestState.GONE, UNWATCHED)
            return
        now = self._system.clock.now()
        if request.state is RequestState.OPEN and now >= request.expires_at:
            self.end(request, RequestState.EXPIRED, _expired(request))
        elif record_of_instance(self._system.records, request.instance) is None:
            self.end(request, RequestState.GONE, ENDED)
        elif now >= max(request.settled_at or request.asked_at, self._began) + _GRACE:
            self.end(request, RequestState.GONE, LOST)

    def _enter(self, request_id: str) -> None:
        with self._changed:
            self._waiting[request_id] = self._waiting.get(request_id, 0) + 1

    def _leave(self, request_id: str) -> bool:
        """Wait no more, and tell whether nobody else does."""
        with self._changed:
            self._waiting[request_id] -= 1
            if self._waiting[request_id]:
                return False
            del self._waiting[request_id]
            return True


def _expired(request: Request) -> str:
    return ASK_EXPIRED if request.kind is RequestKind.ASK else EXPIRED


def answer_of(request: Request, chat: str) -> Mapping[str, Any]:
    """Return the answer in the words of the socket. `chat` is what people call the place where it was given."""
    if request.kind is RequestKind.PERMISSION:
        message = f"{request.by} denied this in {chat}"
        remember = {"remember": True} if request.remembered else {}
        return {"allowed": request.allowed, **({} if request.allowed else {"message": message}), **remember}
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
        channel_kind=OWN_CHAT,
        text=text,
        buttons=buttons_of(request),
    )


def _refusal(record: SessionRecord, about: str, exact: Callable[[str], str], why: Reason) -> NewPost:
    said = f"A request of `{record.name}` is not shown here: {text(why)}. To do: answer it at its terminal"
    said += f", {exact(attach_of(record.name))}"
    if why is Reason.ASKER_UNPROVEN:
        restart = f"`the-loop standing restart {record.name}`"
        said += ". If an earlier version of the-loop started the session, restart it, so that its requests prove this"
        said += f": {exact(restart)}"
    post = NewPost(
        f"p-unasked-{about}", f"unasked:{about}", OutboundKind.NOTE, record.uid, record.name, OWN_CHAT, f"{said}."
    )
    buttons = session_buttons(record.uid, Press.RESTART) if why is Reason.ASKER_UNPROVEN else ()
    return replace(post, buttons=buttons)


def settle(system: System, request: Request, state: RequestState, reason: str) -> Request | None:
    """End a request without an answer, and say so in its thread; None if it was over already.

    What a command has rejected is told as that. Part of the caller's open transaction, if there is one.
    """
    now = system.clock.now()
    with system.database.transaction(durable=True):
        latest = system.requests.get(request.id) if state is RequestState.GONE else None
        why = latest.reason if latest is not None and latest.reason else reason
        moved = system.requests.move(request, state=state, reason=why, settled_at=now, told=True)
        if moved is not None:
            system.outbox.add([edit_of(moved)])
    if moved is not None:
        system.notify()
    return moved


def mark_rejected(system: System, record: SessionRecord, by: str) -> None:
    """Note who is about to reject the dialog of the session's turn by a command; "": the key had no effect.

    Whoever notices first that the dialog is gone then names them. The same key may reject the dialog of an agent in the
    background, if the terminal shows that: whether it did is not known. Raises StoreBroken.
    """
    of_turn = {request.id for request in _of_turn(system, record)}
    for request in _shown(system, record):
        how = f"rejected by {by}" if request.id in of_turn else BY_EITHER.format(by=by)
        system.requests.move(request, reason=how if by else "")


def end_rejected(system: System, record: SessionRecord) -> None:
    """End the requests that a command has rejected, now that the turn is over. Raises StoreBroken."""
    for request in _of_turn(system, record):
        if request.reason:
            settle(system, request, RequestState.GONE, request.reason)


def _of_turn(system: System, record: SessionRecord) -> list[Request]:
    """Return the open requests that the session's terminal shows for its turn, not for an agent in the background."""
    return [one for one in _shown(system, record) if one.agent == MAIN]


def _shown(system: System, record: SessionRecord) -> list[Request]:
    """Return the open requests that its terminal shows, or is about to show."""
    opened = [one for one in system.requests.open(record.uid) if one.instance == record.instance_id]
    return [one for one in opened if one.kind is not RequestKind.ASK]


def went_on(system: System, record: SessionRecord, agent: str, at: datetime, *, everything: bool) -> None:
    """End the requests of an agent that has gone on since: they were answered at the terminal.

    An agent in the background goes on also if its dialog is rejected there by Escape, which no hook tells of. Part of
    the observer's open transaction. `everything`: the harness has ended, and nobody in it waits.
    """
    for request in system.requests.open(record.uid):
        if request.instance != record.instance_id or request.kind is RequestKind.ASK:
            continue
        if request.kind is RequestKind.DIALOG and not everything:
            continue  # its screen tells
        if everything or (request.agent == agent and request.asked_at < at):
            there = AT_THE_TERMINAL if agent == MAIN else CLOSED_THERE
            if everything and request.reason:  # whoever pressed a key before did not end the session by it
                request = system.requests.move(request, reason="") or request
            settle(system, request, RequestState.GONE, ENDED if everything else there)


_LOOK_BACK = 50  #: messages of the session
AT_TERMINAL = "at the terminal"
BY_SCHEDULE = "by its own schedule"


def asked_elsewhere(
    settings: Settings, inbox: Inbox, record: SessionRecord, report: Report, event: PromptReported
) -> tuple[NewPost, ...]:
    """Return a post for each question in a prompt that came by a command, by another agent, or from the keyboard.

    What the harness's own schedule began is told as that.

    What stands in the thread already, what a loop asked, and what our own start asked, is none. Nor is what somebody
    sent from the chat by a command: they have chosen to be its only reader there.
    """
    if event.scheduled and report.agent == MAIN:
        key = f"{record.instance_id}:{report.name}"
        return (_prompt_post(record, key, "", asked_text(BY_SCHEDULE, event.prompt)),)
    if event.internal or report.agent != MAIN or not event.prompt.strip():
        return ()
    rows = inbox.with_states(record.uid, frozenset(MessageState), _LOOK_BACK)
    held = [row for row in rows if takes(event.prompt, row.message)]
    if not held:
        key = f"{record.instance_id}:{report.name}"
        return (_prompt_post(record, key, "", asked_text(AT_TERMINAL, event.prompt)),)
    return tuple(
        _prompt_post(record, row.message.id, row.message.id, asked_text(_who(row), row.message.text))
        for row in reversed(held)
        if row.message.kind is Kind.SAY and chat_of(settings, row) is None
    )


def _who(row: InboxRow) -> str:
    """Return who speaks, as the frame tells the agent: `alice via cli`, `agent builder`."""
    return head(row.message).strip("[]").rpartition(" #")[0]


def _prompt_post(record: SessionRecord, key: str, about: str, text: str) -> NewPost:
    from core.model.posts import OWN_CHAT, NewPost, OutboundKind

    return NewPost(
        id=f"p-asked-{key}".replace(".", "-"),
        key=f"asked:{key}",
        kind=OutboundKind.ASKED,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        about=about,
    )
