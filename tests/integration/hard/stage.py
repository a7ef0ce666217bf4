"""What the hard tests share: a product with sessions of one's choice, people at its terminals, commands at once."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.product import PROGRAM, Done, Product
from tests.support.tmux import wait_until
from tests.support.typist import Person


@dataclass(frozen=True)
class Timed:
    """A command's answer, and the seconds that it took."""

    done: Done
    seconds: float


def declare(product: Product, *names: str, tmux: Mapping[str, Any] | None = None, **blocks: Any) -> None:
    """Configure the product with these declared sessions, changes of `routing.tmux`, and whole other blocks."""
    document = product.document()
    document["routing"]["tmux"].update(tmux or {})
    sessions = [{"name": name, "prompt": "Look after it."} for name in names]
    product.configure(routing=document["routing"], standingSessions={"enabled": True, "sessions": sessions}, **blocks)


def started(product: Product, *names: str) -> None:
    """Start these sessions, side by side."""
    for timed in at_once(product, [("standing", "start", name) for name in names]):
        assert timed.done.code == 0, timed.done


def at_once(product: Product, commands: Sequence[Sequence[str]]) -> list[Timed]:
    """Run these commands at the same time, and return their answers in that order."""

    def run(words: Sequence[str]) -> Timed:
        began = time.monotonic()
        done = product.cli(*words)
        return Timed(done, time.monotonic() - began)

    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(run, commands))


@contextmanager
def frozen(product: Product) -> Iterator[None]:
    """Stop the product's tmux server for the block."""
    pid = int(product.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def person(product: Product, name: str, *words: str) -> Iterator[Person]:
    """Give a person who attached by the product's own command; `--write` lets them type."""
    command = [str(PROGRAM), "--config", str(product.config), "standing", "attach", name, *words]
    someone = Person(product.tmux, f"loop-standing-{name}", command, product.environ())
    try:
        yield someone
    finally:
        someone.close()


def taken_texts(product: Product, name: str) -> list[str]:
    """Return what the agent's turns took, without the frames, the boot prompt left out."""
    return [text.split("] ", 1)[1].strip() for text in framed_texts(product, name)]


def framed_texts(product: Product, name: str) -> list[str]:
    """Return what the agent's turns took as they took it, the boot prompt left out."""
    return [text for text in product.taken(name) if not text.startswith("[the-loop boot #")]


def wait_taken(product: Product, name: str, text: str, seconds: float = 15.0) -> None:
    """Wait until a turn took the text."""
    wait_until(lambda: product.count(text, name), f"{name} took {text!r}", seconds)
