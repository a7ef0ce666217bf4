"""One call of the Web API by a caller in a thread."""

from collections.abc import Callable

from slack_sdk.web.slack_response import SlackResponse

from bot.errors import SYNC_FAILURES, channel_error
from bot.payloads import Document


def answer(method: str, where: str, call: Callable[[], SlackResponse]) -> Document:
    """Return what Slack answered; `ok: false` and every other failure raise ChannelError. `where`: what it is about."""
    try:
        found = call()
    except SYNC_FAILURES as error:
        raise channel_error(method, where, error) from error
    return found.data if isinstance(found.data, dict) else {}
