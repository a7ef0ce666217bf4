"""What somebody may ask of a loop: each part is checked alone, so that a configuration can tell of all at once. No I/O.

Every check raises InvalidValue, which repeats what was given and tells the rule.
"""

from datetime import datetime, timedelta

from core.domain.durations import parse_interval
from core.domain.framing import clean
from core.domain.loop import Mode
from core.domain.schedule import check_cron, zone_of
from core.errors import InvalidValue
from core.values import dataclass

LONGEST_INSTRUCTION = 4_000  #: characters
_MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Bounds:
    """How close and how far apart runs may be."""

    least: timedelta
    most: timedelta


@dataclass(frozen=True)
class Asked:
    """A loop as somebody asks for it."""

    instruction: str
    interval: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    keep_alive: bool = False
    max_runs: int | None = None


@dataclass(frozen=True)
class Spec:
    """What was asked for, understood."""

    instruction: str
    mode: Mode
    interval: timedelta | None
    cron: str
    time_zone: str
    keep_alive: bool
    max_runs: int | None


def understood(asked: Asked, bounds: Bounds, now: datetime) -> Spec:
    """Return what was asked for, checked. Raises InvalidValue."""
    check_together(asked)
    zone = asked.time_zone or ""
    mode = Mode.INTERVAL if asked.interval is not None else Mode.CRON if asked.cron is not None else Mode.DYNAMIC
    return Spec(
        instruction=check_instruction(asked.instruction),
        mode=mode,
        interval=None if asked.interval is None else parse_interval(asked.interval, bounds.least, bounds.most),
        cron="" if asked.cron is None else _cron(asked.cron, zone, bounds.least, now),
        time_zone=zone,
        keep_alive=asked.keep_alive,
        max_runs=check_max_runs(asked.max_runs),
    )


def check_together(asked: Asked) -> None:
    """Refuse parts that do not go together."""
    if asked.interval is not None and asked.cron is not None:
        raise InvalidValue("an interval and a cron expression are two cadences", allowed="one of them")
    if asked.time_zone is not None and asked.cron is None:
        raise InvalidValue(
            f"a time zone ({asked.time_zone[:60]!r}) without a cron expression means nothing",
            "leave it out, or give a cron expression",
        )
    if asked.keep_alive and asked.interval is None and asked.cron is None:
        raise InvalidValue(
            "a keep-alive loop needs an interval or a cron expression: one whose agent must name each next run would "
            "end with the first turn that forgets to",
            allowed="an interval such as 5m",
        )


def check_instruction(text: str) -> str:
    """Return the instruction, cleaned; 1 to 4,000 characters."""
    try:
        cleaned = clean(text).text.strip()
    except InvalidValue as error:
        raise InvalidValue("the instruction is empty", "say what is to be done at each run") from error
    if len(cleaned) > LONGEST_INSTRUCTION:
        raise InvalidValue(
            f"the instruction has {len(cleaned):,} characters, and a loop's at most {LONGEST_INSTRUCTION:,}",
            "put the details into a file in the session's folder, and name that",
        )
    return cleaned


def check_max_runs(count: int | None) -> int | None:
    """Return how often a loop may run: None, or at least once."""
    if count is not None and not 1 <= count <= _MOST_RUNS:
        raise InvalidValue(f"a loop cannot run at most {count} times", allowed=f"1 to {_MOST_RUNS:,}, or nothing")
    return count


def _cron(cron: str, time_zone: str, least: timedelta, now: datetime) -> str:
    zone_of(time_zone)
    return check_cron(cron, time_zone, least, now)
