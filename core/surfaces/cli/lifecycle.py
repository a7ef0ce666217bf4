"""`the-loop start|stop|restart|status|serve`: the service and the sessions together."""

from collections.abc import Mapping
from typing import Any

import click

from core.config.demonstration import refuse_alone
from core.config.problems import ConfigError
from core.domain.rights import Verb
from core.domain.rows import misconfigured_row
from core.surfaces.cli.printing import (
    EXIT_FAILED,
    EXIT_OK,
    print_harnesses,
    print_json,
    print_rows,
    print_services,
    warn,
)
from core.surfaces.cli.session import Session, shared_options


def _misconfigured(session: Session, error: ConfigError) -> int:
    """Answer with the one row that stands for all sessions; what is wrong is the same in every form."""
    row = misconfigured_row(session.exact(str(error))).to_json()
    if session.json:
        print_json({"services": [], "standingSessions": [row], "ok": False})
    else:
        print_rows([row], session.exact)
    return EXIT_FAILED


def _report(session: Session, report: Mapping[str, Any]) -> int:
    if session.json:
        print_json(report)
    else:
        print_services(report["services"])
        print_harnesses(report.get("harnesses", []))
        print_rows(report["standingSessions"], session.exact)
    return EXIT_OK if report["ok"] else EXIT_FAILED


@click.command("start")
@shared_options
@click.pass_obj
def start_command(session: Session) -> int:
    """Bring up the service, and the sessions that a boot starts."""
    from core.serving.hosting import start

    try:
        actor = session.permit(session.system, Verb.START)
    except ConfigError as error:
        return _misconfigured(session, error)
    return _report(session, start(session.system, actor, warn))


@click.command("stop")
@shared_options
@click.pass_obj
def stop_command(session: Session) -> int:
    """End every session gracefully, then the service. The next start resumes the conversations."""
    from core.serving.hosting import stop
    from core.wiring import build_rescue_system

    system = build_rescue_system(session.config, session.environ, warn)
    actor = session.permit(system, Verb.STOP)
    return _report(session, stop(system, actor))


@click.command("restart")
@shared_options
@click.pass_obj
def restart_command(session: Session) -> int:
    """Stop everything, then start it all again. Conversations resume, and whatever ran runs."""
    from core.serving.hosting import restart

    try:
        actor = session.permit(session.system, Verb.RESTART)
    except ConfigError as error:
        return _misconfigured(session, error)
    refuse_alone(session.settings)  # before anything is stopped that nothing would start again
    return _report(session, restart(session.system, actor, warn))


@click.command("status")
@shared_options
@click.pass_obj
def status_command(session: Session) -> int:
    """Is it up? Exit code 0 only if all that should run does."""
    from core.serving.hosting import status

    try:
        session.permit(session.system, Verb.STATUS)
    except ConfigError as error:
        return _misconfigured(session, error)
    return _report(session, status(session.system))


@click.command("serve")
@click.option("--tmux", is_flag=True, help="Be the tmux server instead of the service: for its own systemd unit.")
@shared_options
@click.pass_obj
def serve_command(session: Session, tmux: bool) -> int:
    """Run the service in the foreground."""
    session.permit(session.system, Verb.START)
    if tmux:
        from core.wiring import become_tmux

        become_tmux(session.settings, session.environ)
    from core.surfaces.cli.serving import run_service

    return run_service(session.settings, session.environ)
