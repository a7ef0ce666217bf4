"""A pane's window, its options and its history: asked by libtmux, in a process of its own.

libtmux waits for tmux without an end, and starts a client for each question. So it runs in a process that leads a group
(`python -m core.tmux.window`), which is ended with whatever client it waits for once its time is over. No other module
imports libtmux, and this one does so in that process alone.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from core.base.values import dataclass
from core.model.pane import Window
from core.tmux import guard
from core.tmux.server import TmuxServer
from core.tmux.transport import Reply, base_environment, silent


@dataclass(frozen=True)
class Seen:
    """What libtmux saw. `window`: None where the pane is no longer the instance's, before or after the look."""

    reply: Reply  #: tmux's own answer where it could not be asked; its output is the history, with wrapped rows joined
    window: Window | None


def look(server: TmuxServer, pane_id: str, instance: str, rows: int, seconds: float) -> Seen:
    """Return the window that shows the pane, and so many rows of its history with its screen; none of them for 0.

    Raises TmuxSilent where there is no answer within the time; nothing of ours waits for it then.
    """
    socket = str(server.socket) if server.ours else ""
    ask = (socket, server.program, pane_id, rows, guard.window_format(instance))
    process = _started([sys.executable, "-I", "-m", "core.tmux.window", json.dumps(ask)], server)
    try:
        out, err = process.communicate(timeout=max(seconds, 0.01))
    except subprocess.TimeoutExpired as error:
        raise silent(f"no answer about the window within {seconds:.2g} s") from error
    finally:
        _end(process)
    return _seen(process.returncode, out, err)


def _started(words: list[str], server: TmuxServer) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=base_environment(server.environ, server.secrets),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise silent(f"{words[0]!r} could not be started: {error.strerror}") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, where it has not ended, with the client that it waits for."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _seen(code: int, out: bytes, err: bytes) -> Seen:
    if code != 0:
        [*_, reason] = err.decode(errors="replace").strip().splitlines() or [f"exit {code}"]
        raise silent(f"its window could not be looked at: {reason}")
    answer = json.loads(out)
    before, after = (guard.window_of(told, answer["options"]) for told in answer["told"])
    return Seen(Reply(1 if answer["said"] else 0, answer["text"], answer["said"]), before and after)


def _asked(socket: str, tmux: str, pane_id: str, rows: int, format_: str) -> dict[str, Any]:
    """Ask what `look` wants to know. The pane's tag is asked for twice: what lies between counts if both are right."""
    from libtmux import Server
    from libtmux.pane import Pane
    from libtmux.window import Window as TmuxWindow

    server = Server(socket_path=socket or None, tmux_bin=tmux)
    pane = Pane(server=server, pane_id=pane_id)
    before = pane.cmd("display-message", "-p", format_)
    told = "".join(before.stdout)
    if before.stderr or not told.startswith("@"):
        return {"said": "\n".join(before.stderr), "told": [told, ""], "options": {}, "text": ""}
    window = TmuxWindow(server=server, window_id=told.partition(" ")[0])
    options = window.show_options() | pane.show_options()
    lines = pane.capture_pane(start=-rows, join_wrapped=True) if rows else []
    after = pane.cmd("display-message", "-p", format_)
    said, again = "\n".join(after.stderr), "".join(after.stdout)
    return {"said": said, "told": [told, again], "options": options, "text": "\n".join(lines)}


if __name__ == "__main__":
    json.dump(_asked(*json.loads(sys.argv[1])), sys.stdout)
