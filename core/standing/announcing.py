"""Commits the announcements that a start or an end causes. Posting them is the service's work, or the next one's."""

from datetime import UTC, datetime

from core.domain.announcement import boot_text, down_text, root_text
from core.domain.buttons import Button, Press
from core.domain.session import Definition, SessionRecord
from core.effects import Effect, effect
from core.errors import StoreBroken
from core.ports import NewPost, OutboundKind
from core.session.sessions import home_of, resolve_record
from core.standing.common import CHANNEL
from core.standing.threads import part_from_moved
from core.system import System
from core.values import replace

_EVER = datetime.max.replace(tzinfo=UTC)


def announce_start(
    system: System, record: SessionRecord, definition: Definition, how: str, *, moving: bool = False
) -> None:
    """Commit the root, or a reply and the root's update; once an instance, however often it is asked.

    `how` is "with a new conversation (why)" or "resumed, …". `moving`: a thread in another channel than the configured
    one is left for a new one.

    A session without a thread of its own, or a broken database, costs nobody the session: the latter is told as
    `standing.announce_failed`.
    """
    if not (definition.slack.enabled and system.settings.channel(CHANNEL).enabled):
        return
    try:
        with effect(Effect.START_ANNOUNCE), system.database.transaction(durable=True):
            if moving:
                part_from_moved(system, record, definition)
            system.outbox.add(_posts(system, record, definition, how))
    except StoreBroken as error:
        _say_failed(system, record, error)
        return
    system.poke()


def announce_stop(system: System, record: SessionRecord) -> None:
    """Let the root say that the session was stopped, once a stop. A broken database is told as above."""
    try:
        with effect(Effect.STOP_ANNOUNCE), system.database.transaction(durable=True):
            edit_root(system, record)
    except StoreBroken as error:
        _say_failed(system, record, error)
        return
    system.poke()


def edit_root(system: System, record: SessionRecord) -> None:
    """Commit the edit of the root, if there is one, of a session that is down; one a state. Raises StoreBroken."""
    if system.bindings.of_session(record.uid, CHANNEL) is None and not root_waits(system, record.uid):
        return
    state = record.hold.kind.value if record.hold else "down"
    text = down_text(record.name, record.definition.description, record.hold)
    post = _post(record, OutboundKind.ROOT_UPDATE, f"root-{state}", text)
    once = f"{record.generation}"
    system.outbox.add([replace(post, id=f"{post.id}-{once}", key=f"{post.key}:{once}")])


def _say_failed(system: System, record: SessionRecord, error: StoreBroken) -> None:
    system.events.emit(
        "standing.announce_failed", level="warning", name=record.name, instance=record.instance_id, reason=str(error)
    )


def lacks_thread(system: System, definition: Definition) -> str:
    """Return why a session that shall have a thread gets none, with the remedy; "" where nothing is amiss."""
    if not definition.slack.enabled or system.settings.channel(CHANNEL).enabled:
        return ""
    return f"it has no thread, for channels.{CHANNEL} is disabled: enable it, then `the-loop restart`"


def _posts(system: System, record: SessionRecord, definition: Definition, how: str) -> list[NewPost]:
    blind = blind_program(system, record)
    root, buttons = root_text(record.name, definition.description, how, blind), screen_buttons(record, blind)
    if system.bindings.of_session(record.uid, CHANNEL) is None and not root_waits(system, record.uid):
        first = _post(record, OutboundKind.ROOT, "up", root, home_of(system.settings, definition))
        return [replace(first, buttons=buttons)]
    return [
        _post(record, OutboundKind.BOOT, "up", boot_text(record.name, how)),
        replace(_post(record, OutboundKind.ROOT_UPDATE, "root", root), buttons=buttons),
    ]


def blind_program(system: System, record: SessionRecord) -> str:
    """Return the harness that a session runs if it reports nothing, "" if it does: its terminal shows what it does."""
    harness = resolve_record(record, system.settings).harness
    return "" if system.harnesses.get(harness).traits.evidence else harness


def screen_buttons(record: SessionRecord, blind: str) -> tuple[Button, ...]:
    """Return what an announcement offers of a program that reports nothing."""
    return (Button(Press.SCREEN, record.uid, "Show the terminal"),) if blind else ()


def root_waits(system: System, uid: str) -> bool:
    """Tell whether a root of an earlier start is still to be posted: one session has one thread."""
    first = (row.post for row in system.outbox.due(CHANNEL, _EVER) if row.post.uid == uid)
    return any(post.kind is OutboundKind.ROOT for post in first)


def _post(record: SessionRecord, kind: OutboundKind, role: str, text: str, channel: str = "") -> NewPost:
    """Return a post of this instance's start. Root and boot reply share one role: a start is told once."""
    return NewPost(
        id=f"p-{role}-{record.instance_id}",
        key=f"{role}:{record.instance_id}",
        kind=kind,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=text,
        channel=channel,
        starts=record.instance_id or "",
    )
