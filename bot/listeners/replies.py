"""Messages of channels: the intake has committed what is a reply; what remains is the acknowledgement."""

from bot.bolt import AsyncApp
from bot.middleware import commit_before_ack

EVENTS = ("message.channels", "message.groups")  #: the subscriptions that bring them


def register(app: AsyncApp) -> None:
    """Register for messages of every subtype: Bolt acknowledges once the middleware lets them pass."""
    app.event("message", middleware=[commit_before_ack])(taken)


async def taken() -> None:
    """Do nothing more: the reply is core's now."""
