"""What a session's terminal shows now: its input line, a dialog, or something else.

A program redraws its screen in pieces and one look may see half of it, so two looks must agree before a message is
held.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum

from core.base.errors import NotRunning, TmuxSilent
from core.base.values import dataclass
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.model.dialog import Dialog, read_dialog
from core.model.pane import InputLine, View
from core.model.session import SessionRecord
from core.session.folder import has_input_line, note_input_line
from core.session.sessions import activity_of, resolve_record
from core.session.system import System
from core.tmux.runner import Runner

AGAIN = timedelta(seconds=0.25)  #: from one look to the next, between which a redraw is over
_REDRAWS = timedelta(minutes=1)  #: from one request to draw anew to the next; whoever looks sees a row come or go
DRAWN = timedelta(seconds=5)  #: from a program's word that it reads to its first screen, on a busy machine
_STALE = timedelta(seconds=15)  #: a look that is older than this says nothing about the next


class Form(Enum):
    """What a screen shows."""

    INPUT = "input"  #: the line in which a message is written
    MODE = "mode"  #: that line, in a mode in which what is typed is no message
    DIALOG = "dialog"
    OTHER = "other"  #: neither: a view of something, half a redraw, or a form that is not known


@dataclass(frozen=True)
class Shown:
    """One look at a screen."""

    form: Form
    view: View
    dialog: Dialog | None = None
    line: InputLine | None = None  #: of INPUT and MODE

    def same(self, other: "Shown") -> bool:
        """Return whether both show the same, wherever a cursor is."""
        if self.dialog is not None:
            return self.dialog.same(other.dialog)
        return self.form is other.form and self.line == other.line


def look(settings: Settings, runner: Runner, harnesses: Harnesses, record: SessionRecord) -> Shown:
    """Look once. Raises NotRunning, TmuxSilent, UnsupportedHarness."""
    harness = harnesses.get(resolve_record(record, settings).harness)
    view = runner.view(record.instance_id or "")
    line = harness.input_line(view) if harness.traits.input_line else None
    if line is not None:
        return Shown(Form.MODE if line.mode else Form.INPUT, view, line=line)
    dialog = read_dialog(view.rows)
    return Shown(Form.OTHER if dialog is None else Form.DIALOG, view, dialog)


class Screens:
    """Looks, and remembers of each instance what it saw last. Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._last: dict[str, tuple[datetime, datetime, Shown]] = {}  #: since when, the latest look, and what it showed
        self._redrawn: dict[str, datetime] = {}  #: by instance: when it was last let draw anew
        self._known: set[str] = set()  #: instances whose input line was seen

    def look(self, record: SessionRecord) -> tuple[Shown, bool]:
        """Return what is shown, and whether it was shown a moment ago, too. Raises NotRunning, TmuxSilent."""
        instance, now = record.instance_id or "", self._system.clock.now()
        shown = look(self._system.settings, self._system.runner, self._system.harnesses, record)
        if shown.form is Form.INPUT:
            self._know(record)
        if shown.form is Form.INPUT and shown.line == InputLine():
            self._last.pop(instance, None)
            return shown, True
        since, latest, before = self._last.get(instance, (now, now, shown))
        if not shown.same(before) or not timedelta() <= now - latest <= _STALE:
            since = now
        self._last[instance] = (since, now, shown)
        return shown, now - since >= AGAIN

    def before_keys(self, record: SessionRecord) -> tuple[Shown, bool] | None:
        """Look before something is typed; see `look`. None: there is nothing to look for, or nothing to look at.

        A program whose input line was not seen yet may not have drawn it: what shows neither has to stand for longer.
        """
        harness = self._system.harnesses.get(resolve_record(record, self._system.settings).harness)
        if not harness.traits.input_line:
            return None
        try:
            shown, steady = self.look(record)
        except NotRunning:
            return None  # what writes will be told
        if shown.form is Form.OTHER and not self._was_seen(record):
            since, latest, _ = self._last[record.instance_id or ""]
            steady = latest - since >= DRAWN
        return shown, steady

    def is_obstacle(self, record: SessionRecord, shown: Shown) -> bool:
        """Return whether something stands in the place of the input line.

        A program whose input line was never seen, and of a version that nobody has tried, may draw it in a form that is
        not known: then only a dialog counts.
        """
        return shown.form is not Form.INPUT and (shown.form is not Form.OTHER or self._knows(record))

    def redraw(self, record: SessionRecord) -> bool:
        """Let the program draw anew, unless it did a moment ago; return whether another look may see another screen.

        What has been written over an input line stands there until then. A view that a person opened stays one. Raises
        TmuxSilent.
        """
        instance, now = record.instance_id or "", self._system.clock.now()
        last = self._redrawn.get(instance)
        if last is not None and timedelta() <= now - last < _REDRAWS:
            return False
        self._redrawn[instance] = now
        try:
            self._system.runner.redraw(instance)
        except NotRunning:
            return False
        return True

    def find_input_line(self, record: SessionRecord) -> None:
        """Look for the input line of an instance, until it is seen once: from then on a screen without it holds.

        Raises StoreBroken, UnsupportedHarness.
        """
        harness = self._system.harnesses.get(resolve_record(record, self._system.settings).harness)
        if harness.traits.input_line and not self._knows(record):
            with suppress(NotRunning, TmuxSilent):
                self.look(record)

    def _know(self, record: SessionRecord) -> None:
        instance = record.instance_id or ""
        if instance not in self._known:
            note_input_line(self._system.paths, record.uid)
            self._known.add(instance)

    def _was_seen(self, record: SessionRecord) -> bool:
        return (record.instance_id or "") in self._known or has_input_line(self._system.paths, record.uid)

    def _knows(self, record: SessionRecord) -> bool:
        if self._was_seen(record):
            return True
        activity = activity_of(self._system.activities, record)
        return activity is not None and activity.tried
