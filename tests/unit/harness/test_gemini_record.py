"""What Gemini CLI writes, read: conversations, hook reports, screens. Lines are as 0.53.0 to 0.61.0 wrote them."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.harness.base import read_reports
from core.harness.gemini.hooks import install_reporter, interpret
from core.harness.gemini.record import (
    Conversation,
    Turns,
    find_conversation,
    has_answer,
    has_turn,
    is_answered,
    messages_of,
    probe_of,
    read_input_line,
)
from core.harness.gemini.work import WorkFile
from core.model.activity import ActivityState, Failure
from core.model.dialog import offers_of, read_dialog
from core.model.harness import (
    Ended,
    HarnessEvent,
    PlanItem,
    PlanState,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    TextTaken,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
    Usage,
)
from core.model.pane import InputLine, View

ID = "05cc06d0-e605-4a9d-9fe6-94b16721ab41"
BEGAN = datetime(2026, 11, 30, 17, 27, 11, tzinfo=UTC)
ABOUT = "<session_context>\nThis is the Gemini CLI.\n</session_context>"


class Chat:
    """A conversation's file, written as Gemini does."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / ".gemini" / "tmp" / "work" / "chats" / f"session-2026-11-30T17-27-{ID[:8]}.jsonl"
        self.path.parent.mkdir(parents=True)
        self._count = 0
        self.write({"sessionId": ID, "projectHash": "2a", "startTime": BEGAN.isoformat(), "kind": "main"})
        self.write({"$set": {"messages": [{"id": "about", "type": "user", "content": [{"text": ABOUT}]}]}})

    def write(self, entry: dict[str, Any]) -> None:
        """Add a line."""
        with self.path.open("a") as stream:
            stream.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def add(self, kind: str, content: object, **more: object) -> datetime:
        """Add a message, a second after the last one, and return when it was written."""
        self._count += 1
        at = BEGAN + timedelta(seconds=self._count)
        entry = {"id": f"m{self._count}", "timestamp": at.isoformat().replace("+00:00", "Z"), "type": kind}
        self.write({**entry, "content": content, **more})
        return at

    def typed(self, text: str) -> datetime:
        """Add what a person typed."""
        return self.add("user", [{"text": text}])

    def cancelled(self) -> datetime:
        """Add an Escape."""
        return self.add("info", "Request cancelled.")


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    """A conversation that has had no turn."""
    return Chat(tmp_path / "gemini")


def test_conversation_is_found_by_its_whole_id(chat: Chat) -> None:
    """Its file's name holds only the beginning."""
    assert find_conversation(chat.home, ID) == chat.path
    assert find_conversation(chat.home, ID[:8] + "-other") is None
    assert find_conversation(chat.home / "nowhere", ID) is None


def test_texts_that_turns_took_are_evidence(chat: Chat) -> None:
    """What describes the session is none, nor is a prompt that an Escape has written again, nor a tool's result."""
    read = Conversation(chat.home, ID, from_start=True)
    at = chat.typed("[ann #m2] hello")
    chat.add("user", [{"functionResponse": {"id": "x", "name": "y", "response": {"output": "z"}}}])
    chat.cancelled()
    chat.add("user", [{"text": ABOUT}, {"text": "[ann #m2] hello"}])

    assert read.new_events() == (TextTaken("[ann #m2] hello", at=at), TurnEnded(""))
    assert read.new_events() == ()


def test_second_file_that_a_resume_leaves_behind_is_passed_over(chat: Chat) -> None:
    """One in another minute makes a file of that id without a turn, and the conversation goes on in the first."""
    chat.typed("before")
    first = chat.path
    chat.path = first.with_name(first.name.replace("17-27", "17-28"))
    chat.write({"sessionId": ID, "startTime": BEGAN.isoformat(), "kind": "main"})
    read = Conversation(chat.home, ID, from_start=False)
    chat.path = first
    chat.write({"$set": {"sessionId": ID}})
    chat.typed("after")

    assert find_conversation(chat.home, ID) == first
    assert [event.prompt for event in read.new_events() if isinstance(event, TextTaken)] == ["after"]


def test_conversation_that_is_not_there_yet_is_read_once_it_is(tmp_path: Path) -> None:
    """It is opened before the program makes it."""
    read = Conversation(tmp_path / "gemini", ID, from_start=False)
    assert read.new_events() == ()

    Chat(tmp_path / "gemini").typed("hello")

    assert [type(event) for event in read.new_events()] == [TextTaken]


def test_what_was_there_before_is_not_told_again(chat: Chat) -> None:
    """A conversation may be read from where it ends."""
    chat.typed("before")
    read = Conversation(chat.home, ID, from_start=False)
    chat.typed("after")

    assert [event.prompt for event in read.new_events() if isinstance(event, TextTaken)] == ["after"]


def test_turns_are_followed_to_their_end(chat: Chat) -> None:
    """An answer, an Escape and a failure; the end of an ordinary turn is told by a hook alone."""
    record = Turns(chat.home, ID, since=BEGAN)
    first = chat.typed("one")
    chat.add("gemini", "1", model="m")
    second = chat.typed("two")
    over = chat.cancelled()
    third = chat.typed("three")
    failed = chat.add("error", '[API Error: {"error":{"code":429,"message":"quota","status":"X"}}]')

    turns = record.new_turns()

    assert [turn.began_at for turn in turns] == [first, second, third]
    assert [(turn.answer, turn.over_at, turn.cut_off) for turn in turns] == [
        ("1", None, False),
        ("", over, True),
        ("", failed, False),
    ]
    assert turns[2].failed == TurnFailed("429", "quota", Failure.LIMIT)


@pytest.mark.parametrize(
    ("says", "failure"),
    [
        ('[API Error: {"error":{"code":401,"message":"no","status":"X"}}]', Failure.LOGIN),
        ('[API Error: {"error":{"code":503,"message":"no","status":"X"}}]', Failure.SERVICE),
        ("[API Error: fetch failed]", Failure.OTHER),
    ],
)
def test_failure_of_the_models_side_is_understood(says: str, failure: Failure) -> None:
    """By its code where it has one."""
    records = [{"id": "a", "type": "error", "content": says}, {"id": "b", "type": "info", "content": "This … failed."}]

    [event] = interpret(Report("i", "1-1-AfterAgent.json", {"hook_event_name": "AfterAgent", "records": records}))

    assert isinstance(event, TurnFailed)
    assert event.failure is failure


def test_never_turned_and_cancelled_conversations_cannot_be_resumed(chat: Chat) -> None:
    """Gemini refuses both: what it reads at a resume holds nothing that was said."""
    assert not has_turn(messages_of(chat.path))

    chat.typed("one")
    assert has_turn(messages_of(chat.path))
    assert not has_answer(messages_of(chat.path))

    rewritten = {"id": "r", "type": "user", "content": [{"text": ABOUT}, {"text": "one"}]}
    chat.write({"$set": {"messages": [rewritten]}})
    assert not has_turn(messages_of(chat.path))


def test_conversation_that_was_taken_back_holds_what_is_left(chat: Chat) -> None:
    """`/rewind` takes back a message and all behind it."""
    chat.typed("one")
    chat.add("gemini", "1")
    chat.typed("two")

    chat.write({"$rewindTo": "m2"})

    assert [entry["id"] for entry in messages_of(chat.path)] == ["about", "m1"]


def test_second_opinion_is_that_of_the_latest_lines(chat: Chat) -> None:
    """Busy up to an answer, idle after an Escape; behind an answer only the hook knows, and after a resume nobody."""
    marker = chat.home / "dialog"

    def probe() -> tuple[ActivityState, bool] | None:
        found = probe_of(chat.home, ID, marker)
        return None if found is None else (found.state, found.turn_over)

    assert probe() is None
    chat.typed("one")
    assert probe() == (ActivityState.BUSY, False)
    chat.add("gemini", "", model="m")
    assert probe() is None
    chat.add("user", [{"functionResponse": {"name": "x"}}])
    assert probe() == (ActivityState.BUSY, False)
    chat.cancelled()
    chat.add("user", [{"functionResponse": {"name": "x"}}])
    assert probe() == (ActivityState.IDLE, True)
    chat.typed("two")
    chat.write({"$set": {"sessionId": ID}})
    assert probe() is None


def test_answer_stands_until_the_model_is_given_more(chat: Chat) -> None:
    """Together with the hook's word it is the end of a turn; another hook of that event may let the turn go on."""
    seen = [is_answered(chat.home, ID)]
    for kind, content in (("user", "one"), ("gemini", "1"), ("user", [{"functionResponse": {}}]), ("gemini", "2")):
        chat.add(kind, content)
        seen.append(is_answered(chat.home, ID))

    assert seen == [False, False, True, False, True]


def test_marker_of_a_dialog_counts_until_an_escape(chat: Chat) -> None:
    """No hook tells of an Escape in a dialog; the record does."""
    marker = chat.home / "dialog"
    chat.typed("one")
    marker.touch()
    os.utime(marker, ((BEGAN + timedelta(seconds=1.5)).timestamp(),) * 2)

    asks = probe_of(chat.home, ID, marker)
    chat.cancelled()
    over = probe_of(chat.home, ID, marker)

    assert asks is not None
    assert asks.state is ActivityState.PERMISSION
    assert over is not None
    assert over.turn_over


def test_what_an_agent_is_doing_is_read_from_its_conversation(chat: Chat) -> None:
    """Plan, model and tokens; what nobody has written is not known."""
    tokens = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115}
    todos = [{"description": "a", "status": "completed"}, {"description": "b", "status": "in_progress"}]
    call = {"name": "write_todos", "args": {"todos": todos}, "status": "success"}
    chat.typed("one")
    chat.add("gemini", "1", model="m", tokens=tokens)
    chat.typed("two")
    chat.add("gemini", "2", model="n", tokens=tokens)

    reader = WorkFile(chat.path)
    before = reader.look()
    chat.add("gemini", "", model="n", tokens={**tokens, "input": 200}, toolCalls=[call])
    chat.write({"$set": {"messages": [{"id": "about", "type": "user", "content": [{"text": ABOUT}]}]}})

    working = reader.look()

    assert before is not None
    assert (before.plan, before.turn) == ((), Usage(60, 15, 40))
    assert working is not None
    assert working.plan == (PlanItem("a", PlanState.DONE), PlanItem("b", PlanState.IN_PROGRESS))
    assert (working.model, working.context_used, working.context_size, working.tool) == ("n", 200, None, None)
    assert working.turn == Usage(220, 30, 80)
    assert working.session == Usage(280, 45, 120)
    assert set(working.by_model) == {"m", "n"}


# ---------------------------------------------------------------- hooks


@pytest.mark.parametrize(
    ("payload", "events"),
    [
        ({"hook_event_name": "SessionStart", "session_id": ID, "source": "resume"}, (Ready(ID, "resume"),)),
        ({"hook_event_name": "BeforeAgent", "prompt": "hello"}, (PromptReported("hello"),)),
        (
            {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": "ls"}},
            (ToolStarted("run_shell_command", "ls"),),
        ),
        (
            {"hook_event_name": "AfterTool", "tool_name": "mcp_the-loop_loops_list"},
            (ToolEnded("mcp__the-loop__loops_list"),),
        ),
        ({"hook_event_name": "SessionEnd", "reason": "clear"}, ()),
        ({"hook_event_name": "SessionEnd", "reason": "exit"}, (Ended("exit", by_person=False),)),
        ({"hook_event_name": "SessionEnd", "reason": "exit", "left": True}, (Ended("exit", by_person=True),)),
        ({"hook_event_name": "Notification"}, ()),
        ({"hook_event_name": 3}, ()),
        ({}, ()),
    ],
)
def test_reports_mean_what_they_say(payload: dict[str, Any], events: tuple[HarnessEvent, ...]) -> None:
    """One event each, or none."""
    assert interpret(Report("i", "1-1-Event.json", payload)) == events


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session, with its reporter."""
    context = SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=tmp_path,
        folder=tmp_path / "it's" / "s-1",
        spool=tmp_path / "spool" / "i-1",
        notify=tmp_path / "poke",
        args=(),
        session_id=ID,
    )
    install_reporter(context)
    return context


def run(context: SessionContext, event: str, **payload: object) -> int:
    """Run the reporter as Gemini does, and return its exit code. It says nothing on its standard output."""
    content = json.dumps({"hook_event_name": event, **payload}, separators=(",", ":"))
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"'{str(context.folder).replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'/report {event}",
        ],
        input=content,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode


def reported(context: SessionContext) -> list[HarnessEvent]:
    """Return what the reports mean."""
    found = read_reports(context.spool, context.instance)
    assert found.bad == ()
    return [event for report in found.reports for event in interpret(report)]


def test_turns_end_is_reported_with_the_answer_of_the_record(context: SessionContext, chat: Chat) -> None:
    """The hook's own text has each part twice."""
    chat.typed('say "1"')
    chat.add("gemini", 'it\'s "1"\n\\ 日本', model="m")

    code = run(context, "AfterAgent", transcript_path=str(chat.path), prompt_response="it's it's")

    assert (code, reported(context)) == (0, [TurnEnded('it\'s "1"\n\\ 日本')])


def test_turns_end_without_a_record_has_no_answer(context: SessionContext) -> None:
    """A record that cannot be read costs the answer, not the report."""
    run(context, "AfterAgent", transcript_path="/nowhere/chat.jsonl")

    assert reported(context) == [TurnEnded("")]


def test_marker_of_a_dialog_stands_from_its_notification_on(context: SessionContext) -> None:
    """It is there before Gemini draws the dialog, and gone once the tool is over."""
    marker = context.folder / "dialog"

    run(context, "BeforeTool", tool_name="x")
    before = marker.exists()
    run(context, "Notification", notification_type="ToolPermission")
    asks = marker.exists()
    run(context, "AfterTool", tool_name="x")

    assert (before, asks, marker.exists()) == (False, True, False)
    assert (context.folder / "tool").exists()


@pytest.mark.parametrize(
    ("prompt", "blocked"),
    [("[ann via cli #k3f9x2] hello", True), ("[x] mine", False), ("mine", False)],
)
def test_held_session_takes_no_message_of_ours(context: SessionContext, prompt: str, *, blocked: bool) -> None:
    """What waited in Gemini's own queue comes back to ours; what a person typed goes through."""
    (context.folder / "hold").touch()

    code = run(context, "BeforeAgent", prompt=prompt)

    assert code == (2 if blocked else 0)
    assert reported(context) == [TurnBlocked(prompt) if blocked else PromptReported(prompt)]


@pytest.mark.parametrize(("typed", "left"), [("/quit", True), ("hello", False)])
def test_leaving_by_a_command_is_told_from_an_end(
    context: SessionContext, chat: Chat, typed: str, *, left: bool
) -> None:
    """The hook's reason is the same for both; the log of what was typed tells."""
    (chat.path.parents[1] / "logs.json").write_text(json.dumps([{"type": "user", "message": typed}], indent=2))

    run(context, "SessionEnd", reason="exit", transcript_path=str(chat.path))

    assert reported(context) == [Ended("exit", by_person=left)]


# ---------------------------------------------------------------- screens

WIDE = "─" * 120
ASKS = """\
 > [ann #m2] [[tool bash touch made]]

╭──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮
│ ? Shell  touch made                                                                                                  │
│ ╭──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮ │
│ │ touch made                                                                                                       │ │
│ ╰──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╯ │
│ Allow execution of [Shell]?                                                                                          │
│                                                                                                                      │
│ ● 1. Allow once                                                                                                      │
│   2. Allow for this session                                                                                          │
│   3. No, suggest changes (esc)                                                                                       │
╰──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────╯


""".splitlines()


def screen(*rows: str) -> View:
    """Return what a terminal shows."""
    return View(rows)


@pytest.mark.parametrize("coloured", [True, False])
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ((" >   Type your message or @path/to/file",), InputLine()),
        ((" > one", "   two"), InputLine("one\ntwo")),
        ((" ! ls",), InputLine("ls", "shell mode")),
        ((" * go on",), InputLine("go on")),
    ],
)
def test_input_line_is_below_the_last_line(rows: tuple[str, ...], line: InputLine, *, coloured: bool) -> None:
    """Its frame is of half blocks, or of blank rows where the terminal has few colours."""
    upper, lower = ("▄" * 120, "▀" * 120) if coloured else ("", "")
    above = (" > what was said before", "✦ an answer", "", WIDE, " Shift+Tab to accept edits", upper)

    assert read_input_line(screen(*above, *rows, lower, " workspace (/directory)", " /work")) == line


def test_dialog_in_a_box_stands_in_the_place_of_the_input_line() -> None:
    """It is read by its form, with its choices, and its text is whole."""
    dialog = read_dialog(ASKS)

    assert read_input_line(screen(*ASKS)) is None
    assert dialog is not None
    assert [offer.label for offer in offers_of(dialog)] == [
        "Allow once",
        "Allow for this session",
        "No, suggest changes (esc)",
    ]
    assert [choice.row for choice in dialog.choices] == [9, 10, 11]
    assert dialog.at == 0
    assert dialog.title == "? Shell  touch made"
    assert not dialog.headless


def test_dialog_that_is_higher_than_the_screen_says_so() -> None:
    """Without its upper side its beginning may have scrolled off."""
    dialog = read_dialog(ASKS[6:])

    assert dialog is not None
    assert dialog.headless
    assert len(dialog.choices) == 3


def test_screen_of_a_resume_shows_no_input_line() -> None:
    """What is typed then is lost."""
    rows = ("⠙ Resuming session...", "  Executing Hook: the-loop", WIDE, " Shift+Tab to accept edits", "", " workspace")

    assert read_input_line(screen(*rows)) is None
