"""The loops that the configuration declares, made to be as it says: by session and name.

A new entry becomes a loop, a changed one another loop in the place of the first, whose runs are counted anew; a removed
one ends its loop. A loop that has ended, whoever ended it, stays so until its entry changes: what tells that an entry
was carried out is its digest, which the loop keeps.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence

from core.config.settings import DeclaredLoop, Settings
from core.domain.loop import OPEN, Loop, LoopStatus
from core.domain.loopspec import Asked, Bounds, understood
from core.domain.session import Phase, SessionRecord
from core.domain.tick import cadence
from core.effects import Effect, effect
from core.errors import CoreError, InvalidValue
from core.loops.ending import end_loop
from core.loops.telling import tell
from core.loops.verbs import new_loop
from core.system import System

ACTOR = "config"
REMOVED = "its entry was removed from the configuration"
CHANGED = "its entry in the configuration was changed, and another loop takes its place"
_LOG = logging.getLogger(__name__)


def carry_out(system: System, settings: Settings, record: SessionRecord) -> None:
    """Make the session's declared loops those of `settings`, which may be newer than the system's own.

    Done again it changes nothing. A loop for which there is no room is told of once, and made when there is some.
    Raises StoreBroken.
    """
    if record.phase is Phase.DELETING:
        return
    declared = {entry.name: entry for entry in settings.standing.loops.get(record.name, ())}
    present = _carried_out(system.loops.of_session(record.uid))
    for name, loop in present.items():
        if name not in declared:
            _withdraw(system, loop, REMOVED)
    for name, entry in declared.items():
        digest, current = digest_of(entry), present.get(name)
        if current is not None and current.digest == digest:
            continue
        if current is not None:
            _withdraw(system, current, CHANGED)
        _make(system, settings, record, entry, digest)


def carry_out_first(system: System, record: SessionRecord) -> None:
    """Make the declared loops of a session that has come up for the first time; trouble is logged, and no start's.

    Later the service sees to them, with the configuration as it is then: one that starts a session may have read an
    older one.
    """
    if record.name not in system.settings.standing.loops:
        return
    try:
        if not _carried_out(system.loops.of_session(record.uid)):
            with effect(Effect.START_LOOPS):
                carry_out(system, system.settings, record)
    except CoreError as error:
        _LOG.warning("declared loops could not be made", extra={"session": record.name, "reason": str(error)})


def digest_of(entry: DeclaredLoop) -> str:
    """Return what changes when the entry does, its name apart; a key with its default counts as left out."""
    defaults = entry._field_defaults
    given = {key: value for key, value in entry._asdict().items() if key != "name" and value != defaults.get(key)}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def _carried_out(loops: Sequence[Loop]) -> Mapping[str, Loop]:
    """Return by name the loop of each entry that was carried out and not withdrawn since."""
    return {loop.declared: loop for loop in loops if loop.declared and loop.digest}


def _withdraw(system: System, loop: Loop, reason: str) -> None:
    """End the loop, if it has not ended before, and forget that its entry was carried out."""
    if loop.status in OPEN:
        end_loop(system, loop, LoopStatus.STOPPED, reason, ACTOR, digest="")
    else:
        system.loops.change(loop, digest="")


def _make(system: System, settings: Settings, record: SessionRecord, entry: DeclaredLoop, digest: str) -> None:
    bounds = Bounds(settings.loops.min_interval, settings.loops.max_interval)
    try:
        spec = understood(Asked(*entry[1:]), bounds, system.clock.now())
    except InvalidValue as error:  # valid when the file was read: a time zone that has gone from the machine since
        _tell_unmade(system, record, entry, digest, error.message, error.remedy)
        return
    loop = new_loop(system, record, spec, ACTOR, entry.name, digest)
    if not system.loops.add(loop, settings.loops.max_open_per_session):
        remedy = f"stop one, which `the-loop loop list {record.name}` shows; then it is made"
        _tell_unmade(system, record, entry, digest, "loops.maxOpenPerSession are open", remedy)
        return
    tell(system, "loop.created", loop, actor=ACTOR, detail=f"{entry.name}: {cadence(loop)}")
    system.poke()


def _tell_unmade(
    system: System, record: SessionRecord, entry: DeclaredLoop, digest: str, reason: str, remedy: str
) -> None:
    """Tell once, for this entry and this life of the session, that its loop is not there."""
    with system.database.transaction(durable=False):
        if not system.database.ingested(record.instance_id or record.uid, f"loop:{entry.name}:{digest}"):
            return
        said = f"its declared loop {entry.name} could not be made: {reason}"
        system.events.emit("loop.failed", level="warning", name=record.name, actor=ACTOR, reason=said, detail=remedy)
