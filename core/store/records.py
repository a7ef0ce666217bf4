"""The sessions' records: one JSON file each. Every command reads them, so nothing heavy is imported here.

The definition's fields are on the same level as the others. A missing field decodes to its default. A field that this
release does not know is kept in `extra` and written back, also inside `idle`, `hold`, `lastExit`, `fresh`, `history`
and each chat of `chat`.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from core.base.clock import SystemClock, from_iso, iso
from core.base.errors import InvalidValue, RecordUnreadable
from core.base.files import broken, private_folder, read_plain, remove_file, write_private
from core.base.names import check_name
from core.base.paths import StatePaths
from core.base.text import duration_text, parse_duration
from core.model import oldchat
from core.model.session import (
    ChatBinding,
    Definition,
    Fresh,
    Hold,
    HoldKind,
    Idle,
    LastExit,
    Left,
    Phase,
    Restart,
    SessionRecord,
    Status,
    Thread,
    stated,
)

VERSION = 1
_ID = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
)  # uid and instance name folders: nothing in them may lead elsewhere
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")  # names a file of the harness's
_MOST = 2**31 - 1  #: the database's integers end at 2**63 - 1, and a generation is counted on
_E = TypeVar("_E", bound=Enum)
_MISSING: Any = object()


class Malformed(ValueError):
    """The text is no record that this release understands; the message says why, in a few words."""


def encode_record(record: SessionRecord) -> bytes:
    """Return the record as JSON text with a newline at its end, ASCII alone so that no text can break it."""
    known = _encode(record)
    for key, unchanged in (("hold", _hold), ("lastExit", _last_exit), ("fresh", _fresh)):
        kept = record.extra.get(key)
        if kept is not None and known[key] is not None and unchanged(kept) == unchanged(known[key]):
            known[key] = kept
    known["history"] = [_with_more(entry, record.extra.get("history", ())) for entry in known["history"]]
    known["idle"] = {**record.extra.get("idle", {}), **known["idle"]}
    more = record.extra.get("chat", {})
    kinds = sorted({*more, *known["chat"]})
    known["chat"] = {kind: {**more.get(kind, {}), **known["chat"].get(kind, {})} for kind in kinds}
    rest = {key: value for key, value in record.extra.items() if key not in known}
    return (json.dumps({**known, **rest}, indent=2) + "\n").encode()


def decode_record(data: bytes, name: str) -> SessionRecord:
    """Return the record that the text of `<name>.json` describes. Raises Malformed."""
    fields = _Fields(_object(data))
    version = fields.number("version", VERSION, least=1)
    if version > VERSION:
        raise Malformed(
            f"a newer release wrote it (version {version}; this release reads up to {VERSION}): upgrade the-loop"
        )
    if (named := fields.text("name")) != name:
        raise Malformed(f"it names {named!r}, and its file belongs to {name!r}")
    return SessionRecord(
        name=name,
        uid=fields.identifier("uid"),
        definition=_definition(fields, name),
        created_at=fields.moment("createdAt"),
        version=version,
        generation=fields.number("generation", 1, least=1, most=_MOST),
        instance_id=fields.identifier("instanceId", None),
        harness_session_id=fields.identifier("harnessSessionId", None, _SESSION_ID),
        fresh=_fresh(fields.take("fresh", None)),
        history=tuple(_left(entry) for entry in fields.objects("history")),
        harness_in_use=fields.text("harnessInUse", ""),
        status=fields.member("status", Status, Status.STOPPED),
        phase=fields.member("phase", Phase, Phase.SETTLED),
        hold=_hold(fields.take("hold", None)),
        started_at=fields.moment("startedAt", None),
        last_message_at=fields.moment("lastMessageAt", None),
        thread=_thread(fields),
        last_exit=_last_exit(fields.take("lastExit", None)),
        declared=fields.flag("declared", False),
        extra=_unknown(fields),
    )


def _encode(record: SessionRecord) -> dict[str, Any]:
    definition = record.definition
    args = definition.harness_args
    return {
        "version": record.version,
        "uid": record.uid,
        "name": record.name,
        "generation": record.generation,
        "description": definition.description,
        "harness": definition.harness,
        "harnessArgs": None if args is None else list(args),
        "cwd": definition.cwd,
        "prompt": definition.prompt,
        "promptFile": definition.prompt_file,
        "autoStart": definition.auto_start,
        "restart": definition.restart.value,
        "idle": {"stopAfter": definition.idle.stop_after and duration_text(definition.idle.stop_after)},
        "declared": record.declared,
        "chat": {kind: _encode_chat(binding) for kind, binding in definition.chat.items()},
        "instanceId": record.instance_id,
        "harnessSessionId": record.harness_session_id,
        "fresh": record.fresh and {"id": record.fresh.id, "returnsTo": record.fresh.returns_to},
        "history": [_encode_left(left) for left in record.history],
        "harnessInUse": record.harness_in_use,
        "status": record.status.value,
        "phase": record.phase.value,
        "hold": _encode_hold(record.hold),
        "createdAt": iso(record.created_at),
        "startedAt": _iso(record.started_at),
        "lastMessageAt": _iso(record.last_message_at),
        "thread": record.thread and _encode_thread(record.thread),
        "lastExit": record.last_exit and {"status": record.last_exit.status, "signal": record.last_exit.signal},
    }


def _encode_left(left: Left) -> dict[str, Any]:
    return {"id": left.id, "harness": left.harness, "reason": left.reason, "at": iso(left.at)}


def _with_more(entry: dict[str, Any], kept: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return an entry of the history as a newer release wrote it, if it is still the same."""
    return next((more for more in kept if _left(more) == _left(entry)), entry)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _encode_hold(hold: Hold | None) -> dict[str, Any] | None:
    if hold is None:
        return None
    return {
        "kind": hold.kind.value,
        "policy": hold.policy,
        "by": hold.by,
        "reason": hold.reason,
        "at": iso(hold.at),
    }


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
        # Half of a character is JSON, and no text: neither a terminal nor a database takes it.
        if b"\\ud" in data.lower():
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            value = json.loads(whole)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise Malformed(f"it is {_kind(value)}, not an object")
    return value


def _definition(fields: "_Fields", name: str) -> Definition:
    return Definition(
        name=name,
        description=fields.text("description", ""),
        harness=fields.text("harness", ""),
        harness_args=fields.texts("harnessArgs"),
        cwd=fields.text("cwd", ""),
        prompt=fields.text("prompt", None),
        prompt_file=fields.text("promptFile", None),
        auto_start=fields.flag("autoStart", True),
        restart=fields.member("restart", Restart, Restart.NEVER),
        idle=_idle(fields.nested("idle")),
        chat=stated({kind: _chat(kind, chat) for kind, chat in _chats(fields).items()}),
    )


def _chats(fields: "_Fields") -> dict[str, Any]:
    """Return what the record says of each chat; one of an earlier release has the block of the one chat there was."""
    earlier = fields.nested(oldchat.KIND)
    return {**({oldchat.KIND: earlier} if earlier else {}), **fields.nested("chat")}


def _chat(kind: str, value: Any) -> ChatBinding:
    prefix = f"chat.{kind}"
    fields = _Fields(_mapping(value, prefix), f"{prefix}.")
    return ChatBinding(
        fields.flag("enabled", False),
        fields.text("channel", ""),
        fields.texts("authorizedUsers"),
        fields.text("thread", ""),
    )


def _encode_chat(binding: ChatBinding) -> dict[str, Any]:
    users = binding.authorized_users
    listed = {} if users is None else {"authorizedUsers": list(users)}
    thread = {"thread": binding.thread} if binding.thread else {}
    return {"enabled": binding.enabled, "channel": binding.channel, **listed, **thread}


def _thread(fields: "_Fields") -> Thread | None:
    """Return the copy of the thread; a record of an earlier release has it in two fields of its own."""
    earlier = fields.text(oldchat.CHANNEL, None), fields.text(oldchat.THREAD, None)
    value = fields.take("thread", None)
    if value is None:
        return Thread(oldchat.KIND, *earlier) if all(earlier) else None
    inner = _Fields(_mapping(value, "thread"), "thread.")
    return Thread(inner.text("chat"), inner.text("channel"), inner.text("thread"))


def _encode_thread(thread: Thread) -> dict[str, Any]:
    return {"chat": thread.kind, "channel": thread.channel, "thread": thread.thread}


def _idle(value: dict[str, Any]) -> Idle:
    return Idle(_Fields(value, "idle.").span("stopAfter")) if value.get("stopAfter") is not None else Idle()


def _hold(value: Any) -> Hold | None:
    if value is None:
        return None
    fields = _Fields(_mapping(value, "hold"), "hold.")
    return Hold(
        kind=fields.member("kind", HoldKind),
        by=fields.text("by", ""),
        reason=fields.text("reason", ""),
        at=fields.moment("at"),
        policy=fields.choice("policy", ("soft", "hard"), "hard"),
    )


def _last_exit(value: Any) -> LastExit | None:
    if value is None:
        return None
    fields = _Fields(_mapping(value, "lastExit"), "lastExit.")
    return LastExit(fields.number("status", None), fields.number("signal", None))


def _fresh(value: Any) -> Fresh | None:
    if value is None:
        return None
    fields = _Fields(_mapping(value, "fresh"), "fresh.")
    return Fresh(
        fields.identifier("id", None, _SESSION_ID),
        fields.identifier("returnsTo", None, _SESSION_ID),
    )


def _left(value: dict[str, Any]) -> Left:
    fields = _Fields(value, "history.")
    return Left(
        id=fields.identifier("id", grammar=_SESSION_ID),
        harness=fields.text("harness", ""),
        reason=fields.text("reason", ""),
        at=fields.moment("at"),
    )


_NESTED = {
    "idle": {"stopAfter"},
    "hold": {"kind", "policy", "by", "reason", "at"},
    "lastExit": {"status", "signal"},
    "fresh": {"id", "returnsTo"},
}
_CHAT = {"enabled", "channel", "authorizedUsers", "thread"}
_LEFT = {"id", "harness", "reason", "at"}


def _unknown(fields: "_Fields") -> dict[str, Any]:
    """Return what this release does not know: whole fields, and what `idle` and each chat have beside ours.

    A hold, exit or conversation with more in it is kept whole: it is written back for as long as our part is the same.
    """
    extra = {key: value for key, value in fields.values.items() if key not in fields.asked}
    for key, known in _NESTED.items():
        nested = fields.values.get(key)
        if nested and (more := {inner: value for inner, value in nested.items() if inner not in known}):
            extra[key] = more if key == "idle" else nested
    chats = {kind: chat.items() for kind, chat in _chats(fields).items()}
    beside = {kind: {key: value for key, value in chat if key not in _CHAT} for kind, chat in chats.items()}
    if more_of := {kind: more for kind, more in beside.items() if more}:
        extra["chat"] = more_of
    if more_left := [entry for entry in fields.values.get("history", ()) if entry.keys() - _LEFT]:
        extra["history"] = more_left
    return extra


def _mapping(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{key} is {_kind(value)}, not an object")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


class _Fields:
    """The fields of one object, each taken with the type it must have; remembers what was asked for."""

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self.values = values
        self.asked: set[str] = set()
        self._prefix = prefix

    def take(self, key: str, default: Any = _MISSING) -> Any:
        self.asked.add(key)
        value = self.values.get(key, default)
        if value is _MISSING:
            raise Malformed(f"{self._prefix}{key} is missing")
        return value

    def _expect(self, key: str, default: Any, what: str, *types: type) -> Any:
        value = self.take(key, default)
        if key not in self.values or (value is None and default is None) or type(value) in types:
            return value
        raise Malformed(f"{self._prefix}{key} is {_kind(value)}, not {what}")

    def text(self, key: str, default: Any = _MISSING) -> Any:
        return self._expect(key, default, "a text", str)

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._expect(key, default, "true or false", bool))

    def nested(self, key: str) -> dict[str, Any]:
        return _mapping(self.take(key, {}), self._prefix + key)

    def objects(self, key: str) -> list[dict[str, Any]]:
        value = self._expect(key, [], "a list", list)
        return [_mapping(item, f"{self._prefix}{key}") for item in value]

    def number(self, key: str, default: Any, *, least: int | None = None, most: int | None = None) -> Any:
        value = self._expect(key, default, "a whole number", int)
        if least is not None and value is not None and value < least:
            raise Malformed(f"{self._prefix}{key} is {value}, and must be at least {least}")
        if most is not None and value is not None and value > most:
            raise Malformed(f"{self._prefix}{key} is above {most}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self._expect(key, None, "a list of texts", list)
        if value is None:
            return None
        if not all(isinstance(item, str) for item in value):
            raise Malformed(f"{self._prefix}{key} holds something that is not a text")
        return tuple(value)

    def identifier(self, key: str, default: Any = _MISSING, grammar: re.Pattern[str] = _ID) -> Any:
        value = self.text(key, default)
        if value is not None and not grammar.fullmatch(value):
            raise Malformed(f"{self._prefix}{key} is {value!r}, which is no id")
        return value

    def moment(self, key: str, default: Any = _MISSING) -> Any:
        value = self.text(key, default)
        try:
            return value if value is None else from_iso(value)
        except (ValueError, OverflowError) as error:
            raise Malformed(f"{self._prefix}{key} is {value!r}, which is no time in ISO 8601 with a zone") from error

    def span(self, key: str) -> timedelta | None:
        value = self.text(key, None)
        try:
            return None if value is None else parse_duration(value)
        except ValueError as error:
            raise Malformed(f"{self._prefix}{key} is {value!r}, and must be {error}") from error

    def choice(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.text(key, default)
        if value not in allowed:
            raise Malformed(f"{self._prefix}{key} is {value!r}; allowed: {', '.join(allowed)}")
        return str(value)

    def member(self, key: str, kind: type[_E], default: Any = _MISSING) -> _E:
        value = self.text(key, default)
        try:
            return kind(value)
        except ValueError as error:
            allowed = ", ".join(str(member.value) for member in kind)
            raise Malformed(f"{self._prefix}{key} is {value!r}; allowed: {allowed}") from error


_SUFFIX = ".json"
_LONGEST = 1 << 22  #: bytes; briefs are the longest part of a record
_TICK_SECONDS = 0.1  #: longer than a file system's clock stands still
_State = tuple[int, int, int, int, int]  #: device, inode, size, times of the content and of the inode


class Records:
    """One file a session. Writes need the session's lock; reads need none.

    A file that cannot be understood is neither replaced nor removed.
    """

    def __init__(self, paths: StatePaths) -> None:
        self._folder = paths.records
        self._prefix = f"{paths.records}{os.sep}"
        self._last: dict[str, tuple[_State, SessionRecord]] = {}  #: what each file held when it was read last

    def read(self, name: str) -> SessionRecord | None:
        """Return the record, or None if there is none. Raises RecordUnreadable, InvalidValue."""
        path = f"{self._prefix}{check_name(name)}{_SUFFIX}"
        try:
            state = _state(os.lstat(path))
            known = self._last.get(name)
            if known is not None and known[0] == state:
                return known[1]
            record = decode_record(read_plain(path, _LONGEST), name)
            if _rests(state):
                self._last[name] = (state, record)
            return record
        except FileNotFoundError:
            self._last.pop(name, None)
            return None
        except (Malformed, OSError) as error:
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise RecordUnreadable(name, path, reason) from error

    def all(self) -> tuple[SessionRecord | RecordUnreadable, ...]:
        """Return every record by name, unreadable ones as the error. Raises StoreBroken if the folder cannot be listed.

        A file whose name is no session's is nobody's record.
        """
        found = (self._read_or_error(name) for name in self._names())
        return tuple(record for record in found if record is not None)

    def write(self, record: SessionRecord) -> None:
        """Replace the file in one step. Raises StoreBroken, and RecordUnreadable rather than overwrite such a file."""
        path = self._path(record.name)
        private_folder(self._folder)
        self.read(record.name)
        write_private(path, encode_record(record))

    def remove(self, name: str) -> None:
        """Remove the file; absent is fine. Raises StoreBroken, and RecordUnreadable rather than remove such a file."""
        if self.read(name) is not None:
            remove_file(self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / (check_name(name) + _SUFFIX)

    def _names(self) -> list[str]:
        try:
            files = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise broken(error, self._folder, "list the records") from error
        return sorted(name for file in files if file.endswith(_SUFFIX) and _is_name(name := file.removesuffix(_SUFFIX)))

    def _read_or_error(self, name: str) -> SessionRecord | RecordUnreadable | None:
        try:
            return self.read(name)
        except RecordUnreadable as error:
            return error


def _state(found: os.stat_result) -> _State:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _rests(state: _State) -> bool:
    """Return whether a file of that state would show by its times that it was changed since: they go by ticks."""
    return SystemClock().now().timestamp() - max(state[3], state[4]) / 1e9 > _TICK_SECONDS


def _is_name(text: str) -> bool:
    try:
        return check_name(text) == text
    except InvalidValue:
        return False
