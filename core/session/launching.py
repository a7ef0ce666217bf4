"""What a start writes for the pane: folders, brief, launcher, tools, and the token of the session's agent.

The token is made anew before each pane, and is in a private file of the session's folder. It is valid for that instance
of that generation: a restart, a stop or a delete ends it, wherever a copy is.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.environment import fingerprints
from core.base.errors import CoreError, InvalidValue
from core.base.files import (
    broken,
    own_folder,
    read_plain,
    read_token,
    remove_file,
    write_private,
)
from core.base.paths import StatePaths, expanded
from core.clients import toolbridge
from core.model.directive import Grant, compose_pointer
from core.model.harness import TOOL_LIST, TOOL_SERVER, Launch, SessionContext
from core.model.session import (
    Definition,
    HoldKind,
    Phase,
    SessionRecord,
    Status,
)
from core.model.tools import EVERY_TOOL, INSTRUCTIONS, SERVER, tools_for
from core.session.folder import GIVEN
from core.session.sessions import Resolved, record_of_instance

if TYPE_CHECKING:
    from core.store.records import Records


_BYTES = 32
_ENDING = frozenset({Phase.STOPPING, Phase.DELETING})
_ENDED = frozenset({HoldKind.STOPPED, HoldKind.FAILED})


class BadToken(CoreError):
    """A caller's token is not that of a session that runs now."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "the token belongs to no session that runs now",
            "each start of a session writes a new token into the file `mcp-token` of its folder, which is valid until "
            "the session ends; connect again with the present one",
        )


def mint_token(paths: StatePaths, record: SessionRecord) -> Path:
    """Write a new token for the record's instance, and return its file. Raises StoreBroken."""
    path = paths.agent_token(record.uid)
    import secrets  # whoever lists sessions gives none a token

    write_private(path, f"{_owner(record)}.{secrets.token_urlsafe(_BYTES)}\n".encode())
    return path


def drop_token(paths: StatePaths, uid: str) -> None:
    """Remove the session's token. Raises StoreBroken."""
    remove_file(paths.agent_token(uid))


def session_of_token(paths: StatePaths, records: Records, token: str) -> SessionRecord:
    """Return the session whose agent carries the token. Raises BadToken, StoreBroken."""
    record = record_of_instance(records, token.partition(".")[0])
    if record is None or record.status is not Status.RUNNING or record.phase in _ENDING:
        raise BadToken
    if record.hold is not None and record.hold.kind in _ENDED:
        raise BadToken
    kept = read_token(paths.agent_token(record.uid)) or ""
    import hmac  # loads OpenSSL

    if not hmac.compare_digest(kept.encode(), token.encode("utf-8", "replace")):
        raise BadToken
    if not kept.startswith(f"{_owner(record)}."):
        raise BadToken
    return record


def _owner(record: SessionRecord) -> str:
    return f"{record.instance_id}.{record.generation}"


LONGEST_BRIEF = 1 << 20  #: bytes
_BREAKS_NO_ROW = r"\033[?7l"  #: DECAWM off: what is written beyond the last column stays in its row


def check_cwd(resolved: Resolved) -> None:
    """Raise InvalidValue for a folder that is not there: tmux would silently start elsewhere."""
    if not (resolved.cwd.is_absolute() and resolved.cwd.is_dir()):
        raise InvalidValue(
            f"{resolved.definition.name}: its folder {resolved.cwd} does not exist",
            "make it, or change the session's cwd",
        )


def read_brief(definition: Definition) -> str:
    """Return the operator's brief, "" where there is none. Raises InvalidValue for a promptFile that cannot be read."""
    if definition.prompt_file is None:
        return definition.prompt or ""
    path = expanded(definition.prompt_file)
    try:
        if not path.is_absolute():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return read_plain(path, LONGEST_BRIEF).decode()
    except OSError as error:
        raise InvalidValue(
            f"{definition.name}: its promptFile {path} cannot be read: {error.strerror}",
            "make it readable, or change the session's promptFile",
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{definition.name}: its promptFile {path} is not UTF-8: {error.reason}", "convert the file"
        ) from error


def write_tools(paths: StatePaths, record: SessionRecord, context: SessionContext) -> None:
    """Write what the session's tools need: their list, what serves them to its harness, and a new token.

    Raises StoreBroken.
    """
    told = {
        "name": SERVER,
        "version": "1",
        "instructions": INSTRUCTIONS,
        "tools": [spec.listed() for spec in EVERY_TOOL],
    }
    write_private(context.folder / TOOL_LIST, json.dumps(told, ensure_ascii=False, indent=2).encode() + b"\n")
    write_private(context.folder / TOOL_SERVER, Path(toolbridge.__file__).read_bytes())
    mint_token(paths, record)


def grants(environ: Mapping[str, str], *, has_thread: bool, has_tools: bool = False) -> tuple[Grant, ...]:
    """Return what a session can call of ours: its tools, and, if the program is on PATH, what reads and speaks."""
    program = shutil.which("the-loop", path=environ.get("PATH", ""))
    commands = _commands(shlex.quote(program), has_thread=has_thread, has_tools=has_tools) if program else ()
    tools = tools_for(has_thread=has_thread) if has_tools else ()
    return (*(Grant(spec.name, spec.gist, tool=True) for spec in tools), *commands)


def _commands(command: str, *, has_thread: bool, has_tools: bool) -> tuple[Grant, ...]:
    """Return the commands; where there are tools, those alone that do what no tool does."""
    looks = (
        Grant(f"{command} standing screen NAME", "what a session's terminal shows"),
        Grant(f"{command} standing logs NAME", "what one showed before it ended, and how it ended"),
        Grant(f"{command} standing queue NAME", "what waits for one of them"),
    )
    if has_tools:
        return looks
    return (
        Grant(f"{command} standing list", "the standing sessions and how they are"),
        Grant(f"{command} standing get NAME", "one of them, whole"),
        *looks,
        Grant(f"{command} standing say NAME --text TEXT", "a message to another session"),
        *_loop_grants(command),
        *(_thread_grants(command) if has_thread else ()),
    )


def _loop_grants(command: str) -> tuple[Grant, ...]:
    return (
        Grant(
            f"{command} loop create --instruction TEXT --interval 5m --keep-alive",
            "a loop: you are prompted with TEXT again and again, until you stop it. That is how work goes on which "
            "outlasts your turn. Without --keep-alive it ends after some days; without --interval it goes on only "
            "where each of its turns schedules the next",
        ),
        Grant(f"{command} loop list", "your loops"),
        Grant(f"{command} loop stop ID --reason TEXT", "the end of one, once its work is done or given up"),
        Grant(f"{command} loop schedule ID --in 10m --reason TEXT", "the next run of one without an interval"),
    )


def _thread_grants(command: str) -> tuple[Grant, ...]:
    return (
        Grant(f"{command} post --text TEXT", "a post in your thread, in the middle of a turn"),
        Grant(f"{command} post --text TEXT --file PATH", "the same with a file out of your folder"),
        Grant(f"{command} ask --question TEXT --option A --option B", "a question in your thread, and its answer"),
    )


def make_folders(context: SessionContext) -> None:
    """Make the session's folder and the instance's spool, both private. Raises StoreBroken."""
    own_folder(context.folder)
    own_folder(context.spool)


def drop_spool(paths: StatePaths, instance: str) -> bool:
    """Remove an earlier instance's spool, and tell whether it is gone. What nobody has taken in stays."""
    try:
        paths.spool_of(instance).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # reports are in it still, or ones that could not be understood: a person may look at them
    return True


def launcher_text(launch: Launch, secrets: tuple[str, ...]) -> str:
    """Return the script that the pane runs: it drops the secrets, sets the terminal up and becomes the harness."""
    drop = f"unset {' '.join(secrets)}\n" if secrets else ""
    setup = f"printf '{_BREAKS_NO_ROW}'\n" if launch.keeps_rows else ""
    return f"#!/bin/sh\n{drop}{setup}exec {shlex.join(launch.argv)}\n"


def write_launcher(context: SessionContext, launch: Launch, secrets: tuple[str, ...]) -> Path:
    """Write the launcher (0700) and return its path. Raises StoreBroken."""
    path = context.folder / "launch"
    write_private(path, launcher_text(launch, secrets).encode(), mode=0o700)
    return path


def write_given(context: SessionContext, given: Mapping[str, str]) -> None:
    """Note which variables of the operator's the program is given, and what tells a change of them. Raises StoreBroken.

    Names and fingerprints, no values.
    """
    write_private(context.folder / GIVEN, json.dumps(fingerprints(given)).encode())


def remove_files(paths: StatePaths, uid: str, instance: str | None) -> None:
    """Remove the session's folder and the instance's spool. Raises StoreBroken."""
    for folder in (paths.session(uid), *([paths.spool_of(instance)] if instance else [])):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise broken(error, folder, "remove the folder") from error


def boot_argument(context: SessionContext, prompt: str, marker: str, limit: int) -> str:
    """Return the argument that carries the boot prompt: itself, or, above `limit` bytes, where to read it.

    Raises StoreBroken if the file cannot be written.
    """
    if len(prompt.encode()) <= limit:
        return prompt
    path = context.folder / "boot-prompt.md"
    write_private(path, prompt.encode())
    return compose_pointer(str(path), marker)


FOLDER = "files"  #: in the session's folder, one folder a message
