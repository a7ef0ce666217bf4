"""`the-loop standing …`: parse, call core, print."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.domain.rights import Verb
from core.errors import Refused
from core.surfaces.cli.printing import (
    EXIT_FAILED,
    EXIT_OK,
    print_json,
    print_line,
    print_logs,
    print_queue,
    print_row,
    print_rows,
    warn,
)
from core.surfaces.cli.saying import read_message, speaker_of
from core.surfaces.cli.session import Session, shared_options

if TYPE_CHECKING:
    from core.domain.message import InboxRow

_SAY_SECONDS = 30.0


@click.group("standing")
@shared_options
def standing_group() -> None:
    """Standing sessions: named agents that outlive the service."""


def _report(session: Session, report: Any) -> int:
    answer = report.to_json()
    if session.json:
        print_json(answer)
    else:
        print_rows(answer["sessions"], session.exact)
    return EXIT_OK if answer["ok"] else EXIT_FAILED


@standing_group.command("list")
@shared_options
@click.pass_obj
def list_command(session: Session) -> int:
    """Every declared and recorded session, one row each."""
    from core.surfaces.cli.quick import show_list

    session.permit(session.system, Verb.LIST)
    return show_list(session.system, as_json=session.json)


@standing_group.command("get")
@click.argument("name")
@shared_options
@click.pass_obj
def get_command(session: Session, name: str) -> int:
    """One session's row, whole."""
    from core.standing.listing import get_standing

    session.permit(session.system, Verb.GET)
    row = get_standing(session.system, name).to_json()
    if session.json:
        print_json(row)
    else:
        print_row(row)
    return EXIT_OK


@standing_group.command("create")
@click.argument("name")
@click.option("--harness", default="", help="The agent program; default: routing.defaultHarness.")
@click.option("--cwd", default="", help="The folder it works in; default: routing.spawnWorkdir.")
@click.option("--prompt", help="What it shall do.")
@click.option("--prompt-file", help="A file that says what it shall do, read at each fresh start.")
@click.option("--description", default="")
@click.option("--harness-arg", "harness_args", multiple=True, help="An argument for the harness; may be repeated.")
@click.option("--slack/--no-slack", default=False, help="Whether it gets a Slack thread.")
@click.option("--slack-channel", default="", help="The channel's id; default: channels.slack.channel.")
@click.option("--no-auto-start", is_flag=True, help="A boot does not start it.")
@click.option(
    "--restart",
    type=click.Choice(["never", "on-failure"]),
    default="never",
    help="on-failure: after a crash it is resumed, within limits.restartsPerHour.",
)
@click.option("--no-start", is_flag=True, help="Only record it.")
@shared_options
@click.pass_obj
def create_command(
    session: Session,
    name: str,
    harness: str,
    cwd: str,
    prompt: str | None,
    prompt_file: str | None,
    description: str,
    harness_args: tuple[str, ...],
    slack: bool,
    slack_channel: str,
    no_auto_start: bool,
    restart: str,
    no_start: bool,
) -> int:
    """Make a session that the configuration does not declare. It is started, too, unless --no-start is given."""
    from core.domain.session import Definition, Restart, SlackBinding
    from core.standing.creating import create_standing

    actor = session.permit(session.system, Verb.CREATE)
    definition = Definition(
        name=name,
        description=description,
        harness=harness,
        harness_args=harness_args or None,
        cwd=_absolute(cwd),
        prompt=prompt,
        prompt_file=_absolute(prompt_file) if prompt_file else None,
        auto_start=not no_auto_start,
        restart=Restart(restart),
        slack=SlackBinding(slack, slack_channel),
    )
    return _report(session, create_standing(session.system, definition, actor, start=not no_start))


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute()) if path else ""


@standing_group.command("delete")
@click.argument("name")
@shared_options
@click.pass_obj
def delete_command(session: Session, name: str) -> int:
    """Stop a created session and forget it. The name is free only when all is gone."""
    from core.standing.deleting import delete_standing

    actor = session.permit(session.system, Verb.DELETE)
    return _report(session, delete_standing(session.system, name, actor))


@standing_group.command("start")
@click.argument("name", required=False)
@shared_options
@click.pass_obj
def start_command(session: Session, name: str | None) -> int:
    """Bring a session up, or every one that is not held. A conversation that can be resumed is."""
    from core.standing.starting import start_standing

    actor = session.permit(session.system, Verb.START)
    return _report(session, start_standing(session.system, name, actor))


@standing_group.command("stop")
@click.argument("name", required=False)
@click.option("--reason", default="", help="Kept with the mark.")
@shared_options
@click.pass_obj
def stop_command(session: Session, name: str | None, reason: str) -> int:
    """End a session gracefully. By name it stays silent until it is started again."""
    from core.standing.stopping import stop_standing
    from core.wiring import build_rescue_system

    system = build_rescue_system(session.config, session.environ, warn)
    actor = session.permit(system, Verb.STOP)
    return _report(session, stop_standing(system, name, actor, reason))


@standing_group.command("restart")
@click.argument("name")
@shared_options
@click.pass_obj
def restart_command(session: Session, name: str) -> int:
    """End the session gracefully and resume the same conversation."""
    from core.standing.restarting import restart_standing

    actor = session.permit(session.system, Verb.RESTART)
    return _report(session, restart_standing(session.system, name, actor))


@standing_group.command("say")
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

    message = read_message(source, text, file)
    speaker = session.permit(session.system, Verb.SAY)
    result = say(
        session.system,
        name,
        message,
        actor=speaker_of(session, speaker, actor),
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


class NoTerminal(Refused):
    """`attach` is run where there is no terminal to show a session in."""

    code = "no_terminal"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: standard input is no terminal, so it cannot be attached to",
            f"run it in a terminal, or look at `the-loop standing screen {name}`",
        )


@standing_group.command("attach")
@click.argument("name")
@click.option("--write", is_flag=True, help="Type into it, too.")
@shared_options
@click.pass_obj
def attach_command(session: Session, name: str, write: bool) -> int:
    """Look at the session's terminal. Read-only unless --write; with --json: the command that does so."""
    from core.standing.viewing import attach_command as command_for

    session.permit(session.system, Verb.ATTACH)
    argv = command_for(session.system, name, write=write)
    if session.json:
        print_json({"name": name, "command": list(argv)})
        return EXIT_OK
    if not sys.stdin.isatty():
        raise NoTerminal(name)
    environment = {key: value for key, value in os.environ.items() if key != "TMUX"}
    os.execvpe(argv[0], list(argv), environment)


@standing_group.command("screen")
@click.argument("name")
@click.option(
    "--lines", type=click.IntRange(1, 2000), default=50, show_default=True, help="How many of the last lines."
)
@shared_options
@click.pass_obj
def screen_command(session: Session, name: str, lines: int) -> int:
    """What the session's terminal shows."""
    from core.standing.viewing import screen

    session.permit(session.system, Verb.SCREEN)
    shown = screen(session.system, name, lines)
    if session.json:
        print_json({"name": name, "screen": shown.text, "ended": shown.ended})
    else:
        if shown.ended:
            warn(f"{name} has ended; this was kept of its terminal")
        print_line(shown.text)
    return EXIT_OK


@standing_group.command("pause")
@click.argument("name")
@click.option("--hard", is_flag=True, help="Interrupt the turn that runs; otherwise it ends by itself.")
@click.option("--reason", default="", help="Kept with the mark.")
@shared_options
@click.pass_obj
def pause_command(session: Session, name: str, hard: bool, reason: str) -> int:
    """Let no further turn begin. What comes in waits, background jobs go on."""
    from core.standing.pausing import pause_standing

    actor = session.permit(session.system, Verb.PAUSE)
    return _report(session, pause_standing(session.system, name, actor, reason, hard=hard))


@standing_group.command("resume")
@click.argument("name")
@shared_options
@click.pass_obj
def resume_command(session: Session, name: str) -> int:
    """End a pause; what waited goes in, in order."""
    from core.standing.resuming import resume_standing

    actor = session.permit(session.system, Verb.RESUME)
    return _report(session, resume_standing(session.system, name, actor))


@standing_group.command("interrupt")
@click.argument("name")
@shared_options
@click.pass_obj
def interrupt_command(session: Session, name: str) -> int:
    """End the turn that runs, or reject the dialog that is open. The session goes on."""
    from core.standing.interrupting import interrupt_standing

    actor = session.permit(session.system, Verb.INTERRUPT)
    return _report(session, interrupt_standing(session.system, name, actor))


@standing_group.command("announce")
@click.argument("name")
@shared_options
@click.pass_obj
def announce_command(session: Session, name: str) -> int:
    """Bring the session's announcement up to date. Where it has none any more, a new thread is made."""
    from core.standing.reannouncing import announce_standing

    actor = session.permit(session.system, Verb.ANNOUNCE)
    return _report(session, announce_standing(session.system, name, actor))


@standing_group.command("queue")
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


@standing_group.command("cancel")
@click.argument("message_id", metavar="ID")
@shared_options
@click.pass_obj
def cancel_command(session: Session, message_id: str) -> int:
    """Cancel a message that waits; `queue NAME` lists the ids."""
    from core.standing.cancelling import cancel_message

    actor = session.permit(session.system, Verb.CANCEL)
    row = cancel_message(session.system, message_id, actor)
    return _report_message(session, row, row.detail)


@standing_group.command("confirm")
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


@standing_group.command("logs")
@click.argument("name")
@click.option(
    "--lines", type=click.IntRange(1, 2000), default=50, show_default=True, help="How many of the last lines."
)
@shared_options
@click.pass_obj
def logs_command(session: Session, name: str, lines: int) -> int:
    """What the session's terminal showed last, and how it ended. Of what ended before, too."""
    from core.standing.recalling import logs_of

    session.permit(session.system, Verb.LOGS)
    answer = logs_of(session.system, name, lines).to_json()
    if session.json:
        print_json(answer)
    else:
        print_logs(answer)
    return EXIT_OK
