"""The workspace for synchronous callers: the server runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from embedded.workspace.controls import Controls
from embedded.workspace.model import Json
from embedded.workspace.room import Outcome
from embedded.workspace.server import Workspace

T = TypeVar("T")

_START_SECONDS = 10.0
_CALL_SECONDS = 30.0
_PATIENCE = 40.0  #: of a `wait_…`, for what comes in a moment unless the machine has far too much to do


class WorkspaceThread:
    """A running workspace with blocking methods; usable as a context manager.

    Users, channels and apps are named by id or by name. Methods raise ControlError when something cannot be done;
    the `wait_…` methods raise TimeoutError that says what was there instead. Arguments are those of Workspace.
    """

    def __init__(
        self,
        database: Path | None = None,
        port: int = 0,
        manifest: Mapping[str, Any] | None = None,
        *,
        retry_scale: float = 1.0,
        ack_seconds: float = 3.0,
        ping_seconds: float = 10.0,
    ) -> None:
        self._options: dict[str, Any] = {"database": database, "port": port, "manifest": manifest}
        self._options |= {"retry_scale": retry_scale, "ack_seconds": ack_seconds, "ping_seconds": ping_seconds}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback-workspace", daemon=True)
        self._workspace: Workspace | None = None

    def start(self) -> Self:
        """Listen; OSError when the port is taken."""
        self._thread.start()
        try:
            self._workspace = self._run(self._open(), _START_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server and its thread; may be called once."""
        try:
            if self._workspace is not None:
                self._run(self._workspace.stop(), _CALL_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_SECONDS)
            self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- addresses, tokens, ids

    @property
    def url(self) -> str:
        """Return http://127.0.0.1:PORT."""
        return self._ws.url

    @property
    def api_url(self) -> str:
        """Return the Web API's base URL, for WebClient(base_url=…)."""
        return self._ws.api_url

    @property
    def page_url(self) -> str:
        """Return the address that opens the page, key included."""
        return self._ws.page_url

    @property
    def bot_token(self) -> str:
        """Return the main app's xoxb- token."""
        return self._ws.room.main_app.bot_token

    @property
    def app_token(self) -> str:
        """Return the main app's xapp- token."""
        return self._ws.room.main_app.app_token

    @property
    def control_token(self) -> str:
        """Return the token of /_control."""
        return self._ws.control_token

    @property
    def team_id(self) -> str:
        """Return the workspace's team id."""
        return str(self._ws.room.team["id"])

    @property
    def app_id(self) -> str:
        """Return the main app's id."""
        return self._ws.room.main_app.id

    @property
    def bot_id(self) -> str:
        """Return the main app's bot id (B…)."""
        return self._ws.room.main_app.bot_id

    @property
    def bot_user_id(self) -> str:
        """Return the user id the main app's bot acts as (U…)."""
        return self._ws.room.main_app.bot_user

    def channel_id(self, name: str) -> str:
        """Return a channel's id."""
        return self.do(lambda controls: controls.channel(name).id)

    def user_id(self, name: str) -> str:
        """Return a user's id."""
        return self.do(lambda controls: controls.user(name).id)

    # --- people and bots

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        broadcast: bool = False,
        me: bool = False,
        files: Mapping[str, str] | None = None,
    ) -> str:
        """Post as a person; return the ts. See Controls.say."""
        return self.do(lambda c: c.say(user, channel, text, thread_ts, broadcast=broadcast, me=me, files=files))

    def say_as_bot(
        self,
        bot: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        style: str = "modern",
        user: str | None = None,
    ) -> str:
        """Post as a bot (`deploybot` is there from the start); return the ts. See Controls.say_as_bot."""
        return self.do(lambda c: c.say_as_bot(bot, channel, text, thread_ts, style=style, user=user))

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Edit a message as its author."""
        self.do(lambda c: c.edit(channel, ts, text))

    def unfurl(self, channel: str, ts: str) -> None:
        """Make the server change a message without a change of text."""
        self.do(lambda c: c.unfurl(channel, ts))

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message."""
        self.do(lambda c: c.delete(channel, ts))

    def react(self, user: str, channel: str, ts: str, name: str) -> None:
        """React as a person."""
        self.do(lambda c: c.react(user, channel, ts, name))

    def press(
        self, user: str, channel: str, ts: str, action_id: str, value: str | None = None, shown: Json | None = None
    ) -> Outcome:
        """Press a button and wait for the acknowledgement (at most ack_seconds). See Controls.press."""
        return self.do_async(lambda c: c.press(user, channel, ts, action_id, value, shown))

    def command(self, user: str, channel: str, line: str) -> Outcome:
        """Run a slash command and wait for the acknowledgement (at most ack_seconds)."""
        return self.do_async(lambda c: c.command(user, channel, line))

    # --- what is there

    def messages(self, channel: str) -> list[Json]:
        """Return every message, threads included, oldest first, with reactions and metadata."""
        return self.do(lambda c: c.messages(channel))

    def replies(self, channel: str, ts: str) -> list[Json]:
        """Return a thread without its parent, oldest first."""
        return self.do(lambda c: c.replies(channel, ts))

    def ephemerals(self, channel: str, user: str) -> list[Json]:
        """Return what only this user sees."""
        return self.do(lambda c: c.ephemerals(channel, user))

    def reactions(self, channel: str, ts: str) -> dict[str, list[str]]:
        """Return user ids by reaction."""
        return self.do(lambda c: c.reactions(channel, ts))

    def status(self, channel: str, ts: str) -> str:
        """Return what the app shows below a thread."""
        return self.do(lambda c: c.status(channel, ts))

    def envelopes(self, kind: str | None = None) -> list[Json]:
        """Return the envelopes sent so far, each with `acknowledged`."""
        return self.do(lambda c: [dict(entry) for entry in c.envelopes(kind)])

    def given_up(self) -> list[Json]:
        """Return the payloads of events that were never acknowledged."""
        return self.do(lambda c: c.given_up())

    def connections(self, app: str | None = None) -> int:
        """Return how many sockets an app has open."""
        return self.do(lambda c: c.connections(app))

    def sockets_opened(self, app: str | None = None) -> int:
        """Return how many sockets an app has opened since the start."""
        return self.do(lambda c: c.sockets_opened(app))

    # --- waiting

    def wait_for_message(
        self, predicate: Callable[[Json], bool], deadline: float = _PATIENCE, channel: str = "agents"
    ) -> Json:
        """Return the first message of a channel (threads included) that the predicate accepts."""

        def find(controls: Controls) -> Json | None:
            return next((message for message in controls.messages(channel) if predicate(message)), None)

        return self.wait_for(find, deadline, lambda c: [message["text"] for message in c.messages(channel)])

    def wait_for_ephemeral(
        self, user: str, predicate: Callable[[Json], bool], deadline: float = _PATIENCE, channel: str = "agents"
    ) -> Json:
        """Return the first ephemeral message to this user that the predicate accepts."""

        def find(controls: Controls) -> Json | None:
            return next((message for message in controls.ephemerals(channel, user) if predicate(message)), None)

        return self.wait_for(find, deadline, lambda c: [message["text"] for message in c.ephemerals(channel, user)])

    def wait_for_reaction(self, channel: str, ts: str, name: str, deadline: float = _PATIENCE) -> list[str]:
        """Return who gave a reaction, once somebody has."""
        return self.wait_for(lambda c: c.reactions(channel, ts).get(name), deadline, lambda c: c.reactions(channel, ts))

    def wait_for_connections(self, count: int, deadline: float = _PATIENCE, app: str | None = None) -> None:
        """Return once an app has exactly this many sockets open."""
        self.wait_for(lambda c: c.connections(app) == count or None, deadline, lambda c: c.connections(app))

    def wait_for(
        self,
        find: Callable[[Controls], T | None],
        deadline: float = _PATIENCE,
        describe: Callable[[Controls], Any] | None = None,
    ) -> T:
        """Return what `find`, run on the server's loop again and again, finds: neither None nor False."""
        controls = self._ws.controls
        try:
            return self._run(self._ws.room.changes.until(lambda: find(controls), deadline), deadline + _CALL_SECONDS)
        except TimeoutError as error:
            there = f"; there was {self.do(describe)!r}" if describe is not None else ""
            raise TimeoutError(f"not seen within {deadline:g} s{there}") from error

    # --- the workspace and its faults

    def add_user(self, name: str, real_name: str = "", *, outsider: bool = False, guest: bool = False) -> str:
        """Add a person; return the id."""
        return self.do(lambda c: c.add_user(name, real_name, outsider=outsider, guest=guest))

    def add_channel(
        self, name: str, members: Sequence[str] = (), *, private: bool = False, shared: bool = False
    ) -> str:
        """Add a channel; return the id."""
        return self.do(lambda c: c.add_channel(name, members, private=private, shared=shared))

    def add_app(self, manifest: Mapping[str, Any]) -> Json:
        """Install another app; return its ids and tokens."""
        return self.do(lambda c: c.add_app(manifest))

    def join(self, user: str, channel: str) -> None:
        """Make somebody a member."""
        self.do(lambda c: c.join(user, channel))

    def kick(self, user: str, channel: str) -> None:
        """Remove somebody from a channel."""
        self.do(lambda c: c.kick(user, channel))

    def archive(self, channel: str, archived: bool = True) -> None:
        """Archive a channel, or bring it back."""
        self.do(lambda c: c.archive(channel, archived))

    def share(self, channel: str, shared: bool = True) -> None:
        """Share a channel with another organization, or end that."""
        self.do(lambda c: c.share(channel, shared))

    def set_scopes(self, scopes: Iterable[str], app: str | None = None) -> None:
        """Give an app these scopes and no others."""
        self.do(lambda c: c.set_scopes(scopes, app))

    def set_revoked(self, revoked: bool = True, app: str | None = None) -> None:
        """Revoke an app's tokens, or make them good again."""
        self.do(lambda c: c.set_revoked(revoked, app))

    def fault(
        self,
        method: str,
        kind: str,
        count: int = 1,
        *,
        seconds: float = 1.0,
        status: int = 503,
        code: str = "internal_error",
    ) -> None:
        """Order a fault for the next calls of a method: ratelimited, http, error, lost, refused, slow. See Fault."""
        self.do(lambda c: c.fault(method, kind, count, seconds=seconds, status=status, code=code))

    def clear_faults(self) -> None:
        """Take back the ordered faults that have not happened."""
        self.do(lambda c: c.clear_faults())

    def break_sockets(self, how: str, app: str | None = None) -> int:
        """Break an app's sockets by close, fin, rst or silence; return how many there were."""
        return self.do_async(lambda c: c.break_sockets(how, app))

    def disconnect(self, reason: str = "refresh_requested", app: str | None = None) -> int:
        """Send a disconnect frame: warning, refresh_requested or link_disabled."""
        return self.do_async(lambda c: c.disconnect(reason, app))

    def redeliver(self, ts: str, attempt: int = 0, reason: str = "", *, renamed: bool = False) -> int:
        """Send the events of a message again. See Controls.redeliver."""
        return self.do(lambda c: c.redeliver(ts, attempt, reason, renamed=renamed))

    def lose_events(self, count: int) -> None:
        """Lose the next `count` deliveries."""
        self.do(lambda c: c.lose_events(count))

    def expire_streams(self) -> int:
        """Let the time pass that an app has for the messages that it is writing; return how many there were."""
        return self.do(lambda c: c.expire_streams())

    def hold_events(self) -> None:
        """Keep events back from now on."""
        self.do(lambda c: c.hold_events())

    def release_events(self, newest_first: bool = False) -> int:
        """Deliver what was kept back."""
        return self.do(lambda c: c.release_events(newest_first))

    def do(self, act: Callable[[Controls], T]) -> T:
        """Run something on the server's loop with all controls at hand, and return its result."""

        async def run() -> T:
            return act(self._ws.controls)

        return self._run(run(), _CALL_SECONDS)

    def do_async(self, act: Callable[[Controls], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the server's loop with all controls at hand, and return its result."""
        return self._run(act(self._ws.controls), _CALL_SECONDS)

    @property
    def _ws(self) -> Workspace:
        if self._workspace is None:
            raise RuntimeError("the workspace is not running; call start() or use it as a context manager")
        return self._workspace

    async def _open(self) -> Workspace:
        workspace = Workspace(**self._options)
        await workspace.start()
        return workspace

    def _run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("called on the workspace's own thread, where it would wait for itself; use the controls")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)
