"""A headless Chromium driven over its DevTools protocol: as little as the page's tests need."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

SECONDS = 20.0
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-default-apps", "--disable-extensions", "--metrics-recording-only", "--remote-debugging-port=0",
)  # fmt: skip
_LISTENING = re.compile(r"DevTools listening on (ws://\S+)")


def chromium_path() -> str:
    """Return the browser to run: $CHROMIUM, or the first that is installed; FileNotFoundError otherwise."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError("no Chromium found; install the package chromium, or name it in $CHROMIUM")
    return found


class Tab:
    """One page. Errors and console messages of the page are kept in `complaints`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session_id: str) -> None:
        self._socket = socket
        self._session_id = session_id
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a protocol method and return its result."""
        self._number += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = answer
        message = {"id": self._number, "method": method, "params": params, "sessionId": self._session_id}
        await self._socket.send_json(message)
        return await asyncio.wait_for(answer, SECONDS)

    async def open(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Return the expression's value (plain data, no node) once it is true; TimeoutError when it takes too long."""
        async with asyncio.timeout(SECONDS):
            while True:
                value = await self.evaluate(expression)
                if value:
                    return value
                await asyncio.sleep(0.05)

    async def press(self, key: str, shift: bool = False) -> None:
        """Press a key: Enter, Escape, Tab, ArrowDown, or one that writes a character."""
        named = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}
        code = named[key] if key in named else ord(key.upper())
        text = {"text": "\r"} if key == "Enter" else {"text": key} if key not in named else {}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def type(self, selector: str, text: str) -> None:
        """Focus an element and type a text into it."""
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.call("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        """Click an element where a mouse would: it goes there first, and nothing else may lie over it then."""
        node = f"document.querySelector({json.dumps(selector)})"
        place = await self.until(
            f"(() => {{ const node = {node}; if (!node) return null; node.scrollIntoView({{block: 'center'}});"
            " const box = node.getBoundingClientRect();"
            " return box.width ? [box.x + box.width / 2, box.y + box.height / 2] : null; })()"
        )
        x, y = place
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        await self.until(f"{node}.contains(document.elementFromPoint({x}, {y}))")
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def scheme(self, name: str) -> None:
        """Prefer `dark` or `light`."""
        feature = {"name": "prefers-color-scheme", "value": name}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def screenshot(self, path: Path) -> None:
        """Write what is to be seen to a PNG file."""
        answer = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def hear(self, message: dict[str, Any]) -> None:
        """Take a message of the browser: an answer, or something the page complains of."""
        waiting = self._answers.pop(message.get("id", 0), None)
        if waiting is not None and not waiting.done():
            if "error" in message:
                waiting.set_exception(AssertionError(message["error"]["message"]))
            else:
                waiting.set_result(message["result"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.complaints.append(str(message["params"]["entry"]["text"]))


@asynccontextmanager
async def browser_tab(profile: Path) -> AsyncIterator[Tab]:
    """Run a browser with a fresh profile and give one tab of it."""
    flags = [*_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    environment = {**os.environ, "HOME": str(profile), "TZ": "UTC", "LANG": "en_GB.UTF-8"}
    process = subprocess.Popen(
        [chromium_path(), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        address = await asyncio.wait_for(asyncio.to_thread(_address, process), SECONDS)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            tab = await _attach(socket)
            reader = asyncio.create_task(_read(socket, tab))
            try:
                for domain in ("Page", "Runtime", "Log"):
                    await tab.call(f"{domain}.enable")
                yield tab
            finally:
                reader.cancel()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
        if process.stderr is not None:
            process.stderr.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    seen = ""
    for line in process.stderr or ():
        seen += line.decode(errors="replace")
        found = _LISTENING.search(seen)
        if found:
            return found[1]
    raise AssertionError(f"Chromium ended with {process.wait()}: {seen}")


async def _attach(socket: aiohttp.ClientWebSocketResponse) -> Tab:
    await socket.send_json({"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}})
    target = (await _answer(socket, 1))["targetId"]
    attach = {"targetId": target, "flatten": True}
    await socket.send_json({"id": 2, "method": "Target.attachToTarget", "params": attach})
    return Tab(socket, (await _answer(socket, 2))["sessionId"])


async def _answer(socket: aiohttp.ClientWebSocketResponse, number: int) -> dict[str, Any]:
    while True:
        message = await socket.receive_json(timeout=SECONDS)
        if message.get("id") == number:
            return dict(message["result"])


async def _read(socket: aiohttp.ClientWebSocketResponse, tab: Tab) -> None:
    async for message in socket:
        tab.hear(json.loads(message.data))
