"""Where Claude Code's screen shows its input line: between two frames across the screen, the last but what follows it.

As seen of 2.1.197, 2.1.280 and 2.1.332. A dialog stands in the place of the input line, and so do the whole transcript
(ctrl+o) and, of newer versions, the search in what was typed before (ctrl+r).
"""

import re

from core.domain.pane import InputLine, View

_FRAME = re.compile(r"─{8,}")
_MARK = re.compile(r"(?P<mark>[❯>!#&])(?:\s|$)")
_MODES = {"!": "shell mode", "#": "memory mode", "&": "background mode"}  #: the text is run, or kept, but no message
_ELSEWHERE = re.compile(r"\s+(?:❯\s|search prompts:)")  #: below the input line: keys go to a list, or to a search
_UNCHECKED = re.compile(r"auto mode can.t check actions", re.IGNORECASE)

UNCHECKED = (
    "its check cannot be reached from here, so auto mode asks about each action that needs it, in the terminal; to be "
    "asked in the thread, set `routing.harnessTrust.permissionMode: default`, then `the-loop standing restart {name}`"
)


def read_input_line(view: View) -> InputLine | None:
    """Return the line in which a message is written, None where the screen does not show it."""
    rows = view.rows
    frames = [number for number, row in enumerate(rows) if _FRAME.match(row)]
    if len(frames) < 2:
        return None
    upper, lower = frames[-2:]
    marked = _MARK.match(rows[upper + 1])
    if upper + 1 == lower or marked is None or any(_ELSEWHERE.match(row) for row in rows[lower + 1 :]):
        return None
    text = "\n".join(view.typed(row) for row in range(upper + 1, lower))[1:].strip()
    return InputLine(text, _MODES.get(marked["mark"], ""))


def tells_unchecked(dialog: str) -> bool:
    """Return whether a dialog's text says that auto mode's check cannot be reached (2.1.332)."""
    return _UNCHECKED.search(" ".join(dialog.split())) is not None
