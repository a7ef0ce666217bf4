"""The token of the HTTP surface: the operator's by a variable, else one that is made once and kept."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from core.store.files import read_token, write_private

_BYTES = 32


def api_token(path: Path, variable: str, environ: Mapping[str, str]) -> str:
    """Return the variable's value, else what the file holds, else a new token that is now in the file.

    Raises StoreBroken for a file that cannot be read or written, or that others may read or write.
    """
    given = environ.get(variable, "").strip()
    if given:
        return given
    kept = read_token(path)
    if kept:
        return kept
    token = secrets.token_urlsafe(_BYTES)
    write_private(path, f"{token}\n".encode())
    return token
