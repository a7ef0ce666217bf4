"""Rows that nobody can understand: a later version's, or damaged. They are named, and hold up no other."""

import json
import logging
from datetime import timedelta

import pytest

from core.base.errors import RowBroken, StoreBroken
from core.model.activity import Activity, ActivityState
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.loops import Loops
from core.store.outbox import Outbox
from core.store.sessions import Activities, Bindings, ExitLedger, Workings
from tests.unit.store.samples import NOON, a_binding, a_loop, a_message, a_post


def _spoil(database: Database, statement: str) -> None:
    with database.transaction(durable=False):
        assert database.write(statement) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("kind = 'telepathy'", r"m-2.*inbox.*kind is 'telepathy'"),
        ("created_at = 'noon'", r"m-2.*inbox.*created_at is 'noon'"),
        ("updated_at = '2026-05-04T12:00:00'", r"m-2.*inbox.*updated_at is '2026-05-04T12:00:00'"),
        ("created_at = '0001-01-01T00:00:00+14:00'", r"m-2.*inbox.*created_at is '0001-01-01T00:00:00\+14:00'"),
        ("queued_at = '9999-12-31T23:59:59-14:00'", r"m-2.*inbox.*queued_at is '9999-12-31T23:59:59-14:00'"),
    ],
)
def test_a_message_with_an_impossible_value_is_named(database: Database, inbox: Inbox, change: str, words: str) -> None:
    """The error names table, row and value, and the command that removes the row."""
    inbox.add([a_message(1), a_message(2)])
    _spoil(database, f"UPDATE inbox SET {change} WHERE id = 'm-2'")

    with pytest.raises(RowBroken, match=words) as caught:
        inbox.get("m-2")

    assert isinstance(caught.value, StoreBroken)
    assert "DELETE FROM inbox WHERE id = " in caught.value.remedy


def test_an_impossible_message_is_passed_over_and_told_once(
    database: Database, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    """The others of its session are delivered; the log has it once, and the database knows it for status."""
    inbox.add([a_message(1), a_message(2), a_message(3)])
    _spoil(database, "UPDATE inbox SET kind = 'telepathy' WHERE id = 'm-1'")

    with caplog.at_level(logging.WARNING):
        first = [row.message.id for row in inbox.unsettled("s-scribe")]
        inbox.unsettled("s-scribe")

    assert first == ["m-2", "m-3"]
    assert [record.message for record in caplog.records] == ["a row of the database cannot be understood"]
    assert len(database.bad_rows()) == 1
    assert "telepathy" in database.bad_rows()[0]


def test_a_long_value_is_not_repeated(database: Database, inbox: Inbox) -> None:
    """What may be a person's text is told by its length alone."""
    inbox.add([a_message(1)])
    _spoil(database, f"UPDATE inbox SET kind = '{'secret ' * 20}'")

    with pytest.raises(RowBroken) as caught:
        inbox.get("m-1")

    assert "secret" not in str(caught.value)
    assert "140 characters" in str(caught.value)


@pytest.mark.parametrize("change", ["kind = 'song'", "buttons = 'no json'", """buttons = '[["dance", "m-1"]]'"""])
def test_an_impossible_post_holds_up_no_other(database: Database, outbox: Outbox, change: str) -> None:
    """What its session posts next is due, although it is first in line."""
    outbox.add([a_post(1), a_post(2), a_post(3, uid="s-b")])
    _spoil(database, f"UPDATE outbox SET {change} WHERE id = 'p-1'")

    due = [row.post.id for row in outbox.due("slack", NOON + timedelta(seconds=1))]

    assert due == ["p-2", "p-3"]
    with pytest.raises(RowBroken, match=r"p-1.*outbox"):
        outbox.get("p-1")


def test_impossible_states_are_found(database: Database, inbox: Inbox, outbox: Outbox) -> None:
    """No queue has a row whose state nobody knows, so they are looked for."""
    inbox.add([a_message(1), a_message(2)])
    outbox.add([a_post(1)])
    _spoil(database, "UPDATE inbox SET state = 'limbo' WHERE id = 'm-1'")
    _spoil(database, "UPDATE outbox SET state = 'nirvana' WHERE id = 'p-1'")

    inbox.check()
    outbox.check()

    told = database.bad_rows()
    assert len(told) == 2
    assert "limbo" in told[0]
    assert "nirvana" in told[1]


def test_an_impossible_activity_is_none(database: Database) -> None:
    """Nothing is known of that session, and the others' are there; its next report writes it anew."""
    activities = Activities(database)
    for uid in ("s-a", "s-b"):
        activities.put(Activity(uid, f"i-{uid}", ActivityState.IDLE, NOON))
    _spoil(database, "UPDATE activities SET state = 'dreaming' WHERE uid = 's-a'")

    assert activities.get("s-a") is None
    assert set(activities.all()) == {"s-b"}
    activities.put(Activity("s-a", "i-s-a", ActivityState.BUSY, NOON))
    assert set(activities.all()) == {"s-a", "s-b"}


@pytest.mark.parametrize("column", ["pending_tasks", "task_names", "silent_why", "retrying", "remarks"])
def test_a_value_without_a_bottom_is_an_impossible_one(database: Database, column: str) -> None:
    """JSON may be nested deeper than anything can read it."""
    activities = Activities(database)
    for uid in ("s-a", "s-b"):
        activities.put(Activity(uid, f"i-{uid}", ActivityState.IDLE, NOON))
    _spoil(database, f"UPDATE activities SET {column} = '{'[' * 100_000}' WHERE uid = 's-a'")

    assert set(activities.all()) == {"s-b"}


@pytest.mark.parametrize("year", ["0001", "1969", "9999"])
def test_a_time_out_of_all_bounds_is_an_impossible_one(database: Database, year: str) -> None:
    """A span before or after it may be none that a calendar has."""
    activities = Activities(database)
    activities.put(Activity("s-a", "i-a", ActivityState.IDLE, NOON))
    _spoil(database, f"UPDATE activities SET since = '{year}-01-01T00:00:00.000000Z'")

    assert activities.get("s-a") is None
    assert f"since is '{year}" in database.bad_rows()[0]


USED = '{"input": 1, "output": 2, "cached": 3, "costUsd": COST}'
TOLD = (
    '{"plan": [{"text": "a", "state": "done"}], "tool": "", "model": null, "context": {"used": 1, "size": 2},'
    ' "usage": {"turn": null, "session": USED, "byModel": {"m": USED}}, "limit": {"what": "w", "until": null}}'
).replace("USED", USED)


@pytest.mark.parametrize(
    "told",
    [
        "{}",
        "[]",
        "null",
        TOLD.replace("COST", "NaN"),
        TOLD.replace("COST", "1e999"),
        TOLD.replace("COST", '"1"'),
        TOLD.replace("COST", "1").replace('"state": ', '"status": '),
        TOLD.replace("COST", "1").replace('"input": 1, ', ""),
        TOLD.replace("COST", "1").replace('"until": null', '"until": 3'),
        TOLD.replace("COST", "1").replace('"used": 1', '"used": "1"'),
    ],
)
def test_what_an_agent_does_is_of_the_form_that_is_shown(database: Database, told: str) -> None:
    """Anything else is named, and is not known of that session."""
    workings = Workings(database)
    for uid in ("s-a", "s-b"):
        workings.put(uid, "i-1", json.loads(TOLD.replace("COST", "0.5")))
    _spoil(database, f"UPDATE workings SET told = '{told}' WHERE uid = 's-a'")

    assert set(workings.all()) == {"s-b"}
    assert workings.get("s-a") is None
    assert "workings" in database.bad_rows()[0]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00.000000Z", "2026-99", ""])
def test_a_loop_that_is_due_at_no_time_holds_up_no_other(database: Database, loops: Loops, at: str) -> None:
    """The scheduler waits for the next of those that can be understood."""
    for number in (1, 2):
        assert loops.add(a_loop(number, next_run_at=NOON), 0)
    _spoil(database, f"UPDATE loops SET next_run_at = '{at}' WHERE id = 'loop_1'")

    assert loops.next_due() == NOON
    assert [loop.id for loop, _ in loops.claim(NOON, "one", NOON + timedelta(seconds=30), 10)] == ["loop_2"]


def test_a_number_without_a_measure_is_an_impossible_one(database: Database, loops: Loops) -> None:
    """A column takes larger numbers than a span of time has."""
    for number in (1, 2):
        assert loops.add(a_loop(number, next_run_at=NOON), 0)
    _spoil(database, "UPDATE loops SET interval_us = 1e308 WHERE id = 'loop_1'")

    assert [loop.id for loop in loops.all_open()] == ["loop_2"]


def test_an_impossible_binding_hides_no_other(database: Database) -> None:
    """A list lacks it; whoever asks for it is told, rather than that there is none."""
    bindings = Bindings(database)
    bindings.bind(a_binding())
    bindings.bind(a_binding(thread="17.9", uid="s-b", name="b"))
    _spoil(database, "UPDATE bindings SET created_at = 'never' WHERE uid = 's-b'")

    assert [binding.uid for binding in bindings.all("slack")] == ["s-scribe"]
    with pytest.raises(RowBroken, match=r"s-b.*bindings.*created_at is 'never'"):
        bindings.of_session("s-b", "slack")


def test_an_impossible_end_hides_no_other(database: Database) -> None:
    """The other session is brought back."""
    watchbook = ExitLedger(database)
    watchbook.tell("i-1", "s-a", NOON, NOON)
    watchbook.tell("i-2", "s-b", NOON, NOON)
    _spoil(database, "UPDATE ends SET due_at = 'soon' WHERE instance = 'i-1'")

    assert [end.instance for end in watchbook.due()] == ["i-2"]
    with pytest.raises(RowBroken, match=r"i-1.*ends"):
        watchbook.end("i-1")


def test_an_impossible_loop_holds_up_no_other(database: Database, loops: Loops) -> None:
    """The others come due, and whoever asks for it is told what is wrong with it."""
    for number in (1, 2):
        assert loops.add(a_loop(number, next_run_at=NOON), 0)
    _spoil(database, "UPDATE loops SET mode = 'sometimes' WHERE id = 'loop_1'")

    claimed = [loop.id for loop, _ in loops.claim(NOON, "one", NOON + timedelta(seconds=30), 10)]

    assert claimed == ["loop_2"]
    assert [loop.id for loop in loops.all_open()] == ["loop_2"]
    with pytest.raises(RowBroken, match=r"loop_1.*loops.*mode is 'sometimes'"):
        loops.get("loop_1")
