"""Files on their way in: an address was given out, the bytes come, and a call shares them."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web


@dataclass
class Upload:
    """One file: what was announced of it, and its bytes once they came."""

    file_id: str
    name: str
    length: int
    app: str
    content: bytes = b""


class Uploads:
    """The files that are expected, by ticket. A restart forgets them, as their addresses end after a while."""

    def __init__(self) -> None:
        self._expected: dict[str, Upload] = {}

    def expect(self, ticket: str, file_id: str, name: str, length: int, app: str) -> None:
        """Give out an address."""
        self._expected[ticket] = Upload(file_id, name, length, app)

    def take(self, file_id: str, app: str) -> Upload | None:
        """Return an upload of this app whose bytes are complete, once."""
        for ticket, upload in self._expected.items():
            if (upload.file_id, upload.app) == (file_id, app) and upload.content:
                del self._expected[ticket]
                return upload
        return None

    async def handle(self, request: web.Request) -> web.Response:
        """Take the bytes; whoever has the address may send them, and only as many as were announced."""
        upload = self._expected.get(request.match_info["ticket"])
        if upload is None:
            return web.Response(status=404, text="no such upload")
        content = await request.read()
        if len(content) != upload.length:
            return web.Response(status=400, text="the length is not the one that was announced")
        upload.content = content
        return web.Response(text=f"OK - {len(content)}")
