"""Messages on their way in."""

import sqlite3
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import Refused, RowBroken
from core.model.message import IN_FLIGHT, TRANSITIONS, WAITING, InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.reasons import said
from core.store import queries
from core.store.database import Database
from core.store.inbox import Inbox
from tests.unit.store.samples import NOON, StandingClock, a_message

S = MessageState
_PATHS: dict[MessageState, tuple[MessageState, ...]] = {  # how a new row comes to each state
    S.PENDING: (),
    S.SUBMITTED: (S.CLAIMED, S.PASTED, S.SUBMITTED),
    S.ACCEPTED: (S.CLAIMED, S.ACCEPTED),
    S.UNKNOWN: (S.CLAIMED, S.UNKNOWN),
    **{state: (state,) for state in TRANSITIONS[S.PENDING]},
}
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_messages = st.builds(
    NewMessage,
    id=st.just("m-1"),
    key=_texts,
    uid=_texts,
    name=_texts,
    generation=st.integers(1, 2**40),
    kind=st.sampled_from(Kind),
    actor=_texts,
    who=_texts,
    via=_texts,
    marker=_texts,
    text=_texts,
    raw=st.booleans(),
    order_us=st.integers(0, 2**62),
    created_at=st.just(NOON),
    address=st.none() | st.builds(ReplyAddress, _texts, _texts, _texts, _texts, _texts),
)


def _to(inbox: Inbox, message: NewMessage, state: MessageState) -> InboxRow:
    """Add the message and bring it to the state."""
    inbox.add([message])
    row = inbox.get(message.id)
    assert row is not None
    for step in _PATHS[state]:
        row = inbox.advance(row, step)
    return row


def _ids(rows: tuple[InboxRow, ...]) -> list[str]:
    return [row.message.id for row in rows]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(_messages)
def test_every_message_comes_back_as_it_was(database: Database, inbox: Inbox, message: NewMessage) -> None:
    """A row holds the whole message, its address too."""
    with database.transaction(durable=False):
        database.write("DELETE FROM inbox")
        inbox.add([message])

    row = inbox.get("m-1")

    assert row is not None
    assert row == InboxRow(message, row.seq, S.PENDING, None, NOON)


def test_a_key_is_taken_once(inbox: Inbox) -> None:
    """A second commit of the same key, in the same call or later, changes nothing and says so."""
    first = inbox.add([a_message(1), a_message(2), a_message(3, key="cli:m-1")])
    second = inbox.add([a_message(4, key="cli:m-2", text="another text"), a_message(5)])

    assert first == (True, True, False)
    assert second == (False, True)
    assert [row.message.text for row in inbox.unsettled("s-scribe")] == ["text 1", "text 2", "text 5"]


def test_what_is_not_there_is_none(inbox: Inbox) -> None:
    """An unknown id, an unknown session and no states have no rows."""
    inbox.add([a_message()])

    assert inbox.get("m-9") is None
    assert inbox.unsettled("s-other") == ()
    assert inbox.with_states("s-scribe", ()) == ()


def test_ticks_come_after_what_people_say_and_in_turns(inbox: Inbox) -> None:
    """However long a tick has waited; the loop that was delivered least recently comes first."""
    tick, kept = Kind.TICK, Kind.KEEP_ALIVE_TICK
    inbox.add([a_message(1, kind=tick, order_us=20), a_message(2, kind=kept, order_us=10)])
    inbox.add([a_message(3, kind=tick, order_us=0), a_message(4, order_us=90), a_message(5, kind=Kind.REPLY)])

    assert _ids(inbox.unsettled("s-scribe")) == ["m-5", "m-4", "m-3", "m-2", "m-1"]


def test_in_flight_comes_first_then_the_order_of_sending(inbox: Inbox) -> None:
    """Rows are taken by their time, those of one time as they came, and what is in flight before all of them."""
    inbox.add(
        [a_message(1, order_us=30), a_message(2, order_us=10), a_message(3, order_us=20), a_message(4, order_us=20)]
    )
    last = inbox.get("m-1")
    assert last is not None

    waiting = _ids(inbox.unsettled("s-scribe"))
    inbox.advance(last, S.CLAIMED)
    in_flight = _ids(inbox.unsettled("s-scribe"))

    assert waiting == ["m-2", "m-3", "m-4", "m-1"]
    assert in_flight == ["m-1", "m-2", "m-3", "m-4"]


@pytest.mark.parametrize("state", list(S))
def test_each_state_is_counted_where_it_belongs(inbox: Inbox, state: MessageState) -> None:
    """Waiting rows are counted, waiting and in-flight rows are unsettled and make a session busy, no others."""
    row = _to(inbox, a_message(), state)

    assert row.state is state
    assert _ids(inbox.unsettled("s-scribe")) == (["m-1"] if state in WAITING | IN_FLIGHT else [])
    assert inbox.busy_uids() == (("s-scribe",) if state in WAITING | IN_FLIGHT else ())
    assert dict(inbox.counts()) == ({"s-scribe": 1} if state in WAITING else {})
    assert inbox.waiting("s-scribe") == (1 if state in WAITING else 0)
    assert inbox.with_states("s-scribe", [state]) == (row,)


def test_rows_by_state_come_newest_first_up_to_the_limit(inbox: Inbox) -> None:
    """Only the session's rows in the states that were asked for, the latest of them."""
    inbox.add([a_message(number) for number in range(1, 6)] + [a_message(6, uid="s-other")])
    first = inbox.get("m-1")
    assert first is not None
    inbox.advance(first, S.CANCELLED)

    both = _ids(inbox.with_states("s-scribe", [S.PENDING, S.CANCELLED], limit=10))
    some = _ids(inbox.with_states("s-scribe", [S.PENDING], limit=2))

    assert both == ["m-5", "m-4", "m-3", "m-2", "m-1"]
    assert some == ["m-5", "m-4"]


def test_a_step_stores_what_it_changes_and_keeps_the_rest(inbox: Inbox, clock: StandingClock) -> None:
    """The row that comes back is the row that is stored, each further column with it."""
    row = _to(inbox, a_message(), S.PENDING)
    clock.pause(5)

    claimed = inbox.advance(
        row,
        S.CLAIMED,
        said("first try"),
        instance="i-1",
        attempt=1,
        attempt_deadline=NOON + timedelta(seconds=5),
        stashed=True,
    )
    pasted = inbox.advance(claimed, S.PASTED, pasted_at=NOON)
    submitted = inbox.advance(pasted, S.SUBMITTED, submitted_at=NOON, submits=1)

    assert claimed.because == said("first try")
    assert claimed.updated_at == NOON + timedelta(seconds=5)
    assert submitted == replace(claimed, state=S.SUBMITTED, because=None, pasted_at=NOON, submitted_at=NOON, submits=1)
    assert inbox.get("m-1") == submitted


@pytest.mark.parametrize("start", list(S))
@pytest.mark.parametrize("end", list(S))
def test_only_steps_of_the_table_are_taken(inbox: Inbox, start: MessageState, end: MessageState) -> None:
    """Each pair of states is a step exactly if the table has it; the row stays as it is otherwise."""
    row = _to(inbox, a_message(), start)

    if end in TRANSITIONS[start]:
        assert inbox.advance(row, end).state is end
    else:
        with pytest.raises(ValueError, match=f"no step from {start.value} to {end.value}"):
            inbox.advance(row, end)
        assert inbox.get("m-1") == row


def test_whoever_comes_second_is_refused(inbox: Inbox) -> None:
    """Of two that saw the same row, one moves it; the other learns where it stands now."""
    row = _to(inbox, a_message(), S.PENDING)
    inbox.advance(row, S.CLAIMED, attempt=1)

    with pytest.raises(Refused, match=r"no longer pending.*it is claimed \(attempt 1\)"):
        inbox.advance(row, S.CANCELLED)


def test_an_earlier_attempt_cannot_settle_a_later_one(inbox: Inbox) -> None:
    """The same state in another attempt is another row to whoever held the first."""
    first = inbox.advance(_to(inbox, a_message(), S.PENDING), S.CLAIMED, attempt=1)
    inbox.advance(inbox.advance(first, S.PENDING), S.CLAIMED, attempt=2)

    with pytest.raises(Refused, match="attempt 2"):
        inbox.advance(first, S.PASTED)


@pytest.mark.parametrize("column", ["message", "seq", "updated_at", "colour"])
def test_other_columns_cannot_be_changed(inbox: Inbox, column: str) -> None:
    """What a message is stays as it was committed."""
    row = _to(inbox, a_message(), S.PENDING)

    with pytest.raises(ValueError, match=f"{column} cannot be changed"):
        inbox.advance(row, S.CLAIMED, None, **{column: 1})


def test_cancelling_takes_what_waits_and_nothing_else(inbox: Inbox) -> None:
    """Waiting rows of the session are cancelled in their order; those in flight, settled or of others stay."""
    _to(inbox, a_message(1), S.CLAIMED)
    _to(inbox, a_message(2), S.CONFIRMED)
    _to(inbox, a_message(3, order_us=90), S.QUEUED)
    _to(inbox, a_message(4, order_us=80), S.PENDING)
    _to(inbox, a_message(5, uid="s-other"), S.PENDING)

    cancelled = inbox.cancel_waiting("s-scribe", said("stopped by cli:ann"))

    assert _ids(cancelled) == ["m-4", "m-3"]
    assert {(row.state, row.detail) for row in cancelled} == {(S.CANCELLED, "stopped by cli:ann")}
    assert _ids(inbox.unsettled("s-scribe")) == ["m-1"]
    assert dict(inbox.counts()) == {"s-other": 1}


@pytest.mark.parametrize("query", [queries.UNSETTLED, queries.WAITING_IDS, queries.BUSY_UIDS, queries.WAITING_COUNTS])
def test_open_rows_are_found_by_their_index(database: Database, query: str) -> None:
    """However many settled rows there are, only the open ones are looked at."""
    parameters = {0: (), 1: ("s-scribe",), 2: ("s-scribe", 1)}[query.count("?")]

    with database.transaction(durable=False):
        plan = " ".join(step["detail"] for step in database.read(f"EXPLAIN QUERY PLAN {query}", parameters))

    assert "INDEX inbox_open" in plan


@pytest.mark.parametrize(("state", "index"), [(S.ACCEPTED, "inbox_accepted"), (S.UNKNOWN, "inbox_unknown")])
def test_what_each_delivery_asks_for_is_found_by_its_index(
    database: Database, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, state: S, index: str
) -> None:
    """However many messages a session has had, only those of the state are looked at."""
    inbox.add([a_message()])
    plans: list[str] = []
    read = database.read

    def explained(query: str, parameters: Any) -> list[sqlite3.Row]:
        plans.extend(step["detail"] for step in read(f"EXPLAIN QUERY PLAN {query}", parameters))
        return read(query, parameters)

    monkeypatch.setattr(database, "read", explained)

    inbox.with_states("s-scribe", {state}, 1)

    assert f"INDEX {index} " in " ".join(plans)


def test_a_submitted_row_that_can_prove_no_more_is_settled(inbox: Inbox) -> None:
    """Where no evidence is waited for, the submitted row keeps nobody waiting."""
    pasted = inbox.advance(_to(inbox, a_message(), S.CLAIMED), S.PASTED)

    row = inbox.advance(pasted, S.SUBMITTED, final=True)

    assert row.final
    assert inbox.unsettled("s-scribe") == ()
    assert inbox.busy_uids() == ()


def test_a_newer_releases_reason_stays_what_it_is(inbox: Inbox, database: Database) -> None:
    """After a downgrade it is shown as code and arguments, and is stored again as it was."""
    row = _to(inbox, a_message(), S.PENDING)
    with database.transaction(durable=False):
        database.write("""UPDATE inbox SET reason = 'frozen', reason_args = '{"by": "cli:ann"}'""")

    found = inbox.get("m-1")
    assert found is not None
    inbox.advance(row, S.QUEUED, found.because)

    assert found.detail == 'frozen {"by": "cli:ann"}'
    [stored] = database.read("SELECT reason, reason_args FROM inbox")
    assert tuple(stored) == ("frozen", '{"by": "cli:ann"}')


@pytest.mark.parametrize("given", ["", "{", "[]"])
def test_a_reason_whose_arguments_are_damaged_makes_a_row_that_is_named(
    inbox: Inbox, database: Database, given: str
) -> None:
    """It is not guessed at, and the others are found."""
    _to(inbox, a_message(1), S.QUEUED)
    _to(inbox, a_message(2), S.QUEUED)
    with database.transaction(durable=False):
        database.write("UPDATE inbox SET reason = 'paused', reason_args = ? WHERE id = 'm-1'", (given,))

    assert _ids(inbox.unsettled("s-scribe")) == ["m-2"]
    with pytest.raises(RowBroken, match="reason_args"):
        inbox.get("m-1")
