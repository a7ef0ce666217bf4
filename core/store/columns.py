"""Times as columns: ISO 8601 in UTC with microseconds, so that their text sorts as they do."""

from datetime import datetime

from core.clock import from_iso, iso


def to_column(moment: datetime | None) -> str | None:
    """Return the column's text of a time."""
    return None if moment is None else iso(moment)


def from_column(text: str | None) -> datetime | None:
    """Return the time of a column's text."""
    return None if text is None else from_iso(text)
