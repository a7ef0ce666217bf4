"""When a loop runs next: pure arithmetic, which is given the time. Every time is UTC. No I/O.

The library that reads cron expressions, and the time zones, are imported at their first use: a listing needs neither.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise

from core.domain.durations import interval_text
from core.domain.loop import Loop, Mode
from core.errors import InvalidValue

_MOST_JITTER = timedelta(seconds=30)
_FIRST_BACKOFF = timedelta(seconds=30)
_LONGEST_BACKOFF = timedelta(hours=1)
_DYNAMIC_REARM = timedelta(minutes=1)
_LONGEST_CRON = 200  #: characters
_CLOSEST = timedelta(minutes=1)  #: of any two matches of five fields
_LOOKED_AT = 60  #: matches among which the two closest are looked for


def first_slot(loop: Loop, now: datetime) -> datetime:
    """Return when a new loop runs first: one interval from now, at the next match, a dynamic one at once.

    Declared ones are made together, so theirs are spread.
    """
    if loop.mode is Mode.DYNAMIC:
        return now
    if loop.interval is not None:
        return now + loop.interval + (jitter(loop.id, loop.interval) if loop.declared else timedelta())
    return _cron_slot(loop, now)


def following_slot(loop: Loop, slot: datetime, now: datetime) -> datetime | None:
    """Return when the loop runs after the run of `slot`, which is sent now; None for a dynamic one.

    Slots that have passed meanwhile collapse. An interval keeps to its grid unless that would bring two runs closer
    together than half of it; then it begins anew from now.
    """
    if loop.mode is Mode.DYNAMIC:
        return None
    if loop.interval is not None:
        on_grid = slot + loop.interval
        return on_grid if loop.interval / 2 <= on_grid - now <= loop.interval else now + loop.interval
    return _cron_slot(loop, now)


def rearmed_slot(loop: Loop, now: datetime) -> datetime | None:
    """Return when a loop runs whose session came back: nothing is caught up.

    A dynamic one keeps a time that is still to come, else it runs in a minute; None if its next run was not planned.
    """
    if loop.mode is Mode.DYNAMIC:
        planned = loop.next_run_at
        return None if planned is None else planned if planned > now else now + _DYNAMIC_REARM
    if loop.interval is not None:
        return now + loop.interval
    return _cron_slot(loop, now)


def replanned_slot(loop: Loop, now: datetime) -> datetime | None:
    """Return when a loop runs whose slot was planned before the clock was set back; None for a slot that stands.

    An interval brings no slot further ahead than twice itself, and an expression none beyond its next match but for a
    failed run. A dynamic loop keeps the delay that was named after its latest run, if that lies ahead.
    """
    planned = loop.next_run_at
    if planned is None:
        return None
    if loop.interval is not None:
        return following_slot(loop, now, now) if planned - now > 2 * loop.interval else None
    if loop.mode is Mode.DYNAMIC:
        began = loop.last_run_at or loop.created_at
        return now + (planned - began) if now < began <= planned else None
    if planned - now <= _LONGEST_BACKOFF:
        return None
    upcoming = _cron_slot(loop, now)
    return upcoming if upcoming < planned else None


def backoff(failures: int, interval: timedelta | None) -> timedelta:
    """Return how long a loop waits after so many failed runs in a row (from 1): doubling from 30 s, at most an hour.

    One with an interval waits no longer than that.
    """
    longest = _LONGEST_BACKOFF if interval is None else min(interval, _LONGEST_BACKOFF)
    return min(_FIRST_BACKOFF * (1 << min(max(failures - 1, 0), 16)), longest)


def expires_at(loop: Loop, most_age: timedelta | None) -> datetime | None:
    """Return when a loop is too old; None: never, as with every keep-alive loop, or where `most_age` is None."""
    return None if loop.keep_alive or most_age is None else loop.created_at + most_age


def jitter(loop_id: str, gap: timedelta) -> timedelta:
    """Return by how much a loop is late on purpose: always the same for it, below 10 % of the gap and 30 s."""
    from zlib import crc32

    share = crc32(loop_id.encode()) / 2**32
    return min(gap / 10, _MOST_JITTER) * share


# ---------------------------------------------------------------- cron


def check_cron(cron: str, time_zone: str, least: timedelta, now: datetime) -> str:
    """Return the expression with single blanks. Raises InvalidValue.

    Refused is what is not understood, has seconds, never comes true, comes true more often than `least`, or a zone
    that nobody knows.
    """
    fields = cron.split()
    shown = " ".join(fields)[:_LONGEST_CRON]
    if len(fields) != 5 or len(cron) > _LONGEST_CRON:
        raise InvalidValue(
            f"the cron expression {shown!r} has {len(fields)} fields",
            allowed="five: minute, hour, day of month, month, day of week, such as `0 9 * * MON-FRI`",
        )
    matches = [next_match(shown, time_zone, now)]
    while least > _CLOSEST and len(matches) < _LOOKED_AT and (more := _match_after(shown, time_zone, matches[-1])):
        matches.append(more)
    closest = min((later - earlier for earlier, later in pairwise(matches)), default=least)
    if closest < least:
        raise InvalidValue(
            f"the cron expression {shown!r} comes true {interval_text(closest)} apart",
            f"leave {interval_text(least)} at least (loops.minInterval)",
        )
    return shown


def next_match(cron: str, time_zone: str, after: datetime) -> datetime:
    """Return the first time after `after` that the expression names in its zone. Raises InvalidValue.

    As in Debian's cron, what a change of clocks skips is run right after it, and what it repeats is run once, unless
    the expression names every minute or every hour.
    """
    found = _match_after(cron, time_zone, after)
    if found is None:
        raise InvalidValue(f"the cron expression {cron!r} never comes true", "name a day that there is")
    return found


def _cron_slot(loop: Loop, now: datetime) -> datetime:
    """Return the next match, late by the loop's own jitter: many loops on one minute spread."""
    match = next_match(loop.cron, loop.time_zone, now)
    following = _match_after(loop.cron, loop.time_zone, match)
    return match if following is None else match + jitter(loop.id, following - match)


def _match_after(cron: str, time_zone: str, after: datetime) -> datetime | None:
    from cronsim import CronSim, CronSimError

    try:
        matches = CronSim(cron, after.astimezone(zone_of(time_zone)))
    except CronSimError as error:
        raise InvalidValue(
            f"the cron expression {cron!r} is not understood, or never comes true: {str(error).lower()}",
            allowed="five fields: minute, hour, day of month, month, day of week",
        ) from error
    # While clocks are set back the library names times that have been: only what is to come counts.
    return next((match for match in (found.astimezone(UTC) for found in matches) if match > after), None)


def zone_of(name: str) -> tzinfo:
    """Return the time zone of an IANA name; "": UTC. Raises InvalidValue."""
    if name in ("", "UTC"):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown; no path below the database; a folder of it
        raise InvalidValue(
            f"the time zone {name[:_LONGEST_CRON]!r} is not known on this machine",
            allowed="an IANA name such as Europe/Berlin or America/New_York",
        ) from error
