"""What Codex's own files and its screen tell."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.harness.codex.files import (
    CodexFiles,
    Rollout,
    RolloutTurns,
    asks_for_login,
    has_answer,
    has_turn,
    latest_edge,
    read_input_line,
    reads,
    retry_of,
)
from core.harness.codex.working import WorkingFile
from core.model.activity import Failure
from core.model.harness import Limit, PlanItem, PlanState, Retry, TextTaken, TurnFailed, Usage
from core.model.pane import InputLine, View

ID = "01a22d83-4f12-79f1-b664-61b96b2e6adf"  #: of 30 November 2026, 17:31 UTC
BEGAN = datetime(2026, 11, 30, 17, 31, 50, tzinfo=UTC)


class Record:
    """Writes a record as 0.171.0 does."""

    def __init__(self, home: Path, folder: str = "2026/11/30") -> None:
        self.path = home / "sessions" / folder / f"rollout-2026-11-30T17-31-49-{ID}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.seconds = 0

    def add(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Add a line, a second after the one before it."""
        at = BEGAN + timedelta(seconds=self.seconds)
        self.seconds += 1
        line = {"timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000Z", "ordinal": self.seconds, "type": kind, "payload": payload}
        with self.path.open("a") as stream:
            stream.write(json.dumps(line, separators=(",", ":")) + "\n")

    def event(self, kind: str, turn: str, **more: Any) -> None:
        """Add an event of a turn."""
        self.add("event_msg", {"type": kind, "turn_id": turn, **more})

    def item(self, kind: str, turn: str, text: str) -> None:
        """Add a text, as somebody's words."""
        self.event("item_completed", turn, item={"type": kind, "content": [{"type": "text", "text": text}]})

    def usage(self, **counts: int) -> None:
        """Add what a request took."""
        all_counts = {f"{part}_token_usage": counts for part in ("turn", "thread")}
        self.add("token_usage_record", {"response_id": f"r-{self.seconds}", "usage": counts, **all_counts})


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The record of a conversation that began a moment ago."""
    return Record(tmp_path)


def opened(record: Record, since: datetime = BEGAN - timedelta(days=1)) -> RolloutTurns:
    """Return the turns of the record."""
    return RolloutTurns(lambda: record.path if record.path.exists() else None, since=since)


@pytest.mark.parametrize("folder", ["2026/11/30", "2026/12/01", "2026/11/29"])
def test_the_record_is_found_by_its_id(tmp_path: Path, folder: str) -> None:
    """Its folder is a day of the local time, and its id begins with the moment."""
    made = Record(tmp_path, folder)
    made.event("task_started", "t-1")

    assert CodexFiles(tmp_path).conversation(ID) == made.path


def test_an_id_without_a_time_is_looked_for_everywhere(tmp_path: Path) -> None:
    """Older ones named none."""
    path = tmp_path / "sessions/2025/01/02/rollout-2025-01-02T03-04-05-abc.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()

    assert CodexFiles(tmp_path).conversation("abc") == path
    assert CodexFiles(tmp_path).conversation("bc") is None
    assert CodexFiles(tmp_path).conversation(ID) is None


def test_texts_are_evidence(record: Record) -> None:
    """The first of a turn began it, and the next was taken by the running one."""
    rollout = Rollout(lambda: record.path if record.path.exists() else None, from_start=False)
    assert rollout.new_events() == ()

    record.event("task_started", "t-1")
    record.item("UserMessage", "t-1", "[ann #k3f9x2] hello")
    record.item("UserMessage", "t-1", "[ann #k3f9x3] and this")
    record.item("AgentMessage", "t-1", "done")

    assert rollout.new_events() == (
        TextTaken("[ann #k3f9x2] hello", at=BEGAN + timedelta(seconds=1), turn="t-1"),
        TextTaken("[ann #k3f9x3] and this", begins=False, at=BEGAN + timedelta(seconds=2), turn="t-1"),
    )
    assert rollout.new_events() == ()


def test_what_was_there_before_is_no_news(record: Record) -> None:
    """Unless it is read from its start."""
    record.item("UserMessage", "t-1", "old")

    assert Rollout(lambda: record.path, from_start=False).new_events() == ()
    assert [event.prompt for event in Rollout(lambda: record.path, from_start=True).new_events()] == ["old"]  # type: ignore[union-attr]


def test_a_turn(record: Record) -> None:
    """It begins, is answered, and is over."""
    turns = opened(record)
    record.event("task_started", "t-1")
    record.item("UserMessage", "t-1", "hello")
    [running] = turns.new_turns()
    record.item("AgentMessage", "t-1", "first")
    record.event("task_complete", "t-1", last_agent_message="done")
    [over] = turns.new_turns()

    assert (running.turns, running.prompts, running.over_at) == (("t-1",), ("hello",), None)
    assert (over.answer, over.over_at, over.failed) == ("done", BEGAN + timedelta(seconds=3), None)
    assert turns.new_turns() == ()


def test_a_job_of_an_earlier_turn_changes_nothing(record: Record) -> None:
    """Its end stands in the record with the turn that began it."""
    turns = opened(record)
    record.event("task_started", "t-1")
    record.event("task_complete", "t-1", last_agent_message="one")
    record.event("task_started", "t-2")
    turns.new_turns()

    record.event("item_completed", "t-1", item={"type": "CommandExecution"})

    assert turns.new_turns() == ()


def test_an_interrupted_turn_is_cut_off(record: Record) -> None:
    """Escape."""
    turns = opened(record)
    record.event("task_started", "t-1")
    record.event("turn_aborted", "t-1", reason="interrupted")

    [turn] = turns.new_turns()

    assert turn.cut_off
    assert turn.over_at is not None


@pytest.mark.parametrize(
    ("info", "failure"),
    [
        ("usage_limit_exceeded", Failure.LIMIT),
        ("context_window_exceeded", Failure.LENGTH),
        ("internal_server_error", Failure.SERVICE),
        ("something_new", Failure.OTHER),
        ({"http_connection_failed": {"http_status_code": 401}}, Failure.LOGIN),
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, Failure.LIMIT),
        ({"response_stream_disconnected": {"http_status_code": None}}, Failure.SERVICE),
        ({}, Failure.OTHER),
        (None, Failure.OTHER),
        (7, Failure.OTHER),
    ],
)
def test_a_failed_turn(record: Record, info: Any, failure: Failure) -> None:
    """No hook tells of it: the record has its error, and Codex's words."""
    turns = opened(record)
    record.event("task_started", "t-1")
    record.event("task_complete", "t-1", last_agent_message=None, error={"message": "no", "codex_error_info": info})

    [turn] = turns.new_turns()

    name = info if isinstance(info, str) else next(iter(info), "other") if isinstance(info, dict) else "other"
    assert turn.failed == TurnFailed(name, "no", failure, "t-1")


def test_resumable_means_that_a_turn_began(record: Record) -> None:
    """An answer is another matter."""
    record.add("session_meta", {"id": ID})
    assert not has_turn(record.path)
    record.event("task_started", "t-1")
    assert (has_turn(record.path), has_answer(record.path)) == (True, False)
    record.item("AgentMessage", "t-1", "done")
    assert has_answer(record.path)


def test_the_latest_edge(record: Record) -> None:
    """What stands in somebody's words is none."""
    record.event("task_started", "t-1")
    assert latest_edge(record.path).over is False  # type: ignore[union-attr]
    record.event("task_complete", "t-1")
    record.item("AgentMessage", "t-1", '{"type":"event_msg","payload":{"type":"task_started"}}')

    edge = latest_edge(record.path)

    assert edge is not None
    assert (edge.over, edge.at) == (True, BEGAN + timedelta(seconds=1))


def test_a_long_turn_goes_on(record: Record) -> None:
    """Its beginning is too far back, and its end would stand last."""
    record.event("task_started", "t-1")
    record.item("AgentMessage", "t-1", "x" * (1 << 20))

    assert latest_edge(record.path) is None


def test_what_it_does(record: Record) -> None:
    """Plan, tool, model, tokens and the size of its context: each as the record says, and nothing else."""
    working = WorkingFile(record.path)
    record.add("turn_context", {"model": "o9"})
    record.event("task_started", "t-1")
    arguments = json.dumps(
        {"plan": [{"step": "look", "status": "completed"}, {"step": "act", "status": "in_progress"}]}
    )
    record.add(
        "response_item", {"type": "function_call", "name": "update_plan", "call_id": "1", "arguments": arguments}
    )
    record.add("response_item", {"type": "function_call_output", "call_id": "1"})
    record.add(
        "response_item",
        {"type": "function_call", "name": "exec_command", "call_id": "2", "arguments": '{"cmd":"sleep 9"}'},
    )
    record.usage(input_tokens=100, cached_input_tokens=60, output_tokens=7)
    record.event("token_count", "t-1", info={"last_token_usage": {"input_tokens": 90}, "model_context_window": 258400})

    now = working.look()
    record.event("task_complete", "t-1")
    after = working.look()

    assert now is not None
    assert after is not None
    assert now.plan == (PlanItem("look", PlanState.DONE), PlanItem("act", PlanState.IN_PROGRESS))
    assert (now.tool, now.model, now.context_used, now.context_size) == ("exec_command: sleep 9", "o9", 90, 258400)
    assert now.turn == now.session == Usage(40, 7, 60)
    assert now.by_model == {"o9": Usage(40, 7, 60)}
    assert now.limit is None
    assert after.tool == ""


def test_a_used_up_limit_has_an_end(record: Record) -> None:
    """It is over once a turn goes well."""
    working = WorkingFile(record.path)
    limits = {
        "primary": {"used_percent": 100.0, "resets_at": 1796061600},
        "secondary": {"used_percent": 3.0, "resets_at": 1},
    }
    record.event("token_count", "t-1", info=None, rate_limits=limits)
    record.event("task_complete", "t-1", error={"message": "limit", "codex_error_info": "usage_limit_exceeded"})
    reached = working.look()
    record.event("task_complete", "t-2", last_agent_message="done")

    after = working.look()
    assert reached is not None
    assert after is not None
    assert reached.limit == Limit("limit", datetime(2026, 11, 30, 18, 0, tzinfo=UTC))
    assert after.limit is None


FOOT = ("  fake-model default · /work · a conversation", "  ? for shortcuts          2 warnings · f2 to view", "", "")
SAID = ("› [ann #k3f9x2] hello", "", "• done", "")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ((*SAID, "› Ask Codex to do anything", "", *FOOT), InputLine("Ask Codex to do anything")),
        ((*SAID, "› one", "  two", "", "  four", "", *FOOT), InputLine("one\n  two\n\n  four")),
        ((*SAID, "! ls", "", *FOOT), InputLine("ls", "shell mode")),
        ((*SAID, "› 1. a list", "", *FOOT), InputLine("1. a list")),
        ((*SAID, "› 1. Yes, proceed (y)", "  2. No (esc)", "", "  Press enter to confirm or esc to cancel"), None),
        (("› 1. Trust and continue", "  2. Quit", "", "  enter continue · esc quit", ""), None),
        (("", ""), None),
        (("$ ls", "a  b"), None),
    ],
)
def test_the_input_line(rows: tuple[str, ...], line: InputLine | None) -> None:
    """It stands last, above what Codex works with; in a dialog the same mark is its cursor."""
    assert read_input_line(View(rows)) == line


def test_a_suggestion_is_no_text() -> None:
    """It is drawn faint."""
    rows = (*SAID, "› Ask Codex to do anything", "", *FOOT)
    bright = tuple(row if "Ask" not in row else "› " + " " * (len(row) - 2) for row in rows)

    assert read_input_line(View(rows, (2, 4), bright=bright)) == InputLine("")


def test_it_does_not_read_while_it_takes_up_a_conversation() -> None:
    """The input line is there already."""
    assert not reads("\n".join(("  Resuming session…", "", "› Ask Codex to do anything", "", "  ? for shortcuts", "")))
    assert reads("\n".join((*SAID, "› Ask Codex to do anything", "", *FOOT)))


def test_the_question_how_to_log_in() -> None:
    """Its adapter knows what helps."""
    assert asks_for_login("Choose how you want to use Codex.\n1. Sign in with ChatGPT\n2. Sign in another way")
    assert not asks_for_login("Hooks need review")


def test_a_retry() -> None:
    """With what it meets, where it says so."""
    shown = "• Reconnecting... 4/5 (18s • esc to interrupt)\n  └ Unexpected status 401\n\n› Ask Codex\n\n  m · /w"

    assert retry_of(shown) == Retry("Unexpected status 401", 4, 5)
    assert retry_of("• Working (1s • esc to interrupt)\n\n› Ask\n\n  m · /w") is None
