"""Answer permission requests by a rule: reading is allowed, all else is left to people.

    python examples/allow_reads.py http://127.0.0.1:4114        with THE_LOOP_API_TOKEN

Whoever answers first decides, so people can still answer in the thread.
"""

import asyncio
import sys

import the_loop

READS = frozenset({"Read", "Glob", "Grep"})
SECONDS = 1.0  #: between two looks


async def look(loop: "the_loop.AsyncTheLoop") -> None:
    """Allow what reads, and waits now. Nothing that is hidden or shortened is allowed unseen."""
    for request in await loop.requests.list():
        if request.kind == "permission" and request.tool in READS and request.waits and not request.unseen:
            try:
                await loop.requests.allow(request.id)
            except the_loop.Refused as error:
                print(f"{request.name}: {error.message}")
            else:
                print(f"{request.name}: {request.tool} allowed: {request.detail}")


async def main(url: str, looks: str = "") -> None:
    """Look again and again, or so many times."""
    left = int(looks) if looks else -1
    async with the_loop.connect_async(url=url) as loop:
        while left:
            await look(loop)
            left -= 1
            await asyncio.sleep(SECONDS if left else 0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
