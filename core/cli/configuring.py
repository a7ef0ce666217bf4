"""`the-loop config check|show|schema|init|path`."""

from core.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_line, warn
from core.cli.session import Session


def check(session: Session) -> int:
    """Run `the-loop config check`."""
    from core.config import commands
    from core.config.channels import installed_models
    from core.session.startup import troubles_ahead

    writable = commands.writable_by_others(session.config, session.environ)
    found = commands.check(session.config, session.environ, models=installed_models())
    problems = [problem._replace(remedy=session.exact(problem.remedy)) for problem in found]
    path = commands.where(session.config, session.environ).path
    exists = path.is_file()
    warnings = [
        *([writable] if writable else []),
        *(
            []
            if problems
            else troubles_ahead(session.system.settings, session.system.records, session.system.harnesses)
        ),
    ]
    if session.json:
        listed = [problem._asdict() for problem in problems]
        print_json({"problems": listed, "warnings": warnings, "ok": not problems, "path": str(path), "exists": exists})
    elif problems:
        for problem in problems:
            print_line(str(problem))
    elif exists:
        print_line(f"{path}: nothing is wrong")
    else:
        nothing = f"{path}: there is no such file, so every key has its default; `the-loop config init` makes the file"
        print_line(session.exact(nothing))
    for warning in () if session.json else warnings:
        warn(f"the-loop: {warning}")
    return EXIT_FAILED if problems else EXIT_OK


def show(session: Session) -> int:
    """Run `the-loop config show`."""
    from core.config import commands
    from core.config.channels import installed_models

    if session.json:
        print_json(commands.effective(session.config, session.environ, models=installed_models()))
    else:
        print_line(commands.show(session.config, session.environ, models=installed_models()).rstrip("\n"))
    return EXIT_OK


def schema(session: Session) -> int:
    """Run `the-loop config schema`."""
    from core.config import commands
    from core.config.channels import installed_models

    print_json(commands.schema(models=installed_models()))
    return EXIT_OK


def init(session: Session) -> int:
    """Run `the-loop config init`."""
    from core.config import commands

    if session.instance is not None:  # a person needs no system, which a configuration yet to be written may not give
        from core.service.wiring import build_rescue_system

        session.acting(build_rescue_system(session.config, session.environ, lambda _: None))
    path = commands.init(session.config, session.environ)
    if session.json:
        print_json({"path": str(path)})
    else:
        print_line(session.exact(f"{path} is written; `the-loop config check` reads it"))
    return EXIT_OK


def path(session: Session) -> int:
    """Run `the-loop config path`."""
    from core.config import commands

    location = commands.where(session.config, session.environ)
    exists = location.path.is_file()
    if session.json:
        print_json({"path": str(location.path), "why": location.why, "exists": exists})
    else:
        missing = "" if exists else "; there is no such file, so every key has its default"
        print_line(str(location.path))  # alone, so that `"$(the-loop config path)"` names the file
        warn(f"({location.why}{missing})")
    return EXIT_OK
