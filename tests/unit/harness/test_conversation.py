"""Reading a conversation's file forward."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import StoreBroken, TrustFailed
from core.harness.claude.files import HELD, ConversationFile, has_turn, line_events
from core.model.harness import HarnessEvent, TextBlocked, TextQueued, TextReturned, TextTaken, TurnEnded

NOTE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


def user(content: Any, **fields: Any) -> dict[str, Any]:
    """Return a user line."""
    return {"type": "user", "isSidechain": False, "message": {"role": "user", "content": content}, **fields}


PASTED = '\n\n<pasted_content id="3770">\n[ann #k3] hi\nthere\n</pasted_content id="3770">\n'
HUMAN = {"origin": {"kind": "human"}, "promptSource": "typed"}
RESULT = [{"tool_use_id": "toolu_1", "type": "tool_result", "content": "ok", "is_error": False}]
BLOCKED = "UserPromptSubmit operation blocked by hook:\n[/x/block.sh]: {}\n\n\nOriginal prompt: hi"
CASES: list[tuple[str, dict[str, Any], tuple[HarnessEvent, ...]]] = [
    ("typed", user("[ann #k3] hi", **HUMAN), (TextTaken("[ann #k3] hi"),)),
    ("typed, as blocks", user([{"type": "text", "text": "hi"}, {"type": "image"}], **HUMAN), (TextTaken("hi"),)),
    ("pasted", user(PASTED, **HUMAN), (TextTaken(PASTED, pasted=("[ann #k3] hi\nthere",)),)),
    (
        "slipped in, pasted",
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": PASTED}},
        (TextTaken(PASTED, begins=False, pasted=("[ann #k3] hi\nthere",)),),
    ),
    ("notification", user(NOTE, origin={"kind": "task-notification"}), (TextTaken(NOTE, internal=True),)),
    (
        "what did not finish before a resume, which begins no turn",
        user(NOTE, origin={"kind": "task-notification"}, queueTranscriptOnly=True),
        (),
    ),
    ("tool result", user(RESULT), ()),
    ("a subagent's", user("hi", **{**HUMAN, "isSidechain": True}), ()),
    ("interrupted", user([{"type": "text", "text": "[Request interrupted by user]"}]), (TurnEnded(""),)),
    (
        "interrupted in a tool",
        user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        (TurnEnded(""),),
    ),
    (
        "queued",
        {"type": "queue-operation", "operation": "enqueue", "content": "[ann #q] later"},
        (TextQueued("[ann #q] later"),),
    ),
    ("taken out", {"type": "queue-operation", "operation": "remove"}, ()),
    ("notification queued", {"type": "queue-operation", "operation": "enqueue", "content": NOTE}, ()),
    (
        "slipped in",
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "[ann #q] later"}},
        (TextTaken("[ann #q] later", begins=False),),
    ),
    (
        "given back into the input line",
        {"type": "queue-operation", "operation": "popAll", "content": "[ann #q] later"},
        (TextReturned("[ann #q] later"),),
    ),
    (
        "blocked by a hook",
        {"type": "system", "subtype": "informational", "content": BLOCKED.format("policy: no")},
        (TextBlocked("hi", "policy: no"),),
    ),
    (
        "blocked by our own hook, which tells itself",
        {"type": "system", "subtype": "informational", "content": BLOCKED.format(f"{HELD}; this is kept for later")},
        (),
    ),
    ("queued without a name", {"type": "queue-operation", "operation": "enqueue"}, (TextQueued(""),)),
    ("given back without a name", {"type": "queue-operation", "operation": "popAll"}, (TextReturned(""),)),
    (
        "of its own schedule",
        user("look", isMeta=True, promptSource="system", turnOrigin="scheduled", promptId="t"),
        (TextTaken("look", internal=True, turn="t"),),
    ),
    (
        "of 2.1.197's schedule",
        user("look", isMeta=True, promptSource="system", queuePriority="later"),
        (TextTaken("look", internal=True),),
    ),
    ("another attachment", {"type": "attachment", "attachment": {"type": "skill_listing", "content": "x"}}, ()),
    ("answer", {"type": "assistant", "message": {"content": [{"type": "text", "text": "x"}]}}, ()),
    ("mode", {"type": "mode", "mode": "normal"}, ()),
]


@pytest.mark.parametrize(("entry", "meaning"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_line_means(entry: dict[str, Any], meaning: tuple[HarnessEvent, ...]) -> None:
    """Each line, as Claude Code 2.1.197 writes it, means what it should."""
    assert line_events(json.dumps(entry).encode() + b"\n") == meaning


@pytest.mark.parametrize("line", [b"", b"\n", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_line_that_is_no_object_means_nothing(line: bytes) -> None:
    """A damaged line is passed over."""
    assert line_events(line) == ()


def append(path: Path, *entries: dict[str, Any], end: str = "\n") -> None:
    """Append lines; `end` follows the last one."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write("\n".join(json.dumps(entry) for entry in entries) + end)


def test_only_what_is_new_is_told(tmp_path: Path) -> None:
    """Each call tells what was added since the last, and a file that is not there yet has nothing."""
    path = tmp_path / "c.jsonl"
    conversation = ConversationFile(path, from_start=True)
    assert conversation.new_events() == ()

    append(path, user("one", **HUMAN))
    first = conversation.new_events()
    append(path, user("two", **HUMAN), user("three", **HUMAN))

    assert first == (TextTaken("one"),)
    assert conversation.new_events() == (TextTaken("two"), TextTaken("three"))
    assert conversation.new_events() == ()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    """A line is read once it is whole, however it was cut."""
    path = tmp_path / "c.jsonl"
    conversation = ConversationFile(path, from_start=True)
    line = json.dumps(user("ünïcödé", **HUMAN), ensure_ascii=False).encode() + b"\n"
    for cut in range(1, len(line)):
        path.write_bytes(line[:cut])
        assert conversation.new_events() == ()

    path.write_bytes(line)

    assert conversation.new_events() == (TextTaken("ünïcödé"),)


@pytest.mark.parametrize("padding", [0, 10, 70_000, 200_000])
def test_opened_at_the_end_tells_only_what_follows(tmp_path: Path, padding: int) -> None:
    """What was there is not told again, except the line that was half written."""
    path = tmp_path / "c.jsonl"
    append(path, user("old", **HUMAN))
    whole = json.dumps(user("cut" + "x" * padding, **HUMAN)) + "\n"
    with path.open("a") as stream:
        stream.write(whole[:-5])

    conversation = ConversationFile(path, from_start=False)
    assert conversation.new_events() == ()
    with path.open("a") as stream:
        stream.write(whole[-5:])

    assert conversation.new_events() == (TextTaken("cut" + "x" * padding),)


def test_opened_at_the_end_of_nothing_tells_everything(tmp_path: Path) -> None:
    """A file that appears later is read from its first line."""
    path = tmp_path / "c.jsonl"
    conversation = ConversationFile(path, from_start=False)

    append(path, user("one", **HUMAN))

    assert conversation.new_events() == (TextTaken("one"),)


def test_file_that_shrank_is_read_anew(tmp_path: Path) -> None:
    """A shorter file is another one."""
    path = tmp_path / "c.jsonl"
    append(path, user("a long first line", **HUMAN))
    conversation = ConversationFile(path, from_start=False)

    path.unlink()
    append(path, user("b", **HUMAN))

    assert conversation.new_events() == (TextTaken("b"),)


def test_conversation_without_a_turn_cannot_be_resumed(tmp_path: Path) -> None:
    """A file of modes alone, as a stop right after the first prompt leaves it, holds no conversation."""
    path = tmp_path / "c.jsonl"
    assert not has_turn(path)
    append(path, {"type": "mode", "mode": "normal"}, {"type": "last-prompt", "lastPrompt": "hi"})
    assert not has_turn(path)

    append(path, user("hi", **HUMAN))

    assert has_turn(path)


def test_conversation_that_cannot_be_read_is_not_taken_for_absent(tmp_path: Path) -> None:
    """A folder in the file's place is an error that names it."""
    (tmp_path / "c.jsonl").mkdir()

    with pytest.raises(TrustFailed, match=r"c\.jsonl"):
        has_turn(tmp_path / "c.jsonl")


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2026-11-29T15:10:01.321Z", datetime(2026, 11, 29, 15, 10, 1, 321000, tzinfo=UTC)),
        ("2026-11-29T15:10:01", None),
        ("yesterday", None),
        (7, None),
    ],
)
def test_a_queued_text_says_since_when(stamp: object, at: datetime | None) -> None:
    """What the queue held before a message was given back says nothing about its next attempt."""
    line = {"type": "queue-operation", "operation": "enqueue", "content": "hi", "timestamp": stamp}

    [event] = line_events(json.dumps(line).encode())

    assert event == TextQueued("hi", at)


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_a_conversation_that_is_no_file_is_a_broken_store(tmp_path: Path, kind: str) -> None:
    """It is not taken for an empty one, and nobody waits for it."""
    path = tmp_path / "c.jsonl"
    opened = ConversationFile(path, from_start=True)
    path.mkdir() if kind == "folder" else os.mkfifo(path)

    with pytest.raises(StoreBroken, match=r"c\.jsonl"):
        opened.new_events()
    with pytest.raises(StoreBroken, match=r"c\.jsonl"):
        ConversationFile(path, from_start=False)
