"""Build the Bolt app with its listeners: replies, slash commands, buttons, and a catch-all.

- Buttons and slash commands are acknowledged at once, decided by core, and answered to the person alone, by the
  response URL. Every other event is acknowledged, so that Slack does not send it four times.
- `slack_bolt.async_app` imports aiohttp's web server for types that nobody uses here: 2 MiB. Empty types stand in for
  it while Bolt is imported. Whoever imports `aiohttp.web` later gets the real server.
"""

import asyncio
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_sdk.web.async_client import AsyncWebClient

from bot import payloads
from bot.buttons import PREFIX
from bot.clients import ASYNC_FAILURES, Tokens, channel_error, quiet_logger, redact, response_client
from bot.creating import CALLBACK, Creating, Form, form_of
from bot.directory import Directory
from bot.documents import Document
from bot.home import Homes
from bot.intake import ASK_SECONDS, AsyncDoor, commit_before_ack
from bot.payloads import COMMAND, KIND, Command, Identity
from bot.settings import SlackSettings
from bot.views import (
    ALL,
    WHICH,
    Draft,
    direct_help,
    help_view,
    list_view,
    loops_view,
    picture_view,
    plain_view,
    refusal_view,
    status_view,
    told_view,
    which_view,
)
from core import commandtable
from core.base.errors import ChannelError, CoreError, StoreBroken, UnknownSession
from core.base.values import dataclass, field, replace
from core.commandtable import COMMANDS, check_bound, in_chat
from core.model.asking import Role
from core.model.channel import IncomingOrder, IncomingPress, PrivateAnswer

_WEB = "aiohttp.web"
_NAMED = ("Application", "Request", "Response")  #: by Bolt, in annotations


@contextmanager
def _without_web() -> Iterator[None]:
    """Let empty types stand for the web server; where it is loaded already nothing is saved, and it is left alone."""
    if _WEB in sys.modules:
        yield
        return
    stand_in = ModuleType(_WEB)
    vars(stand_in).update({name: type(name, (), {}) for name in _NAMED})
    sys.modules[_WEB] = stand_in
    vars(aiohttp)["web"] = stand_in
    try:
        yield
    finally:
        del sys.modules[_WEB], vars(aiohttp)["web"]


with _without_web():
    from slack_bolt.adapter.socket_mode.async_internals import send_async_response
    from slack_bolt.async_app import AsyncApp

__all__ = ["AsyncApp", "send_async_response"]


NOT_SAID = "Slack does not say at the moment who you are, so nothing was done."
_OPERATORS_ONLY = "only the operators (channels.slack.operators) may use this command."


Keep = Callable[[str, bytes], str]  #: uploads a file that is shared nowhere, and returns its id; raises ChannelError


async def respond(door: AsyncDoor, url: str, draft: Draft, *, instead: bool = False, quiet: bool = False) -> bool:
    """Show the draft to the caller alone, beside the message, or `instead` of it, and return whether Slack took it.

    What fails is logged, unless `quiet`: nobody waits for it.
    """
    view = await door.shown(draft)
    try:
        answered = await response_client(url).send(
            text=view.text, blocks=list(view.blocks), response_type="ephemeral", replace_original=instead
        )
    except ASYNC_FAILURES as error:
        log.warning("somebody was not answered", extra={"reason": str(channel_error("respond", "", error))})
        return False
    if answered.status_code != 200 and not quiet:
        log.warning("somebody was not answered", extra={"reason": f"HTTP {answered.status_code}"})
    return answered.status_code == 200


@dataclass(frozen=True)
class Direct:
    """Writes to people directly."""

    client: AsyncWebClient
    tokens: Tokens
    door: AsyncDoor

    async def write(self, place: str, draft: Draft) -> None:
        """Write the draft to a member, or into the channel with one; what fails is logged, for nobody waits for it."""
        view, token = await self.door.shown(draft), self.tokens.bot().reveal()
        try:
            await self.client.chat_postMessage(channel=place, text=view.text, blocks=list(view.blocks), token=token)
        except ASYNC_FAILURES as error:
            reason = str(channel_error("chat.postMessage", "", error))
            log.warning("somebody was not answered", extra={"reason": reason})


_TRIES, _PROCESSED_SECONDS = 4, 1.0  #: Slack refuses an image block until it has looked at the file


async def show_picture(door: AsyncDoor, keep: Keep, url: str, name: str, author: str) -> None:
    """Show whoever asked a picture of the session's terminal, after its text. Best effort: the text stands there."""
    try:
        draft = picture_view(*await door.picture(name, author, keep))
    except CoreError as error:
        log.warning("a terminal is not shown as a picture", extra={"session": name, "reason": str(error)})
        return
    for left in reversed(range(_TRIES)):
        if await respond(door, url, draft, quiet=left > 0):
            return
        await asyncio.sleep(_PROCESSED_SECONDS)


@dataclass(frozen=True)
class Buttons:
    """What a press may ask: core's door, where pictures are kept, who people are, who we are."""

    door: AsyncDoor
    keep: Keep
    directory: Directory
    settings: SlackSettings
    identity: Callable[[], payloads.Identity | None]
    direct: Direct
    homes: Homes


def register_buttons(app: AsyncApp, buttons: Buttons) -> None:
    """Register for every button of ours."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        url, told = payloads.response_url(body), await pressed(body, buttons)
        if payloads.on_home(body):
            member = payloads.member_of(body)
            if told.draft is not None:
                await buttons.direct.write(member, told.draft)
            await buttons.homes.publish(member)
            return
        await tell(buttons.door, buttons.keep, url, told)

    app.action(re.compile(f"^{re.escape(PREFIX)}"))(run)


@dataclass(frozen=True)
class Told:
    """What somebody is told: a draft, None where all can see it; then a picture of the `terminal`, "" for none."""

    draft: Draft | None
    terminal: str = ""
    author: str = ""


async def tell(door: AsyncDoor, keep: Keep, url: str, told: Told) -> None:
    """Show somebody what they are told, beside the message."""
    if told.draft is not None:
        await respond(door, url, told.draft)
    if told.terminal:
        await show_picture(door, keep, url, told.terminal, told.author)


def _told(told: PrivateAnswer, author: str) -> Told:
    return Told(told_view(told) if told.text or told.code or told.rows else None, told.terminal, author)


async def pressed(body: Document, buttons: Buttons) -> Told:
    """Do what the button is for, and return what is told to whoever pressed it."""
    own = buttons.identity()
    press = payloads.press(body, own) if own is not None else None
    if press is None:
        return Told(plain_view("This button cannot be understood here."))
    if not (buttons.settings.listed(press.author) or buttons.door.listed(press.author)):
        await buttons.door.refuse(press.author, press.action, press=press)
        return Told(refusal_view("press this", press.author))
    try:
        known = _known(press, await buttons.directory.person(press.author, ASK_SECONDS))
        return _told(await buttons.door.press(known), known.author)
    except ChannelError as error:
        log.warning("a press was not taken", extra={"author": press.author, "reason": str(error)})
        return Told(plain_view(f"{NOT_SAID} Press it again."))
    except CoreError as error:
        return Told(plain_view(f"Nothing was done: {error}"))


def _known(press: IncomingPress, person: payloads.Person) -> IncomingPress:
    """Return the press with what users.info says of its author, as replies are taken; see payloads.as_known."""
    author, team = payloads.actor(press.author, press.author_team, press.team, person)
    return replace(press, author=author, author_name=person.name, author_team=team, is_bot=person.is_bot)


_HELP = "help"
_CREATE = "create"
_LISTS: Mapping[str, Callable[[tuple[Mapping[str, Any], ...]], Draft]] = {
    "status": status_view,
    "list": list_view,
    "loops": loops_view,
    "pause": which_view("pause"),
    "stop": which_view("stop"),
}
_EVERY = "all"  #: asks, as no name does
check_bound((verb for verb, command in in_chat(COMMANDS).items() if command.alone), (*_LISTS, _HELP, _CREATE))


@dataclass(frozen=True)
class Sessions:
    """What a command may ask: core's door, where pictures are kept, who people are, who has which role, which team is
    ours ("": unknown)."""

    door: AsyncDoor
    keep: Keep
    directory: Directory
    settings: SlackSettings
    has_role: Callable[[str, Role], bool]
    team: Callable[[], str]
    creating: Creating
    direct: Direct
    homes: Homes
    identity: Callable[[], payloads.Identity | None]
    now: Callable[[], datetime]
    told: dict[str, str] = field(default_factory=dict)  #: strangers who were answered directly, and the day
    commands: Mapping[str, commandtable.Command] = field(default_factory=lambda: in_chat(COMMANDS))

    async def known(self, asked: Command) -> tuple[Command, bool]:
        """Return the command with its caller as the allow-list names them, and whether they are on it.

        Raises ChannelError where Slack does not say who they are.
        """
        listed = self.settings.listed(asked.user) or self.door.listed(asked.user)
        if not asked.team or asked.team != self.team() or not listed:
            return asked, False
        person = await self.directory.person(asked.user, ASK_SECONDS)
        user, team = payloads.actor(asked.user, asked.team, asked.team, person)
        permitted = bool(team) and not person.is_bot and self.has_role(user, Role.MEMBER)
        return replace(asked, user=user, user_name=person.name), permitted

    async def refuse(self, asked: Command) -> None:
        """Report to the event log who was refused which verb; other words are not kept."""
        command = self.commands.get(asked.verb)
        name = asked.words[1] if command is not None and command.names and len(asked.words) > 1 else ""
        await self.door.refuse(asked.user, asked.verb if command is not None else "command", name=name)


def register_command(app: AsyncApp, sessions: Sessions) -> None:
    """Register the command."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        asked = payloads.command(body)
        await tell(sessions.door, sessions.keep, asked.response_url, await answer(asked, sessions))

    app.command(COMMAND)(run)

    async def chosen(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        asked = payloads.choice(body, WHICH, ALL)
        told = await answer(asked, sessions) if asked else Told(plain_view("This choice cannot be understood here."))
        if told.draft is not None:
            await respond(sessions.door, payloads.response_url(body), told.draft, instead=True)

    app.action(re.compile(f"^(?:{re.escape(WHICH)}|{re.escape(ALL)})"))(chosen)


async def answer(asked: Command, sessions: Sessions) -> Told:
    """Return what the caller gets to see; no data without permission."""
    try:
        asked, permitted = await sessions.known(asked)
    except ChannelError as error:
        log.warning("a slash command was not taken", extra={"author": asked.user, "reason": str(error)})
        return Told(plain_view(f"{NOT_SAID} Say it again."))
    if not permitted:
        await sessions.refuse(asked)
        return Told(refusal_view("use this command", asked.user))
    return await _obeyed(asked, sessions)


async def _obeyed(asked: Command, sessions: Sessions) -> Told:
    verb, command = asked.verb, sessions.commands.get(asked.verb)
    if command is None or verb == _HELP:
        usable = [one for one in sessions.commands.values() if sessions.has_role(asked.user, one.role)]
        return Told(help_view("" if command else verb, usable))
    if not sessions.has_role(asked.user, command.role):
        await sessions.refuse(asked)
        return Told(plain_view(f"{verb}: {_OPERATORS_ONLY}"))
    if verb == _CREATE:
        return Told(await sessions.creating.open(asked))
    asks = command.several is not None and asked.words[1:] == (_EVERY,)
    lists = command.alone and not asked.every and (asks or not (command.names and len(asked.words) > 1))
    try:
        return await (_listed(asked, sessions) if lists else _ordered(asked, command, sessions))
    except UnknownSession:  # the same words for one that is not there and for one that is not for this member
        none = f"no standing session called {asked.words[1]!r} is open to you"
        return Told(plain_view(f"{verb}: {none}; `{COMMAND} list` shows those that are"))
    except CoreError as error:
        what = "the sessions could not be listed" if lists else verb
        return Told(plain_view(f"{what}: {error}"))


async def _listed(asked: Command, sessions: Sessions) -> Told:
    return Told(_LISTS[asked.verb](await sessions.door.rows(asked.user)))


async def _ordered(asked: Command, command: commandtable.Command, sessions: Sessions) -> Told:
    text, more = asked.rest, command.takes_text
    if asked.every and command.several is not None:
        order = IncomingOrder(KIND, asked.user, asked.user_name, asked.verb, "", "")
        return _told(await sessions.door.order(order), asked.user)
    if len(asked.words) < 2 or (more and not text.strip()) or (not more and len(asked.words) > 2):
        return Told(plain_view(f"Usage: {COMMAND} {command.chat}"))
    order = IncomingOrder(KIND, asked.user, asked.user_name, asked.verb, asked.words[1], text)
    return _told(await sessions.door.order(order), asked.user)


def register_form(app: AsyncApp, sessions: Sessions) -> None:
    """Register for the form by which a session is created."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        form = form_of(body)
        try:
            asked, refused = await _may_create(form, sessions)
            if refused:
                await ack(response_action="errors", errors={"name": refused})
                return
            creation, faults = await sessions.creating.check(form, asked.user, asked.user_name)
        except TimeoutError:
            await ack(response_action="errors", errors={"name": "This could not be checked in time. Press it again."})
            return
        if faults:
            await ack(response_action="errors", errors=dict(faults))
            return
        await ack()
        draft = await sessions.creating.create(creation)
        if not await respond(sessions.door, form.response_url, draft):
            await sessions.direct.write(form.user, draft)

    app.view(CALLBACK)(run)


async def _may_create(form: Form, sessions: Sessions) -> tuple[Command, str]:
    """Return the form's author as the allow-list names them, and why they may not create anything; "" if they may."""
    asked = Command(form.user, form.team, (_CREATE,), form.response_url)
    try:
        asked, permitted = await sessions.known(asked)
    except ChannelError as error:
        log.warning("a form was not taken", extra={"author": asked.user, "reason": str(error)})
        return asked, f"{NOT_SAID} Press it again."
    if permitted and sessions.has_role(asked.user, Role.OPERATOR):
        return asked, ""
    await sessions.refuse(asked)
    return asked, f"You may not create sessions: {_OPERATORS_ONLY}"


def register_home(app: AsyncApp, sessions: Sessions) -> None:
    """Register for whoever looks at the app's page."""

    async def run(body: dict[str, Any]) -> None:
        member, tab = payloads.home_opened(body)
        if not member or tab != "home":
            return
        try:
            asked, permitted = await sessions.known(Command(member, sessions.team(), (), ""))
        except ChannelError as error:
            log.warning("a Home tab was not shown", extra={"author": member, "reason": str(error)})
            await sessions.homes.opened(member, "", "Slack could not identify you. Open this page again.")
            return
        await sessions.homes.opened(
            member, asked.user if permitted else "", f"You are not on it. Your member id is `{asked.user}`."
        )

    app.event("app_home_opened")(run)


_DIRECT = ("status", "list")  #: what can be said directly
_STRANGERS = 1000  #: that are remembered
_HEARD = timedelta(hours=25)  #: so long Slack may send an event again


def register_direct(app: AsyncApp, sessions: Sessions) -> None:
    """Register for what people write to the bot directly; each message is answered once."""

    async def run(body: dict[str, Any]) -> None:
        own = sessions.identity()
        found = payloads.direct(body, own) if own is not None else None
        if found is None:
            return
        asked, place, ts = found
        until = sessions.now() + _HEARD
        try:
            first = await asyncio.to_thread(sessions.door.heard, f"direct:{place}:{ts}", until, durable=False)
        except StoreBroken as error:
            log.warning("a direct message was not taken", extra={"author": asked.user, "reason": str(error)})
            return
        if not first:
            return
        draft = await _answered_directly(asked, sessions)
        if draft is not None:
            await sessions.direct.write(place, draft)

    async def matches(body: dict[str, Any]) -> bool:
        return payloads.is_direct(body)

    app.event("message", matchers=[matches])(run)


async def _answered_directly(asked: Command, sessions: Sessions) -> Draft | None:
    """Return what somebody is told who wrote to the bot; None for a stranger who was answered today."""
    try:
        known, permitted = await sessions.known(asked)
    except ChannelError as error:
        log.warning("a direct message was not taken", extra={"author": asked.user, "reason": str(error)})
        return plain_view(f"{NOT_SAID} Say it again.")
    if permitted:
        words = asked.words if asked.verb in _DIRECT else (_HELP,)
        found = (await answer(replace(asked, words=words[:1]), sessions)).draft
        return direct_help(found) if found is not None and words == (_HELP,) else found
    today = sessions.now().date().isoformat()
    if sessions.told.get(known.user) == today:
        return None
    if len(sessions.told) >= _STRANGERS:
        sessions.told.clear()
    sessions.told[known.user] = today
    await sessions.door.refuse(known.user, "direct message")
    return refusal_view("use this app", known.user)


def register_others(app: AsyncApp) -> None:
    """Register the catch-all; it must come after all others."""
    app.event(re.compile(".*"))(unasked)


async def unasked() -> None:
    """Do nothing: nobody here waits for this event."""


#: The subscriptions that bring what is listened to.
EVENTS = ("app_home_opened", "app_mention", "message.channels", "message.groups", "message.im")


def register_replies(app: AsyncApp) -> None:
    """Register for messages of every subtype: Bolt acknowledges once the middleware lets them pass."""
    app.event("message", middleware=[commit_before_ack])(taken)
    app.event("app_mention", middleware=[commit_before_ack])(taken)


async def taken() -> None:
    """Do nothing more: the reply is core's now."""


def register_listeners(app: AsyncApp, sessions: Sessions, buttons: Buttons) -> None:
    """Register all listeners; the catch-all comes last."""
    register_direct(app, sessions)
    register_replies(app)
    register_command(app, sessions)
    register_buttons(app, buttons)
    register_form(app, sessions)
    register_home(app, sessions)
    register_others(app)


log = logging.getLogger(__name__)


class Self:
    """Who the bot is, known once the connection has asked auth.test."""

    def __init__(self) -> None:
        self.identity: Identity | None = None

    def team(self) -> str:
        """Return the installing team, "" while it is unknown."""
        return self.identity.team if self.identity else ""


def build_app(client: AsyncWebClient, own: Self, sessions: Sessions, buttons: Buttons) -> AsyncApp:
    """Return the app with all its listeners.

    Nothing is asked of Slack here, so that an absent Slack stops nobody: who the bot is comes from `own`, which the
    connection fills before the first frame. Own messages are not dropped by Bolt, since core decides on them.
    """

    async def authorize() -> AuthorizeResult:
        known = own.identity
        return AuthorizeResult(
            enterprise_id=None,
            team_id=known.team if known else None,
            bot_id=known.bot if known else None,
            bot_user_id=known.user if known else None,
        )

    app = AsyncApp(
        name="the-loop",
        logger=quiet_logger("bot.sdk.bolt", logging.ERROR),
        client=client,
        authorize=authorize,
        request_verification_enabled=False,
        ssl_check_enabled=False,
        url_verification_enabled=False,
        ignoring_self_events_enabled=False,
        attaching_function_token_enabled=False,
    )

    @app.error
    async def failed(error: Exception) -> None:
        log.error("a listener failed", extra={"reason": redact(f"{type(error).__name__}: {error}")}, exc_info=error)

    register_listeners(app, sessions, buttons)
    return app
