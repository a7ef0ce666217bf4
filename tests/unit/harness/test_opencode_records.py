"""What is read of OpenCode's database and of its screen."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.harness.opencode.records import Conversation, TakenTexts, Turns, database_of, read_input_line
from core.model.activity import Failure
from core.model.harness import PlanItem, PlanState, TextQueued, TextTaken, TurnFailed, Usage
from core.model.pane import InputLine, View
from tests.support.opencode_database import BEGAN, OpenCodeDatabase

EVER = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> OpenCodeDatabase:
    """A database with one conversation in which nothing was said."""
    return OpenCodeDatabase(tmp_path / "opencode.db")


@pytest.fixture
def conversation(database: OpenCodeDatabase) -> Conversation:
    """That conversation."""
    return Conversation(database.path, database.session)


def at(number: int) -> datetime:
    """Return when the message of that number was made."""
    return datetime.fromtimestamp(BEGAN / 1000 + number, UTC)


def test_the_database_is_found_as_opencode_finds_it() -> None:
    """XDG_DATA_HOME moves it, OPENCODE_DB names another one."""
    assert database_of({"HOME": "/h"}) == Path("/h/.local/share/opencode/opencode.db")
    assert database_of({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == Path("/d/opencode/opencode.db")
    assert database_of({"HOME": "/h", "OPENCODE_DB": "/x/my.db"}) == Path("/x/my.db")


def test_a_text_is_taken_once_an_answer_names_it(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """A message alone proves nothing; the answer that begins to work on it does, and is told once."""
    texts = TakenTexts(conversation, from_start=True)
    asked = database.user("[ann #m1] hello")

    before = texts.new_events()
    database.answer(asked, finish="")
    after = texts.new_events()

    assert before == texts.new_events() == ()
    assert [event for event in after if isinstance(event, TextTaken)] == [
        TextTaken("[ann #m1] hello", begins=True, at=at(1), turn=asked)
    ]


def test_a_text_in_mid_turn_is_queued_then_taken(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """Behind an answer that runs it waits, and that is told once; one that the tool loop takes began no turn."""
    texts = TakenTexts(conversation, from_start=True)
    first = database.user("work")
    running = database.answer(first, finish="")
    queued = database.user("[ann #m2] and this")

    waits = [event for event in texts.new_events() if isinstance(event, TextQueued)]
    again = [event for event in texts.new_events() if isinstance(event, TextQueued)]
    database.run(
        "UPDATE message SET data = json_set(data, '$.finish', 'tool-calls', '$.time.completed', 1) WHERE id = ?",
        running,
    )
    database.answer(queued, "both")
    taken = [event for event in texts.new_events() if isinstance(event, TextTaken) and "#m2" in event.prompt]

    assert waits == [TextQueued("[ann #m2] and this", at(3))]
    assert again == []
    assert [(event.begins, event.turn) for event in taken] == [(False, queued)]


def test_a_text_is_told_once_it_is_there(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """The row of a message comes a moment before its text: nothing is told of it until then."""
    texts = TakenTexts(conversation, from_start=True)
    database.answer(database.user("work"), finish="")
    texts.new_events()
    queued = database.unsaid()

    early = texts.new_events()
    database.says(queued, "[ann #m2] and this")

    assert early == ()
    assert texts.new_events() == (TextQueued("[ann #m2] and this", at(3)),)


def test_reading_from_now_on_tells_nothing_old(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """What was taken before is not told again; what follows is."""
    database.answer(database.user("old"), "yes")
    texts = TakenTexts(conversation, from_start=False)

    quiet = texts.new_events()
    new = database.user("new")
    database.answer(new, "yes")

    assert quiet == ()
    assert [event.prompt for event in texts.new_events() if isinstance(event, TextTaken)] == ["new"]


def test_turns_are_told_as_they_stand(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """A turn that runs, its end with its answer, one that was ended in the terminal, and one that failed."""
    turns = Turns(conversation, since=EVER)
    first = database.user("one")
    database.answer(first, finish="tool-calls")

    [running] = turns.new_turns()
    database.answer(first, "done")
    [over] = turns.new_turns()
    second = database.user("two")
    database.answer(second, finish="", error={"name": "MessageAbortedError", "data": {"message": "Aborted"}})
    [cut] = turns.new_turns()
    third = database.user("three")
    database.answer(third, finish="", error={"name": "APIError", "data": {"message": "slow down", "statusCode": 429}})
    [failed] = turns.new_turns()

    assert (running.over_at, running.answered, running.prompts) == (None, True, ("one",))
    assert (over.turn, over.answer, over.cut_off) == (first, "done", False)
    assert over.over_at is not None
    assert (cut.turn, cut.cut_off, cut.failed) == (second, True, None)
    assert failed.failed == TurnFailed("APIError", "slow down", Failure.LIMIT, third)
    assert turns.new_turns() == ()


def test_what_the_agent_does_is_told_by_the_database(database: OpenCodeDatabase, conversation: Conversation) -> None:
    """Its plan, the tool that runs, its model, the context used, and what the turn and the conversation cost."""
    old = database.user("old")
    database.answer(old, "yes", tokens={"input": 7, "output": 1}, cost=0.5)
    asked = database.user("plan it")
    tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 100, "write": 3}}
    database.answer(asked, finish="tool-calls", tokens=tokens, cost=0.25, providerID="fake", modelID="m")
    tool = {"type": "tool", "tool": "bash", "state": {"status": "running", "input": {"command": "sleep 9"}}}
    database.answer(asked, finish="", parts=(tool,), providerID="fake", modelID="m")
    database.run("UPDATE session SET cost = 0.75, tokens_input = 17, tokens_output = 6, tokens_reasoning = 2")
    for position, (text, status) in enumerate((("a", "completed"), ("b", "in_progress"), ("c", "cancelled"))):
        database.run("INSERT INTO todo VALUES (?, ?, ?, 'high', ?, 1, 1)", database.session, text, status, position)

    told = conversation.working(200_000)

    assert told is not None
    assert told.plan == (PlanItem("a", PlanState.DONE), PlanItem("b", PlanState.IN_PROGRESS))
    assert (told.tool, told.model) == ("bash: sleep 9", "fake/m")
    assert (told.context_used, told.context_size) == (113, 200_000)
    assert told.turn == Usage(13, 7, 100, None)
    assert told.session == Usage(17, 8, 0, 0.75)


def test_no_database_holds_nothing_and_a_broken_one_is_told(tmp_path: Path) -> None:
    """Before the first start there is none; what cannot be read is never taken for empty."""
    absent, broken = tmp_path / "absent.db", tmp_path / "broken.db"
    broken.write_bytes(b"no database at all" * 100)

    assert Conversation(absent, "ses_1").messages() == []
    with pytest.raises(StoreBroken, match=r"broken\.db"):
        Conversation(broken, "ses_1").messages()


BOX = """
     ▣  Build · Fake · 51.8s

  ┃
  ┃  {0}
  ┃  {1}
  ┃
  ┃  Build · Fake Fake
  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
   /work                                      14 (0%) · $0.00  ctrl+p commands
"""
DIALOG = """
  ┃  △ Permission required
  ┃    # Shell command
  ┃
  ┃  $ touch a1
  ┃
  ┃   Allow once   Allow always   Reject              ⇆ select  enter confirm
  ┃
"""
SIDEBAR = """
  ┃                                  Context
  ┃  日本 and more                   0% used
  ┃                                  /a/long/path/that
  ┃  Build · Fake Fake               /needs/two/rows
  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
   /work  14 (0%)  ctrl+p commands   • OpenCode 1.18.33
"""
HOME = """
             ┃
             ┃  Ask anything… "Fix broken tests"
             ┃
             ┃  Build · Fake Fake
             ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
                                        tab agents  ctrl+p commands
"""


@pytest.mark.parametrize(
    ("screen", "shown"),
    [
        (BOX.format("half typed", "in two rows"), InputLine("half typed\nin two rows")),
        (BOX.format("", ""), InputLine("")),
        (SIDEBAR, InputLine("日本 and more")),
        (HOME, InputLine("")),
        (HOME.replace("…", "..."), InputLine("")),
        (DIALOG, None),
        ("", None),
    ],
)
def test_the_input_line_is_read_off_the_screen(screen: str, shown: InputLine | None) -> None:
    """Its text without what OpenCode suggests there; a dialog in its place, or an empty screen, shows none."""
    assert read_input_line(View(tuple(screen.splitlines()))) == shown
