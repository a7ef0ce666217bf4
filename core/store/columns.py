"""Values as columns.

Times are ISO 8601 in UTC with microseconds, so that their text sorts as they do. A reason is two columns: its code, ""
for none, and its arguments as a JSON object.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.store.rows import column

if TYPE_CHECKING:
    import sqlite3

    from core.domain.reasons import Because


def to_column(moment: datetime | None) -> str | None:
    """Return the column's text of a time."""
    return None if moment is None else iso(moment)


def from_column(text: str | None) -> datetime | None:
    """Return the time of a column's text."""
    return None if text is None else from_iso(text)


def reason_to(because: Because | None) -> dict[str, str]:
    """Return the columns `reason` and `reason_args` of a reason."""
    if because is None:
        return {"reason": "", "reason_args": "{}"}
    return {"reason": because.code, "reason_args": because.given}


def reason_from(found: sqlite3.Row) -> Because | None:
    """Return the reason of a row's columns `reason` and `reason_args`. Raises ValueError that names what is odd."""
    if not found["reason"]:
        return None
    from core.domain.reasons import stored  # rows without any are the most

    return column(found, "reason_args", partial(stored, found["reason"]))
