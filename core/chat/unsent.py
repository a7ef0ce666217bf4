"""What a thread is told of a post that it will never get, and where the whole text is then kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from core.base.clock import iso
from core.base.errors import StoreBroken
from core.base.files import private_folder, write_private
from core.model.posts import NewPost, OutboundKind, OutboxRow
from core.session.notes import attach_of
from core.session.system import System

if TYPE_CHECKING:
    from core.base.paths import StatePaths
    from core.base.redaction import Redactor


UNSENT = "unsent"  #: folder of a session: what could not be posted
_UNSENT_WHAT = {
    OutboundKind.ANSWER: "An answer of `{name}` could not be posted",
    OutboundKind.PART: "An answer of `{name}` could not be posted",
    OutboundKind.FILE: "The rest of an answer of `{name}` could not be attached",
    OutboundKind.POST: "A post of `{name}` could not be posted",
    OutboundKind.ATTACHMENT: "The file `{file}` could not be attached",
    OutboundKind.REQUEST: "A request of `{name}` could not be shown",
}


def note_unsent(system: System, redactor: Redactor, row: OutboxRow, reason: str) -> NewPost | None:
    """Return the note about a post that failed for good, its text kept as a file; None where nobody misses it.

    What we say ourselves is not told of: a note about a note would have no end. One note for all parts of an answer.
    """
    post = row.post
    if post.kind not in _UNSENT_WHAT or post.edits:
        return None
    whole = system.outbox.whole(row)
    what = _UNSENT_WHAT[post.kind].format(
        name=post.name, file=redactor.redact(PurePath(post.path).name).replace("`", "'")
    )
    return NewPost(
        id=f"p-unsent-{whole.seq}",
        key=f"unsent:{whole.post.id}",
        kind=OutboundKind.NOTE,
        uid=post.uid,
        name=post.name,
        channel_kind=post.channel_kind,
        text=f"{what}: {reason.rstrip('.')}. {_where(system.paths, redactor, post.kind, whole, system.clock.now())}.",
        channel=post.channel,
        thread=post.thread,
        about=whole.post.id,
    )


def _where(paths: StatePaths, redactor: Redactor, kind: OutboundKind, whole: OutboxRow, now: datetime) -> str:
    if kind is OutboundKind.ATTACHMENT:
        return "The file is still where it was"
    if kind is OutboundKind.REQUEST:
        return f"To do: answer it at its terminal, {attach_of(whole.post.name)}"
    folder = paths.session(whole.post.uid) / UNSENT
    path = folder / f"{iso(now)[:19].replace(':', '')}-{whole.seq}.md"
    try:
        private_folder(folder)
        write_private(path, redactor.redact(whole.post.text).encode())
    except StoreBroken as error:
        return f"Its text could not be kept either ({error}); look for it in the session's terminal"
    return f"The whole text is in `{path}`"
