"""The one place that answers "what is this session": declared in the configuration, else recorded, else unknown.

Also who may steer a session (the channel's allow-list, narrowed by the session's own), whether it has a thread, whether
it will be brought back after an end, and work on many sessions in turn, in which the failure of one is reported and
does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import (
    CoreError,
    LockBusy,
    RecordUnreadable,
    RowBroken,
    TmuxMissing,
    TmuxSilent,
    UnknownSession,
    UnsupportedHarness,
)
from core.base.files import is_there
from core.base.loggers import logger
from core.base.names import check_name
from core.base.paths import expanded
from core.base.values import dataclass, deferred, replace
from core.config.settings import Settings
from core.model.message import InboxRow
from core.model.restarting import may_be_brought_back, restarts_itself
from core.model.session import Definition, SessionRecord

if TYPE_CHECKING:
    from weakref import WeakKeyDictionary

    from core.base.paths import StatePaths
    from core.harness.catalogue import Harnesses
    from core.model.activity import Activity
    from core.model.harness import Traits
    from core.model.posts import NewPost
    from core.model.session import Binding
    from core.store.database import Database
    from core.store.eventlog import EventLog
    from core.store.loops import Loops
    from core.store.records import Records
    from core.store.sessions import Activities, Bindings, ExitLedger


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
    try:
        return _known(settings, name, record, unreadable)
    except UnknownSession:
        raise UnknownSession(name, names_of(settings, records)) from None


def names_of(settings: Settings, records: Records) -> tuple[str, ...]:
    """Return the names of all declared and recorded sessions, sorted."""
    recorded = {entry.name for entry in records.all()}
    return tuple(sorted(recorded | {session.name for session in settings.standing.sessions}))


def every_session(settings: Settings, records: Records) -> tuple[Known, ...]:
    """Return every declared and recorded session, by name."""
    found: dict[str, SessionRecord | RecordUnreadable] = {entry.name: entry for entry in records.all()}
    names = sorted({*found, *(session.name for session in settings.standing.sessions)})
    return tuple(_from_entry(settings, name, found.get(name)) for name in names)


def record_of_instance(records: Records, instance: str) -> SessionRecord | None:
    """Return the record whose present instance this is."""
    entries = (entry for entry in records.all() if isinstance(entry, SessionRecord))
    return next((record for record in entries if record.instance_id == instance), None)


def activity_of(activities: Activities, record: SessionRecord) -> Activity | None:
    """Return what the record's latest instance does; None where nothing was told of that one. Raises StoreBroken."""
    activity = activities.get(record.uid)
    return activity if activity is not None and activity.instance == record.instance_id else None


def has_run(records: Records) -> bool:
    """Return whether any session was ever started: each start makes a database first. Raises StoreBroken."""
    entries = (entry for entry in records.all() if isinstance(entry, SessionRecord))
    return any(record.instance_id is not None for record in entries)


def tell_database_begun(records: Records, database: Database, events: EventLog) -> None:
    """Report that a new database was created, where that means that an earlier one was lost."""
    if has_run(records):
        events.emit(
            "service.database_begun",
            level="warning",
            detail=f"{database.path} was gone or empty, and sessions had run: what waited in it is lost",
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
    return definition.binding.channel or settings.channel(definition.chat_kind).home


def moved(settings: Settings, definition: Definition, binding: Binding | None) -> tuple[str, ...]:
    """Return the key that names another channel than that of the session's thread; () where it is where it should."""
    if binding is None or not belongs_elsewhere(settings, definition, binding):
        return ()
    kind = definition.chat_kind
    return (kind,) if definition.binding.channel or kind != binding.channel_kind else (f"channels.{kind}.channel",)


def belongs_elsewhere(settings: Settings, definition: Definition, binding: Binding) -> bool:
    """Return whether the session is to have its thread in another channel, or another chat, than it has one in."""
    home = home_of(settings, definition)
    return bool(home) and (definition.chat_kind, home) != (binding.channel_kind, binding.channel)


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
        cwd=expanded(definition.cwd or routing.spawn_workdir),
    )


def traits_of(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> Traits:
    """Return the traits of the harness that the record's latest pane runs. Raises UnsupportedHarness."""
    return harnesses.get(resolve_record(record, settings).harness).traits


def has_tools(settings: Settings, paths: StatePaths, harnesses: Harnesses, record: SessionRecord) -> bool:
    """Return whether the record's agent was given our tools. Raises StoreBroken."""
    try:
        given = traits_of(settings, harnesses, record).tools
    except UnsupportedHarness:
        return False
    return given and is_there(paths.agent_token(record.uid))


Authorized = Callable[[str], bool]


@dataclass(frozen=True)
class Author:
    """Somebody who speaks in a chat."""

    chat: str  #: its kind
    id: str  #: as it names people: a member id, or `team:member` for a guest or an outsider who is listed so


def may_steer(settings: Settings, records: Records, authorized: Authorized, name: str, author: Author) -> bool:
    """Return whether the author may speak to the session now: on the channel's list, and the session's if it has one.

    A session that nobody can read is steered by nobody, and one that lists
    people of one chat by nobody of a chat of which it says nothing.
    """
    if not author.id or not authorized(author.id):
        return False
    try:
        known = definition_of(settings, records, name)
    except UnknownSession:
        return False
    if known.unreadable is not None and not known.declared:
        return False
    lists = {kind: said.authorized_users for kind, said in known.definition.chat.items()}
    if author.chat not in lists:
        return all(listed is None for listed in lists.values())
    listed = lists[author.chat]
    return listed is None or author.id in listed


def chat_of(settings: Settings, row: InboxRow) -> str | None:
    """Return the kind of chat that a message came from, by a reply in a thread or by a command; None for any other."""
    if row.message.address is not None:
        return row.message.address.channel_kind
    kind = row.message.actor.partition(":")[0]
    return kind if kind in settings.channels else None


def authorized_rows(settings: Settings, records: Records, authorized: Authorized) -> Callable[[InboxRow], bool]:
    """Return the question that delivery asks again: rows of a chat need their author on the lists still."""

    def ask(row: InboxRow) -> bool:
        kind = chat_of(settings, row)
        if kind is None:
            return True
        author = Author(kind, row.message.actor.removeprefix(f"{kind}:"))
        return may_steer(settings, records, authorized, row.message.name, author)

    return ask


def has_thread(settings: Settings, bindings: Bindings, record: SessionRecord) -> bool:
    """Return whether the session has a thread, or is about to: its root may still be on its way. Raises StoreBroken."""
    if settings.chat_of(record.definition):
        return True
    bound = bindings.of_session(record.uid)
    return bound is not None and settings.channel(bound.channel_kind).enabled


def own_chat(settings: Settings, records: Records, bindings: Bindings, post: NewPost) -> str:
    """Return the kind of chat in which the post's session has its thread, or is to have one; "" where it has none.

    Raises StoreBroken.
    """
    try:
        bound = bindings.of_session(post.uid)
        record = None if bound else records.read(post.name)
    except (RowBroken, RecordUnreadable):
        bound = record = None
    if bound is not None:
        return bound.channel_kind
    if record is not None and record.uid == post.uid:
        return record.definition.chat_kind
    declared = settings.standing.get(post.name)
    return declared.chat_kind if declared else ""


_LOG = logger(__name__)


def _nothing_told() -> WeakKeyDictionary[EventLog, dict[str, type[Exception]]]:
    from weakref import WeakKeyDictionary

    return WeakKeyDictionary()


_told = deferred(_nothing_told)  #: by event log and session, the latest


def _nobody_stuck() -> WeakKeyDictionary[EventLog, set[str]]:
    from weakref import WeakKeyDictionary

    return WeakKeyDictionary()


_stuck = deferred(_nobody_stuck)  #: by event log, the sessions whose messages cannot be moved


class Unforeseen(CoreError):
    """Work on one session failed in a way that nobody foresaw."""

    code = "unforeseen"

    def __init__(self, session: str, error: Exception) -> None:
        super().__init__(
            f"{session}: {type(error).__name__}: {error}", "see the log of the service, which says where it happened"
        )


@contextmanager
def apart(events: EventLog, session: str) -> Iterator[None]:
    """Raise whatever fails in the block as a CoreError, which whoever works on many sessions passes over.

    What nobody foresaw is logged with its place, and told as `standing.passed_over`, once for each kind of it.
    Raises Unforeseen.
    """
    try:
        yield
    except CoreError:
        raise
    except Exception as error:
        found = Unforeseen(session, error)
        told = _told.setdefault(events, {})
        if told.get(session) is not type(error):
            told[session] = type(error)
            _LOG.exception("a session is passed over", extra={"session": session})
            events.emit("standing.passed_over", level="error", name=session, reason=found.message)
        raise found from error


def pass_over(events: EventLog, session: str, error: CoreError) -> None:
    """Report once, as `standing.passed_over`, that a fault of a session keeps its messages from being moved.

    A defect is told by `apart`; a lock that is held, or a tmux that does not answer, is nobody's own trouble.
    """
    if isinstance(error, (Unforeseen, LockBusy, TmuxSilent, TmuxMissing)):
        return
    stuck = _stuck.setdefault(events, set())
    if session not in stuck:
        stuck.add(session)
        events.emit("standing.passed_over", level="error", name=session, reason=str(error))


def take_up(events: EventLog, session: str) -> None:
    """Tell, as `standing.taken_up`, that a session's messages are moved again, where the opposite was told."""
    stuck = _stuck.get(events, set())
    if session in stuck:
        stuck.discard(session)
        events.emit("standing.taken_up", name=session)


def each_apart(events: EventLog, records: Iterable[SessionRecord], act: Callable[[SessionRecord], object]) -> None:
    """Act on each session. What goes wrong with one is logged, and its caller comes to it again at the next look.

    A tmux that does not answer is nobody's own trouble. Raises TmuxSilent, TmuxMissing.
    """
    for record in records:
        try:
            with apart(events, record.name):
                act(record)
        except (TmuxSilent, TmuxMissing):
            raise
        except CoreError as error:
            _LOG.warning("session passed over", extra={"session": record.name, "reason": str(error)})


def starts_unasked(settings: Settings, name: str) -> bool:
    """Tell whether the session may be brought up where nobody asks for it by name: in a demo, only what that declares.

    Whatever brings up a session asks this: a boot, what finishes a restart, the supervisor, a keep-alive.
    """
    from core.config.loading import demo_folder

    return settings.standing.get(name) is not None or demo_folder(settings) is None


def may_come_back(settings: Settings, record: SessionRecord) -> bool:
    """Tell whether the session, whose program has ended, may be resumed unasked."""
    return may_be_brought_back(record) and starts_unasked(settings, record.name)


def comes_back(settings: Settings, loops: Loops, record: SessionRecord) -> bool:
    """Return whether a crash of the session brings it back: by its policy, or by a loop that keeps its future open.

    Raises StoreBroken.
    """
    return may_come_back(settings, record) and (restarts_itself(record) or loops.holds_open(record.uid))


def restart_due(settings: Settings, exit_ledger: ExitLedger, loops: Loops, record: SessionRecord) -> bool:
    """Return whether the session, which does not live, is about to be resumed unasked. Raises StoreBroken.

    Until its end was looked into, one that restarts after crashes counts as due: what it was is not known yet.
    """
    if record.instance_id is None or not may_come_back(settings, record):
        return False
    end = exit_ledger.end(record.instance_id)
    if end is None or end.told_at is None:
        return comes_back(settings, loops, record) and not (end is not None and end.by_person)
    return end.due_at is not None


def lacks_harness(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> str:
    """Return why the running service cannot start what the record says was started, and the remedy; "" where it can.

    A verb that read a newer configuration than the service may have started a harness which that one does not have.
    """
    harness = resolve_record(record, settings).harness
    try:
        harnesses.get(harness)
    except UnsupportedHarness:
        return (
            f"its harness {harness!r} is unknown to the running service's configuration; use `the-loop restart`, which "
            f"applies the current one, then `the-loop standing start {record.name}`"
        )
    return ""
