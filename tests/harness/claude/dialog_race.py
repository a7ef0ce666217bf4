"""Measures how often an Enter slips into a dialog that opens at that moment.

`python -m tests.harness.claude.dialog_race [N]` does it.

A turn is about to call a tool that asks for a permission, and a reply in the thread is timed so that its Enter falls
around the opening of the dialog. Nobody answers the dialog, so a tool that ran was approved by that Enter. The same
is done by tmux alone, as a script would: paste, wait as long, Enter.
Which Claude Code runs: tests.harness.program.
"""

import random
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import serving
from tests.harness.claude.product import ClaudeProduct, claude_product
from tests.harness.claude.test_story import serve
from tests.support.product import NAME
from tests.support.tmux import wait_until

THINKING = 1.6  #: seconds that the model takes before it calls the tool
SETTLE = 0.3  #: from the paste to the Enter
SPREAD = (-0.3, 0.6)  #: seconds around the call within which the Enter is aimed


@dataclass(frozen=True)
class Try:
    """One race. `gap`: seconds from the hook that tells of the dialog to the Enter, negative where that came first;
    None: no Enter was written while the dialog stood open."""

    slipped: bool
    gap: float | None
    state: str = ""  #: of the reply at the end


Send = Callable[[ClaudeProduct, str, str], float | None]  #: it may return when it wrote the Enter


def race(product: ClaudeProduct, thread: str, number: int, send: Send, aim: float) -> Try:
    """Let a message's Enter meet the opening of a dialog, and see whether it has answered it."""
    made, text = product.folder / "work" / f"made-{number}", f"racer {number}"
    work = f"work {number} [[sleep {THINKING}]] [[tool bash touch made-{number}]]"
    product.workspace.say("alice", "agents", work, thread)
    product.wait_request(f"work {number} ")
    wait_for(time.time() + THINKING + aim - SETTLE)
    entered = send(product, thread, text)
    wait_until(lambda: _asked_at(product, f"made-{number}"), "the tool asks", 30)
    opened = time.time()
    wait_until(lambda: made.exists() or time.time() > opened + 1.5, "what the Enter may do", 5)
    asked, entered = _asked_at(product, f"made-{number}"), entered or _submitted_at(product, text)
    slipped, gap = made.exists(), entered - asked if entered is not None and asked is not None else None
    _end_turns(product, text, of_ours=send is by_reply)
    return Try(slipped, gap, product.state_of(text))


def by_reply(product: ClaudeProduct, thread: str, text: str) -> None:
    """Reply in the thread."""
    product.workspace.say("alice", "agents", text, thread)


def by_tmux(product: ClaudeProduct, _: str, text: str) -> float:
    """Paste and press Enter without a look."""
    target = f"=loop-standing-{NAME}:"
    product.tmux("set-buffer", "-b", "race", f"[{text}] ")
    product.tmux("paste-buffer", "-p", "-d", "-b", "race", "-t", target)
    wait_for(time.time() + SETTLE)
    product.tmux("send-keys", "-t", target, "Enter")
    return time.time()


def wait_for(moment: float) -> None:
    """Wait for that moment, in seconds since the epoch."""
    wait_until(lambda: time.time() >= moment, "the moment has come", every=0.001)


def _asked_at(product: ClaudeProduct, part: str) -> float | None:
    return _moment(product, "SELECT asked_at FROM requests WHERE payload LIKE ?", f"%{part}%")


def _submitted_at(product: ClaudeProduct, text: str) -> float | None:
    return _moment(product, "SELECT submitted_at FROM inbox WHERE text = ?", text)


def _moment(product: ClaudeProduct, query: str, value: str) -> float | None:
    with closing(sqlite3.connect(product.paths.database, timeout=10)) as database:
        found = database.execute(query, (value,)).fetchone()
    return datetime.fromisoformat(found[0]).timestamp() if found and found[0] else None


def _end_turns(product: ClaudeProduct, text: str, *, of_ours: bool) -> None:
    """Reject the dialog, let what was queued have its turn, and empty the input line."""

    def over() -> bool:
        if product.status() == "waiting":  # its file tells of the dialog later than the hook does
            product.keys("Escape")
        return product.status() != "waiting" and (not of_ours or product.state_of(text) in ("confirmed", "unknown"))

    wait_until(over, f"the dialog is rejected, {text!r} is confirmed or unknown", 120, every=1.0)
    product.wait_rest()
    product.keys(*["C-u"] * 3)


def races(product: ClaudeProduct, thread: str, send: Send, tries: int, first: int = 0) -> list[Try]:
    """Race so many times, the Enters spread evenly over the time around the call."""
    low, high = SPREAD
    aims = [low + (high - low) * place / max(1, tries - 1) for place in range(tries)]
    random.Random(first).shuffle(aims)
    return [race(product, thread, first + number, send, aim) for number, aim in enumerate(aims)]


def told(name: str, tries: Sequence[Try]) -> str:
    """Return the line that tells of the tries."""
    gaps = [one.gap for one in tries if one.gap is not None]
    before, after = [gap for gap in gaps if gap < 0], [gap for gap in gaps if gap >= 0]
    unknown = sum(one.state == "unknown" for one in tries)
    return (
        f"{name}: {sum(one.slipped for one in tries)} of {len(tries)} approved the dialog. "
        f"Enter before it: {len(before)}{_range(before)}; while it stood open: {len(after)}{_range(after)}; "
        f"held back: {len(tries) - len(gaps)}" + (f"; told as unknown: {unknown}" if unknown else "")
    )


def _range(gaps: Sequence[float]) -> str:
    return f" ({min(map(abs, gaps)):.3f} to {max(map(abs, gaps)):.3f} s)" if gaps else ""


def main(tries: int) -> None:
    """Race both ways and print what came of it."""
    with (
        serving() as model,
        WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
        claude_product(workspace, model) as product,
    ):
        thread = serve(product)
        product.wait_status("idle")
        print(told("replies", races(product, thread, by_reply, tries)), flush=True)
        print(told("tmux alone", races(product, thread, by_tmux, tries, 10_000)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
