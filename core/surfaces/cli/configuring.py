"""`the-loop config check|show|schema|init|path`."""

import click

from core.domain.rights import Verb
from core.surfaces.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_line, warn
from core.surfaces.cli.session import Session, shared_options


@click.group("config")
@shared_options
def config_group() -> None:
    """The configuration file."""


@config_group.command("check")
@shared_options
@click.pass_obj
def check_command(session: Session) -> int:
    """Say everything that is wrong with the file; exit 1 on any finding. That there is no default file is none."""
    from core.config.channels import installed_models
    from core.config.commands import check, where, writable_by_others
    from core.session.ahead import troubles_ahead

    writable = writable_by_others(session.config, session.environ)
    found = check(session.config, session.environ, models=installed_models())
    problems = [problem._replace(remedy=session.exact(problem.remedy)) for problem in found]
    path = where(session.config, session.environ).path
    exists = path.is_file()
    warnings = [*([writable] if writable else []), *([] if problems else troubles_ahead(session.system))]
    if session.json:
        listed = [problem._asdict() for problem in problems]
        print_json({"problems": listed, "warnings": warnings, "ok": not problems, "path": str(path), "exists": exists})
    elif problems:
        for problem in problems:
            print_line(str(problem))
    elif exists:
        print_line(f"{path}: nothing is wrong")
    else:
        nothing = f"{path}: there is no such file, so none was checked: all is default; `the-loop config init` makes it"
        print_line(session.exact(nothing))
    for warning in () if session.json else warnings:
        warn(f"the-loop: {warning}")
    return EXIT_FAILED if problems else EXIT_OK


@config_group.command("show")
@shared_options
@click.pass_obj
def show_command(session: Session) -> int:
    """The configuration in effect, every key with its default."""
    from core.config.channels import installed_models
    from core.config.commands import effective, show

    if session.json:
        print_json(effective(session.config, session.environ, models=installed_models()))
    else:
        print_line(show(session.config, session.environ, models=installed_models()).rstrip("\n"))
    return EXIT_OK


@config_group.command("schema")
@shared_options
@click.pass_obj
def schema_command(session: Session) -> int:
    """The JSON Schema of the file, for editors."""
    from core.config.channels import installed_models
    from core.config.commands import schema

    print_json(schema(models=installed_models()))
    return EXIT_OK


@config_group.command("init")
@shared_options
@click.pass_obj
def init_command(session: Session) -> int:
    """Write a commented starter file; an existing one is left as it is."""
    from core.config.commands import init

    if session.instance is not None:  # a person needs no system, which a configuration yet to be written may not give
        from core.wiring import build_rescue_system

        session.permit(build_rescue_system(session.config, session.environ, lambda _: None), Verb.CONFIGURE)
    path = init(session.config, session.environ)
    if session.json:
        print_json({"path": str(path)})
    else:
        print_line(session.exact(f"{path} is written; `the-loop config check` reads it"))
    return EXIT_OK


@config_group.command("path")
@shared_options
@click.pass_obj
def path_command(session: Session) -> int:
    """Which file is read, and why."""
    from core.config.commands import where

    location = where(session.config, session.environ)
    exists = location.path.is_file()
    if session.json:
        print_json({"path": str(location.path), "why": location.why, "exists": exists})
    else:
        print_line(f"{location.path} ({location.why}{'' if exists else '; there is no such file: all is default'})")
    return EXIT_OK
