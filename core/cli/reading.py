"""Texts that a command takes from standard input or a file, read up to a bound, whatever is there."""

import sys
from pathlib import Path

from core.base.errors import InvalidValue
from core.model.message import MOST_TEXT

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


def message_of(source: str | None, text: str | None, file: Path | None) -> str:
    """Return what is to be said, from the one place where it is given. Raises InvalidValue."""
    given = [part for part in (source, text, file) if part is not None]
    if len(given) != 1 or (source is not None and source != "-"):
        raise InvalidValue("say takes one message", "give it by --text TEXT, --file FILE, or - for standard input")
    if text is not None:
        return text
    file = None if file == Path("-") else file
    try:
        return (standard_input() if file is None else content_of(file)).decode("utf-8")
    except OSError as error:
        raise InvalidValue(f"cannot read {file}: {error.strerror}", "name a readable file") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{file or 'standard input'} is not UTF-8: {error}", "convert it first") from error


def _bounded(content: bytes, where: str) -> bytes:
    if len(content) > _MOST_BYTES:
        raise InvalidValue(
            f"{where} holds more than {_MOST_BYTES:,} bytes", "put it where the agent can read it, and say where"
        )
    return content
