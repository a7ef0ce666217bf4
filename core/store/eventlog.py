"""The event log: one JSON object a line, appended by any number of processes, rotated by size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.clock import Clock, iso
from core.domain.events import check_event
from core.domain.message import MessageState
from core.errors import StoreBroken
from core.loggers import logger
from core.names import STANDING_PREFIX
from core.store.logfiles import LogFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from core.redaction import Redactor

_LOG = logger(__name__)


class JsonEventLog:
    """Implements EventLog in `path`, with `path.1` (the latest) to `path.<keep>` behind it.

    A file is put aside before it would grow above `max_bytes`. `include_text` writes messages in full. What a reason, a
    detail or a text may hold of a dying program's output, or of a person's words, loses its secrets first.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        max_bytes: int,
        keep: int,
        include_text: bool = False,
        redactor: Callable[[], Redactor] | None = None,
    ) -> None:
        """`redactor` makes the one that knows this process's secrets; without it they are known by their look alone."""
        self._files = LogFiles(path, clock, max_bytes, keep)
        self._clock = clock
        self._include_text = include_text
        self._make_redactor = redactor
        self._redactor: Redactor | None = None

    def emit(self, event: str, **fields: Any) -> None:
        """Append one event. Raises ValueError for a name that is not in core.domain.events, and nothing else.

        A log that cannot be written is reported on the standard log and stops nobody.
        """
        self.emit_all([(event, fields)])

    def emit_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """See EventLog. Raises as `emit` does."""
        data = "".join(self._line(event, **fields) for event, fields in events).encode()
        try:
            self._files.append(data)
        except (OSError, StoreBroken) as error:
            for event, fields in events:
                _report(error, event, fields.get("name"))

    def read(
        self, *, follow: bool = False, stopping: Callable[[], bool] = lambda: False, interval: float = 0.2
    ) -> Iterator[dict[str, Any]]:
        """Yield every event that is kept, oldest first; with `follow` also those to come, until `stopping` says so.

        `interval` is in seconds, between two looks for more. A line that is no event is reported on the standard log
        and left out. Raises StoreBroken if the log cannot be read; none at all is an empty one.
        """
        from core.store.eventreader import follow_events, read_events  # only the command that reads it needs this

        if follow:
            return follow_events(self._files, self._clock, stopping, interval)
        return read_events(self._files)

    def _line(
        self,
        event: str,
        *,
        level: str = "info",
        name: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
        detail: str | MessageState | None = None,
        instance: str | None = None,
        generation: int | None = None,
        message: str | None = None,
        channel: str | None = None,
        thread: str | None = None,
        text: str | None = None,
    ) -> str:
        line = {
            "ts": iso(self._clock.now()),
            "event": check_event(event).value,
            "level": level,
            "ref": None if name is None else STANDING_PREFIX + name,
            "name": name,
            "actor": actor,
            "reason": self._redacted(reason),
            "detail": detail.value if isinstance(detail, MessageState) else self._redacted(detail),
            "instance": instance,
            "generation": generation,
            "message": message,
            "channel": channel,
            "thread": thread,
            "text": None if text is None else self._text(text, message),
        }
        return json.dumps({key: value for key, value in line.items() if value is not None}) + "\n"

    def _redacted(self, text: str | None) -> str | None:
        if not text:
            return text
        if self._redactor is None:
            from core.redaction import Redactor  # costs a third of what a short command takes

            self._redactor = self._make_redactor() if self._make_redactor else Redactor()
        return self._redactor.redact(text)

    def _text(self, text: str, message: str | None) -> str | dict[str, Any] | None:
        """Return the text, or what identifies it: the message's id, its length in characters, the hash of its UTF-8."""
        if self._include_text:
            return self._redacted(text)
        import hashlib  # loads OpenSSL

        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return {"id": message, "length": len(text), "sha256": digest}


def _report(error: Exception, event: str, name: str | None) -> None:
    extra = {"event": event, "session": name, "reason": str(error)}
    _LOG.error("event log cannot be written", extra=extra)
