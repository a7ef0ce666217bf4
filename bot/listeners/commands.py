"""The slash command: acknowledged at once, answered to the caller alone."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot import payloads
from bot.bridge import AsyncDoor
from bot.clients import response_client
from bot.errors import ASYNC_FAILURES, channel_error
from bot.payloads import COMMAND, Command
from bot.views.answers import View, help_view, list_view, plain_view, refusal_view, status_view
from core.errors import CoreError

log = logging.getLogger(__name__)

COMMANDS = (COMMAND,)


@dataclass(frozen=True)
class Sessions:
    """What a command may ask: core's door, who is allowed, and which team is ours ("" while unknown)."""

    door: AsyncDoor
    authorized: Callable[[str], bool]
    team: Callable[[], str]

    def permits(self, asked: Command) -> bool:
        """Tell whether the caller is on the allow-list and of our own team."""
        return bool(asked.team) and asked.team == self.team() and self.authorized(asked.user)


def register(app: AsyncApp, sessions: Sessions) -> None:
    """Register the command."""

    async def run(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        asked = payloads.command(body)
        await _respond(asked, await answer(asked, sessions))

    app.command(COMMAND)(run)


async def answer(asked: Command, sessions: Sessions) -> View:
    """Return what the caller gets to see; no data without permission."""
    if not sessions.permits(asked):
        log.info("a slash command was refused", extra={"author": asked.user, "team": asked.team})
        return refusal_view()
    verb = asked.words[0].lower() if asked.words else "help"
    render = _VERBS.get(verb)
    if render is None:
        return help_view("" if verb == "help" else verb)
    try:
        return render(await sessions.door.rows())
    except CoreError as error:
        return plain_view(f"the sessions could not be listed: {error}")


_VERBS: Mapping[str, Callable[[tuple[Mapping[str, Any], ...]], View]] = {
    "status": status_view,
    "list": list_view,
}


async def _respond(asked: Command, view: View) -> None:
    try:
        answered = await response_client(asked.response_url).send(
            text=view.text, blocks=list(view.blocks), response_type="ephemeral"
        )
    except ASYNC_FAILURES as error:
        log.warning("a slash command was not answered", extra={"reason": str(channel_error("respond", "", error))})
        return
    if answered.status_code != 200:
        log.warning("a slash command was not answered", extra={"reason": f"HTTP {answered.status_code}"})
