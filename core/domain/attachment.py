"""A file that came with a message: what a chat says of it, and what the agent is told. No I/O."""

import json
import re
from collections.abc import Sequence

from core.domain.plaintext import in_lines
from core.values import dataclass

_UNSAFE = re.compile(r"[^\w.+-]+")
_UNTOLD = re.compile(r"[^\w .+:/-]+")
_KIND = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,80}")
_LONGEST_NAME = 80
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Attachment:
    """A file as the chat describes it. `problem`: why it is not to be fetched at all, "" where it is."""

    id: str
    name: str
    kind: str  #: the media type that the chat states
    size: int  #: bytes, as stated
    url: str
    problem: str = ""
    clip: bool = False  #: somebody speaks in it, and the chat writes down what is said


@dataclass(frozen=True)
class Fetched:
    """What became of a file: the path where it is, or why it could not be had."""

    attachment: Attachment
    path: str = ""
    size: int = 0  #: bytes that were read
    problem: str = ""
    said: str = ""  #: what is said in a clip, as the chat has written it down


@dataclass(frozen=True)
class Fetch:
    """A committed message that waits for its files."""

    message_id: str
    name: str
    files: tuple[Attachment, ...]


def encoded(files: Sequence[Attachment]) -> str:
    """Return the files as JSON."""
    return json.dumps([[file.id, file.name, file.kind, file.size, file.url, file.problem, file.clip] for file in files])


def decoded(text: str) -> tuple[Attachment, ...]:
    """Return the files of `encoded`."""
    return tuple(Attachment(*entry) for entry in json.loads(text))


def safe_name(name: str, position: int) -> str:
    """Return a file name that is no path, hides nothing and collides with no other of its message: `2-notes.txt`."""
    kept = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip("._-")
    stem, dot, suffix = kept.rpartition(".")
    if len(kept.encode()) > _LONGEST_NAME:
        room = _LONGEST_NAME - len(suffix.encode()[:10]) - 1
        kept = f"{_cut(stem or kept, room)}{dot}{_cut(suffix, 10)}"
    return f"{position}-{kept}" if kept else f"{position}-file"


def shown_name(file: Attachment) -> str:
    """Return what a file is called, in one line."""
    return _UNTOLD.sub("_", file.name).strip("._- ")[:_LONGEST_SHOWN] or "without a name"


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def told(files: Sequence[Fetched]) -> str:
    """Return what the agent reads of the files: a line for each, in brackets that say what they are."""
    return "\n".join(_line(file) for file in files)


def _line(file: Fetched) -> str:
    kind = file.attachment.kind if _KIND.fullmatch(file.attachment.kind) else "unknown type"
    if file.problem:
        return f"(a part of this message, {shown_name(file.attachment)}, could not be read: {file.problem})"
    if file.attachment.clip and not file.said:
        return f"(file: {file.path} , {kind}, {file.size:,} bytes; the chat has not written down what is said in it)"
    if not file.said:
        return f"(file: {file.path} , {kind}, {file.size:,} bytes)"
    quoted = "\n".join(f"> {line}" for line in in_lines(file.said).split("\n"))
    return f"(file: {file.path} , {kind}, {file.size:,} bytes; said in it, as the chat has written it down:)\n{quoted}"
