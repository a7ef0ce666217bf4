"""Take the picture of the service's page for docs/page.md: `python -m tests.browser.pagepicture FILE.png`.

With a folder in place of the file, all of the page is taken: wide and narrow, light and dark. Whoever changes how it
looks looks at these.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.browser.cdp import Tab
from tests.browser.servicepage import SHELL, logged_in, open_session, served
from tests.support.product import NAME, Product

WIDE, NARROW = (1240, 760), (390, 844)
PARTS = ("", "screen", "queue", "loops", "events", "details")


async def speak(tab: Tab, text: str, shows: str) -> None:
    """Say something to the session, and wait for what the conversation shows then."""
    await tab.type("#say", text)
    await tab.press("Enter")
    await tab.until(f"document.querySelector('.main').innerText.includes({shows!r})")


async def talk(running: Product, tab: Tab) -> None:
    """Let there be a conversation, a plan, a loop, and a request that waits."""
    running.cli(
        "loop", "create", NAME, "--instruction", "Look at the mail, and say what is urgent.", "--cron", "0 9 * * 1-5"
    )
    await open_session(tab)
    await speak(tab, "Good morning! What can you do?", "You said (6 words)")
    await speak(tab, "plan Read the notes | Write the changelog | Ask for a review", "I have worked on 3 items")
    await speak(tab, "ask permission", "Allow Bash?")
    await tab.until("document.querySelector('.talk').parentElement.scrollTop > 0")
    await tab.evaluate("document.activeElement.blur()")


async def take(running: Product, target: Path, profile: Path) -> None:
    """Take the picture, or all of them."""
    async with logged_in(running, profile, *WIDE) as tab:
        await talk(running, tab)
        if target.suffix:
            await tab.screenshot(target)
            return
        target.mkdir(parents=True, exist_ok=True)
        for scheme in ("light", "dark"):
            await tab.scheme(scheme)
            for width, height in (WIDE, NARROW):
                await tab.resize(width, height)
                await all_of(tab, f"{target}/{scheme}-{width}")


async def all_of(tab: Tab, stem: str) -> None:
    """Take each part of the page."""
    for part in PARTS:
        await open_session(tab, NAME, part)
        await shot(tab, f"{stem}-{part or 'talk'}.png")
    await open_session(tab, SHELL, "screen")
    await shot(tab, f"{stem}-shell.png")
    for place in ("", "events", "service"):
        await tab.evaluate(f"location.hash = '#/{place}'")
        await shot(tab, f"{stem}-{place or 'list'}.png")
    await tab.press("?")
    await shot(tab, f"{stem}-help.png")
    await tab.press("Escape")
    await tab.press("n")
    await tab.until("document.querySelector('#dialog').open")
    await shot(tab, f"{stem}-new.png")
    await tab.press("Escape")


async def shot(tab: Tab, path: str) -> None:
    """Take what is shown, once it is."""
    await asyncio.sleep(1.5)
    await tab.screenshot(Path(path))


def main(target: Path) -> None:
    """Run a product, take the pictures, and end all of it."""
    with tempfile.TemporaryDirectory(prefix="loop-", dir="/tmp") as profile, served() as running:
        asyncio.run(take(running, target, Path(profile)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
