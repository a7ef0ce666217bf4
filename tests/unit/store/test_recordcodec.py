"""Records as JSON text."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from core.store.records import Malformed, decode_record, encode_record
from tests.unit.store.samples import NOON, a_record

_texts = st.text(max_size=20)
_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
_moments = st.integers(0, 2**53).map(lambda us: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us))
_maybe_number = st.none() | st.integers(0, 255)
_bindings = st.builds(ChatBinding, st.booleans(), _texts, st.none() | st.lists(_texts, max_size=2).map(tuple))
_definitions = st.builds(
    Definition,
    name=st.just("scribe"),
    description=_texts,
    harness=_texts,
    harness_args=st.none() | st.lists(_texts, max_size=3).map(tuple),
    cwd=_texts,
    prompt=st.none() | _texts,
    prompt_file=st.none() | _texts,
    auto_start=st.booleans(),
    restart=st.sampled_from(Restart),
    idle=st.builds(Idle, st.none() | st.integers(1, 10**7).map(lambda seconds: timedelta(seconds=seconds))),
    chat=st.dictionaries(_texts, _bindings, max_size=2).map(stated),
)
_holds = st.builds(
    Hold, st.sampled_from(HoldKind), by=_texts, reason=_texts, at=_moments, policy=st.sampled_from(["soft", "hard"])
)
_json = st.recursive(st.none() | st.booleans() | st.integers() | _texts, lambda inner: st.lists(inner, max_size=2))
_conversations = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True)
_records = st.builds(
    SessionRecord,
    name=st.just("scribe"),
    uid=_ids,
    definition=_definitions,
    created_at=_moments,
    generation=st.integers(1, 1000),
    instance_id=st.none() | _ids,
    harness_session_id=st.none() | _conversations,
    fresh=st.none() | st.builds(Fresh, st.none() | _conversations, st.none() | _conversations),
    history=st.lists(st.builds(Left, _conversations, _texts, _texts, _moments), max_size=3).map(tuple),
    harness_in_use=_texts,
    status=st.sampled_from(Status),
    phase=st.sampled_from(Phase),
    hold=st.none() | _holds,
    started_at=st.none() | _moments,
    last_message_at=st.none() | _moments,
    thread=st.none() | st.builds(Thread, _texts, _texts, _texts),
    last_exit=st.none() | st.builds(LastExit, _maybe_number, _maybe_number),
    declared=st.booleans(),
    extra=st.dictionaries(_texts.map("new".__add__), _json, max_size=3),
)


def _text(**changes: Any) -> bytes:
    """Return the JSON of the least record there can be, with fields changed; a value of ... takes the field away."""
    values = {"name": "scribe", "uid": "s-scribe", "createdAt": "2026-05-04T12:00:00.123456Z", **changes}
    return json.dumps({key: value for key, value in values.items() if value is not ...}).encode()


@given(_records)
def test_every_record_comes_back_as_it_was(record: SessionRecord) -> None:
    """Encoding and decoding lose nothing, whatever the texts and the fields of newer releases hold."""
    data = encode_record(record)

    assert decode_record(data, "scribe") == record


def test_missing_optional_fields_have_their_defaults() -> None:
    """A record of name, uid and time of creation is whole."""
    record = decode_record(_text(), "scribe")

    assert record == a_record()


def test_fields_are_flat_and_in_camel_case() -> None:
    """The definition's fields lie beside the others, under the names that people read in the configuration."""
    definition = Definition("scribe", harness_args=("-x",), prompt_file="/p", chat={"slack": ChatBinding(True, "C1")})

    fields = json.loads(
        encode_record(a_record(definition=definition, hold=Hold(HoldKind.STOPPED, "cli:ann", "", NOON)))
    )

    assert set(fields) == {
        *("version", "uid", "name", "generation", "description", "harness", "harnessArgs", "cwd", "prompt"),
        *(
            "promptFile",
            "autoStart",
            "restart",
            "idle",
            "declared",
            "chat",
            "thread",
            "instanceId",
            "harnessSessionId",
            "harnessInUse",
            "fresh",
            "history",
            "status",
            "phase",
            "hold",
        ),
        *("createdAt", "startedAt", "lastMessageAt", "lastExit"),
    }
    assert fields["harnessArgs"] == ["-x"]
    assert fields["chat"] == {"slack": {"enabled": True, "channel": "C1"}}
    assert set(fields["hold"]) == {"kind", "policy", "by", "reason", "at"}


EARLIER = b"""{
  "version": 1, "uid": "s-k3f9x2", "name": "scribe", "generation": 1, "description": "Keeps the notes",
  "harness": "claude", "harnessArgs": ["--model", "opus"], "cwd": "/srv/notes", "prompt": "Read.", "promptFile": null,
  "autoStart": true, "restart": "on-failure", "idle": {"stopAfter": "1h30m"}, "declared": true,
  "slack": {"enabled": true, "channel": "C0123456789", "authorizedUsers": ["U1", "T9:U2"], "color": 7},
  "instanceId": "i-77", "harnessSessionId": "c-1", "fresh": null, "history": [], "harnessInUse": "claude",
  "status": "running", "phase": "settled", "hold": null, "createdAt": "2026-05-04T12:00:00.000000Z",
  "startedAt": "2026-05-04T12:00:00.000000Z", "lastMessageAt": "2026-05-04T12:00:00.000000Z",
  "slackChannel": "C0123456789", "slackThread": "1777896000.000100", "lastExit": null
}"""


def test_a_record_from_before_there_could_be_other_chats_is_read_and_written_anew() -> None:
    """Its chat, with who may speak to it, and its thread are what they were; nothing is said twice in the new file."""
    read = decode_record(EARLIER, "scribe")
    written = encode_record(read)
    fields = json.loads(written)

    assert read.definition.chat == {"slack": ChatBinding(True, "C0123456789", ("U1", "T9:U2"))}
    assert read.thread == Thread("slack", "C0123456789", "1777896000.000100")
    assert decode_record(written, "scribe") == read
    assert fields["chat"]["slack"]["color"] == 7
    assert not {"slack", "slackChannel", "slackThread"} & set(fields)


def test_unknown_fields_survive_a_rewrite() -> None:
    """A field of a newer release is written back, at the top and beside ours in a chat of `chat`."""
    data = _text(loops=[{"every": "1h"}], chat={"slack": {"enabled": True, "color": ["U1"]}, "line": {"shade": 1}})

    read = decode_record(data, "scribe")
    changed = replace(read, definition=replace(read.definition, chat={"slack": ChatBinding(False, "C2")}))
    fields = json.loads(encode_record(changed))

    assert fields["loops"] == [{"every": "1h"}]
    assert fields["chat"] == {"line": {"shade": 1}, "slack": {"enabled": False, "channel": "C2", "color": ["U1"]}}


def test_more_in_a_hold_survives_as_long_as_that_hold() -> None:
    """What a newer release noted in a hold is written back with it, and not into another one."""
    hold = {"kind": "stopped", "by": "cli:ann", "reason": "", "at": "2026-05-04T12:00:00Z", "ticket": 7}

    read = decode_record(_text(hold=hold), "scribe")
    same = json.loads(encode_record(replace(read, generation=2)))
    other = json.loads(encode_record(replace(read, hold=Hold(HoldKind.FAILED, "supervisor", "", NOON))))
    none = json.loads(encode_record(replace(read, hold=None)))

    assert same["hold"]["ticket"] == 7
    assert "ticket" not in other["hold"]
    assert none["hold"] is None


def test_more_in_the_conversations_survives_as_long_as_they_do() -> None:
    """What a newer release noted of an earlier conversation, or of the new one, is written back with it."""
    at = "2026-05-04T12:00:00.000000Z"
    old = {"id": "old", "harness": "claude", "reason": "gone", "at": at, "turns": 7}
    plain = {"id": "older", "harness": "", "reason": "", "at": at}

    read = decode_record(_text(fresh={"id": "new", "returnsTo": "old", "why": 1}, history=[plain, old]), "scribe")
    same = json.loads(encode_record(replace(read, generation=2)))
    none = json.loads(encode_record(replace(read, fresh=None, history=read.history[:1])))

    assert (same["fresh"]["why"], same["history"]) == (1, [plain, old])
    assert (none["fresh"], none["history"]) == (None, [plain])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "a list, not an object"),
        (_text(uid=...), "uid is missing"),
        (_text(uid="../../etc"), "no id"),
        (_text(instanceId="a/b"), "no id"),
        (_text(name="other"), "names 'other'"),
        (_text(name=3), "name is a number, not a text"),
        (_text(createdAt=...), "createdAt is missing"),
        (_text(createdAt="noon"), "no time"),
        (_text(createdAt="2026-05-04T12:00:00"), "no time"),
        (_text(startedAt=5), "startedAt is a number"),
        (_text(version=2), "upgrade the-loop"),
        (_text(version=0), "at least 1"),
        (_text(version=True), "version is a truth value"),
        (_text(generation="1"), "generation is a text"),
        (_text(generation=0), "at least 1"),
        (_text(generation=2**63), "generation is above"),
        (_text(harnessSessionId="../../x"), "is no id"),
        (_text(harnessSessionId="a\0x"), "is no id"),
        (_text(fresh="new"), "fresh is a text, not an object"),
        (_text(fresh={"id": "../../x"}), "fresh.id"),
        (_text(history={}), "history is an object, not a list"),
        (_text(history=["old"]), "history is a text, not an object"),
        (_text(history=[{"id": "old"}]), "history.at is missing"),
        (_text(history=[{"id": "a/b", "at": "2026-05-04T12:00:00Z"}]), "history.id"),
        (_text(phase="flying"), "allowed: settled"),
        (_text(status="maybe"), "allowed: running"),
        (_text(description=None), "description is null"),
        (_text(harnessArgs="-x"), "harnessArgs is a text"),
        (_text(harnessArgs=[1]), "not a text"),
        (_text(autoStart=1), "autoStart is a number"),
        (_text(slack=True), "slack is a truth value"),
        (_text(slack={"enabled": "yes"}), "chat.slack.enabled is a text"),
        (_text(chat={"slack": True}), "chat.slack is a truth value"),
        (_text(thread={"chat": "slack", "channel": "C1"}), "thread.thread is missing"),
        (_text(hold=[]), "hold is a list"),
        (_text(hold={}), "hold.kind is missing"),
        (_text(hold={"kind": "asleep", "at": "2026-05-04T12:00:00Z"}), "allowed: paused"),
        (_text(hold={"kind": "stopped", "at": "2026-05-04T12:00:00Z", "policy": "kind"}), "allowed: soft"),
        (_text(lastExit={"status": "0"}), "lastExit.status is a text"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    """Each malformed text is refused, and the message says which field and why."""
    with pytest.raises(Malformed) as refused:
        decode_record(data, "scribe")

    assert reason in str(refused.value)


def test_half_of_a_character_becomes_the_sign_for_it() -> None:
    """JSON allows it, and no terminal or database takes it; the record stays readable."""
    assert decode_record(_text(description="a\ud800b \ud83d\ude00"), "scribe").definition.description == "a\ufffdb 😀"


@given(
    st.binary(max_size=60)
    | st.recursive(_json, lambda x: st.dictionaries(_texts, x)).map(lambda v: json.dumps(v).encode())
)
def test_no_text_raises_anything_else(data: bytes) -> None:
    """Whatever a file holds, it is a record or Malformed."""
    try:
        record = decode_record(data, "scribe")
    except Malformed:
        record = None

    assert record is None
