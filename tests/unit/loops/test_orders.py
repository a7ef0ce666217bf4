"""`/the-loop loops NAME`: a look, by a member."""

from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import UnknownSession
from core.base.values import replace
from core.chat.commands import Orders
from core.cli.printing import print_loops
from core.loops.verbs import Asker, LoopAnswer, create_loop, state_text, stop_loop
from core.model.asking import Role
from core.model.channel import IncomingOrder
from core.model.loop import LoopRequest, LoopStatus
from core.session.system import System

ANN = Asker("cli:ann")


def _holds(author: str, role: Role) -> bool:
    return author == "U1" and role is Role.MEMBER


def _order(author: str) -> IncomingOrder:
    return IncomingOrder("slack", author, author, "loops", "scribe", "")


def test_a_member_looks_at_the_loops_of_a_session(system: System) -> None:
    """Each with its cadence, where it stands and how its instruction begins; those that have ended last."""
    ended = create_loop(system, ANN, "scribe", LoopRequest("look", cron="0 9 * * *")).loop
    kept = create_loop(system, ANN, "scribe", LoopRequest("tell\n" * 60, interval="5m", keep_alive=True)).loop
    assert ended is not None
    assert kept is not None
    stop_loop(system, ANN, ended.id, "enough")

    told = Orders(system, "slack", _holds).order(_order("U1"))

    assert told.text == "scribe: 1 open loop"
    lines = told.code.splitlines()
    assert lines[0] == f"{kept.id} every 5m, keep-alive: active, next 12:05:00 UTC, 0 runs"
    assert lines[1] == f'    "{"tell " * 15}tell…"'
    assert lines[2] == f'{ended.id} at "0 9 * * *" (UTC): stopped (enough), 0 runs'
    assert [loop.status for loop in system.loops.of_session("s-scribe")] == [LoopStatus.ACTIVE, LoopStatus.STOPPED]


def test_a_loop_that_is_due_has_no_next_run_in_the_past(system: System, capsys: pytest.CaptureFixture[str]) -> None:
    """What was planned for a time that is over waits for the run before it: both ways of looking say since when."""
    made = create_loop(system, ANN, "scribe", LoopRequest("tell", interval="5m")).loop
    assert made is not None
    at = datetime(2020, 1, 1, 12, 5, tzinfo=UTC)
    made = replace(made, next_run_at=at)

    print_loops(LoopAnswer(None, (made,), "1 open loop").to_json())

    assert state_text(made, at - timedelta(seconds=1)).startswith("active, next ")
    assert state_text(made, at).startswith("active, due since ")
    assert "due since 2020-01-01 12:05:00 UTC" in capsys.readouterr().out


def test_nobody_else_learns_that_the_session_is_there(system: System) -> None:
    """As with every look."""
    with pytest.raises(UnknownSession):
        Orders(system, "slack", _holds).order(_order("U2"))
