"""Hooks that are silent: what is stored of it, and what the event log and the thread are told, once.

A session's hooks may not run at all, by somebody's settings, or not for a while, because its folder is gone. Then other
sources tell what it does, more slowly, and some of it not at all: nobody may take that for an idle session.
"""

import hashlib
import os
from datetime import datetime

from core.domain.activity import Activity, Silence
from core.domain.binding import CHANNEL
from core.domain.capability import Capability
from core.domain.session import SessionRecord
from core.ports import NewPost, OutboundKind
from core.session.instead import attach_of
from core.session.place import REPORTER
from core.session.sessions import resolve_record
from core.session.threads import has_thread
from core.system import System
from core.values import replace

_WHAT = {
    Silence.START: "its program runs, and its hooks have not said so",
    Silence.UNTOLD: "its hooks have not said that it reads, and no other source tells",
    Silence.TURNS: "its hooks told nothing of the end of a turn",
}
_MEANWHILE = (
    "What it does is read from its program's own files meanwhile: answers come some seconds later, a message waits for "
    "the end of the running turn, and a dialog is known by its screen alone."
)
_UNTOLD = "Messages wait until it reads."


def why_silent(system: System, record: SessionRecord, silence: Silence, trouble: str = "") -> str:
    """Return why the session's hooks are silent, as far as that can be found out, and what a person can do.

    `trouble`: what the program itself has written down of a hook that could not run.
    """
    resolved = resolve_record(record, system.settings)
    settings = system.harnesses.get(resolved.harness).silence_ahead(resolved.cwd, resolved.args)
    reporter = system.paths.session(record.uid) / REPORTER
    look = f"look at its terminal, {attach_of(record.name)}"
    if settings:
        return settings
    if not resolved.cwd.is_dir():
        return f"its folder {resolved.cwd} is gone, and no hook can start there: make the folder again"
    if not os.access(reporter, os.X_OK):
        return (
            f"{reporter}, which its hooks run, is not there: `the-loop standing restart {record.name}` writes it again"
        )
    if trouble:
        return f"its hooks cannot run ({trouble}): {look}"
    seconds = system.settings.routing.tmux.start_timeout_seconds
    within = f" within {seconds:g} s" if silence is Silence.UNTOLD else ""
    return f"{_WHAT[silence]}{within}: {look}; `/hooks` lists them there"


def mark_silent(system: System, record: SessionRecord, silence: Silence, trouble: str = "") -> None:
    """Note that the session's hooks are silent, and tell it; what is known is not told again. Raises StoreBroken."""
    now = system.clock.now()
    why = why_silent(system, record, silence, trouble)
    with system.database.transaction(durable=False):
        before = system.activities.get(record.uid)
        if before is None or before.instance != record.instance_id or before.silence is silence:
            return
        missing = Capability.TURN_EDGES if silence is Silence.TURNS else Capability.BOOT_HOOK
        system.activities.put(
            replace(
                before,
                silence=silence,
                silent_since=before.silent_since or now,
                silent_why=why,
                shown={**before.shown, missing: False},
            )
        )
        if before.silent_why == why:
            return
        if has_thread(system, record):
            system.outbox.add([_note(system, record, why, silence)])
    system.events.emit(
        "standing.hooks_silent", level="warning", name=record.name, instance=record.instance_id, reason=why,
        detail=silence.value,
    )  # fmt: skip
    system.poke()


def heard_again(system: System, record: SessionRecord, before: Activity, after: Activity) -> Activity:
    """Return the activity of a session whose hooks report again, and edit what its thread was told of them.

    Part of the open transaction.
    """
    if has_thread(system, record) and before.silence is not None:
        system.outbox.add([_note(system, record, before.silent_why, before.silence, back=system.clock.now())])
    return replace(after, silence=None, silent_since=None, silent_why="")


def _note(system: System, record: SessionRecord, why: str, silence: Silence, back: datetime | None = None) -> NewPost:
    """Return the note, one for each reason of an instance, or its next edit."""
    short = hashlib.sha256(why.encode()).hexdigest()[:8]
    first = f"p-silent-{record.instance_id}-{short}"
    told = system.outbox.get(first) is not None
    moment = int(system.clock.now().timestamp() * 1_000_000)
    text = f"The hooks of `{record.name}` are silent: {why}."
    if back is None:
        text = f"{text} {_UNTOLD if silence is Silence.UNTOLD else _MEANWHILE}"
    else:
        text = f"{text} They report again since {back:%H:%M:%S} UTC."
    return NewPost(
        id=f"{first}-{moment}" if told else first,
        key=f"silent:{record.instance_id}:{short}{f':{moment}' if told else ''}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=text,
        edits=first if told else "",
    )
