"""`the-loop events`."""

import json

import click

from core.domain.rights import Verb
from core.surfaces.cli.printing import EXIT_OK, print_line
from core.surfaces.cli.session import Session, output_options

_LEAD = ("ts", "event", "level", "name", "actor", "reason", "detail")


@click.command("events")
@click.option("--name", help="Only this session's events.")
@click.option("--last", type=click.IntRange(1), help="Only the last so many.")
@output_options
@click.pass_obj
def events_command(session: Session, name: str | None, last: int | None) -> int:
    """What happened, oldest first; with --json one object a line."""
    session.permit(session.system, Verb.EVENTS)
    found = [event for event in session.system.events.read() if name is None or event.get("name") == name]
    for event in found[-last:] if last else found:
        if session.json:
            print_line(json.dumps(event, ensure_ascii=False))
            continue
        rest = "  ".join(f"{key}={value}" for key, value in event.items() if key not in _LEAD)
        lead = "  ".join(str(event[key]) for key in _LEAD if event.get(key) is not None)
        print_line(f"{lead}  {rest}".rstrip())
    return EXIT_OK
