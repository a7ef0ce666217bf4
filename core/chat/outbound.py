"""Send posts into a chat: in order within a session, by turns among sessions, at most one a second in a channel, each
once.

A chat's failure never stops a session. Transient failures are retried with growing pauses; permanent ones end in FAILED
and one event. While the chat accepts nothing from us (a revoked token), all posts wait. If the answer to a post was
lost, the chat is searched for the post's id before it is sent again. Secrets are removed before a long answer is split,
so none is cut in two; each part becomes a row before the first is sent.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from core.base.clock import Deadline
from core.base.errors import ChannelError, CoreError, HandedOver, LockBusy, RecordUnreadable, Refused, RowBroken
from core.base.redaction import redactor_of
from core.base.values import dataclass, replace
from core.chat.live import LivePosts, Way
from core.chat.rebinding import Rebinder
from core.chat.remedies import as_done_there
from core.chat.unsent import note_unsent
from core.config.settings import secret_variables
from core.model.asking import Unseen
from core.model.channel import Channel, Posted
from core.model.posts import ANNOUNCEMENTS, OURS, RANKS, NewPost, OutboundKind, OutboxRow, PostState
from core.model.reasons import Because, Reason, because, said
from core.model.session import Binding, Phase, SessionRecord, Thread
from core.session.commands import exact_for
from core.session.notes import mend_notes, without_buttons
from core.session.sessions import Unforeseen, apart
from core.session.system import System

_LOG = logging.getLogger(__name__)
_PACE_SECONDS = 1.0  # chats allow about one message a second and channel
_REST_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 300.0
_MAX_ATTEMPTS = 40  # with the pauses above: hours of a chat that is away
_SHUT_OUT_SECONDS = 300.0  # until it is tried again whether a token counts
_LOCK_SECONDS = 1.0
_TROUBLE_SECONDS = 5.0
_COMING_UP = frozenset({Phase.CREATING, Phase.STARTING})
_EVER = datetime.max.replace(tzinfo=UTC)
_ANNOUNCEMENTS = frozenset({OutboundKind.ROOT, OutboundKind.BOOT, OutboundKind.ROOT_UPDATE, OutboundKind.REFRESH})
_LOST = frozenset({ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER, ChannelError.THREAD_GONE})


@dataclass(frozen=True)
class Place:
    """Where a post goes. `thread` "" is the channel itself; `edits` is the message that it replaces."""

    channel: str
    thread: str
    edits: str | None = None

    @property
    def hangs_on(self) -> tuple[str, str]:
        """The channel, and the message that the post hangs on."""
        return self.channel, self.thread


class OutboundWorker:
    """Empties the outbox of one channel kind. The service's thread for it; nobody else posts."""

    def __init__(
        self,
        system: System,
        channel: Channel,
        posted: Callable[[str], None] = lambda _: None,
        shut_out: Callable[[str, str], None] = lambda _, __: None,
        sent: Callable[[str], None] = lambda _: None,
        live: LivePosts | None = None,
    ) -> None:
        """`posted` is told the session (uid) whose thread has got a post; `sent`, the channel's kind, that one was
        taken which comes back as an event.

        `live`: what shows turns as they run, if another worker shares it.

        `shut_out` is told, with the channel's kind, why the chat takes nothing from us; "" once it does again.
        """
        self._system = system
        self._channel = channel
        self._tell_posted = posted
        self._tell_shut_out = shut_out
        self._tell_sent = sent
        self._live = live or LivePosts(system, channel)
        self._rebinder = Rebinder(system, channel, posted)
        self._shut_out: Deadline | None = None  #: until then no post is tried
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._wake = threading.Event()
        self._free: dict[str, Deadline] = {}  #: by chat channel: until then the next post waits
        self._sent_posts = 0
        self._turns: dict[str, int] = {}  #: by session (uid): which of them its latest was

    def wake(self) -> None:
        """Look now: something was committed to the outbox. Callable from every thread."""
        self._wake.set()

    def run(self, stopping: threading.Event) -> None:
        """Post until told to stop; a call that began is finished."""
        while not stopping.is_set():
            self._wake.wait(self._guarded_turn(stopping))
            self._wake.clear()

    def _guarded_turn(self, stopping: threading.Event) -> float:
        """Take a turn; trouble with the state on the disk is told and tried again, and ends no worker."""
        try:
            return self.turn(stopping)
        except CoreError as error:
            _LOG.warning("cannot post", extra={"reason": str(error)})
            return _TROUBLE_SECONDS

    def turn(self, stopping: threading.Event | None = None) -> float:
        """Send what is due and may be sent, and return the seconds until it is worth looking again."""
        if self._shut_out is not None and not self._shut_out.passed():
            return self._shut_out.remaining()
        self._rebinder.turn()
        rest = _REST_SECONDS
        mend_notes(self._system, self._channel.kind)
        due = self._system.outbox.due(self._channel.kind, self._system.clock.now())
        for row in sorted(due, key=self._turn_of):
            if stopping is not None and stopping.is_set():
                break
            rest = min(rest, self._handled(row))
            if self._shut_out is not None:
                return self._shut_out.remaining()
        return rest

    def _turn_of(self, row: OutboxRow) -> tuple[int, int]:
        """Return by what posts of different sessions are ordered: rank, then how long ago the session had a turn."""
        return RANKS[row.post.kind], self._turns.get(row.post.uid, 0)

    def _take_turn(self, row: OutboxRow, place: Place) -> None:
        """Note that the session's post has its turn now; the next one in its channel waits."""
        self._hold_back(place.channel, _PACE_SECONDS)
        self._sent_posts += 1
        self._turns[row.post.uid] = self._sent_posts

    def _handled(self, row: OutboxRow) -> float:
        """Send the post if it may be sent now, and return the seconds until it is worth looking again.

        One on which the work fails in a way that nobody foresaw waits, and fails in the end; others go on.
        """
        try:
            with apart(self._system.events, row.post.name):
                return self._see_to(row)
        except Unforeseen as error:
            self._put_aside(self._system.outbox.get(row.post.id) or row, error)
            return _REST_SECONDS

    def _put_aside(self, row: OutboxRow, error: Unforeseen) -> None:
        tried = row.attempts + 1
        if tried >= _MAX_ATTEMPTS:
            self._fail(row, said(str(error)))
            return
        until = self._system.clock.now() + timedelta(seconds=min(2.0 ** min(tried, 10), _MAX_PAUSE_SECONDS))
        self._put_off(row, error, unclear=row.state is PostState.SENDING, tried=tried, until=until)

    def _see_to(self, row: OutboxRow) -> float:
        try:
            if self._prepared(row):
                return 0.0
            place = self._place(row.post)
            if self._waits_for_thread(row, place):
                return _REST_SECONDS
        except RowBroken:  # the store has told it, once
            return _REST_SECONDS
        if place is None:
            if not self._coming(row):
                self._fail(row, Because(Reason.NO_THREAD), gone=True)
            return _REST_SECONDS
        if (pause := self._pause_of(place.channel)) > 0:
            return pause
        if row.post.kind is OutboundKind.ANSWER and place.edits is None:
            way = self._ended_live(row, place)
            if way is not Way.PLAIN:
                return _REST_SECONDS if way is Way.WAIT else 0.0
            row = self._system.outbox.get(row.post.id) or row
        return 0.0 if self._send(row, place) else _REST_SECONDS

    def _ended_live(self, row: OutboxRow, place: Place) -> Way | None:
        """Write an answer into the live post of its turn, if it has one; None: that is done, or is tried again."""
        try:
            ended = self._live.finish(row, self._redacted(row.post))
        except Refused:
            return None  # dropped meanwhile: the session was deleted
        except ChannelError as error:
            latest = self._system.outbox.get(row.post.id) or row
            tried = latest.attempts + (latest.state is not PostState.SENDING)
            self._troubled(latest, place, error, unclear=error.unclear, tried=tried)
            return None
        if isinstance(ended, Way):
            return ended
        self._take_turn(row, place)
        self._sent(self._system.outbox.get(row.post.id) or row, ended, anew=False)
        return None

    def _prepared(self, row: OutboxRow) -> bool:
        """Leave out what the channel does not show, and put parts in the place of what it sends in parts."""
        if row.state is not PostState.PENDING:
            return False
        try:
            if row.post.kind is OutboundKind.BOOT and self._system.outbox.is_said_again(row):
                self._system.outbox.advance(row, PostState.SKIPPED, because=Because(Reason.LATER_START))
                return True
            if row.post.note is not None and (why := self._superfluous(row)):
                self._system.outbox.advance(row, PostState.SKIPPED, because=why)
                return True
            if not self._channel.wants(row.post.kind):
                self._system.outbox.advance(row, PostState.SKIPPED, because=Because(Reason.LEFT_OUT))
                return True
            parts = self._live.parts(row, self._redacted(row.post)) if row.part_of is None else ()
            if len(parts) > 1:
                self._live.split(row, parts)
                return True
        except Refused:
            return True  # dropped meanwhile: the session was deleted
        return False

    def _superfluous(self, row: OutboxRow) -> Because | None:
        """Return why a note, or its edit, tells nothing any more; None where it does. Raises Refused if it moved on."""
        mend_notes(self._system, self._channel.kind)
        if self._system.outbox.is_overtaken(row):
            return Because(Reason.LATER_EDIT)
        first = self._system.outbox.get(row.post.edits) if row.post.edits else None
        return first.because if first is not None and first.reason is Reason.OVER_BEFORE else None

    def _dressed(self, post: NewPost) -> NewPost:
        """Return the post as this chat can show it: without buttons where no press arrives, with commands that can be
        given there."""
        settings, environ = self._system.settings, self._system.environ
        if post.kind in ANNOUNCEMENTS and not self._channel.presses():
            post = replace(post, buttons=())  # they are offered besides: its text asks for none of them
        if post.buttons and not self._channel.presses():
            post = without_buttons(post, partial(exact_for, settings, environ), replies=self._channel.sweeps())
        if post.kind not in OURS:
            return post
        words = as_done_there(post.text, settings, environ, self._channel.typed, post.buttons, post.name)
        return replace(post, text=words)

    def _redacted(self, post: NewPost) -> NewPost:
        """Return the post without secrets; the label of a button may be an agent's words, too.

        Whoever is to answer a request is told that something is hidden: that of a permission says so already.
        """
        asked = post.kind is OutboundKind.REQUEST
        redact = partial(self._redactor.counted, asked=asked)
        redacted = redact(post.text)
        buttons = tuple(replace(button, label=redact(button.label).text) for button in post.buttons)
        unseen = Unseen(redacted.count, redacted.characters) if asked else Unseen()
        return replace(post, text="\n".join([redacted.text, *unseen.said()]), buttons=buttons)

    # ------------------------------------------------------------ where and when

    def _place(self, post: NewPost) -> Place | None:
        if post.edits:
            return self._earlier(post)
        if post.kind in (OutboundKind.ROOT, OutboundKind.HOST):
            return Place(post.channel or self._channel.default_channel(), post.thread)
        if post.thread:
            return Place(post.channel, post.thread)
        binding = self._system.bindings.of_session(post.uid, self._channel.kind)
        if binding is None:
            return None
        if post.kind in (OutboundKind.ROOT_UPDATE, OutboundKind.REFRESH):
            return Place(binding.channel, binding.thread, edits=binding.head or binding.thread)
        return Place(binding.channel, binding.thread)

    def _waits_for_thread(self, row: OutboxRow, place: Place | None) -> bool:
        """Return whether a post has to wait, for the session may have a thread that nobody could ask for yet."""
        if row.state is not PostState.PENDING or (place is not None and row.post.kind is not OutboundKind.ROOT):
            return False
        why = self._rebinder.waiting_for(row.post.name, row.post.uid)
        if why is not None and why != row.because:
            self._put_off_for(row, why)
        return why is not None

    def _put_off_for(self, row: OutboxRow, why: Because) -> None:
        try:
            self._system.outbox.advance(row, PostState.PENDING, because=why)
        except Refused:
            return  # dropped meanwhile

    def _coming(self, row: OutboxRow) -> bool:
        """Return whether the thread of a post is on its way: its session is still starting, or its root is due now.

        The first turn may end before the start has committed the root. Asked in this order: a start commits the root
        before it is over.
        """
        if row.post.edits:
            return False
        try:
            record = self._system.records.read(row.post.name)
        except RecordUnreadable:
            return False
        if record is not None and record.uid == row.post.uid and record.phase in _COMING_UP:
            return True
        open_posts = self._system.outbox.due(self._channel.kind, _EVER)
        return any(other.post.uid == row.post.uid and other.post.kind is OutboundKind.ROOT for other in open_posts)

    def _earlier(self, post: NewPost) -> Place | None:
        """Return the message of the post that this one replaces; None where it was never sent."""
        earlier = self._system.outbox.get(post.edits)
        place = self._place(earlier.post) if earlier is not None and earlier.ts else None
        return None if place is None or earlier is None else replace(place, edits=earlier.ts)

    def _pause_of(self, channel: str) -> float:
        free = self._free.get(channel)
        return free.remaining() if free else 0.0

    def _hold_back(self, channel: str, seconds: float) -> None:
        self._free[channel] = Deadline(self._system.clock, seconds)

    # ------------------------------------------------------------ one post

    def _send(self, row: OutboxRow, place: Place) -> bool:
        """Send one post: SENDING is committed first, so that a crash in between is found and looked into.

        Return False where nothing is known yet of one that was handed over.
        """
        if row.reason is Reason.HANDED_OVER:
            return self._ask(row, row, place)
        self._take_turn(row, place)
        try:
            if row.state is PostState.SENDING and row.post.only_for:
                self._system.outbox.advance(row, PostState.SENT, because=Because(Reason.MAYBE_SHOWN))
                return True
            if row.state is PostState.SENDING and place.edits is None:
                found = self._channel.find(row.post.id, place.channel, place.thread)
                if found is not None:
                    self._sent(row, found)
                    return True
        except HandedOver as error:
            return self._wait_for_word(row, row, place, error)
        except ChannelError as error:
            self._troubled(row, place, error, unclear=True, tried=row.attempts + 1)  # as unclear as it was before
            return True
        try:
            sending = self._system.outbox.advance(row, PostState.SENDING)
        except Refused:
            return True  # dropped meanwhile: the session was deleted
        return self._ask(row, sending, place)

    def _ask(self, row: OutboxRow, sending: OutboxRow, place: Place) -> bool:
        """Ask the chat, or whom it was handed over to, and record the answer. `row`: as it was before."""
        dressed = self._redacted(self._dressed(row.post))
        self._hold_back(place.channel, _PACE_SECONDS)  # again: the disk may have taken its time
        try:
            posted = self._posted(dressed, place)
        except HandedOver as error:
            return self._wait_for_word(row, sending, place, error)
        except ChannelError as error:
            self._troubled(sending, place, error, unclear=error.unclear, tried=sending.attempts)
            return True
        if place.edits is None and not row.post.only_for and self._channel.echoes():
            self._tell_sent(self._channel.kind)
        self._sent(sending, posted)
        return True

    def _wait_for_word(self, row: OutboxRow, sending: OutboxRow, place: Place, error: HandedOver) -> bool:
        """Keep the post as one that may stand there, until that is known. It is asked for again at each turn.

        Whoever posts it keeps the chat's pace.
        """
        self._free.pop(place.channel, None)
        why = because(Reason.HANDED_OVER, why=str(error))
        if sending.because != why:
            tried = row.attempts + (row.reason is not Reason.HANDED_OVER)
            try:
                self._system.outbox.advance(sending, PostState.SENDING, because=why, attempts=tried)
            except Refused:
                return True  # dropped meanwhile
        return row.reason is not Reason.HANDED_OVER

    def _posted(self, post: NewPost, place: Place) -> Posted:
        if place.edits is not None:
            return self._channel.update(post, place.channel, place.edits)
        return self._channel.post(post, place.channel, place.thread)

    def _sent(self, row: OutboxRow, posted: Posted, *, anew: bool = True) -> None:
        """Record the post; a root is bound in the same transaction, before anything else can be posted to it.

        `anew`: it is a message that was not there before.
        """
        self._let_in()
        post, root = row.post, row.post.kind is OutboundKind.ROOT
        try:
            with self._system.database.transaction(durable=True):
                self._system.outbox.advance(row, PostState.SENT, ts=posted.ts)
                if root:
                    self._system.bindings.bind(
                        Binding(
                            self._channel.kind,
                            posted.team,
                            posted.channel,
                            post.thread or posted.ts,
                            post.uid,
                            post.name,
                            self._system.clock.now(),
                            link=posted.link,
                            head=posted.ts if post.thread else "",
                        )
                    )
        except Refused:
            return  # dropped meanwhile: the session was deleted
        if root:
            self._copy_thread(post, posted)
            self._emit("channel.thread_opened", post, posted, "")
        if anew:
            self._tell_posted(post.uid)
        self._emit("standing.announced" if root else "channel.posted", post, posted, post.kind.value)

    def _copy_thread(self, post: NewPost, posted: Posted) -> None:
        """Fill the record's copy of the thread; the next write of the record does it where this one cannot."""
        try:
            with self._system.locks.hold(post.name, "note the thread", _LOCK_SECONDS):
                record = self._system.records.read(post.name)
                if isinstance(record, SessionRecord) and record.uid == post.uid:
                    place = Thread(self._channel.kind, posted.channel, post.thread or posted.ts)
                    self._system.records.write(replace(record, thread=place))
        except (LockBusy, RecordUnreadable):
            return

    # ------------------------------------------------------------ trouble

    def _troubled(self, row: OutboxRow, place: Place, error: ChannelError, *, unclear: bool, tried: int) -> None:
        """Let a post wait that may succeed later, and fail one that cannot. An unclear one stays SENDING.

        `tried`: how many attempts it has had, this one included.
        """
        if error.reason == ChannelError.SHUT_OUT:
            self._wait_outside(row, error, unclear=unclear, tried=tried - 1)
            return
        self._let_in()
        if not error.transient and not error.unclear:
            self._fail(row, said(str(error)), gone=error.reason in _LOST)
            self._unbind(row.post, place, error)
            return
        if tried >= _MAX_ATTEMPTS:
            self._fail(row, because(Reason.GIVEN_UP, attempts=tried, error=str(error)))
            return
        seconds = min(2.0 ** min(tried, 10), _MAX_PAUSE_SECONDS)
        if error.retry_after is not None:
            seconds = error.retry_after
            self._hold_back(place.channel, seconds)
        until = self._system.clock.now() + timedelta(seconds=seconds)
        self._put_off(row, error, unclear=unclear, tried=tried, until=until)

    def _put_off(self, row: OutboxRow, error: CoreError, *, unclear: bool, tried: int, until: datetime | None) -> None:
        state = PostState.SENDING if unclear else PostState.PENDING
        try:
            self._system.outbox.advance(row, state, because=said(str(error)), not_before=until, attempts=tried)
        except Refused:
            return  # dropped meanwhile

    def _wait_outside(self, row: OutboxRow, error: ChannelError, *, unclear: bool, tried: int) -> None:
        """Keep all posts until the token counts again, or a service with another one comes; told once.

        That is no attempt of the post: it waits for as long as it takes, or until its session is deleted.
        """
        waiting = f"posts wait: {error}"
        if self._shut_out is None:
            self._system.events.emit("channel.disconnected", level="error", channel=self._channel.kind, detail=waiting)
        self._shut_out = Deadline(self._system.clock, _SHUT_OUT_SECONDS)
        self._tell_shut_out(self._channel.kind, waiting)
        self._put_off(row, error, unclear=unclear, tried=tried, until=None)

    def _let_in(self) -> None:
        if self._shut_out is None:
            return
        self._shut_out = None
        self._tell_shut_out(self._channel.kind, "")
        self._system.events.emit("channel.connected", channel=self._channel.kind, detail="posts are taken again")

    def _fail(self, row: OutboxRow, why: Because, *, gone: bool = False) -> None:
        """Fail a post for good, and say so in its thread unless that is `gone`; a refreshed one is then made anew."""
        note = None if gone else note_unsent(self._system, self._redactor, row, why.text)
        moves = row.post.kind is OutboundKind.REFRESH or (row.post.kind is OutboundKind.ROOT and row.post.thread)
        anew = replace(row.post.anew(), thread="") if gone and moves else None
        try:
            with self._system.database.transaction(durable=False):
                self._system.outbox.advance(row, PostState.FAILED, because=why)
                self._system.outbox.add([post for post in (note, anew) if post is not None])
        except Refused:
            return  # dropped meanwhile
        event = "standing.announce_failed" if row.post.kind in _ANNOUNCEMENTS else "channel.post_failed"
        self._system.events.emit(
            event,
            level="warning",
            name=row.post.name or None,
            reason=why.text,
            detail=row.post.kind.value,
            message=row.post.id,
        )

    def _unbind(self, post: NewPost, place: Place, error: ChannelError) -> None:
        """Part the session from a thread that cannot be posted to any more; its next start makes a new one."""
        binding = self._system.bindings.of_session(post.uid, self._channel.kind)
        if error.reason not in _LOST or binding is None or (binding.channel, binding.thread) != place.hangs_on:
            return
        self._system.bindings.unbind(post.uid, self._channel.kind)
        self._system.events.emit(
            "channel.unbound",
            level="warning",
            name=post.name,
            channel=binding.channel,
            thread=binding.thread,
            reason=error.reason,
            detail=str(error),
        )

    def _emit(self, event: str, post: NewPost, posted: Posted, detail: str) -> None:
        self._system.events.emit(
            event,
            name=post.name or None,
            detail=detail or None,
            message=post.id,
            channel=posted.channel,
            thread=posted.ts if post.kind is OutboundKind.ROOT else None,
            text=post.text,
        )
