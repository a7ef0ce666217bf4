"""Parts a session from a thread that stands in another channel than the one that the configuration names."""

from core.domain.announcement import moved_text
from core.domain.binding import Binding
from core.domain.session import Definition, SessionRecord
from core.ports import NewPost, OutboundKind
from core.session.sessions import home_of
from core.standing.common import CHANNEL
from core.system import System

MOVED = "channel-changed"


def part_from_moved(system: System, record: SessionRecord, definition: Definition) -> Binding | None:
    """Unbind a thread that stands in another channel than the configured one, and return what it was.

    Its last word is committed; where nobody can post there any more that fails, and is told. Part of the open
    transaction. Raises StoreBroken.
    """
    home, binding = home_of(system.settings, definition), system.bindings.of_session(record.uid, CHANNEL)
    if not home or binding is None or binding.channel == home:
        return None
    system.bindings.unbind(record.uid, CHANNEL)
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
        channel_kind=CHANNEL,
        text=moved_text(record.name, home),
        channel=binding.channel,
        thread=binding.thread,
    )
