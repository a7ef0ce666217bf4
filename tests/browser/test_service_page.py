"""The service's page in a real browser, over a real service and a real agent: what a person sees and does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.browser.cdp import Tab, browser_tab
from tests.browser.servicepage import SHELL, logged_in, new_link, open_session, served, text_of
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SHOWS = "document.querySelector('.xterm-rows')?.innerText.replaceAll('\\u00a0', ' ').includes({})"


@pytest.fixture(scope="module")
def running() -> Iterator[Product]:
    """A service for all of these tests."""
    with served() as product:
        yield product


WIDE, NARROW = (1360, 860), (390, 844)
on_both = pytest.mark.parametrize("tab", [WIDE, NARROW], ids=["wide", "narrow"], indirect=True)


@pytest_asyncio.fixture
async def tab(running: Product, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Tab]:
    """The page, logged in, in a wide window or the given one; at the end it must have complained of nothing."""
    width, height = getattr(request, "param", WIDE)
    async with logged_in(running, tmp_path / "profile", width, height) as opened:
        yield opened


async def test_without_a_link_nothing_is_shown(running: Product, tmp_path: Path) -> None:
    """Whoever has only the address sees how a link is made, and no session."""
    address = new_link(running).partition("#")[0]
    async with browser_tab(tmp_path / "profile") as stranger:
        await stranger.open(address)
        await stranger.until("!document.querySelector('#locked').hidden")

        assert await stranger.evaluate("document.querySelector('#app').hidden") is True
        assert "the-loop page" in await text_of(stranger, "#locked")
        assert NAME not in await stranger.evaluate("document.body.textContent")


async def test_a_link_logs_in_once_and_leaves_no_trace(running: Product, tmp_path: Path) -> None:
    """The address no longer holds the key; a reload stays logged in; the same link in another browser does not."""
    link = new_link(running)
    async with browser_tab(tmp_path / "first") as tab:
        await tab.open(link)
        await tab.until("!document.querySelector('#app').hidden")
        address = await tab.evaluate("location.href")
        await tab.open("about:blank")
        await tab.open(link.partition("#")[0])
        await tab.until("!document.querySelector('#app').hidden")
        cookies = await tab.evaluate("document.cookie")
    async with browser_tab(tmp_path / "second") as other:
        await other.open(link)
        await other.until("!document.querySelector('#locked').hidden")
        seen = await text_of(other, "#locked")

    assert "login" not in address
    assert cookies == ""
    assert "does not log in" in seen


@on_both
async def test_a_message_is_said_and_answered(tab: Tab) -> None:
    """Enter sends; the message and the agent's answer appear by themselves."""
    await open_session(tab)
    await tab.until("document.querySelectorAll('.talk .entry').length > 0")
    said = await tab.evaluate("document.querySelector('.talk').innerText.split('You said (3 words)').length")
    await tab.type("#say", "how are you?")
    await tab.press("Enter")

    await tab.until(f"document.querySelector('.talk').innerText.split('You said (3 words)').length > {said}")

    thread = await tab.until("document.querySelector('.about a')?.href")
    assert "/archives/" in thread
    assert "how are you?" in await text_of(tab, ".talk")
    assert await tab.evaluate("document.querySelector('#say').value") == ""


@on_both
async def test_a_permission_is_given_on_the_page(running: Product, tab: Tab) -> None:
    """It stands above the list and above the message box; a press allows it, and the turn goes on."""
    await open_session(tab)
    await tab.type("#say", "ask permission")
    await tab.press("Enter")
    await tab.until("!!document.querySelector('.request .button.primary')")
    asked = await text_of(tab, ".request")
    needs = await tab.until("document.querySelector('#needs').innerText")

    await tab.press("Escape")
    await tab.press("a")
    focused = await tab.evaluate("document.activeElement.innerText")
    await tab.press("Enter")
    await tab.until("!document.querySelector('.request')")

    assert "Allow Bash?" in asked
    assert "date" in asked
    assert NAME in needs
    assert focused == "Allow"
    answered = running.wait_event("standing.answered")[-1]
    assert answered["name"] == NAME


@on_both
async def test_hostile_text_stays_text(running: Product, tab: Tab) -> None:
    """Markup in messages, in answers and on the screen is shown, never run; a terminal's controls do nothing here."""
    await open_session(tab)
    await tab.type("#say", f"{HOSTILE} [click](javascript:alert(1))")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.talk .entry').length > 1")
    await tab.until("document.querySelector('.talk').innerText.split('onerror').length > 2")
    links = await tab.evaluate("[...document.querySelectorAll('.talk a')].map(one => one.href)")

    await open_session(tab, SHELL, "screen")
    await tab.until(SHOWS.format(json.dumps("$")))
    controls = "\\033]0;owned\\007\\033]8;;https://evil.example\\007link\\033]8;;\\007\\033[31mred\\033[0m"
    command = f"printf '{controls} <img src=x onerror=alert(1)>\\n'"
    running.tmux("send-keys", "-t", f"=loop-standing-{SHELL}:", "-l", command)
    running.tmux("send-keys", "-t", f"=loop-standing-{SHELL}:", "Enter")
    await tab.until(SHOWS.format(json.dumps("linkred <img src=x onerror=alert(1)>")))

    assert links == []
    assert await tab.evaluate("document.querySelectorAll('main img, main script, .xterm a').length") == 0
    assert "owned" not in await tab.evaluate("document.title")


async def test_a_screen_is_live_and_takes_keys_only_when_asked(running: Product, tab: Tab) -> None:
    """It follows the terminal; keys do nothing until typing is switched on, and the pane keeps its size."""
    size = running.tmux("display-message", "-p", "-t", f"=loop-standing-{SHELL}:", "#{pane_width}x#{pane_height}")
    await open_session(tab, SHELL, "screen")
    await tab.until(SHOWS.format(json.dumps("$")))
    await tab.click(".xterm-screen")
    for letter in "echo":
        await tab.press(letter)
    await tab.resize(700, 600)
    await tab.resize(1360, 860)

    await tab.click(".screen-bar > .button")
    for letter in "expr 40 + 2":
        await tab.press(letter)
    await tab.press("Enter")
    await tab.until(SHOWS.format(json.dumps("\n42\n")))
    await tab.press("Escape", shift=True)
    pressed = await tab.evaluate("document.querySelector('.screen-bar > .button').ariaPressed")

    assert "echoecho" not in running.screen(SHELL)
    assert pressed == "false"
    assert running.wait_event("page.typed")[0]["name"] == SHELL
    after = running.tmux("display-message", "-p", "-t", f"=loop-standing-{SHELL}:", "#{pane_width}x#{pane_height}")
    assert after == size


async def test_keys_go_through_the_page(tab: Tab) -> None:
    """The list, a session, its tabs, the filter and the help are reached without a mouse."""
    await tab.press("j")
    await tab.press("Enter")
    await tab.until(f"document.querySelector('.head h1')?.innerText === {json.dumps(SHELL)}")
    await tab.press("5")
    await tab.until("!!document.querySelector('.events')")
    await tab.press("?")
    helped = await tab.until("document.querySelector('#dialog').open")
    await tab.press("Escape")
    await tab.press("Escape")
    await tab.until("!!document.querySelector('.main > .empty')")
    await tab.press("/")
    await tab.call("Input.insertText", text=NAME[:3])
    rows = await tab.until(
        "document.querySelectorAll('.row:not([hidden])').length === 1"
        " && document.querySelector('.row:not([hidden])').innerText"
    )

    assert helped is True
    assert NAME in rows


async def test_events_are_searched(tab: Tab) -> None:
    """Every word must be there; what happens meanwhile is added."""
    await tab.press("e")
    await tab.until("document.querySelectorAll('.event').length > 3")
    await tab.type(".tools input", "standing.started scribe")
    found = await tab.until(
        "document.querySelectorAll('.event').length === 1 && document.querySelector('.event').innerText"
    )

    assert "standing.started" in found


async def test_stop_asks_first_and_start_brings_it_back(running: Product, tab: Tab) -> None:
    """A cancelled question changes nothing; a confirmed one does, and the page shows it."""
    await open_session(tab, SHELL)
    await tab.press("x")
    await tab.until("document.querySelector('#dialog').open")
    await tab.press("Escape")
    await tab.until("!document.querySelector('#dialog').open")
    still = SHELL in running.panes()
    await tab.press("x")
    await tab.until("document.querySelector('#dialog').open")
    await tab.click("#dialog .button.danger")
    await tab.until("document.querySelector('.chip').innerText === 'stopped'")
    wait_until(lambda: SHELL not in running.panes(), "it is stopped")
    await tab.press("x")
    await tab.until("document.querySelector('.chip').innerText === 'running'")

    assert still


async def test_a_phone_shows_one_thing_at_a_time(running: Product, tmp_path: Path) -> None:
    """The list, then the session with a way back; nothing is wider than the screen."""
    async with logged_in(running, tmp_path / "profile", 390, 844) as tab:
        listed = await tab.evaluate("getComputedStyle(document.querySelector('.main')).display")
        await tab.click(f"[data-key={NAME}] a")
        await tab.until("getComputedStyle(document.querySelector('.rail')).display === 'none'")
        wide = await tab.evaluate("document.documentElement.scrollWidth")
        await tab.click(".back")
        await tab.until("getComputedStyle(document.querySelector('.rail')).display !== 'none'")

    assert listed == "none"
    assert wide <= 390


async def test_logging_out_ends_the_login(running: Product, tab: Tab) -> None:
    """The page locks itself; what the browser still has opens nothing."""
    await tab.evaluate("location.hash = '#/service'")
    kept = await tab.evaluate("localStorage.getItem('the-loop-key')")
    await tab.click(".actions .button")
    await tab.until("!document.querySelector('#locked').hidden")
    headers = json.dumps({"X-The-Loop-Key": kept})
    status = await tab.evaluate(f"fetch('/api/v1/standing-sessions', {{headers: {headers}}}).then(one => one.status)")
    tab.complaints.clear()  # the browser tells of every 401

    assert status == 401
