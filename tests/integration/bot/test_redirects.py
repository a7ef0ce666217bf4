"""Files whose download is answered by a redirect: the token follows it to no other host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from bot.app import Self
from bot.clients import Tokens, async_web_client
from bot.files import FilePace, Files
from bot.intake import AsyncDoor
from bot.settings import SlackSettings
from core.model.channel import IncomingReply
from core.model.message import Attachment, Fetched
from tests.integration.bot.served import Door
from tests.support.elsewhere import somewhere_else

TOKEN = "xoxb-1-2-abcdef"


class Slack(ThreadingHTTPServer):
    """Answers each path by a redirect to where `leads` says, and a path that is not there with its own name."""

    def __init__(self, leads: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.leads = leads
        self.asked: list[str] = []

    def at(self, path: str) -> str:
        """Return the address of a path."""
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Slack

    def do_GET(self) -> None:
        """Redirect, or answer whoever has the token."""
        self.server.asked.append(self.path)
        to = self.server.leads.get(self.path)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.send_response(302 if to is not None else 200 if known else 403)
        if to is not None:
            self.send_header("Location", to)
        if self.path.endswith(".html"):
            self.send_header("Content-Type", "text/html")
        self.end_headers()
        if to is None:
            self.wfile.write(self.path.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def slack(leads: dict[str, str]) -> Iterator[Slack]:
    """Serve while the block runs."""
    server = Slack(leads)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def download(server: Slack, url: str = "", kind: str = "text/plain") -> tuple[Fetched, Door]:
    """Fetch the file at `/file`, or at another address, and return what became of it."""
    door = Door()
    file = Attachment("F1", "notes.txt", kind, 0, url or server.at("/file"), "")
    door.batches.append([a_reply_with(file)])
    settings = SlackSettings.of({"enabled": True, "apiUrl": server.at("/api/")})
    tokens = Tokens(settings, {"THE_LOOP_SLACK_BOT_TOKEN": TOKEN})

    async def run() -> None:
        await Files(settings, tokens, async_web_client(settings), Self(), AsyncDoor(door), FilePace(1)).drain()

    asyncio.run(run())
    [told] = door.told.values()
    return told[0], door


def a_reply_with(file: Attachment) -> IncomingReply:
    """Return a reply that came with a file."""
    return IncomingReply(
        channel_kind="slack", team="T1", channel="C1", thread="1.000001", ts="2.000001", author="U1",
        author_name="alice", author_team="T1", is_bot=False, is_self=False, shape="file_share", text="",
        files=(file,), shared=False,
    )  # fmt: skip


def test_a_redirect_to_another_host_is_not_followed() -> None:
    """Nothing is asked there, with the token or without."""
    with somewhere_else() as other, slack({"/file": other.url}) as server:
        told, door = download(server)

    assert "where the token must not go" in told.problem
    assert other.seen == []
    assert door.kept == {}


def test_a_redirect_within_slack_is_followed() -> None:
    """A relative address, too; the bytes are those of the last answer."""
    with slack({"/file": "/moved", "/moved": "here"}) as server:
        told, door = download(server)

    assert told.problem == ""
    assert list(door.kept.values()) == [b"/here"]


def test_a_canvas_is_fetched_as_the_page_that_it_is() -> None:
    """Slack sends it as HTML; a sign-in page comes after a redirect, and is no canvas."""
    with slack({"/gone": "/signin.html"}) as server:
        told, door = download(server, server.at("/canvas.html"), "application/vnd.slack-docs")
        refused, _ = download(server, server.at("/gone"), "application/vnd.slack-docs")

    assert (told.problem, list(door.kept.values())) == ("", [b"/canvas.html"])
    assert "sign-in page" in refused.problem


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("/file", "redirects without an end"),
        ("", "redirects without an end"),
        ("file:///etc/passwd", "no host"),
        ("http://[broken", "must not go"),
        ("//files.slack.com/file", "files.slack.com"),
    ],
)
def test_a_redirect_that_leads_nowhere_is_said(to: str, reason: str) -> None:
    """The message goes on without that file."""
    with slack({"/file": to}) as server:
        told, _ = download(server)

    assert reason in told.problem
    assert len(server.asked) <= 4


@pytest.mark.parametrize(
    "url", ["https://[broken", "https://files.slack.com:99999999/x", "//x", "\x00", "http://\u2100.org/x"]
)
def test_an_address_that_is_none_is_said(url: str) -> None:
    """Whatever a file object calls its address, the message goes on and the channel lives."""
    with slack({}) as server:
        told, _ = download(server, url)

    assert "where the token must not go" in told.problem
    assert server.asked == []
