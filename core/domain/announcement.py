"""What a thread is told of its session's boots and its end. No I/O."""

from core.domain.session import Hold, HoldKind
from core.names import standing_ref


def root_text(name: str, description: str, how: str, blind: str = "") -> str:
    """Return the announcement, whose message becomes the session's thread. `how`: how it came up.

    `blind`: the program that it runs, where that reports nothing.
    """
    about = f"\n{description.strip()}" if description.strip() else ""
    blindly = (
        f"\n`{blind}` reports nothing: what it answers and asks stands in its terminal alone, and the mark on a reply "
        f"says that it was typed there, and no more. To look: `the-loop standing screen {name}`"
        if blind
        else ""
    )
    return (
        f"standing session `{name}` is up — {how}{about}\n"
        f"Reply in this thread and the agent gets it. (`{standing_ref(name)}`){blindly}"
    )


def down_text(name: str, description: str, hold: Hold | None) -> str:
    """Return the announcement of a session that does not run: who or what keeps it down, and what starts it."""
    start = f"start it with `the-loop standing start {name}`"
    if hold is not None and hold.kind is HoldKind.STOPPED:
        why = f" ({hold.reason})" if hold.reason else ""
        state = f"is stopped by {hold.by}{why}; {start}"
    elif hold is not None and hold.kind is HoldKind.FAILED:
        state = f"is held as failed: {hold.reason}; {start}"
    else:
        state = f"is down; the next start of the-loop resumes it, or {start}"
    about = f"\n{description.strip()}" if description.strip() else ""
    return f"standing session `{name}` {state}{about}\n(`{standing_ref(name)}`)"


def boot_text(name: str, how: str) -> str:
    """Return the reply that a later boot leaves in the thread."""
    return f"standing session `{name}` is up again — {how}"


def moved_text(name: str, channel: str) -> str:
    """Return the last reply in the thread of a session that is announced in another channel now."""
    return (
        f"standing session `{name}` has a thread in another channel now (<#{channel}>). This one is closed: "
        f"replies here reach nobody. (`{standing_ref(name)}`)"
    )


def closing_text(name: str, actor: str, lost: int) -> str:
    """Return the last reply of a session that is deleted. `lost`: messages that went with it and came to no turn."""
    many = "1 message to it has" if lost == 1 else f"{lost} messages to it have"
    gone = f"{many} come to no turn, as far as is known. " if lost else ""
    return (
        f"standing session `{name}` was deleted by {actor}. {gone}This thread is closed: replies here reach nobody. "
        f"(`{standing_ref(name)}`)"
    )
