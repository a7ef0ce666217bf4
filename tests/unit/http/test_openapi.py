"""docs/openapi.yaml says what is served."""

from pathlib import Path

import pytest
import yaml

from core.commandtable import COMMANDS, Command, NoHandler
from core.http import openapi
from core.http.rest import HANDLERS, NOT_SERVED, from_table, operations_of
from core.model.rows import Answer
from core.model.session import Verb

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_table_makes() -> None:
    """Who changes a command, or what an operation answers, runs `python -m core.http.openapi > docs/openapi.yaml`."""
    assert (ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8") == openapi.text()


def test_every_command_of_sessions_and_loops_is_served() -> None:
    """But for those that are left out by name."""
    served = {(one.method, one.path) for one in operations_of()}
    wanted = [row for row in COMMANDS if row.group in ("standing", "loop") and row.cli not in NOT_SERVED]

    assert len(from_table(COMMANDS)) == len(wanted) + len([name for name in HANDLERS if " " not in name])
    assert {("POST", "/standing-sessions/control"), ("GET", "/requests"), ("POST", "/requests/answer")} < served
    assert len(served) == len(operations_of())


def test_a_command_that_is_added_to_the_table_is_served() -> None:
    """By its words, with what it takes; one that only reads is asked by GET, and control takes what acts."""
    row = Command("standing wave", "Wave.", Verb.SAY, COMMANDS[8].takes[:1], run=lambda call, name: Answer(()))

    added = {(one.method, one.path): one for one in operations_of((*COMMANDS, row))}

    assert ("POST", "/standing-sessions/wave") in added
    assert "wave" in added["POST", "/standing-sessions/control"].takes[0].choices


def test_a_command_that_nothing_runs_is_named() -> None:
    """When the service's routes are made, and not when somebody asks."""
    with pytest.raises(NoHandler, match="standing wave"):
        from_table((*COMMANDS, Command("standing wave", "Wave.", Verb.SAY)))


def test_every_answer_has_its_schema() -> None:
    """Whatever an operation is said to answer with is described."""
    described = yaml.safe_load(openapi.text())

    assert {one.answers for one in operations_of()} <= set(described["components"]["schemas"])


def test_what_waits_for_a_turn_or_for_people_is_marked() -> None:
    """It works in threads of its own, so it delays neither a look nor a stop."""
    assert {one.path for one in operations_of() if one.waits} == {"/standing-sessions/say", "/ask"}
