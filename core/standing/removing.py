"""Removes what is left of a session whose processes and pane are gone: deleted, or never properly created."""

from core.domain.announcement import closing_text
from core.domain.message import IN_FLIGHT, MESSAGES, MessageState
from core.domain.reasons import Because, Reason
from core.domain.session import SessionRecord
from core.effects import Effect, effect
from core.loops.holding import end_with_session
from core.ports import Binding, NewPost, OutboundKind
from core.session.launching import remove_files
from core.standing.common import CHANNEL
from core.system import System


def remove_session(system: System, record: SessionRecord, actor: str) -> None:
    """Cancel its queue, close its thread, forget it, remove its files and last its record: then the name is free.

    Each step may be done again. Raises StoreBroken; the record then stays.
    """
    with effect(Effect.DELETE_CANCEL), system.database.transaction(durable=True):
        end_with_session(system, record, actor)
        system.inbox.cancel_waiting(record.uid, Because(Reason.DELETED))
    _unbind(system, record, actor)
    with effect(Effect.DELETE_FORGET), system.database.transaction(durable=False):
        system.activities.forget(record.uid)
        system.bindings.forget(record.uid)
        system.watchbook.forget(record.uid)
        system.requests.forget(record.uid)
        system.loops.forget(record.uid)
        system.progress.forget(record.uid)
        if record.instance_id:
            system.database.forget_reports(record.instance_id)
    with effect(Effect.DELETE_FILES):
        remove_files(system.paths, record.uid, record.instance_id)
    with effect(Effect.DELETE_RECORD):
        system.records.remove(record.name)


def _unbind(system: System, record: SessionRecord, actor: str) -> None:
    with effect(Effect.DELETE_UNBIND), system.database.transaction(durable=True):
        system.outbox.drop(record.uid, Because(Reason.DELETED))
        binding = system.bindings.unbind(record.uid, CHANNEL)
        if binding is not None:
            system.outbox.add([_closing(system, record, binding, actor)])
    if binding is None:
        return
    system.events.emit(
        "channel.unbound",
        name=record.name,
        actor=actor,
        channel=binding.channel,
        thread=binding.thread,
        reason="deleted",
    )
    system.poke()


def _lost(system: System, record: SessionRecord) -> int:
    """Return how many messages were cancelled by the deletion, or stood somewhere on their way to a turn."""
    rows = system.inbox.with_states(record.uid, IN_FLIGHT | {MessageState.ACCEPTED, MessageState.CANCELLED})
    messages = [row for row in rows if row.message.kind in MESSAGES and not row.final]
    return sum(row.state is not MessageState.CANCELLED or row.reason is Reason.DELETED for row in messages)


def _closing(system: System, record: SessionRecord, binding: Binding, actor: str) -> NewPost:
    return NewPost(
        id=f"p-closing-{record.uid}",
        key=f"closing:{record.uid}",
        kind=OutboundKind.CLOSING,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=closing_text(record.name, actor, _lost(system, record)),
        channel=binding.channel,
        thread=binding.thread,
    )
