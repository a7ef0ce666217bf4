"""Where Claude Code's screen shows its input line: between two frames across the screen, the last but what follows it.

As seen of 2.1.197, 2.1.280 and 2.1.332. A dialog stands in the place of the input line, and so do the whole transcript
(ctrl+o) and, of newer versions, the search in what was typed before (ctrl+r).
"""

import re
from collections.abc import Sequence

_FRAME = re.compile(r"─{8,}")
_MARK = re.compile(r"[❯>!#&](?:\s|$)")  #: `!` of a shell command, the others of a prompt
_ELSEWHERE = re.compile(r"\s+(?:❯\s|search prompts:)")  #: below the input line: keys go to a list, or to a search
_UNCHECKED = re.compile(r"auto mode can.t check actions", re.IGNORECASE)

UNCHECKED = (
    "its check cannot be reached from here, so auto mode asks about each action that needs it, in the terminal; to be "
    "asked in the thread, set `routing.harnessTrust.permissionMode: default`, then `the-loop standing restart {name}`"
)


def shows_input_line(rows: Sequence[str]) -> bool:
    """Tell whether the screen shows the line in which a message is written."""
    frames = [number for number, row in enumerate(rows) if _FRAME.match(row)]
    if len(frames) < 2:
        return False
    upper, lower = frames[-2:]
    if upper + 1 == lower or not _MARK.match(rows[upper + 1]):
        return False
    return not any(_ELSEWHERE.match(row) for row in rows[lower + 1 :])


def tells_unchecked(dialog: str) -> bool:
    """Return whether a dialog's text says that auto mode's check cannot be reached (2.1.332)."""
    return _UNCHECKED.search(" ".join(dialog.split())) is not None
