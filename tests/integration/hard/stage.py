"""What the hard tests share: a product with sessions of one's choice, people at its terminals, commands at once."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.support.product import PROGRAM, Done, Product
from tests.support.tmux import wait_until
from tests.support.typist import Person


def declare(product: Product, *names: str, tmux: Mapping[str, Any] | None = None, **blocks: Any) -> None:
    """Configure the product with these declared sessions, changes of `routing.tmux`, and whole other blocks."""
    document = product.document()
    document["routing"]["tmux"].update(tmux or {})
    sessions = [{"name": name, "prompt": "Look after it."} for name in names]
    product.configure(routing=document["routing"], standingSessions={"enabled": True, "sessions": sessions}, **blocks)


def started(product: Product, *names: str) -> None:
    """Start these sessions, side by side."""
    for done in at_once(product, [("standing", "start", name) for name in names]):
        assert done.code == 0, done


def at_once(
    product: Product, commands: Sequence[Sequence[str]], environs: Sequence[Mapping[str, str]] = ()
) -> list[Done]:
    """Run these commands at the same time, each with its own changes of the environment; return their answers."""
    with ThreadPoolExecutor(len(commands)) as pool:
        environs = environs or [{}] * len(commands)
        asked = [pool.submit(product.cli, *words, env=env) for words, env in zip(commands, environs, strict=True)]
        return [one.result() for one in asked]


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


def taken_texts(product: Product, name: str, least: int = 0) -> list[str]:
    """Return what the agent's turns took, without the frames, the boot prompt left out, once there is so much.

    A message is confirmed by the hook, which comes before the conversation's line.
    """
    wait_until(lambda: len(framed_texts(product, name)) >= least, f"{name} took {least} texts")
    return [text.split("] ", 1)[1].strip() for text in framed_texts(product, name)]


def framed_texts(product: Product, name: str) -> list[str]:
    """Return what the agent's turns took as they took it, the boot prompt left out."""
    return [text for text in product.taken(name) if not text.startswith("[the-loop boot #")]


def wait_taken(product: Product, name: str, text: str) -> None:
    """Wait until a turn took the text."""
    product.times(text, name)
