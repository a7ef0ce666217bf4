"""What somebody in a chat sees of a session's terminal, alone."""

from core.ports import Told
from core.redaction import Redactor
from core.standing.viewing import screen
from core.system import System

_LINES = 40


def screen_told(system: System, redactor: Redactor, name: str) -> Told:
    """Return the end of what the terminal shows, without secrets. Raises UnknownSession, InvalidValue, NotRunning."""
    shown = screen(system, name, _LINES)
    lines = redactor.redact(shown.text).rstrip().splitlines()
    head = f"{name} has ended; this was kept of its terminal:" if shown.ended else f"{name}:"
    return Told(head, "\n".join(line.rstrip() for line in lines) or "(nothing)")
