"""Read from Slack: keep one Socket Mode connection, or poll the bound threads where there is none.

- slack_sdk 3.48 reconnects for ever and in place, also with a revoked token or a used-up URL. Here a connection lives
  once. `Connection` decides whether and when there is another: it waits while Slack is absent and stops where waiting
  cannot help. The library's receiver and monitor still do their work.
- slack_sdk's clients have claimed to be connected while nothing came any more. So a dead connection is recognised by
  the time of the last pong. That no event came proves nothing: a channel may be quiet for days.
- One process on this machine reads for one app-level token, because Slack hands each event to any one of an app's
  connections.
"""

import asyncio
import dataclasses
import fcntl
import hashlib
import json
import logging
import os
import random
import stat
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiohttp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import payloads
from bot.app import AsyncApp, Self, send_async_response
from bot.backfill import Committed, Incomplete, Looked, Sweeper
from bot.clients import ASYNC_FAILURES, PERMANENT, Token, Tokens, beyond_waiting, channel_error, quiet_logger
from bot.documents import Document
from bot.intake import COMMIT, AsyncDoor, Intake
from bot.payloads import KIND, Ignored
from bot.settings import on_loopback
from core.base.errors import ChannelError
from core.base.values import dataclass, replace
from core.model.channel import Template


@contextmanager
def app_lock(token: Token, runtime: str) -> Iterator[None]:
    """Hold the token's lock file, which is named after a hash of it and holds our process id; it goes with us.

    `runtime` is the user's runtime folder (XDG_RUNTIME_DIR), "" where there is none. Raises ChannelError, transient
    since the other process may end, while another one holds it.
    """
    path = _folder(runtime) / f"slack-{hashlib.sha256(token.reveal().encode()).hexdigest()[:24]}.lock"
    descriptor = _taken(path, token)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the lock is let go: whoever waits for it sees that the file is gone
        os.close(descriptor)


def _taken(path: Path, token: Token) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            if _locked(descriptor, path, token):
                break
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        reason = f"Slack: the lock {path} cannot be used: {error.strerror}"
        remedy = "give yourself the rights to it, or set XDG_RUNTIME_DIR to a folder of your own"
        raise ChannelError(reason, remedy, transient=True) from error
    return descriptor


def _check_private(folder: Path) -> None:
    """Raise ChannelError where somebody else could hold our lock: /tmp is everybody's."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ChannelError(
            f"Slack: the folder of its lock, {folder}, was made by another user (uid {found.st_uid})",
            "set XDG_RUNTIME_DIR to a folder of your own",
            transient=False,
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _locked(descriptor: int, path: Path, token: Token) -> bool:
    """Lock the file and tell whether it still is the one of that path. Raises ChannelError if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise ChannelError(
            f"Slack: process {holder} on this machine listens with the app token in {token.variable} already, and "
            "Slack would hand each reply to one of the two",
            f"stop that process, or give each installation an app of its own (its lock is {path})",
            transient=True,
        ) from error
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _folder(runtime: str) -> Path:
    if runtime.startswith("/"):
        return Path(runtime) / "the-loop"
    return Path(tempfile.gettempdir()) / f"the-loop-{os.getuid()}"


Answer = TypeVar("Answer")
DEAF_AFTER = 3  #: failed attempts in a row


class Reader(Protocol):
    """One way of reading."""

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop`; return early, the reason told, where waiting cannot help."""
        ...


class Standing:
    """Reports the state of reading to core, each state once."""

    def __init__(self, door: AsyncDoor) -> None:
        self._door = door
        self._told: tuple[bool, str] | None = None

    def sense(self) -> None:
        """Note that an event has come."""
        self._door.sensed(KIND)

    async def tell(self, up: bool, detail: str) -> None:
        """Report it, unless it was reported already."""
        if self._told != (up, detail):
            self._told = (up, detail)
            await self._door.connected(KIND, up, detail)

    async def fail(self, problem: ChannelError, attempt: int) -> None:
        """Report the `attempt`-th failure in a row; after a few of them the report says what that means."""
        deaf = f"deaf: {attempt} attempts failed, and replies wait in Slack meanwhile; the last: "
        await self.tell(False, f"{deaf if attempt >= DEAF_AFTER else ''}{problem}")


async def asked(method: str, where: str, call: Awaitable[Answer]) -> Any:
    """Return what a call answers: a document, or None. Raises ChannelError, transient unless waiting cannot mend it."""
    try:
        answer = await call
    except ASYNC_FAILURES as error:
        problem = channel_error(method, where, error)
        problem.transient = not beyond_waiting(error)
        raise problem from error
    return answer.data if isinstance(answer, AsyncSlackResponse) and isinstance(answer.data, dict) else {}


@dataclass(frozen=True)
class Reading:
    """What every way of reading works with."""

    app: AsyncApp
    client: AsyncWebClient
    tokens: Tokens
    own: Self
    intake: Intake
    sweeper: Sweeper
    standing: Standing
    templates: Mapping[str, Template]  #: by channel

    async def identify(self) -> None:
        """Learn who the bot is. Raises ChannelError."""
        answer: Document = await asked("auth.test", "", self.client.auth_test(token=self.tokens.bot().reveal()))
        found = payloads.identity(answer)
        if found is None:
            reason, remedy = "Slack, auth.test: the token belongs to no bot", "use the bot token (xoxb-…) of the app"
            raise ChannelError(reason, remedy, transient=False)
        self.own.identity = found

    def taken(self, payload: Document, retry: int, *, shared: bool = False) -> Committed | None:
        """Give what an events payload carries its place in the intake, at once; None where that is nothing of ours.

        `shared`: others have the app's events too. Then, and where Slack sends an event again, earlier ones may be
        missing, and the reply waits until its thread was read.
        """
        self.standing.sense()
        if self.own.identity is None:
            return None
        task = payloads.mention(payload, self.own.identity)
        if task is not None:
            template = self.templates.get(task.channel)
            message, bot = payloads.event_of(payload), self.own.identity.user
            taking = template and self.intake.take(task, message, template, bot, retry)
            return asyncio.ensure_future(taking) if taking else None
        found = payloads.reply(payload, self.own.identity)
        if not isinstance(found, Ignored):
            after = replace(found, unordered=True) if shared or retry else found
            return self.intake.offer(after, payloads.event_of(payload), retry)
        changed = payloads.change(payload, self.own.identity)
        if isinstance(changed, Ignored):
            log.debug("an event is no reply", extra={"reason": found.reason})
            return None
        change, message = changed
        called = self.own.identity.user if change.reply.thread == change.reply.ts else ""
        return self.intake.offer(change, message, retry, called)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return what the work returns; None if `stop` came first, the work then being cancelled and over."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for pending in (task, stopped):
            pending.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond `stop`."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped}, timeout=seconds)
    stopped.cancel()


BROKEN = "the connection broke"
_COUNT = "count_again"  #: others were connected; only a new connection is told whether they still are


@dataclasses.dataclass
class Watchdog:
    """Looks at one connection again and again; `now` is a monotonic time in seconds."""

    pong_seconds: float = 30.0  #: so old the last pong may be
    _pong: float | None = None
    _pong_seen: float | None = None
    _missing: int = 0

    def look(self, now: float, *, connected: bool, pong: float | None) -> str:
        """Return why the connection is lost, "" while it is not.

        `pong` is what the client says of its last pong, in whatever clock: only that it changes is used. Disconnected
        has to be seen twice, since a client is so for a moment while it closes one session and has none yet.
        """
        self._missing = 0 if connected else self._missing + 1
        if self._missing >= 2:
            return BROKEN
        if self._pong_seen is None or pong != self._pong:
            self._pong, self._pong_seen = pong, now
        age = now - self._pong_seen
        return f"no pong for {age:.0f} s" if age > self.pong_seconds else ""


Handler = Callable[["Socket", SocketModeRequest], Awaitable[None]]


class Socket(SocketModeClient):
    """A connection from its one-time URL to its end. `lost` holds the reason as soon as another one is needed."""

    def __init__(
        self,
        client: AsyncWebClient,
        url: str,
        handle: Handler,
        ping_seconds: float,
        pong_seconds: float,
        *,
        besides: int = 0,
    ) -> None:
        """`besides`: how many other sockets of the app are ours."""
        super().__init__(
            app_token="",
            logger=quiet_logger("bot.sdk.socket", logging.ERROR),
            web_client=client,
            ping_interval=ping_seconds,
        )
        if on_loopback(url):
            self.proxy = None
        self.wss_uri = url
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        #: once Slack has greeted us: how many sockets of the app that are not ours it knows
        self.hello: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._besides = besides
        self._handle = handle
        self._taken: set[asyncio.Task[None]] = set()  #: frames, until they are dealt with
        self._pong_seconds = pong_seconds
        self.message_listeners.append(self._greeted)
        self.socket_mode_request_listeners.append(self._requested)

    @property
    def is_shared(self) -> bool:
        """Whether events may go to somebody else: to another process, or to a socket of one that has ended."""
        return not self.hello.done() or self.hello.result() > 0

    async def connect(self) -> None:
        """Open the socket once. Raises what aiohttp raises."""
        url, self.wss_uri = self.wss_uri or "", None
        self.current_session = await self.aiohttp_client_session.ws_connect(
            url,
            autoping=False,
            heartbeat=self.ping_interval,
            proxy=self.proxy,
            ssl=self.web_client.ssl if self.web_client.ssl is not None else True,
        )
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
        self.message_receiver = asyncio.ensure_future(self.receive_messages())

    async def disconnect(self) -> None:
        """Close the socket, if it was open."""
        if self.current_session is not None:
            await self.current_session.close()

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Say that the connection is lost: the library calls this where it would open another by itself."""
        self._lose(BROKEN)

    async def enqueue_message(self, message: str) -> None:
        """Take a frame in: the first step of its task is done before that of the next, in the order of the frames.

        Why Slack wants another socket is noted at once, since its close frame follows at the heels. The library would
        have each frame wait in a queue for another task, which costs a reply two turns of the event loop.
        """
        frame = _frame(message)
        if payloads.frame_kind(frame) == "disconnect":
            self._lose(payloads.disconnect_reason(frame) or "disconnect")
        task = asyncio.ensure_future(self.run_message_listeners(frame, message))
        self._taken.add(task)
        task.add_done_callback(self._taken.discard)

    def give_way(self) -> None:
        """Say that another connection is needed, which is told how many there are now."""
        self._lose(_COUNT)

    async def watch(self, seconds: float = 1.0) -> str:
        """Return the reason once the connection is lost; looked at every `seconds` besides what the library tells."""
        loop, dog = asyncio.get_running_loop(), Watchdog(self._pong_seconds)
        while not self.lost.done():
            await asyncio.wait({self.lost}, timeout=seconds)
            if reason := dog.look(loop.time(), connected=await self.is_connected(), pong=self.last_ping_pong_time):
                self._lose(reason)
        return self.lost.result()

    async def end(self, seconds: float) -> None:
        """Close within `seconds`, after what is being acknowledged has been; then, or where that is cut short, at once.

        aiohttp 3.14 leaves a socket that nobody closed to the garbage collector, and its connection with it.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._taken:
                    await asyncio.wait(self._taken)
                self.closed, self.auto_reconnect_enabled = True, False
                await self.disconnect()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            log.debug("a socket did not close in order", extra={"reason": type(error).__name__})
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """End the library's tasks, the socket and its client session, whatever state they are in."""
        self.closed, self.auto_reconnect_enabled = True, False
        await _cancelled(self.message_processor, self.current_session_monitor, self.message_receiver)
        if self.current_session is not None:
            closing = asyncio.ensure_future(self.current_session.close())  # which nobody else waits on any more
            await asyncio.sleep(0)  # it has begun: cancelled from here on, it closes without waiting for an answer
            await _cancelled(closing)
        await self.aiohttp_client_session.close()

    def _lose(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)

    async def _greeted(
        self, _client: AsyncBaseSocketModeClient, message: dict[str, Any], _raw: str | None = None
    ) -> None:
        if payloads.frame_kind(message) == "hello" and not self.hello.done():
            self.hello.set_result(max(0, payloads.connections(message) - 1 - self._besides))

    async def _requested(self, _client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        """Handle an envelope. These are begun in the order of the frames; `_handle` must keep it."""
        try:
            await self._handle(self, request)
        except (ConnectionError, aiohttp.ClientError) as error:
            log.info("an acknowledgement was not sent; Slack repeats it", extra={"reason": type(error).__name__})


async def _cancelled(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel the tasks and wait until they are over."""
    found = [task for task in tasks if task is not None]
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)


def _frame(message: str) -> dict[str, Any]:
    try:
        frame = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}


log = logging.getLogger(__name__)

#: Slack announces the end, or we do: the next socket opens before this one closes.
_PLANNED = ("warning", "refresh_requested", _COUNT)


@dataclass(frozen=True)
class Pace:
    """How long things may take, and how long to wait between attempts, in seconds."""

    first: float = 1.0
    most: float = 60.0
    hello: float = 10.0
    end: float = 5.0
    ping: float = 5.0
    pong: float = 30.0  #: an older last pong means that the connection is dead
    lookup: float = 10.0  #: for so long a member whom Slack did not tell of is not asked for again
    home: float = 10.0  #: between two looks whether an open Home tab has changed
    steady: float = 10.0  #: a connection that lived shorter than this counts as a failed attempt
    count: float = 300.0  #: so soon others that were connected are counted again, and then less and less often
    count_most: float = 3600.0

    def before(self, attempt: int, asked: float | None) -> float:
        """Return the wait after the `attempt`-th failure: doubling, with jitter, never less than Slack asked for."""
        wait = min(self.most, self.first * 2.0 ** min(attempt - 1, 16)) * random.uniform(0.5, 1.0)
        return max(wait, asked or 0.0)

    def before_count(self, times: int) -> float:
        """Return how long others are let be after they were counted that many times in a row."""
        return min(self.count_most, self.count * 2.0 ** min(times - 1, 16))


class Connection:
    """Opens sockets one after another and feeds what they bring to the intake and to Bolt."""

    def __init__(self, reading: Reading, pace: Pace, runtime: str) -> None:
        self._reading = reading
        self._pace = pace
        self._runtime = runtime
        self._socket: Socket | None = None
        self._shared = 0  #: how many sockets in a row had others beside them

    async def run(self, stop: asyncio.Event) -> None:
        """Stay connected until `stop`; return early, the reason told, where waiting cannot help.

        Raises nothing: another process on this machine with the same app-level token is waited out, and named.
        """
        failures = 0
        while not stop.is_set():
            try:
                with app_lock(self._reading.tokens.app(), self._runtime):
                    await self._stay(stop)
                    return
            except ChannelError as problem:
                failures += 1
                await self._reading.standing.fail(problem, failures)
                if not problem.transient:
                    return
                await pause(stop, self._pace.before(failures, None))
        await self._reading.standing.tell(False, "stopped")

    async def _stay(self, stop: asyncio.Event) -> None:
        attempt = 0
        try:
            while not stop.is_set():
                try:
                    lived = await self._one(stop)
                except ChannelError as problem:
                    await self._close()
                    attempt += 1
                    await self._reading.standing.fail(problem, attempt)
                    if not problem.transient:
                        log.error("the connection to Slack has ended", extra={"reason": str(problem)})
                        return
                    await pause(stop, self._pace.before(attempt, problem.retry_after))
                else:
                    attempt = 0 if lived >= self._pace.steady else attempt + 1
                    if attempt > 1:
                        await pause(stop, self._pace.before(attempt - 1, None))
            await self._reading.standing.tell(False, "stopped")
        finally:
            await self._close()

    async def _one(self, stop: asyncio.Event) -> float:
        """Open a socket, hold it until it is lost, and return how long that took. Raises ChannelError."""
        began = asyncio.get_running_loop().time()
        fresh = await unless(stop, self._open())
        if fresh is None:
            return self._pace.steady
        await self._close()
        self._socket = fresh
        await self._reading.standing.tell(True, self._described(fresh.hello.result()))
        self._reading.sweeper.ask()
        self._shared = self._shared + 1 if fresh.is_shared else 0
        if self._shared:
            asyncio.get_running_loop().call_later(self._pace.before_count(self._shared), fresh.give_way)
        reason = await unless(stop, fresh.watch())
        if reason == "link_disabled":
            raise ChannelError(f"Slack: link_disabled: {PERMANENT[reason][0]}", PERMANENT[reason][1], transient=False)
        if reason is not None:
            log.info("another socket is needed", extra={"reason": reason})
            if reason not in _PLANNED:
                await self._close()
                await self._reading.standing.tell(False, f"connection lost ({reason}); connecting again")
        return asyncio.get_running_loop().time() - began

    async def _open(self) -> Socket:
        """Return a socket that has been greeted. Raises ChannelError."""
        await self._reading.identify()
        opening = self._reading.client.apps_connections_open(app_token=self._reading.tokens.app().reveal())
        await self._reading.sweeper.behind()  # before the first event of this connection can come
        besides = int(self._socket is not None and await self._socket.is_connected())
        if not besides:
            self._reading.sweeper.listening()
        url = payloads.socket_url(await asked("apps.connections.open", "", opening))
        socket = Socket(self._reading.client, url, self._handle, self._pace.ping, self._pace.pong, besides=besides)
        try:
            await asked("Socket Mode", "", _greeted(socket, self._pace.hello))
        except BaseException:
            await socket.end(self._pace.end)
            raise
        return socket

    def _described(self, others: int) -> str:
        known = self._reading.own.identity
        detail = f"Socket Mode as {known.name} in {known.team}" if known else "Socket Mode"
        if not others:
            return detail
        log.warning("another process is connected with the same app", extra={"connections": others + 1})
        return (
            f"{detail}; the app has {others + 1} connections open, and Slack hands each reply to any one of them: "
            "use an app for each installation, or stop the other process"
        )

    async def _handle(self, socket: "Socket", request: SocketModeRequest) -> None:
        """Answer one envelope. A reply takes its place in the intake before anything is awaited."""
        committed = None
        if request.type == "events_api" and not payloads.has_event(request.payload):
            log.warning("an event that is none was acknowledged")
            await send_async_response(socket, request, BoltResponse(status=200), 0.0)
            return
        if request.type == "events_api":
            committed = self._reading.taken(request.payload, request.retry_attempt or 0, shared=socket.is_shared)
        if committed is not None:
            await asyncio.wait((committed,))  # Bolt's own work would keep the interpreter from the commit
        body = AsyncBoltRequest(mode="socket_mode", body=request.payload, context={COMMIT: committed})
        response = await self._reading.app.async_dispatch(body)
        await send_async_response(socket, request, response, 0.0)

    async def _close(self) -> None:
        ended, self._socket = self._socket, None
        if ended is not None:
            await ended.end(self._pace.end)


async def _greeted(socket: Socket, seconds: float) -> None:
    """Open the socket and wait for Slack's hello."""
    async with asyncio.timeout(seconds):
        await socket.connect()
        first: set[asyncio.Future[Any]] = {socket.hello, socket.lost}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not socket.hello.done():
        raise ChannelError(f"Slack, Socket Mode: no hello, but {socket.lost.result()}", transient=True)


class Poller:
    """Sweeps every `interval` seconds. Needs no app-level token; slash commands and buttons do not reach it."""

    def __init__(self, reading: Reading, interval: float) -> None:
        self._reading = reading
        self._interval = interval

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until `stop`; return early, the reason told, where waiting cannot help."""
        failures = 0
        while not stop.is_set():
            try:
                looked = await unless(stop, self._round())
                failures = 0 if looked is None or looked.read or not looked.unread else failures + 1
                if looked is not None:
                    await self._tell(looked, failures)
            except ChannelError as problem:
                failures += 1
                await self._reading.standing.fail(problem, failures)
                if not problem.transient:
                    log.error("Slack is not polled any more", extra={"reason": str(problem)})
                    return
            except Incomplete as problem:
                failures += 1
                await self._reading.standing.fail(ChannelError(str(problem), transient=True), failures)
            await pause(stop, self._interval)
        await self._reading.standing.tell(False, "stopped")

    async def _round(self) -> Looked:
        await self._reading.identify()
        return await self._reading.sweeper.look()

    async def _tell(self, looked: Looked, failures: int) -> None:
        """Report the state of polling: while no thread can be read nothing comes in, even with a valid token."""
        if failures:
            problem = ChannelError(f"no thread can be read: {looked.reason}", transient=True)
            await self._reading.standing.fail(problem, failures)
            return
        known = self._reading.own.identity
        who = f" as {known.name} in {known.team}" if known else ""
        detail = f"polling every {self._interval:g} s{who}; slash commands do not arrive"
        if looked.unread:
            every = looked.read + looked.unread
            detail += f"; {looked.unread} of {every} threads cannot be read: {looked.reason}"
            log.info("some threads cannot be read", extra={"reason": looked.reason})
        await self._reading.standing.tell(True, detail)
