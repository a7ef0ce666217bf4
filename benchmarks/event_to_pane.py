"""A person's reply, from Slack's event on the socket to the bytes that the program in the pane has read.

Ours is the service: the reply is checked, committed, acknowledged, passes the gate and is pasted by a guarded line. The
floor is a bare Bolt listener that pastes through a control client and stores nothing: `event_to_pane URL THREAD TMUX…`.
Each has a workspace of its own in this process, and both paste into the same pane.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from benchmarks.measuring import Ratio, compare, report
from benchmarks.say_to_pane import NAME, TARGET, TOLD, Pane
from benchmarks.stage import Stage, script, stage, wait_for
from embedded.workspace.thread import WorkspaceThread
from tests.support.product import is_root

MEDIAN_BOUND, P95_BOUND = 2.0, 5.0
RUNS = 101
CHANNEL = "agents"
_BOT, _APP = "THE_LOOP_SLACK_BOT_TOKEN", "THE_LOOP_SLACK_APP_TOKEN"
_PAUSE = 0.2  #: before each measurement, so that what follows the one before (Enter, reactions) is over
_STOP_SECONDS = 20.0


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the medians and of the 95th percentiles."""
    with WorkspaceThread() as ours, WorkspaceThread() as bare, stage() as here, closing(Pane(here.folder)) as pane:
        here.configure(reading_document(here, ours))
        with served(here, ours) as root, _listener(here, bare) as thread:
            medians = compare(
                ("event to bytes read, by the service", latency(pane, lambda word: say_in(ours, word, root))),
                ("by a bare Bolt listener", latency(pane, lambda word: say_in(bare, word, thread))),
                bound=MEDIAN_BOUND,
                runs=RUNS,
            )
            yield medians
            yield medians._replace(bound=P95_BOUND, percentile=95)


def reading_document(here: Stage, workspace: WorkspaceThread) -> dict[str, Any]:
    """Return a configuration of one session with a thread, whose program reads and tells when."""
    program = [sys.executable, "-S", str(_reader()), str(here.folder / TOLD)]
    slack = {"enabled": True, "apiUrl": workspace.api_url, "channel": workspace.channel_id(CHANNEL)}
    return {
        "service": {"port": 0},
        "channels": {"slack": {**slack, "authorizedUsers": [workspace.user_id("alice")]}},
        "harnesses": {"reader": {"start": program, "ready": "READY", "settleMs": 0}},
        "standingSessions": {
            "enabled": True,
            "sessions": [{"name": NAME, "harness": "reader", "slack": {"enabled": True}}],
        },
    }


def _reader() -> str:
    return os.path.join(os.path.dirname(__file__), "reader.py")


def tokens_of(workspace: WorkspaceThread) -> dict[str, str]:
    """Return the variables that hold the app's tokens."""
    return {_BOT: workspace.bot_token, _APP: workspace.app_token}


def say_in(workspace: WorkspaceThread, word: str, thread: str) -> None:
    """Write the word in the thread."""
    workspace.say("alice", CHANNEL, word, thread)


def latency(pane: Pane, say: Callable[[str], None]) -> Callable[[], float]:
    """Return a measure from the saying of a word until the program in the pane has read it, in milliseconds."""

    def measure() -> float:
        time.sleep(_PAUSE)
        word = secrets.token_hex(8)
        begun = time.monotonic_ns()
        say(word)
        return (pane.read_at(word.encode()) - begun) / 1e6

    return measure


@contextmanager
def served(here: Stage, workspace: WorkspaceThread, *, tokens: bool = True) -> Iterator[str]:
    """Run the service, and give the thread of its session once it is bound and was swept."""
    environ = {**here.environ, **(tokens_of(workspace) if tokens else {})}
    events = here.folder / "state" / "the-loop" / "local" / "events.jsonl"
    with running([script("the-loop"), "serve"], environ):
        wait_for(lambda: events.exists() and '"standing.announced"' in events.read_text(), "the session is announced")
        [root] = [message["ts"] for message in workspace.messages(CHANNEL) if is_root(message, NAME)]
        try:
            yield str(root)
        finally:
            stop = [script("the-loop"), "standing", "stop"]
            subprocess.run(stop, env=here.environ, capture_output=True, check=False, timeout=60)


@contextmanager
def _listener(here: Stage, workspace: WorkspaceThread) -> Iterator[str]:
    """Run the floor, and give the thread in which it is spoken to."""
    thread = workspace.say("alice", CHANNEL, "a thread")
    environ = {**here.environ, **tokens_of(workspace)}
    environ["PYTHONPATH"] = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-m", "benchmarks.event_to_pane", workspace.api_url, thread, *here.tmux()]
    with running(command, environ):
        workspace.wait_for_connections(1, 30.0)
        yield thread


@contextmanager
def running(command: list[str], environ: dict[str, str]) -> Iterator[None]:
    """Run the program, and end it gently."""
    with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


# ---------------------------------------------------------------- the floor


async def listen(url: str, thread: str, tmux: list[str]) -> None:
    """Paste what is said in the thread, through a control client, until killed."""
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.app.async_app import AsyncApp
    from slack_sdk.web.async_client import AsyncWebClient

    attach = [*tmux, "-C", "attach-session", "-f", "no-output,ignore-size", "-t", TARGET]
    control = subprocess.Popen(attach, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    app = AsyncApp(client=AsyncWebClient(os.environ[_BOT], base_url=url))

    async def hear(event: dict[str, Any]) -> None:
        if event.get("thread_ts") == thread and control.stdin is not None:
            line = f"set-buffer -b bare '{event['text']}' ; paste-buffer -d -r -b bare -t '{TARGET}'\n"
            control.stdin.write(line.encode())
            control.stdin.flush()

    app.event("message")(hear)
    await AsyncSocketModeHandler(app, os.environ[_APP]).start_async()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(listen(sys.argv[1], sys.argv[2], sys.argv[3:]))
    else:
        sys.exit(report(list(ratios())))
