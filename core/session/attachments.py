"""Files that came with messages: kept in the session's folder, then named in the message's text.

A message with files is committed before any file is fetched, and waits. If a process dies meanwhile, the next one
fetches again. Also copies of files that are to be posted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.base.errors import Refused, UnknownMessage
from core.base.files import private_folder, write_private
from core.base.names import new_message_id
from core.model.message import (
    WAITING,
    Fetched,
    MessageState,
    NewMessage,
    ReplyAddress,
    safe_name,
    shown_name,
    told,
)
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

    A file that is missing, and a recording without its words, is told in the thread, too. Raises StoreBroken.
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
        text, address = _missed(row.message.name, files), row.message.address
        if text and address is not None:
            system.outbox.add([_note(row.message, address, text)])
    system.notify()


def _missed(name: str, files: Sequence[Fetched]) -> str:
    """Return what a thread is told of files that could not be read, and of speech without a transcript; "" for none."""
    missing = "; ".join(f"{shown_name(file.attachment)}: {file.problem}" for file in files if file.problem)
    unheard = ", ".join(shown_name(file.attachment) for file in files if _is_unheard(file))
    sentences = []
    if missing:
        sentences.append(
            f"`{name}` does not get all of your message. What could not be read: {missing}. The rest of it goes in."
        )
    if unheard:
        sentences.append(
            f"`{name}` gets the recording ({unheard}) as a file only, because the chat has not written down in time "
            "what is said in it. To do: if the words matter, write them."
        )
    return " ".join(sentences)


def _is_unheard(file: Fetched) -> bool:
    """Return whether somebody speaks in it, and its words are not known; a video without any is nothing to tell."""
    found = file.attachment
    return found.clip and found.kind.startswith("audio/") and not (file.said or file.problem)


def _note(message: NewMessage, address: ReplyAddress, text: str) -> NewPost:
    return NewPost(
        id=f"p-files-{new_message_id()}",
        key=f"files:{message.id}",
        kind=OutboundKind.NOTE,
        uid=message.uid,
        name=message.name,
        channel_kind=address.channel_kind,
        text=text,
        channel=address.channel,
        thread=address.thread,
        about=message.id,
    )


# ---------------------------------------------------------------- what is to be posted

OUTGOING = "outgoing"  #: the folder in a session's own where copies of files wait that are to be posted


def attachment_id(post_id: str) -> str:
    """Return the id of the post that attaches the file kept in the folder of that name."""
    return f"{post_id}-file"


def keep_outgoing(system: System, uid: str, post_id: str, name: str, data: bytes) -> Path:
    """Keep a copy for the post `attachment_id(post_id)`, and return its path. Raises StoreBroken."""
    folder = system.paths.session(uid) / OUTGOING / post_id
    private_folder(folder)
    write_private(folder / name, data)
    return folder / name
