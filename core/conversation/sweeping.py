"""What core knows for sweeps: which threads there are, how far each was read, and what a sweep has caught up."""

from core.conversation.sharing import close_thread, has_changed
from core.ports import Binding, BoundThread, NewPost, OutboundKind, Swept
from core.system import System


def threads(system: System, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
    """Return the team's bound threads, those of the session that was spoken with last first. Raises StoreBroken."""
    spoken = system.activities.last_messages()
    bindings = [binding for binding in system.bindings.all(channel_kind) if binding.team == team]
    bindings.sort(key=lambda binding: spoken.get(binding.uid, binding.created_at), reverse=True)
    return tuple(_thread(system, binding) for binding in bindings)


def _thread(system: System, binding: Binding) -> BoundThread:
    replies = system.inbox.of_thread(binding)
    return BoundThread(
        binding.name,
        binding.channel,
        binding.thread,
        binding.swept_to,
        binding.shared,
        fresh=not binding.cursor,
        waiting=tuple(ts for ts, waits in replies if waits),
        taken=tuple(ts for ts, waits in replies if not waits),
    )


def swept(system: System, channel_kind: str, team: str, done: Swept) -> None:
    """Move the thread's cursor, and tell what was caught up, once. Raises StoreBroken."""
    binding = system.bindings.of_thread(channel_kind, team, done.channel, done.thread)
    if binding is None:
        return  # unbound meanwhile
    with system.database.transaction(durable=True):
        if has_changed(binding, done.shared):
            close_thread(system, binding, shared=bool(done.shared))
            return
        system.bindings.move_cursor(binding, done.cursor)
        if done.shared is not None:
            system.bindings.note_sharing(binding, done.shared)
        system.bindings.forget_refused(binding, done.forget_before)
        if done.caught_up:
            system.outbox.add([_note(binding, done)])
    if done.caught_up:
        system.events.emit(
            "channel.backfilled",
            name=binding.name,
            detail=_what(done),
            channel=binding.channel,
            thread=binding.thread,
        )
        system.poke()


def _what(done: Swept) -> str:
    count = "1 reply" if done.caught_up == 1 else f"{done.caught_up} replies"
    age = f"{done.oldest} old" if done.caught_up == 1 else f"the oldest {done.oldest} old"
    return f"{count} caught up, {age}"


def _note(binding: Binding, done: Swept) -> NewPost:
    return NewPost(
        id=f"p-caught-up-{binding.uid}-{done.cursor}",
        key=f"caught-up:{binding.uid}:{binding.thread}:{done.cursor}",
        kind=OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=f"{_what(done)}: {'they were' if done.caught_up > 1 else 'it was'} not taken in when sent.",
        channel=binding.channel,
        thread=binding.thread,
    )
