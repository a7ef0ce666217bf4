"""Texts that a command takes from standard input or a file: read up to a bound, whatever stands there."""

import sys
from pathlib import Path

from core.domain.message import MOST_TEXT
from core.errors import InvalidValue

_MOST_BYTES = 4 * MOST_TEXT  # what so many characters take in UTF-8 at most


def standard_input() -> bytes:
    """Return all of it. Raises InvalidValue where that is more than any text may have."""
    return _bounded(sys.stdin.buffer.read(_MOST_BYTES + 1), "standard input")


def text_or_input(text: str) -> str:
    """Return the text, or what stands on standard input in the place of `-`. Raises InvalidValue."""
    return standard_input().decode("utf-8", "replace") if text == "-" else text


def content_of(file: Path) -> bytes:
    """Return what the file holds. Raises InvalidValue where that is too much, OSError."""
    with file.open("rb") as stream:
        return _bounded(stream.read(_MOST_BYTES + 1), str(file))


def _bounded(content: bytes, where: str) -> bytes:
    if len(content) > _MOST_BYTES:
        raise InvalidValue(
            f"{where} holds more than {_MOST_BYTES:,} bytes", "put it where the agent can read it, and say where"
        )
    return content
