"""What is wrong with the loops that the file declares, beyond the types of its values: all of it at once.

Each check takes the plain values, whatever their types: what has a wrong type is the schema's to report.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from core.config.checks import declared_sessions, value_at
from core.config.document import Document
from core.config.problems import KeyPath, described, shortened
from core.config.settings import LoopSettings
from core.domain.durations import interval_text, parse_duration, parse_interval
from core.domain.loopspec import Asked, Bounds, check_instruction, check_together
from core.domain.schedule import check_cron, zone_of
from core.errors import InvalidValue

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)  #: whether an expression ever comes true depends on no day


def check_loops(document: Document) -> None:
    """Add a problem to the document for everything about loops that its schema alone cannot see."""
    bounds = _bounds(document)
    most = value_at(document, "loops", "maxOpenPerSession")
    most = most if isinstance(most, int) else LoopSettings().max_open_per_session
    for path, session in declared_sessions(document):
        loops = list(_loops(path, session))
        if len(loops) > most:
            found, allowed = f"{len(loops)} loops", f"at most {most} (loops.maxOpenPerSession)"
            document.add((*path, "loops"), found, allowed, "remove some, or raise loops.maxOpenPerSession")
        _names(document, loops)
        for at, loop in loops:
            _one(document, at, loop, bounds)


def _bounds(document: Document) -> Bounds:
    defaults = LoopSettings()
    least = _span(value_at(document, "loops", "minInterval"), defaults.min_interval)
    most = _span(value_at(document, "loops", "maxInterval"), defaults.max_interval)
    if least > most:
        found = f"loops between {interval_text(least)} and {interval_text(most)} apart"
        document.add(("loops",), found, "a minInterval not above maxInterval", "raise maxInterval or lower minInterval")
    return Bounds(least, most)


def _span(value: Any, default: timedelta) -> timedelta:
    try:
        return parse_duration(value) if isinstance(value, str) else default
    except ValueError:
        return default


def _loops(path: KeyPath, session: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    declared = session.get("loops")
    for index, loop in enumerate(declared if isinstance(declared, list) else []):
        if isinstance(loop, dict):
            yield (*path, "loops", index), loop


def _names(document: Document, loops: list[tuple[KeyPath, dict[str, Any]]]) -> None:
    seen: dict[str, KeyPath] = {}
    for path, loop in loops:
        name = loop.get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            found = f'"{shortened(name)}", the name of the loop on line {document.line_of(seen[name])}, too'
            document.add((*path, "name"), found, "each name once within a session", "rename one of the two")
        seen.setdefault(name, path)


def _one(document: Document, path: KeyPath, loop: dict[str, Any], bounds: Bounds) -> None:
    def text(key: str) -> str | None:
        return value if isinstance(value := loop.get(key), str) else None

    def given(key: str) -> str | None:
        return None if (value := loop.get(key)) is None else str(value)

    def check(key: str, judge: Callable[[str], object]) -> None:
        if (value := text(key)) is not None:
            _judged(document, (*path, key), described(value), lambda: judge(value))

    check("instruction", check_instruction)
    check("interval", lambda value: parse_interval(value, bounds.least, bounds.most))
    check("cron", lambda value: check_cron(value, "", bounds.least, _SOME_DAY))
    check("timeZone", zone_of)
    keep_alive = loop.get("keepAlive") is True
    asked = Asked("", given("interval"), given("cron"), given("timeZone"), keep_alive)
    _judged(document, path, "keys that do not go together", lambda: check_together(asked))


def _judged(document: Document, path: KeyPath, found: str, judge: Callable[[], object]) -> None:
    """Add a problem with what was `found` where `judge` refuses it, and with the reason that this gives."""
    try:
        judge()
    except InvalidValue as error:
        told = (error.allowed, "change the value") if error.allowed else ("another value", error.remedy)
        document.add(path, f"{found}: {error.message}", *told)
