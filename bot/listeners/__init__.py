"""Everything that the bot listens to, a module for each feature of Slack."""

from bot.bolt import AsyncApp
from bot.listeners import actions, commands, others, replies
from bot.listeners.actions import Buttons
from bot.listeners.commands import Sessions


def register_listeners(app: AsyncApp, sessions: Sessions, buttons: Buttons) -> None:
    """Register all listeners; the catch-all comes last."""
    replies.register(app)
    commands.register(app, sessions)
    actions.register(app, buttons)
    others.register(app)
