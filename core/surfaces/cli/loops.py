"""`the-loop loop …`: what a session is prompted with again and again. Parse, call core, print."""

from typing import TYPE_CHECKING

import click

from core.domain.rights import Verb
from core.surfaces.cli.printing import EXIT_OK, print_json, print_loops
from core.surfaces.cli.reading import text_or_input
from core.surfaces.cli.session import Session, shared_options

if TYPE_CHECKING:
    from core.loops.answers import LoopAnswer
    from core.loops.verbs import Asker


@click.group("loop")
@shared_options
def loop_group() -> None:
    """Loops: what a session is prompted with again and again. An agent has those of its own session."""


def _asker(session: Session, verb: Verb) -> "Asker":
    from core.loops.verbs import asker_of

    actor = session.permit(session.system, verb)
    return asker_of(session.system, actor, None if session.as_operator else session.instance)


def _report(session: Session, answer: "LoopAnswer") -> int:
    told = answer.to_json()
    told["said"] = session.exact(told["said"])
    if session.json:
        print_json(told)
    else:
        print_loops(told)
    return EXIT_OK


@loop_group.command("list")
@click.argument("name", default="")
@shared_options
@click.pass_obj
def list_command(session: Session, name: str) -> int:
    """A session's loops, or without NAME the open ones of all. Those that have ended stand last."""
    from core.loops.verbs import list_loops

    return _report(session, list_loops(session.system, _asker(session, Verb.LOOPS), name))


@loop_group.command("create")
@click.argument("name", default="")
@click.option("--instruction", required=True, help="What is to be done at each run; `-` reads standard input.")
@click.option("--interval", help="How far apart its runs are: 30s, 1.5h, 5 minutes.")
@click.option("--cron", help="Five fields, instead of an interval. Neither: its agent names each next run.")
@click.option("--time-zone", help="Of --cron: an IANA name such as Europe/Berlin; default: UTC.")
@click.option("--keep-alive", is_flag=True, help="It ends only when it is stopped, and its session is brought back.")
@click.option("--max-runs", type=int, help="It is complete after so many runs.")
@shared_options
@click.pass_obj
def create_command(
    session: Session,
    name: str,
    instruction: str,
    interval: str | None,
    cron: str | None,
    time_zone: str | None,
    keep_alive: bool,
    max_runs: int | None,
) -> int:
    """Make a loop; an agent leaves NAME out."""
    from core.domain.loopspec import Asked
    from core.loops.verbs import create_loop

    asked = Asked(text_or_input(instruction), interval, cron, time_zone, keep_alive, max_runs)
    return _report(session, create_loop(session.system, _asker(session, Verb.LOOP), name, asked))


@loop_group.command("stop")
@click.argument("loop_id", metavar="ID")
@click.option("--reason", default="", help="Kept with it, and told in the thread.")
@shared_options
@click.pass_obj
def stop_command(session: Session, loop_id: str, reason: str) -> int:
    """End a loop for good."""
    from core.loops.verbs import stop_loop

    return _report(session, stop_loop(session.system, _asker(session, Verb.LOOP), loop_id, reason))


@loop_group.command("pause")
@click.argument("loop_id", metavar="ID")
@click.option("--reason", default="", help="Kept with it.")
@shared_options
@click.pass_obj
def pause_command(session: Session, loop_id: str, reason: str) -> int:
    """Let a loop fire no more until it is resumed."""
    from core.loops.verbs import pause_loop

    return _report(session, pause_loop(session.system, _asker(session, Verb.LOOP), loop_id, reason))


@loop_group.command("resume")
@click.argument("loop_id", metavar="ID")
@click.option("--reason", default="", help="Kept with it.")
@shared_options
@click.pass_obj
def resume_command(session: Session, loop_id: str, reason: str) -> int:
    """Let a paused loop go on, or one that failures hold. Nothing is caught up."""
    from core.loops.verbs import resume_loop

    return _report(session, resume_loop(session.system, _asker(session, Verb.LOOP), loop_id, reason))


@loop_group.command("run")
@click.argument("loop_id", metavar="ID")
@click.option("--reason", default="", help="Kept with it.")
@shared_options
@click.pass_obj
def run_command(session: Session, loop_id: str, reason: str) -> int:
    """Make a loop due now; it goes in once its session is idle."""
    from core.loops.verbs import run_loop_now

    return _report(session, run_loop_now(session.system, _asker(session, Verb.LOOP), loop_id, reason))


@loop_group.command("schedule")
@click.argument("loop_id", metavar="ID")
@click.option("--in", "delay", required=True, help="A span such as 10m, or seconds.")
@click.option("--reason", required=True, help="Why then.")
@shared_options
@click.pass_obj
def schedule_command(session: Session, loop_id: str, delay: str, reason: str) -> int:
    """Name the next run of a loop without a cadence."""
    from core.loops.verbs import schedule_next_run

    return _report(session, schedule_next_run(session.system, _asker(session, Verb.LOOP), loop_id, delay, reason))
