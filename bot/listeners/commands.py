"""The slash command: acknowledged at once, answered to the caller alone."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot import payloads
from bot.bridge import AsyncDoor
from bot.listeners.responding import respond
from bot.payloads import COMMAND, KIND, Command
from bot.views.answers import Draft, help_view, list_view, loops_view, plain_view, refusal_view, status_view, told_view
from core.errors import CoreError
from core.ports import IncomingOrder, Role

log = logging.getLogger(__name__)

COMMANDS = (COMMAND,)
#: verb -> who may say it, whether words follow the session's name
ORDERS: Mapping[str, tuple[Role, bool]] = {
    "say": (Role.MEMBER, True),
    "screen": (Role.MEMBER, False),
    "loops": (Role.MEMBER, False),
    "pause": (Role.MEMBER, False),
    "resume": (Role.MEMBER, False),
    "interrupt": (Role.MEMBER, False),
    "start": (Role.OPERATOR, False),
    "stop": (Role.OPERATOR, False),
    "restart": (Role.OPERATOR, False),
}


@dataclass(frozen=True)
class Sessions:
    """What a command may ask: core's door, who has which role, and which team is ours ("" while unknown)."""

    door: AsyncDoor
    holds: Callable[[str, Role], bool]
    team: Callable[[], str]

    def permits(self, asked: Command) -> bool:
        """Tell whether the caller is on the allow-list and of our own team."""
        return bool(asked.team) and asked.team == self.team() and self.holds(asked.user, Role.MEMBER)


def register(app: AsyncApp, sessions: Sessions) -> None:
    """Register the command."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        asked = payloads.command(body)
        await respond(sessions.door, asked.response_url, await answer(asked, sessions))

    app.command(COMMAND)(run)


async def answer(asked: Command, sessions: Sessions) -> Draft:
    """Return what the caller gets to see; no data without permission."""
    if not sessions.permits(asked):
        log.info("a slash command was refused", extra={"author": asked.user, "team": asked.team})
        return refusal_view()
    verb = asked.words[0].lower() if asked.words else "help"
    operator = sessions.holds(asked.user, Role.OPERATOR)
    try:
        if verb in _LISTS and not (verb == _LOOPS and len(asked.words) > 1):
            return _LISTS[verb](await sessions.door.rows())
        if verb not in ORDERS:
            return help_view("" if verb == "help" else verb, operator=operator)
        return await _ordered(verb, asked, sessions)
    except CoreError as error:
        what = "the sessions could not be listed" if verb in _LISTS else verb
        return plain_view(f"{what}: {error}")


_LOOPS = "loops"  #: of one session where a name follows
_LISTS: Mapping[str, Callable[[tuple[Mapping[str, Any], ...]], Draft]] = {
    "status": status_view,
    "list": list_view,
    _LOOPS: loops_view,
}


async def _ordered(verb: str, asked: Command, sessions: Sessions) -> Draft:
    role, more = ORDERS[verb]
    if not sessions.holds(asked.user, role):
        return plain_view(f"{verb} is for the operators of this the-loop (channels.slack.operators) alone.")
    text = asked.rest
    usage = f"{COMMAND} {verb} NAME{' TEXT' if more else ''}"
    if len(asked.words) < 2 or (more and not text.strip()) or (not more and len(asked.words) > 2):
        return plain_view(f"It is used so: {usage}")
    order = IncomingOrder(KIND, asked.user, asked.user_name or asked.user, verb, asked.words[1], text)
    return told_view(await sessions.door.order(order))
