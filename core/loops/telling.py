"""What is told of a loop: an event for the log, and for what a person must know one note in the session's thread."""

from core.domain.binding import CHANNEL
from core.domain.loop import Loop
from core.errors import RecordUnreadable
from core.session.threads import has_thread
from core.system import System

_SHOWN = 80  #: characters of an instruction in a note


def tell(
    system: System,
    event: str,
    loop: Loop,
    *,
    actor: str | None = None,
    reason: str = "",
    level: str = "info",
    message: str | None = None,
    detail: str = "",
) -> None:
    """Write an event about a loop; `detail` begins with its id."""
    system.events.emit(
        event,
        level=level,
        name=loop.name,
        actor=actor,
        reason=reason or None,
        detail=f"{loop.id}: {detail}" if detail else loop.id,
        message=message,
    )


def note(system: System, loop: Loop, what: str, text: str) -> None:
    """Commit a note about the loop to its session's thread, if that has one. Part of the open transaction.

    `what` makes its key, so that each thing is told once: `stopped`, `held-<time>`. `text` follows the loop's name and
    is a sentence without its end: `was stopped by cli:ann: enough`.
    """
    try:
        record = system.records.read(loop.name)
    except RecordUnreadable:
        return
    if record is None or record.uid != loop.uid or not has_thread(system, record):
        return
    from core.ports import NewPost, OutboundKind

    key = f"loop-{loop.id}-{what}"
    post = NewPost(
        id=f"p-{key}",
        key=key,
        kind=OutboundKind.NOTE,
        uid=loop.uid,
        name=loop.name,
        channel_kind=CHANNEL,
        text=f"Loop `{loop.id}` ({summary(loop)}) {text}.",
    )
    system.outbox.add([post])


def summary(loop: Loop) -> str:
    """Return the beginning of the loop's instruction in one line, quoted."""
    line = " ".join(loop.instruction.split())
    return f'"{line}"' if len(line) <= _SHOWN else f'"{line[: _SHOWN - 1]}…"'


def runs_text(count: int) -> str:
    """Return how often a loop has run, as a sentence without its end."""
    return f"it has run {'once' if count == 1 else f'{count} times'}" if count else "it has never run"
