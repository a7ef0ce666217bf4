"""What a thread hears of a post that it will never get: that it is missing, why, and where its text stands."""

from pathlib import PurePath

from core.clock import iso
from core.errors import StoreBroken
from core.ports import NewPost, OutboundKind, OutboxRow
from core.redaction import Redactor
from core.session.instead import attach_of
from core.store.files import private_folder, write_private
from core.system import System

UNSENT = "unsent"  #: folder of a session: what could not be posted
_WHAT = {
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
    if post.kind not in _WHAT or post.edits:
        return None
    whole = system.outbox.whole(row)
    what = _WHAT[post.kind].format(name=post.name, file=redactor.redact(PurePath(post.path).name).replace("`", "'"))
    return NewPost(
        id=f"p-unsent-{whole.seq}",
        key=f"unsent:{whole.post.id}",
        kind=OutboundKind.NOTE,
        uid=post.uid,
        name=post.name,
        channel_kind=post.channel_kind,
        text=f"{what}: {reason.rstrip('.')}. {_where(system, redactor, post.kind, whole)}.",
        channel=post.channel,
        thread=post.thread,
        about=whole.post.id,
    )


def _where(system: System, redactor: Redactor, kind: OutboundKind, whole: OutboxRow) -> str:
    if kind is OutboundKind.ATTACHMENT:
        return "It still lies where it was posted from"
    if kind is OutboundKind.REQUEST:
        return f"To do: answer it at its terminal, {attach_of(whole.post.name)}"
    folder = system.paths.session(whole.post.uid) / UNSENT
    path = folder / f"{iso(system.clock.now())[:19].replace(':', '')}-{whole.seq}.md"
    try:
        private_folder(folder)
        write_private(path, redactor.redact(whole.post.text).encode())
    except StoreBroken as error:
        return f"Its text could not be kept either ({error}); it stands in the session's terminal"
    return f"The whole text is in `{path}`"
