"""`the-loop standing say|queue|cancel|confirm`: a session's messages."""

from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.reasons import code_of
from core.errors import InvalidValue
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line, print_queue
from core.surfaces.cli.quick import named_actor, show_said
from core.surfaces.cli.reading import message_of
from core.surfaces.cli.session import Session

if TYPE_CHECKING:
    from core.domain.message import InboxRow


def say(
    session: Session,
    name: str,
    source: str | None,
    text: str | None,
    file: Path | None,
    actor: str | None,
    raw: bool,
    wait: float,
    no_wait: bool,
) -> int:
    """Run `the-loop standing say`."""
    from core.standing.saying import say as say_standing

    message = message_of(source, text, file)
    speaker = session.acting(session.system)
    said = say_standing(
        session.system,
        name,
        message,
        actor=_speaker(session, speaker, actor),
        raw=raw,
        wait=0.0 if no_wait else wait,
    )
    return show_said(said, as_json=session.json)


def _speaker(session: Session, speaker: str, actor: str | None) -> str:
    """Return who says it: `actor` where one is given, which no agent may. Raises InvalidValue."""
    if actor is None:
        return speaker
    if session.agent is not None:
        raise InvalidValue("an agent speaks in its own name", "leave --actor out")
    return named_actor(actor)


def queue(session: Session, name: str, text: bool) -> int:
    """Run `the-loop standing queue`."""
    from core.standing.queueing import queue_of

    session.acting(session.system)
    answer = queue_of(session.system, name).to_json(text=text)
    if session.json:
        print_json(answer)
    else:
        print_queue(answer)
    return EXIT_OK


def cancel(session: Session, message_id: str) -> int:
    """Run `the-loop standing cancel`."""
    from core.standing.cancelling import cancel_message

    actor = session.acting(session.system)
    row = cancel_message(session.system, message_id, actor)
    return _report_message(session, row, row.detail)


def confirm(session: Session, message_id: str) -> int:
    """Run `the-loop standing confirm`."""
    from core.standing.confirming import confirm_message

    actor = session.acting(session.system)
    row = confirm_message(session.system, message_id, actor)
    return _report_message(session, row, "confirmed")


def _report_message(session: Session, row: "InboxRow", done: str) -> int:
    message = row.message
    if session.json:
        told = {"state": row.state.value, "reason": code_of(row.because), "detail": row.detail}
        print_json({"id": message.id, "name": message.name, **told})
    else:
        print_line(f"{message.name}: {message.id} is {done}")
    return EXIT_OK
