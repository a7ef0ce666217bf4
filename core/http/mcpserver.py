"""Answer one request of an MCP client through the official library, which is large and imported at the first request.

Nothing is kept between requests, so clients do not notice a restart of the service.
"""

import threading
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from core.base.names import new_request_id
from core.http.answers import LONGEST
from core.model.session import SessionRecord
from core.model.tools import INSTRUCTIONS, SERVER, ToolAnswer, ToolSpec
from core.tools.toolbox import Toolbox


class Served(Response):
    """A response that takes the request's body, which was read before, and writes the answer by itself."""

    def __init__(self, record: SessionRecord, body: bytes, toolbox: Toolbox, limiter: anyio.CapacityLimiter) -> None:
        super().__init__()
        self._record = record
        self._request: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._toolbox = toolbox
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        server: Server[Any] = Server(
            SERVER, instructions=INSTRUCTIONS, on_list_tools=self._list, on_call_tool=self._call
        )
        manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=LONGEST)

        async def rest() -> Message:
            return self._request.pop() if self._request else await receive()

        async with manager.run():
            await manager.handle_request(scope, rest, send)

    async def _list(self, _: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(spec) for spec in self._toolbox.specs])

    async def _call(self, _: Any, params: CallToolRequestParams) -> CallToolResult:
        caller = _HttpCaller(self._record)
        work = partial(self._toolbox.serve, caller, params.name, params.arguments)
        try:
            await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            caller.left.set()
        answer = caller.answer
        if answer is None:
            raise RuntimeError(f"the tool {params.name!r} gave no answer")
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=dict(answer.content),
            is_error=answer.failed,
        )


class _HttpCaller:
    """A client that waits for one answer; `left` once it does not any more."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.call = new_request_id()
        self.answer: ToolAnswer | None = None
        self.left = threading.Event()

    def reply(self, answer: ToolAnswer) -> bool:
        self.answer = answer
        return not self.left.is_set()

    def gone(self) -> bool:
        return self.left.is_set()


def _tool(spec: ToolSpec) -> Tool:
    annotations = ToolAnnotations(read_only_hint=spec.reads, open_world_hint=False)
    return Tool(name=spec.name, description=spec.purpose, input_schema=spec.schema(), annotations=annotations)
