"""`serve`, without the imports that only a command line needs: the service keeps for days what it has imported."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from core.cli.quick import ELSEWHERE
from core.config.settings import Settings


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
    from core.config.loading import load_apart

    environ = dict(os.environ)
    return run_service(load_apart(config, environ), environ)


def run_service(settings: Settings, environ: Mapping[str, str]) -> int:
    """Be the service until it is told to end, and return its exit code. Raises CoreError."""
    from core.base.files import raise_limit
    from core.config.loading import refuse_alone
    from core.process.itself import close_process, share_one_heap
    from core.process.logs import log_to_stderr
    from core.service.assembly import build_service

    share_one_heap()
    refuse_alone(settings)
    log_to_stderr(logging.INFO)
    raise_limit()
    close_process()
    return build_service(settings, environ).run()
