"""What a session is, what we know of it, and the phases a record passes through. No I/O."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from core.values import dataclass, field, replace


@dataclass(frozen=True)
class SlackBinding:
    """Whether the session has a thread, and in which channel ("" means the configured one)."""

    enabled: bool = False
    channel: str = ""
    authorized_users: tuple[str, ...] | None = None  #: narrows the channel's list; None: no list of its own; (): nobody


class Restart(Enum):
    """What happens after a crash: a death by signal or with a non-zero exit that nobody asked for."""

    NEVER = "never"
    ON_FAILURE = "on-failure"  #: resumed, after a pause that grows, within limits.restartsPerHour


@dataclass(frozen=True)
class Idle:
    """What happens to a session that does nothing."""

    stop_after: timedelta | None = None  #: None: it runs on for ever


@dataclass(frozen=True)
class Definition:
    """What a session is, whether the configuration declares it or its record carries it."""

    name: str
    description: str = ""
    harness: str = ""  #: "" means routing.defaultHarness
    harness_args: tuple[str, ...] | None = None  #: None: routing.harnessArgs of the harness; (): none at all
    cwd: str = ""  #: absolute once loaded; "" means routing.spawnWorkdir
    prompt: str | None = None
    prompt_file: str | None = None
    auto_start: bool = True
    slack: SlackBinding = field(default_factory=SlackBinding)
    restart: Restart = Restart.NEVER
    idle: Idle = field(default_factory=Idle)


class Status(Enum):
    """The intent: what people want of the session."""

    RUNNING = "running"
    STOPPED = "stopped"


class HoldKind(Enum):
    """A durable mark that no sweep weakens."""

    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Hold:
    """Why a session is held, by whom (`cli:ann`, `slack:U1`, `supervisor`), and since when (UTC)."""

    kind: HoldKind
    by: str
    reason: str
    at: datetime
    policy: str = "hard"  #: soft | hard


@dataclass(frozen=True)
class Left:
    """A conversation of the session in whose place another was begun."""

    id: str
    harness: str  #: whose conversation it is
    reason: str  #: why it was not taken up, or how it was left
    at: datetime  #: when the other one was begun (UTC)


@dataclass(frozen=True)
class Fresh:
    """The latest pane's conversation for as long as it has had no turn, as far as anybody knows."""

    id: str | None  #: None: its harness has no ids
    returns_to: str | None = None  #: in the record's history: what a start takes up if this one has had no turn by then


@dataclass(frozen=True)
class LastExit:
    """How an instance ended; None where tmux lost it."""

    status: int | None
    signal: int | None


class Phase(Enum):
    """Where a record stands between intent and result. Each value says what is true in it."""

    SETTLED = "settled"  #: nothing is under way
    CREATING = "creating"  #: first start of a created session; without a live pane reconcile removes the record
    STARTING = "starting"  #: recorded, tmux may or may not have been asked; reconcile adopts by tag or clears
    STOPPING = "stopping"  #: mark committed, the harness may still live; reconcile finishes
    DELETING = "deleting"  #: the name is free only when all is gone; reconcile finishes


class SessionEvent(Enum):
    """What moves a record from phase to phase."""

    START = "start"
    READY = "ready"  #: the pane lives, or is known not to: the start is over
    STOP = "stop"
    STOPPED = "stopped"
    DELETE = "delete"


TRANSITIONS: Mapping[Phase, Mapping[SessionEvent, Phase]] = {
    Phase.SETTLED: {
        SessionEvent.START: Phase.STARTING,
        SessionEvent.STOP: Phase.STOPPING,
        SessionEvent.DELETE: Phase.DELETING,
    },
    Phase.CREATING: {
        SessionEvent.START: Phase.CREATING,
        SessionEvent.READY: Phase.SETTLED,
        SessionEvent.STOP: Phase.STOPPING,
        SessionEvent.DELETE: Phase.DELETING,
    },
    Phase.STARTING: {
        SessionEvent.START: Phase.STARTING,
        SessionEvent.READY: Phase.SETTLED,
        SessionEvent.STOP: Phase.STOPPING,
        SessionEvent.DELETE: Phase.DELETING,
    },
    Phase.STOPPING: {
        SessionEvent.STOP: Phase.STOPPING,
        SessionEvent.STOPPED: Phase.SETTLED,
        SessionEvent.DELETE: Phase.DELETING,
    },
    Phase.DELETING: {SessionEvent.DELETE: Phase.DELETING},
}


@dataclass(frozen=True)
class SessionRecord:
    """What we know of a session: one file. `extra` holds fields of newer versions and survives a rewrite."""

    name: str
    uid: str
    definition: Definition
    created_at: datetime
    version: int = 1
    generation: int = 1  #: raised by `stop NAME` and delete only
    instance_id: str | None = None  #: the latest spawned pane; None: never spawned
    harness_session_id: str | None = None  #: the session's conversation, which a start takes up
    fresh: Fresh | None = None  #: what the latest pane is in, until that has had a turn and is the session's
    history: tuple[Left, ...] = ()  #: oldest first
    harness_in_use: str = ""  #: of the latest pane, whose definition may leave it to a default; "": not known
    status: Status = Status.STOPPED
    phase: Phase = Phase.SETTLED
    hold: Hold | None = None
    started_at: datetime | None = None
    last_message_at: datetime | None = None
    slack_channel: str | None = None
    slack_thread: str | None = None
    last_exit: LastExit | None = None
    declared: bool = False  #: the configuration declared it when it was last started
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def conversation(self) -> str | None:
        """Return the id of the conversation that the latest pane is in."""
        return self.harness_session_id if self.fresh is None else self.fresh.id

    def moved(self, event: SessionEvent) -> "SessionRecord":
        """Return the record in the phase that follows. Raises ValueError where the table has no such step."""
        following = TRANSITIONS[self.phase].get(event)
        if following is None:
            raise ValueError(f"{self.name}: no step {event.value} from phase {self.phase.value}")
        return replace(self, phase=following)


def deletion_text(name: str) -> str:
    """Return what is said of a session that is being deleted, with the command that says what it waits for."""
    return f"it is being deleted; `the-loop standing delete {name}` finishes that"


class Live(Enum):
    """What tmux says of a session's pane."""

    LIVE = "live"  #: our tag, and its program runs
    DEAD = "dead"  #: our tag, its program has ended
    ABSENT = "absent"  #: tmux answered, and there is none
    FOREIGN = "foreign"  #: a tmux session of that name without our tag
    UNKNOWN = "unknown"  #: tmux did not answer


class Outcome(Enum):
    """What a verb did for one session."""

    STARTED = "started"
    RESUMED = "resumed"
    ALREADY_RUNNING = "already-running"
    STOPPED = "stopped"
    NOT_RUNNING = "not-running"
    DELETED = "deleted"
    HELD = "held"
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    NOT_PAUSED = "not-paused"
    INTERRUPTED = "interrupted"
    ANNOUNCED = "announced"
    WAITING = "waiting"  #: it is committed, and whoever carries it out will
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"
    UNREADABLE = "unreadable"
    MISCONFIGURED = "misconfigured"


FAILURES = frozenset({Outcome.FAILED, Outcome.UNCONFIRMED, Outcome.UNREADABLE, Outcome.MISCONFIGURED})
