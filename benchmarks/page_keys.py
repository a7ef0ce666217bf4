"""The service's page with 500 sessions: from a key until the page shows what it did. The bound is 100 ms.

The service is real, and its sessions are declared; none of them runs. A headless Chromium measures itself: from the
event of the key until the frame after the one that it changed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Ratio, report
from benchmarks.stage import script, stage, wait_for
from tests.browser.cdp import Tab, browser_tab

SESSIONS = 500
BOUND_MILLISECONDS = 100.0
ROUNDS = 15
#: What is pressed, and what the page shows by then.
KEYS = (
    ("j", "document.activeElement.closest('.row') !== null"),
    ("Enter", "document.querySelector('.head h1') !== null"),
    ("6", "document.querySelector('.facts') !== null"),
    ("1", "document.querySelector('.composer') !== null"),
    ("/", "document.activeElement.id === 'filter'"),
    ("4", "document.querySelector('#sessions-title').textContent.includes(' of ')"),
)
_WATCH = """
window.took = [];
window.addEventListener("keydown", (event) => {
  const at = event.timeStamp;
  requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - at)));
}, {capture: true});
"""


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the 95th percentile of all keys to the bound."""
    with stage() as here, tempfile.TemporaryDirectory(prefix="lb-browser-") as profile:
        sessions = [{"name": f"session-{number:03}", "description": "one of many"} for number in range(SESSIONS)]
        here.configure({"service": {"port": 0}, "standingSessions": {"sessions": sessions}})
        service = subprocess.Popen(
            [script("the-loop"), "serve"], env=here.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            command = [script("the-loop"), "page", "--json"]

            def link() -> str | None:
                done = subprocess.run(command, env=here.environ, capture_output=True, timeout=30, check=False)
                url: str | None = json.loads(done.stdout)["url"] if done.returncode == 0 else None
                return url

            took = asyncio.run(_measured(wait_for(link, "the service serves its page"), Path(profile)))
        finally:
            service.terminate()
            service.wait(20)
        what = f"a key on the page with {SESSIONS} sessions"
        yield Ratio(what, "a tenth of a second", "ms", tuple(took), (BOUND_MILLISECONDS,) * len(took), 1.0, 95)


async def _measured(link: str, profile: Path) -> list[float]:
    async with browser_tab(profile) as tab:
        await tab.resize(1280, 800)
        await tab.open(link)
        await tab.until(f"document.querySelectorAll('.row').length === {SESSIONS}")
        await tab.evaluate(_WATCH)
        for _ in range(ROUNDS):
            await _round(tab)
        took: list[float] = await tab.evaluate("window.took")
        return took


async def _round(tab: Tab) -> None:
    """Press each key once, and wait for what it does; then clear the filter, and let the page look again."""
    for key, shown in KEYS:
        before = await tab.evaluate("window.took.length")
        await tab.press(key)
        await tab.until(f"window.took.length > {before} && ({shown})")
    await tab.evaluate("document.querySelector('#filter').value = ''")
    await tab.evaluate(
        "document.querySelector('#filter').dispatchEvent(new Event('input')); document.activeElement.blur()"
    )
    await tab.until("!document.querySelector('#sessions-title').textContent.includes(' of ')")


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
