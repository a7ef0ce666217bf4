"""The shape of the configuration file: every key, its type, its bounds and its meaning. Defaults come from `settings`.

Rules that need more than one key are in `checks`.
"""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from core.base.text import INTERVAL_RULE, RULE, duration_text
from core.config.blocks import (
    NAME_RULE,
    Argument,
    Block,
    ChannelId,
    Duration,
    Host,
    Keys,
    MemberId,
    Name,
    Path_,
    Regex,
    Seconds,
    SocketName,
    TmuxSeconds,
    VariableName,
)
from core.config.settings import (
    EventLogSettings,
    HarnessDeclaration,
    HarnessTrust,
    Limits,
    LoopSettings,
    Routing,
    ServiceSettings,
    Standing,
    TmuxSettings,
)
from core.model.session import Definition, SlackBinding

_TMUX, _TRUST, _ROUTING, _STANDING = TmuxSettings(), HarnessTrust(), Routing(), Standing()
_LOOPS = LoopSettings()
_LIMITS, _EVENT_LOG, _HARNESS, _SERVICE = Limits(), EventLogSettings(), HarnessDeclaration("", ()), ServiceSettings()


class StateBlock(Block):
    """Where the-loop keeps what it knows."""

    root: Path_ | None = Field(
        default=None,
        description="Folder of all state; null: `$XDG_STATE_HOME/the-loop`, else `~/.local/state/the-loop`",
    )


class TrustBlock(Block):
    """What a harness may do without asking, and its first dialogs (trust this folder), which would swallow a message.

    What a session's own `harnessArgs` name (`--permission-mode`, `--dangerously-skip-permissions`, `defaultMode` in
    their `--settings`) comes before `permissionMode`; see docs/security.md for what each mode means.
    """

    enabled: bool = Field(_TRUST.enabled, description="Answer them in the harness's settings before it starts")
    accept_bypass_permissions: Literal["auto", "always", "never"] = Field(
        "auto", description="Accept the bypass-permissions dialog: auto does where that mode was asked for"
    )
    permission_mode: (
        Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "harness"] | None
    ) = Field(
        default=None,
        description="Permission mode that Claude Code is started and resumed with; `harness`: none is named, and it "
        "takes its own; null: `default`, unless your own settings of Claude Code name a `defaultMode`",
    )


class TmuxBlock(Block):
    """tmux, and how long things may take."""

    socket_name: SocketName = Field(
        _TMUX.socket_name,
        description='As given to `tmux -L`; "" means your own server, the weaker choice',
    )
    harness_kill_grace_seconds: Seconds = Field(
        _TMUX.harness_kill_grace_seconds, description="From SIGTERM to SIGKILL when a session is stopped"
    )
    resume_probe_seconds: Seconds = Field(
        _TMUX.resume_probe_seconds,
        description="Least life of a resumed pane whose harness has no sign of being ready",
    )
    start_timeout_seconds: Seconds = Field(
        _TMUX.start_timeout_seconds, description="How long a harness may take until it reads"
    )
    resume_on_respawn: bool = Field(
        _TMUX.resume_on_respawn,
        description="Resume the conversation at the next start; false: always a fresh one",
    )
    remain_on_exit: bool = Field(
        _TMUX.remain_on_exit,
        description="Keep the pane of a harness that ended, so that its last words can be read",
    )
    command_timeout_seconds: TmuxSeconds = Field(
        _TMUX.command_timeout_seconds,
        description="How long tmux may take to answer; its own clock counts whole seconds, so not below 2",
    )


class RoutingBlock(Block):
    """Which program runs, with what, and where."""

    default_harness: str = Field(
        _ROUTING.default_harness, description="`claude`, `cursor`, `bundled`, or a key of `harnesses`"
    )
    harness_args: dict[str, list[Argument]] = Field(
        default_factory=dict, description="Arguments by harness; those that the-loop gives itself are refused"
    )
    spawn_workdir: Path_ = Field(_ROUTING.spawn_workdir, description="Folder of a session that names none")
    harness_trust: TrustBlock = Field(default_factory=TrustBlock)
    tmux: TmuxBlock = Field(default_factory=TmuxBlock)


class HarnessBlock(Block):
    """A terminal program of your own. `{id}` in `start` and `resume` is the conversation's id, chosen by the-loop."""

    start: list[Argument] = Field(min_length=1, description="The command and its arguments; no shell reads them")
    resume: list[Argument] | None = Field(
        default=None, min_length=1, description="The same to take a conversation up; null: never"
    )
    ready: Regex | None = Field(default=None, description="What its screen shows once it reads; null: unknown")
    paste: Literal["auto", "bracketed", "plain"] = Field(
        "auto",
        description="plain: no markers of bracketed paste, and several lines go by file; bracketed: markers; auto: "
        "markers where tmux (3.7 and newer) tells that the program has asked for them, else as plain",
    )
    submit: Literal["enter"] = Field("enter", description="What sends the text")
    settle_ms: int = Field(
        _HARNESS.settle_ms,
        ge=0,
        le=10_000,
        description="Milliseconds between the text and its Enter; 0: both in one write",
    )
    clear: Keys | None = Field(
        default=None,
        description="Keys that empty its composer, such as `C-u`: C-a to C-z, Escape, BSpace, Enter, Tab; null: none",
    )


class ChannelModel(Block):
    """One channel. The-loop's core reads `enabled`; the other keys belong to the channel (`the-loop config schema`)."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = Field(default=False, description="Whether the service connects to it")


class SlackBlock(Block):
    """The session's thread."""

    enabled: bool = Field(SlackBinding.enabled, description="Whether the session has a thread")
    channel: ChannelId = Field(SlackBinding.channel, description='Channel id (`C…`); "" means channels.slack.channel')
    authorized_users: list[MemberId] | None = Field(
        default=None,
        description="Who of channels.slack.authorizedUsers may steer this session; null: all of them; []: nobody",
    )


class IdleBlock(Block):
    """What happens to the session while it does nothing."""

    stop_after: Duration | None = Field(
        default=None,
        description=f"Stop it gracefully once it was idle for so long, which is announced first ({RULE}); null: never",
    )


class LoopBlock(Block):
    """A loop that the session is to have. The service makes it, replaces it where it changes, ends it where it goes."""

    name: Name = Field(description=f"{NAME_RULE}; unique within the session")
    instruction: str = Field(description="What is to be done at each run; at most 4,000 characters")
    interval: str | None = Field(default=None, description=f"How far apart its runs are: {INTERVAL_RULE}")
    cron: str | None = Field(
        default=None,
        description="Five fields, in quotes, instead of an interval; neither: its agent names each run",
    )
    time_zone: str | None = Field(default=None, description="Of `cron`: an IANA name such as Europe/Berlin; null: UTC")
    keep_alive: bool = Field(
        default=False,
        description="It never becomes too old, and its session is brought back after a crash; needs a cadence",
    )
    max_runs: int | None = Field(
        default=None, ge=1, le=1_000_000, description="It is complete after so many runs; null: no limit"
    )


class SessionBlock(Block):
    """One standing session."""

    name: Name = Field(description=f"{NAME_RULE}; unique")
    description: str = Field(Definition.description, description="For people")
    harness: str = Field(Definition.harness, description='"" means routing.defaultHarness')
    harness_args: list[Argument] | None = Field(
        default=None, description="null: routing.harnessArgs of the harness; []: none"
    )
    cwd: str = Field(Definition.cwd, description='The folder it works in; "" means routing.spawnWorkdir')
    prompt: str | None = Field(default=Definition.prompt, description="Its brief; not together with promptFile")
    prompt_file: Path_ | None = Field(default=Definition.prompt_file, description="File with its brief, read at start")
    auto_start: bool = Field(Definition.auto_start, description="Whether a boot starts it")
    restart: Literal["never", "on-failure"] = Field(
        "never", description="on-failure: after a crash its conversation is resumed, within limits.restartsPerHour"
    )
    idle: IdleBlock = Field(default_factory=IdleBlock)
    slack: SlackBlock = Field(default_factory=SlackBlock)
    loops: list[LoopBlock] = Field(
        default_factory=list, description="What it is prompted with again and again; at most loops.maxOpenPerSession"
    )


class StandingBlock(Block):
    """The declared standing sessions."""

    enabled: bool = Field(
        _STANDING.enabled,
        description="Whether a boot starts the sessions declared here; one that `create` made goes by its own "
        "autoStart, and verbs that name a session always work",
    )
    sessions: list[SessionBlock] = Field(default_factory=list, description="The sessions, each with a name of its own")


class LimitsBlock(Block):
    """What one session may pile up."""

    queued_per_session: int = Field(_LIMITS.queued_per_session, ge=1, le=10_000, description="Messages that wait")
    message_expiry_minutes: float = Field(
        _LIMITS.message_expiry_minutes,
        gt=0,
        le=10_080,
        description="After this a message that waits for tmux or for a person's typing expires",
    )
    restarts_per_hour: int = Field(
        _LIMITS.restarts_per_hour, ge=1, le=1000, description="Restarts after crashes; then it is held as failed"
    )
    approval_wait_seconds: float = Field(
        _LIMITS.approval_wait_seconds,
        ge=1,
        le=86_400,
        description="How long a permission request or a question can be answered in its thread, not the terminal alone",
    )
    retain_text_days: int = Field(
        _LIMITS.retain_text_days,
        ge=1,
        le=3650,
        description="How long messages, posts, requests and files are kept once they are over",
    )


class LoopsBlock(Block):
    """How often loops may run, how old they become, and how many there may be."""

    min_interval: Duration = Field(
        duration_text(_LOOPS.min_interval), description="How close two runs of a loop may be, at least"
    )
    max_interval: Duration = Field(
        duration_text(_LOOPS.max_interval), description="How far apart two runs of a loop with an interval may be"
    )
    max_age_days: int = Field(
        _LOOPS.max_age_days,
        ge=0,
        le=3650,
        description="An older loop runs once more and ends, unless it is a keep-alive one; 0: never",
    )
    max_open_per_session: int = Field(
        _LOOPS.max_open_per_session, ge=1, le=100, description="Loops of a session that have not ended"
    )


class EventLogBlock(Block):
    """`<root>/local/events.jsonl`."""

    max_bytes: int = Field(_EVENT_LOG.max_bytes, ge=4096, description="Size at which a new file is begun")
    keep: int = Field(_EVENT_LOG.keep, ge=0, le=1000, description="How many old files stay")
    include_text: bool = Field(_EVENT_LOG.include_text, description="Write what people and agents said, too")


class ServiceBlock(Block):
    """The service's HTTP host: /health and /metrics."""

    host: Host = Field(
        _SERVICE.host,
        description="Address or name to listen on; one that is not of this machine alone is warned of by `status`",
    )
    port: int = Field(_SERVICE.port, ge=0, le=65_535, description="TCP port; 0: a free one, which `status` names")
    token_env: VariableName = Field(
        _SERVICE.token_env,
        description="Variable that holds the token; where it is not set one is made, in local/api-token",
    )


class ConfigFile(Block):
    """The whole file. Every key may be left out."""

    state: StateBlock = Field(default_factory=StateBlock)
    routing: RoutingBlock = Field(default_factory=RoutingBlock)
    harnesses: dict[str, HarnessBlock] = Field(
        default_factory=dict, description="Terminal programs that the-loop has no adapter for, by a name of your own"
    )
    channels: dict[str, ChannelModel] = Field(default_factory=dict, description="Where sessions are spoken with")
    standing_sessions: StandingBlock = Field(default_factory=StandingBlock)
    limits: LimitsBlock = Field(default_factory=LimitsBlock)
    loops: LoopsBlock = Field(default_factory=LoopsBlock)
    event_log: EventLogBlock = Field(default_factory=EventLogBlock)
    service: ServiceBlock = Field(default_factory=ServiceBlock)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """Validate plain values. Raises pydantic.ValidationError."""
        return cls.model_validate(data)
