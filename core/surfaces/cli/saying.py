"""`the-loop standing say|queue|cancel|confirm`: a session's messages."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.domain.rights import Verb
from core.errors import InvalidValue
from core.surfaces.cli.printing import EXIT_OK, print_json, print_line, print_queue
from core.surfaces.cli.reading import content_of, standard_input
from core.surfaces.cli.session import Session, shared_options

if TYPE_CHECKING:
    from core.domain.message import InboxRow

_SAY_SECONDS = 30.0


@click.command("say")
@click.argument("name")
@click.argument("source", required=False)
@click.option("--text", help="What to say.")
@click.option("--file", "file", type=click.Path(path_type=Path), help="A file that holds what to say.")
@click.option("--actor", help="Who says it, where it is not the user of this terminal.")
@click.option("--raw", is_flag=True, help="Without the frame that says who speaks.")
@click.option(
    "--wait", type=float, default=_SAY_SECONDS, show_default=True, help="Seconds to wait for the harness's own word."
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

    message = _read(source, text, file)
    speaker = session.permit(session.system, Verb.SAY)
    result = say(
        session.system,
        name,
        message,
        actor=_speaker(session, speaker, actor),
        raw=raw,
        wait=0.0 if no_wait else wait,
    )
    answer = result.to_json()
    if session.json:
        print_json(answer)
    else:
        for line in answer["messages"]:
            print_line(line)
    return int(answer["exitCode"])


def _speaker(session: Session, speaker: str, actor: str | None) -> str:
    """Return who says it: `actor` where one is given, which no agent may. Raises InvalidValue."""
    if actor is None:
        return speaker
    if session.instance is not None and not session.as_operator:
        raise InvalidValue("an agent speaks in its own name", "leave --actor out")
    return actor if ":" in actor else f"cli:{actor}"


def _read(source: str | None, text: str | None, file: Path | None) -> str:
    """Return what is to be said, from the one place where it is given. Raises InvalidValue."""
    given = [part for part in (source, text, file) if part is not None]
    if len(given) != 1 or (source is not None and source != "-"):
        raise InvalidValue("say takes one message", "give it by --text TEXT, --file FILE, or - for standard input")
    if text is not None:
        return text
    try:
        return (standard_input() if file is None else content_of(file)).decode("utf-8")
    except OSError as error:
        raise InvalidValue(f"cannot read {file}: {error.strerror}", "name a readable file") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{file or 'standard input'} is not UTF-8: {error}", "convert it first") from error


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
        print_json({"id": message.id, "name": message.name, "state": row.state.value, "detail": row.detail})
    else:
        print_line(f"{message.name}: {message.id} is {done}")
    return EXIT_OK
