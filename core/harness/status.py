"""The second opinion: the status file that the harness rewrites whenever its state changes.

Claude Code 2.1.197 keeps `sessions/<pid>.json` in its configuration folder; it is not documented, and the only source
that tells of an Escape before the first token. It is removed on every exit but SIGKILL.
"""

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.domain.activity import ActivityState
from core.domain.harness import Opinion
from core.harness.base import text_of
from core.plainfiles import open_plain, read_bounded
from core.values import replace

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST = 1 << 20  #: bytes; it has some hundred
_STATES = {
    "idle": ActivityState.IDLE,
    "shell": ActivityState.BUSY,  # idle, and a background shell of it runs
    "busy": ActivityState.BUSY,
    "waiting": ActivityState.PERMISSION,  # questions show the same words: an Enter would answer either
}


def read_opinion(path: Path) -> Opinion | None:
    """Return what a status file says; None where it is absent, unreadable or says something unknown."""
    try:
        with open_plain(path) as file:
            written_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
            content = json.loads(read_bounded(file, _LONGEST))
    except (OSError, OverflowError, ValueError, RecursionError):
        return None
    opinion = opinion_of(content) if isinstance(content, dict) else None
    return replace(opinion, written_at=written_at, session_id=_conversation(content)) if opinion else None


def _conversation(content: Mapping[str, Any]) -> str:
    """Return the id of the conversation, which names a file; "" for what is none."""
    found = text_of(content, "sessionId")
    return found if _SESSION_ID.fullmatch(found) else ""


def opinion_of(content: Mapping[str, Any]) -> Opinion | None:
    """Return the opinion that a status object expresses, or None."""
    status = text_of(content, "status")
    state = _STATES.get(status)
    if state is None:
        return None
    if status == "shell":
        return Opinion(state, turn_over=True)
    return Opinion(state, text_of(content, "waitingFor"), turn_over=status == "idle")
