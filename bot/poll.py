"""Reading without a connection: the bound threads are swept again and again."""

import asyncio
import logging

from bot.backfill import Incomplete
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
                await unless(stop, self._round())
                failures = 0
            except ChannelError as problem:
                failures += 1
                await self._reading.standing.fail(problem, failures)
                if not problem.transient:
                    log.error("Slack is not polled any more", extra={"reason": str(problem)})
                    return
            except Incomplete as problem:
                log.info("a round is incomplete; the next one goes on", extra={"reason": str(problem)})
            await pause(stop, self._interval)
        await self._reading.standing.tell(False, "stopped")

    async def _round(self) -> None:
        await self._reading.identify()
        known = self._reading.own.identity
        who = f" as {known.name} in {known.team}" if known else ""
        await self._reading.standing.tell(
            True, f"polling every {self._interval:g} s{who}; slash commands do not arrive"
        )
        await self._reading.sweeper.sweep()
