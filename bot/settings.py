"""The block `channels.slack`: every key, what it may hold, what it means."""

import re
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, model_validator

from core.config.blocks import Block, Duration, ThreadBlock, matching
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

    mode: Literal["socket", "http", "poll", "off"] = Field(
        "socket",
        description="socket: Socket Mode; http: Slack calls the service at /channels/slack/events; poll: the threads "
        "are read at intervals, without commands and buttons; off: nothing is read, posts only",
    )
    interval_seconds: float = Field(30, ge=1, le=3600, description="For poll: seconds between two rounds")


TemplateName = Annotated[
    str, *matching("[a-z0-9][a-z0-9-]{0,29}", "1 to 30 of a-z, 0-9 and `-`, beginning with a letter or digit")
]
TaskChannel = Annotated[str, *matching("[CG][A-Z0-9]{2,}", "a channel's id such as C0123456789 (not its #name)")]


class TemplateBlock(Block):
    """What a mention of the bot in a channel starts."""

    name: TemplateName = Field(description="Begins the names of its sessions")
    channel: TaskChannel = Field(description="Id of the channel (C…) in which a mention with a task starts a session")
    harness: str = Field("", description='The agent program; "": routing.defaultHarness')
    root: Root = Field(description="The folder in which its sessions work")
    worktree: bool = Field(
        False,
        description="Each session works in a git worktree of its own, beside the folder, which must be a repository",
    )
    prompt: str = Field("", description="The brief of its sessions; the message is the task")
    lifetime: Duration | None = Field(None, description="After this span a session is stopped; null: it is not")
    role: Literal["operator", "member"] = Field("operator", description="Who may start a session by a mention")


class SlackSettings(Block):
    """The Slack channel."""

    enabled: bool = Field(False, description="Connect to Slack, and announce sessions that have a thread")
    bot_token_env: Variable = Field(
        "THE_LOOP_SLACK_BOT_TOKEN", description="Environment variable that holds the bot token (xoxb-…)"
    )
    app_token_env: Variable = Field(
        "THE_LOOP_SLACK_APP_TOKEN", description="Environment variable that holds the app-level token (xapp-…)"
    )
    api_url: ApiUrl = Field(
        SLACK_API, description="Address of the Web API: GovSlack's, or that of a workspace on loopback"
    )
    channel: ChannelId = Field("", description="Id of the channel where sessions are announced (C…)")
    signing_secret_env: Variable = Field(
        "THE_LOOP_SLACK_SIGNING_SECRET",
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
        120,
        ge=0,
        le=1_000_000,
        description="A reply that took more than this number of minutes to arrive needs confirmation",
    )
    aside_prefix: Aside = Field(
        ASIDE,
        description="A reply that begins with this is a note to colleagues: the agent does not get it, and nothing of "
        "it is kept; empty: only what begins with a mention of somebody is one",
    )

    def listed(self, member: str) -> bool:
        """Return whether a member is named in any list in any form, so that it is worth asking who that is."""
        return any(entry.rpartition(":")[2] == member for entry in self.everybody())

    def everybody(self) -> tuple[str, ...]:
        """Return whoever has a say, each once."""
        return tuple(dict.fromkeys((*self.authorized_users, *(self.approvers or ()), *self.operators)))

    def streams(self) -> bool:
        """Return whether turns are to be shown as they run: quiet shows no answers, and verbose has its own steps."""
        return self.stream and self.verbosity == "normal"

    verbosity: Literal["quiet", "normal", "verbose"] = Field(
        "normal",
        description="quiet: announcements, notes and questions; normal: also the agent's final answers; "
        "verbose: also the steps of each turn",
    )

    stream: bool = Field(
        True,
        description="With verbosity normal: show a turn that somebody asked for in its thread as it runs (the agent's "
        "plan, its tools, then the answer) in one message that grows; false: only the answer, once it is there",
    )

    @model_validator(mode="after")
    def _templates_apart(self) -> "SlackSettings":
        for key in ("name", "channel"):
            given = [getattr(template, key) for template in self.templates]
            if len(set(given)) < len(given):
                raise ValueError(f"templates of which no two have the same {key}")
        return self

    @model_validator(mode="after")
    def _two_variables(self) -> "SlackSettings":
        if len({self.bot_token_env, self.app_token_env, self.signing_secret_env}) < 3:
            raise ValueError(
                "three different variables in botTokenEnv, appTokenEnv and signingSecretEnv: each is another secret"
            )
        return self
