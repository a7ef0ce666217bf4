"""The turns that a conversation's file shows, as Claude Code 2.1.197 and 2.1.332 write it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import StoreBroken
from core.harness.claude.files import TurnsFile
from core.model.activity import Failure
from core.model.harness import TurnFailed, TurnSeen

T0 = datetime(2026, 11, 30, 10, tzinfo=UTC)
NOTE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
OVER = {"type": "system", "subtype": "turn_duration", "durationMs": 144}


def user(text: str, turn: str, origin: str = "human") -> dict[str, Any]:
    """Return the line of a prompt."""
    return {"type": "user", "message": {"content": text}, "promptId": turn, "origin": {"kind": origin}}


def said(text: str, message: str = "m1", **fields: Any) -> dict[str, Any]:
    """Return the line of a block of an answer."""
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message, "content": content}, **fields}


def called(message: str = "m1") -> dict[str, Any]:
    """Return the line of a tool call."""
    content = [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]
    return {"type": "assistant", "message": {"id": message, "content": content}}


class Written:
    """A conversation's file to which lines are added, a second apart."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.jsonl"
        self.at = T0

    def add(self, *entries: dict[str, Any]) -> None:
        """Append the lines."""
        with self.path.open("a", encoding="utf-8") as stream:
            for entry in entries:
                self.at += timedelta(seconds=1)
                stream.write(json.dumps({**entry, "timestamp": self.at.isoformat()}) + "\n")

    def turns(self, since: datetime = T0) -> tuple[TurnSeen, ...]:
        """Return what a new reader sees."""
        return TurnsFile(self.path, since=since).new_turns()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Give an empty conversation."""
    return Written(tmp_path)


def test_a_turn_has_its_last_answer_and_its_end(written: Written) -> None:
    """What it says before a tool call is not the answer; the blocks of one message are."""
    written.add(user("go", "t1"), said("let me see", "m1"), called("m1"))
    written.add({"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}, "promptId": "t1"})
    written.add(said("two", "m2"), said("parts", "m2"), OVER)

    [turn] = written.turns()

    assert (turn.turn, turn.prompts, turn.answer) == ("t1", ("go",), "two\nparts")
    assert (turn.began_at, turn.over_at, turn.failed) == (T0 + timedelta(seconds=1), written.at, None)


def test_a_turn_that_runs_is_shown_as_it_stands(written: Written) -> None:
    """Each call tells of what was added since the last, and what it tells replaces what it told."""
    reader = TurnsFile(written.path, since=T0)
    written.add(user("go", "t1"))
    [begun] = reader.new_turns()
    nothing = reader.new_turns()
    written.add(said("done"), OVER)
    [over] = reader.new_turns()

    assert (begun.over_at, begun.answered) == (None, False)
    assert nothing == ()
    assert (over.began_at, over.answer, over.over_at) == (begun.began_at, "done", written.at)


def test_an_error_ends_a_turn(written: Written) -> None:
    """2.1.332 writes no end after it; the end that 2.1.197 writes changes nothing."""
    failed = said("Please run /login", error="authentication_failed", isApiErrorMessage=True)
    written.add(user("go", "t1"), failed)
    at = written.at
    [newer] = written.turns()
    written.add(OVER)
    [older] = written.turns()

    assert newer.failed == TurnFailed("authentication_failed", "Please run /login", Failure.LOGIN, "t1")
    assert newer.over_at == older.over_at == at


def test_an_error_that_was_overcome_is_none(written: Written) -> None:
    """A turn that goes on after it ends as it ends."""
    written.add(user("go", "t1"), said("API Error", error="unknown", isApiErrorMessage=True), said("done", "m2"), OVER)

    [turn] = written.turns()

    assert (turn.failed, turn.answer, turn.over_at) == (None, "done", written.at)


def test_a_turn_that_was_interrupted_is_cut_off(written: Written) -> None:
    """And what follows it is another one."""
    written.add(user("go", "t1"), called())
    written.add({"type": "user", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}})
    written.add(user("again", "t2"), said("done"), OVER)

    first, second = written.turns()

    assert (first.cut_off, first.over_at is not None, first.prompts) == (True, True, ("go",))
    assert (second.cut_off, second.answer, second.turn) == (False, "done", "t2")


def test_texts_that_one_turn_took_are_one_turn(written: Written) -> None:
    """2.1.332 gives each an id of its own, and 2.1.197 one to all."""
    written.add(user("one", "t1"), user("two", "t2"), said("both"), OVER)

    [turn] = written.turns()

    assert (turn.prompts, turn.turns, turn.turn) == (("one", "two"), ("t1", "t2"), "t2")


def test_what_was_told_before_is_not_told_again(written: Written) -> None:
    """What was written until that moment belongs to turns that are known."""
    written.add(user("old", "t1"), said("old answer"), OVER)
    since = written.at
    written.add(user("new", "t2"), said("new answer"), OVER)

    [turn] = written.turns(since)

    assert turn.answer == "new answer"


def test_a_file_that_was_not_written_since_is_read_from_its_end(written: Written) -> None:
    """What is added later is told, whatever its lines say of the time."""
    written.add(user("old", "t1"), said("old answer"), OVER)
    reader = TurnsFile(written.path, since=datetime.now(UTC) + timedelta(minutes=1))

    assert reader.new_turns() == ()


def test_a_subagents_lines_are_no_turn_of_the_session(written: Written) -> None:
    """They stand beside it."""
    written.add(user("go", "t1"), said("of a subagent", isSidechain=True), said("mine", "m2"), OVER)

    [turn] = written.turns()

    assert turn.answer == "mine"


def test_a_hook_that_could_not_run_is_told_with_its_turn(written: Written) -> None:
    """In the program's own words, on one line."""
    trouble = {"type": "hook_non_blocking_error", "hookEvent": "Stop", "stderr": "ENOENT:\n no such file"}
    written.add(user("go", "t1"), said("done"), {"type": "attachment", "attachment": trouble}, OVER)

    [turn] = written.turns()

    assert turn.hook_trouble == "ENOENT: no such file"


def test_a_turn_of_a_background_task_is_nobodys(written: Written) -> None:
    """Nobody typed what began it."""
    written.add(user(NOTE, "t1", "task-notification"), said("noted"), OVER)

    [turn] = written.turns()

    assert (turn.internal, turn.answer) == (True, "noted")


def test_lines_of_another_form_are_no_turn(written: Written) -> None:
    """Neither damaged ones, nor those without a time."""
    written.add({"schema": 2, "record": {"of": "user"}})
    with written.path.open("a") as stream:
        stream.write('{"type": "user"\n' + json.dumps(user("x", "t9")) + "\n[1]\n")

    assert written.turns() == ()


def test_a_record_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    """It says so; one that is not there yet is empty."""
    (tmp_path / "folder.jsonl").mkdir()

    with pytest.raises(StoreBroken, match="the conversation cannot be read"):
        TurnsFile(tmp_path / "folder.jsonl", since=T0).new_turns()
    assert TurnsFile(tmp_path / "none.jsonl", since=T0).new_turns() == ()


def hung(line: dict[str, Any], own: str, parent: str) -> dict[str, Any]:
    """Return the line with its place in the conversation."""
    return {**line, "uuid": own, "parentUuid": parent}


BESIDE = {"type": "attachment", "attachment": {"type": "deferred_tools_delta"}}
COMPACTED = {"type": "system", "subtype": "compact_boundary"}


def test_what_is_taken_beside_an_unanswered_turn_begins_another(written: Written) -> None:
    """Interrupted before its first token, a turn leaves the conversation: the next one hangs on the line before it."""
    written.add(hung(user("lost", "t1"), "a", "root"), hung(BESIDE, "b", "a"))
    reader = TurnsFile(written.path, since=T0)
    [waits] = reader.new_turns()
    written.add(hung(user("next", "t2"), "c", "root"), hung(said("yes"), "d", "c"), OVER)

    lost, answered = reader.new_turns()

    assert (waits.cut_off, waits.over_at) == (False, None)
    assert (lost.prompts, lost.cut_off, lost.abandoned, lost.answered) == (("lost",), True, True, False)
    assert (answered.prompts, answered.answer, answered.cut_off) == (("next",), "yes", False)


def test_what_is_taken_together_is_one_turn(written: Written) -> None:
    """Texts of its own queue hang on one another, also behind what stands between them, or behind a compaction."""
    written.add(hung(user("one", "t1"), "a", "root"), hung(BESIDE, "b", "a"), hung(user("two", "t2"), "c", "b"))
    written.add({**COMPACTED, "uuid": "e", "parentUuid": None}, hung(user("three", "t3"), "f", "e"))
    written.add(hung(said("all"), "g", "f"), OVER)

    [turn] = written.turns()

    assert (turn.prompts, turn.answer, turn.cut_off) == (("one", "two", "three"), "all", False)
