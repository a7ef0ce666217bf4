"""Live posts: messages that show a turn as it runs (its plan, its tools), and end with its answer.

Two workers share this: that of the signals shows the steps, that of the posts writes the answer. Everything but the
answer may fail without harm: the answer is then a post as any other. It is a row of the outbox, and goes into the
thread once:

- before its first words are written the row is SENDING and the live post ENDING;
- its last words are written by the call that ends the message and gives it the post's id, so that it can be found;
- what was cut off in between is found without that id. It is removed, and the answer is posted as a whole.

A chat takes a message only for a while. Before that is over the live post is parked: it stays as it is, and a turn that
goes on gets a fresh one in its place, each after a longer while.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from enum import Enum

from core.base.clock import Deadline, iso
from core.base.errors import ChannelError
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_message_id
from core.base.redaction import redactor_of
from core.base.values import dataclass, replace
from core.config.settings import secret_variables
from core.model.activity import Activity
from core.model.channel import Channel, Posted
from core.model.live import (
    LiveRow,
    LiveShown,
    LiveState,
    changed,
    compose,
    instance_of,
    merged,
    reopens_at,
    settled,
    turn_key,
)
from core.model.posts import NewPost, OutboxRow, PostState
from core.model.session import Binding
from core.session.sessions import Unforeseen, apart
from core.session.system import System

_LOG = logging.getLogger(__name__)
LIFETIME = timedelta(seconds=240)  #: chats take a message for some minutes
_BEGIN_SECONDS = 3.5  #: chats let some twenty a minute begin, and as many end
_ADD_SECONDS = 2.0  #: between two looks of one that is open
_ANY_SECONDS = 0.7  #: between two additions, of whichever: a hundred a minute
_TROUBLE_SECONDS = 5.0
_MOMENT = timedelta(seconds=3)  #: a turn that is over by then is shown by its answer alone
_LOOK_SECONDS = 2.5  #: until an agent's plan has been looked at again
_GRACE = timedelta(seconds=20)  #: after a turn in which its answer may still be told
_LATER = "it goes on, and is not shown any further here"
_OVER = "the turn ended without an answer"
_BELOW = "the answer follows"
_OPEN_POST = frozenset({PostState.PENDING, PostState.SENDING})


class Way(Enum):
    """What becomes of an answer that a live post is to end with."""

    PLAIN = "plain"  #: it is posted as any other
    WAIT = "wait"  #: somebody is at the live post; look again soon


@dataclass(frozen=True)
class _Written:
    """How much of an answer stands in its message: pieces of a text."""

    pieces: tuple[str, ...]
    count: int = 0


class LivePosts:
    """The live posts of one channel kind. Its methods may be called from several threads."""

    def __init__(self, system: System, channel: Channel, off: Callable[[str, str], None] = lambda _, __: None) -> None:
        """`off` is told, with the channel's kind, why the chat takes no live posts."""
        self._system = system
        self._channel = channel
        self._tell_off = off
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._mutex = threading.Lock()
        self._at_work: set[str] = set()  #: the live posts that a thread is at
        self._recovered = False
        self._off = False
        self._free: dict[str, Deadline] = {}
        self._written: dict[str, _Written] = {}
        self._looked: dict[str, Deadline] = {}  #: until then the plan of one that is to end is waited for
        self._over: dict[str, datetime] = {}  #: since when the turn of an open one has been over
        self._left: dict[str, str] = {}  #: by session: the turn of which none is shown any more

    # ------------------------------------------------------------ while the turn runs

    def turn(self, began: Callable[[str], None] = lambda _: None) -> None:
        """Show what has changed. `began` is told the session whose thread has got a message. Raises StoreBroken."""
        self._recover()
        rows = self._system.lives.all(self._channel.kind)
        for cut in rows:
            if cut.state is LiveState.REMOVING and self._may("remove"):
                self._clear_up(cut)
        if self._off or not self._channel.live():
            return
        current = {row.uid: row for row in rows if row.state is not LiveState.REMOVING}
        activities, bound = self._system.activities.all(), set[str]()
        for binding in self._system.bindings.all(self._channel.kind):
            activity, row = activities.get(binding.uid), current.get(binding.uid)
            bound.add(binding.uid)
            with suppress(Unforeseen), apart(self._system.events, binding.name):
                self._see_to(binding, activity, row, began)
        for uid in current.keys() - bound:
            if not current[uid].post:  # the outbox sees to the others
                self._system.lives.move(current[uid], LiveState.REMOVING)

    def _see_to(
        self, binding: Binding, activity: Activity | None, row: LiveRow | None, began: Callable[[str], None]
    ) -> None:
        began_at = activity.turn_started_at if activity is not None and activity.in_turn else None
        turn = turn_key(activity.instance, began_at) if activity is not None and began_at is not None else ""
        if row is not None and (row.post or row.state is LiveState.ENDING):
            return  # its answer is on its way
        if row is not None and row.turn != turn:
            self._close(row, at_once=bool(turn))
            return
        if not turn or activity is None or self._left.get(binding.uid) == turn:
            return
        if row is None or row.state is LiveState.PARKED:
            self._open(binding, activity, turn, row, began)
        elif row.state is LiveState.OPEN:
            with self._held(row.id) as held:
                if held:
                    self._show(row)

    def _composed(self, uid: str, turn: str, before: LiveShown, *, over: bool = False) -> LiveShown:
        """Return what there is to show of a turn, without secrets. `before`: what is shown."""
        told = self._system.workings.get(uid)
        plan = (told[1]["plan"] or ()) if told is not None and told[0] == instance_of(turn) else ()
        redact = self._redactor.redact
        steps = [
            replace(step, tool=redact(step.tool), detail=redact(step.detail))
            for step in self._system.lives.steps(uid, turn)
        ]
        return compose(plan, steps, before, over=over)

    def _open(
        self,
        binding: Binding,
        activity: Activity,
        turn: str,
        parked: LiveRow | None,
        began: Callable[[str], None],
    ) -> None:
        """Begin one, in the place of one that is parked. The turn is looked at again as its row is committed."""
        now = self._system.clock.now()
        if not self._may("begin") or (parked is not None and now < reopens_at(parked, LIFETIME)):
            return
        if activity.turn_started_at is None or now - activity.turn_started_at < _MOMENT:
            return
        shown = self._composed(binding.uid, turn, LiveShown())
        if not shown.steps or not self._system.lives.steps(binding.uid, turn):
            return  # a turn without a tool may be over in a moment
        if parked is not None and not changed(parked.shown, shown).steps:
            return
        since = iso(activity.turn_started_at)
        actor = self._system.lives.reader(binding.uid, activity.instance, binding.channel_kind, since)
        if not actor:
            return  # nobody here asked for the turn
        row = LiveRow(
            id=f"l{new_message_id()[1:]}", uid=binding.uid, turn=turn, channel_kind=binding.channel_kind,
            channel=binding.channel, thread=binding.thread, reader=actor.partition(":")[2], ts="",
            state=LiveState.OPENING, opened_at=now, round=parked.round + 1 if parked else 0, shown=shown, post="",
        )  # fmt: skip
        with self._held(row.id):
            with self._system.database.transaction(durable=True):
                latest = self._system.activities.get(binding.uid)
                if latest is None or not latest.in_turn or latest.turn_started_at != activity.turn_started_at:
                    return
                if parked is not None:
                    self._system.lives.move(parked, LiveState.REMOVING)
                self._system.lives.add(row)
            self._begin(row)
        began(row.uid)

    def _begin(self, row: LiveRow) -> None:
        self._free["begin"] = Deadline(self._system.clock, _BEGIN_SECONDS)
        try:
            with failpoint(Failpoint.LIVE_BEGIN):
                posted = self._channel.begin_live(row)
        except ChannelError as error:
            self._troubled("begin", row, error)
            if error.unclear:
                self._system.lives.move(row, LiveState.REMOVING)  # it may stand there
            else:
                self._forget(row)
            if not error.transient:
                self._left[row.uid] = row.turn
            if error.reason == ChannelError.NOT_ALLOWED:
                self._off = True
                self._tell_off(self._channel.kind, f"turns are not shown as they run: {error}")
            return
        self._system.lives.move(row, LiveState.OPEN, ts=posted.ts)

    def _show(self, row: LiveRow) -> None:
        change = changed(row.shown, self._composed(row.uid, row.turn, row.shown))
        if self._system.clock.now() - row.opened_at >= LIFETIME:
            self._stop(row, settled(merged(row.shown, change), _LATER), LiveState.PARKED)
            return
        if change == LiveShown() or not self._may("add", row.id):
            return
        self._free["add"] = Deadline(self._system.clock, _ANY_SECONDS)
        self._free[row.id] = Deadline(self._system.clock, _ADD_SECONDS)
        try:
            with failpoint(Failpoint.LIVE_ADD):
                self._channel.add_live(row, change)
        except ChannelError as error:
            self._troubled("add", row, error)
            if not error.transient:
                self._system.lives.move(row, LiveState.PARKED)
            return  # after an unclear one the same is told again, which changes nothing
        self._system.lives.show(row, merged(row.shown, change))

    def _close(self, row: LiveRow, *, at_once: bool) -> None:
        """End one whose turn is over and has no answer, after a while in which it may be told."""
        now = self._system.clock.now()
        if row.state is LiveState.OPEN and not at_once and now - self._over.setdefault(row.id, now) < _GRACE:
            return
        with self._held(row.id) as held:
            if not held:
                return
            if row.state is LiveState.OPEN:
                self._stop(row, self._last(row, _OVER), None)
            elif row.state is LiveState.PARKED:
                self._forget(row)

    def _stop(self, row: LiveRow, last: LiveShown, then: LiveState | None) -> None:
        """End the message without an answer; what it shows stays. `then`: where it stands; None: it is forgotten."""
        try:
            with failpoint(Failpoint.LIVE_STOP):
                self._channel.end_live(row, None, changed(row.shown, last), "")
        except ChannelError as error:
            self._troubled("end", row, error)
            if error.transient:
                return
        if then is None:
            self._forget(row)
            return
        self._system.lives.show(row, last)
        self._system.lives.move(row, then)

    # ------------------------------------------------------------ the answer

    def parts(self, row: OutboxRow, post: NewPost) -> tuple[NewPost, ...]:
        """Return what an answer is sent as: where a live post waits for it, its beginning is as long as that takes."""
        live = self._system.lives.of_post(row.post.id)
        if live is not None and live.state is LiveState.ENDING:
            return (post,)  # some of it may stand there
        if live is None or live.state not in (LiveState.OPENING, LiveState.OPEN):
            return self._channel.parts(post)
        return self._channel.live_parts(post, self._last(live))

    def split(self, row: OutboxRow, parts: tuple[NewPost, ...]) -> None:
        """Put the parts in the row's place, the first of which ends the live post. Raises Refused."""
        live = self._system.lives.of_post(row.post.id)
        with self._system.database.transaction(durable=True):
            self._system.outbox.split(row, parts)
            if live is not None:
                self._system.lives.follow(live, parts[0].id)

    def finish(self, row: OutboxRow, post: NewPost) -> Posted | Way:
        """Write the answer, and end the live post with it; or tell that it is to be posted as any other.

        `post`: the row's, without secrets. The row is SENDING afterwards, wherever words of it were written. Raises
        ChannelError: transient, where it is to be called again; unclear, where the last words may stand there.
        """
        self._recover()
        live = self._system.lives.of_post(row.post.id)
        if live is None:
            return Way.PLAIN
        with self._held(live.id) as held:
            fresh = self._system.lives.get(live.id) if held else None
            if fresh is None:
                return Way.WAIT if not held else Way.PLAIN
            return self._finish(fresh, row, post)

    def _finish(self, live: LiveRow, row: OutboxRow, post: NewPost) -> Posted | Way:
        if live.state is LiveState.PARKED:
            self._forget(live)
            return Way.PLAIN
        if live.state is LiveState.OPEN:
            pieces = self._channel.live_pieces(post, self._last(live))
            if row.state is PostState.SENDING:
                return self._remove_first(live)
            if self._plan_is_coming(live):
                return Way.WAIT
            if not pieces:
                self._stop(live, self._last(live, _BELOW), None)
                return Way.WAIT if self._system.lives.get(live.id) else Way.PLAIN
            with self._system.database.transaction(durable=True):
                row = self._system.outbox.advance(row, PostState.SENDING)
                self._system.lives.move(live, LiveState.ENDING)
            self._written[live.id] = _Written(pieces)
        elif live.state is not LiveState.ENDING:  # OPENING: nobody is at it, so that it is not known what came of it
            return self._remove_first(live)
        if live.id not in self._written:  # an earlier process was at it, or nobody knows what the last call did
            found = self._channel.find(post.id, live.channel, live.thread)
            if found is None:
                return self._remove_first(live)
            self._forget(live)
            return found
        return self._write(live, post)

    def _plan_is_coming(self, live: LiveRow) -> bool:
        """Return whether the agent's plan may be told as done in a moment: its last item is ticked off just before."""
        told = self._system.workings.get(live.uid)
        plan = told[1]["plan"] if told is not None and told[0] == instance_of(live.turn) else None
        if all(item["state"] == "done" for item in plan or ()):
            self._looked.pop(live.id, None)
            return False
        return not self._looked.setdefault(live.id, Deadline(self._system.clock, _LOOK_SECONDS)).passed()

    def _write(self, live: LiveRow, post: NewPost) -> Posted | Way:
        written = self._written.pop(live.id)
        change = changed(live.shown, self._last(live))
        try:
            for count, piece in enumerate(written.pieces[:-1]):
                if count >= written.count:
                    with failpoint(Failpoint.LIVE_WRITE):
                        self._channel.add_live(live, change if count == 0 else LiveShown(), piece)
                    written = replace(written, count=count + 1)
            with failpoint(Failpoint.LIVE_END):
                posted = self._channel.end_live(
                    live, post, change if len(written.pieces) == 1 else LiveShown(), written.pieces[-1]
                )
        except ChannelError as error:
            if error.transient and not error.unclear:
                self._written[live.id] = written  # nothing came of that call
            if error.transient or error.unclear or error.reason == ChannelError.SHUT_OUT:
                raise
            self._troubled("end", live, error)
            return self._remove_first(live)
        self._forget(live)
        return posted

    def _last(self, live: LiveRow, note: str = "") -> LiveShown:
        """Return what the live post ends with: nothing in it seems to run."""
        shown = self._composed(live.uid, live.turn, live.shown, over=True)
        return settled(merged(live.shown, changed(live.shown, shown)), note)

    # ------------------------------------------------------------ what was cut off

    def _recover(self) -> None:
        """Have removed what an earlier process left open; once. What it was ending is looked up by the answer's row."""
        with self._mutex:
            if self._recovered:
                return
            for row in self._system.lives.all(self._channel.kind):
                post = self._system.outbox.get(row.post) if row.post else None
                if row.state is LiveState.ENDING and (post is None or post.state not in _OPEN_POST):
                    self._forget(row)  # the post tells that it went well, or that it failed
                elif row.state in (LiveState.OPENING, LiveState.OPEN):
                    self._system.lives.move(row, LiveState.REMOVING)
            self._recovered = True

    def _remove_first(self, live: LiveRow) -> Way:
        """Remove the message, so that no word of the answer stands there twice; then it is posted as any other."""
        if live.state is not LiveState.REMOVING:
            self._system.lives.move(live, LiveState.REMOVING)
        self._remove(live)
        return Way.PLAIN

    def _clear_up(self, row: LiveRow) -> None:
        with suppress(Unforeseen), apart(self._system.events, row.uid), self._held(row.id) as held:
            if not held:
                return
            self._free["remove"] = Deadline(self._system.clock, _BEGIN_SECONDS)
            try:
                self._remove(row)
            except ChannelError as error:
                self._troubled("remove", row, error)

    def _remove(self, row: LiveRow) -> None:
        """Remove the message and forget the row. Raises ChannelError for what may go better later."""
        try:
            with failpoint(Failpoint.LIVE_REMOVE):
                ts = row.ts
                if not ts:
                    found = self._channel.find_live(row)
                    ts = found.ts if found is not None else ""
                if ts:
                    self._channel.remove_live(replace(row, ts=ts))
        except ChannelError as error:
            if error.transient or error.unclear or error.reason == ChannelError.SHUT_OUT:
                raise
            _LOG.warning("a message that was cut off stays", extra={"reason": str(error), "live_post": row.id})
        self._forget(row)

    def _forget(self, row: LiveRow) -> None:
        """Forget one that has ended, or is gone."""
        self._system.lives.end(row)
        for known in (self._free, self._written, self._looked, self._over):
            known.pop(row.id, None)

    # ------------------------------------------------------------ pace and trouble

    @contextmanager
    def _held(self, live_id: str) -> Iterator[bool]:
        """Give whether nobody else is at that live post; while this lasts nobody is."""
        with self._mutex:
            held = live_id not in self._at_work
            if held:
                self._at_work.add(live_id)
        try:
            yield held
        finally:
            if held:
                with self._mutex:
                    self._at_work.discard(live_id)

    def _may(self, *kinds: str) -> bool:
        return all(kind not in self._free or self._free[kind].passed() for kind in kinds)

    def _troubled(self, kind: str, row: LiveRow, error: ChannelError) -> None:
        """Tell it, and wait as long as the chat says."""
        level = logging.WARNING if error.reason == ChannelError.NOT_ALLOWED else logging.INFO
        _LOG.log(level, "live post not shown", extra={"signal": kind, "live_post": row.id, "reason": str(error)})
        seconds = error.retry_after if error.retry_after is not None else _TROUBLE_SECONDS
        self._free[kind] = Deadline(self._system.clock, seconds)
