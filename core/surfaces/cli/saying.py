"""`the-loop standing say|queue|cancel|confirm`: a session's messages."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.domain.reasons import code_of
from core.domain.rights import Verb
from core.errors import InvalidValue
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line, print_queue
from core.surfaces.cli.quick import SAY_SECONDS, named_actor, show_said
from core.surfaces.cli.reading import message_of
from core.surfaces.cli.session import Session, shared_options

if TYPE_CHECKING:
    from core.domain.message import InboxRow


@click.command("say")
@click.argument("name")
@click.argument("source", required=False)
@click.option("--text", help="What to say.")
@click.option(
    "--file", "file", type=click.Path(path_type=Path), help="A file that holds what to say; - is standard input."
)
@click.option("--actor", help="Who says it, where it is not the user of this terminal.")
@click.option("--raw", is_flag=True, help="Without the frame that says who speaks.")
@click.option(
    "--wait", type=float, default=SAY_SECONDS, show_default=True, help="Seconds to wait for the harness's own word."
)
@click.option("--no-wait", is_flag=True, help="Only commit the message.")
@shared_options
@click.pass_obj
def say_command(
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
    """Put a message into the agent's terminal, once. `-` reads standard input. A message never starts a session."""
    from core.standing.saying import say

    message = message_of(source, text, file)
    speaker = session.permit(session.system, Verb.SAY)
    said = say(
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
    if session.instance is not None and not session.as_operator:
        raise InvalidValue("an agent speaks in its own name", "leave --actor out")
    return named_actor(actor)


@click.command("queue")
@click.argument("name")
@click.option("--text", is_flag=True, help="Show the messages, too, not only how long they are.")
@shared_options
@click.pass_obj
def queue_command(session: Session, name: str, text: bool) -> int:
    """What is on its way to the session and what waits, in order."""
    from core.standing.queueing import queue_of

    session.permit(session.system, Verb.QUEUE)
    answer = queue_of(session.system, name).to_json(text=text)
    if session.json:
        print_json(answer)
    else:
        print_queue(answer)
    return EXIT_OK


@click.command("cancel")
@click.argument("message_id", metavar="ID")
@shared_options
@click.pass_obj
def cancel_command(session: Session, message_id: str) -> int:
    """Cancel a message that waits; `queue NAME` lists the ids."""
    from core.standing.cancelling import cancel_message

    actor = session.permit(session.system, Verb.CANCEL)
    row = cancel_message(session.system, message_id, actor)
    return _report_message(session, row, row.detail)


@click.command("confirm")
@click.argument("message_id", metavar="ID")
@shared_options
@click.pass_obj
def confirm_command(session: Session, message_id: str) -> int:
    """Let a message go in that came too late to do so by itself. `queue NAME` lists the ids."""
    from core.standing.confirming import confirm_message

    actor = session.permit(session.system, Verb.CONFIRM)
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
