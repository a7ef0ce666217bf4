"""A channel that others share, or share no more, since a session was announced there: its thread is read no longer.

Who reads along and who may write there is another question than it was; a person answers it by announcing anew.
"""

from core.ports import Binding, NewPost, OutboundKind
from core.system import System

SHARING = "sharing-changed"


def has_changed(binding: Binding, shared: bool | None) -> bool:
    """Tell whether the channel is shared otherwise than at first sight; what nobody knows is no change."""
    return shared is not None and binding.shared is not None and shared is not binding.shared


def close_thread(system: System, binding: Binding, *, shared: bool) -> None:
    """Unbind the thread, and tell it. Part of the open transaction. Done again it finds nothing. Raises StoreBroken."""
    if system.bindings.of_session(binding.uid, binding.channel_kind) != binding:
        return
    system.bindings.unbind(binding.uid, binding.channel_kind)
    system.outbox.add([_note(binding, shared)])
    system.events.emit(
        "channel.unbound",
        level="warning",
        name=binding.name,
        channel=binding.channel,
        thread=binding.thread,
        reason=SHARING,
    )


def _note(binding: Binding, shared: bool) -> NewPost:
    now = "is shared with another organization now" if shared else "is no longer shared with another organization"
    return NewPost(
        id=f"p-sharing-{binding.uid}-{binding.thread}",
        key=f"sharing:{binding.uid}:{binding.thread}",
        kind=OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=f"This channel {now}, which it was not when `{binding.name}` was announced: replies here reach nobody any "
        f"more. To do: make a new thread: `the-loop standing announce {binding.name}`",
        channel=binding.channel,
        thread=binding.thread,
    )
