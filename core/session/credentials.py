"""The token by which the agent of a session is known to its tools.

It is made anew before each pane, lies in a private file of the session's folder, and is good for that one instance
of that one generation: a restart, a stop and a delete make it void, whatever of it is left anywhere.
"""

import hmac
import secrets
from pathlib import Path

from core.domain.session import HoldKind, Phase, SessionRecord, Status
from core.errors import CoreError
from core.paths import StatePaths
from core.session.sessions import record_of_instance
from core.store.files import read_token, remove_file, write_private
from core.system import System

_BYTES = 32
_ENDING = frozenset({Phase.STOPPING, Phase.DELETING})
_ENDED = frozenset({HoldKind.STOPPED, HoldKind.FAILED})


class BadToken(CoreError):
    """A caller's token is not that of a session that runs now."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "the token is none of a session that runs now",
            "a session's token is in the file `mcp-token` of its folder, is made anew at each start, and ends with the "
            "session; connect again",
        )


def mint_token(paths: StatePaths, record: SessionRecord) -> Path:
    """Write a new token for the record's instance, and return its file. Raises StoreBroken."""
    path = paths.agent_token(record.uid)
    write_private(path, f"{_owner(record)}.{secrets.token_urlsafe(_BYTES)}\n".encode())
    return path


def drop_token(paths: StatePaths, uid: str) -> None:
    """Remove the session's token. Raises StoreBroken."""
    remove_file(paths.agent_token(uid))


def session_of_token(system: System, token: str) -> SessionRecord:
    """Return the session whose agent carries the token. Raises BadToken, StoreBroken."""
    record = record_of_instance(system, token.partition(".")[0])
    if record is None or record.status is not Status.RUNNING or record.phase in _ENDING:
        raise BadToken
    if record.hold is not None and record.hold.kind in _ENDED:
        raise BadToken
    kept = read_token(system.paths.agent_token(record.uid)) or ""
    if not hmac.compare_digest(kept.encode(), token.encode("utf-8", "replace")):
        raise BadToken
    if not kept.startswith(f"{_owner(record)}."):
        raise BadToken
    return record


def _owner(record: SessionRecord) -> str:
    return f"{record.instance_id}.{record.generation}"
