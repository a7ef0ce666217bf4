"""Reading without a connection: the bound threads are swept again and again."""

import asyncio
import logging

from bot.backfill import Incomplete, Looked
from bot.reading import Reading, pause, unless
from core.errors import ChannelError

log = logging.getLogger(__name__)


class Poller:
    """Sweeps every `interval` seconds. Needs no app-level token; slash commands and buttons do not reach it."""

    def __init__(self, reading: Reading, interval: float) -> None:
        self._reading = reading
        self._interval = interval

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until `stop`; return early, the reason told, where waiting cannot help."""
        failures = 0
        while not stop.is_set():
            try:
                looked = await unless(stop, self._round())
                failures = 0 if looked is None or looked.read or not looked.unread else failures + 1
                if looked is not None:
                    await self._tell(looked, failures)
            except ChannelError as problem:
                failures += 1
                await self._reading.standing.fail(problem, failures)
                if not problem.transient:
                    log.error("Slack is not polled any more", extra={"reason": str(problem)})
                    return
            except Incomplete as problem:
                failures += 1
                await self._reading.standing.fail(ChannelError(str(problem), transient=True), failures)
            await pause(stop, self._interval)
        await self._reading.standing.tell(False, "stopped")

    async def _round(self) -> Looked:
        await self._reading.identify()
        return await self._reading.sweeper.look()

    async def _tell(self, looked: Looked, failures: int) -> None:
        """Tell how polling stands: where no thread can be read nothing comes in, whatever the token says."""
        if failures:
            problem = ChannelError(f"no thread can be read: {looked.reason}", transient=True)
            await self._reading.standing.fail(problem, failures)
            return
        known = self._reading.own.identity
        who = f" as {known.name} in {known.team}" if known else ""
        detail = f"polling every {self._interval:g} s{who}; slash commands do not arrive"
        if looked.unread:
            every = looked.read + looked.unread
            detail += f"; {looked.unread} of {every} threads cannot be read: {looked.reason}"
            log.info("some threads cannot be read", extra={"reason": looked.reason})
        await self._reading.standing.tell(True, detail)
