"""The entry point of the command line. It imports nothing heavy before it knows that a command needs it."""

import gc
import os
import sys
from pathlib import Path

from core.base.errors import CoreError, NoFolder
from core.base.loggers import logger
from core.base.paths import locate
from core.cli.printing import (
    EXIT_FAILED,
    OutputBroken,
    discard_output,
    error_body,
    exit_code,
    flush_output,
    named_config,
    open_streams,
    print_json,
    settle_errors,
    wants_json,
    warn,
)
from core.session.commands import exact


def main() -> None:
    """Run the command and exit with its code."""
    open_streams()
    code = run(sys.argv[1:])
    settle_errors()
    gc.freeze()  # else the interpreter looks for garbage once more, for as long as a bare one takes to start and end
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code: 0, 1 for a refusal or failure, 2 for bad input."""
    try:
        code = _answered(arguments)
        flush_output()
        return code
    except OutputBroken as error:
        warn(f"the-loop: {error}")
    except BrokenPipeError:
        pass  # whoever read has read enough
    discard_output()
    return EXIT_FAILED


def _answered(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except CoreError as error:
        return _told(arguments, error)
    except KeyboardInterrupt:
        return 130
    except (OutputBroken, BrokenPipeError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and _was_printing(error):
            raise OutputBroken(error) from error
        flush_output()  # the same, of what stands in a buffer still
        logger(__name__).exception("command failed")
        return _told(arguments, Defect())


def _was_printing(error: OSError) -> bool:
    """Return whether click could not print its help or our version, which it does itself."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == "click.utils"


class Defect(CoreError):
    """A command failed in a way that nobody foresaw."""

    code = "internal_error"

    def __init__(self) -> None:
        super().__init__("this is a defect of the-loop", "report it with the lines on standard error that say where")


def _told(arguments: list[str], error: CoreError) -> int:
    named = named_config(arguments)
    try:
        source = locate(Path(named) if named else None, os.environ).path
    except NoFolder:
        source = Path(named or "")  # which no command can be told to take from here
    if wants_json(arguments):
        print_json(error_body(error, lambda text: exact(text, source, os.environ)))
    warn(f"the-loop: {exact(str(error), source, os.environ)}")
    return exit_code(error)


def _dispatch(arguments: list[str]) -> int:
    serves = arguments[-1:] == ["serve"]
    if serves:  # before anything that takes time: until then others can read its environment
        from core.process.itself import close_process

        close_process()
    from core.cli import quick

    served = quick.serve_tools(arguments)
    if served is not None:
        return served
    answered = quick.answer(arguments)
    if answered is not None:
        return answered
    if serves:
        from core.cli import serving

        ended = serving.answer(arguments)
        if ended is not None:
            return ended
    from core.cli.app import invoke

    return invoke(arguments)
