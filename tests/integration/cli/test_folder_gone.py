"""Each program of ours whose working folder is removed under it goes on, or fails in words."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from core.clients import askclient
from core.config.loading import USUAL_DEMO
from embedded.demo import folder_of
from tests.support.product import NAME, PROGRAM, Product, product
from tests.support.tmux import PATIENCE, alive, wait_until

#: The words before a command that starts in a folder which is there no more.
FOLDERLESS = ("/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"')


@pytest.fixture(scope="module")
def served() -> Iterator[Product]:
    """Give a product whose service was started in a folder that is there no more."""
    with product() as running:
        running.serve(within=FOLDERLESS).wait_swept()
        yield running


def say(running: Product, text: str) -> str:
    """Say something to the session and return what is known of it."""
    return str(running.cli("standing", "say", NAME, "--text", text, "--json").json["state"])


def test_a_service_without_its_folder_serves(served: Product) -> None:
    """It starts sessions in theirs, and takes in what they report."""
    assert say(served, "hello") == "confirmed"
    assert served.cli("status").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--json"),
        ("standing", "list", "--json"),
        ("standing", "get", NAME, "--json"),
        ("standing", "say", NAME, "--text", "from nowhere", "--json"),
        ("standing", "queue", NAME, "--json"),
        ("standing", "screen", NAME, "--json"),
        ("standing", "logs", NAME, "--json"),
        ("loop", "list", "--json"),
        ("config", "check"),
    ],
    ids=" ".join,
)
def test_a_command_needs_no_folder(served: Product, words: Sequence[str]) -> None:
    """What it is given is named from the root."""
    done = served.cli(*words, within=FOLDERLESS)

    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("--config", "mine.yaml", "status"),
        ("--config", "mine.yaml", "standing", "list", "--json"),
        ("--config", "mine.yaml", "config", "init"),
        ("standing", "create", "other", "--cwd", "sub", "--no-start"),
        ("standing", "create", "other", "--prompt-file", "brief.md", "--no-start"),
    ],
    ids=" ".join,
)
def test_what_is_named_from_a_folder_that_is_gone_is_refused(served: Product, words: Sequence[str]) -> None:
    """In words that say so, with exit 2, and no traceback."""
    named = words if "--config" in words else ("--config", str(served.config), *words)
    done = served.program(named, within=FOLDERLESS)

    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    assert "the folder that this was started in is not there any more" in done.err
    assert "--json" not in words or done.json["error"]["code"] == "no_folder"


def test_an_agents_clients_need_no_folder(served: Product) -> None:
    """Neither the hook's client, nor the bridge to its tools."""
    folder = served.paths.session(served.record()["uid"])
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    python = (sys.executable, "-I", "-S")

    bridge = subprocess.run(
        [*FOLDERLESS, str(PROGRAM), "mcp", "--token-file", str(folder / "mcp-token")],
        input=json.dumps(greeting).encode() + b"\n", capture_output=True, timeout=PATIENCE, check=False,
        cwd=served.folder,
    )  # fmt: skip
    asks = (askclient.__file__, str(served.paths.service_socket), "i-nobody", "1-1-PermissionRequest")
    client = subprocess.run(
        [*FOLDERLESS, *python, *asks],
        input=b"{}", capture_output=True, timeout=PATIENCE, cwd=served.folder, check=False,
    )  # fmt: skip

    assert b"protocolVersion" in bridge.stdout, bridge.stderr
    assert (bridge.returncode, client.returncode, client.stderr) == (0, 0, b"")


def test_an_agent_goes_on_without_its_folder() -> None:
    """It takes turns, runs commands, reports through its hooks, ends gracefully; a start names what is missing."""
    with product() as running:
        running.serve().wait_swept()
        [pane] = running.panes().values()
        shutil.rmtree(running.folder / "work")
        (running.folder / "work").mkdir()  # where this test runs commands: another folder of that name

        first, second = say(running, "one"), say(running, "run: echo made; sleep 0")
        lives = alive(pane)
        shutil.rmtree(running.folder / "work")
        stopped = subprocess.run(
            [PROGRAM, "--config", running.config, "standing", "restart", NAME, "--json"],
            env=running.environ(), cwd="/", capture_output=True, text=True, timeout=3 * PATIENCE, check=False,
        )  # fmt: skip

        [row] = json.loads(stopped.stdout)["sessions"]
        assert (first, second, lives) == ("confirmed", "confirmed", True)
        assert "Traceback" not in row["detail"] + stopped.stderr
        assert f"{running.folder / 'work'} does not exist" in row["detail"]
        (running.folder / "work").mkdir()


def server_in(folder: Path) -> int:
    """Return the process of the demo's tmux server, 0 while there is none with a session."""
    asked = ["tmux", "-S", str(folder / f"tmux-{os.getuid()}" / "the-loop-demo"), "list-sessions", "-F", "#{pid}"]
    answer = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout.split()
    return int(answer[0]) if answer else 0


def test_a_demo_whose_folder_is_removed_ends_in_words(tmp_path: Path, short_path: Path) -> None:
    """Its service says which file is gone; its page and its agent end with it."""
    environ = {**os.environ, "HOME": str(tmp_path), "TMUX_TMPDIR": str(short_path)}
    folder, output = folder_of(USUAL_DEMO, environ), tmp_path / "output"
    with output.open("wb") as stream:
        demo = subprocess.Popen(
            [PROGRAM, "demo", "--port", "0"],
            env=environ, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=tmp_path, start_new_session=True,
        )  # fmt: skip
    tmux = 0
    try:
        wait_until(lambda: "status" in output.read_text() or demo.poll() is not None, "the demo tells where it is")
        assert demo.poll() is None, output.read_text()
        wait_until(lambda: server_in(short_path), "its agent's terminal is there")
        tmux = server_in(short_path)
        shutil.rmtree(folder, ignore_errors=True)

        code = demo.wait(PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGTERM)
        if tmux:
            os.kill(tmux, signal.SIGTERM)

    assert code == 1
    assert "was removed" in output.read_text()
    assert "Traceback" not in output.read_text()
