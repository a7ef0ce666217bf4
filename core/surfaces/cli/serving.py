"""`serve`, without what only a command line needs: what the service's process has imported once, it keeps for days."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from core.config.settings import Settings
from core.surfaces.cli.quick import ELSEWHERE


def answer(arguments: list[str]) -> int | None:
    """Run the service for `[--config FILE] serve`, and return its exit code; None for every other command line.

    Raises CoreError as the command proper does.
    """
    match arguments:
        case ["serve"]:
            config = None
        case ["--config", path, "serve"]:
            config = Path(path)
        case _:
            return None
    if any(os.environ.get(name) for name in ELSEWHERE):
        return None
    from core.config.loading import load

    environ = dict(os.environ)
    return run_service(load(config, environ), environ)


def run_service(settings: Settings, environ: Mapping[str, str]) -> int:
    """Be the service until it is told to end, and return its exit code. Raises CoreError."""
    from core.config.demonstration import refuse_alone
    from core.descriptors import raise_limit
    from core.process.closed import close_process
    from core.process.logs import log_to_stderr
    from core.process.memory import share_one_heap
    from core.serving.assembly import build_service

    share_one_heap()
    refuse_alone(settings)
    log_to_stderr(logging.INFO)
    raise_limit()
    close_process()
    return build_service(settings, environ).run()
