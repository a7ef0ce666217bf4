"""What goes through the exchange as JSON: calls to a host and their answers, posts of a host and their results.

Each body says its version, `{"v": 1, …}`. A later release may add fields to a version: one that is not known is left
out, and one that is missing has its default. What cannot be understood is raised as Unreadable: it stays where it is
and is told, because a release that is upgraded understands it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from core.base.errors import ChannelError, CoreError, Refused, UnknownSession
from core.base.values import dataclass, field_names, replace
from core.model.asking import Button, Press
from core.model.channel import (
    IncomingChange,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    Posted,
    PrivateAnswer,
    Swept,
)
from core.model.message import Attachment, Fetched
from core.model.posts import Mark, NewPost, OutboundKind, OwnPost, ThreadSeen

VERSION = 1
_Value = TypeVar("_Value")


class Unreadable(CoreError):
    """A body is of a kind or a version that this release does not know."""

    code = "envelope_unreadable"

    def __init__(self, what: str, kind: str, reason: str) -> None:
        """`what`: a call, a post, an answer."""
        super().__init__(f"a {what} of the fleet ({kind!r}) cannot be understood: {reason}", "upgrade the-loop here")


# ------------------------------------------------------------ the calls: from the gateway to a host


@dataclass(frozen=True)
class Gap:
    """Replies of this chat may have been missed until now."""

    chat: str


@dataclass(frozen=True)
class Looking:
    """A sweep of this chat's threads has begun."""

    chat: str
    team: str


@dataclass(frozen=True)
class SweptThread:
    """A thread was read to its end."""

    chat: str
    team: str
    swept: Swept


@dataclass(frozen=True)
class Reply:
    """What somebody wrote."""

    reply: IncomingReply


@dataclass(frozen=True)
class Change:
    """What somebody edited or deleted."""

    change: IncomingChange


@dataclass(frozen=True)
class Pressed:
    """A button was pressed."""

    press: IncomingPress


@dataclass(frozen=True)
class Ordered:
    """A command was given."""

    order: IncomingOrder


CallBody = Gap | Looking | SweptThread | Reply | Change | Pressed | Ordered


# ------------------------------------------------------------ the posts: from a host to the gateway


@dataclass(frozen=True)
class Say:
    """A post, or the edit of one where `ts` is not "". A file's content is in the blob."""

    post: NewPost
    channel: str
    thread: str
    ts: str = ""
    blob: str = ""  #: the file that is attached, as a blob; "": there is none
    again: bool = False  #: an earlier attempt may have posted it: it is looked for first


@dataclass(frozen=True)
class React:
    """A reaction in the place of others."""

    channel: str
    ts: str
    mark: Mark
    instead_of: tuple[Mark, ...]


@dataclass(frozen=True)
class Show:
    """What a session is doing, below its thread; "": nothing."""

    channel: str
    thread: str
    text: str


@dataclass(frozen=True)
class Read:
    """A thread that is to be read."""

    channel: str
    thread: str


@dataclass(frozen=True)
class FetchFiles:
    """Files that a committed message waits for."""

    message: str  #: the message's id on its host
    name: str  #: the session's
    files: tuple[Attachment, ...]


PostBody = Say | React | Show | Read | FetchFiles


# ------------------------------------------------------------ answers and results


@dataclass(frozen=True)
class Failed:
    """An error, as whoever asked raises it again."""

    code: str
    message: str
    remedy: str = ""
    transient: bool = False
    retry_after: float | None = None
    unclear: bool = False
    reason: str = ""

    def error(self) -> CoreError:
        """Return the error of a command or a press. UnknownSession stays one: a chat tells it in words of its own."""
        if self.code == UnknownSession.code:
            error = UnknownSession("")
            error.message, error.remedy, error.args = self.message, self.remedy, (self.told,)
            return error
        return Refused(self.message, self.remedy)

    def channel_error(self) -> ChannelError:
        """Return the error of a post."""
        return ChannelError(
            self.message,
            self.remedy,
            transient=self.transient,
            retry_after=self.retry_after,
            unclear=self.unclear,
            reason=self.reason,
        )

    @property
    def told(self) -> str:
        """Return it as one sentence."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def failed(error: CoreError) -> Failed:
    """Return what is sent of an error."""
    if isinstance(error, ChannelError):
        return Failed(
            error.code, error.message, error.remedy, error.transient, error.retry_after, error.unclear, error.reason
        )
    return Failed(error.code, error.message, error.remedy)


AnswerBody = PrivateAnswer | Failed
ResultBody = Posted | ThreadSeen | tuple[Fetched, ...] | Failed | None  #: None: done, and nothing is to be told


# ------------------------------------------------------------ writing


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: classes as objects, enums by their value."""
    if isinstance(value, (Mark, OutboundKind, Press)):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if hasattr(value, "__match_args__"):
        return {name: _plain(getattr(value, name)) for name in field_names(value)}
    return value


def _body(document: Mapping[str, Any]) -> str:
    return json.dumps({"v": VERSION, **document}, separators=(",", ":"))


def written_call(call: CallBody) -> tuple[str, str]:
    """Return the kind and the body of a call."""
    return _kind_of(call, _CALLS), _body(_plain(call))


def written_post(post: PostBody) -> tuple[str, str]:
    """Return the kind and the body of a post."""
    return _kind_of(post, _POSTS), _body(_plain(post))


def written_answer(answer: AnswerBody) -> str:
    """Return the answer to a press or a command as JSON."""
    return _body({"failed" if isinstance(answer, Failed) else "answer": _plain(answer)})


def written_result(result: ResultBody) -> str:
    """Return what became of a post as JSON."""
    match result:
        case Failed():
            key = "failed"
        case Posted():
            key = "posted"
        case ThreadSeen():
            key = "seen"
        case None:
            key = "done"
        case _:
            key = "fetched"
    return _body({key: _plain(result)})


def _kind_of(value: object, kinds: Mapping[str, tuple[type[Any], Callable[[Any], Any]]]) -> str:
    return next(kind for kind, (made, _) in kinds.items() if type(value) is made)


# ------------------------------------------------------------ reading


def read_call(kind: str, body: str) -> CallBody:
    """Return a call. Raises Unreadable."""
    found: CallBody = _read("call", kind, body, _CALLS)
    return found


def read_post(kind: str, body: str) -> PostBody:
    """Return a post. Raises Unreadable."""
    found: PostBody = _read("post", kind, body, _POSTS)
    return found


def read_answer(body: str) -> AnswerBody:
    """Return the answer to a press or a command. Raises Unreadable."""
    readers: dict[str, Callable[[Any], AnswerBody]] = {
        "answer": lambda found: _made(PrivateAnswer, found, rows=tuple(found.get("rows", ()))),
        "failed": _failed,
    }
    return _one_of("answer", body, readers)


def read_result(body: str) -> ResultBody:
    """Return what became of a post. Raises Unreadable."""
    readers: dict[str, Callable[[Any], ResultBody]] = {
        "posted": lambda found: _made(Posted, found),
        "seen": _seen,
        "fetched": lambda found: tuple(_fetched(each) for each in found),
        "failed": _failed,
        "done": lambda found: None,
    }
    return _one_of("result", body, readers)


def _read(what: str, kind: str, body: str, kinds: Mapping[str, tuple[type[Any], Callable[[Any], Any]]]) -> Any:
    if kind not in kinds:
        raise Unreadable(what, kind, "this release knows no such kind")
    return _understood(what, kind, body, kinds[kind][1])


def _one_of(what: str, body: str, readers: Mapping[str, Callable[[Any], _Value]]) -> _Value:
    def read(document: Mapping[str, Any]) -> _Value:
        key = next(key for key in document if key in readers)
        return readers[key](document[key])

    return _understood(what, what, body, read)


def _understood(what: str, kind: str, body: str, read: Callable[[Mapping[str, Any]], _Value]) -> _Value:
    try:
        document = json.loads(body)
        version = document["v"]
        if version != VERSION:
            raise Unreadable(what, kind, f"it has version {version!r}, and this release knows {VERSION}")
        return read(document)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise Unreadable(what, kind, f"{type(error).__name__}: {error}") from error


def _made(kind: type[_Value], found: Mapping[str, Any], /, **read: Any) -> _Value:
    """Return a value of that class: its fields as they came, but for those that are `read`; others are left out."""
    names: Sequence[str] = kind.__match_args__  # type: ignore[attr-defined]
    return kind(**{name: read.get(name, found.get(name)) for name in names if name in read or name in found})


def _attachments(found: Sequence[Mapping[str, Any]]) -> tuple[Attachment, ...]:
    return tuple(_made(Attachment, each) for each in found)


def _reply(found: Mapping[str, Any]) -> IncomingReply:
    return _made(IncomingReply, found, files=_attachments(found.get("files", ())))


def _change(found: Mapping[str, Any]) -> IncomingChange:
    before = found.get("before")
    return _made(IncomingChange, found, reply=_reply(found["reply"]), before=None if before is None else _reply(before))


def _button(found: Mapping[str, Any]) -> Button:
    question, option = found["place"]
    return _made(Button, found, press=Press(found["press"]), place=(question, option))


def _post(found: Mapping[str, Any]) -> NewPost:
    buttons = tuple(_button(each) for each in found.get("buttons", ()))
    return _made(NewPost, found, kind=OutboundKind(found["kind"]), buttons=buttons, note=None)


def _seen(found: Mapping[str, Any]) -> ThreadSeen:
    return _made(ThreadSeen, found, posts=tuple(_made(OwnPost, each) for each in found["posts"]))


def _fetched(found: Mapping[str, Any]) -> Fetched:
    return _made(Fetched, found, attachment=_made(Attachment, found["attachment"]))


def _failed(found: Mapping[str, Any]) -> Failed:
    return _made(Failed, found)


_CALLS: Mapping[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "gap": (Gap, lambda found: _made(Gap, found)),
    "looking": (Looking, lambda found: _made(Looking, found)),
    "swept": (SweptThread, lambda found: _made(SweptThread, found, swept=_made(Swept, found["swept"]))),
    "reply": (Reply, lambda found: Reply(_reply(found["reply"]))),
    "change": (Change, lambda found: Change(_change(found["change"]))),
    "press": (Pressed, lambda found: Pressed(_made(IncomingPress, found["press"]))),
    "order": (Ordered, lambda found: Ordered(_made(IncomingOrder, found["order"]))),
}
_POSTS: Mapping[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "say": (Say, lambda found: _made(Say, found, post=_post(found["post"]))),
    "react": (
        React,
        lambda found: _made(React, found, mark=Mark(found["mark"]), instead_of=tuple(map(Mark, found["instead_of"]))),
    ),
    "show": (Show, lambda found: _made(Show, found)),
    "read": (Read, lambda found: _made(Read, found)),
    "fetch": (FetchFiles, lambda found: _made(FetchFiles, found, files=_attachments(found["files"]))),
}


# ------------------------------------------------------------ what hosts publish


@dataclass(frozen=True)
class Facts:
    """What a host tells of a thread besides its route."""

    life: str = ""  #: another one at each start of the host's service
    begins: str = ""  #: where a sweep begins that has no cursor
    closed: bool = False  #: it is bound no more, and only posts go there
    waiting: tuple[str, ...] = ()  #: the latest replies that wait for their turn
    taken: tuple[str, ...] = ()  #: the latest replies that the host has besides


def written_facts(facts: Facts) -> str:
    """Return what is told of a thread, as the gateway reads it."""
    return json.dumps(_plain(facts), separators=(",", ":"))


def read_facts(text: str) -> Facts:
    """Return them; what cannot be read is as if it were not there."""
    try:
        found = json.loads(text)
        return Facts(
            str(found.get("life", "")),
            str(found.get("begins", "")),
            bool(found.get("closed", False)),
            tuple(map(str, found.get("waiting", ()))),
            tuple(map(str, found.get("taken", ()))),
        )
    except (ValueError, TypeError, AttributeError):
        return Facts()


def written_members(members: Sequence[str] | None) -> str:
    """Return who may write to a session, as the gateway reads it; None: anybody may, as far as is known."""
    return json.dumps(None if members is None else sorted(members), separators=(",", ":"))


def read_members(text: str) -> frozenset[str] | None:
    """Return them; None: nobody is refused. What cannot be read refuses nobody: the host decides."""
    try:
        found = json.loads(text)
        return None if found is None else frozenset(str(each) for each in found)
    except (ValueError, TypeError):
        return None


def without_words(reply: IncomingReply) -> IncomingReply:
    """Return a reply of which nothing is kept but who wrote it, and where: its host refuses it, and tells them."""
    return replace(reply, text="", quoted="", files=(), author_name="")
