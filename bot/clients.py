"""Makes slack_sdk's clients: no retries behind our back, a deadline, quiet loggers, no proxy on loopback."""

import logging

from slack_sdk import WebClient
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.settings import SlackSettings, on_loopback
from bot.tokens import Redacting, Token

CALL_SECONDS = 15


def quiet_logger(name: str, level: int) -> logging.Logger:
    """Return a logger for the libraries: at DEBUG they print whole payloads and the ticket of a socket's URL."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not any(isinstance(found, Redacting) for found in logger.filters):
        logger.addFilter(Redacting())
    return logger


def web_client(settings: SlackSettings, token: Token) -> WebClient:
    """Return the client for threads. A failed call is told by what it raises, so it logs nothing itself."""
    client = WebClient(
        token=token.reveal(),
        base_url=settings.api_url,
        timeout=CALL_SECONDS,
        retry_handlers=[],
        logger=quiet_logger("bot.sdk.web", logging.CRITICAL),
    )
    if on_loopback(settings.api_url):
        client.proxy = None
    return client


def async_web_client(settings: SlackSettings) -> AsyncWebClient:
    """Return the client for the event loop, without a token: each call is given the one it needs."""
    client = AsyncWebClient(
        base_url=settings.api_url,
        timeout=CALL_SECONDS,
        retry_handlers=[],
        logger=quiet_logger("bot.sdk.web", logging.CRITICAL),
    )
    if on_loopback(settings.api_url):
        client.proxy = None
    return client


def response_client(url: str) -> AsyncWebhookClient:
    """Return the client of one response URL, by which a slash command is answered."""
    client = AsyncWebhookClient(
        url, timeout=CALL_SECONDS, retry_handlers=[], logger=quiet_logger("bot.sdk.web", logging.CRITICAL)
    )
    if on_loopback(url):
        client.proxy = None
    return client
