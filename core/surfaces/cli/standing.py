"""`the-loop standing create|stop` and `loop create`: what the command line makes of its words before a row runs."""

from pathlib import Path
from typing import Any

from core.config.location import absolute
from core.surfaces.cli.printing import warn
from core.surfaces.cli.reading import text_or_input
from core.surfaces.cli.running import run, show
from core.surfaces.cli.session import Session


def create(
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
    """Run `the-loop standing create`."""
    from core.domain.session import Definition, Restart, SlackBinding
    from core.standing.creating import create_standing

    actor = session.acting(session.system)
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
    return show(session, create_standing(session.system, definition, actor, start=not no_start), name)


def _absolute(path: str) -> str:
    return str(absolute(Path(path))) if path else ""


def stop(session: Session, **given: Any) -> int:
    """Run `the-loop standing stop`, even where the configuration is not valid."""
    from core.wiring import build_rescue_system

    return run(session, system=build_rescue_system(session.config, session.environ, warn), **given)


def create_loop(session: Session, instruction: str, **given: Any) -> int:
    """Run `the-loop loop create`, the instruction from standard input where it is `-`."""
    return run(session, instruction=text_or_input(instruction), **given)
