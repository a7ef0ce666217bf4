"""Take the picture of a thread for the README: `python -m tests.browser.picture FILE.png` (`make picture`).

It runs the demonstration in a temporary state folder, speaks with its session on the real page, and saves what a
browser shows.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.browser.cdp import Tab, browser_tab

PROGRAM = str(Path(sys.executable).parent / "the-loop")
NAME = "picture"
WIDTH, HEIGHT = 1040, 700
PATIENCE = 40.0


async def speak(tab: Tab, text: str, answer: str) -> None:
    """Reply in the open thread, and wait until it shows the answer."""
    await tab.type("#thread-input", text)
    await tab.press("Enter")
    await shown(tab, answer)


async def shown(tab: Tab, text: str) -> None:
    """Return once the thread shows the text."""
    async with asyncio.timeout(PATIENCE):
        while text not in await tab.evaluate("document.querySelector('#thread-messages').innerText"):
            await asyncio.sleep(0.1)


async def take(page: str, file: Path, profile: Path) -> None:
    """Speak with the demonstration's session, and save the page."""
    async with browser_tab(profile) as tab:
        await tab.resize(WIDTH, HEIGHT)
        await tab.open(page)
        await tab.until("!!document.querySelector('.thread-link')")
        await tab.click(".thread-link")
        await shown(tab, "Ready.")
        await speak(tab, "Good morning! What can you do?", "You said")
        await speak(tab, "ask permission", "Allow")
        await tab.until("!!document.querySelector('#thread-messages .button')")
        done = "[...document.querySelectorAll('.reaction')].some(one => one.ariaLabel.startsWith('white_check_mark'))"
        await tab.until(done)
        await tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=HEIGHT - 1)
        await tab.until("[...document.querySelectorAll('.tools')].every(one => getComputedStyle(one).opacity === '0')")
        await tab.evaluate("document.activeElement.blur()")
        await tab.screenshot(file)


def main(file: Path) -> None:
    """Run the demonstration, take the picture, and end all of it."""
    with tempfile.TemporaryDirectory(prefix="loop-", dir="/tmp") as folder:
        environ = {**os.environ, "XDG_STATE_HOME": folder, "XDG_CACHE_HOME": folder}
        demo = subprocess.Popen([PROGRAM, "demo", "--name", NAME, "--json"], stdout=subprocess.PIPE, env=environ)
        try:
            asyncio.run(take(address_of(demo)["page"], file, Path(folder) / "profile"))
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(PATIENCE)
            end(Path(folder) / "the-loop" / "demos" / NAME, environ)


def address_of(demo: subprocess.Popen[bytes]) -> Mapping[str, Any]:
    """Return what the demonstration says of itself once it is up: one JSON object over several lines."""
    assert demo.stdout is not None
    lines = []
    while (line := demo.stdout.readline()) not in (b"", b"}\n"):
        lines.append(line)
    address: Mapping[str, Any] = json.loads(b"".join([*lines, line]))
    return address


def end(folder: Path, environ: Mapping[str, str]) -> None:
    """End the session of the demonstration, and its tmux server."""
    config = folder / "cli-config.yaml"
    subprocess.run([PROGRAM, "--config", config, "stop"], env=environ, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    for socket in (folder / "state" / "local" / "tmux").glob("tmux-*/*"):
        subprocess.run(["tmux", "-S", socket, "kill-server"], timeout=PATIENCE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
