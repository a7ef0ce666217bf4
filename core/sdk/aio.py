"""The SDK for asyncio: the same calls as `core.sdk.loop`, each of which works in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Self

from core.sdk import loop as sync
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
)


class Standing:
    """The verbs on standing sessions."""

    def __init__(self, calls: sync.Standing) -> None:
        self._sync = calls

    async def list(self) -> tuple[Session, ...]:
        """Return every declared and recorded session."""
        return await asyncio.to_thread(self._sync.list)

    async def get(self, name: str) -> Session:
        """Return one session. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.get, name)

    async def create(
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
        """Make a session, and start it. Raises InvalidValue, NameTaken."""
        return await asyncio.to_thread(
            self._sync.create,
            name,
            harness=harness,
            cwd=cwd,
            prompt=prompt,
            prompt_file=prompt_file,
            description=description,
            harness_args=harness_args,
            auto_start=auto_start,
            restart=restart,
            chat=chat,
            start=start,
        )

    async def delete(self, name: str) -> Answer:
        """Stop a created session and forget it. Raises UnknownSession, DeclaredSession."""
        return await asyncio.to_thread(self._sync.delete, name)

    async def start(self, name: str | None = None, *, fresh: bool = False, conversation: str = "") -> Answer:
        """Bring a session up, or every one that is not held. Raises UnknownSession, InvalidValue, Refused."""
        return await asyncio.to_thread(self._sync.start, name, fresh=fresh, conversation=conversation)

    async def stop(self, name: str | None = None, reason: str = "") -> Answer:
        """End a session gracefully, or every one. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.stop, name, reason)

    async def restart(self, name: str) -> Answer:
        """End the session gracefully and resume its conversation. Raises UnknownSession, Refused."""
        return await asyncio.to_thread(self._sync.restart, name)

    async def pause(self, name: str, reason: str = "", *, hard: bool = False) -> Answer:
        """Let no further turn begin; `hard` interrupts the one that runs. Raises UnknownSession, Refused."""
        return await asyncio.to_thread(self._sync.pause, name, reason, hard=hard)

    async def resume(self, name: str) -> Answer:
        """End a pause; what waited goes in, in order. Raises UnknownSession, NotRunning."""
        return await asyncio.to_thread(self._sync.resume, name)

    async def interrupt(self, name: str) -> Answer:
        """End the turn that runs, or reject the open dialog. Raises UnknownSession, NotRunning, Refused."""
        return await asyncio.to_thread(self._sync.interrupt, name)

    async def announce(self, name: str) -> Answer:
        """Update the session's announcement, or open a new thread where it has none. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.announce, name)

    async def control(self, name: str, verb: str) -> Answer:
        """Do what a verb says: start, stop, restart, pause, resume, interrupt, announce. Raises InvalidValue."""
        return await asyncio.to_thread(self._sync.control, name, verb)

    async def say(
        self, name: str, text: str, *, actor: str | None = None, raw: bool = False, wait: float = 30.0
    ) -> Said:
        """Put a message into the agent's terminal, once, and wait so many seconds for evidence (at most 300)."""
        return await asyncio.to_thread(self._sync.say, name, text, actor=actor, raw=raw, wait=wait)

    async def history(self, name: str) -> History:
        """Return the conversations of a session, and deleted sessions of its name. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.history, name)

    async def queue(self, name: str, *, text: bool = False) -> Queue:
        """Return what is on its way to the session and what waits, in order. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.queue, name, text=text)

    async def cancel(self, message_id: str) -> Message:
        """Cancel a message that waits. Raises UnknownMessage, Refused."""
        return await asyncio.to_thread(self._sync.cancel, message_id)

    async def confirm(self, message_id: str) -> Message:
        """Release a message that arrived late. Raises UnknownMessage, Refused."""
        return await asyncio.to_thread(self._sync.confirm, message_id)

    async def screen(self, name: str, lines: int = 50, *, history: bool = False, window: bool = False) -> Screen:
        """Return the end of the session's terminal. Raises UnknownSession, NotRunning."""
        return await asyncio.to_thread(self._sync.screen, name, lines, history=history, window=window)

    async def logs(self, name: str, lines: int = 50) -> Logs:
        """Return what the session's terminal showed last. Raises UnknownSession, NotRunning, TmuxSilent."""
        return await asyncio.to_thread(self._sync.logs, name, lines)

    async def conversation(self, name: str, last: int = 50) -> Conversation:
        """Return the latest messages to the session, and what its thread shows. Raises UnknownSession."""
        return await asyncio.to_thread(self._sync.conversation, name, last)


class LoopsOf:
    """Instructions that sessions get again and again."""

    def __init__(self, calls: sync.LoopsOf) -> None:
        self._sync = calls

    async def list(self, name: str | None = None) -> Loops:
        """Return a session's loops, those that ended last; without a name the open ones of all."""
        return await asyncio.to_thread(self._sync.list, name)

    async def create(
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
        return await asyncio.to_thread(
            self._sync.create,
            name,
            instruction,
            interval=interval,
            cron=cron,
            time_zone=time_zone,
            keep_alive=keep_alive,
            max_runs=max_runs,
        )

    async def stop(self, loop_id: str, reason: str = "") -> Loops:
        """End a loop for good. Raises UnknownLoop."""
        return await asyncio.to_thread(self._sync.stop, loop_id, reason)

    async def pause(self, loop_id: str, reason: str = "") -> Loops:
        """Let a loop rest until it is resumed. Raises UnknownLoop, Refused."""
        return await asyncio.to_thread(self._sync.pause, loop_id, reason)

    async def resume(self, loop_id: str, reason: str = "") -> Loops:
        """Let a paused loop go on, or one that failures hold. Raises UnknownLoop, Refused."""
        return await asyncio.to_thread(self._sync.resume, loop_id, reason)

    async def run(self, loop_id: str, reason: str = "") -> Loops:
        """Make a loop due now. Raises UnknownLoop, Refused."""
        return await asyncio.to_thread(self._sync.run, loop_id, reason)

    async def schedule(self, loop_id: str, delay: str, reason: str) -> Loops:
        """Set the next run of a loop without a cadence: `10m`, or seconds. Raises UnknownLoop, Refused."""
        return await asyncio.to_thread(self._sync.schedule, loop_id, delay, reason)


class Requests:
    """What waits for a person. The service alone hears those that ask, so it must run."""

    def __init__(self, calls: sync.Requests) -> None:
        self._sync = calls

    async def list(self, name: str | None = None) -> tuple[Request, ...]:
        """Return the open requests, oldest first. Raises ServiceUnreachable."""
        return await asyncio.to_thread(self._sync.list, name)

    async def allow(self, request_id: str, *, remember: bool = False) -> Request:
        """Give a permission; `remember`: for the like, too, by its `rules`, until the program ends.

        Raises UnknownRequest, NotAnswered, and InvalidValue for `remember` of a request without rules.
        """
        return await asyncio.to_thread(self._sync.allow, request_id, remember=remember)

    async def deny(self, request_id: str) -> Request:
        """Deny a permission. Raises UnknownRequest, NotAnswered."""
        return await asyncio.to_thread(self._sync.deny, request_id)

    async def choose(self, request_id: str, option: int, *, question: int | None = None) -> Request:
        """Choose an option of a question or a dialog by its place, from 0. Raises UnknownRequest, NotAnswered."""
        return await asyncio.to_thread(self._sync.choose, request_id, option, question=question)

    async def answer(self, request_id: str, text: str, *, question: int | None = None) -> Request:
        """Answer a question in your own words. Raises UnknownRequest, NotAnswered."""
        return await asyncio.to_thread(self._sync.answer, request_id, text, question=question)


class Events:
    """The event log."""

    def __init__(self, calls: sync.Events) -> None:
        self._sync = calls

    async def latest(self, last: int = 100, *, name: str | None = None) -> tuple[Event, ...]:
        """Return the latest events (at most 1000), oldest first; `name`: of one session."""
        return await asyncio.to_thread(self._sync.latest, last, name=name)

    async def follow(self, *, after: str | None = None, name: str | None = None) -> AsyncIterator[Event]:
        """Yield events as they come, for ever; those behind the id `after` first."""
        events = self._sync.follow(after=after, name=name)
        while True:
            yield await asyncio.to_thread(_next, events)


class TheLoop:
    """One the-loop."""

    def __init__(self, loop: sync.TheLoop) -> None:
        self._sync = loop
        self.standing = Standing(loop.standing)
        self.loops = LoopsOf(loop.loops)
        self.requests = Requests(loop.requests)
        self.events = Events(loop.events)

    async def status(self) -> Status:
        """Return whether everything is up."""
        return await asyncio.to_thread(self._sync.status)

    async def post(self, name: str, text: str) -> Posted:
        """Post into a session's thread. Raises UnknownSession, Refused."""
        return await asyncio.to_thread(self._sync.post, name, text)

    async def ask(self, name: str, question: str, options: Sequence[str] = (), *, wait: float | None = None) -> Reply:
        """Ask the people of a session's thread, and wait for the answer. Raises NoAnswer, Refused."""
        return await asyncio.to_thread(self._sync.ask, name, question, options, wait=wait)

    async def close(self) -> None:
        """Let go of what is held; sessions live on."""
        return await asyncio.to_thread(self._sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _next(events: Iterator[Event]) -> Event:
    return next(events)
