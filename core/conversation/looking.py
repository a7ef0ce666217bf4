"""What somebody in a chat sees of a session's terminal, alone."""

from core.ports import Told
from core.redaction import Redactor
from core.standing.viewing import Screen

LINES = 40  #: of the end of a terminal


def screen_told(shown: Screen, redactor: Redactor, name: str) -> Told:
    """Return what a terminal shows, without secrets."""
    lines = redactor.redact(shown.text).rstrip().splitlines()
    head = f"{name} has ended; this was kept of its terminal:" if shown.ended else f"{name}:"
    return Told(head, "\n".join(line.rstrip() for line in lines) or "(nothing)")
