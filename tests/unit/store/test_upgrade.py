"""A database of before there were codes goes on as it was: each message in it is treated as the release before did.

`earlier/layout24.sql` was written by the code of that release: a message in every state, with every sentence that it
could give it. `earlier/layout24.json` is what that code then did with each: how it was taken, which buttons its note
had, and, for each way in which the session may be found (`World`), 10 seconds and two hours after, the next step.
"""

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import StatePaths
from core.delivery.deliverer import waits_long
from core.model.delivering import PASSING, PaneState, Situation, Timing, awaits_confirmation, looks_anew, step
from core.model.gate import Decision, GateContext, HoldState, Observed, Wake, decide
from core.model.harness import IdPolicy, Traits
from core.model.message import InboxRow, MessageState, ReplyAddress
from core.model.reasons import Because, Reason, code_of
from core.model.texts import text
from core.session.notes import buttons_of
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.loops import Loops
from core.store.oldwords import PATTERNS, WORDS
from core.store.outbox import Outbox
from tests.unit.store.samples import StandingClock

_EARLIER = Path(__file__).parent / "earlier"
_TOLD: dict[str, Any] = json.loads((_EARLIER / "layout24.json").read_text(encoding="utf-8"))
ROWS: dict[str, dict[str, Any]] = _TOLD["rows"]
T0 = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_TRAITS = Traits(IdPolicy.PREASSIGNED, evidence=True, queues_input=True, clear=b"\x15", stash=b"\x13")
_TIMING = Timing(timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=60))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Give the database of the release before, which ours has opened."""
    paths = StatePaths(tmp_path)
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    before = sqlite3.connect(paths.database)
    before.executescript((_EARLIER / "layout24.sql").read_text(encoding="utf-8"))
    before.close()
    database = Database(paths, StandingClock())
    yield database
    database.close()


@pytest.fixture
def inbox(database: Database) -> Inbox:
    """Give its messages."""
    return Inbox(database, StandingClock())


def row_of(inbox: Inbox, message_id: str) -> InboxRow:
    """Return a message of that database."""
    row = inbox.get(message_id)
    assert row is not None
    return row


def decided(observed: Observed, hold: HoldState = HoldState.NONE, *, kept: bool = False, ahead: int = 0) -> Decision:
    """Return what the gate says of a reply."""
    return decide(Wake.REPLY, hold, observed, GateContext("scribe", kept=kept, ahead=ahead))


def found(world: str, now: datetime) -> dict[str, Any]:
    """Return what is found of a session, by the name of the way."""
    idle = decided(Observed.IDLE)
    worlds: dict[str, dict[str, Any]] = {
        "idle": {"decision": idle},
        "starting": {"decision": decided(Observed.STARTING)},
        "busy": {"decision": decided(Observed.BUSY)},
        "silent": {"decision": decided(Observed.SILENT)},
        "paused": {"decision": decided(Observed.IDLE, HoldState.PAUSED, ahead=2), "paused": True},
        "stopped": {"decision": decided(Observed.DOWN, HoldState.STOPPED)},
        "down": {"decision": decided(Observed.DOWN, kept=True)},
        "typing": {"decision": idle, "typed_at": now - timedelta(seconds=1)},
        "left": {"decision": idle, "left": True},
        "tool": {"decision": idle, "tool_at": now},
        "unauthorized": {"decision": idle, "authorized": False},
        "unserved": {"decision": idle, "authorized": None},
    }
    return worlds[world]


def next_step(row: InboxRow, way: str) -> str:
    """Return the next step as it is written down: its name, state, reason, and moments in milliseconds."""
    world, _, seconds = way.partition("+")
    now = T0 + timedelta(seconds=int(seconds))
    situation = Situation(
        row=row,
        generation=3,
        traits=_TRAITS,
        provable=True,
        timing=_TIMING,
        pane=PaneState.ALIVE,
        **found(world, now),
    )
    chosen = step(situation, now)
    told = {name: getattr(chosen, name) for name in type(chosen).__match_args__}
    state, why = told.get("state"), told.get("because")
    parts = [type(chosen).__name__]
    parts += [state.value] if isinstance(state, MessageState) else []
    parts += [why.code + ("" if why.given == "{}" else why.given)] if isinstance(why, Because) else []
    parts += ["note"] if told.get("note") else []
    for name in ("until", "deadline"):
        parts += [f"{name}={int((told[name] - T0) / timedelta(milliseconds=1))}"] if told.get(name) else []
    parts += [f"number={told['number']}"] if "number" in told else []
    return " ".join(parts)


def test_every_sentence_became_its_code(inbox: Inbox) -> None:
    """What a message waits for, or why it stands where it stands, is known by code and arguments, and can be told."""
    found = {message_id: row_of(inbox, message_id).because for message_id in ROWS}

    assert {message_id: code_of(why) for message_id, why in found.items()} == {
        message_id: told["code"] for message_id, told in ROWS.items()
    }
    reasons = {message_id: why for message_id, why in found.items() if why is not None}
    for message_id, why in reasons.items():
        assert json.loads(why.given) == ROWS[message_id]["given"]
        assert text(why.reason, **why.args) == why.text
        assert why.code in message_id or message_id.endswith("-ahead")  # whose code is another's


def test_all_reasons_that_were_ever_stored_are_in_that_database() -> None:
    """A code that only a sentence of it could have become is tried by these tests."""
    mapped = {*WORDS.values(), *(code for _, code in PATTERNS)}
    within = {"by-argument", "second-enter", "no-enter", "stashed-for-it", "typed-since"}  # in another's arguments
    assert mapped - within == {told["code"] for told in ROWS.values()} - {"", "said"}
    assert mapped <= {reason.value for reason in Reason}


@pytest.mark.parametrize("message_id", ROWS)
def test_each_message_is_treated_as_before(inbox: Inbox, message_id: str) -> None:
    """Late ones wait to be confirmed, files are waited for, what expires does, and all else goes on."""
    row, told = row_of(inbox, message_id), ROWS[message_id]

    treated = {
        "confirm": awaits_confirmation(row),
        "long": waits_long(row),
        "anew": looks_anew(row),
        "passing": row.reason in PASSING,
    }
    assert [name for name, so in treated.items() if so] == told["treated"]
    reason = row.reason or Reason.SAID
    assert [button.press.value for button in buttons_of("m", "m", 1, row.state, reason)] == told["presses"]
    ways = _TOLD["ways"][told["way"]] if told["way"] is not None else {}
    expected = {way: chosen for chosen, listed in ways.items() for way in listed.split()}
    assert {way: next_step(row, way) for way in expected} == expected


def test_a_thread_that_was_closed_for_want_of_room_stays_closed(inbox: Inbox) -> None:
    """What waits to be confirmed keeps none closed, as before."""
    closed = {
        thread: inbox.is_closed(uid, ReplyAddress("slack", "T1", "C1", thread, "9.9"))
        for thread, uid in (("3.0", "s-closed"), ("4.0", "s-late"))
    }

    assert closed == _TOLD["closed"] == {"3.0": True, "4.0": False}


def test_notes_about_what_waits_tell_of_the_same_reason(database: Database, inbox: Inbox) -> None:
    """Their next edit has the buttons that the note had."""
    outbox = Outbox(database, StandingClock(), lambda text: text)
    waits = {
        message_id: wait.because
        for message_id in ROWS
        for wait in outbox.waits_in(f"p-note-{message_id}")
        if wait.message == message_id
    }

    assert len(waits) > 30
    for message_id, why in waits.items():
        alone = (
            Because(Reason.PAUSED, {"ahead": 0}) if why.reason is Reason.PAUSED else row_of(inbox, message_id).because
        )
        assert why == alone


def test_a_run_whose_wait_was_counted_is_not_counted_again(database: Database) -> None:
    """That it was deferred stands in a column of its own; why a run ended stays in words."""
    loops = Loops(database, StandingClock())

    runs = [loops.run(f"r-{number}") for number in range(3)]

    assert [(run.deferred, run.detail) for run in runs if run] == [
        (True, ""),
        (False, ""),
        (False, "its session was stopped"),
    ]
