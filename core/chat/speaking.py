"""What an agent says in its own thread besides its answers: posts, files, and questions that it waits for."""

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from core.base.errors import CoreError, InvalidValue, NotPermitted, Refused
from core.base.names import new_request_id
from core.base.redaction import Redactor, redactor_of
from core.base.text import unstyled
from core.base.values import dataclass
from core.clients.askclient import Undecided, wait_for_answer
from core.config.settings import Settings, secret_variables
from core.model.framing import clean
from core.model.posts import OWN_CHAT, NewPost, OutboundKind, PostState
from core.model.session import SessionRecord
from core.process.presence import running_service
from core.session.attachments import OUTGOING, attachment_id, keep_outgoing
from core.session.sessions import definition_of, has_thread, record_of_instance, resolve
from core.session.system import System
from core.store.outbox import Outbox
from core.store.records import Records
from core.store.requests import RequestBook
from core.store.sessions import Bindings

POSTS_AN_HOUR = 20  #: of one agent, questions among them
MOST_BYTES = 20 * 1024 * 1024  #: of a file
_LONGEST_TEXT = 12_000  #: characters of a post; an answer may be longer, since it is split
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Said:
    """A post that was committed, and how many values in it look like secrets, or are known as such here."""

    post_id: str
    redacted: int


def redaction_told(count: int) -> Mapping[str, Any]:
    """Return what whoever spoke is told of the values that are taken out: nothing where there are none."""
    if not count:
        return {}
    values = "1 value was" if count == 1 else f"{count} values were"
    return {"redacted": count, "said": f"{values} redacted: people see `[redacted]` there"}


class NoAnswer(CoreError):
    """A question was asked, and nobody answered."""

    code = "no_answer"


def speaker(settings: Settings, records: Records, instance: str | None, name: str) -> SessionRecord:
    """Return the session in whose thread is spoken: an agent's own, else the one that is named.

    Raises NotPermitted for an agent that names another, InvalidValue where no name is given, UnknownSession, Refused.
    """
    if instance is not None:
        record = record_of_instance(records, instance)
        if record is None:
            raise Refused("this process belongs to no session that runs now", "only a running session can post")
        if name and name != record.name:
            raise NotPermitted(f"an agent speaks in its own thread, and {name} is another session", "leave NAME out")
        return record
    if not name:
        raise InvalidValue("no session is named", "say in whose thread: NAME")
    known = definition_of(settings, records, name)
    if known.unreadable is not None:
        raise known.unreadable
    if known.record is None:
        raise Refused(f"{name} was never started, so it has no thread", f"start it: `the-loop standing start {name}`")
    return known.record


def post(
    system: System, record: SessionRecord, actor: str, text: str, files: Sequence[Path] = (), *, agent: bool
) -> Said:
    """Commit a post into the session's thread. The service sends it, or the next one does.

    An agent's files must lie in its own folder, by what their paths lead to in the end. Raises InvalidValue,
    NotPermitted, Refused, StoreBroken.
    """
    _check_thread(system.settings, system.bindings, record)
    shown = clean(unstyled(text)).text if text or not files else ""
    if len(shown) > _LONGEST_TEXT:
        raise InvalidValue(
            f"the text has {len(shown):,} characters, and a post at most {_LONGEST_TEXT:,}", "attach it as a file"
        )
    within = resolve(record.definition, system.settings).cwd if agent else None
    sources = [_readable(file, within) for file in files]
    redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
    found = [_content(source, redactor) for source in sources]
    contents, redacted = [content for content, _ in found], sum(count for _, count in found)
    _spend(system.requests, record, system.clock.now(), agent=agent)
    post_id = f"p-post-{new_request_id().removeprefix('q-')}"
    posts = [_post(record, post_id, OutboundKind.POST, shown, "")] if shown.strip() else []
    for number, (source, content) in enumerate(zip(sources, contents, strict=True)):
        file_id = f"{post_id}-{number}" if number else post_id
        copied = _kept(system, record, file_id, source.name, content)
        posts.append(
            _post(record, attachment_id(file_id), OutboundKind.ATTACHMENT, f"{record.name}: {copied.name}", str(copied))
        )
    system.outbox.add(posts)
    system.events.emit("standing.posted", name=record.name, actor=actor, message=post_id, text=shown)
    system.notify()
    return Said(post_id, redactor.counted(shown).count + redacted)


def ask(
    system: System, record: SessionRecord, question: str, options: Sequence[str], wait: float | None
) -> Mapping[str, Any]:
    """Ask a question in the session's thread, wait, and return `{"answer", "by"}`, and what `redaction_told` tells.

    Raises NoAnswer, InvalidValue, Refused.
    """
    request = question_of(system, record, question, options, wait, f"ask-{new_request_id()}")
    try:
        answer = wait_for_answer(str(system.paths.service_socket), request)
    except Undecided as error:
        raise unanswered(record, str(error)) from error
    return {**told_answer(answer), **redaction_told(redacted_in(system.settings, system.environ, question, *options))}


def redacted_in(settings: Settings, environ: Mapping[str, str], *texts: str) -> int:
    """Return how many values in the texts are taken out before anybody sees them."""
    redactor = redactor_of(environ, secret_variables(settings, environ))
    return sum(redactor.counted(unstyled(text)).count for text in texts)


def question_of(
    system: System, record: SessionRecord, question: str, options: Sequence[str], wait: float | None, key: str
) -> dict[str, Any]:
    """Return the question as the service's socket takes it; one that is asked again under its key costs nothing.

    Raises InvalidValue, Refused.
    """
    _check_thread(system.settings, system.bindings, record)
    if running_service(system.paths.service_lock) is None:
        raise Refused("no service is running, so nobody can be asked", "`the-loop start` starts it")
    text = clean(unstyled(question)).text.strip()
    listed = [{"label": clean(unstyled(option)).text.strip(), "description": ""} for option in options]
    if len(listed) > 10 or len(text) > 1_000 or any(len(option["label"]) > 200 for option in listed):
        raise InvalidValue("the question is too long", "1,000 characters, 10 options of 200 characters each at most")
    instance = record.instance_id or ""
    if system.requests.of_key(instance, key) is None:
        _spend(system.requests, record, system.clock.now(), agent=True)
    return {
        "op": "ask",
        "instance": instance,
        "key": key,
        "input": {"questions": [{"question": text, "options": listed}]},
        "wait": wait,
    }


def told_answer(answer: Mapping[str, Any]) -> Mapping[str, str]:
    """Return `{"answer", "by"}` of what the socket answered to one question."""
    [said] = answer["answers"].values()
    return {"answer": str(said), "by": str(answer["by"])}


def unanswered(record: SessionRecord, why: str) -> NoAnswer:
    """Return the error of a question that nobody answered."""
    return NoAnswer(f"{record.name}: {why}", "go on without an answer, or ask again later")


def _check_thread(settings: Settings, bindings: Bindings, record: SessionRecord) -> None:
    if not has_thread(settings, bindings, record):
        raise Refused(f"{record.name} has no thread to speak in", "say it in your answer instead")


def _spend(requests: RequestBook, record: SessionRecord, now: datetime, *, agent: bool) -> None:
    if agent and not requests.spoke(record.uid, now, now - _HOUR, POSTS_AN_HOUR):
        raise Refused(
            f"{record.name} has posted {POSTS_AN_HOUR} times within the last hour, and that is the limit",
            "collect your points and post them together later",
        )


def _post(record: SessionRecord, post_id: str, kind: OutboundKind, text: str, path: str) -> NewPost:
    return NewPost(
        id=post_id,
        key=post_id,
        kind=kind,
        uid=record.uid,
        name=record.name,
        channel_kind=OWN_CHAT,
        text=text,
        path=path,
    )


def _readable(file: Path, within: Path | None) -> Path:
    """Return the file that a path leads to in the end. Raises InvalidValue, and NotPermitted outside of `within`."""
    try:
        found = file.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # ValueError: a NUL, or half a character
        raise InvalidValue(f"there is no file {str(file)!r}", "check the path") from error
    if within is not None and not found.is_relative_to(within.resolve()):
        raise NotPermitted(f"{file} leads out of {within}, the session's folder", "copy it there first")
    return found


def _content(source: Path, redactor: Redactor) -> tuple[bytes, int]:
    """Return what a file holds, and how many values of it will be taken out. Raises InvalidValue, NotPermitted.

    What is sent is what stood there now. A secret whose value is known here is refused where it could not be taken
    out; the service, which may know others, looks again before it sends.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(MOST_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise InvalidValue(f"{source} cannot be read: {error.strerror}", "check its permissions") from error
    if not 0 < len(content) <= MOST_BYTES:
        raise InvalidValue(f"{source} must be a regular file of 1 to {MOST_BYTES:,} bytes", "send another file")
    redacted, count = redactor.counted_file(content)
    if redacted is None:
        raise NotPermitted(
            f"{redactor.redact(source.name)} contains a secret that cannot be removed, because it is not a text file",
            "post the file without the secret, or as text",
        )
    return content, count


def _kept(system: System, record: SessionRecord, post_id: str, name: str, content: bytes) -> Path:
    """Keep a copy in the session's folder until it is sent, and return its path. Raises StoreBroken."""
    _drop_sent(system.outbox, system.paths.session(record.uid) / OUTGOING)
    return keep_outgoing(system, record.uid, post_id, name, content)


def _drop_sent(outbox: Outbox, outgoing: Path) -> None:
    """Remove the copies of files that nobody will send any more. Raises StoreBroken."""
    open_states = (PostState.PENDING, PostState.SENDING)
    for copy in outgoing.iterdir() if outgoing.is_dir() else ():
        row = outbox.get(attachment_id(copy.name))
        if row is not None and row.state not in open_states:
            shutil.rmtree(copy, ignore_errors=True)
