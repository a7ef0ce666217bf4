"""Watches new panes until their harnesses read, have ended, or had their time. No lock is held meanwhile."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum

from core.domain.activity import ActivityState
from core.errors import CoreError, NotRunning, TmuxSilent
from core.observing.dialogs import hold
from core.observing.hearing import notice_start
from core.sight.screens import Screens
from core.sight.situations import opinion_of
from core.standing.spawning import Opened
from core.store.files import holds_files
from core.system import System

_SCREEN_LINES = 60
_FIRST = timedelta(seconds=1)  #: from a spawn to the first look for a dialog; most harnesses read by then
_BETWEEN = timedelta(seconds=0.5)


class Seen(Enum):
    """What became of a new pane."""

    READY = "ready"
    DEAD = "dead"
    ASKING = "asking"  #: it shows a dialog, and reads no message before somebody has answered that
    LATE = "late"  #: it lives, and has not said that it reads


class FirstDialogs:
    """What new panes show before they read. Belongs to one thread, and is kept from one round of looks to the next."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._screens = Screens(system)
        self._due: dict[str, datetime] = {}  #: by instance: when its screen is looked at next

    def asks(self, opened: Opened) -> bool:
        """Return whether it shows a dialog, by two looks, and note that: no hook has run yet that could tell."""
        instance, now = opened.context.instance, self._system.clock.now()
        if now < self._due.setdefault(instance, now + _FIRST):
            return False
        self._due[instance] = now + _BETWEEN
        try:
            shown, steady = self._screens.look(opened.record)
        except (NotRunning, TmuxSilent):
            return False  # looked at again until the deadline; the process is watched besides
        if not steady or shown.dialog is None:
            return False
        hold(self._system, opened.record, shown.dialog)
        return True


class Looks:
    """One round of looks at new panes: tmux is asked once for the screens of all of them."""

    def __init__(self, system: System, opened: Iterable[Opened], dialogs: FirstDialogs) -> None:
        self._system = system
        self._dialogs = dialogs
        self._instances = [one.context.instance for one in opened if not one.harness.traits.boot_signal]
        self._shown: Mapping[str, str] | None = None

    def at(self, opened: Opened) -> Seen | None:
        """Return what is to be seen of the pane now, None if nothing is decided yet."""
        if not self._system.processes.alive(opened.pane.pid):
            return Seen.DEAD
        if self._reads(opened):
            return Seen.READY
        if self._dialogs.asks(opened):
            return Seen.ASKING
        return Seen.LATE if opened.deadline.passed() else None

    def _reads(self, opened: Opened) -> bool:
        if opened.harness.traits.boot_signal:
            return _said_so(self._system, opened) or _is_shown(self._system, opened)
        shown = self._screens().get(opened.context.instance)
        if shown is None:
            return False  # looked at again until the deadline; the process is watched besides
        sign = opened.harness.screen_ready(shown)
        return opened.probe.passed() if sign is None else sign

    def _screens(self) -> Mapping[str, str]:
        if self._shown is None:
            try:
                self._shown = self._system.runner.screens(self._instances, _SCREEN_LINES)
            except TmuxSilent:
                self._shown = {}
        return self._shown


def _is_shown(system: System, opened: Opened) -> bool:
    """Return whether another source shows that it reads, while its hooks are silent."""
    try:
        opinion = opinion_of(system, opened.record, opened.pane.pid)
        notice_start(system, opened.record, opinion)
    except CoreError:
        return False  # looked at again until the deadline
    return _moved_on(system, opened)


def _said_so(system: System, opened: Opened) -> bool:
    try:
        if holds_files(str(opened.context.spool)):
            system.ingest(opened.record.uid)
        return _moved_on(system, opened)
    except CoreError:
        return False  # looked at again until the deadline; the process is watched besides


def _moved_on(system: System, opened: Opened) -> bool:
    activity = system.activities.get(opened.record.uid)
    return (
        activity is not None
        and activity.instance == opened.context.instance
        and activity.state is not ActivityState.STARTING
    )
