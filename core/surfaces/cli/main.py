"""The command line's entry. Nothing heavy is imported before it is known that a command needs it."""

import sys

from core.errors import CoreError
from core.surfaces.cli.printing import EXIT_FAILED, error_body, exit_code, print_json, warn


def main() -> None:
    """Run the command and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code: 0, 1 for a refusal or failure, 2 for bad input."""
    try:
        return _dispatch(arguments)
    except CoreError as error:
        if "--json" in arguments or "--format=json" in arguments or "json" in arguments:
            print_json(error_body(error))
        warn(f"the-loop: {error}")
        return exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return EXIT_FAILED
    except Exception:
        import logging  # here, since every command pays for what stands above

        logging.getLogger(__name__).exception("command failed")
        warn("the-loop: this is a defect of the-loop; the lines above say where")
        return EXIT_FAILED


def _dispatch(arguments: list[str]) -> int:
    from core.surfaces.cli import quick

    answered = quick.answer(arguments)
    if answered is not None:
        return answered
    from core.surfaces.cli.app import invoke

    return invoke(arguments)
