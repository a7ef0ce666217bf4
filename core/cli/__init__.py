"""The command line. It imports and runs nothing that lies in the folder where a command is typed.

Python puts that folder before all else where $PYTHONPATH has an empty or a relative entry, so those entries are dropped
here, before anything is imported that is neither Python's own nor this package. So are those of $PATH, before any
program is looked for.
"""

import os
import sys


def _drop_current_folder() -> None:
    given = os.environ.get("PYTHONPATH")
    if not given:
        return
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        relative = [os.getcwd(), *map(os.path.abspath, (e for e in given.split(os.pathsep) if not os.path.isabs(e)))]
    except OSError:  # the folder is gone, and nothing can be imported from it
        relative = []
    unwanted = {os.path.realpath(entry) for entry in relative} - {os.path.realpath(own)}
    sys.path[:] = [one for one in sys.path if os.path.isabs(one) and os.path.realpath(one) not in unwanted]


def _drop_its_programs() -> None:
    from core.base.environment import absolute_entries

    given = os.environ.get("PATH")
    if given is not None:
        os.environ["PATH"] = absolute_entries(given)


_drop_current_folder()
_drop_its_programs()
