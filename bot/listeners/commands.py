"""The slash command: acknowledged at once, answered to the caller alone."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from slack_bolt.context.ack.async_ack import AsyncAck

from bot import payloads
from bot.bolt import AsyncApp
from bot.bridge import AsyncDoor
from bot.directory import Directory
from bot.listeners.responding import NOT_SAID, respond
from bot.payloads import COMMAND, KIND, Command
from bot.settings import SlackSettings
from bot.views.answers import Draft, help_view, list_view, loops_view, plain_view, refusal_view, status_view, told_view
from core import commandtable
from core.commandtable import COMMANDS, check_bound, in_chat
from core.errors import ChannelError, CoreError, UnknownSession
from core.ports import IncomingOrder, Role
from core.values import dataclass, replace

log = logging.getLogger(__name__)
_ASK_SECONDS = 2.0
_HELP = "help"
_LISTS: Mapping[str, Callable[[tuple[Mapping[str, Any], ...]], Draft]] = {
    "status": status_view,
    "list": list_view,
    "loops": loops_view,
}
check_bound((verb for verb, command in in_chat(COMMANDS).items() if command.alone), (*_LISTS, _HELP))


@dataclass(frozen=True)
class Sessions:
    """What a command may ask: core's door, who people are, who has which role, which team is ours ("": unknown)."""

    door: AsyncDoor
    directory: Directory
    settings: SlackSettings
    holds: Callable[[str, Role], bool]
    team: Callable[[], str]
    commands: Mapping[str, commandtable.Command] = in_chat(COMMANDS)

    async def known(self, asked: Command) -> tuple[Command, bool]:
        """Return the command with its caller as the allow-list names them, and whether they are on it.

        Raises ChannelError where Slack does not say who they are.
        """
        if not asked.team or asked.team != self.team() or not self.settings.listed(asked.user):
            return asked, False
        person = await self.directory.person(asked.user, _ASK_SECONDS)
        user, team = payloads.actor(asked.user, asked.team, asked.team, person)
        permitted = bool(team) and not person.is_bot and self.holds(user, Role.MEMBER)
        return replace(asked, user=user, user_name=person.name), permitted

    async def refuse(self, asked: Command) -> None:
        """Tell an audit who was refused which verb; of other words nothing is kept."""
        command = self.commands.get(asked.verb)
        name = asked.words[1] if command is not None and command.names and len(asked.words) > 1 else ""
        await self.door.refuse(asked.user, asked.verb if command is not None else "command", name=name)


def register(app: AsyncApp, sessions: Sessions) -> None:
    """Register the command."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        asked = payloads.command(body)
        await respond(sessions.door, asked.response_url, await answer(asked, sessions))

    app.command(COMMAND)(run)


async def answer(asked: Command, sessions: Sessions) -> Draft:
    """Return what the caller gets to see; no data without permission."""
    try:
        asked, permitted = await sessions.known(asked)
    except ChannelError as error:
        log.warning("a slash command was not taken", extra={"author": asked.user, "reason": str(error)})
        return plain_view(f"{NOT_SAID} Say it again.")
    if not permitted:
        await sessions.refuse(asked)
        return refusal_view("use this command", asked.user)
    return await _obeyed(asked, sessions)


async def _obeyed(asked: Command, sessions: Sessions) -> Draft:
    verb, command = asked.verb, sessions.commands.get(asked.verb)
    if command is None or verb == _HELP:
        usable = [one for one in sessions.commands.values() if sessions.holds(asked.user, one.role)]
        return help_view("" if command else verb, usable)
    if not sessions.holds(asked.user, command.role):
        await sessions.refuse(asked)
        return plain_view(f"{verb} is for the operators of this the-loop (channels.slack.operators) alone.")
    lists = command.alone and not (command.names and len(asked.words) > 1)
    try:
        return await (_listed(asked, sessions) if lists else _ordered(asked, command, sessions))
    except UnknownSession:  # the same words for one that is not there and for one that is not for this member
        none = f"no standing session called {asked.words[1]!r} is open to you"
        return plain_view(f"{verb}: {none}; `{COMMAND} list` shows those that are")
    except CoreError as error:
        what = "the sessions could not be listed" if lists else verb
        return plain_view(f"{what}: {error}")


async def _listed(asked: Command, sessions: Sessions) -> Draft:
    return _LISTS[asked.verb](await sessions.door.rows(asked.user))


async def _ordered(asked: Command, command: commandtable.Command, sessions: Sessions) -> Draft:
    text, more = asked.rest, command.takes_text
    if len(asked.words) < 2 or (more and not text.strip()) or (not more and len(asked.words) > 2):
        return plain_view(f"It is used so: {COMMAND} {command.chat}")
    order = IncomingOrder(KIND, asked.user, asked.user_name, asked.verb, asked.words[1], text)
    return told_view(await sessions.door.order(order))
