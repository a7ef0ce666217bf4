"""`the-loop standing …`: the group, and the verbs that change what a session is or does."""

from pathlib import Path
from typing import Any

import click

from core.config.location import absolute
from core.domain.rights import Verb
from core.surfaces.cli.looking import attach_command, get_command, list_command, logs_command, screen_command
from core.surfaces.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_rows, warn
from core.surfaces.cli.saying import cancel_command, confirm_command, queue_command, say_command
from core.surfaces.cli.session import Session, shared_options


@click.group("standing")
@shared_options
def standing_group() -> None:
    """Standing sessions: named agents that outlive the service."""


for command in (
    list_command,
    get_command,
    attach_command,
    screen_command,
    logs_command,
    say_command,
    queue_command,
    cancel_command,
    confirm_command,
):
    standing_group.add_command(command)


def _report(session: Session, report: Any) -> int:
    answer = report.to_json()
    if session.json:
        print_json(answer)
    else:
        print_rows(answer["sessions"], session.exact)
    return EXIT_OK if answer["ok"] else EXIT_FAILED


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
    return str(absolute(Path(path))) if path else ""


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
