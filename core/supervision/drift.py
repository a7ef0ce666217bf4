"""Tells when the configuration says something else of a session than what it was started with: once for each change.

Declared loops are no such thing: they are made to be as the file says, while the session runs on.
"""

import hashlib
import logging
from collections.abc import Callable

from core.config.settings import Settings
from core.domain.binding import CHANNEL
from core.domain.rows import drift
from core.errors import CoreError
from core.loops.declaring import carry_out
from core.session.apart import Unforeseen, apart
from core.session.sessions import Known, every_session, left_default, moved
from core.system import System

_LOG = logging.getLogger(__name__)
Signature = tuple[int, int, int] | None


class Drift:
    """Belongs to the supervisor's thread. Reads the file again when it changed; what runs is left as it is."""

    def __init__(self, system: System, load: Callable[[], Settings]) -> None:
        self._system = system
        self._load = load
        self._settings = system.settings
        self._seen = self._signature()

    def turn(self) -> None:
        """Look at every session. Raises StoreBroken."""
        changed = self._follow_file()
        for known in every_session(self._settings, self._system.records):
            try:
                with apart(self._system.events, known.name):
                    self._see_to(known, changed=changed)
            except Unforeseen as error:
                _LOG.warning("session passed over", extra={"session": known.name, "reason": str(error)})

    def _see_to(self, known: Known, *, changed: bool) -> None:
        if known.record is not None and not changed:
            carry_out(self._system, self._settings, known.record)
        if known.record is not None and known.record.instance_id is not None:
            self._look(known, known.record.instance_id)

    def _follow_file(self) -> bool:
        """Read the file if it is another than at the last look, and tell whether it was.

        One that has just changed may be gone for a moment, or half written: what cannot be undone waits for the look at
        which it is still the same.
        """
        signature = self._signature()
        if signature == self._seen:
            return False
        self._seen = signature
        try:
            self._settings = self._load()
        except CoreError as error:
            _LOG.warning("the changed configuration is not valid", extra={"reason": str(error)})
        return True

    def _signature(self) -> Signature:
        source = self._system.settings.source
        if source is None:
            return None
        try:
            found = source.stat()
        except OSError:
            return None  # the file is gone, or being replaced
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _look(self, known: Known, instance: str) -> None:
        binding = self._system.bindings.of_session(known.record.uid, CHANNEL) if known.record else None
        elsewhere = moved(self._settings, known.definition, binding)
        default = left_default(self._settings, known)
        changed, detail = changes(known, elsewhere, default)
        if not changed:
            return
        defaults = (self._settings.routing.default_harness,) if default else ()
        what = repr((known.definition if known.declared else None, *elsewhere, *defaults))
        digest = hashlib.sha256(what.encode()).hexdigest()[:16]
        with self._system.database.transaction(durable=False):
            if self._system.database.ingested(instance, f"drift:{digest}"):
                self._system.events.emit(
                    "standing.drift", name=known.name, instance=instance, reason=changed, detail=detail
                )


def changes(known: Known, elsewhere: tuple[str, ...] = (), default: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return which keys differ, or that the entry is gone, and what to do about it; "" where nothing changed.

    `elsewhere`: the key that names another channel than that of the thread. `default`: that of a default which is
    another than what runs.
    """
    record = known.record
    if record is None:
        return "", ""
    if not known.declared and default:
        return ", ".join((*default, *elsewhere)), f"`the-loop standing restart {known.name}` takes the change over"
    if not known.declared and elsewhere:
        return ", ".join(elsewhere), f"`the-loop standing announce {known.name}` makes a thread there"
    if not known.declared:
        removed = "its entry was removed from the configuration" if record.declared else ""
        return removed, f"`the-loop standing delete {known.name}` ends and forgets it"
    keys = drift(record.definition, known.definition)
    keys = (*keys, *default, *(key for key in elsewhere if key not in keys))
    return ", ".join(keys), f"`the-loop standing restart {known.name}` takes the change over"
