"""Ask Slack whether everything is set up, one finding for each question. It changes nothing there."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial

from slack_sdk import WebClient
from slack_sdk.web.slack_response import SlackResponse

from bot import manifest, payloads
from bot.clients import SYNC_FAILURES, Tokens, channel_error, header, web_client
from bot.http import PATH
from bot.payloads import COMMAND, Identity
from bot.settings import SlackSettings
from core.base.clock import Clock
from core.base.errors import ChannelError
from core.model.health import Finding, State

_SKEW_WARNED = 30.0  #: seconds; Slack's header names whole ones, and an answer takes a moment
_SKEW_REFUSED = 240.0  #: signed requests of five minutes ago are refused, and late replies ask for confirmation


_NOTHING = {"type": "markdown_text", "text": "…"}


class Check:
    """One run of the check."""

    def __init__(self, settings: SlackSettings, tokens: Tokens, clock: Clock, channels: Collection[str] = ()) -> None:
        """`channels`: those where threads of sessions are bound, looked at like the configured one."""
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
        self._channels = channels

    def findings(self) -> tuple[Finding, ...]:
        """Return every finding; what could not be asked is unknown."""
        return (*self._of_the_file(), *self._of_the_bot(), *self._of_the_reading())

    def _of_the_file(self) -> Iterator[Finding]:
        """Look at what needs no question: whether it is on, where sessions are announced, and who may steer them."""
        if not self._settings.enabled:
            told = "channels.slack.enabled is false, so the service does not connect to Slack"
            yield Finding("enabled", State.FAILED, told, "set it to true")
        if not self._settings.channel:
            told = "no channel is configured, so a session without a channel of its own is not announced"
            yield Finding("channel", State.FAILED, told, "set channels.slack.channel to the id of the channel (C…)")
        if not self._settings.authorized_users:
            yield Finding(
                "authorizedUsers",
                State.FAILED,
                "the list is empty, so nobody may steer a session from Slack",
                "add the member ids of those who may to channels.slack.authorizedUsers",
            )

    def _of_the_bot(self) -> Iterator[Finding]:
        try:
            token = self._tokens.bot()
        except ChannelError as error:
            yield _failed("bot token", error)
            return
        yield Finding("bot token", State.OK, f"in {token.variable}")
        client = web_client(self._settings, token)
        try:
            answer = _ask("auth.test", "", client.auth_test)
        except ChannelError as error:
            yield _failed("bot", error)
            return
        own = payloads.identity(answer.data if isinstance(answer.data, dict) else {})
        if own is None:
            yield Finding("bot", State.FAILED, "the token belongs to no bot", "use the bot token (xoxb-…) of the app")
            return
        yield Finding("bot", State.OK, f"{own.name} in team {own.team}")
        yield from _skew(header(answer, "date"), self._clock.now())
        yield _scopes(header(answer, "x-oauth-scopes"), self._settings.read.mode)
        if self._settings.channel:
            yield from self.of_channel(client, self._settings.channel, "channel")
            yield from self._of_streams(client, self._settings.channel)
        for channel in sorted({*self._channels} - {self._settings.channel, ""}):
            yield from self.of_channel(client, channel, f"channel {channel}")
        for member in self._settings.everybody():
            yield _member(client, member, own)

    def _of_streams(self, client: WebClient, channel: str) -> Iterator[Finding]:
        """Ask to write into a message that is not there: where that is what is refused, turns can be shown."""
        if not self._settings.streams():
            return
        nothing = partial(client.chat_appendStream, channel=channel, ts="1.000000", chunks=[_NOTHING])
        try:
            _ask("chat.appendStream", channel, nothing)
        except ChannelError as error:
            if error.reason == ChannelError.NOT_ALLOWED:
                told = f"turns are not shown as they run, only their answers are posted: {error.message}"
                yield Finding("streams", State.WARNING, told, f"{error.remedy}; or set channels.slack.stream to false")
            elif error.reason == ChannelError.THREAD_GONE:
                yield Finding("streams", State.OK, "turns are shown as they run")
            elif error.transient:
                yield _failed("streams", error)

    def of_channel(self, client: WebClient, channel: str, name: str) -> Iterator[Finding]:
        try:
            answer = _ask("conversations.info", channel, lambda: client.conversations_info(channel=channel))
        except ChannelError as error:
            yield _failed(name, error)
            return
        found = payloads.conversation(answer.data if isinstance(answer.data, dict) else {})
        named = f"#{found.name} ({channel})"
        if found.is_archived:
            yield Finding(name, State.FAILED, f"{named} is archived", "unarchive it, or configure another channel")
        elif not found.is_member:
            yield Finding(name, State.FAILED, f"the bot is not in {named}", "invite it there: /invite @the-loop")
        else:
            yield Finding(name, State.OK, f"{named}, the bot is a member")
        if found.is_ext_shared:
            yield Finding(
                f"{name}, shared",
                State.WARNING,
                f"{named} is shared with another organization, whose people read what sessions say there",
                "use a channel of your own workspace; outsiders can steer nothing in either case",
            )

    def _of_the_reading(self) -> Iterator[Finding]:
        """Look at what the mode of reading needs, and at nothing else."""
        read = self._settings.read
        if read.mode == "socket":
            yield from self._of_the_socket()
        elif read.mode == "http":
            yield from self._of_the_requests()
        elif read.mode == "poll":
            told = f"poll: threads are read every {read.interval_seconds:g} s; commands and buttons do not arrive"
            yield Finding("reading", State.OK, told)
        else:
            yield Finding("reading", State.OK, "off: posts only, nothing is read")

    def _of_the_requests(self) -> Iterator[Finding]:
        try:
            secret = self._tokens.signing()
        except ChannelError as error:
            yield _failed("signing secret", error)
        else:
            yield Finding("signing secret", State.OK, f"in {secret.variable}")
        url = f"{manifest.PLACEHOLDER}{PATH}"
        told = f"Slack must send events, interactivity and {COMMAND} to {url}; no call to Slack can check that"
        yield Finding("request URLs", State.OK, told)

    def _of_the_socket(self) -> Iterator[Finding]:
        try:
            token = self._tokens.app()
        except ChannelError as error:
            yield _failed("app-level token", error)
            return
        yield Finding("app-level token", State.OK, f"in {token.variable}")
        try:
            _ask("apps.connections.open", "", lambda: self._plain().apps_connections_open(app_token=token.reveal()))
        except ChannelError as error:
            yield _failed("Socket Mode", error)
            return
        yield Finding("Socket Mode", State.OK, "a connection may be opened")

    def _plain(self) -> WebClient:
        return web_client(self._settings, self._tokens.app())


def _scopes(granted: str | None, mode: str) -> Finding:
    """Compare what the token grants with what is called. `granted` None: Slack's answer does not say."""
    needed = manifest.scopes(mode)
    if granted is None:
        remedy = f"see whether the page OAuth & Permissions of the app names them: {', '.join(needed)}"
        return Finding("scopes", State.UNKNOWN, "not known: Slack's answer does not name the token's scopes", remedy)
    given = {scope.strip() for scope in granted.split(",") if scope.strip()}
    missing = [scope for scope in needed if scope not in given]
    if missing:
        remedy = "paste the manifest (`the-loop slack manifest`) into the app's page and reinstall it"
        return Finding("scopes", State.FAILED, f"missing: {', '.join(missing)}", remedy)
    return Finding("scopes", State.OK, ", ".join(needed))


def _member(client: WebClient, member: str, own: Identity) -> Finding:
    name = f"member {member}"
    remedy = f"remove {member} from the lists of channels.slack, or correct it"
    try:
        answer = _ask("users.info", member, lambda: client.users_info(user=member))
    except ChannelError as error:
        return _failed(name, error)
    found = payloads.person(answer.data if isinstance(answer.data, dict) else {})
    if found is None or found.deleted:
        return Finding(name, State.FAILED, "no active member has this id", remedy)
    if found.is_bot:
        return Finding(name, State.FAILED, f"{found.name} is a bot, and bots may not steer", remedy)
    if found.team != own.team:
        return Finding(name, State.FAILED, f"{found.name} belongs to another organization, and is refused", remedy)
    return Finding(name, State.OK, found.name)


def _ask(method: str, where: str, call: Callable[[], SlackResponse]) -> SlackResponse:
    try:
        return call()
    except SYNC_FAILURES as error:
        raise channel_error(method, where, error) from error


def _failed(name: str, error: ChannelError) -> Finding:
    return Finding(name, State.UNKNOWN if error.transient else State.FAILED, error.message, error.remedy)


def _skew(date: str | None, now: datetime) -> Iterator[Finding]:
    """Compare this machine's clock with the moment of Slack's answer. None where its header names no moment."""
    try:
        seconds = (now - parsedate_to_datetime(date or "")).total_seconds()
    except (TypeError, ValueError):
        return
    if abs(seconds) <= _SKEW_WARNED:
        yield Finding("clock", State.OK, f"within {_SKEW_WARNED:g} s of Slack's")
        return
    told = f"this machine's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} Slack's"
    remedy = "synchronize it: `timedatectl set-ntp true`, or ask whoever runs the machine"
    yield Finding("clock", State.FAILED if abs(seconds) > _SKEW_REFUSED else State.WARNING, told, remedy)
