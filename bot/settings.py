"""The block `channels.slack` as plain values with their defaults, for the rest of the package. Standard library only.

The models that read the file are in `bot.schema`; their defaults are those that stand here.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from core.config.settings import ASIDE

SLACK_API = "https://slack.com/api/"
PRESSES = ("socket", "http")  #: the modes of reading in which buttons and commands arrive
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def url_parts(url: str) -> SplitResult:
    """Return the parts of a URL that somebody else wrote; one that cannot be read leads nowhere."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def on_loopback(url: str) -> bool:
    """Return whether the URL leads to this machine itself."""
    return (url_parts(url).hostname or "") in _LOOPBACK


Mode = Literal["socket", "http", "poll", "off"]
Whose = Literal["operator", "member"]
Shown = Literal["quiet", "normal", "verbose"]


class ReadSettings(NamedTuple):
    """How replies are read."""

    mode: Mode = "socket"
    interval_seconds: float = 30


class TemplateSettings(NamedTuple):
    """What a mention of the bot in a channel starts."""

    name: str
    channel: str
    root: str
    harness: str = ""
    worktree: bool = False
    prompt: str = ""
    lifetime: str | None = None  #: a span such as 8h; None: without end
    role: Whose = "operator"


class SlackSettings(NamedTuple):
    """The Slack channel. What each key means: `bot.schema.SlackBlock`."""

    enabled: bool = False
    bot_token_env: str = "THE_LOOP_SLACK_BOT_TOKEN"
    app_token_env: str = "THE_LOOP_SLACK_APP_TOKEN"
    api_url: str = SLACK_API
    channel: str = ""
    signing_secret_env: str = "THE_LOOP_SLACK_SIGNING_SECRET"
    authorized_users: tuple[str, ...] = ()
    approvers: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    templates: tuple[TemplateSettings, ...] = ()
    read: ReadSettings = ReadSettings()
    confirm_older_than_minutes: float = 120
    aside_prefix: str = ASIDE
    verbosity: Shown = "normal"
    stream: bool = True

    @classmethod
    def of(cls, block: Mapping[str, Any]) -> "SlackSettings":
        """Return what the checked block says, by the file's own names; a key that is missing has its default."""
        given = _fields(block)
        given["read"] = ReadSettings(**_fields(block.get("read", {})))
        given["templates"] = tuple(TemplateSettings(**_fields(one)) for one in block.get("templates", ()))
        return cls(**given)

    def listed(self, member: str) -> bool:
        """Return whether a member is named in any list in any form, so that it is worth asking who that is."""
        return any(entry.rpartition(":")[2] == member for entry in self.everybody())

    def everybody(self) -> tuple[str, ...]:
        """Return whoever has a say, each once."""
        return tuple(dict.fromkeys((*self.authorized_users, *(self.approvers or ()), *self.operators)))

    def streams(self) -> bool:
        """Return whether turns are to be shown as they run: quiet shows no answers, and verbose has its own steps."""
        return self.stream and self.verbosity == "normal"


def _fields(block: Mapping[str, Any]) -> dict[str, Any]:
    return {
        re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): tuple(value) if isinstance(value, list) else value
        for key, value in block.items()
    }
