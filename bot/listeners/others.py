"""Every other event: acknowledged, so that Slack does not send it four times."""

import re

from bot.bolt import AsyncApp


def register(app: AsyncApp) -> None:
    """Register the catch-all; it must come after all others."""
    app.event(re.compile(".*"))(unasked)


async def unasked() -> None:
    """Do nothing: nobody here waits for this event."""
