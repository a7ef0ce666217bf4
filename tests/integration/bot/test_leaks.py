"""Every way out to Slack, walked with a secret in every text: none of them lets it through."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from bot.app import respond
from bot.channel import SlackChannel
from bot.intake import AsyncDoor
from bot.views import help_view, list_view, loops_view, plain_view, status_view, told_view
from core.base.errors import ChannelError
from core.base.redaction import Redactor
from core.commandtable import COMMANDS
from core.model.asking import Button, Press
from core.model.channel import PrivateAnswer
from core.model.posts import OutboundKind
from tests.integration.bot.served import SECRET, Door, post_of

LOOK = f"ghp_{'Ab3' * 12}"
COLOURED = f"\x1b[36m{LOOK}\x1b[0m, password=\x1b[33mhunter22xyz\x1b[0m, {SECRET[:9]}\x1b[1m{SECRET[9:]}"
TEXT = f"the key is {SECRET}, or {LOOK}, {COLOURED}"
ROOT = Path(__file__).parents[3]
#: What carries a text out, by the names of slack_sdk's methods and of the standard library's.
WAYS_OUT = {"send", "open", "urlopen", "assistant_threads_setStatus"}
METHODS = ("chat_", "views_", "files_upload", "files_complete", "files_get")
DOORS = {"bot/messenger.py", "bot/app.py", "bot/creating.py", "bot/home.py"}


class Sink:
    """A Slack that takes everything and keeps the bytes of every request: its path and its body."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                sink.taken += [self.path.encode(), body]
                answer = json.dumps(sink.answer()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST

            def log_message(self, format: str, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def answer(self) -> dict[str, object]:
        """Return what satisfies every caller."""
        own = {"user_id": "UB", "user": "the-loop", "bot_id": "BB", "team_id": "T1"}
        return {"ok": True, **own, "channel": "C1", "ts": "1.1", "upload_url": f"{self.url}/up", "file_id": "F1"}

    def leaked(self) -> list[str]:
        """Return what left with a secret in it, however it was written."""
        found = []
        for raw in self.taken:
            forms = [raw.decode("utf-8", "replace"), raw.decode("utf-16-le", "replace"), raw.decode("latin-1")]
            forms += [unquote_plus(forms[0]), forms[0].encode().decode("unicode_escape", "replace")]
            forms = [re.sub("\x1b\\[[0-9;]*m", "", form) for form in forms]
            found += [form for form in forms if SECRET in form or LOOK in form or "hunter2" in form]
        return found

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    """Give a Slack that only listens."""
    running = Sink()
    yield running
    running.close()


@pytest.fixture
def channel(sink: Sink) -> SlackChannel:
    """Give a channel on it; what is secret, core tells it."""
    block = {"enabled": True, "apiUrl": f"{sink.url}/api/", "channel": "C0000000001", "operators": ["U0000000001"]}
    made = SlackChannel(block, {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-of-the-bot"})
    made.redact_with(Redactor([SECRET]))
    return made


@pytest.mark.parametrize("kind", OutboundKind)
def test_no_post_of_any_kind_lets_a_secret_through(
    sink: Sink, channel: SlackChannel, kind: OutboundKind, tmp_path: Path
) -> None:
    """Text, edit, buttons, file, its name and its title."""
    buttons = tuple(Button(press, "q-1", f"1. {TEXT}") for press in Press)
    post = replace(post_of(TEXT, kind=kind), buttons=buttons)
    named = tmp_path / f"{SECRET}.txt"
    named.write_text(TEXT)

    channel.post(post, "C1", "1.0")
    channel.post(replace(post, buttons=()), "C1", "1.0")
    channel.post(replace(post, path=str(named)), "C1", "1.0")
    channel.update(post, "C1", "1.1")
    for part in channel.parts(replace(post, text=f"{TEXT}\n\n" * 3_000)):
        channel.post(part, "C1", "1.0")

    assert sink.leaked() == []
    assert any(b"redacted" in raw for raw in sink.taken)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "latin-1"])
def test_no_text_file_lets_a_secret_through(sink: Sink, channel: SlackChannel, encoding: str, tmp_path: Path) -> None:
    """Whatever its encoding is."""
    file = tmp_path / "notes.txt"
    file.write_bytes(f"für später: {TEXT}. {'mehr ' * 40}".encode(encoding))

    channel.post(replace(post_of("notes", kind=OutboundKind.ATTACHMENT), path=str(file)), "C1", "1.0")

    assert sink.leaked() == []
    assert any("für später: the key is [redacted]".encode(encoding)[2:] in raw for raw in sink.taken)


def test_a_binary_with_a_secret_is_refused_with_the_reason(sink: Sink, channel: SlackChannel, tmp_path: Path) -> None:
    """Nothing of it is sent, and it is not tried again."""
    file = tmp_path / f"{SECRET}.bin"
    file.write_bytes(b"\x7fELF\x02\x01\x01\x00\x03" + SECRET.encode() + b"\x00\x02\xfe\xff")

    with pytest.raises(ChannelError, match="contains a secret") as caught:
        channel.post(replace(post_of("x", kind=OutboundKind.ATTACHMENT), path=str(file)), "C1", "1.0")

    assert not caught.value.transient
    assert SECRET not in str(caught.value)
    assert [raw for raw in sink.taken if b"getUploadURL" in raw or b"/up" in raw] == []


def test_the_status_lets_no_secret_through(sink: Sink, channel: SlackChannel) -> None:
    """It is fixed words today; the door is the same."""
    channel.status("C1", "1.0", TEXT)

    assert sink.leaked() == []
    assert any(b"redacted" in raw for raw in sink.taken)


def test_no_answer_to_one_person_lets_a_secret_through(sink: Sink) -> None:
    """Words of core, errors, screens, rows, and what the person typed."""
    row = {"name": "scribe", "running": True, "loops": 1, **dict.fromkeys(("activity", "cwd", "detail"), SECRET)}
    drafts = (
        plain_view(SECRET),
        told_view(PrivateAnswer(SECRET, SECRET)),
        help_view(SECRET, COMMANDS),
        status_view([row]),
        list_view([row]),
        loops_view([{**row, "name": SECRET}]),
    )

    async def answer() -> None:
        for draft in drafts:
            await respond(AsyncDoor(Door()), f"{sink.url}/respond", draft)

    asyncio.run(answer())

    assert sink.leaked() == []
    assert sum(raw == b"/respond" for raw in sink.taken) == len(drafts)


def test_nothing_else_in_the_bot_sends_anything() -> None:
    """Whoever adds a way out finds this test, and takes one of the doors."""
    found: set[str] = set()
    for path in sorted((ROOT / "bot").rglob("*.py")):
        if "workspace" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if called in WAYS_OUT or called.startswith(
                ("chat_", "files_upload", "files_complete", "files_get", "views_")
            ):
                found.add(str(path.relative_to(ROOT)))

    assert found == DOORS | {"bot/connection.py"}  # which opens a lock file
