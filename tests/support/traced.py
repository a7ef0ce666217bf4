"""Runs a program of ours, and writes down which modules a reply crosses: `python traced.py PROGRAM WORDS…`.

At four moments (heard of Slack, handed to core's thread, kept in the inbox, pasted into the pane) it takes the calls
that are open then, and writes one JSON line to the file that REPLY_WAY names: the moment, and the modules of ours from
the outermost call of its thread or event loop on. Only a reply that holds the text of REPLY_TEXT counts.
"""

import functools
import json
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

from bot.intake import AsyncDoor, Intake
from core.store.inbox import Inbox
from core.tmux.runner import Runner

_FILE, _TEXT = os.environ["REPLY_WAY"], os.environ["REPLY_TEXT"]


def _told(moment: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def traced(*given: Any, **named: Any) -> Any:
        if _TEXT in repr(given):
            frame, modules = sys._getframe(), [function.__module__]
            while frame.f_back is not None and not frame.f_globals["__name__"].startswith("asyncio"):
                frame = frame.f_back
                modules.append(frame.f_globals["__name__"])
            ours = [name for name in reversed(modules) if name.startswith(("bot.", "core."))]
            with open(_FILE, "a", encoding="utf-8") as file:
                file.write(json.dumps([moment, list(dict.fromkeys(ours))]) + "\n")
        return function(*given, **named)

    return traced


def main() -> None:
    """Patch the four doors, and become the program."""
    Intake.offer = _told("heard", Intake.offer)  # type: ignore[method-assign]
    AsyncDoor.receive = _told("handed over", AsyncDoor.receive)  # type: ignore[method-assign]
    Inbox.add = _told("kept", Inbox.add)  # type: ignore[method-assign]
    Runner.paste_all = _told("pasted", Runner.paste_all)  # type: ignore[method-assign]
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
