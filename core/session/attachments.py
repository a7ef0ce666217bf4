"""Files that came with messages: kept in the session's folder, then named in the message's text.

A message with files is committed before any file is fetched, and waits. If a process dies meanwhile, the next one
fetches again.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.errors import Refused, UnknownMessage
from core.base.files import (
    private_folder,
    write_private,
)
from core.base.names import new_message_id
from core.model.message import WAITING, Fetched, MessageState, safe_name, shown_name, told
from core.model.posts import NewPost, OutboundKind
from core.session.launching import FOLDER
from core.session.system import System


def keep_file(system: System, message_id: str, position: int, name: str, data: bytes) -> str:
    """Write a file (0600) under a name that the chat's cannot harm, and return its path. Raises StoreBroken."""
    row = system.inbox.get(message_id)
    if row is None:
        raise UnknownMessage(message_id)
    if row.state not in WAITING:
        raise Refused(f"message {message_id} waits for no files: it is {row.state.value}", "nothing needs to be done")
    path = system.paths.session(row.message.uid) / FOLDER / message_id / safe_name(name, position)
    private_folder(path.parent)
    write_private(path, data)
    return str(path)


def fetched(system: System, message_id: str, files: Sequence[Fetched]) -> None:
    """Let the message go on, its text naming each file or why it is missing; done again it changes nothing.

    A file that is missing is told in the thread, too. Raises StoreBroken.
    """
    lines = told(files)
    with system.database.transaction(durable=True):
        if not system.inbox.tell_files(message_id, lines):
            return
        row = system.inbox.get(message_id)
        if row is None or row.state not in WAITING:
            return
        from core.model.reasons import Reason  # whoever lists sessions launches none

        text = "\n".join(filter(None, (row.message.text, lines)))
        try:
            edited = system.inbox.edit(row, text)
            why = None if edited.reason is Reason.FETCHING else edited.because
            system.inbox.advance(edited, MessageState.QUEUED, why)
        except Refused:
            return  # cancelled by another process meanwhile
        missing = [file for file in files if file.problem]
        address = row.message.address
        if missing and address is not None:
            system.outbox.add([_note(row.message.uid, row.message.name, address.channel, address.thread, missing,
                                     address.channel_kind, message_id)])  # fmt: skip
    system.notify()


def _note(
    uid: str, name: str, channel: str, thread: str, missing: Sequence[Fetched], kind: str, message_id: str
) -> NewPost:
    told = "; ".join(f"{shown_name(file.attachment)}: {file.problem}" for file in missing)
    return NewPost(
        id=f"p-files-{new_message_id()}",
        key=f"files:{message_id}",
        kind=OutboundKind.NOTE,
        uid=uid,
        name=name,
        channel_kind=kind,
        text=f"`{name}` does not get all of your message. What could not be read: {told}. The rest of it goes in.",
        channel=channel,
        thread=thread,
        about=message_id,
    )


OUTGOING = "outgoing"  #: the folder in a session's own where copies of files wait that are to be posted


def attachment_id(post_id: str) -> str:
    """Return the id of the post that attaches the file kept in the folder of that name."""
    return f"{post_id}-file"
