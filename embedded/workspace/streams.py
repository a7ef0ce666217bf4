"""Messages that are written while they are shown: what chat.startStream, chat.appendStream and chat.stopStream do.

https://docs.slack.dev/reference/methods/chat.startStream and its two companions name the arguments, the limits of a
text (12,000 characters) and of a task's title (256), and the errors. Their pages do not say for how long a message can
be written to and how much it holds: apps have seen 5 minutes and some 11,000 bytes
(https://github.com/slackapi/python-slack-sdk/issues/1859, https://github.com/openclaw/openclaw/pull/143882).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embedded.workspace import limits, model
from embedded.workspace.model import ApiError, Changes, Channel, Json, Store, new_block_id

if TYPE_CHECKING:
    from embedded.workspace.room import Posting

STREAM_SECONDS = 300.0
STREAM_BYTES = 11_000
TITLE_MAX = 256
DISPLAYS = ("timeline", "plan", "dense")
STATUSES = ("pending", "in_progress", "complete", "error")
TEXT, CHUNKS = "markdown_text", "chunks"


@dataclass
class Stream:
    """One message while it is written: which of the two arguments it takes ("" until one came), and what it shows."""

    display: str
    until: float
    mode: str = ""
    title: str = ""
    parts: list[Json] = field(default_factory=list)  #: {"text"} and {"task"}, in the order in which they came

    def task(self, task_id: str) -> Json | None:
        """Return the task of that id."""
        return next((part["task"] for part in self.parts if part.get("task", {}).get("id") == task_id), None)

    def say(self, text: str) -> None:
        """Put a text behind the text so far, or behind the task that came last."""
        if self.parts and "text" in self.parts[-1]:
            self.parts[-1]["text"] += text
        else:
            self.parts.append({"text": text})

    @property
    def text(self) -> str:
        """Return all that was said."""
        return "".join(part.get("text", "") for part in self.parts)

    @property
    def size(self) -> int:
        """Return what it holds in bytes, as it was measured: details and outcomes of tasks count twice."""
        tasks = [part["task"] for part in self.parts if "task" in part]
        once = [self.title, self.text, *(task["title"] for task in tasks)]
        twice = [task.get(key, "") for task in tasks for key in ("details", "output")]
        return sum(len(text.encode()) for text in (*once, *twice, *twice))

    def blocks(self) -> list[Json]:
        """Return the message's blocks: in `plan` all tasks stand together, where the first one came."""
        shown: list[Json] = []
        tasks = [_card(part["task"]) for part in self.parts if "task" in part]
        plan = {"type": "plan", "title": self.title, "tasks": tasks}
        for part in self.parts:
            if "text" in part:
                shown.append({"type": "markdown", "text": part["text"]})
            elif self.display != "plan":
                shown.append({"type": "task_card", **_card(part["task"])})
            elif plan not in shown:
                shown.append(plan)
        if self.title and not tasks:
            shown.insert(0, plan)
        return [{**block, "block_id": new_block_id()} for block in shown if block.get("text", "x")]


def _card(task: Json) -> Json:
    rich = {key: _rich(task[key]) for key in ("details", "output") if task.get(key)}
    return {"task_id": task["id"], "title": task["title"], "status": task["status"], **rich}


def _rich(text: str) -> Json:
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}],
    }


class Streams:
    """The messages that are being written. A restart of the workspace ends them, as their time does."""

    def __init__(self, store: Store, posting: Posting, changes: Changes) -> None:
        self._store = store
        self._posting = posting
        self._changes = changes
        self._open: dict[tuple[str, str], Stream] = {}

    def start(self, channel: Channel, fields: Json, args: Json) -> Json:
        """Post the message with what it begins with, and return it as stored."""
        display = args.get("task_display_mode") or "timeline"
        if display not in DISPLAYS:
            raise ApiError("invalid_arguments")
        stream = Stream(display, model.now() + STREAM_SECONDS)
        _write(stream, args)
        message = self._posting.post(channel, {**fields, **_shown(stream)})
        self._open[channel.id, message["ts"]] = stream
        return message

    def append(self, channel: Channel, message: Json, args: Json) -> None:
        """Write on, or raise what Slack answers; a call that is refused writes nothing."""
        stream = self._opened(channel, message)
        if not args.get(TEXT) and not args.get(CHUNKS):
            raise ApiError("markdown_text_or_chunks_required")
        self._put(channel, message, stream, args)

    def stop(self, channel: Channel, message: Json, args: Json, more: Json) -> Json:
        """Write what is left, close the message and return it. `more`: members that it has from now on."""
        stream = self._opened(channel, message)
        before = self._put(channel, message, stream, args)
        del self._open[channel.id, message["ts"]]
        blocks = [*before["blocks"], *more.pop("blocks", [])]
        return self._posting.edit(channel, before, {**more, "blocks": blocks}, None)

    def is_open(self, channel: str, ts: str) -> bool:
        """Return whether a message is still being written."""
        stream = self._open.get((channel, ts))
        return stream is not None and model.now() < stream.until

    def state(self, channel: str, ts: str) -> str:
        """Return how a message stands: "open"; "cut", where nobody stopped it in time; "" for all others."""
        if (channel, ts) not in self._open:
            return ""
        return "open" if self.is_open(channel, ts) else "cut"

    def expire(self) -> int:
        """End the time of all that is being written, and return how many there were."""
        found = [stream for stream in self._open.values() if model.now() < stream.until]
        for stream in found:
            stream.until = 0.0
        self._changes.notify()
        return len(found)

    def _opened(self, channel: Channel, message: Json) -> Stream:
        if not self.is_open(channel.id, message["ts"]):
            raise ApiError("message_not_in_streaming_state")
        return self._open[channel.id, message["ts"]]

    def _put(self, channel: Channel, message: Json, stream: Stream, args: Json) -> Json:
        parts = [{**part, **({"task": dict(part["task"])} if "task" in part else {})} for part in stream.parts]
        written = Stream(stream.display, stream.until, stream.mode, stream.title, parts)
        _write(written, args)
        changed = {**message, **_shown(written)}
        self._store.put_message(channel.id, changed)
        self._open[channel.id, message["ts"]] = written
        self._changes.notify()
        return changed


def _shown(stream: Stream) -> Json:
    return {"text": stream.text, "blocks": stream.blocks()}


def _write(stream: Stream, args: Json) -> None:
    """Add what a call brings. A stream takes texts or chunks, as its first call did, and never both at once."""
    text, chunks = args.get(TEXT), args.get(CHUNKS)
    if text is not None and chunks is not None:
        raise ApiError("cannot_provide_both_markdown_text_and_chunks")
    mode = TEXT if text is not None else CHUNKS if chunks is not None else ""
    if stream.mode and mode and mode != stream.mode:
        raise ApiError("streaming_mode_mismatch")
    stream.mode = stream.mode or mode
    if text is not None:
        stream.say(limits.check_markdown(text, conflicting=False))
    if chunks is not None and not isinstance(chunks, list):
        raise ApiError("invalid_chunks")
    for chunk in chunks or ():
        writes = _CHUNKS.get(str(chunk.get("type"))) if isinstance(chunk, dict) else None
        if writes is None:
            raise ApiError("invalid_chunks")
        writes(stream, chunk)
    if stream.size > STREAM_BYTES:
        raise ApiError("msg_too_long")
    if len(stream.blocks()) > limits.BLOCKS_MAX or sum("task" in part for part in stream.parts) > limits.BLOCKS_MAX:
        raise ApiError("msg_blocks_too_many")


def _string(chunk: Json, key: str, most: int, *, needed: bool = True) -> str:
    value: Any = chunk.get(key, None if needed else "")
    if not isinstance(value, str) or len(value) > most or (needed and not value):
        raise ApiError("invalid_chunks")
    return value


def _text_chunk(stream: Stream, chunk: Json) -> None:
    stream.say(_string(chunk, "text", limits.MARKDOWN_MAX))


def _plan_chunk(stream: Stream, chunk: Json) -> None:
    stream.title = _string(chunk, "title", TITLE_MAX)


def _task_chunk(stream: Stream, chunk: Json) -> None:
    """Add a task, or change the one of that id: its title and state are replaced, its details and outcome grow."""
    task_id, title = _string(chunk, "id", limits.ID_MAX), _string(chunk, "title", TITLE_MAX)
    if chunk.get("status") not in STATUSES:
        raise ApiError("invalid_chunks")
    task = stream.task(task_id)
    if task is None:
        task = {"id": task_id}
        stream.parts.append({"task": task})
    task |= {"title": title, "status": chunk["status"]}
    for key in ("details", "output"):
        task[key] = task.get(key, "") + _string(chunk, key, TITLE_MAX, needed=False)


def _blocks_chunk(stream: Stream, chunk: Json) -> None:
    raise ApiError("invalid_blocks")  # nothing here draws them within a text


_CHUNKS: Mapping[str, Callable[[Stream, Json], None]] = {
    "markdown_text": _text_chunk,
    "plan_update": _plan_chunk,
    "task_update": _task_chunk,
    "blocks": _blocks_chunk,
}
