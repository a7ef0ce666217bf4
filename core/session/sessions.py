"""The one seam that answers "what is this session": declared in the configuration, else recorded, else unknown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.config.settings import Settings
from core.domain.binding import CHANNEL
from core.domain.session import Definition, SessionRecord
from core.errors import RecordUnreadable, UnknownSession
from core.names import check_name
from core.values import dataclass, replace

if TYPE_CHECKING:
    from core.domain.activity import Activity
    from core.domain.binding import Binding
    from core.ports import Records
    from core.system import System


@dataclass(frozen=True)
class Known:
    """A session that exists: what it is, where that stands, and what is known of it.

    `unreadable` is set where there is a record file that cannot be understood; then `record` is None.
    """

    definition: Definition
    declared: bool
    record: SessionRecord | None
    unreadable: RecordUnreadable | None = None

    @property
    def name(self) -> str:
        """The session's name."""
        return self.definition.name


@dataclass(frozen=True)
class Resolved:
    """A definition with the configuration's defaults filled in."""

    definition: Definition
    harness: str
    args: tuple[str, ...]
    cwd: Path


def definition_of(settings: Settings, records: Records, name: str) -> Known:
    """Return what the session is. Raises InvalidValue for what is no name, UnknownSession."""
    check_name(name)
    try:
        record, unreadable = records.read(name), None
    except RecordUnreadable as error:
        record, unreadable = None, error
    return _known(settings, name, record, unreadable)


def every_session(settings: Settings, records: Records) -> tuple[Known, ...]:
    """Return every declared and recorded session, by name."""
    found: dict[str, SessionRecord | RecordUnreadable] = {entry.name: entry for entry in records.all()}
    names = sorted({*found, *(session.name for session in settings.standing.sessions)})
    return tuple(_from_entry(settings, name, found.get(name)) for name in names)


def record_of_instance(system: System, instance: str) -> SessionRecord | None:
    """Return the record whose present instance this is."""
    records = (entry for entry in system.records.all() if isinstance(entry, SessionRecord))
    return next((record for record in records if record.instance_id == instance), None)


def activity_of(system: System, record: SessionRecord) -> Activity | None:
    """Return what the record's latest instance does; None where nothing was told of that one. Raises StoreBroken."""
    activity = system.activities.get(record.uid)
    return activity if activity is not None and activity.instance == record.instance_id else None


def has_run(system: System) -> bool:
    """Tell whether any session was ever started: each start makes a database first. Raises StoreBroken."""
    records = (entry for entry in system.records.all() if isinstance(entry, SessionRecord))
    return any(record.instance_id is not None for record in records)


def tell_database_begun(system: System) -> None:
    """Tell that a database was begun anew, where that means that an earlier one was lost."""
    if has_run(system):
        system.events.emit(
            "service.database_begun",
            level="warning",
            detail=f"{system.database.path} was gone or empty, and sessions had run: what waited in it is lost",
        )


def _from_entry(settings: Settings, name: str, entry: SessionRecord | RecordUnreadable | None) -> Known:
    if isinstance(entry, RecordUnreadable):
        return _known(settings, name, None, entry)
    return _known(settings, name, entry, None)


def _known(settings: Settings, name: str, record: SessionRecord | None, unreadable: RecordUnreadable | None) -> Known:
    declared = settings.standing.get(name)
    if declared is not None:
        return Known(declared, True, record, unreadable)
    if record is not None:
        return Known(record.definition, record.declared and not settings.whole, record)
    if unreadable is not None:
        return Known(Definition(name), False, None, unreadable)
    raise UnknownSession(name)


def home_of(settings: Settings, definition: Definition) -> str:
    """Return the chat channel in which the session belongs: its own, else everybody's; "" where none is configured."""
    return definition.slack.channel or settings.channel(CHANNEL).home


def moved(settings: Settings, definition: Definition, binding: Binding | None) -> tuple[str, ...]:
    """Return the key that names another channel than that of the session's thread; () where it is where it should."""
    home = home_of(settings, definition)
    if binding is None or not home or binding.channel == home:
        return ()
    return ("slack",) if definition.slack.channel else (f"channels.{CHANNEL}.channel",)


def left_default(settings: Settings, known: Known) -> tuple[str, ...]:
    """Return the key of the default harness where the next start would take another than runs; () for every other.

    Of a session that has a harness of its own, or had one, its entry's keys tell; where the entry is gone, that is
    told. A file that cannot be used has no default.
    """
    record = known.record
    if record is None or not record.harness_in_use or not settings.whole or (record.declared and not known.declared):
        return ()
    if record.definition.harness or known.definition.harness:
        return ()
    return ("routing.defaultHarness",) if record.harness_in_use != settings.routing.default_harness else ()


def as_started(known: Known, record: SessionRecord) -> Known:
    """Return the session as its record has it, whatever the configuration at hand says by now."""
    return replace(known, definition=record.definition, declared=record.declared, record=record)


def resolve_record(record: SessionRecord, settings: Settings) -> Resolved:
    """Fill in the same for what the record's latest pane runs: its own harness, whatever the default is by now."""
    definition = record.definition
    if record.harness_in_use and record.harness_in_use != definition.harness:
        definition = replace(definition, harness=record.harness_in_use)
    return resolve(definition, settings)


def resolve(definition: Definition, settings: Settings) -> Resolved:
    """Fill in harness, arguments and folder: omitted arguments are the harness's configured ones, `()` none at all."""
    routing = settings.routing
    harness = definition.harness or routing.default_harness
    args = definition.harness_args
    return Resolved(
        definition=definition,
        harness=harness,
        args=routing.harness_args.get(harness, ()) if args is None else args,
        cwd=Path(definition.cwd or routing.spawn_workdir).expanduser(),
    )
