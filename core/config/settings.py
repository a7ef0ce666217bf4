"""The configuration as plain values with their defaults, for the rest of the product. Standard library only.

The defaults stand here and nowhere else; `schema` refers to them. `settings_from` builds the values from the *resolved*
form: a JSON-able mapping with the file's own key names, validated, with absolute paths. It also knows which environment
variables hold secrets.

These are named tuples, not dataclasses: to make a frozen dataclass costs a starting process six times as much (0.6 ms
against 0.1 ms each), and every command imports all of them.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from core.base.text import parse_duration
from core.model.session import ChatBinding, Definition, Idle, Restart, stated


class TmuxSettings(NamedTuple):
    """How tmux is addressed, and how long things may take (seconds)."""

    socket_name: str = "the-loop"  #: as given to `tmux -L`; "": the user's own server
    harness_kill_grace_seconds: float = 5.0
    resume_probe_seconds: float = 2.0
    start_timeout_seconds: float = 30.0
    resume_on_respawn: bool = True
    remain_on_exit: bool = True
    command_timeout_seconds: float = 5.0


class HarnessTrust(NamedTuple):
    """What a harness may do without asking, and whether its first dialogs are answered before it starts."""

    enabled: bool = True
    accept_bypass_permissions: str = "auto"  #: auto | always | never
    permission_mode: str | None = (
        None  #: a mode, or `harness`: it takes its own; None: `default`, unless its own settings name one
    )


class Routing(NamedTuple):
    """Which program runs, with what, where."""

    default_harness: str = "claude"
    harness_args: Mapping[str, tuple[str, ...]] = MappingProxyType({})  #: by harness
    spawn_workdir: str = "~"  #: absolute once loaded
    harness_trust: HarnessTrust = HarnessTrust()
    tmux: TmuxSettings = TmuxSettings()


class HarnessDeclaration(NamedTuple):
    """A terminal program that no adapter of ours knows, described by its operator."""

    key: str
    start: tuple[str, ...]
    resume: tuple[str, ...] | None = None  #: holds `{id}`; None: every start is a fresh conversation
    ready: str | None = None  #: regular expression of what its screen shows once it reads
    paste: str = "auto"  #: auto | bracketed | plain
    submit: str = "enter"
    settle_ms: int = 300  #: milliseconds between the text and its Enter
    clear: bytes | None = None  #: what empties its composer, as the terminal sends it


ASIDE = "(("  #: how a note to colleagues begins. Not with `/`: chats take what begins with that for a command


class ChannelBlock(NamedTuple):
    """One channel's block. Core reads `enabled`, `home` and `aside`; the channel reads all of it."""

    name: str
    enabled: bool = False
    raw: Mapping[str, Any] = MappingProxyType({})  #: as it stands in the file
    checked: Mapping[str, Any] | None = None  #: as the channel's model reads it; None: it is wrong, or not in the file

    @property
    def home(self) -> str:
        """Return where sessions are announced that name no channel of their own (`channel`); "" for nowhere."""
        found = self.raw.get("channel", "")
        return found if isinstance(found, str) else ""

    @property
    def aside(self) -> str:
        """Return what a note to colleagues begins with (`asidePrefix`); "" where none can be made so."""
        found = self.raw.get("asidePrefix", ASIDE)
        return found if isinstance(found, str) else ASIDE


class DeclaredLoop(NamedTuple):
    """A loop that a session is to have, as the file words it; `core.model.loop` understands it."""

    name: str
    instruction: str
    interval: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    keep_alive: bool = False
    max_runs: int | None = None


class Standing(NamedTuple):
    """The declared sessions; `enabled` says whether a boot starts any of them."""

    enabled: bool = False
    sessions: tuple[Definition, ...] = ()
    loops: Mapping[str, tuple[DeclaredLoop, ...]] = MappingProxyType({})  #: by session; one without any is left out

    def get(self, name: str) -> Definition | None:
        """Return the declared session of that name, or None."""
        return next((session for session in self.sessions if session.name == name), None)


class Limits(NamedTuple):
    """What one session may pile up."""

    queued_per_session: int = 100
    message_expiry_minutes: float = 60.0
    restarts_per_hour: int = 5
    approval_wait_seconds: float = 600.0
    retain_text_days: int = 14


class LoopSettings(NamedTuple):
    """How often loops may run, how old they become, and how many a session may have open."""

    min_interval: timedelta = timedelta(seconds=30)
    max_interval: timedelta = timedelta(days=7)
    max_age_days: int = 7  #: 0: they never become too old
    max_open_per_session: int = 5

    @property
    def max_age(self) -> timedelta | None:
        """How old an ordinary loop may become, None where it may be of any age."""
        return timedelta(days=self.max_age_days) if self.max_age_days else None


class EventLogSettings(NamedTuple):
    """Size at which the event log is rotated, how many old files stay, and whether texts are written."""

    max_bytes: int = 10_485_760
    keep: int = 5
    include_text: bool = False


class ServiceSettings(NamedTuple):
    """Where the service listens for HTTP besides its Unix socket, and which variable may hold its token."""

    host: str = "127.0.0.1"
    port: int | None = None  #: 0: one that is free; None: only the Unix socket
    token_env: str = "THE_LOOP_API_TOKEN"


class FleetSettings(NamedTuple):
    """Whether this machine is a host of a fleet, under which name, and whether it may speak for all of them."""

    enabled: bool = False
    host: str = ""  #: "": this machine's name
    gateway: bool = False  #: it may speak with the chats for all hosts

    @property
    def behind_gateway(self) -> bool:
        """Whether another host of the fleet speaks with the chats for this one, which so needs no tokens."""
        return self.enabled and not self.gateway


class Settings(NamedTuple):
    """The whole configuration. `source` is the file it came from; None: there is none, and all are defaults.

    `whole` False: the file cannot be used, and this is what could be read of it; nobody knows what it declares.
    """

    state_root: Path
    routing: Routing = Routing()
    harnesses: Mapping[str, HarnessDeclaration] = MappingProxyType({})
    channels: Mapping[str, ChannelBlock] = MappingProxyType({})
    standing: Standing = Standing()
    limits: Limits = Limits()
    loops: LoopSettings = LoopSettings()
    event_log: EventLogSettings = EventLogSettings()
    service: ServiceSettings = ServiceSettings()
    fleet: FleetSettings = FleetSettings()
    source: Path | None = None
    whole: bool = True

    def channel(self, name: str) -> ChannelBlock:
        """Return the channel's block; one that is not in the file is disabled and empty."""
        return self.channels.get(name) or ChannelBlock(name)

    def chat_of(self, definition: Definition) -> str:
        """Return the kind of chat in which the session has a thread; "" where it has none, or that chat is disabled."""
        kind = definition.chat_kind
        return kind if kind and self.channel(kind).enabled else ""


_CONTROL_KEYS = {"Escape": b"\x1b", "BSpace": b"\x7f", "Enter": b"\r", "Tab": b"\t"}


def key_bytes(names: str) -> bytes:
    """Return what a terminal sends for `C-a`…`C-z`, `Escape`, `BSpace`, `Enter`, `Tab`, several parted by spaces.

    Raises ValueError.
    """
    sent = b""
    for name in names.split():
        if name in _CONTROL_KEYS:
            sent += _CONTROL_KEYS[name]
        elif len(name) == 3 and name.startswith("C-") and "a" <= name[2] <= "z":
            sent += bytes([ord(name[2]) - ord("a") + 1])
        else:
            raise ValueError(f"{name!r} is no key: use C-a to C-z, Escape, BSpace, Enter or Tab, parted by spaces")
    return sent


def settings_from(resolved: Mapping[str, Any], source: Path | None) -> Settings:
    """Build the settings from a complete resolved form; see the module's docstring. Raises KeyError on any other."""
    routing, tmux, trust = resolved["routing"], resolved["routing"]["tmux"], resolved["routing"]["harnessTrust"]
    standing, limits, log = resolved["standingSessions"], resolved["limits"], resolved["eventLog"]
    service, loops, fleet = resolved["service"], resolved["loops"], resolved["fleet"]
    checked = resolved.get("checked", {})
    return Settings(
        state_root=Path(resolved["state"]["root"]),
        routing=Routing(
            default_harness=routing["defaultHarness"],
            harness_args={key: tuple(args) for key, args in routing["harnessArgs"].items()},
            spawn_workdir=routing["spawnWorkdir"],
            harness_trust=HarnessTrust(trust["enabled"], trust["acceptBypassPermissions"], trust["permissionMode"]),
            tmux=tmux_from(tmux),
        ),
        harnesses={key: _harness(key, block) for key, block in resolved["harnesses"].items()},
        channels={
            name: ChannelBlock(name, raw["enabled"], raw, checked.get(name))
            for name, raw in resolved["channels"].items()
        },
        standing=Standing(
            standing["enabled"],
            tuple(_definition(session) for session in standing["sessions"]),
            {session["name"]: _declared_loops(session) for session in standing["sessions"] if session["loops"]},
        ),
        limits=Limits(
            limits["queuedPerSession"],
            limits["messageExpiryMinutes"],
            limits["restartsPerHour"],
            limits["approvalWaitSeconds"],
            limits["retainTextDays"],
        ),
        loops=LoopSettings(
            parse_duration(loops["minInterval"]),
            parse_duration(loops["maxInterval"]),
            loops["maxAgeDays"],
            loops["maxOpenPerSession"],
        ),
        event_log=EventLogSettings(log["maxBytes"], log["keep"], log["includeText"]),
        service=ServiceSettings(service["host"], service["port"], service["tokenEnv"]),
        fleet=FleetSettings(fleet["enabled"], fleet["host"], fleet["gateway"]),
        source=source,
    )


def tmux_from(block: Mapping[str, Any]) -> TmuxSettings:
    """Build the tmux settings from their resolved block; a key that is not there keeps its default."""
    given = {
        name: block[key]
        for name, key in (
            ("socket_name", "socketName"),
            ("harness_kill_grace_seconds", "harnessKillGraceSeconds"),
            ("resume_probe_seconds", "resumeProbeSeconds"),
            ("start_timeout_seconds", "startTimeoutSeconds"),
            ("resume_on_respawn", "resumeOnRespawn"),
            ("remain_on_exit", "remainOnExit"),
            ("command_timeout_seconds", "commandTimeoutSeconds"),
        )
        if key in block
    }
    return TmuxSettings(**given)


def _harness(key: str, block: Mapping[str, Any]) -> HarnessDeclaration:
    return HarnessDeclaration(
        key=key,
        start=tuple(block["start"]),
        resume=None if block["resume"] is None else tuple(block["resume"]),
        ready=block["ready"],
        paste=block["paste"],
        submit=block["submit"],
        settle_ms=block["settleMs"],
        clear=None if block["clear"] is None else key_bytes(block["clear"]),
    )


def _definition(block: Mapping[str, Any]) -> Definition:
    return Definition(
        name=block["name"],
        description=block["description"],
        harness=block["harness"],
        harness_args=None if block["harnessArgs"] is None else tuple(block["harnessArgs"]),
        cwd=block["cwd"],
        prompt=block["prompt"],
        prompt_file=block["promptFile"],
        auto_start=block["autoStart"],
        restart=Restart(block["restart"]),
        idle=Idle(block["idle"]["stopAfter"] and parse_duration(block["idle"]["stopAfter"])),
        chat=stated({kind: _chat(chat) for kind, chat in block.items() if _is_chat(chat)}),
    )


def _is_chat(value: Any) -> bool:
    """Return whether a session's value is its block for a chat (`ThreadBlock`), whose key is the chat's kind."""
    return isinstance(value, Mapping) and "authorizedUsers" in value


def _chat(block: Mapping[str, Any]) -> ChatBinding:
    users = block["authorizedUsers"]
    return ChatBinding(block["enabled"], block["channel"], None if users is None else tuple(users))


def _declared_loops(session: Mapping[str, Any]) -> tuple[DeclaredLoop, ...]:
    return tuple(
        DeclaredLoop(
            name=block["name"],
            instruction=block["instruction"],
            interval=block["interval"],
            cron=block["cron"],
            time_zone=block["timeZone"],
            keep_alive=block["keepAlive"],
            max_runs=block["maxRuns"],
        )
        for block in session["loops"]
    )


_FOR_AGENTS = frozenset({"THE_LOOP_INSTANCE", "THE_LOOP_CONFIG", "THE_LOOP_MCP_TOKEN_FILE"})


def secret_variables(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that no agent may see.

    Those that the channels' `…Env` keys and service.tokenEnv name, and every other variable of ours: the defaults of
    the channels' keys are their own business, and all of them begin like this.
    """
    named = {name for block in settings.channels.values() for name in _env_names(block.raw)}
    named.add(settings.service.token_env)
    ours = {name for name in environ if name.startswith("THE_LOOP_") and name not in _FOR_AGENTS}
    return tuple(sorted(name for name in named | ours if name.isascii() and name.isidentifier()))


def _env_names(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if key.endswith("Env") and isinstance(item, str):
            yield item
        else:
            yield from _env_names(item)
