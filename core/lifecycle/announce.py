"""Commit the announcements that a start or an end causes. The service posts them, now or when it runs next.

It also brings a session's announcement up to date, makes a new one where there is none any more, and separates a
session from a thread in a channel that the configuration no longer names.
"""

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from core.base.clock import Clock, Deadline
from core.base.errors import BeingDeleted, CoreError, InvalidValue, Refused, StoreBroken
from core.base.failpoints import Failpoint, failpoint
from core.base.paths import StatePaths
from core.base.paths import home as home_folder
from core.base.values import replace
from core.config.chats import installed_kinds
from core.config.settings import Settings
from core.harness.catalogue import Harnesses
from core.lifecycle.common import VerbResult, lock, told_of, write_record
from core.lifecycle.look import get_standing, rows_told
from core.model.asking import Button, Press, announced_buttons, session_buttons
from core.model.posts import (
    OWN_CHAT,
    BootTally,
    NewPost,
    OutboundKind,
    OutboxRow,
    PostState,
    boot_text,
    down_text,
    host_text,
    moved_text,
    not_started_text,
    root_text,
    what_text,
)
from core.model.rows import Answer
from core.model.session import Binding, Definition, Outcome, Phase, SessionRecord, Status
from core.process.presence import running_service
from core.session.sessions import Known, activity_of, belongs_elsewhere, definition_of, home_of, resolve_record
from core.session.system import System
from core.store.eventlog import EventLog
from core.store.outbox import Outbox
from core.store.records import Records
from core.store.sessions import Bindings

MOVED = "channel-changed"
HOST_UID = "host"  #: stands for a session's uid where a post is about none


def part_from_moved(system: System, record: SessionRecord, definition: Definition) -> Binding | None:
    """Unbind a thread that stands in another channel than the configured one, and return what it was.

    Its last word is committed; where nobody can post there any more that fails, and is told. Part of the open
    transaction. Raises StoreBroken.
    """
    binding = system.bindings.of_session(record.uid)
    if binding is None or not belongs_elsewhere(system.settings, definition, binding):
        return None
    home = home_of(system.settings, definition)
    system.bindings.unbind(record.uid, binding.channel_kind)
    system.outbox.add([_closing(record, binding, home)])
    system.events.emit(
        "channel.unbound",
        name=record.name,
        channel=binding.channel,
        thread=binding.thread,
        reason=MOVED,
        detail=f"it is announced in {home} from now on",
    )
    return binding


def _closing(record: SessionRecord, binding: Binding, home: str) -> NewPost:
    return NewPost(
        id=f"p-moved-{record.uid}-{binding.thread}",
        key=f"moved:{record.uid}:{binding.channel}:{binding.thread}",
        kind=OutboundKind.CLOSING,
        uid=record.uid,
        name=record.name,
        channel_kind=binding.channel_kind,
        text=moved_text(record.name, home),
        channel=binding.channel,
        thread=binding.thread,
    )


_EVER = datetime.max.replace(tzinfo=UTC)


def announce_start(
    system: System,
    record: SessionRecord,
    definition: Definition,
    how: str,
    why: str = "",
    more: str = "",
    *,
    moving: bool = False,
    reply: bool = True,
) -> None:
    """Commit the root, or a reply and the root's update; once an instance, however often it is asked.

    `how` is "with a new conversation" or "resumed, …"; `why`, by whom, stands in the reply alone; `more`: remarks.
    `moving`: a thread in another channel than the configured one is left for a new one. `reply` False: a thread that
    is there gets no reply, but its root is brought up to date.

    A session without a thread of its own, or a broken database, costs nobody the session: the latter is told as
    `standing.announce_failed`.
    """
    if not system.settings.chat_of(definition):
        return
    try:
        with failpoint(Failpoint.START_ANNOUNCE), system.database.transaction(durable=True):
            if moving:
                part_from_moved(system, record, definition)
            posts = _posts(system, record, definition, (how, why, more))
            system.outbox.add([post for post in posts if reply or post.kind is not OutboundKind.BOOT])
    except StoreBroken as error:
        _say_failed(system.events, record, error)
        return
    system.notify()


def announce_stop(system: System, record: SessionRecord) -> None:
    """Let the root say that the session was stopped, once a stop. A broken database is told as above."""
    try:
        with failpoint(Failpoint.STOP_ANNOUNCE), system.database.transaction(durable=True):
            edit_root(system.outbox, system.bindings, record)
    except StoreBroken as error:
        _say_failed(system.events, record, error)
        return
    system.notify()


def edit_root(outbox: Outbox, bindings: Bindings, record: SessionRecord) -> None:
    """Commit the edit of the root, if there is one, of a session that is down; one a state. Raises StoreBroken."""
    if bindings.of_session(record.uid) is None and not root_waits(outbox, record, record.definition):
        return
    state = record.hold.kind.value if record.hold else "down"
    text = down_text(record.name, record.definition.description, record.hold)
    post = _post(record, OutboundKind.ROOT_UPDATE, f"root-{state}", text)
    once, buttons = f"{record.generation}", announced_buttons(record.uid, lives=False)
    outbox.add([replace(post, id=f"{post.id}-{once}", key=f"{post.key}:{once}", buttons=buttons)])


def announce_hold(system: System, record: SessionRecord) -> None:
    """Let the announcement of a session that runs say whether it is paused, by its buttons too.

    Raises nothing: the hold is what counts, and what failed is told as above.
    """
    _renew(system, record, _up)


def renew_announcement(system: System, record: SessionRecord) -> None:
    """Let the announcement, if there is one, say what the session does now. Raises nothing; see `announce_hold`."""
    _renew(system, record, _present)


def _renew(
    system: System, record: SessionRecord, made: Callable[[System, SessionRecord], tuple[str, tuple[Button, ...]]]
) -> None:
    try:
        if system.bindings.of_session(record.uid) is None:
            return
        text, buttons = made(system, record)
        post = _renewed_post(record, OutboundKind.ROOT_UPDATE, text, "", system.clock.now())
        with failpoint(Failpoint.ANNOUNCE):
            system.outbox.add([replace(post, buttons=buttons, starts=record.instance_id or "")])
    except CoreError as error:
        _say_failed(system.events, record, error)


def _say_failed(events: EventLog, record: SessionRecord, error: CoreError) -> None:
    events.emit(
        "standing.announce_failed", level="warning", name=record.name, instance=record.instance_id, reason=str(error)
    )


def lacks_thread(settings: Settings, definition: Definition) -> str:
    """Return why a session that shall have a thread gets none, with the remedy; "" where nothing is amiss."""
    kind = definition.chat_kind
    if not kind or settings.channel(kind).enabled:
        return ""
    return f"it has no thread, because channels.{kind} is disabled: enable it, then `the-loop restart`"


def _posts(system: System, record: SessionRecord, definition: Definition, told: tuple[str, str, str]) -> list[NewPost]:
    how, why, more = told
    by, remarks = f" ({why})" if why else "", f"; {more}" if more else ""
    root = _root_text(system, record, definition, f"{how}{remarks}")
    buttons = announced_buttons(record.uid, lives=True)
    bound, thread = system.bindings.of_session(record.uid), definition.binding.thread
    if (bound is None or _is_headless(bound, thread)) and not root_waits(system.outbox, record, definition):
        first = _post(record, OutboundKind.ROOT, "up", root, home_of(system.settings, definition))
        return [replace(first, channel_kind=definition.chat_kind, buttons=buttons, thread=thread)]
    return [
        replace(
            _post(record, OutboundKind.BOOT, "up", boot_text(record.name, f"{how}{by}{remarks}")),
            buttons=session_buttons(record.uid, Press.STOP, Press.ANEW),
        ),
        replace(_post(record, OutboundKind.ROOT_UPDATE, "root", root), buttons=buttons),
    ]


# ---------------------------------------------------------------- a boot


def in_line(system: System, sessions: Iterable[Known]) -> frozenset[str]:
    """Return the names of those that a boot tells of together: of each channel with several of them."""
    homes = {known.name: _home_place(system, known) for known in sessions}
    count = Counter(place for place in homes.values() if place is not None)
    return frozenset(name for name, place in homes.items() if place is not None and count[place] > 1)


def announce_boot(system: System, sessions: Iterable[Known], told: Mapping[str, VerbResult]) -> None:
    """Commit what a boot has to say of the sessions that it wanted to start: a line in each channel with several.

    What failed is told in its thread, too. A broken database costs nobody a session: it is told as
    `standing.announce_failed`.
    """
    tallies: dict[tuple[str, str], BootTally] = {}
    notes: list[NewPost] = []
    moment = int(system.clock.now().timestamp() * 1_000_000)
    for known in sessions:
        place, word = _home_place(system, known), told.get(known.name)
        if place is None or word is None:
            continue
        tallies[place] = _counted(tallies.get(place, BootTally()), known.name, word)
        if word.outcome is Outcome.FAILED and known.record and system.bindings.of_session(known.record.uid):
            notes.append(_failure_note(known.record, word.detail, moment))
    lines = [_host_line(place, tally, moment) for place, tally in tallies.items() if tally.is_worth_a_line]
    if not notes and not lines:
        return
    try:
        system.outbox.add([*lines, *notes])
    except StoreBroken as error:
        system.events.emit("standing.announce_failed", level="warning", reason=str(error))
        return
    system.notify()


def _home_place(system: System, known: Known) -> tuple[str, str] | None:
    """Return the chat and the channel in which a session is announced, None where it is in none."""
    kind, home = system.settings.chat_of(known.definition), home_of(system.settings, known.definition)
    return (kind, home) if kind and home else None


def _counted(tally: BootTally, name: str, word: VerbResult) -> BootTally:
    if word.outcome is Outcome.RESUMED:
        return replace(tally, resumed=tally.resumed + 1)
    if word.outcome is Outcome.STARTED:
        return replace(tally, new=tally.new + 1)
    return replace(tally, failed=(*tally.failed, name)) if word.outcome is Outcome.FAILED else tally


def _host_line(place: tuple[str, str], tally: BootTally, moment: int) -> NewPost:
    kind, channel = place
    return NewPost(
        id=f"p-host-{channel}-{moment}",
        key=f"host:{kind}:{channel}:{moment}",
        kind=OutboundKind.HOST,
        uid=HOST_UID,
        name="",
        channel_kind=kind,
        text=host_text(socket.gethostname(), tally),
        channel=channel,
    )


def _failure_note(record: SessionRecord, reason: str, moment: int) -> NewPost:
    text = not_started_text(record.name, reason)
    post = _post(record, OutboundKind.NOTE, "not-started", text)
    return replace(post, id=f"p-not-started-{record.uid}-{moment}", key=f"not-started:{record.uid}:{moment}", starts="")


def _is_headless(bound: Binding, thread: str) -> bool:
    """Return whether the thread is that of somebody's message, and no announcement stands in it yet."""
    return bool(thread) and bound.thread == thread and not bound.head


def _root_text(system: System, record: SessionRecord, definition: Definition, how: str) -> str:
    """Return the announcement of a session that is up. `how`: how it came up, or since when it is."""
    blind = blind_program(system.settings, system.harnesses, record)
    aside = system.settings.channel(definition.chat_kind).aside
    return root_text(record.name, _what(system, record), definition.description, how, blind, aside)


def _what(system: System, record: SessionRecord) -> str:
    """Return what the session is, in a line. The version is that which its program has told, where it has."""
    resolved, activity = resolve_record(record, system.settings), activity_of(system.activities, record)
    program = system.harnesses.get(resolved.harness).traits.title or resolved.harness
    folder, home = str(resolved.cwd), str(home_folder(system.environ))
    if folder == home or folder.startswith(f"{home}/"):
        folder = f"~{folder.removeprefix(home)}"
    return what_text(record.name, program, activity.version if activity else "", folder, socket.gethostname())


def blind_program(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> str:
    """Return the harness that a session runs if it reports nothing, "" if it does: its terminal shows what it does."""
    harness = resolve_record(record, settings).harness
    return "" if harnesses.get(harness).traits.evidence else harness


def root_waits(outbox: Outbox, record: SessionRecord, definition: Definition) -> bool:
    """Return whether a root of an earlier start is still to be posted: one session has one thread."""
    first = (row.post for row in outbox.due(definition.chat_kind, _EVER) if row.post.uid == record.uid)
    return any(post.kind is OutboundKind.ROOT for post in first)


def _post(record: SessionRecord, kind: OutboundKind, role: str, text: str, channel: str = "") -> NewPost:
    """Return a post of this instance's start. Root and boot reply share one role: a start is told once."""
    return NewPost(
        id=f"p-{role}-{record.instance_id}",
        key=f"{role}:{record.instance_id}",
        kind=kind,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        channel=channel,
        starts=record.instance_id or "",
    )


NO_SERVICE = "no service is running, so it waits for the next one: `the-loop start`"
_POSTED_SECONDS, _POLL_SECONDS = 10.0, 0.05
_OVER = frozenset({PostState.SENT, PostState.FAILED, PostState.SKIPPED})


def announce_standing(system: System, name: str, actor: str, wait: float = _POSTED_SECONDS) -> Answer:
    """Announce the session as it is now, and wait up to `wait` seconds for the service to post that.

    Bound: its announcement is edited, and where that turns out to be gone a new one is made. Not bound, or bound in
    another channel than the configured one: a new one. Raises UnknownSession, InvalidValue, RecordUnreadable, and
    Refused where it has no thread to be announced in.
    """
    _announceable(system.settings, system.records, name)
    try:
        with lock(system.settings, system.locks, name, "announce"):
            known, record = _announceable(system.settings, system.records, name)
            post = _commit(system, known, record)
        system.notify()
        told = _told(system.paths, system.clock, system.outbox, post, wait)
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def _announceable(settings: Settings, records: Records, name: str) -> tuple[Known, SessionRecord]:
    """Return the session that has, or shall have, a thread. Raises what `announce_standing` does."""
    known = definition_of(settings, records, name)
    if known.unreadable is not None:
        raise known.unreadable
    if known.record is None:
        raise Refused(f"{name} was never started", f"its start announces it: `the-loop standing start {name}`")
    if known.record.phase is Phase.DELETING:
        raise BeingDeleted(f"{name} cannot be announced: it is being deleted", name)
    kind = known.definition.chat_kind
    if not kind:
        kinds = installed_kinds()
        where = " or ".join(f"{each}.enabled: true" for each in kinds)
        anew = " or ".join(f"--{each}" for each in kinds)
        declared = f"set it in the configuration (standingSessions.sessions, {name}: {where})"
        remedy = declared if known.declared else f"delete it, then create it again with {anew}"
        raise Refused(f"{name} has no thread, because its definition does not ask for one", remedy)
    if not settings.channel(kind).enabled:
        raise Refused(
            f"{name} has no thread, because channels.{kind} is disabled",
            f"set channels.{kind}.enabled: true, then `the-loop restart`",
        )
    if not home_of(settings, known.definition):
        raise Refused(
            f"no channel is configured in which {name} could be announced",
            f"set channels.{kind}.channel, or the session's {kind}.channel, to the channel's id",
        )
    return known, known.record


def _commit(system: System, known: Known, record: SessionRecord) -> NewPost:
    """Commit what brings the announcement up to date, and take the definition's channel over. Raises StoreBroken."""
    (text, buttons), home = _present(system, record), home_of(system.settings, known.definition)
    with failpoint(Failpoint.ANNOUNCE), system.database.transaction(durable=True):
        part_from_moved(system, record, known.definition)
        bound = system.bindings.of_session(record.uid) is not None
        waits = bound or root_waits(system.outbox, record, known.definition)
        kind = OutboundKind.REFRESH if waits else OutboundKind.ROOT
        post = _renewed_post(record, kind, text, home, system.clock.now())
        post = replace(post, buttons=buttons, channel_kind=known.definition.chat_kind)
        system.outbox.add([post])
    with failpoint(Failpoint.ANNOUNCE_RECORD):
        write_record(
            system.records,
            system.bindings,
            system.activities,
            replace(record, definition=replace(record.definition, chat=known.definition.chat)),
        )
    return post


def _present(system: System, record: SessionRecord) -> tuple[str, tuple[Button, ...]]:
    """Return the announcement of the session as it is now, and its buttons."""
    row, about = get_standing(system, record.name), record.definition.description
    lives = record.status is Status.RUNNING if row.running is None else row.running
    if not lives:
        return down_text(record.name, about, record.hold), announced_buttons(record.uid, lives=False)
    return _up(system, record)


def _up(system: System, record: SessionRecord) -> tuple[str, tuple[Button, ...]]:
    since = f"since {record.started_at:%Y-%m-%d %H:%M} UTC" if record.started_at else "still"
    how = f"{since}, paused by {record.hold.by}" if record.hold else since
    buttons = announced_buttons(record.uid, lives=True, paused=record.hold is not None)
    return _root_text(system, record, record.definition, how), buttons


def _renewed_post(record: SessionRecord, kind: OutboundKind, text: str, home: str, now: datetime) -> NewPost:
    moment = int(now.timestamp() * 1_000_000)
    return NewPost(
        id=f"p-announce-{record.uid}-{moment}",
        key=f"announce:{record.uid}:{moment}",
        kind=kind,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        channel=home,
    )


# ---------------------------------------------------------------- what became of it


def _told(paths: StatePaths, clock: Clock, outbox: Outbox, post: NewPost, wait: float) -> VerbResult:
    """Wait for the service, and return what is known of the post then."""
    last = _awaited(paths, clock, outbox, post.id, wait)
    if last is not None and last.state is PostState.FAILED:
        last = _awaited(paths, clock, outbox, post.anew().id, wait) or last
    if last is None:
        return VerbResult(Outcome.FAILED, "the announcement is gone from the database")
    if last.state is PostState.SENT:
        edited = last.post.kind is OutboundKind.REFRESH
        return VerbResult(Outcome.ANNOUNCED, "its announcement is up to date" if edited else "it has a new thread")
    if last.state is PostState.FAILED:
        return VerbResult(Outcome.FAILED, f"it could not be announced: {last.detail}")
    if running_service(paths.service_lock) is None:
        return VerbResult(Outcome.WAITING, NO_SERVICE)
    return VerbResult(Outcome.WAITING, f"it waits to be posted{f': {last.detail}' if last.detail else ''}")


def _awaited(paths: StatePaths, clock: Clock, outbox: Outbox, post_id: str, wait: float) -> OutboxRow | None:
    """Return the post's row once it is over, no service runs, or the time is up; None where there is no such post."""
    deadline = Deadline(clock, wait)
    while True:
        row = outbox.get(post_id)
        served = running_service(paths.service_lock) is not None
        if row is None or row.state in _OVER or not served or deadline.passed():
            return row
        clock.pause(_POLL_SECONDS)
