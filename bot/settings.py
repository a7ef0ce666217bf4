"""The block `channels.slack`: every key, what it may hold, what it means."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from core.config.schema import Block, ChannelId

SLACK_API = "https://slack.com/api/"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def on_loopback(url: str) -> bool:
    """Tell whether the URL leads to this machine itself."""
    return (urlsplit(url).hostname or "") in _LOOPBACK


def _member(text: str) -> str:
    if not re.fullmatch(r"[UW][A-Z0-9]{2,}", text):
        raise ValueError(
            "a member id such as U0123456789 (in Slack: the person's profile, then `Copy member ID`); "
            "names are not taken, since anyone can take another's name"
        )
    return text


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError("the name of an environment variable that holds the token, never the token itself")
    return text


def _api_url(text: str) -> str:
    """Return the URL with a slash at its end. A token must not cross a network in the clear."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"a URL such as {SLACK_API}")
    if not text.startswith("https://") and not on_loopback(text):
        raise ValueError(f"an https URL such as {SLACK_API}; http is for loopback only, since the token goes there")
    return text if text.endswith("/") else f"{text}/"


Variable = Annotated[str, AfterValidator(_variable)]
MemberId = Annotated[str, AfterValidator(_member)]
ApiUrl = Annotated[str, AfterValidator(_api_url)]


class SlackSettings(Block):
    """Slack."""

    enabled: bool = Field(False, description="Connect to Slack, and announce sessions that have a thread")
    bot_token_env: Variable = Field(
        "THE_LOOP_SLACK_BOT_TOKEN", description="Environment variable that holds the bot token (xoxb-…)"
    )
    app_token_env: Variable = Field(
        "THE_LOOP_SLACK_APP_TOKEN", description="Environment variable that holds the app-level token (xapp-…)"
    )
    api_url: ApiUrl = Field(SLACK_API, description="Where the Web API is: GovSlack, or a workspace on loopback")
    channel: ChannelId = Field("", description="Id of the channel in which sessions are announced (C…)")
    authorized_users: list[MemberId] = Field(
        default_factory=list, description="Member ids of those who may steer sessions from Slack; empty: nobody"
    )

    verbosity: Literal["quiet", "normal", "verbose"] = Field(
        "normal",
        description="quiet: announcements, notes and questions; normal: the agent's final answers too; "
        "verbose: the steps of each turn too",
    )

    @model_validator(mode="after")
    def _two_variables(self) -> "SlackSettings":
        if self.bot_token_env == self.app_token_env:
            raise ValueError("two different variables in botTokenEnv and appTokenEnv: Slack has a token of each kind")
        return self
