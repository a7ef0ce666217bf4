"""`the-loop events`."""

import json
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import click

from core.surfaces.cli.printing import EXIT_OK, print_line
from core.surfaces.cli.session import Session
from core.system import System

_LEAD = ("ts", "event", "level", "name", "actor", "reason", "detail")


def events(session: Session, name: str | None, last: int | None, follow: bool) -> int:
    """Run `the-loop events`."""
    session.acting(session.system)
    if name is not None:
        _check_known(session.system, name)
    for event in _chosen(session.system.events.read(follow=follow), name, last, follow):
        print_line(json.dumps(event, ensure_ascii=False) if session.json else _line(event))
        if follow:
            sys.stdout.flush()  # a pipe would keep it until it is full
    return EXIT_OK


def _check_known(system: System, name: str) -> None:
    """Raise UnknownSession for a name that no session has and no event names, InvalidValue for what is no name."""
    from core.errors import UnknownSession
    from core.session.sessions import definition_of

    try:
        definition_of(system.settings, system.records, name)
    except UnknownSession:
        if not any(event.get("name") == name for event in system.events.read()):
            raise


def _chosen(
    events: Iterable[Mapping[str, Any]], name: str | None, last: int | None, follow: bool
) -> Iterable[Mapping[str, Any]]:
    if last is not None and follow:
        raise click.UsageError("--last and --follow do not go together: --follow begins with all that is kept")
    ours = (event for event in events if name is None or event.get("name") == name)
    return ours if last is None else list(ours)[-last:]


def _line(event: Mapping[str, Any]) -> str:
    """Return the event in one line: what agents and their programs have put into it adds none of its own."""
    lead = (str(event[key]) for key in _LEAD if event.get(key) is not None)
    rest = (f"{key}={value}" for key, value in event.items() if key not in (*_LEAD, "ref", "text"))
    return "  ".join(" ".join(part.split()) for part in chain(lead, rest))
