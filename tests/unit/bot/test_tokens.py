"""Secrets: found by variable, shown nowhere."""

from __future__ import annotations

import logging

import pytest

from bot.clients import HIDDEN, Tokens, quiet_logger, redact
from bot.settings import SlackSettings
from core.base.errors import ChannelError


@pytest.mark.parametrize(
    "secret", ["xoxb-1-2-abc", "xapp-1-A1-2-abc", "xoxp-9-abc", "xoxe.xoxb-1-abc", "XOXB-1-2-abc", "xoxc-1-abc%2F"]
)
def test_tokens_are_taken_out_of_text(secret: str) -> None:
    """Every kind of token, wherever it stands, behind a colour too."""
    assert redact(f"\x1b[36m{secret}\x1b[0m") == f"\x1b[36m{HIDDEN}\x1b[0m"
    assert redact(f"token={secret}, and on") == f"token={HIDDEN}, and on"


def test_tickets_are_taken_out_of_urls() -> None:
    """The rest of the address may be read."""
    assert redact("wss://wss.slack.com/link/?ticket=ab-cd&app_id=A1") == (
        f"wss://wss.slack.com/link/?ticket={HIDDEN}&app_id=A1"
    )


def test_a_librarys_record_is_rewritten_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Neither arguments nor exceptions carry a secret into the log."""
    logger = quiet_logger("bot.sdk.test", logging.INFO)
    try:
        raise ValueError("xoxb-in-the-exception")
    except ValueError:
        logger.exception("failed with %s", "xapp-in-the-arguments")

    assert "xoxb-in" not in caplog.text
    assert "xapp-in" not in caplog.text
    assert "failed with" in caplog.text
    assert "ValueError" in caplog.text


def test_a_token_shows_its_variable_only() -> None:
    """Printing one is harmless."""
    token = Tokens(SlackSettings(), {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-1"}).bot()

    assert f"{token} {token!r}" == "Token(THE_LOOP_SLACK_BOT_TOKEN) Token(THE_LOOP_SLACK_BOT_TOKEN)"
    assert token.reveal() == "xoxb-1"


@pytest.mark.parametrize("value", ["", "  ", "xapp-1", "secret"])
def test_a_token_that_is_none_names_its_variable(value: str) -> None:
    """The value is not part of the message, whatever it is."""
    tokens = Tokens(SlackSettings(), {"THE_LOOP_SLACK_BOT_TOKEN": value})

    with pytest.raises(ChannelError, match="THE_LOOP_SLACK_BOT_TOKEN") as caught:
        tokens.bot()

    assert not value.strip() or value not in str(caught.value)
    assert not caught.value.transient
