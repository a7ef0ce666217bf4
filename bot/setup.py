"""Set Slack up, step by step: the app, its tokens and scopes, the channel, and whom the sessions obey.

Each step asks Slack first, so that what is in place is not asked for again. Tokens are read without being shown, and go
into the file that the service reads once Slack has confirmed them: never into an argument, a log or a terminal.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from bot import manifest, payloads
from bot.checks import Check
from bot.clients import SYNC_FAILURES, Tokens, channel_error, header, web_client
from bot.documents import Document, mappings_of, text_of
from bot.payloads import Identity
from bot.settings import SLACK_API, SlackSettings
from core.base.clock import Clock, Deadline
from core.base.errors import ChannelError, Refused
from core.model.health import Finding, State
from core.model.setup import Keep, Person

_APPS = "https://api.slack.com/apps"
_ATTEMPTS = 5
_PAGES = 10  #: of 200 channels
_LISTED = 20  #: channels that are shown
_FIND_SECONDS = 300.0
_LOOK_SECONDS = 3.0  #: between two looks: Slack allows some 50 a minute
_TOKEN = re.compile(r"x(?:ox[a-z]|app)-")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{2,}")
_MEMBER = re.compile(r"(?:[TE][A-Z0-9]{2,}:)?[UW][A-Z0-9]{2,}")


class GivenUp(Refused):
    """A step of the setup did not come to its end."""

    code = "setup_given_up"

    def __init__(self, what: str) -> None:
        super().__init__(f"the setup stopped: {what}", "`the-loop slack setup` goes on from there")


def set_up(
    person: Person, block: Mapping[str, Any], environ: Mapping[str, str], keep: Keep, clock: Clock
) -> Iterator[Mapping[str, Any]]:
    """Ask and check, and yield what is to be written into `channels.slack`. See core.model.setup.SetUp."""
    yield from _Setup(person, SlackSettings.of(block), dict(environ), keep, clock).steps()


class _Setup:
    """One conversation. `environ` grows by the secrets that are given."""

    def __init__(
        self, person: Person, settings: SlackSettings, environ: dict[str, str], keep: Keep, clock: Clock
    ) -> None:
        self._person = person
        self._settings = settings
        self._environ = environ
        self._keep = keep
        self._clock = clock
        self._own: Identity | None = None

    def steps(self) -> Iterator[Mapping[str, Any]]:
        self._bot_token()
        if self._settings.read.mode == "socket":
            self._app_token()
        elif self._settings.read.mode == "http":
            self._signing_secret()
        self._scopes()
        channel = self._channel()
        yield {"enabled": True, "channel": channel}
        users = self._people(channel)
        yield {"authorizedUsers": users}

    # ------------------------------------------------------------ the app and its tokens

    def _bot_token(self) -> None:
        self._person.step("The app, and its bot token")
        if not self._environ.get(self._settings.bot_token_env):
            self._explain_app()
        self._secret(self._settings.bot_token_env, "Bot token (xoxb-…)", self._try_bot)

    def _explain_app(self) -> None:
        text = manifest.manifest(self._settings.read.mode)
        self._person.tell(
            "Make the app: open this address, choose your workspace, and create the app. Its settings are in the "
            "address (`the-loop slack manifest` prints them)."
        )
        if self._settings.api_url == SLACK_API:
            self._person.tell(f"{_APPS}?new_app=1&manifest_yaml={quote(text)}")
        self._person.tell(
            "Then choose `Install to Workspace`. The bot token is on the page `OAuth & Permissions`. What you paste "
            "here is not shown."
        )

    def _try_bot(self) -> str:
        answer = self._asked("auth.test", lambda: self._client().auth_test())
        self._own = payloads.identity(answer)
        if self._own is None:
            raise ChannelError("the token belongs to no bot", "take the one that begins with xoxb-", transient=False)
        return f"{self._own.name} in team {self._own.team}"

    def _app_token(self) -> None:
        self._person.step("The app-level token, for Socket Mode")
        if not self._environ.get(self._settings.app_token_env):
            self._person.tell(
                "On the app's page `Basic Information`, under `App-Level Tokens`, generate a token with the scope "
                "`connections:write`. What you paste here is not shown."
            )
        self._secret(self._settings.app_token_env, "App-level token (xapp-…)", self._try_app)

    def _try_app(self) -> str:
        token = self._tokens().app()
        client = web_client(self._settings, token)
        self._asked("apps.connections.open", lambda: client.apps_connections_open(app_token=token.reveal()))
        return "a connection may be opened"

    def _signing_secret(self) -> None:
        self._person.step("The signing secret, for requests over HTTP")
        if not self._environ.get(self._settings.signing_secret_env):
            self._person.tell("It is on the app's page `Basic Information`. What you paste here is not shown.")
        self._secret(self._settings.signing_secret_env, "Signing secret", self._try_secret)

    def _try_secret(self) -> str:
        self._tokens().signing()
        return "kept; only a request of Slack's can show whether it is the right one"

    def _secret(self, variable: str, question: str, check: Callable[[], str]) -> None:
        """Ask for the secret until Slack takes it, and keep it; one that is there already is only checked."""
        fresh = not self._environ.get(variable)
        for _ in range(_ATTEMPTS):
            if fresh:
                self._environ[variable] = self._person.secret(question)
            try:
                told = check()
            except ChannelError as error:
                self._person.wrong(error.message, error.remedy)
                if error.transient and not fresh:
                    raise
                fresh = True
                continue
            self._keep({variable: self._environ[variable]})
            self._person.done(told)
            return
        raise GivenUp(f"no valid value for {variable} was given")

    def _scopes(self) -> None:
        self._person.step("What the app may do")
        for _ in range(_ATTEMPTS):
            answer = self._call(lambda: self._client().auth_test(), "auth.test")
            granted = header(answer, "x-oauth-scopes")
            needed = manifest.scopes(self._settings.read.mode)
            missing = [] if granted is None else sorted(set(needed) - set(granted.replace(" ", "").split(",")))
            if not missing:
                self._person.done("all scopes are granted" if granted else "Slack's answer does not name the scopes")
                return
            self._person.wrong(
                f"missing: {', '.join(missing)}",
                "paste the manifest (`the-loop slack manifest`) into the app's page `App Manifest`, and reinstall it",
            )
            given = self._person.secret("New bot token, if it has changed; else Enter")
            if given:
                self._environ[self._settings.bot_token_env] = given
                self._try_bot()
                self._keep({self._settings.bot_token_env: given})
        raise GivenUp("the app lacks scopes")

    # ------------------------------------------------------------ the channel

    def _channel(self) -> str:
        self._person.step("The channel in which sessions are announced")
        chosen = self._settings.channel
        for _ in range(_ATTEMPTS):
            channel = chosen or self._chosen()
            chosen = ""
            if channel and self._in_channel(channel):
                return channel
        raise GivenUp("no channel was chosen that the bot is in")

    def _chosen(self) -> str:
        """Ask for a channel, and return its id; "" where there is none of that name."""
        listed = self._channels()
        mine = [one for one in listed if one.get("is_member") is True]
        for one in mine[:_LISTED]:
            self._person.tell(f"the bot is in #{text_of(one, 'name')} ({text_of(one, 'id')})")
        default = text_of(mine[0], "name") if len(mine) == 1 else ""
        answer = self._answer("Channel: its #name, or its id (at the bottom of its details)", default)
        if _CHANNEL.fullmatch(answer):
            return answer
        name = answer.removeprefix("#").lower()
        found = next((text_of(one, "id") for one in listed if text_of(one, "name") == name), "")
        if not found:
            remedy = "a private channel is listed once the bot is in it: /invite @the-loop there, or give its id"
            self._person.wrong(f"there is no channel #{name} that the bot may see", remedy)
        return found

    def _channels(self) -> list[Document]:
        found: list[Document] = []
        cursor = ""
        for _ in range(_PAGES):
            answer = self._asked(
                "conversations.list",
                lambda at=cursor: self._client().conversations_list(  # type: ignore[misc]
                    types="public_channel,private_channel", exclude_archived=True, limit=200, cursor=at or None
                ),
            )
            found += mappings_of(answer, "channels")
            cursor = payloads.next_cursor(answer)
            if not cursor:
                break
        return found

    def _in_channel(self, channel: str) -> bool:
        """Return whether the bot is in it; whoever is at the terminal may invite it meanwhile."""
        for _ in range(_ATTEMPTS):
            wrong = [one for one in self._findings(channel) if not one.ok]
            if not wrong:
                self._person.done(f"the bot is in {channel}")
                return True
            self._person.wrong(wrong[0].detail, wrong[0].remedy)
            if wrong[0].state is State.UNKNOWN:
                raise GivenUp(wrong[0].detail)
            again = self._answer("Enter once that is done; or another channel", "")
            if again:
                self._settings = self._settings._replace(channel="")
                return False
        return False

    def _findings(self, channel: str) -> list[Finding]:
        settings = self._settings._replace(channel=channel, authorized_users=())
        return list(Check(settings, self._tokens(), self._clock).of_channel(self._client(), channel, "channel"))

    # ------------------------------------------------------------ people

    def _people(self, channel: str) -> list[str]:
        self._person.step("Who may steer sessions")
        listed = list(self._settings.authorized_users)
        if listed:
            self._person.done(f"listed: {', '.join(listed)}")
            return listed
        self._person.tell("Whoever is listed can do on this machine what the agents can do.")
        for _ in range(_ATTEMPTS):
            answer = self._answer("Your member id (profile, `Copy member ID`), or Enter to find it by a message", "")
            member = answer if _MEMBER.fullmatch(answer) else self._found(channel) if not answer else ""
            named = self._named(member) if member else ""
            if named:
                return [named]
            if answer and not member:
                self._person.wrong(f"{answer!r} is no member id", "one such as U0123456789; names are not taken")
        raise GivenUp("nobody may steer yet")

    def _found(self, channel: str) -> str:
        """Return the author of the message in which a word stands that only this terminal has shown; "" for none."""
        word = f"loop-{secrets.token_hex(3)}"
        self._person.tell(f"Write this word in the channel, as a message of its own: {word}")
        deadline = Deadline(self._clock, _FIND_SECONDS)
        while not deadline.passed():
            answer = self._asked(
                "conversations.history", lambda: self._client().conversations_history(channel=channel, limit=20)
            )
            for message in payloads.messages(answer):
                if text_of(message, "text").strip() == word and not message.get("bot_id"):
                    return text_of(message, "user")
            self._clock.pause(_LOOK_SECONDS)
        self._person.wrong(f"no message with that word came within {_FIND_SECONDS / 60:g} minutes", "give the id")
        return ""

    def _named(self, member: str) -> str:
        """Return how the list names the member; "" for somebody who could not steer."""
        bare = member.rpartition(":")[2]
        found = payloads.person(self._asked("users.info", lambda: self._client().users_info(user=bare)))
        own = self._own
        if found is None or found.deleted or found.is_bot or own is None:
            self._person.wrong(f"{member} is no active member", "give another id")
            return ""
        name, _ = payloads.actor(bare, "", own.team, found)
        if name != bare and member != name:
            self._person.tell(f"{found.name} is a guest or of another organization, and is listed as {name}")
        self._person.done(f"{found.name} ({name})")
        return name

    # ------------------------------------------------------------ asking

    def _answer(self, question: str, default: str) -> str:
        """Return an answer that is no token: one that was typed here has been seen, and is used nowhere."""
        while True:
            answer = self._person.ask(question, default)
            if not _TOKEN.match(answer):
                return answer
            remedy = "make a new one on the app's page, and give it when it is asked for"
            self._person.wrong("that is a token, and it was shown as you typed it", remedy)

    def _tokens(self) -> Tokens:
        return Tokens(self._settings, self._environ)

    def _client(self) -> Any:
        return web_client(self._settings, self._tokens().bot())

    def _call(self, call: Callable[[], Any], method: str) -> Any:
        try:
            return call()
        except SYNC_FAILURES as error:
            raise channel_error(method, "", error) from error

    def _asked(self, method: str, call: Callable[[], Any]) -> Document:
        data = self._call(call, method).data
        return data if isinstance(data, dict) else {}
