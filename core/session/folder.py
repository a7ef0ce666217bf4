"""The small files of a session's folder: what holds its turns, what its pane has shown, what its program was given.

The files that hold a session concern a live program. After a crash of the machine there is none, so they are not synced
to the disk. Every command that lists sessions asks for some of them, so nothing heavy is imported here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.environment import chosen, differences, fingerprints
from core.base.files import (
    is_file,
    is_there,
    open_plain,
    own_folder,
    remove_file,
    write_private,
)
from core.base.names import INSTANCE_VARIABLE
from core.base.paths import StatePaths
from core.base.processes import is_running, running_since
from core.config.settings import secret_variables

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.model.harness import SessionContext
    from core.model.session import SessionRecord
    from core.session.sessions import Resolved


_MOST_BYTES = 1 << 20
GIVEN = "environment"  #: in a session's folder: its program's variables, by name, with their fingerprints


def fingerprints_now(settings: Settings, environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return what a start by this process would give; None inside of a session, whose agent starts nothing."""
    if INSTANCE_VARIABLE in environ:
        return None
    return fingerprints(chosen(environ, secret_variables(settings, environ)))


def given_otherwise(paths: StatePaths, uid: str, now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that a start would change, be it to another value, to one, or to none.

    () where nobody noted what the program was given: an earlier release started it.
    """
    try:
        with open_plain(paths.text_of_session(uid, GIVEN)) as stream:
            before = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ()
    return differences(before, now) if isinstance(before, dict) else ()


LONGEST_OUTPUT = 1 << 26  #: bytes of what is kept of a screen and its history


def output_path(paths: StatePaths, uid: str) -> Path:
    """Where the last of an ended instance's screen is kept."""
    return paths.of_session(uid, "last-output")


def save_output(paths: StatePaths, uid: str, text: str) -> None:
    """Keep the last of a screen; a stop of many sessions does not wait for the disk for it. Raises StoreBroken."""
    own_folder(paths.session(uid))
    write_private(output_path(paths, uid), text.encode("utf-8", "replace"), durable=False)


STARTER = "starter"  #: in a session's folder: the process that started it last, by its pid and when it began


def note_starter(paths: StatePaths, uid: str) -> None:
    """Note that this process starts the session. Raises StoreBroken."""
    own_folder(paths.session(uid))
    told = f"{os.getpid()} {running_since(os.getpid()) or ''}"
    write_private(paths.of_session(uid, STARTER), told.encode(), durable=False)


def has_starter(paths: StatePaths, uid: str) -> bool:
    """Return whether the process lives that started the session last; what nobody can read names none."""
    try:
        with open_plain(paths.of_session(uid, STARTER)) as stream:
            pid, _, began = stream.read(100).decode("ascii", "replace").partition(" ")
    except OSError:
        return False
    return pid.isdecimal() and is_running(int(pid), began.strip())


HOLD, ASKING, TOOL = "hold", "asking", "tool"
INPUT_LINE = "input-line"  #: there once the instance's input line was seen on its screen
REPORTER = "report"  #: the program that the hooks run


def context_of(
    paths: StatePaths, record: SessionRecord, resolved: Resolved, instance: str, conversation: str | None = None
) -> SessionContext:
    """Return the instance as the harness's adapter sees it; `conversation`: in another than that of the latest pane."""
    from core.model.harness import SessionContext  # a list asks none

    return SessionContext(
        name=record.name,
        uid=record.uid,
        instance=instance,
        cwd=resolved.cwd,
        folder=paths.session(record.uid),
        spool=paths.spool_of(instance),
        notify=paths.notify,
        args=resolved.args,
        session_id=conversation or record.conversation,
    )


def set_hold_file(paths: StatePaths, uid: str) -> None:
    """Make the file that blocks turns born inside the harness. Raises StoreBroken."""
    own_folder(paths.session(uid))
    write_private(paths.of_session(uid, HOLD), b"", durable=False)


def has_hold_file(paths: StatePaths, uid: str) -> bool:
    """Return whether that file is there. Raises StoreBroken."""
    return is_file(paths.of_session(uid, HOLD))


def clear_hold_file(paths: StatePaths, uid: str) -> None:
    """Remove that file. Raises StoreBroken."""
    remove_file(paths.of_session(uid, HOLD), durable=False)


def check_files(paths: StatePaths, name: str, uid: str) -> None:
    """Raise StoreBroken where something else stands in the place of a file without which no message is moved."""
    for path in (paths.text_of_lock(name), paths.text_of_session(uid, HOLD), paths.text_of_session(uid, ASKING)):
        is_file(path)


def note_input_line(paths: StatePaths, uid: str) -> None:
    """Note that the live instance's input line was seen. Raises StoreBroken."""
    write_private(paths.of_session(uid, INPUT_LINE), b"", durable=False)


def has_input_line(paths: StatePaths, uid: str) -> bool:
    """Return whether it was. Raises StoreBroken."""
    return is_there(paths.of_session(uid, INPUT_LINE))


def clear_flags(paths: StatePaths, uid: str, *, held: bool) -> None:
    """Remove what an earlier instance left, and `hold` where nothing holds it. Raises StoreBroken."""
    for name in (ASKING, TOOL, INPUT_LINE, *(() if held else (HOLD,))):
        remove_file(paths.of_session(uid, name), durable=False)
