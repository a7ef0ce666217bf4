"""Buttons: acknowledged at once, decided by core, answered to whoever pressed."""

import logging
import re
from collections.abc import Callable
from typing import Any

from slack_bolt.context.ack.async_ack import AsyncAck

from bot import payloads
from bot.bolt import AsyncApp
from bot.bridge import AsyncDoor
from bot.directory import Directory
from bot.listeners.responding import NOT_SAID, respond
from bot.settings import SlackSettings
from bot.views.answers import Draft, plain_view, refusal_view, told_view
from bot.views.buttons import PREFIX
from core.errors import ChannelError, CoreError
from core.ports import IncomingPress
from core.values import dataclass, replace

log = logging.getLogger(__name__)
_ASK_SECONDS = 2.0


@dataclass(frozen=True)
class Buttons:
    """What a press may ask: core's door, who people are, who we are."""

    door: AsyncDoor
    directory: Directory
    settings: SlackSettings
    identity: Callable[[], payloads.Identity | None]


def register(app: AsyncApp, buttons: Buttons) -> None:
    """Register for every button of ours."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        draft = await pressed(body, buttons)
        if draft is not None:
            await respond(buttons.door, payloads.response_url(body), draft)

    app.action(re.compile(f"^{re.escape(PREFIX)}"))(run)


async def pressed(body: payloads.Document, buttons: Buttons) -> Draft | None:
    """Do what the button is for, and return what is told to whoever pressed it; None where all can see what it did."""
    own = buttons.identity()
    press = payloads.press(body, own) if own is not None else None
    if press is None:
        return plain_view("This button cannot be understood here.")
    if not buttons.settings.listed(press.author):
        await buttons.door.refuse(press.author, press.action, press=press)
        return refusal_view("press this", press.author)
    try:
        person = await buttons.directory.person(press.author, _ASK_SECONDS)
        told = await buttons.door.press(_known(press, person))
    except ChannelError as error:
        log.warning("a press was not taken", extra={"author": press.author, "reason": str(error)})
        return plain_view(f"{NOT_SAID} Press it again.")
    except CoreError as error:
        return plain_view(f"Nothing was done: {error}")
    return told_view(told) if told.text or told.code else None


def _known(press: IncomingPress, person: payloads.Person) -> IncomingPress:
    """Return the press with what users.info says of its author, as replies are taken; see payloads.as_known."""
    author, team = payloads.actor(press.author, press.author_team, press.team, person)
    return replace(press, author=author, author_name=person.name, author_team=team, is_bot=person.is_bot)
