"""The SDK has a call for each operation of the API, and gives each what it takes."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from core.commandtable import CHATS
from core.http.arguments import from_body, key_of
from core.http.rest import Operation, operations_of
from core.sdk.loop import TheLoop

OPERATIONS = {(one.method, one.path): one for one in operations_of()}
WORDS: Mapping[str, Any] = {"lines": 5, "last": 5, "option": 0, "wait": 1.0, "verb": "start", "options": ("a",)}


class _Asked(Exception):
    """The call has got as far as its transport."""


class Recorder:
    """A transport that keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Operation, Mapping[str, Any]]] = []

    def call(self, method: str, path: str, given: Mapping[str, Any], waits: float = 0.0) -> Any:
        """Keep it."""
        self.asked.append((OPERATIONS[method, path], given))
        raise _Asked

    def follow(self, after: str | None, name: str | None) -> Iterator[Mapping[str, Any]]:
        """Follow nothing."""
        yield from ()

    def close(self) -> None:
        """Hold nothing."""


def asked() -> list[tuple[Operation, Mapping[str, Any]]]:
    """Make every call of the SDK once, with every argument that has to be given."""
    recorder = Recorder()
    ours = TheLoop(recorder)
    for group in (ours.standing, ours.loops, ours.requests, ours.events, ours):
        for name, call in inspect.getmembers(group, inspect.ismethod):
            if name.startswith("_") or name in ("follow", "close"):
                continue
            needed = [one for one in inspect.signature(call).parameters.values() if one.default is one.empty]
            try:
                call(*(WORDS.get(one.name, "a") for one in needed))
            except _Asked:
                continue
            raise AssertionError(f"{name} asks nobody")
    return recorder.asked


def test_each_operation_has_a_call() -> None:
    """Whoever adds a command to the table adds a call, or says here why not."""
    assert set(OPERATIONS) - {(operation.method, operation.path) for operation, _ in asked()} == set()


def test_each_call_gives_what_its_operation_takes() -> None:
    """Each key is known, and of the right kind."""
    for operation, given in asked():
        from_body(operation.takes, given, CHATS if operation.chats else ())


def test_each_call_can_give_all_that_its_operation_takes() -> None:
    """But for what only a stream takes."""
    partly = ("/events", "/requests/answer", "/standing-sessions/control")

    lacking = {
        f"{operation.path} {key_of(one)}"
        for operation, given in asked()
        for one in operation.takes
        if key_of(one) not in given and operation.path not in partly
    }

    assert lacking == set()
