"""What a start writes for the pane: folders, brief, launcher, tools and token; files of messages; conversations.

- The token by which a session's agent is known to its tools is made anew before each pane, and is in a private file of
  the session's folder. It is valid for that instance of that generation: a restart, a stop or a delete ends it,
  wherever a copy is.
- A message with files is committed before any file is fetched, and waits. If a process dies meanwhile, the next one
  fetches again. Files are kept in the session's folder and named in the message's text.
- Which conversation the next start takes up, according to the harness that it belongs to.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.environment import fingerprints
from core.base.errors import CoreError, InvalidValue, Refused, UnknownMessage, UnsupportedHarness
from core.base.files import (
    broken,
    own_folder,
    private_folder,
    read_plain,
    read_token,
    remove_file,
    write_private,
)
from core.base.names import new_message_id
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.clients import toolbridge
from core.model.directive import Grant, compose_pointer
from core.model.harness import TOOL_LIST, TOOL_SERVER, Harness, Launch, SessionContext
from core.model.message import WAITING, Fetched, MessageState, safe_name, shown_name, told
from core.model.posts import NewPost, OutboundKind
from core.model.session import (
    Candidate,
    Definition,
    HoldKind,
    Phase,
    SessionRecord,
    Status,
    begun,
    candidates,
    had_turn,
    taken_up,
)
from core.model.tools import EVERY_TOOL, INSTRUCTIONS, SERVER, tools_for
from core.session.folder import GIVEN, context_of
from core.session.sessions import Resolved, record_of_instance, resolve_record
from core.session.system import System

if TYPE_CHECKING:
    pass


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
    import secrets  # whoever lists sessions gives none a token

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
    if not resolved.cwd.is_dir():
        raise InvalidValue(
            f"{resolved.definition.name}: its folder {resolved.cwd} does not exist",
            "make it, or change the session's cwd",
        )


def read_brief(definition: Definition) -> str:
    """Return the operator's brief, "" where there is none. Raises InvalidValue for a promptFile that cannot be read."""
    if definition.prompt_file is None:
        return definition.prompt or ""
    path = Path(definition.prompt_file).expanduser()
    try:
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


def keep_file(system: System, message_id: str, position: int, name: str, data: bytes) -> str:
    """Write a file (0600) under a name that the chat's cannot harm, and return its path. Raises StoreBroken."""
    row = system.inbox.get(message_id)
    if row is None:
        raise UnknownMessage(message_id)
    if row.state not in WAITING:
        raise Refused(f"message {message_id} waits for no files: it is {row.state.value}", "nothing is to be done")
    path = system.paths.session(row.message.uid) / FOLDER / message_id / safe_name(name, position)
    private_folder(path.parent)
    write_private(path, data)
    return str(path)


def fetched(system: System, message_id: str, files: Sequence[Fetched]) -> None:
    """Let the message go on, its text naming each file or why it is missing; done again it changes nothing.

    A file that is missing is told in the thread, too. Raises StoreBroken.
    """
    lines = told(files)
    with system.database.transaction(durable=True):
        if not system.inbox.tell_files(message_id, lines):
            return
        row = system.inbox.get(message_id)
        if row is None or row.state not in WAITING:
            return
        from core.model.reasons import Reason  # whoever lists sessions launches none

        text = "\n".join(filter(None, (row.message.text, lines)))
        try:
            edited = system.inbox.edit(row, text)
            why = None if edited.reason is Reason.FETCHING else edited.because
            system.inbox.advance(edited, MessageState.QUEUED, why)
        except Refused:
            return  # cancelled by another process meanwhile
        missing = [file for file in files if file.problem]
        address = row.message.address
        if missing and address is not None:
            system.outbox.add([_note(row.message.uid, row.message.name, address.channel, address.thread, missing,
                                     address.channel_kind, message_id)])  # fmt: skip
    system.notify()


def _note(
    uid: str, name: str, channel: str, thread: str, missing: Sequence[Fetched], kind: str, message_id: str
) -> NewPost:
    told = "; ".join(f"{shown_name(file.attachment)}: {file.problem}" for file in missing)
    return NewPost(
        id=f"p-files-{new_message_id()}",
        key=f"files:{message_id}",
        kind=OutboundKind.NOTE,
        uid=uid,
        name=name,
        channel_kind=kind,
        text=f"`{name}` does not get all of your message. What could not be read: {told}. The rest of it goes in.",
        channel=channel,
        thread=thread,
        about=message_id,
    )


@dataclass(frozen=True)
class Taken:
    """The record whose next pane is in this conversation, which is resumed or begun anew."""

    record: SessionRecord
    resumed: bool
    returned: bool = False  #: resumed once more, after one that was begun in its place and has had no turn


@dataclass(frozen=True)
class _Choice:
    """Take `resumed` up, or begin anew in the place of `lost` for that reason."""

    resumed: Candidate | None = None
    lost: Candidate | None = None  #: None: nothing had been said
    reason: str = ""


def settled_conversation(system: System, record: SessionRecord) -> SessionRecord:
    """Return the record with its latest pane's conversation as the session's, if that has had a turn.

    Raises TrustFailed where its harness's own record cannot be read.
    """
    if record.fresh is None:
        return record
    resolved = resolve_record(record, system.settings)
    try:
        harness = system.harnesses.get(resolved.harness)
    except UnsupportedHarness:
        return record  # nobody can tell; what went before it is kept
    answered = harness.answered(context_of(system.paths, record, resolved, record.instance_id or ""))
    return had_turn(record) if answered else record


def came_up(system: System, record: SessionRecord) -> SessionRecord:
    """Return the record of a pane that is up: a harness that cannot tell of turns has its conversation from now on."""
    if record.fresh is None:
        return record
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    return record if harness.traits.evidence else had_turn(record)


def take_conversation(
    system: System, record: SessionRecord, resolved: Resolved, harness: Harness, actor: str, gave_up: str
) -> Taken:
    """Return the record with the conversation that its next pane is in, and tell where an old one is not taken up.

    `gave_up`: how the harness ended when it was to resume it, "" where it was not asked yet. Raises TrustFailed.
    """
    before, now = settled_conversation(system, record), system.clock.now()
    choice = _choose(system, before, resolved, harness)
    if gave_up and choice.resumed is not None:
        choice = _Choice(lost=choice.resumed, reason=f"its program ended instead of taking it up ({gave_up})")
    if choice.resumed is not None:
        after = taken_up(before, choice.resumed, resolve_record(before, system.settings).harness, now)
        returned = before.fresh is not None and after.fresh is None
        return Taken(replace(after, harness_in_use=resolved.harness), resumed=True, returned=returned)
    if choice.lost is not None:
        _say_lost(system, before, choice.lost, choice.reason, actor)
    after = begun(before, harness.new_session_id(), choice.lost, choice.reason, now, keeps=bool(gave_up))
    return Taken(replace(after, harness_in_use=resolved.harness), resumed=False)


def _choose(system: System, record: SessionRecord, resolved: Resolved, harness: Harness) -> _Choice:
    """Return which of the record's conversations this harness can resume, or why it can resume none.

    One that has had no turn is tried where the harness's own records may hold what was said to it.
    """
    refused: _Choice | None = None
    for candidate in candidates(record, resolve_record(record, system.settings).harness):
        if not (candidate.had_turn or harness.traits.evidence):
            continue
        reason = _obstacle(system, record, resolved, harness, candidate)
        if not reason:
            return _Choice(resumed=candidate)
        refused = refused or _Choice(lost=candidate if candidate.had_turn else None, reason=reason)
    return refused or _Choice()


def _obstacle(system: System, record: SessionRecord, resolved: Resolved, harness: Harness, candidate: Candidate) -> str:
    if not system.settings.routing.tmux.resume_on_respawn:
        return "routing.tmux.resumeOnRespawn is false"
    if candidate.harness != resolved.harness:
        return f"its harness is {resolved.harness} now, and was {candidate.harness}"
    context = context_of(system.paths, record, resolved, record.instance_id or "", candidate.id)
    if harness.resumable(context):
        return ""
    before = resolve_record(record, system.settings).cwd
    moved = f", and its cwd was {before}" if before != resolved.cwd else ""
    return harness.missing(context) + moved


def _say_lost(system: System, record: SessionRecord, lost: Candidate, reason: str, actor: str) -> None:
    system.events.emit(
        "standing.resume_failed",
        level="warning",
        name=record.name,
        actor=actor,
        instance=record.instance_id,
        generation=record.generation,
        reason=f"{reason}; the old id was {lost.id}",
        detail=lost.id,
    )
