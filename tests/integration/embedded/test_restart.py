"""A restarted workspace knows everything; the program tells others how to reach it."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from slack_sdk import WebClient

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.calls import call, raw
from tests.support.tmux import wait_until


def test_restart_keeps_everything(tmp_path: Path) -> None:
    """Tokens, people, messages, threads and reactions are the same after a restart, and ts go on increasing."""
    database = tmp_path / "workspace.db"
    with WorkspaceThread(database) as first:
        tokens = (first.bot_token, first.app_token, first.page_url.rpartition("=")[2])
        client = WebClient(first.bot_token, base_url=first.api_url)
        parent = client.chat_postMessage(channel="agents", text="root")["ts"]
        first.say("alice", "agents", "reply", parent)
        first.react("bob", "agents", parent, "eyes")
        before = first.messages("agents")

    with WorkspaceThread(database) as second:
        after = second.messages("agents")
        later = second.say("you", "agents", "later")

        assert (second.bot_token, second.app_token, second.page_url.rpartition("=")[2]) == tokens
        assert after == before
        assert later > max(message["ts"] for message in before)


def test_restart_goes_on_with_undelivered_events(tmp_path: Path) -> None:
    """An event that nobody had acknowledged is still to be delivered after a restart."""
    database = tmp_path / "workspace.db"
    with WorkspaceThread(database) as first:
        first.say("alice", "agents", "anybody?")

    with WorkspaceThread(database, retry_scale=0.0001) as second:
        given_up = second.wait_for(lambda c: c.given_up() or None)

    assert [payload["event"]["text"] for payload in given_up] == ["anybody?"]


def test_manifest_is_applied_again(tmp_path: Path) -> None:
    """An app that asks for other scopes at a restart gets them, and keeps its tokens."""
    database = tmp_path / "workspace.db"
    with WorkspaceThread(database) as first:
        token = first.bot_token

    manifest = {
        "features": {"bot_user": {"display_name": "loop2"}},
        "oauth_config": {"scopes": {"bot": ["chat:write"]}},
    }
    with WorkspaceThread(database, manifest=manifest) as second:
        answer = WebClient(second.bot_token, base_url=second.api_url).auth_test()

        assert second.bot_token == token
        assert (answer["user"], answer.headers["x-oauth-scopes"]) == ("loop2", "chat:write")


def test_program_says_when_it_is_ready(tmp_path: Path) -> None:
    """The ready line holds no secret, the tokens file only its owner can read, SIGTERM ends it with 0."""
    tokens = tmp_path / "tokens.json"
    command = [sys.executable, "-m", "embedded.workspace", "--db", str(tmp_path / "w.db"), "--tokens-file", str(tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        line = program.stdout.readline()
        described = json.loads(tokens.read_text())
        answer = call(described["api_url"], "auth.test", described["bot_token"], b"{}")
        headers = {"Authorization": f"Bearer {described['control_token']}"}
        said = json.dumps({"user": "alice", "channel": "agents", "text": "from outside"}).encode()
        status, body, _ = raw(f"{described['url']}/_control/say", said, headers)
        refused = raw(f"{described['url']}/_control/say", said, {})[0]
        program.send_signal(signal.SIGTERM)
        code = program.wait(10)

    assert json.loads(line)["ready"] is True
    assert "xoxb-" not in line
    assert oct(os.stat(tokens).st_mode & 0o777) == "0o600"
    assert answer["ok"] is True
    assert (status, json.loads(body)["ok"], refused) == (200, True, 401)
    assert code == 0


def test_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The database holds tokens: nobody else may read it or its journal."""
    with WorkspaceThread(tmp_path / "workspace.db") as running:
        running.say("alice", "agents", "hello")
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}

    assert set(modes.values()) == {"0o600"}


@pytest.mark.parametrize("option", ["--db", "--manifest"])
def test_program_names_a_file_it_cannot_open(tmp_path: Path, option: str) -> None:
    """A missing folder or manifest ends the program with 1 and names the path."""
    path = str(tmp_path / "missing" / "file")
    command = [sys.executable, "-m", "embedded.workspace", option, path]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    assert ended.returncode == 1
    assert path in ended.stderr
    assert "Traceback" not in ended.stderr


def test_taken_port_leaves_no_thread_behind() -> None:
    """A workspace that cannot start ends its thread and says why."""
    with WorkspaceThread() as running:
        second = WorkspaceThread(port=int(running.url.rpartition(":")[2]))

        with pytest.raises(OSError, match=r"(?i)address already in use"):
            second.start()

    assert [thread.name for thread in threading.enumerate() if thread.name == "loopback-workspace"] == []


def test_program_names_a_taken_port(tmp_path: Path) -> None:
    """A port in use ends the program with 1 and the remedy."""
    with WorkspaceThread() as running:
        port = running.url.rpartition(":")[2]
        command = [sys.executable, "-m", "embedded.workspace", "--port", port]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "--port" in ended.stderr


def test_no_connection_is_left_open_when_it_stops_under_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dials while it stops is answered or closed, never forgotten with its socket open."""
    forgotten: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: forgotten.append(str(told.exc_value)))
    for _ in range(5):
        workspace = WorkspaceThread().start()
        address, over = ("127.0.0.1", int(workspace.url.rpartition(":")[2])), threading.Event()
        dialled: list[socket.socket] = []

        def dial(
            address: tuple[str, int] = address, over: threading.Event = over, kept: list[socket.socket] = dialled
        ) -> None:
            while not over.is_set():
                with suppress(OSError):
                    kept.append(socket.create_connection(address, 5))

        callers = [threading.Thread(target=dial) for _ in range(2)]
        for caller in callers:
            caller.start()
        wait_until(partial(_is_longer, dialled, 20), "the workspace is under fire")
        workspace.stop()
        over.set()
        for caller in callers:
            caller.join()
        for connection in dialled:
            connection.close()
        del workspace
        gc.collect()

    assert forgotten == []


def _is_longer(kept: list[socket.socket], than: int) -> bool:
    return len(kept) > than
