"""Uploads and status, refused where Slack refuses them."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from embedded.workspace.thread import WorkspaceThread
from tests.support.tmux import wait_until


@pytest.fixture
def workspace() -> Iterator[WorkspaceThread]:
    """A running workspace."""
    with WorkspaceThread() as running:
        yield running


@pytest.fixture
def client(workspace: WorkspaceThread) -> WebClient:
    """The bot's client, as Slack's library makes it."""
    client = WebClient(workspace.bot_token, base_url=workspace.api_url)
    client.proxy = None
    return client


@pytest.fixture
def root(workspace: WorkspaceThread, client: WebClient) -> str:
    """A thread's parent."""
    return str(client.chat_postMessage(channel=workspace.channel_id("agents"), text="root")["ts"])


def test_the_librarys_own_upload_works(workspace: WorkspaceThread, client: WebClient, root: str) -> None:
    """Three calls, one file in the thread."""
    client.files_upload_v2(
        channel=workspace.channel_id("agents"), thread_ts=root, filename="a.md", content="# text", title="A"
    )

    [message] = workspace.replies("agents", root)
    assert (message["subtype"], message["files"][0]["title"]) == ("file_share", "A")
    assert workspace.do(lambda controls: controls.file_text(message["files"][0]["id"])) == "# text"


def test_what_slack_refuses_of_an_upload_is_refused(workspace: WorkspaceThread, client: WebClient) -> None:
    """No name, no length, a file that never came, a channel without the bot, too many files, no scope."""
    elsewhere = workspace.add_channel("elsewhere", ["alice"])
    waiting = client.files_getUploadURLExternal(filename="a.md", length=3)

    def complete(**changes: Any) -> Callable[[], object]:
        arguments = {"files": [{"id": waiting["file_id"]}], "channel_id": workspace.channel_id("agents"), **changes}
        return lambda: client.files_completeUploadExternal(**arguments)

    assert _code(lambda: client.files_getUploadURLExternal(filename="", length=3)) == "invalid_arguments"
    assert _code(lambda: client.files_getUploadURLExternal(filename="a.md", length=0)) == "invalid_arguments"
    assert _code(complete()) == "file_not_found"
    assert _status(str(waiting["upload_url"]), b"four") == 400
    assert _status(f"{waiting['upload_url']}x", b"abc") == 404
    assert _status(str(waiting["upload_url"]), b"abc") == 200
    assert _code(complete(channel_id=elsewhere)) == "not_in_channel"
    assert _code(complete(thread_ts="1.1")) == "thread_not_found"
    assert _code(complete(files=[{"id": "F"}] * 11)) == "invalid_arguments"
    workspace.set_scopes(["chat:write"])
    assert _code(complete()) == "missing_scope"


def test_a_file_is_shared_once(workspace: WorkspaceThread, client: WebClient, root: str) -> None:
    """The second completion finds no upload."""
    granted = client.files_getUploadURLExternal(filename="a.md", length=3)
    _status(str(granted["upload_url"]), b"abc")

    def complete() -> object:
        return client.files_completeUploadExternal(
            files=[{"id": granted["file_id"], "title": "A"}], channel_id=workspace.channel_id("agents"), thread_ts=root
        )

    complete()
    assert _code(complete) == "file_not_found"
    assert len(workspace.replies("agents", root)) == 1


def test_what_slack_refuses_of_a_status_is_refused(workspace: WorkspaceThread, client: WebClient, root: str) -> None:
    """A thread that is not there, a channel without the bot, too many messages, no scope."""
    agents, elsewhere = workspace.channel_id("agents"), workspace.add_channel("elsewhere", ["alice"])

    def status(**changes: Any) -> Callable[[], object]:
        arguments = {"channel_id": agents, "thread_ts": root, "status": "is working…", **changes}
        return lambda: client.assistant_threads_setStatus(**arguments)

    assert _code(status(thread_ts="1.1")) == "thread_not_found"
    assert _code(status(channel_id=elsewhere)) == "not_in_channel"
    assert _code(status(loading_messages=["m"] * 11)) == "invalid_arguments"
    workspace.set_scopes(["users:read"])
    assert _code(status()) == "missing_scope"
    assert workspace.status("agents", root) == ""


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(SlackApiError) as caught:
        call()
    return str(caught.value.response["error"])


def _status(url: str, content: bytes) -> int:
    request = urllib.request.Request(url, data=content, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_picture_is_shown_only_if_the_app_may_see_it_and_it_is_one(
    workspace: WorkspaceThread, client: WebClient
) -> None:
    """A file that is shared nowhere is the app's own; a text, or a file of somebody else, is no picture of it."""
    ids = {}
    for name in ("a.png", "a.txt"):
        granted = client.files_getUploadURLExternal(filename=name, length=3)
        sent = urllib.request.Request(granted["upload_url"], data=b"abc", method="POST")
        urllib.request.urlopen(sent, timeout=10).close()
        client.files_completeUploadExternal(files=[{"id": granted["file_id"], "title": name}])
        ids[name] = granted["file_id"]
    untyped = client.files_info(file=ids["a.png"])["file"]["mimetype"]
    early = _code(
        lambda: client.chat_postMessage(
            channel=workspace.channel_id("agents"),
            text="a",
            blocks=[{"type": "image", "slack_file": {"id": ids["a.png"]}, "alt_text": "a"}],
        )
    )
    wait_until(lambda: client.files_info(file=ids["a.png"])["file"]["mimetype"], "the picture has been looked at")

    def show(file_id: str) -> str:
        block = {"type": "image", "slack_file": {"id": file_id}, "alt_text": "a"}
        return _code(lambda: client.chat_postMessage(channel=workspace.channel_id("agents"), text="a", blocks=[block]))

    client.chat_postMessage(
        channel=workspace.channel_id("agents"),
        text="a",
        blocks=[{"type": "image", "slack_file": {"id": ids["a.png"]}, "alt_text": "a"}],
    )
    assert [show(ids["a.txt"]), show("F00000000")] == ["invalid_blocks", "invalid_blocks"]
    assert (untyped, early) == ("", "invalid_blocks")
    assert len(workspace.messages("agents")) == 1
