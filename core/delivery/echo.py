"""Holds an Enter back until the program has read what was written before it, as far as its screen shows that.

A program that is busy may read a paste and its Enter in one, and take the Enter for a line break (Claude Code), or read
two Enters in one, of which the second answers what the first has opened.
"""

from core.domain.delivering import ECHO_UNREAD, ECHO_WITHIN, Situation
from core.domain.framing import file_of, framed, pointer_to
from core.domain.pasting import input_line, shows_text
from core.domain.session import SessionRecord
from core.errors import NotRunning
from core.system import System

_ROWS = 60  #: the last of a screen, in which its input line stands


class Echoes:
    """What input lines show of the messages that are entered in them. Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._entered: dict[str, tuple[str, str]] = {}  #: by session: an attempt, and its line at the first Enter

    def hold_up(self, situation: Situation, record: SessionRecord, number: int) -> bool:
        """Tell whether the Enter of that number has to wait a moment. Raises TmuxSilent.

        The first until the text is shown. The second while it is shown no more, since a turn may have it, and while
        nothing has changed since the first, which is not read yet then. None for ever: the harness's records tell what
        becomes of a text.
        """
        row, echo, now = situation.row, situation.traits.echo, self._system.clock.now()
        since = row.pasted_at if number == 1 else row.submitted_at
        if echo is None or since is None or now >= since + ECHO_WITHIN:
            return False
        try:
            screen = self._system.runner.screen(record.instance_id or "", _ROWS)
        except NotRunning:
            return False  # what writes will be told
        line, shown = input_line(screen, echo), self.shows(situation, record, screen)
        if number == 1:
            if shown:
                self._entered[record.uid] = (row.token, line)
            return not shown
        unchanged = self._entered.get(record.uid) == (row.token, line)
        return not shown or (unchanged and now < since + ECHO_UNREAD)

    def shows(self, situation: Situation, record: SessionRecord, screen: str) -> bool:
        """Tell whether a screen shows the end of the row's text; False where nobody knows how its harness would."""
        row, echo = situation.row, situation.traits.echo
        file = file_of(row.message.id, self._system.paths.session(record.uid))
        texts = (framed(row.message), pointer_to(row.message, file))
        return echo is not None and any(shows_text(screen, text, echo) for text in texts)
