"""What a session is, what we know of it, and the phases of its record. No I/O.

Also which thread belongs to which session, who may use which verb, and which conversation is the session's. A new
conversation replaces an earlier one only when it has had a turn. A program that fails for a while ends each
conversation that it is given, so an id that a start could not take up stays in the record's history. A later start
takes it up again as long as the conversation begun in its place has had no turn.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from core.base.errors import NotPermitted
from core.base.values import dataclass, field, replace


@dataclass(frozen=True)
class ChatBinding:
    """Whether the session has a thread in a chat, and in which channel ("" means the configured one)."""

    enabled: bool = False
    channel: str = ""
    authorized_users: tuple[str, ...] | None = None  #: narrows the channel's list; None: no list of its own; (): nobody
    thread: str = ""  #: the message whose thread it is to have; "": it opens one of its own


_NO_CHAT = ChatBinding()


def stated(chat: Mapping[str, ChatBinding]) -> Mapping[str, ChatBinding]:
    """Return what a definition says of each chat without those of which it says nothing, sorted by kind."""
    return {kind: binding for kind, binding in sorted(chat.items()) if binding != _NO_CHAT}


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
    chat: Mapping[str, ChatBinding] = field(default_factory=dict)  #: by kind; one of which it says nothing is left out
    restart: Restart = Restart.NEVER
    idle: Idle = field(default_factory=Idle)

    @property
    def chat_kind(self) -> str:
        """Return the kind of chat in which it has a thread; "" where it has none."""
        return next((kind for kind, binding in self.chat.items() if binding.enabled), "")

    @property
    def binding(self) -> ChatBinding:
        """Return what it says of that chat; of none where it has no thread."""
        return self.chat.get(self.chat_kind, _NO_CHAT)


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
    """Why a session is held, by whom (`cli:ann`, `<chat>:U1`, `supervisor`), and since when (UTC)."""

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
class Thread:
    """Where the session's thread is: the kind of chat, the channel, and the thread's first message."""

    kind: str
    channel: str
    thread: str


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
    thread: Thread | None = None  #: a copy of what the database knows, for when that is lost
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


@dataclass(frozen=True)
class Binding:
    """A thread that belongs to a session: (channel_kind, team, channel, thread) -> uid."""

    channel_kind: str
    team: str
    channel: str
    thread: str
    uid: str
    name: str
    created_at: datetime
    cursor: str = ""  #: the last message of the last complete sweep; "": none was complete
    begins: str = ""  #: what stands up to this message may have been taken before the database was lost; "": nothing
    shared: bool | None = None  #: whether others than our organization were in the channel at first sight
    link: str = ""  #: where a person can open it; "": not known
    head: str = ""  #: its announcement, where a message of somebody else's begins the thread; "": that message itself

    @property
    def swept_to(self) -> str:
        """The time stamp after which messages may have been missed."""
        return self.cursor or self.begins or self.thread

    @property
    def place(self) -> Thread:
        """Return where the thread is."""
        return Thread(self.channel_kind, self.channel, self.thread)


class ActorKind(Enum):
    """Who asks."""

    OPERATOR = "operator"  #: at the terminal or the control plane
    AGENT = "agent"  #: a process inside one of our own panes


class Verb(Enum):
    """What can be asked."""

    LIST = "list"
    GET = "get"
    STATUS = "status"
    SCREEN = "screen"
    ATTACH = "attach"
    EVENTS = "events"
    SAY = "say"
    CREATE = "create"
    DELETE = "delete"
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    PAUSE = "pause"
    RESUME = "resume"
    INTERRUPT = "interrupt"
    QUEUE = "queue"
    CANCEL = "cancel"
    CONFIRM = "confirm"
    LOGS = "logs"
    HISTORY = "history"
    ANNOUNCE = "announce"
    POST = "post"
    ASK = "ask"
    LOOPS = "look at the loops of"
    LOOP = "make and steer the loops of"  #: an agent: of its own session
    OPEN_PAGE = "open the page of"  #: where everything can be done
    FLEET = "change the fleet of"  #: who belongs to it, with its admin's rights or this host's secret
    CONFIGURE = "configure"  #: write the configuration, which names the programs that run


READS = frozenset(
    {Verb.LIST, Verb.GET, Verb.STATUS, Verb.SCREEN, Verb.EVENTS, Verb.QUEUE, Verb.LOGS, Verb.HISTORY, Verb.LOOPS}
)
SPEAKS = frozenset({Verb.SAY, Verb.POST, Verb.ASK})
OWN = frozenset({Verb.LOOP})  #: an agent's, within its own session: `core.loops.verbs` holds it to that


def permitted(actor: ActorKind, verb: Verb) -> bool:
    """Return whether the actor may use the verb: an operator any, an agent what reads or speaks, and its loops.

    Attaching is no reading: an attached terminal can be typed into.
    """
    return actor is ActorKind.OPERATOR or verb in READS | SPEAKS | OWN


def require(actor: ActorKind, verb: Verb) -> None:
    """Raise NotPermitted if the actor may not use the verb."""
    if not permitted(actor, verb):
        raise NotPermitted(
            f"an agent may not {verb.value} sessions: it reads, speaks and has loops of its own",
            "ask your operator to run it",
        )


_MOST = 50  #: conversations in a record's history

LEFT_IN_TERMINAL = "it was left in its terminal"
TAKEN_UP_AGAIN = "it had had no turn, and the one before it was taken up again"


@dataclass(frozen=True)
class Candidate:
    """A conversation that the session's next start may take up."""

    id: str
    harness: str
    had_turn: bool  #: as far as is known


def candidates(record: SessionRecord, in_use: str) -> tuple[Candidate, ...]:
    """Return what a start may take up, best first. `in_use` is the harness of the latest pane."""
    fresh = record.fresh
    if fresh is None:
        return (Candidate(record.harness_session_id, in_use, True),) if record.harness_session_id else ()
    kept = _kept(record)
    found = (Candidate(kept.id, kept.harness, True),) if kept else ()
    return (*found, Candidate(fresh.id, in_use, False)) if fresh.id else found


def taken_up(record: SessionRecord, chosen: Candidate, in_use: str, now: datetime) -> SessionRecord:
    """Return the record whose next pane is in the chosen one of its candidates."""
    fresh = record.fresh
    if fresh is None or chosen.id == fresh.id:
        return record
    history = tuple(left for left in record.history if left.id != chosen.id)
    if fresh.id:
        history = (*history, Left(fresh.id, in_use, TAKEN_UP_AGAIN, now))
    return replace(record, harness_session_id=chosen.id, fresh=None, history=history[-_MOST:])


def begun(
    record: SessionRecord, new: str | None, lost: Candidate | None, reason: str, now: datetime, *, keeps: bool
) -> SessionRecord:
    """Return the record whose next pane begins a new conversation.

    `lost` is the one that was not taken up, for that `reason`; None where nothing had been said. `keeps`: it stays the
    session's by name too, since its harness may well take it up once it is mended.
    """
    if lost is None:
        return replace(record, harness_session_id=new, fresh=Fresh(new) if new else None)
    others = (left for left in record.history if left.id != lost.id)
    history = (*others, Left(lost.id, lost.harness, reason, now))
    shown = lost.id if keeps else new
    return replace(record, harness_session_id=shown, fresh=Fresh(new, lost.id), history=history[-_MOST:])


def begun_on_request(record: SessionRecord, new: str | None, in_use: str, reason: str, now: datetime) -> SessionRecord:
    """Return the record whose next pane begins a new conversation because somebody asked for one.

    The one before it stays in the history and is taken up only by its id.
    """
    history = _with_left(record, new, in_use, reason, now)
    return replace(record, harness_session_id=new, fresh=Fresh(new) if new else None, history=history)


def taken_up_on_request(record: SessionRecord, id: str, in_use: str, reason: str, now: datetime) -> SessionRecord:
    """Return the record whose next pane is in the conversation of that id, which somebody asked for."""
    return replace(record, harness_session_id=id, fresh=None, history=_with_left(record, id, in_use, reason, now))


def _with_left(
    record: SessionRecord, following: str | None, in_use: str, reason: str, now: datetime
) -> tuple[Left, ...]:
    """Return the history with the present conversation in it, if it has had a turn, and without the one to follow."""
    present = record.harness_session_id if record.fresh is None else None
    others = [left for left in record.history if left.id not in (following, present)]
    if present and present != following:
        others.append(Left(present, in_use, reason, now))
    return tuple(others[-_MOST:])


def had_turn(record: SessionRecord) -> SessionRecord:
    """Return the record whose latest pane's conversation is the session's: it has had a turn."""
    return record if record.fresh is None else replace(record, harness_session_id=record.fresh.id, fresh=None)


def entered(record: SessionRecord, new: str, in_use: str, now: datetime, *, old: bool) -> SessionRecord:
    """Return the record after its latest pane went over to another conversation by itself, as `/clear` makes it.

    `old`: it is an earlier one, so that it has had a turn.
    """
    if record.fresh is not None and not old:
        shown = new if record.harness_session_id == record.fresh.id else record.harness_session_id
        return replace(record, harness_session_id=shown, fresh=replace(record.fresh, id=new))
    history = tuple(left for left in record.history if left.id != new)
    if record.fresh is None and record.harness_session_id:
        history = (*history, Left(record.harness_session_id, in_use, LEFT_IN_TERMINAL, now))
    return replace(record, harness_session_id=new, fresh=None if old else Fresh(new), history=history[-_MOST:])


def begun_instead(record: SessionRecord) -> str:
    """Return why the latest pane is in a new conversation, and which was the old one; "" where it is in no such."""
    kept = _kept(record)
    return f"{kept.reason}; the old id was {kept.id}" if kept else ""


def new_conversation(record: SessionRecord) -> str:
    """Return the same as a remark of the session's row."""
    instead = begun_instead(record)
    return f"new conversation: {instead}" if instead else ""


def kept_id(record: SessionRecord) -> str | None:
    """Return the conversation that the session has whatever becomes of its latest pane; None where there is none."""
    if record.fresh is not None:
        return record.fresh.returns_to
    return record.harness_session_id


def _kept(record: SessionRecord) -> Left | None:
    wanted = record.fresh.returns_to if record.fresh else None
    return next((left for left in record.history if left.id == wanted), None) if wanted else None
