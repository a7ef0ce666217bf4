"""The one place where the event loop and core meet: calls into core run in threads."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from bot.payloads import KIND
from bot.views import Clean
from core.model.channel import (
    BoundThread,
    CoreApi,
    IncomingChange,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    PrivateAnswer,
    Swept,
    Verdict,
)
from core.model.message import Fetch, Fetched

log = logging.getLogger(__name__)

Drawn = TypeVar("Drawn")
_HEAD_START_SECONDS = 0.02  # is no wait for whoever wrote: Slack gives three seconds
_ASKING = 2  # threads for each kind of question
_TAKING = 8  # of replies, each of which may go on into a terminal after it was answered
_KEEPING = 2  # threads that wait for the disk alone


class AsyncDoor:
    """Core's door, awaited. What takes replies in has threads of its own: nothing else keeps one waiting.

    What may ask tmux for long has others, and all else shares the loop's own.
    """

    def __init__(self, door: CoreApi, named: Callable[[str], str] = str) -> None:
        """`named` puts names for ids of people; it may wait."""
        self._door = door
        self._named = named
        self._taking = ThreadPoolExecutor(_TAKING, "taking")
        self._keeping = ThreadPoolExecutor(_KEEPING, "keeping")
        self._asking = ThreadPoolExecutor(_ASKING, "asking")
        self._pressing = ThreadPoolExecutor(_ASKING, "pressing")
        self._ordering = ThreadPoolExecutor(_ASKING, "ordering")

    def close(self) -> None:
        """Return once all that was asked is answered."""
        for threads in (self._taking, self._keeping, self._asking, self._pressing, self._ordering):
            threads.shutdown()

    async def receive(self, replies: Sequence[IncomingReply]) -> tuple[Verdict | None, ...]:
        """Hand replies over; once this returns they are on the disk, but for those that have to come again (None).

        Raises StoreBroken.

        Core's thread has a head start on its way into the terminal, for both need the interpreter; where that way takes
        longer, nobody waits for more than the disk.
        """
        taken: list[tuple[Verdict | None, ...]] = []
        work = asyncio.get_running_loop().run_in_executor(self._taking, self._door.receive, replies, taken.append)
        while True:
            await asyncio.wait((work,), timeout=_HEAD_START_SECONDS)
            if work.done():
                await work
                return taken[0]
            if taken:
                work.add_done_callback(_tell)
                await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.sync)
                return taken[0]

    def heard(self, mark: str, until: datetime, *, durable: bool) -> bool:
        """Take note of a request; see CoreDoor. Asked in a thread that may wait. Raises StoreBroken."""
        return self._door.heard(KIND, mark, until, durable=durable)

    def unheard(self, mark: str) -> None:
        """Let a request that was not taken come again; asked in a thread that may wait. Raises StoreBroken."""
        self._door.unheard(KIND, mark)

    async def change(self, changes: Sequence[IncomingChange]) -> None:
        """Hand edits and deletions over. Raises StoreBroken."""
        await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.change, changes)

    async def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the bound threads. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.threads, channel_kind, team)

    async def behind(self, channel_kind: str) -> None:
        """Let what comes from now on wait for the next sweep of its thread."""
        await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.behind, channel_kind)

    async def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Note that a thread was read to its end. Raises StoreBroken."""
        await asyncio.to_thread(self._door.swept, channel_kind, team, swept)

    async def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages that wait for their files. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.to_fetch, channel_kind)

    async def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Keep a file and return its path. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.keep_file, message_id, position, name, data)

    async def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Let a message with files go on. Raises StoreBroken."""
        await asyncio.to_thread(self._door.fetched, message_id, files)

    async def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list` that the author may see. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._door.rows, author)

    async def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what a button is for. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._pressing, self._door.press, press)

    async def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Do what a command says. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._ordering, self._door.order, order)

    async def refuse(self, author: str, what: str, *, name: str = "", press: IncomingPress | None = None) -> None:
        """Report a person without the right, with the verb or the button's action."""
        await asyncio.to_thread(self._door.refuse, KIND, author, what, name=name, press=press)

    async def shown(self, draft: Callable[[Clean], Drawn]) -> Drawn:
        """Return what a draft becomes with people's names in its texts, once core has taken the secrets out of them."""

        def clean(text: str, *, verbatim: bool = False) -> str:
            return self._door.shown(text if verbatim else self._named(text), verbatim=verbatim)

        return await asyncio.to_thread(draft, clean)

    async def connected(self, kind: str, up: bool, detail: str) -> None:
        """Report the state of the connection to the service."""
        await asyncio.to_thread(self._door.connected, kind, up, detail)


def _tell(work: "asyncio.Future[None]") -> None:
    """Log that a delivery failed whose reply is on the disk, and was answered: the delivery thread goes on with it."""
    error = None if work.cancelled() else work.exception()
    if error is not None:
        log.warning("a reply is not delivered at once", extra={"reason": str(error)})
