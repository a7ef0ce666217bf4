"""Convert values to columns and back.

Times are ISO 8601 in UTC with microseconds, so their text sorts as they do. A reason is two columns: its code ("" for
none) and its arguments as a JSON object. A row that cannot be read comes from a later version, or from a damaged or
edited file. It is named, reported once, and left out of lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from core.base.clock import from_iso, iso
from core.base.errors import RowBroken

if TYPE_CHECKING:
    import sqlite3

    from core.model.reasons import Because
    from core.store.database import Database, Parameters


_T = TypeVar("_T")
_SHOWN = 40  #: characters of a value; a longer one may be somebody's text
_PLAIN = re.compile(r"[\w.:-]+")
#: what decoding an impossible value raises
_ODD = (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)


def column(found: sqlite3.Row, name: str, decode: Callable[[Any], _T]) -> _T:
    """Return the decoded column. Raises ValueError that names it and its value."""
    value = found[name]
    try:
        return decode(value)
    except _ODD as error:
        shown = repr(value) if len(str(value)) <= _SHOWN else f"a text of {len(str(value))} characters"
        raise ValueError(f"its {name} is {shown}, which means nothing to this version") from error


class Rows(Generic[_T]):
    """The rows of one table; `key` is the column that a row is named by."""

    def __init__(self, database: Database, table: str, key: str, decode: Callable[[sqlite3.Row], _T]) -> None:
        self._database = database
        self._table = table
        self._key = key
        self._decode = decode

    def one(self, query: str, parameters: Parameters = ()) -> _T | None:
        """Return the first row of a query, None where there is none. Raises RowBroken, StoreBroken."""
        found = self._database.read(query, parameters)
        return self.decoded(found[0]) if found else None

    def all(self, query: str, parameters: Parameters = ()) -> tuple[_T, ...]:
        """Return the rows of a query that can be understood. Raises StoreBroken."""
        return self.understood(self._database.read(query, parameters))[0]

    def understood(self, found: Iterable[sqlite3.Row]) -> tuple[tuple[_T, ...], tuple[sqlite3.Row, ...]]:
        """Return what can be understood, and the rows that cannot, of which each is told once."""
        good: list[_T] = []
        odd: list[sqlite3.Row] = []
        for row in found:
            try:
                good.append(self.decoded(row))
            except RowBroken:
                odd.append(row)
        return tuple(good), tuple(odd)

    def decoded(self, found: sqlite3.Row) -> _T:
        """Return the row as a value. Raises RowBroken; it is told the first time."""
        try:
            return self._decode(found)
        except _ODD as error:
            broken = self._broken(found, error)
            self._database.tell_bad_row(f"{self._table} {found[self._key]}", str(broken))
            raise broken from error

    def _broken(self, found: sqlite3.Row, error: Exception) -> RowBroken:
        import shlex

        name, path = str(found[self._key]), self._database.path
        literal = name.replace("'", "''")
        statement = f"DELETE FROM {self._table} WHERE {self._key} = '{literal}'"
        remove = f'"{statement}"' if _PLAIN.fullmatch(name) else shlex.quote(statement)
        return RowBroken(
            f"{path}: the row {name!r} of {self._table} cannot be understood: {error}",
            f"run the version of the-loop that wrote it, or remove it: `sqlite3 {shlex.quote(str(path))} {remove}`",
        )


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
    from core.model.reasons import stored  # rows without any are the most

    return column(found, "reason_args", partial(stored, found["reason"]))
