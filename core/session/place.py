"""A session's folder as its harness's adapter sees it, and the small files in it by which the session is held.

They concern a program that lives: after a crash of the machine none does, so that they are not synced to the disk.
Every command that speaks to a session looks here, so nothing heavy is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.domain.harness import SessionContext
from core.store.files import is_file, is_there, own_folder, remove_file, write_private

if TYPE_CHECKING:
    from core.domain.session import SessionRecord
    from core.paths import StatePaths
    from core.session.sessions import Resolved

HOLD, ASKING, TOOL = "hold", "asking", "tool"
INPUT_LINE = "input-line"  #: there once the instance's input line was seen on its screen
REPORTER = "report"  #: the program that the hooks run


def context_of(
    paths: StatePaths, record: SessionRecord, resolved: Resolved, instance: str, conversation: str | None = None
) -> SessionContext:
    """Return the instance as the harness's adapter sees it; `conversation`: in another than that of the latest pane."""
    return SessionContext(
        name=record.name,
        uid=record.uid,
        instance=instance,
        cwd=resolved.cwd,
        folder=paths.session(record.uid),
        spool=paths.spool_of(instance),
        poke=paths.poke,
        args=resolved.args,
        session_id=conversation or record.conversation,
    )


def set_hold_file(paths: StatePaths, uid: str) -> None:
    """Make the file that blocks turns born inside the harness. Raises StoreBroken."""
    own_folder(paths.session(uid))
    write_private(paths.session(uid) / HOLD, b"", durable=False)


def has_hold_file(paths: StatePaths, uid: str) -> bool:
    """Tell whether that file is there. Raises StoreBroken."""
    return is_file(paths.session(uid) / HOLD)


def clear_hold_file(paths: StatePaths, uid: str) -> None:
    """Remove that file. Raises StoreBroken."""
    remove_file(paths.session(uid) / HOLD, durable=False)


def check_files(paths: StatePaths, name: str, uid: str) -> None:
    """Raise StoreBroken where something else stands in the place of a file without which no message is moved."""
    for path in (paths.locks / name, paths.session(uid) / HOLD, paths.session(uid) / ASKING):
        is_file(path)


def note_input_line(paths: StatePaths, uid: str) -> None:
    """Note that the live instance's input line was seen. Raises StoreBroken."""
    write_private(paths.session(uid) / INPUT_LINE, b"", durable=False)


def has_input_line(paths: StatePaths, uid: str) -> bool:
    """Return whether it was. Raises StoreBroken."""
    return is_there(paths.session(uid) / INPUT_LINE)


def clear_flags(paths: StatePaths, uid: str, *, held: bool) -> None:
    """Remove what an earlier instance left, and `hold` where nothing holds it. Raises StoreBroken."""
    for name in (ASKING, TOOL, INPUT_LINE, *(() if held else (HOLD,))):
        remove_file(paths.session(uid) / name, durable=False)
