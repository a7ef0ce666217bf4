"""The blocks of Slack in the configuration: every key, what it may hold, what it means. The defaults are those of
bot.settings. Only a file that changed since it was last valid is read by these models, since pydantic costs 10 MiB.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from bot.settings import SLACK_API, Mode, Shown, SlackSettings, TemplateSettings, Whose, on_loopback
from core.config.blocks import Block, Duration, ThreadBlock, matching

_DEFAULT = SlackSettings()
_TEMPLATE = TemplateSettings("", "", "")


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


def _root(text: str) -> str:
    if not text.startswith(("/", "~/")) or ".." in text.split("/") or not text.isprintable():
        raise ValueError("an absolute path, or one that begins with ~/, without `..`")
    return text


ChannelId = Annotated[
    str, *matching("(?:[CG][A-Z0-9]{2,})?", "a channel's id such as C0123456789 (not its #name), or empty")
]
MemberId = Annotated[
    str,
    *matching(
        "(?:[TE][A-Z0-9]{2,}:)?[UW][A-Z0-9]{2,}",
        "a member id such as U0123456789 (in Slack: the person's profile, then `Copy member ID`; a guest, or somebody "
        "of another organization, with the team's id: T0123456789:U0123456789); names are not accepted, because anyone "
        "can choose another's name",
    ),
]
Variable = Annotated[str, AfterValidator(_variable)]
Aside = Annotated[str, *matching("[^\\s`]{0,20}", "up to 20 characters without blanks and backticks, or empty")]
Root = Annotated[str, AfterValidator(_root)]
ApiUrl = Annotated[str, AfterValidator(_api_url)]


class SlackThread(ThreadBlock):
    """The session's thread in Slack."""

    channel: ChannelId = Field("", description='Channel id (`C…`); "" means channels.slack.channel')
    authorized_users: list[MemberId] | None = Field(
        default=None,
        description="Which of channels.slack.authorizedUsers may steer this session; null: all of them; []: nobody",
    )


class ReadBlock(Block):
    """How replies are read."""

    mode: Mode = Field(
        _DEFAULT.read.mode,
        description="socket: Socket Mode; http: Slack calls the service at /channels/slack/events; poll: the threads "
        "are read at intervals, without commands and buttons; off: nothing is read, posts only",
    )
    interval_seconds: float = Field(
        _DEFAULT.read.interval_seconds, ge=1, le=3600, description="For poll: seconds between two rounds"
    )


TemplateName = Annotated[
    str, *matching("[a-z0-9][a-z0-9-]{0,29}", "1 to 30 of a-z, 0-9 and `-`, beginning with a letter or digit")
]
TaskChannel = Annotated[str, *matching("[CG][A-Z0-9]{2,}", "a channel's id such as C0123456789 (not its #name)")]


class TemplateBlock(Block):
    """What a mention of the bot in a channel starts."""

    name: TemplateName = Field(description="Begins the names of its sessions")
    channel: TaskChannel = Field(description="Id of the channel (C…) in which a mention with a task starts a session")
    harness: str = Field(_TEMPLATE.harness, description='The agent program; "": routing.defaultHarness')
    root: Root = Field(description="The folder in which its sessions work")
    worktree: bool = Field(
        _TEMPLATE.worktree,
        description="Each session works in a git worktree of its own, beside the folder, which must be a repository",
    )
    prompt: str = Field(_TEMPLATE.prompt, description="The brief of its sessions; the message is the task")
    lifetime: Duration | None = Field(
        _TEMPLATE.lifetime, description="After this span a session is stopped; null: it is not"
    )
    role: Whose = Field(_TEMPLATE.role, description="Who may start a session by a mention")


class SlackBlock(Block):
    """The Slack channel."""

    enabled: bool = Field(_DEFAULT.enabled, description="Connect to Slack, and announce sessions that have a thread")
    bot_token_env: Variable = Field(
        _DEFAULT.bot_token_env, description="Environment variable that holds the bot token (xoxb-…)"
    )
    app_token_env: Variable = Field(
        _DEFAULT.app_token_env, description="Environment variable that holds the app-level token (xapp-…)"
    )
    api_url: ApiUrl = Field(
        _DEFAULT.api_url, description="Address of the Web API: GovSlack's, or that of a workspace on loopback"
    )
    channel: ChannelId = Field(_DEFAULT.channel, description="Id of the channel where sessions are announced (C…)")
    signing_secret_env: Variable = Field(
        _DEFAULT.signing_secret_env,
        description="Environment variable that holds the signing secret, which read.mode http needs",
    )
    authorized_users: list[MemberId] = Field(
        default_factory=list, description="Member ids of those who may steer sessions from Slack; empty: nobody"
    )
    approvers: list[MemberId] | None = Field(
        default=None,
        description="Member ids of those who may answer permission requests and questions; null: authorizedUsers",
    )
    operators: list[MemberId] = Field(
        default_factory=list,
        description="Member ids of those who may also start, stop and restart sessions from Slack; also members",
    )
    roots: list[Root] = Field(
        default_factory=list,
        description="Folders in which, and below which, operators may create sessions by `/the-loop create`; each is "
        "absolute or begins with ~/; empty: nobody creates any from Slack",
    )
    templates: list[TemplateBlock] = Field(
        default_factory=list,
        description="Sessions that a mention of the bot starts: in these channels, from these templates; empty: none",
    )
    read: ReadBlock = Field(default_factory=ReadBlock)
    confirm_older_than_minutes: float = Field(
        _DEFAULT.confirm_older_than_minutes,
        ge=0,
        le=1_000_000,
        description="A reply that took more than this number of minutes to arrive needs confirmation",
    )
    aside_prefix: Aside = Field(
        _DEFAULT.aside_prefix,
        description="A reply that begins with this is a note to colleagues: the agent does not get it, and nothing of "
        "it is kept; empty: only what begins with a mention of somebody is one",
    )
    verbosity: Shown = Field(
        _DEFAULT.verbosity,
        description="quiet: announcements, notes and questions; normal: also the agent's final answers; "
        "verbose: also the steps of each turn",
    )
    stream: bool = Field(
        _DEFAULT.stream,
        description="With verbosity normal: show a turn that somebody asked for in its thread as it runs (the agent's "
        "plan, its tools, then the answer) in one message that grows; false: only the answer, once it is there",
    )

    @model_validator(mode="after")
    def _templates_apart(self) -> "SlackBlock":
        for key in ("name", "channel"):
            given = [getattr(template, key) for template in self.templates]
            if len(set(given)) < len(given):
                raise ValueError(f"templates of which no two have the same {key}")
        return self

    @model_validator(mode="after")
    def _two_variables(self) -> "SlackBlock":
        if len({self.bot_token_env, self.app_token_env, self.signing_secret_env}) < 3:
            raise ValueError(
                "three different variables in botTokenEnv, appTokenEnv and signingSecretEnv: each is another secret"
            )
        return self
