"""What `say` is given: who speaks, and the message."""

import sys
from pathlib import Path

from core.errors import InvalidValue
from core.surfaces.cli.session import Session


def speaker_of(session: Session, speaker: str, actor: str | None) -> str:
    """Return who says it: `actor` where one is given, which no agent may. Raises InvalidValue."""
    if actor is None:
        return speaker
    if session.instance is not None and not session.as_operator:
        raise InvalidValue("an agent speaks in its own name", "leave --actor out")
    return actor if ":" in actor else f"cli:{actor}"


def read_message(source: str | None, text: str | None, file: Path | None) -> str:
    """Return what is to be said, from the one place where it is given. Raises InvalidValue."""
    given = [part for part in (source, text, file) if part is not None]
    if len(given) != 1 or (source is not None and source != "-"):
        raise InvalidValue("say takes one message", "give it by --text TEXT, --file FILE, or - for standard input")
    if text is not None:
        return text
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidValue(f"cannot read {file}: {error.strerror}", "name a readable file") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{file or 'standard input'} is not UTF-8: {error}", "convert it first") from error
