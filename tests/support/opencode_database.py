"""A database as OpenCode keeps it, with the tables and columns that the adapter reads (1.18.4 to 1.18.33)."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, cost REAL DEFAULT 0 NOT NULL,
    tokens_input INTEGER DEFAULT 0 NOT NULL, tokens_output INTEGER DEFAULT 0 NOT NULL,
    tokens_reasoning INTEGER DEFAULT 0 NOT NULL, tokens_cache_read INTEGER DEFAULT 0 NOT NULL,
    tokens_cache_write INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE todo (session_id TEXT NOT NULL, content TEXT NOT NULL, status TEXT NOT NULL, priority TEXT NOT NULL,
    position INTEGER NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
"""
BEGAN = 1_796_000_000_000  #: milliseconds: the first message's time


class OpenCodeDatabase:
    """Writes conversations. Each message is a second later than the one before it, and its id sorts by that."""

    def __init__(self, path: Path, session: str = "ses_1") -> None:
        self.path, self.session = path, session
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(_SCHEMA)
            database.execute("INSERT INTO session (id) VALUES (?)", (session,))

    def run(self, query: str, *values: Any) -> None:
        """Change something."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(query, values)

    def user(self, text: str) -> str:
        """Add what a person said, and return its id."""
        return self.says(self._message({"role": "user"}, []), text)

    def unsaid(self) -> str:
        """Add the row of a message whose text is still to come, and return its id."""
        return self._message({"role": "user"}, [])

    def says(self, id: str, text: str) -> str:
        """Add the text of a message, and return its id."""
        part = json.dumps({"type": "text", "text": text})
        self.run("INSERT INTO part VALUES (?, ?, ?, 1, 1, ?)", f"prt_{id}", id, self.session, part)
        return id

    def answer(
        self,
        parent: str,
        text: str = "",
        finish: str = "stop",
        *,
        error: dict[str, Any] | None = None,
        parts: tuple[dict[str, Any], ...] = (),
        **more: Any,
    ) -> str:
        """Add an answer, and return its id; `finish`: "" for one that runs."""
        content: dict[str, Any] = {"role": "assistant", "parentID": parent, **more}
        if error:
            content["error"] = error
        if finish:
            content["finish"] = finish
        return self._message(content, [*parts, {"type": "text", "text": text}], over=bool(finish or error))

    def ends(self, id: str, finish: str) -> None:
        """Let an answer that runs end so."""
        query = "UPDATE message SET data = json_set(data, '$.finish', ?, '$.time.completed', ?) WHERE id = ?"
        self.run(query, finish, BEGAN + 1000 * self._count, id)

    def _message(self, content: dict[str, Any], parts: list[dict[str, Any]], *, over: bool = False) -> str:
        self._count += 1
        at = BEGAN + 1000 * self._count
        id = f"msg_{self._count:04}"
        content["time"] = {"created": at, **({"completed": at + 500} if over else {})}
        self.run("INSERT INTO message VALUES (?, ?, ?, ?, ?)", id, self.session, at, at, json.dumps(content))
        for number, part in enumerate(parts):
            name = f"prt_{self._count:04}_{number}"
            self.run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", name, id, self.session, at, at, json.dumps(part))
        return id
