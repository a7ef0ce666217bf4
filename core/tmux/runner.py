"""Survey panes, open them, write into them and end them, over whichever transport is given."""

import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Never, TypeVar

from core.base.clock import Clock, Deadline, SystemClock
from core.base.errors import NotRunning, SpawnFailed, TmuxSilent
from core.base.loggers import logger
from core.base.values import dataclass
from core.model.pane import Frame, Pane, Paste, Receipt, Spawn, Survey, Typing, View, Window, Written
from core.tmux import guard
from core.tmux.listing import EMPTY, END, LIST, Listing, read_listing
from core.tmux.server import TmuxServer
from core.tmux.transport import OLDEST, Command, Line, Reply, Transport, check_version, silent

_T = TypeVar("_T")
_LOG = logger(__name__)
_SCREEN_LINES = 2000  #: the most that is ever captured: the server serves nobody else meanwhile
_HISTORY_ROWS = 10_000  #: the most of a history that somebody asks for: all that a server of ours keeps, in some 20 ms
_END_ATTEMPTS = 5
_TOGETHER = 16  #: panes that one line speaks of
_GONE = "can't find pane"


@dataclass(frozen=True)
class _Known:
    """Where a tag was last seen. Pane ids are not used twice by one server; the guard asks for the tag anyway."""

    pane_id: str
    version: tuple[int, int]


class Runner:
    """Asks tmux to open, write into and end panes. Safe for several threads if its transport is."""

    def __init__(
        self,
        server: TmuxServer,
        transport: Transport,
        *,
        timeout: float = 5.0,
        remain_on_exit: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._server = server
        self._transport = transport
        self._process = server.process()
        self._timeout = timeout
        self._remain_on_exit = remain_on_exit
        self._clock = clock or SystemClock()
        self._words: tuple[str, ...] | None = None
        self._known: dict[str, _Known] = {}
        self._latest: Survey | None = None
        self._nudged: set[tuple[int | None, str]] = set()
        self._left: set[str] = set()  # buffers of writes whose end was not seen
        self._prefix = f"the-loop-{os.getpid()}-{os.urandom(4).hex()}"  # of names of buffers: unique on the server
        self._numbers = itertools.count()

    def survey(self, within: float | None = None) -> Survey:
        """Return all panes of the server in one call, `within` so many seconds at most; no server at all is an empty
        survey.
        """
        self._words = self._latest = None
        at = self._clock.now()
        listing = self._list(within)
        self._latest = Survey(listing.panes, at, listing.typing(), listing.viewed(), listing.server)
        return self._latest

    def recent(self, seconds: float) -> Survey | None:
        """Return the latest survey of this process if it is no older: tmux answered then. What is pasted by it is
        guarded by it (`Paste.seen`).
        """
        latest = self._latest
        return latest if latest and timedelta() <= self._clock.now() - latest.at <= timedelta(seconds=seconds) else None

    def spawn(self, spawn: Spawn) -> Pane:
        """Make a session of one pane, tagged in the same command line, and return the pane.

        Raises SpawnFailed with tmux's words, TmuxSilent if it may or may not have been made.
        """
        check_version(self._process.version(self._timeout))
        self._write_conf(spawn.target)
        if self._server.remembered() is not None:
            self._list()  # finds a server again whose socket was swept away, before a second one is started beside it
        else:
            from core.tmux.server import bring_up  # here, since a mere survey starts no server

            bring_up(self._server, self._timeout / 2)
            # A server is called, for as long as it runs, by the command line that started it: not by one with settings.
            self._ask(self._server.starting(), process=True)
        buffer = f"env-{spawn.target}"  # one a session: what a start that was killed has left is replaced
        line = guard.spawn_line(spawn, buffer, self._server.program, remain_on_exit=self._remain_on_exit)
        reply = self._ask([*self._server.starting(), *line], guard.spawn_bytes(spawn), process=True)
        answer = guard.told(reply.out)
        if answer[:1] == [guard.LATE]:
            raise SpawnFailed(
                f"{spawn.target}: tmux handled the request after its deadline, so no pane was made", "start it again"
            )
        if answer[:1] != [guard.DONE] or len(answer) < 6:
            self._ask([("delete-buffer", "-b", buffer)], process=True)
            reason = reply.err.strip() or reply.out.strip() or "no reason was given"
            raise SpawnFailed(f"{spawn.target}: tmux made no pane: {reason}", "mend what tmux names, then try again")
        _, pane_id, session_id, pid, server_pid, *socket = answer
        self._remember(int(server_pid), " ".join(socket))
        if reply.rc != 0:
            self._finish(spawn, session_id)
        return Pane(
            pane_id,
            session_id,
            spawn.target,
            spawn.instance,
            int(pid),
            dead=False,
            exit=None,
            in_mode=False,
            input_off=False,
        )

    def _finish(self, spawn: Spawn, session_id: str) -> None:
        """Do the rest of what is to be of a pane that was made, where a hook of a person's has failed, or renamed it.

        Raises SpawnFailed, once the pane is gone again, where its session cannot be given its name.
        """
        for command in guard.finish_line(spawn, session_id, remain_on_exit=self._remain_on_exit):
            reply = self._ask([command], process=True)  # one by one: what fails, such as that hook again, ends the line
            if reply.rc != 0:
                _LOG.warning("a new pane's session refused", extra={"session": spawn.target, "reason": reply.err})
        made = self._list().tagged(spawn.instance)
        if made is not None and made.target != spawn.target:
            self.end(spawn.instance)
            raise SpawnFailed(
                f"{spawn.target}: a hook of that tmux server renames its session to {made.target}, and it stays so",
                "take the hook away (`tmux show-hooks -g`), or set another routing.tmux.socketName",
            )

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Written:
        """Paste bytes into the pane that carries the tag, guarded in the server, and leave the receipt on the pane.

        `data` arrives byte by byte as it is; markers of a bracketed paste are the caller's.

        Raises TmuxSilent if it is not known what became of it: the receipt tells, once the deadline has passed. Raises
        ValueError for no data at all, of which tmux makes no buffer.
        """
        if not data:
            raise ValueError("nothing to write: tmux makes no buffer of no bytes")
        self._delete_left()
        known = self._known.get(instance)
        if known is not None:
            written = self._write(known, instance, data, receipt, token, deadline)
            if written is not Written.ABSENT:
                return written
        known = self._find(instance)
        if known is None:
            return Written.ABSENT
        return self._write(known, instance, data, receipt, token, deadline)

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        """Paste messages into the panes that carry their tags, in one piece, each guarded by itself in the server.

        None where it is not known what became of one: the receipt tells, once its deadline has passed.

        Raises TmuxSilent where that is not known of any.
        """
        self._delete_left()
        if any(paste.instance not in self._known for paste in pastes):
            self._list()
        there = [(paste, self._known.get(paste.instance)) for paste in pastes]
        outcomes = self._pasted([(paste, known) for paste, known in there if known is not None])
        return tuple(outcomes.get(paste.token) if known else Written.ABSENT for paste, known in there)

    def typing(self, instance: str) -> tuple[Typing, ...]:
        """Return the writable clients attached to the instance's session.

        Clients of sessions that are grouped with it or show its window count as well.
        """
        return self._list().typing().get(instance, ())

    def end(self, *instances: str) -> frozenset[str]:
        """Kill the tmux sessions whose panes carry these tags, dead or alive; return the tags that were there.

        Where other sessions show a pane too, only the pane is killed.
        """
        found: set[str] = set()
        for _ in range(_END_ATTEMPTS):
            listing = self._list()
            tagged = {pane.tag: pane for pane in listing.panes if pane.tag}
            there = [tagged[instance] for instance in instances if instance in tagged]
            if not there:
                for instance in instances:
                    self._known.pop(instance, None)
                return frozenset(found)
            found.update(pane.tag for pane in there)
            for some in _portions(there):
                self._kill(some, listing)
        raise silent(
            f"the sessions of {', '.join(sorted(instances))} still live after {_END_ATTEMPTS} attempts to kill them"
        )

    def _kill(self, panes: Sequence[Pane], listing: Listing) -> None:
        """Kill these panes' sessions. A pane that has gone meanwhile ends the line; the next look finds the rest."""
        deadline = self._clock.now() + timedelta(seconds=self._timeout)
        line: list[Command] = []
        for pane in panes:
            shared = len(listing.sessions[pane.pane_id]) > 1
            line += guard.end_line(pane.pane_id, None if shared else pane.session_id, pane.tag, deadline)
        if guard.LATE in guard.verdicts(self._ask(line).out):
            names = ", ".join(pane.target for pane in panes)
            raise silent(f"it handled the request to end {names} after its deadline, so nothing was ended")

    def clear(self, target: str) -> bool:
        """Kill the tmux session of that name if no program runs in it, whoever made it; False if one does."""
        for _ in range(_END_ATTEMPTS):
            panes = [pane for pane in self._list().panes if pane.target == target]
            if not panes:
                return True
            if not all(pane.dead for pane in panes):
                return False
            deadline = self._clock.now() + timedelta(seconds=self._timeout)
            reply = self._ask(guard.clear_line(panes[0].session_id, deadline))
            if guard.told(reply.out)[:1] == [guard.LATE]:
                raise silent(f"it handled the request to clear {target} after its deadline, so nothing was ended")
        raise silent(f"{target} is still there after it was cleared {_END_ATTEMPTS} times")

    def screen(self, instance: str, lines: int) -> str:
        """Return the last lines of the pane's screen and history as text. Raises NotRunning.

        At most 2000 lines.
        """
        shown = self.screens([instance], lines)
        if instance not in shown:
            raise NotRunning(f"no pane carries instance {instance}", "look at `the-loop standing list`")
        return shown[instance]

    def screens(self, instances: Collection[str], lines: int, within: float | None = None) -> Mapping[str, str]:
        """Return the same of several, by instance; without those that are not there, or not told `within` that time.

        At most 2000 lines of each.
        """
        lines = max(1, min(lines, _SCREEN_LINES))
        deadline = Deadline(self._clock, self._timeout if within is None else within)
        self._list(deadline.remaining())
        shown = self._captured(instances, lines, deadline, within)
        cut = [instance for instance, captured in shown.items() if captured.cut and captured.joined < lines]
        if cut and lines < _SCREEN_LINES:  # what wraps takes several rows for a line
            shown |= self._captured(cut, _SCREEN_LINES, deadline, within)
        return {instance: captured.last(lines) for instance, captured in shown.items()}

    def _captured(
        self, instances: Collection[str], rows: int, deadline: Deadline, within: float | None
    ) -> dict[str, "_Captured"]:
        """Return the screens with that many rows of history, as far as tmux shows them `within` that time."""
        known = [(instance, self._known[instance].pane_id) for instance in instances if instance in self._known]
        shown: dict[str, _Captured] = {}
        for some in _portions(known):
            if within is not None and deadline.passed():
                break
            nonce = os.urandom(8).hex()
            line = [command for instance, pane in some for command in guard.screen_line(pane, instance, rows, nonce)]
            seconds = self._timeout if within is None else deadline.remaining()
            reply = self._ask(line, process=True, within=seconds)
            found = guard.screens_of(reply.out, nonce)
            if reply.rc != 0 and not found and not _nothing(reply) and _GONE not in reply.err:
                _refused(reply)
            for instance, (text, history) in found.items():
                shown[instance] = _Captured(text, cut=history > rows)
        return shown

    def window(self, instance: str, *, history: bool) -> tuple[Window, str]:
        """Return the window that shows the pane and, with `history`, all lines that tmux has kept, else "".

        At most 10000 rows. Raises NotRunning, TmuxSilent, TmuxMissing, within the deadline of one question.
        """
        from core.tmux.window import look  # here, since it starts a process that loads far more than any other look

        deadline = Deadline(self._clock, self._timeout)
        self._list(deadline.remaining())
        known = self._known.get(instance)
        if known is not None:
            rows = _HISTORY_ROWS if history else 0
            seen = look(self._server, known.pane_id, instance, rows, deadline.remaining())
            if seen.reply.rc != 0 and not _nothing(seen.reply) and _GONE not in seen.reply.err:
                _refused(seen.reply)
            if seen.window is not None:
                text = _Captured(seen.reply.out, cut=seen.window.history > _HISTORY_ROWS)
                return seen.window, text.last(text.joined + 1) if history else ""
        raise NotRunning(f"no pane carries instance {instance}", "look at `the-loop standing list`")

    def view(self, instance: str) -> View:
        """Return what the pane's screen shows now, without history. Raises NotRunning if no pane carries the tag."""
        nonce = os.urandom(8).hex()
        return self._shown(
            instance,
            lambda pane: self._look(guard.view_line(pane, instance, nonce), None),
            lambda out: guard.view_of(out, instance, nonce),
        )

    def frame(self, instance: str) -> Frame:
        """Return the pane's screen with its styles. Raises NotRunning if no pane carries the tag.

        By a tmux process of its own: whoever watches takes no turn of the control client's, by which messages go in.
        """
        nonce = os.urandom(8).hex()
        return self._shown(
            instance,
            lambda pane: self._ask(guard.frame_line(pane, instance, nonce), process=True),
            lambda out: guard.frame_of(out, instance, nonce),
        )

    def _shown(self, instance: str, ask: Callable[[str], Reply], read: Callable[[str], _T | None]) -> _T:
        """Return what is read of the answer about the instance's pane, which is looked for anew if it moved."""
        for known in (self._known.get(instance), None):
            known = known or self._find(instance)
            if known is None:
                break
            reply = ask(known.pane_id)
            shown = read(reply.out)
            if shown is not None:
                return shown
            if reply.rc != 0 and not _nothing(reply) and _GONE not in reply.err:
                _refused(reply)
        raise NotRunning(f"no pane carries instance {instance}", "look at `the-loop standing list`")

    def type_keys(self, instance: str, data: bytes, deadline: datetime) -> Written:
        """Write what somebody types who watches the pane. Raises TmuxSilent if it is not known what became of it."""
        self._delete_left()
        known = self._known.get(instance) or self._find(instance)
        if known is None:
            return Written.ABSENT
        buffer = f"{self._prefix}-{next(self._numbers)}"
        line = guard.keys_line(known.pane_id, instance, buffer, deadline, keep_controls=known.version >= (3, 7))
        return self._outcome(line, data, buffer, process=True)

    def redraw(self, instance: str) -> None:
        """Let the pane's program draw its screen anew, by a change of its height by a row. No key is written.

        Raises NotRunning if no pane carries the tag.
        """
        for known in (self._known.get(instance), None):
            known = known or self._find(instance)
            if known is None:
                break
            reply = self._ask(guard.redraw_line(known.pane_id, instance))
            if guard.told(reply.out)[:1] == [guard.DONE]:
                return
            if reply.rc != 0 and not _nothing(reply) and _GONE not in reply.err:
                _refused(reply)
        raise NotRunning(f"no pane carries instance {instance}", "look at `the-loop standing list`")

    def press(
        self, instance: str, key: bytes, token: str, deadline: datetime, *, view: View, rows: Sequence[int]
    ) -> Written:
        """Write a key if the screen still shows these rows as the view does, and its cursor is where it was there.

        The server checks it in the turn in which it writes.

        Raises TmuxSilent if it is not known what became of it.
        """
        self._delete_left()
        known = self._known.get(instance) or self._find(instance)
        if known is None:
            return Written.ABSENT
        return self._write(known, instance, key, Receipt.PRESSED, token, deadline, (view, rows))

    def attach_command(self, target: str, *, write: bool) -> tuple[str, ...]:
        """Return the command by which a person attaches, read-only unless `write`.

        The target is one word with its flag: a word that begins with `=` means something to zsh.
        """
        return (*self._manual(), "attach-session", *(() if write else ("-r",)), f"-t={target}:")

    def kill_command(self, target: str) -> tuple[str, ...]:
        """Return the command by which a person ends that tmux session."""
        return (*self._manual(), "kill-session", f"-t={target}:")

    def _manual(self) -> tuple[str, ...]:
        """Return how a person addresses the server; looked up once after each survey, since a list names it per row."""
        if self._words is None:
            self._words = self._server.manual_command
        return self._words

    def close(self) -> None:
        """Let go of the transport; panes stay."""
        self._transport.close()

    # ------------------------------------------------------------ asking

    def _ask(
        self, line: Line, data: bytes | None = None, *, process: bool = False, within: float | None = None
    ) -> Reply:
        """Return tmux's answer, which may be that there is no server. Raises TmuxSilent where it gave none."""
        transport = self._process if process else self._transport
        return self._answered(transport.run(line, self._timeout if within is None else within, data), line, data)

    def _look(self, line: Line, within: float | None) -> Reply:
        """Like _ask for a line that changes nothing: it is asked again where there is time left for it."""
        seconds = self._timeout if within is None else min(within, self._timeout)
        deadline = Deadline(self._clock, seconds)
        try:
            return self._ask(line, within=seconds)
        except TmuxSilent:
            remaining = deadline.remaining()
            if remaining < seconds / 2:
                raise
        return self._answered(self._process.run(line, remaining), line, None)

    def _answered(self, reply: Reply, line: Line, data: bytes | None) -> Reply:
        if reply.no_server:
            reply = self._server.again(line, self._timeout, data) or reply
        if reply.denied or reply.gone:
            _refused(reply)
        return reply

    def _list(self, within: float | None = None) -> Listing:
        """Return all panes, each dead one with its exit where tmux knows it."""
        listing = self._listed(within)
        lost = {
            (listing.server, pane.pane_id) for pane in listing.panes if pane.tag and pane.dead and pane.exit is None
        }
        if lost - self._nudged:
            # Builds with libutempter before 3.6 miss the end of a pane's program until another child ends.
            self._nudged |= lost
            self._ask([("run-shell", "true")])
            listing = self._listed(within)
        return listing

    def _listed(self, within: float | None) -> Listing:
        reply = self._look(LIST, within)
        if reply.rc != 0 and END not in reply.out:  # with its end it is whole: then a hook of a person's has failed
            self._known = {}
            return EMPTY if _nothing(reply) else _refused(reply)
        listing = read_listing(reply.out)
        version = check_version(listing.version) if listing.panes else OLDEST
        self._known = {pane.tag: _Known(pane.pane_id, version) for pane in reversed(listing.panes) if pane.tag}
        return listing

    def _find(self, instance: str) -> _Known | None:
        self._list()
        return self._known.get(instance)

    # ------------------------------------------------------------ acting

    def _write_conf(self, target: str) -> None:
        try:
            self._server.write_conf()
        except OSError as error:
            path, reason = self._server.conf, error.strerror
            raise SpawnFailed(f"{target}: {path} cannot be written: {reason}", "make the folder writable") from error

    def _remember(self, pid: int, socket: str) -> None:
        try:
            self._server.remember(pid, socket)
        except OSError as error:  # a full disk costs the way back to a swept socket, not the session that was made
            _LOG.warning("tmux server not noted", extra={"reason": str(error)})

    def _write(
        self,
        known: _Known,
        instance: str,
        data: bytes,
        receipt: Receipt,
        token: str,
        deadline: datetime,
        seen: tuple[View, Sequence[int]] | None = None,
    ) -> Written:
        buffer = f"{self._prefix}-{next(self._numbers)}"
        line = guard.write_line(
            known.pane_id,
            instance,
            buffer,
            receipt,
            token,
            deadline,
            keep_controls=known.version >= (3, 7),
            seen=seen,
        )
        return self._outcome(line, data, buffer)

    def _outcome(self, line: Line, data: bytes, buffer: str, *, process: bool = False) -> Written:
        """Send a line that writes the data by this buffer, and return what the server says became of it."""
        try:
            reply = self._ask(line, data, process=process)
            if reply.no_server:
                return Written.ABSENT
            answer = guard.told(reply.out) or _refused(reply)
        except TmuxSilent:
            self._left.add(buffer)  # it may still be made
            raise
        return Written(answer[0])

    def _pasted(self, pastes: Sequence[tuple[Paste, _Known]]) -> dict[str, Written]:
        """Return what became of each, by its token, as far as that is known. Raises TmuxSilent if it is of none."""
        if not pastes:
            return {}
        buffers = [f"{self._prefix}-{next(self._numbers)}" for _ in pastes]
        jobs = [
            (
                guard.paste_line(known.pane_id, paste, buffer, keep_controls=known.version >= (3, 7)),
                guard.pasted_bytes(paste),
            )
            for (paste, known), buffer in zip(pastes, buffers, strict=True)
        ]
        try:
            reply = self._transport.run_all(jobs, self._timeout)
            if reply.no_server:
                return {paste.token: Written.ABSENT for paste, _ in pastes}
            outcomes = guard.outcomes(reply.out) or _refused(reply)
        except TmuxSilent:
            self._left.update(buffers)
            raise
        told = [paste.token in outcomes for paste, _ in pastes]
        self._left.update(buffer for buffer, known in zip(buffers, told, strict=True) if not known)
        return {token: Written(outcome) for token, outcome in outcomes.items()}

    def _delete_left(self) -> None:
        """Delete the buffers of writes whose end was not seen: text of somebody's, and one more thing not to happen."""
        for buffer in tuple(self._left):
            self._ask([("delete-buffer", "-b", buffer)])
            self._left.discard(buffer)


def _portions(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Return the items, so many at a time as a line may speak of: tmux takes 16 KB of arguments."""
    for begin in range(0, len(items), _TOGETHER):
        yield items[begin : begin + _TOGETHER]


class _Captured:
    """A screen with some of its history, wrapped rows joined. `cut`: there is more above it."""

    def __init__(self, text: str, *, cut: bool) -> None:
        self._lines = [line.rstrip() for line in text.rstrip().split("\n")]
        self.cut = cut

    @property
    def joined(self) -> int:
        """Return how many lines are there from their beginning for sure: the first may be the rest of one."""
        return len(self._lines) - 1

    def last(self, lines: int) -> str:
        """Return so many lines; the first has a mark where its beginning may be missing."""
        if self.cut and len(self._lines) <= lines:
            return "\n".join([f"… {self._lines[0]}", *self._lines[1:]])
        return "\n".join(self._lines[-lines:])


def _nothing(reply: Reply) -> bool:
    """Return whether tmux answered that there is nothing: no server, or one without any session."""
    return reply.no_server or "no current target" in reply.err


#: what tmux says -> what helps, where trying again does not
_REMEDIES = {
    "protocol version mismatch": "its server was started by another version of tmux: put that first on PATH, or "
    "stop the sessions, end that server (`kill-server` of the old tmux on the same socket) and start them again",
    "access not allowed": "its server belongs to another user: set another routing.tmux.socketName",
    "error connecting to": "give yourself the rights to its socket, or set another routing.tmux.socketName",
}


def _refused(reply: Reply) -> Never:
    told = reply.err.strip() or reply.out.strip() or "nothing at all"
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in told), "")
    raise silent(f"it said: {told}", remedy)
