"""The Bolt app: the only place that wires Bolt."""

import logging

from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.bolt import AsyncApp
from bot.clients import quiet_logger
from bot.listeners import register_listeners
from bot.listeners.actions import Buttons
from bot.listeners.commands import Sessions
from bot.payloads import Identity
from bot.tokens import redact

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
