"""Clients that go away before their request is whole: nothing was asked, so nothing is to be told."""

import json
import socket
from urllib.parse import urlsplit

import psutil
import pytest

from tests.integration.http.conftest import Web
from tests.support.product import DEBUGGABLE, NAME, Product
from tests.support.tmux import wait_until

SIGNING = {"THE_LOOP_SLACK_SIGNING_SECRET": "8f742231b10e8888abcd99yyyzzz85a5"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


def agents_headers(product: Product) -> dict[str, str]:
    """Return the headers of the session's agent."""
    token = product.paths.agent_token(product.record(NAME)["uid"]).read_text().strip()
    return {**JSON, "Authorization": f"Bearer {token}"}


def begin(web: Web, path: str, headers: dict[str, str]) -> socket.socket:
    """Send a request whose body is not whole yet."""
    parts = urlsplit(web.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=10)
    lines = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Length: 1000"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    connection.sendall("\r\n".join([*lines, "", "{"]).encode())
    return connection


def half_closed(pid: int) -> list[object]:
    """Return the connections that their other end alone has closed."""
    connections = psutil.Process(pid).net_connections("tcp")
    return [connection for connection in connections if connection.status == psutil.CONN_CLOSE_WAIT]


@pytest.mark.parametrize("path", ["/mcp", "/channels/slack/events"])
def test_a_request_that_is_broken_off_leaves_no_trace_in_the_log(talking: Product, path: str) -> None:
    """Anybody who reaches the port can do that as often as he likes; what is answered next is answered."""
    talking.configure(channels={"slack": talking.slack_block(read={"mode": "http"})})
    service, web = talking.serve(env={**SIGNING, **DEBUGGABLE}).wait_swept(), Web(talking)
    headers = agents_headers(talking)
    assert web.post("/mcp", LIST, headers).status == 200  # whatever is loaded at the first request is

    for _ in range(3):
        begin(web, path, headers).close()
    wait_until(lambda: not half_closed(service.pid), "the service has closed them too")
    answered = web.post("/mcp", LIST, headers)
    service.stop()

    assert answered.status == 200
    assert "Traceback" not in service.output()


def test_a_body_without_end_is_refused_in_the_one_shape(talking: Product) -> None:
    """As every other refusal is, and wherever bodies are taken."""
    talking.configure(channels={"slack": talking.slack_block(read={"mode": "http"})})
    talking.serve(env=SIGNING).wait_swept()
    web = Web(talking)

    answers = [web.post(path, b" " * 1_200_000, agents_headers(talking)) for path in ("/mcp", "/channels/slack/events")]

    assert [(answer.status, answer.json["error"]["code"]) for answer in answers] == [(413, "too_large")] * 2
