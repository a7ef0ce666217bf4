"""The page's door: who may see the data, and whose requests count."""

from __future__ import annotations

import json

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.calls import raw

SAY = json.dumps({"as": "you", "channel": "agents", "text": "from the page"}).encode()


def test_shell_is_public_and_tight(workspace: WorkspaceThread) -> None:
    """The shell needs no key and forbids everything that is not its own."""
    status, text, headers = raw(f"{workspace.url}/", None, {})

    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "http://" not in text.replace(workspace.url, "")
    assert "https://" not in text


def test_data_needs_the_link(workspace: WorkspaceThread) -> None:
    """The link sets a cookie that scripts cannot read; without it there is no data."""
    without = raw(f"{workspace.url}/page/state", None, {})
    wrong = raw(f"{workspace.url}/?key=guess", None, {})
    opened = raw(workspace.page_url, None, {})
    seen = raw(f"{workspace.url}/page/state", None, {"Cookie": _cookie(workspace)})

    assert (without[0], wrong[0], opened[0], seen[0]) == (401, 403, 303, 200)
    assert "HttpOnly" in opened[2]["Set-Cookie"]
    assert "SameSite=Strict" in opened[2]["Set-Cookie"]
    assert json.loads(seen[1])["channels"][0]["name"] == "agents"


def test_own_page_may_write(workspace: WorkspaceThread) -> None:
    """A request of the page itself posts."""
    status, _, _ = _say(workspace, {"Origin": workspace.url})

    assert status == 200
    assert [message["text"] for message in workspace.messages("agents")] == ["from the page"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "own", "Content-Type": "text/plain"},
        {"Origin": "own", "Cookie": ""},
    ],
)
def test_other_sites_cannot_write(workspace: WorkspaceThread, headers: dict[str, str]) -> None:
    """A foreign or missing origin, a simple content type, or a missing cookie: nothing is posted."""
    given = {key: workspace.url if value == "own" else value for key, value in headers.items()}

    status, _, _ = _say(workspace, given)

    assert status == 403
    assert workspace.messages("agents") == []


def test_foreign_host_name_is_refused(workspace: WorkspaceThread) -> None:
    """A name that only points to loopback gets nothing, not even the shell."""
    status, _, _ = raw(f"{workspace.url}/", None, {"Host": "evil.example"})

    assert status == 421


def _say(workspace: WorkspaceThread, headers: dict[str, str]) -> tuple[int, str, object]:
    defaults = {"Cookie": _cookie(workspace), "Content-Type": "application/json"}
    return raw(f"{workspace.url}/page/say", SAY, defaults | headers)


def _cookie(workspace: WorkspaceThread) -> str:
    port, key = workspace.url.rpartition(":")[2], workspace.page_url.rpartition("=")[2]
    return f"loopback-workspace-{port}={key}"
