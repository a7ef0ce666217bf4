"""The SDK: the calls of one the-loop, by groups. They are the same in the process and over HTTP.

Every call raises CoreError (its `code`, `message` and `remedy`) for what cannot be done: UnknownSession, NotRunning,
InvalidValue …. A session's failure is a row of an Answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from core.sdk.transport import Transport
from core.sdk.types import (
    Answer,
    Conversation,
    Event,
    History,
    Logs,
    Loops,
    Message,
    Posted,
    Queue,
    Reply,
    Request,
    Said,
    Screen,
    Session,
    Status,
    decode,
    decode_event,
)

_SESSIONS = "/standing-sessions"


class Standing:
    """The verbs on standing sessions."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> tuple[Session, ...]:
        """Return every declared and recorded session."""
        told = self._transport.call("GET", _SESSIONS, {})
        return tuple(decode(Session, row) for row in told["sessions"])

    def get(self, name: str) -> Session:
        """Return one session. Raises UnknownSession."""
        return decode(Session, self._transport.call("GET", f"{_SESSIONS}/one", {"name": name}))

    def create(
        self,
        name: str,
        *,
        harness: str | None = None,
        cwd: str | None = None,
        prompt: str | None = None,
        prompt_file: str | None = None,
        description: str | None = None,
        harness_args: Sequence[str] | None = None,
        auto_start: bool = True,
        restart: str = "never",
        chat: Mapping[str, str] | None = None,
        start: bool = True,
    ) -> Answer:
        """Make a session, and start it. Raises InvalidValue, NameTaken.

        `cwd` and `prompt_file` are absolute paths on the service's machine. `chat`: for each kind of chat in which it
        gets a thread, the channel's id, "" for the usual one.
        """
        given: dict[str, Any] = {
            "name": name, "harness": harness, "cwd": cwd, "prompt": prompt, "promptFile": prompt_file,
            "description": description, "harnessArgs": None if harness_args is None else [*harness_args],
            "autoStart": auto_start, "restart": restart, "start": start,
        }  # fmt: skip
        blocks = {kind: {"enabled": True, "channel": channel} for kind, channel in (chat or {}).items()}
        return self._act("create", {**given, **blocks})

    def delete(self, name: str) -> Answer:
        """Stop a created session and forget it. Raises UnknownSession, DeclaredSession."""
        return self._act("delete", {"name": name})

    def start(self, name: str | None = None, *, fresh: bool = False, conversation: str = "") -> Answer:
        """Bring a session up, or every one that is not held. Raises UnknownSession, InvalidValue, Refused.

        `fresh` begins a new conversation, `conversation` takes up an earlier one; a session that runs is ended first.
        """
        return self._act("start", {"name": name, "fresh": fresh, "conversation": conversation})

    def stop(self, name: str | None = None, reason: str = "") -> Answer:
        """End a session gracefully, or every one. Raises UnknownSession."""
        return self._act("stop", {"name": name, "reason": reason})

    def restart(self, name: str) -> Answer:
        """End the session gracefully and resume its conversation. Raises UnknownSession, Refused."""
        return self._act("restart", {"name": name})

    def pause(self, name: str, reason: str = "", *, hard: bool = False) -> Answer:
        """Let no further turn begin; `hard` interrupts the one that runs. Raises UnknownSession, Refused."""
        return self._act("pause", {"name": name, "reason": reason, "hard": hard})

    def resume(self, name: str) -> Answer:
        """End a pause; what waited goes in, in order. Raises UnknownSession, NotRunning."""
        return self._act("resume", {"name": name})

    def interrupt(self, name: str) -> Answer:
        """End the turn that runs, or reject the open dialog. Raises UnknownSession, NotRunning, Refused."""
        return self._act("interrupt", {"name": name})

    def announce(self, name: str) -> Answer:
        """Update the session's announcement, or open a new thread where it has none. Raises UnknownSession."""
        return self._act("announce", {"name": name})

    def control(self, name: str, verb: str) -> Answer:
        """Do what a verb says: start, stop, restart, pause, resume, interrupt, announce. Raises InvalidValue."""
        return self._act("control", {"name": name, "verb": verb})

    def say(self, name: str, text: str, *, actor: str | None = None, raw: bool = False, wait: float = 30.0) -> Said:
        """Put a message into the agent's terminal, once, and wait so many seconds for evidence (at most 300).

        `actor` is who says it, if not you; `raw` leaves out the frame that says so. Raises NotRunning, InvalidValue.
        """
        given = {"name": name, "text": text, "actor": actor, "raw": raw, "wait": wait}
        return decode(Said, self._transport.call("POST", f"{_SESSIONS}/say", given, wait))

    def history(self, name: str) -> History:
        """Return the conversations of a session, and deleted sessions of its name. Raises UnknownSession."""
        return decode(History, self._transport.call("GET", f"{_SESSIONS}/history", {"name": name}))

    def queue(self, name: str, *, text: bool = False) -> Queue:
        """Return what is on its way to the session and what waits, in order. Raises UnknownSession."""
        return decode(Queue, self._transport.call("GET", f"{_SESSIONS}/queue", {"name": name, "text": text}))

    def cancel(self, message_id: str) -> Message:
        """Cancel a message that waits. Raises UnknownMessage, Refused."""
        return decode(Message, self._transport.call("POST", f"{_SESSIONS}/cancel", {"id": message_id}))

    def confirm(self, message_id: str) -> Message:
        """Release a message that arrived late. Raises UnknownMessage, Refused."""
        return decode(Message, self._transport.call("POST", f"{_SESSIONS}/confirm", {"id": message_id}))

    def screen(self, name: str, lines: int = 50, *, history: bool = False, window: bool = False) -> Screen:
        """Return the end of the session's terminal. Raises UnknownSession, NotRunning."""
        given = {"name": name, "lines": lines, "history": history, "window": window}
        return decode(Screen, self._transport.call("GET", f"{_SESSIONS}/screen", given))

    def logs(self, name: str, lines: int = 50) -> Logs:
        """Return what the session's terminal showed last. Raises UnknownSession, NotRunning, TmuxSilent."""
        return decode(Logs, self._transport.call("GET", f"{_SESSIONS}/logs", {"name": name, "lines": lines}))

    def conversation(self, name: str, last: int = 50) -> Conversation:
        """Return the latest messages to the session, and what its thread shows. Raises UnknownSession."""
        given = {"name": name, "last": last}
        return decode(Conversation, self._transport.call("GET", f"{_SESSIONS}/conversation", given))

    def _act(self, verb: str, given: Mapping[str, Any]) -> Answer:
        return decode(Answer, self._transport.call("POST", f"{_SESSIONS}/{verb}", given))


class LoopsOf:
    """Instructions that sessions get again and again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, name: str | None = None) -> Loops:
        """Return a session's loops, those that ended last; without a name the open ones of all."""
        return decode(Loops, self._transport.call("GET", "/loops", {"name": name}))

    def create(
        self,
        name: str,
        instruction: str,
        *,
        interval: str | None = None,
        cron: str | None = None,
        time_zone: str | None = None,
        keep_alive: bool = False,
        max_runs: int | None = None,
    ) -> Loops:
        """Make a loop. Raises UnknownSession, InvalidValue, TooManyLoops."""
        given = {
            "name": name, "instruction": instruction, "interval": interval, "cron": cron, "timeZone": time_zone,
            "keepAlive": keep_alive, "maxRuns": max_runs,
        }  # fmt: skip
        return self._act("create", given)

    def stop(self, loop_id: str, reason: str = "") -> Loops:
        """End a loop for good. Raises UnknownLoop."""
        return self._act("stop", {"id": loop_id, "reason": reason})

    def pause(self, loop_id: str, reason: str = "") -> Loops:
        """Let a loop rest until it is resumed. Raises UnknownLoop, Refused."""
        return self._act("pause", {"id": loop_id, "reason": reason})

    def resume(self, loop_id: str, reason: str = "") -> Loops:
        """Let a paused loop go on, or one that failures hold. Raises UnknownLoop, Refused."""
        return self._act("resume", {"id": loop_id, "reason": reason})

    def run(self, loop_id: str, reason: str = "") -> Loops:
        """Make a loop due now. Raises UnknownLoop, Refused."""
        return self._act("run", {"id": loop_id, "reason": reason})

    def schedule(self, loop_id: str, delay: str, reason: str) -> Loops:
        """Set the next run of a loop without a cadence: `10m`, or seconds. Raises UnknownLoop, Refused."""
        return self._act("schedule", {"id": loop_id, "delay": delay, "reason": reason})

    def _act(self, verb: str, given: Mapping[str, Any]) -> Loops:
        return decode(Loops, self._transport.call("POST", f"/loops/{verb}", given))


class Requests:
    """What waits for a person. The service alone hears those that ask, so it must run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, name: str | None = None) -> tuple[Request, ...]:
        """Return the open requests, oldest first. Raises ServiceUnreachable."""
        told = self._transport.call("GET", "/requests", {"name": name})
        return tuple(decode(Request, one) for one in told["requests"])

    def allow(self, request_id: str, *, remember: bool = False) -> Request:
        """Give a permission; `remember`: for the like, too, by its `rules`, until the program ends.

        Raises UnknownRequest, NotAnswered, and InvalidValue for `remember` of a request without rules.
        """
        return self._answer({"id": request_id, "allow": True, **({"remember": True} if remember else {})})

    def deny(self, request_id: str) -> Request:
        """Deny a permission. Raises UnknownRequest, NotAnswered."""
        return self._answer({"id": request_id, "allow": False})

    def choose(self, request_id: str, option: int, *, question: int | None = None) -> Request:
        """Choose an option of a question or a dialog by its place, from 0. Raises UnknownRequest, NotAnswered."""
        return self._answer({"id": request_id, "option": option, "question": question})

    def answer(self, request_id: str, text: str, *, question: int | None = None) -> Request:
        """Answer a question in your own words. Raises UnknownRequest, NotAnswered."""
        return self._answer({"id": request_id, "answer": text, "question": question})

    def _answer(self, given: Mapping[str, Any]) -> Request:
        return decode(Request, self._transport.call("POST", "/requests/answer", given))


class Events:
    """The event log."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def latest(self, last: int = 100, *, name: str | None = None) -> tuple[Event, ...]:
        """Return the latest events (at most 1000), oldest first; `name`: of one session."""
        told = self._transport.call("GET", "/events", {"last": last, "name": name})
        return tuple(decode_event(one) for one in told["events"])

    def follow(self, *, after: str | None = None, name: str | None = None) -> Iterator[Event]:
        """Yield events as they come, for ever; those behind the id `after` first ("0-0": all that are kept).

        Where a connection breaks it goes on from the last one. An event `lost` says that what follows `after` is kept
        no more. Raises ServiceUnreachable.
        """
        for told in self._transport.follow(after, name):
            yield decode_event(told)


class TheLoop:
    """One the-loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.standing = Standing(transport)
        self.loops = LoopsOf(transport)
        self.requests = Requests(transport)
        self.events = Events(transport)

    def status(self) -> Status:
        """Return whether everything is up."""
        return decode(Status, self._transport.call("GET", "/status", {}))

    def post(self, name: str, text: str) -> Posted:
        """Post into a session's thread. Raises UnknownSession, Refused."""
        return decode(Posted, self._transport.call("POST", "/post", {"name": name, "text": text}))

    def ask(self, name: str, question: str, options: Sequence[str] = (), *, wait: float | None = None) -> Reply:
        """Ask the people of a session's thread, and wait for the answer. Raises NoAnswer, Refused."""
        given = {"name": name, "question": question, "options": [*options], "wait": wait}
        return decode(Reply, self._transport.call("POST", "/ask", given, wait or 86_400))

    def close(self) -> None:
        """Let go of what is held; sessions live on."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
