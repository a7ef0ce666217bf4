"""Slack as core's Channel. The entry point group `the_loop.channels` names this class."""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from typing import Any

from bot import live, manifest, markdown
from bot.app import Buttons, Direct, Self, Sessions, build_app
from bot.backfill import Sweeper, SweepPace
from bot.checks import Check
from bot.clients import Tokens, async_web_client
from bot.connection import Connection, Pace, Poller, Reader, Reading, Standing
from bot.creating import Creating
from bot.directory import Directory, Naming
from bot.files import FilePace, Files
from bot.home import Homes
from bot.http import HttpReader, Patience, signed
from bot.intake import AsyncDoor, Intake, late
from bot.messenger import Messenger
from bot.payloads import COMMAND, KIND
from bot.settings import PRESSES, SlackSettings
from core.base.clock import Clock, SystemClock
from core.base.errors import ChannelError
from core.base.redaction import Redactor, redactor_of
from core.base.text import parse_duration
from core.model.asking import Role
from core.model.channel import CoreApi, Posted, Template, WebAnswer, WebHook
from core.model.health import Finding
from core.model.live import LiveRow, LiveShown
from core.model.posts import Mark, NewPost, OutboundKind, ThreadSeen, Verbosity, shows

log = logging.getLogger(__name__)

_STOP_POLL = 0.2


class SlackChannel:
    """The Slack channel; see core.model.channel.Channel. Making it asks neither Slack nor the environment."""

    kind = KIND

    def __init__(
        self,
        block: Mapping[str, Any],
        environ: Mapping[str, str],
        *,
        clock: Clock | None = None,
        pace: Pace | None = None,
        sweep_pace: SweepPace | None = None,
        file_pace: FilePace | None = None,
        http_patience: Patience | None = None,
    ) -> None:
        """`block`: `channels.slack`, checked."""
        self._settings = SlackSettings.of(block)
        self._tokens = Tokens(self._settings, environ)
        self._clock = clock or SystemClock()
        self._naming = Naming(self._settings, self._tokens, self._clock)
        redactor = redactor_of(environ, self._tokens.variables())
        self._messenger = Messenger(self._settings, self._tokens, redactor, self._naming, self._clock)
        self._pace = pace or Pace()
        self._sweep_pace = sweep_pace or SweepPace()
        self._file_pace = file_pace or FilePace()
        self._runtime = environ.get("XDG_RUNTIME_DIR", "")
        self._http: HttpReader | None = None
        self._http_patience = http_patience or Patience()
        self._ask_files: Callable[[], object] = lambda: None  #: lets the loop that serves look for files
        self._started = threading.Event()  #: set once `_http` is what answers Slack's requests, or stays None

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Read, as `read.mode` says, until `stopping` says so.

        Returns before that, the remedy told by `door.connected`, where waiting cannot help: a token that is missing,
        wrong or revoked, Socket Mode switched off. Sessions and the service go on without Slack.
        """
        mode: str = self._settings.read.mode
        markdown.load()
        try:
            self._tokens.bot()
            if mode == "socket":
                self._tokens.app()
            if mode == "http":
                self._tokens.signing()
        except ChannelError as error:
            log.error("slack is not connected", extra={"reason": str(error)})
            door.connected(KIND, False, str(error))
            mode = ""
        if mode == "off":
            door.connected(KIND, True, "posts only: channels.slack.read.mode is off")
        with closing(AsyncDoor(door, self._naming.named)) as awaited:
            asyncio.run(self._serve(awaited, mode, stopping))

    async def _serve(self, door: AsyncDoor, mode: str, stopping: Callable[[], bool]) -> None:
        client, own, stop = async_web_client(self._settings), Self(), asyncio.Event()
        directory = Directory(client, self._tokens, self._clock, keep_failure=self._pace.lookup)
        intake = Intake(door, directory, self._settings, self._clock)
        polls = mode == "poll"
        sweeper = Sweeper(client, self._tokens, own, door, intake, self._clock, self._sweep_pace, polls=polls)
        files = Files(self._settings, self._tokens, client, own, door, self._file_pace)
        intake.committed, intake.missed, intake.unordered = files.ask, sweeper.missed, sweeper.read_soon
        loop = asyncio.get_running_loop()
        self._ask_files = lambda: loop.call_soon_threadsafe(files.ask)
        creating = Creating(client, self._tokens, door, directory, self._settings)
        homes = Homes(client, self._tokens, door, self.link, self._clock, self._pace.home)
        keep, settings, identity = self._messenger.keep, self._settings, lambda: own.identity
        direct = Direct(client, self._tokens, door)
        buttons = Buttons(door, keep, directory, settings, identity, direct, homes)

        def holds(who: str, role: Role) -> bool:
            return self.has_role(who, role) or door.listed(who)

        sessions = Sessions(
            door, keep, directory, settings, holds, own.team, creating, direct, homes, identity, self._clock.now
        )
        app = build_app(client, own, sessions, buttons)
        reading = Reading(app, client, self._tokens, own, intake, sweeper, Standing(door), _templates(self._settings))
        reader: Reader | None = None
        if mode == "socket":
            reader = Connection(reading, self._pace, self._runtime)
        elif mode == "http":
            reader = self._http = HttpReader(reading, door, self._pace.first, self._http_patience)
        elif mode == "poll":
            reader = Poller(reading, self._settings.read.interval_seconds)
        self._started.set()
        if reader is None:
            await files.drain()
            return
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(work) for work in (intake.run(), files.run(), _watch(stopping, stop))]
                beside += [group.create_task(work) for work in (sweeper.run(), homes.run())] if mode != "poll" else []
                await reader.run(stop)
                for task in beside:
                    task.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        if not stop.is_set():
            await files.drain()

    def link(self, channel: str, thread: str) -> str:
        """Return the address of a thread, "" before Slack has told the workspace's own."""
        return self._messenger.link(channel, thread)

    def webhook(self) -> WebHook | None:
        """Return what answers Slack's requests, where `read.mode` is http."""
        return self._answer if self._settings.read.mode == "http" else None

    def _answer(self, path: str, headers: Mapping[str, str], body: bytes) -> WebAnswer:
        """Answer a request: refused unless Slack has just signed it."""
        try:
            secret = self._tokens.signing().reveal()
        except ChannelError:
            return WebAnswer(503, "text/plain", b"no signing secret is set")
        if not signed(body, headers, secret):
            return WebAnswer(401, "text/plain", b"not signed by Slack")
        if path != "/events":
            return WebAnswer(404, "text/plain", b"Slack's request URL is /channels/slack/events")
        self._started.wait(self._http_patience.connected)
        reader = self._http
        return reader.answer(body, headers) if reader else WebAnswer(503, "text/plain", b"not connected yet")

    def sweeps(self) -> bool:
        """Return whether threads are read at all."""
        return self._settings.read.mode != "off"

    def echoes(self) -> bool:
        """Return whether events reach us at all: Slack sends one for each message, the bot's own among them."""
        return self._settings.read.mode in PRESSES

    def presses(self) -> bool:
        """Return whether buttons reach us: they do by Slack's call or its socket."""
        return self._settings.read.mode in PRESSES

    def typed(self, role: Role) -> str:
        """Return the slash command, where Slack's calls reach us and somebody may give it."""
        settings = self._settings
        held = settings.operators if role is Role.OPERATOR else settings.authorized_users
        return COMMAND if settings.read.mode in PRESSES and held else ""

    def default_channel(self) -> str:
        """Return the configured channel's id, "" if none is."""
        return self._settings.channel

    def authorized(self, author: str) -> bool:
        """Return whether the member is on the allow-list; an empty list allows nobody."""
        return self.has_role(author, Role.MEMBER)

    def has_role(self, author: str, role: Role) -> bool:
        """Return whether a person has it: operators are members, and members approve if no approvers are named."""
        settings = self._settings
        member = author in settings.authorized_users or author in settings.operators
        if role is Role.OPERATOR:
            return author in settings.operators
        if role is Role.APPROVER and settings.approvers is not None:
            return author in settings.approvers
        return member

    def everybody(self) -> tuple[str, ...]:
        """Return whoever has a say, each once."""
        return self._settings.everybody()

    def late(self, ts: str) -> str:
        """Return why a message must be confirmed now, by `confirmOlderThanMinutes`."""
        return late(ts, self._settings, self._clock)

    def look_again(self) -> None:
        """Let the files be looked for that core's messages wait for."""
        with suppress(RuntimeError):  # the loop is closed: the next one looks as it begins
            self._ask_files()

    def redact_with(self, redactor: Redactor) -> None:
        """Take secrets out of all that goes out by this redactor."""
        self._messenger.redact_with(redactor)

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post the text. Raises ChannelError."""
        return self._messenger.post(post, channel, thread)

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Replace an earlier post's text. Raises ChannelError."""
        return self._messenger.update(post, channel, ts)

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for a post by its id. Raises ChannelError."""
        return self._messenger.find(post_id, channel, thread)

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Read a thread to its end. Raises ChannelError."""
        return self._messenger.read_thread(channel, thread)

    def wants(self, kind: OutboundKind) -> bool:
        """Return whether posts of that kind are shown, by `channels.slack.verbosity`."""
        return shows(Verbosity(self._settings.verbosity), kind)

    def live(self) -> bool:
        """Return whether turns are shown as they run, by `channels.slack.stream` and `verbosity`."""
        return self._settings.streams()

    def begin_live(self, row: LiveRow) -> Posted:
        """Post the message of a live post. Raises ChannelError."""
        return self._messenger.begin_live(row)

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Tell what has changed, and put a text behind the text so far. Raises ChannelError."""
        self._messenger.add_live(row, change, text)

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """Do the same for the last time, and give the message the post's id. Raises ChannelError."""
        return self._messenger.end_live(row, post, change, text)

    def remove_live(self, row: LiveRow) -> None:
        """Remove the message of a live post. Raises ChannelError."""
        self._messenger.remove_live(row)

    def find_live(self, row: LiveRow) -> Posted | None:
        """Look for the message of a live post. Raises ChannelError."""
        return self._messenger.find_live(row)

    def live_parts(self, post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
        """Return what an answer is sent as whose first part ends a live post that shows this."""
        return live.parts(post, shown)

    def live_pieces(self, post: NewPost, shown: LiveShown) -> tuple[str, ...]:
        """Return the texts that such a live post is given one after another; () where it cannot hold them."""
        return live.pieces(post, shown)

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Return what the post is sent as: itself, several, or the first of them and a file."""
        return markdown.parts(post)

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Show the mark on a message. Raises ChannelError."""
        self._messenger.react(channel, ts, mark, instead_of)

    def status(self, channel: str, thread: str, text: str) -> None:
        """Show what the session is doing."""
        self._messenger.status(channel, thread, text)

    def check(self, channels: Collection[str] = ()) -> tuple[Finding, ...]:
        """Ask Slack whether everything is in place."""
        return Check(self._settings, self._tokens, self._clock, channels).findings()

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post a message that asks nobody anything, and return what removes it. Both raise ChannelError."""
        return self._messenger.send_probe(channel)

    def manifest(self, url: str = "") -> str:
        """Return the app manifest as YAML, for the configured way of reading. Raises InvalidValue for a bad URL."""
        return manifest.manifest(self._settings.read.mode, url)


def _templates(settings: SlackSettings) -> Mapping[str, Template]:
    """Return the templates by their channels."""
    return {
        one.channel: Template(
            name=one.name,
            harness=one.harness,
            root=one.root,
            worktree=one.worktree,
            prompt=one.prompt,
            lifetime_seconds=parse_duration(one.lifetime).total_seconds() if one.lifetime else 0,
            role=Role(one.role),
        )
        for one in settings.templates
    }


async def _watch(stopping: Callable[[], bool], stop: asyncio.Event) -> None:
    """Set `stop` once the service stops."""
    while not stopping():
        await asyncio.sleep(_STOP_POLL)
    stop.set()
