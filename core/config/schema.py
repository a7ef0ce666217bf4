"""The shape of the configuration file: every key, its type, its bounds and its meaning. Defaults come from `settings`.

Rules that need more than one key are in `checks`.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, create_model

from core.base.text import INTERVAL_RULE, RULE, duration_text
from core.config.blocks import (
    NAME_RULE,
    Argument,
    Block,
    Duration,
    Host,
    HostName,
    Keys,
    Name,
    Path_,
    Regex,
    Seconds,
    SocketName,
    ThreadBlock,
    TmuxSeconds,
    VariableName,
)
from core.config.settings import (
    EventLogSettings,
    FleetSettings,
    HarnessDeclaration,
    HarnessTrust,
    Limits,
    LoopSettings,
    Routing,
    ServiceSettings,
    Standing,
    TmuxSettings,
)
from core.model.session import Definition

_TMUX, _TRUST, _ROUTING, _STANDING = TmuxSettings(), HarnessTrust(), Routing(), Standing()
_LOOPS = LoopSettings()
_LIMITS, _EVENT_LOG, _HARNESS, _SERVICE = Limits(), EventLogSettings(), HarnessDeclaration("", ()), ServiceSettings()
_FLEET = FleetSettings()


class StateBlock(Block):
    """Where the-loop keeps its state."""

    root: Path_ | None = Field(
        default=None,
        description="The folder of all state; null: `$XDG_STATE_HOME/the-loop`, else `~/.local/state/the-loop`",
    )


class TrustBlock(Block):
    """What a harness may do without asking.

    Also: whether its first dialogs ("trust this folder?") are answered in advance, because a message that is typed into
    them would be lost.

    A session's own `harnessArgs` (`--permission-mode`, `--dangerously-skip-permissions`, `defaultMode` in their
    `--settings`) win over `permissionMode`. See docs/security.md for what each mode means.
    """

    enabled: bool = Field(
        _TRUST.enabled,
        description="Answer the harness's first dialogs in advance, by an entry in its settings",
    )
    accept_bypass_permissions: Literal["auto", "always", "never"] = Field(
        "auto", description="Accept the bypass-permissions dialog; auto: only if that mode is requested"
    )
    permission_mode: (
        Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "harness"] | None
    ) = Field(
        default=None,
        description="Permission mode with which Claude Code is started and resumed; `harness`: the-loop names no "
        "mode, and Claude Code chooses by its own settings; null: `default`, unless your own settings of Claude "
        "Code name a `defaultMode`",
    )


class TmuxBlock(Block):
    """tmux, and time limits."""

    socket_name: SocketName = Field(
        _TMUX.socket_name,
        description='The name for `tmux -L`; "" means your own server, which other programs can end',
    )
    harness_kill_grace_seconds: Seconds = Field(
        _TMUX.harness_kill_grace_seconds, description="Time between SIGTERM and SIGKILL when a session is stopped"
    )
    resume_probe_seconds: Seconds = Field(
        _TMUX.resume_probe_seconds,
        description="How long a resumed program must live to count as up, if it cannot show that it is ready",
    )
    start_timeout_seconds: Seconds = Field(
        _TMUX.start_timeout_seconds, description="How long a harness may take until it is ready for input"
    )
    resume_on_respawn: bool = Field(
        _TMUX.resume_on_respawn,
        description="Resume the conversation at the next start; false: always begin a new one",
    )
    remain_on_exit: bool = Field(
        _TMUX.remain_on_exit,
        description="Keep the pane of a harness that ended, so that its last output can be read",
    )
    command_timeout_seconds: TmuxSeconds = Field(
        _TMUX.command_timeout_seconds,
        description="How long tmux may take to answer; at least 2, because tmux's clock has a resolution of one second",
    )


class RoutingBlock(Block):
    """Which program runs, with what, and where."""

    default_harness: str = Field(
        _ROUTING.default_harness,
        description="`claude`, `codex`, `opencode`, `gemini`, `bundled`, one that a package brings, or a key of "
        "`harnesses` (`cursor` is known, but refused at a start)",
    )
    harness_args: dict[str, list[Argument]] = Field(
        default_factory=dict, description="Arguments for each harness; those that the-loop sets itself are refused"
    )
    spawn_workdir: Path_ = Field(_ROUTING.spawn_workdir, description="The folder of a session without a `cwd`")
    harness_trust: TrustBlock = Field(default_factory=TrustBlock)
    tmux: TmuxBlock = Field(default_factory=TmuxBlock)


class HarnessBlock(Block):
    """A terminal program of your own. `{id}` in `start` and `resume` is the conversation's id, chosen by the-loop."""

    start: list[Argument] = Field(
        min_length=1, description="The command and its arguments; they are not read by a shell"
    )
    resume: list[Argument] | None = Field(
        default=None, min_length=1, description="The command that resumes a conversation; null: it cannot"
    )
    ready: Regex | None = Field(
        default=None, description="What its screen shows when it is ready for input; null: unknown"
    )
    paste: Literal["auto", "bracketed", "plain"] = Field(
        "auto",
        description="plain: no markers of bracketed paste; a text of several lines is put into a file, and only a line "
        "that names the file is typed. bracketed: always markers. auto: like bracketed if tmux (3.7 and newer) shows "
        "that the program wants markers, else like plain",
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
        description="Keys that empty its input line, such as `C-u`: C-a to C-z, Escape, BSpace, Enter, Tab; null: none",
    )


class ChannelModel(Block):
    """One channel (a chat). The other keys belong to the channel; see below, or `the-loop config schema`."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = Field(default=False, description="Whether the service connects to it")


class IdleBlock(Block):
    """What happens to a session that has nothing to do."""

    stop_after: Duration | None = Field(
        default=None,
        description=f"Time without work after which it is stopped gracefully ({RULE}); null: never. Its thread is "
        "told first",
    )


class LoopBlock(Block):
    """A loop of the session. The service creates it, replaces it when it changes, and ends it when it is removed."""

    name: Name = Field(description=f"{NAME_RULE}; unique within the session")
    instruction: str = Field(description="What to do at each run; at most 4,000 characters")
    interval: str | None = Field(default=None, description=f"Time between its runs: {INTERVAL_RULE}")
    cron: str | None = Field(
        default=None,
        description="Cron expression (five fields, in quotes). If neither `interval` nor `cron` is set, the agent "
        "schedules each run",
    )
    time_zone: str | None = Field(
        default=None, description="The time zone of `cron`: an IANA name such as Europe/Berlin; null: UTC"
    )
    keep_alive: bool = Field(
        default=False,
        description="It has no age limit, and its session is restarted after a crash; needs `interval` or `cron`",
    )
    max_runs: int | None = Field(
        default=None, ge=1, le=1_000_000, description="It is complete after this number of runs; null: no limit"
    )


class SessionBlock(Block):
    """One standing session."""

    name: Name = Field(description=f"{NAME_RULE}; unique")
    description: str = Field(Definition.description, description="What it is for; lists show it")
    harness: str = Field(Definition.harness, description='"" means routing.defaultHarness')
    harness_args: list[Argument] | None = Field(
        default=None, description="null: routing.harnessArgs of the harness; []: none"
    )
    cwd: str = Field(Definition.cwd, description='The folder in which it works; "" means routing.spawnWorkdir')
    prompt: str | None = Field(
        default=Definition.prompt, description="Its brief (what it is to do); not together with promptFile"
    )
    prompt_file: Path_ | None = Field(default=Definition.prompt_file, description="File with its brief, read at start")
    auto_start: bool = Field(Definition.auto_start, description="Start it automatically")
    restart: Literal["never", "on-failure"] = Field(
        "never",
        description="on-failure: resume its conversation after a crash, at most limits.restartsPerHour times an hour",
    )
    idle: IdleBlock = Field(default_factory=IdleBlock)
    loops: list[LoopBlock] = Field(
        default_factory=list, description="Instructions that it gets again and again; at most loops.maxOpenPerSession"
    )


class StandingBlock(Block):
    """The declared standing sessions."""

    enabled: bool = Field(
        _STANDING.enabled,
        description="Start the sessions declared here automatically. A session made by `create` follows its own "
        "autoStart, and commands that name a session always work",
    )
    sessions: list[SessionBlock] = Field(default_factory=list, description="The sessions; each name once")


class LimitsBlock(Block):
    """Limits for each session."""

    queued_per_session: int = Field(
        _LIMITS.queued_per_session, ge=1, le=10_000, description="How many messages may wait"
    )
    message_expiry_minutes: float = Field(
        _LIMITS.message_expiry_minutes,
        gt=0,
        le=10_080,
        description="A message expires after this number of minutes if it waits because tmux does not answer or "
        "because somebody is typing",
    )
    restarts_per_hour: int = Field(
        _LIMITS.restarts_per_hour,
        ge=1,
        le=1000,
        description="Restarts after crashes; after that the session is held as failed",
    )
    approval_wait_seconds: float = Field(
        _LIMITS.approval_wait_seconds,
        ge=1,
        le=86_400,
        description="How long a permission request or a question can be answered in the thread. After that, only at "
        "the terminal",
    )
    retain_text_days: int = Field(
        _LIMITS.retain_text_days,
        ge=1,
        le=3650,
        description="Days for which messages, posts, requests and files are kept after they have ended",
    )


class LoopsBlock(Block):
    """How often loops may run, how old they become, and how many there may be."""

    min_interval: Duration = Field(
        duration_text(_LOOPS.min_interval), description="Minimum time between two runs of a loop"
    )
    max_interval: Duration = Field(duration_text(_LOOPS.max_interval), description="Maximum interval of a loop")
    max_age_days: int = Field(
        _LOOPS.max_age_days,
        ge=0,
        le=3650,
        description="An older loop runs once more and ends, except keep-alive loops; 0: no limit",
    )
    max_open_per_session: int = Field(
        _LOOPS.max_open_per_session, ge=1, le=100, description="How many loops a session may have that have not ended"
    )


class EventLogBlock(Block):
    """The event log, `<root>/local/events.jsonl`."""

    max_bytes: int = Field(_EVENT_LOG.max_bytes, ge=4096, description="Size at which a new file begins")
    keep: int = Field(_EVENT_LOG.keep, ge=0, le=1000, description="How many old files are kept")
    include_text: bool = Field(_EVENT_LOG.include_text, description="Also write what people and agents said")


class ServiceBlock(Block):
    """The service's HTTP host: its API, /metrics and /health. It is always at the Unix socket local/http.sock."""

    host: Host = Field(
        _SERVICE.host,
        description="Address or name to listen on, if there is a port; `status` warns of one that other machines can "
        "reach",
    )
    port: int | None = Field(
        default=_SERVICE.port,
        ge=0,
        le=65_535,
        description="TCP port, for browsers, Prometheus and chats that call the service; 0: a free one, which `status` "
        "shows; null: none",
    )
    token_env: VariableName = Field(
        _SERVICE.token_env,
        description="Variable that holds the token; if it is not set, one is made in local/api-token",
    )


class FleetBlock(Block):
    """Several machines whose sessions share one chat, by a database between them; see fleet.md."""

    enabled: bool = Field(_FLEET.enabled, description="Whether this machine is a host of a fleet")
    host: HostName = Field(_FLEET.host, description='Its name in the fleet; "": the name of the machine')
    gateway: bool = Field(
        _FLEET.gateway,
        description="Whether it may be the one host that speaks with the chats for all; it needs their tokens",
    )


class ConfigFile(Block):
    """The whole file. Every key may be left out."""

    state: StateBlock = Field(default_factory=StateBlock)
    routing: RoutingBlock = Field(default_factory=RoutingBlock)
    harnesses: dict[str, HarnessBlock] = Field(
        default_factory=dict,
        description="Terminal programs for which the-loop has no adapter, by a name that you choose",
    )
    channels: dict[str, ChannelModel] = Field(default_factory=dict, description="The chats")
    standing_sessions: StandingBlock = Field(default_factory=StandingBlock)
    limits: LimitsBlock = Field(default_factory=LimitsBlock)
    loops: LoopsBlock = Field(default_factory=LoopsBlock)
    event_log: EventLogBlock = Field(default_factory=EventLogBlock)
    service: ServiceBlock = Field(default_factory=ServiceBlock)
    fleet: FleetBlock = Field(default_factory=FleetBlock)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """Validate plain values. Raises pydantic.ValidationError."""
        return cls.model_validate(data)


def with_chats(threads: Mapping[str, type[ThreadBlock]]) -> type[ConfigFile]:
    """Return the whole file's model where a session has a block for each of these chats, by its kind."""
    blocks: dict[str, Any] = {
        kind: (model, Field(default_factory=model, alias=kind)) for kind, model in threads.items()
    }
    session = create_model("SessionBlock", __base__=SessionBlock, __doc__=SessionBlock.__doc__, **blocks)
    sessions: Any = list[session]
    field: Any = Field(default_factory=list, description=StandingBlock.model_fields["sessions"].description)
    standing = create_model(
        "StandingBlock", __base__=StandingBlock, __doc__=StandingBlock.__doc__, sessions=(sessions, field)
    )
    return create_model(
        "ConfigFile",
        __base__=ConfigFile,
        __doc__=ConfigFile.__doc__,
        standing_sessions=(standing, Field(default_factory=standing)),
    )
