"""A loop: an instruction that its session is prompted with again and again. States, runs, what ends it. No I/O."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from core.values import dataclass


class Mode(Enum):
    """What sets the pace."""

    INTERVAL = "interval"
    CRON = "cron"
    DYNAMIC = "dynamic"  #: the agent: each turn that a tick started names the next run, or the loop ends with it


class LoopStatus(Enum):
    """Where a loop stands."""

    ACTIVE = "active"  #: it fires, unless `held` says what keeps it from that
    PAUSED = "paused"  #: its agent or an operator paused it; kept until resumed, stopped or too old
    STOPPED = (
        "stopped"  #: ended: by its agent, an operator, its age, its session's deletion, a turn that named no next run
    )
    COMPLETED = "completed"  #: ended: it has run as often as it was to


class LoopEvent(Enum):
    """What moves a loop from status to status."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    COMPLETE = "complete"


_S, _E = LoopStatus, LoopEvent
TRANSITIONS: Mapping[LoopStatus, Mapping[LoopEvent, LoopStatus]] = {
    _S.ACTIVE: {_E.PAUSE: _S.PAUSED, _E.STOP: _S.STOPPED, _E.COMPLETE: _S.COMPLETED},
    _S.PAUSED: {_E.RESUME: _S.ACTIVE, _E.STOP: _S.STOPPED, _E.COMPLETE: _S.COMPLETED},
    _S.STOPPED: {},
    _S.COMPLETED: {},
}
OPEN = frozenset({LoopStatus.ACTIVE, LoopStatus.PAUSED})  #: counted against loops.maxOpenPerSession


class Held(Enum):
    """Why an active loop does not fire, though nobody paused it. Each ends by itself, but for FAILURES."""

    PAUSED = "paused"  #: its session is paused; when that is resumed it fires once at most
    STOPPED = "stopped"  #: its session is stopped, failed, down or gone from its place; a start re-arms it, no catch-up
    USAGE_LIMIT = "usage-limit"  #: its harness may ask its model nothing for a while
    FAILURES = "failures"  #: it failed five times in a row: until `resume`, or `run`


@dataclass(frozen=True)
class Loop:
    """One loop. Times are UTC. Belongs to the session of that uid, whichever of its processes made it."""

    id: str  #: `loop_` and six letters
    uid: str
    name: str  #: the session's
    instruction: str  #: at most 4,000 characters
    mode: Mode
    created_by: str  #: `agent:builder`, `cli:ann`, `config`
    created_at: datetime
    interval: timedelta | None = None  #: INTERVAL only
    cron: str = ""  #: CRON only: five fields
    time_zone: str = ""  #: of `cron`, an IANA name; "": UTC
    keep_alive: bool = False  #: exempt from age, survives failed runs, brings a crashed session back
    max_runs: int | None = None
    status: LoopStatus = LoopStatus.ACTIVE
    held: Held | None = None
    held_until: datetime | None = None  #: when a hold ends by time alone
    held_at: datetime | None = None  #: when the latest hold began: a session that has started since lifts a STOPPED
    run_count: int = 0  #: runs that a turn took, or may have taken
    deferrals: int = 0  #: how often a due run has had to wait for its session
    failures: int = 0  #: failed runs in a row
    last_run_at: datetime | None = None
    last_result: str = ""  #: how the latest run went: `delivered`, `unknown`, `failed`, `deferred`
    last_error: str = ""
    next_run_at: datetime | None = None  #: None: none is planned (a dynamic loop between its runs), or it has ended
    reason: str = ""  #: why it ended, was paused, or runs next when it does
    ended_at: datetime | None = None
    declared: str = ""  #: its name in the configuration; "": nobody declared it
    digest: str = ""  #: of the declaration that it was made from
    asked: bool = False  #: somebody asked for a run that no turn has taken yet: no hold loses it
    revision: int = 0  #: raised by every change: whoever saw an older one changes nothing


class RunState(Enum):
    """Where one execution for one slot stands."""

    CLAIMED = "claimed"  #: a scheduler took it until `lease_until`; its inbox row may or may not have been committed
    SENT = "sent"  #: its tick is a row of the inbox, under the key `loop:<run id>`, whose state tells the rest
    TAKEN = "taken"  #: a turn took the tick; a dynamic loop waits for the end of that turn
    OVER = "over"


@dataclass(frozen=True)
class LoopRun:
    """One execution of a loop for one slot. Whoever claims it again after a lapsed lease gets the same id."""

    id: str
    loop_id: str
    uid: str
    slot: datetime  #: the time that it was due
    number: int  #: of the loop's runs, from 1
    state: RunState
    claimer: str
    lease_until: datetime
    last: bool = False  #: no other follows: the loop is too old
    message_id: str = ""  #: of its inbox row
    taken_at: datetime | None = None  #: when a turn took it, by the harness's own record
    instance: str = ""  #: the pane whose turn took it
    outcome: str = ""  #: once OVER: delivered | unknown | failed | held | cancelled | lapsed
    detail: str = ""  #: why, in words
    deferred: bool = False  #: its tick had to wait for the session, which is counted once


def run_key(run_id: str) -> str:
    """Return the key of the run's inbox row: a second commit of the same run is a no-op."""
    return f"loop:{run_id}"
