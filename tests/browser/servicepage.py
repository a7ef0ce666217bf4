"""The service's page in a browser: a product that serves it, and a tab that is logged in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from embedded.workspace.thread import WorkspaceThread
from tests.browser.cdp import Tab, browser_tab
from tests.support.product import NAME, Product, product

SHELL = "a-shell"


@contextmanager
def served() -> Iterator[Product]:
    """Give a product whose session `scribe` is up, with a thread, and a second one that runs a plain shell."""
    with WorkspaceThread() as workspace, product(workspace) as running:
        sessions = running.document()["standingSessions"]["sessions"]
        shell = {"name": SHELL, "harness": "shell", "description": "A plain shell, for whatever is needed."}
        running.configure(
            harnesses={"shell": {"start": ["/usr/bin/env", "PS1=$ ", "/bin/sh"]}},
            standingSessions={"enabled": True, "sessions": [*sessions, shell]},
        )
        running.serve().wait_swept()
        yield running


def new_link(running: Product) -> str:
    """Return a link to the page, as the command prints it."""
    url: str = running.cli("page", "--json").json["url"]
    return url


@asynccontextmanager
async def logged_in(running: Product, profile: Path, width: int = 1360, height: int = 860) -> AsyncIterator[Tab]:
    """Give a tab that came by a link and shows the list; at the end it must have complained of nothing."""
    async with browser_tab(profile) as tab:
        await tab.resize(width, height)
        await tab.open(new_link(running))
        await tab.until("!document.querySelector('#app').hidden")
        await tab.until(f"!!document.querySelector('[data-key={json.dumps(NAME)}]')")
        yield tab
        assert tab.complaints == []


async def open_session(tab: Tab, name: str = NAME, part: str = "") -> None:
    """Go to a session of the page, and to a tab of it."""
    await tab.evaluate(f"location.hash = {json.dumps(f'#/s/{name}' + (f'/{part}' if part else ''))}")
    await tab.until(f"document.querySelector('.head h1')?.textContent === {json.dumps(name)}")


async def text_of(tab: Tab, selector: str) -> Any:
    """Return what an element shows, "" where there is none."""
    return await tab.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
