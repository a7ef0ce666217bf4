"""Answers to one person alone, by the response URL that came with what they did."""

import logging

from bot.bridge import AsyncDoor
from bot.clients import response_client
from bot.errors import ASYNC_FAILURES, channel_error
from bot.views.answers import Draft

log = logging.getLogger(__name__)
NOT_SAID = "Slack does not say at the moment who you are, so nothing was done."


async def respond(door: AsyncDoor, url: str, draft: Draft) -> None:
    """Show the draft to the caller alone, beside the message; what fails is logged, for nobody waits for it."""
    view = await door.shown(draft)
    try:
        answered = await response_client(url).send(
            text=view.text, blocks=list(view.blocks), response_type="ephemeral", replace_original=False
        )
    except ASYNC_FAILURES as error:
        log.warning("somebody was not answered", extra={"reason": str(channel_error("respond", "", error))})
        return
    if answered.status_code != 200:
        log.warning("somebody was not answered", extra={"reason": f"HTTP {answered.status_code}"})
