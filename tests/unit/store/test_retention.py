"""What was over for long goes from the database, and what may still be asked for stays."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.base.paths import StatePaths
from core.model.activity import ActivityState
from core.model.asking import Button, Press, Question, Request, RequestKind, RequestState
from core.model.message import Attachment, InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import Mark, NewPost, NoteStand, OutboundKind, OutboxRow, PostState
from core.model.reasons import Because, Reason
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.outbox import Marks, Outbox
from core.store.requests import RequestBook
from core.store.retention import Living, Retention
from core.store.sessions import Activities, Bindings, ExitLedger
from tests.unit.store.samples import NOON, StandingClock, a_binding, a_message, a_post, an_activity

LIVING = Living(frozenset({"s-scribe"}), frozenset({"i-2"}), all_known=True)
GONE = Living(frozenset(), frozenset(), all_known=True)
UNREADABLE = Living(frozenset(), frozenset(), all_known=False)
LATER = NOON + timedelta(days=1)
THREAD = "1700000000.000100"


@pytest.fixture
def retention(database: Database) -> Retention:
    """Return what removes."""
    return Retention(database)


def moved(inbox: Inbox, message: NewMessage, *steps: MessageState, **changes: Any) -> InboxRow:
    """Commit a message and move it on."""
    inbox.add([message])
    row = inbox.get(message.id)
    assert row is not None
    for step in steps:
        row = inbox.advance(row, step, **(changes if step is steps[-1] else {}))
    return row


def posted(outbox: Outbox, post: NewPost, *steps: PostState) -> OutboxRow:
    """Commit a post and move it on."""
    outbox.add([post])
    row = outbox.get(post.id)
    assert row is not None
    for step in steps:
        row = outbox.advance(row, step, ts="1.1" if step is PostState.SENT else None)
    return row


SENT = (PostState.SENDING, PostState.SENT)
TAKEN = (MessageState.CLAIMED, MessageState.PASTED, MessageState.SUBMITTED)
STATES: Sequence[tuple[MessageState, ...]] = (
    (),
    (MessageState.QUEUED,),
    (MessageState.CLAIMED,),
    (MessageState.CLAIMED, MessageState.PASTED),
    TAKEN,
)


def a_reply(number: int = 1, ts: str = "1700000500.000100", **changes: Any) -> NewMessage:
    """Return a reply in the scribe's thread."""
    address = ReplyAddress("slack", "T1", "C1", THREAD, ts)
    return a_message(number, kind=Kind.REPLY, key=f"slack:T1:C1:{ts}", address=address, **changes)


def everything(retention: Retention, before: datetime = LATER, living: Living = LIVING) -> None:
    """Remove as long as there is something to remove."""
    while retention.messages(before, living, 100) + retention.requests(before, 100):
        pass
    while retention.posts(before, living, 100):
        pass


# ---------------------------------------------------------------- messages


def test_a_message_that_was_over_before_goes(inbox: Inbox, retention: Retention) -> None:
    """Row, text and all."""
    moved(inbox, a_message(), *TAKEN, MessageState.CONFIRMED)

    assert retention.messages(LATER, LIVING, 100) == 1

    assert inbox.get("m-1") is None


def test_a_message_that_was_over_at_that_time_or_later_stays(inbox: Inbox, retention: Retention) -> None:
    """Its last step counts, not when it was written."""
    row = moved(inbox, a_message(created_at=NOON - timedelta(days=9)), MessageState.CANCELLED)

    assert retention.messages(NOON, LIVING, 100) == 0

    assert inbox.get("m-1") == row


@pytest.mark.parametrize("steps", STATES)
@pytest.mark.parametrize("living", [LIVING, GONE])
def test_what_waits_or_is_in_flight_stays_however_old(
    inbox: Inbox, retention: Retention, steps: Sequence[MessageState], living: Living
) -> None:
    """Nothing that may still be delivered is lost."""
    row = moved(inbox, a_message(), *steps)

    assert retention.messages(LATER, living, 100) == 0

    assert inbox.get("m-1") == row


def test_what_a_harness_without_evidence_was_given_goes(inbox: Inbox, retention: Retention) -> None:
    """Submitted and final is the end of such a message."""
    moved(inbox, a_message(), *TAKEN, final=True)

    everything(retention)

    assert inbox.get("m-1") is None


@pytest.mark.parametrize(("living", "stays"), [(LIVING, True), (UNREADABLE, True), (GONE, False)])
def test_what_lies_in_a_harness_own_queue_stays_while_its_session_exists(
    inbox: Inbox, retention: Retention, living: Living, stays: bool
) -> None:
    """A record that cannot be read may be the session's."""
    moved(inbox, a_message(), *TAKEN, MessageState.ACCEPTED)

    everything(retention, living=living)

    assert (inbox.get("m-1") is not None) is stays


@pytest.mark.parametrize(
    ("instance", "living", "stays"),
    [("i-2", LIVING, True), ("i-1", LIVING, False), ("i-1", UNREADABLE, True), ("i-2", GONE, False)],
)
def test_what_nobody_knows_stays_while_its_instance_is_the_latest(
    inbox: Inbox, retention: Retention, instance: str, living: Living, stays: bool
) -> None:
    """That harness may still prove it, and its input line may hold the text."""
    moved(inbox, a_message(), *TAKEN, MessageState.UNKNOWN, instance=instance)

    everything(retention, living=living)

    assert (inbox.get("m-1") is not None) is stays


def test_of_many_of_which_nobody_knows_the_latest_stays(inbox: Inbox, retention: Retention) -> None:
    """Only that one may stand in the input line yet; a long life must not gather them."""
    for number in (1, 2, 3):
        moved(inbox, a_message(number), *TAKEN, MessageState.UNKNOWN, instance="i-2")

    everything(retention)

    assert [number for number in (1, 2, 3) if inbox.get(f"m-{number}")] == [3]


@pytest.mark.parametrize("other", [(MessageState.QUEUED,), (*TAKEN, MessageState.ACCEPTED)])
def test_a_start_is_remembered_while_an_earlier_message_is_not_settled(
    inbox: Inbox, retention: Retention, other: Sequence[MessageState]
) -> None:
    """Which conversation that message was meant for is read from the boots since."""
    moved(inbox, a_message(1, kind=Kind.BOOT), *TAKEN, MessageState.CONFIRMED)
    row = moved(inbox, a_message(2), *other)

    everything(retention)
    kept = inbox.get("m-1")
    inbox.advance(row, MessageState.CONFIRMED)
    everything(retention)

    assert kept is not None
    assert kept.message.text == "text 1"
    assert inbox.get("m-1") is None


def test_what_the_running_turn_took_stays_until_it_is_over(
    inbox: Inbox, database: Database, retention: Retention
) -> None:
    """Its end still changes the reaction at the message; the row of a repeated notice keeps its answer back."""
    activities = Activities(database)
    busy = an_activity(state=ActivityState.BUSY, turn_started_at=NOON)
    activities.put(busy)
    moved(inbox, a_message(), *TAKEN, MessageState.CONFIRMED)

    everything(retention)
    kept = inbox.get("m-1")
    activities.put(an_activity(turn_started_at=NOON))
    everything(retention)

    assert kept is not None
    assert inbox.get("m-1") is None


@pytest.mark.parametrize(
    ("ts", "left"),
    [("1700000499.999999", None), ("1700000500.000000", ""), ("1700000900.000000", "")],
)
def test_a_reply_is_known_again_by_its_key_where_a_sweep_comes_past_it(
    inbox: Inbox, database: Database, retention: Retention, ts: str, left: str | None
) -> None:
    """Then only its text goes; what lies before all that sweeps read goes whole."""
    bindings = Bindings(database)
    bindings.bind(a_binding())
    with database.transaction(durable=False):
        bindings.forget_refused(a_binding(), "1700000500.000000")
    moved(inbox, a_reply(ts=ts), *TAKEN, MessageState.CONFIRMED)

    everything(retention)

    row = inbox.get("m-1")
    assert (row and row.message.text) == left
    assert inbox.add([a_reply(2, ts=ts)]) == (left is None,)


def test_no_reply_of_a_thread_that_was_never_swept_comes_twice(
    inbox: Inbox, database: Database, retention: Retention
) -> None:
    """Its first sweep reads all of it."""
    Bindings(database).bind(a_binding())
    moved(inbox, a_reply(), MessageState.REFUSED)

    everything(retention)

    assert inbox.add([a_reply(2)]) == (False,)


def test_a_reply_of_a_thread_that_is_bound_no_more_goes(inbox: Inbox, retention: Retention) -> None:
    """No sweep reads it."""
    moved(inbox, a_reply(), MessageState.REFUSED)

    everything(retention)

    assert inbox.get("m-1") is None


def test_the_sweeps_mark_never_goes_back(database: Database) -> None:
    """A sweep that overtook another says less."""
    bindings = Bindings(database)
    bindings.bind(a_binding())

    with database.transaction(durable=False):
        bindings.forget_refused(a_binding(), "1700000500.000000")
        bindings.forget_refused(a_binding(), "1700000400.000000")

    assert [row["swept_before"] for row in database.read("SELECT * FROM bindings")] == ["1700000500.000000"]


@pytest.mark.parametrize(("living", "text"), [(LIVING, ""), (UNREADABLE, ""), (GONE, None)])
def test_a_notice_is_remembered_by_its_task_for_as_long_as_its_session_exists(
    inbox: Inbox, retention: Retention, living: Living, text: str | None
) -> None:
    """The harness repeats it at its resumes; only its text goes."""
    moved(
        inbox, a_message(kind=Kind.NOTICE, key="notice:s-scribe:task-7", task="task-7"), *TAKEN, MessageState.CONFIRMED
    )

    everything(retention, living=living)

    row = inbox.of_key("notice:s-scribe:task-7")
    assert (row and row.message.text) == text


def test_a_notice_that_was_only_recorded_goes(inbox: Inbox, retention: Retention) -> None:
    """It is known by no task."""
    moved(inbox, a_message(kind=Kind.NOTICE, key="notice:i-1:17-1.json"), MessageState.CANCELLED)

    everything(retention)

    assert inbox.get("m-1") is None


def test_ticks_are_left_to_their_loops(inbox: Inbox, retention: Retention) -> None:
    """A run that is open speaks of its tick."""
    row = moved(inbox, a_message(kind=Kind.KEEP_ALIVE_TICK), MessageState.CANCELLED)

    everything(retention)

    assert inbox.get("m-1") == row


def test_what_belongs_to_a_message_goes_with_it(
    inbox: Inbox, database: Database, clock: StandingClock, retention: Retention
) -> None:
    """Its mark, and the list of its files."""
    moved(inbox, a_reply(), MessageState.REFUSED)
    Marks(database, clock).shown("m-1", Mark.TAKEN)
    with database.transaction(durable=False):
        inbox.add_files("m-1", [Attachment("F1", "a.txt", "text/plain", 3, "https://files.example.org/a.txt")])

    everything(retention)

    assert database.read("SELECT * FROM marks") == []
    assert database.read("SELECT * FROM attachments") == []


def test_no_call_removes_more_than_it_may(inbox: Inbox, retention: Retention) -> None:
    """The oldest go first."""
    for number in (1, 2, 3):
        moved(inbox, a_message(number), MessageState.CANCELLED)

    assert retention.messages(LATER, LIVING, 2) == 2

    assert [number for number in (1, 2, 3) if inbox.get(f"m-{number}")] == [3]


def test_a_row_whose_text_is_gone_already_is_not_looked_for_again(
    inbox: Inbox, database: Database, retention: Retention
) -> None:
    """Else a batch would be full of them."""
    Bindings(database).bind(a_binding())
    moved(inbox, a_reply(), MessageState.REFUSED)

    assert [retention.messages(LATER, LIVING, 100) for _ in range(2)] == [1, 0]


def test_what_is_removed_is_overwritten(
    inbox: Inbox, database: Database, paths: StatePaths, retention: Retention
) -> None:
    """No word stays in free pages, however SQLite was built."""
    for number in range(40):
        moved(inbox, a_message(number, text=f"zanzibar-{number} " * 200), MessageState.CANCELLED)
    database.read("PRAGMA secure_delete = OFF")

    everything(retention)
    database.close()

    assert b"zanzibar" not in paths.database.read_bytes()


# ---------------------------------------------------------------- requests


def a_request(number: int = 1, **changes: Any) -> Request:
    """Return a question."""
    values: dict[str, Any] = {
        "id": f"r-{number}",
        "key": f"hook-{number}",
        "uid": "s-scribe",
        "name": "scribe",
        "instance": "i-2",
        "agent": "main",
        "kind": RequestKind.QUESTION,
        "asked_at": NOON,
        "expires_at": NOON + timedelta(minutes=10),
        "questions": (Question("Which?"),),
    }
    return Request(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({}, True),
        ({"state": RequestState.GONE, "settled_at": NOON}, False),
        ({"state": RequestState.ANSWERED, "settled_at": NOON}, True),
        ({"state": RequestState.ANSWERED, "settled_at": NOON, "told": True}, False),
        ({"state": RequestState.GONE, "settled_at": LATER}, True),
    ],
)
def test_a_request_goes_once_it_is_settled_and_told(
    database: Database, retention: Retention, changes: dict[str, Any], stays: bool
) -> None:
    """An open one waits for a person; an answer that nobody told may yet be."""
    requests = RequestBook(database)
    requests.add(a_request())
    requests.move(a_request(), **changes)

    everything(retention)

    assert (requests.get("r-1") is not None) is stays


# ---------------------------------------------------------------- posts


@pytest.mark.parametrize(
    ("steps", "stays"),
    [((), True), ((PostState.SENDING,), True), (SENT, False), ((PostState.FAILED,), False)],
)
def test_a_post_goes_once_it_is_over(
    outbox: Outbox, retention: Retention, steps: Sequence[PostState], stays: bool
) -> None:
    """One on its way is looked for by its id, and may be sent yet."""
    posted(outbox, a_post(kind=OutboundKind.ANSWER), *steps)

    everything(retention)

    assert (outbox.get("p-1") is not None) is stays


def test_a_post_is_kept_from_when_it_was_sent_not_from_when_it_was_written(
    outbox: Outbox, clock: StandingClock, retention: Retention
) -> None:
    """One that waited for long has only now been read."""
    row = posted(outbox, a_post(), PostState.SENDING)
    clock.moment = LATER
    outbox.advance(row, PostState.SENT, ts="1.1")

    everything(retention)
    kept = outbox.get("p-1")
    everything(retention, before=LATER + timedelta(seconds=1))

    assert kept is not None
    assert outbox.get("p-1") is None


def test_dropped_posts_are_kept_from_then_on(outbox: Outbox, clock: StandingClock, retention: Retention) -> None:
    """As any other that is over."""
    outbox.add([a_post()])
    clock.moment = LATER
    outbox.drop("s-scribe", Because(Reason.DELETED))

    everything(retention)
    kept = outbox.get("p-1")
    everything(retention, before=LATER + timedelta(seconds=1), living=GONE)

    assert kept is not None
    assert outbox.get("p-1") is None


def test_a_note_stays_whole_while_the_first_message_that_it_tells_of_exists(
    inbox: Inbox, outbox: Outbox, retention: Retention
) -> None:
    """Further messages join it by edits of it, for as long as that one waits."""
    row = moved(inbox, a_message(1), MessageState.QUEUED)
    buttons = (Button(Press.CANCEL, "m-1 m-2", "Cancel all"),)
    posted(outbox, a_post(1, about="m-1", note=NoteStand("g", 1, 0, 1)), *SENT)
    posted(outbox, a_post(2, about="m-1", note=NoteStand("g", 1, 1, 2), edits="p-1", buttons=buttons), *SENT)

    everything(retention)
    latest = outbox.latest_note("g")
    inbox.advance(row, MessageState.CANCELLED)
    everything(retention)

    assert latest is not None
    assert latest.id == "p-2"
    assert (outbox.get("p-1"), outbox.get("p-2")) == (None, None)


@pytest.mark.parametrize("about", ["message", "request"])
def test_a_post_whose_button_may_be_pressed_stays(
    inbox: Inbox, outbox: Outbox, database: Database, retention: Retention, about: str
) -> None:
    """Any of the messages that it is about, or its request, is there still."""
    row = moved(inbox, a_message(2), MessageState.QUEUED)
    requests = RequestBook(database)
    requests.add(a_request())
    target = "m-9 m-2" if about == "message" else "r-1"
    posted(outbox, a_post(buttons=(Button(Press.CANCEL, target, "Cancel"),)), *SENT)

    everything(retention)
    found = outbox.with_buttons("slack", "1.1")
    inbox.advance(row, MessageState.CANCELLED)
    requests.move(a_request(), state=RequestState.GONE, settled_at=NOON)
    everything(retention)

    assert [row.post.id for row in found] == ["p-1"]
    assert outbox.with_buttons("slack", "1.1") == ()


def test_a_post_that_is_about_to_be_edited_stays(outbox: Outbox, retention: Retention) -> None:
    """The edit finds its message by it."""
    posted(outbox, a_post(1), *SENT)
    edit = posted(outbox, a_post(2, edits="p-1"), PostState.SENDING)

    everything(retention)
    kept = outbox.get("p-1")
    outbox.advance(edit, PostState.SENT, ts="1.1")
    everything(retention)

    assert kept is not None
    assert outbox.get("p-1") is None


def test_the_parts_of_a_post_go_together_once_the_last_is_over(
    outbox: Outbox, database: Database, retention: Retention
) -> None:
    """What becomes of the last may still be told for the whole, whose text is kept then."""
    whole = posted(outbox, a_post(1))
    outbox.split(whole, [a_post(2), a_post(3)])
    first, last = outbox.get("p-2"), outbox.get("p-3")
    assert first is not None
    assert last is not None
    outbox.advance(outbox.advance(first, PostState.SENDING), PostState.SENT, ts="1.1")

    everything(retention)
    kept = len(database.read("SELECT * FROM outbox"))
    outbox.advance(last, PostState.FAILED)
    everything(retention)

    assert kept == 3
    assert database.read("SELECT * FROM outbox") == []


def test_what_is_said_once_of_a_message_is_remembered_as_long_as_the_message(
    inbox: Inbox, outbox: Outbox, retention: Retention
) -> None:
    """Each sweep finds it changed again."""
    row = moved(inbox, a_message(), *TAKEN, MessageState.ACCEPTED)
    posted(outbox, a_post(key="edited:m-1", about="m-1"), *SENT)

    everything(retention)
    again = outbox.add([a_post(2, key="edited:m-1")])
    inbox.advance(row, MessageState.CONFIRMED)
    everything(retention)

    assert again == (False,)
    assert outbox.get("p-1") is None


def test_that_a_post_is_missing_is_remembered_as_long_as_the_post(outbox: Outbox, retention: Retention) -> None:
    """One note for all of its parts."""
    row = posted(outbox, a_post(1))
    posted(outbox, a_post(2, key="unsent:p-1", about="p-1"), *SENT)

    everything(retention)
    again = outbox.add([a_post(3, key="unsent:p-1")])
    outbox.advance(row, PostState.FAILED)
    everything(retention)

    assert again == (False,)
    assert outbox.get("p-2") is None


@pytest.mark.parametrize(
    ("kind", "instance", "stays"),
    [
        (OutboundKind.ROOT, "i-2", True),
        (OutboundKind.BOOT, "i-2", True),
        (OutboundKind.ROOT_UPDATE, "i-2", True),
        (OutboundKind.ANSWER, "", False),
        (OutboundKind.BOOT, "i-1", False),
        (OutboundKind.BOOT, "i-22", False),
    ],
)
def test_a_start_is_told_once_as_long_as_its_instance_is_the_latest(
    outbox: Outbox, retention: Retention, kind: OutboundKind, instance: str, stays: bool
) -> None:
    """A reconcile that finishes it long after says nothing twice; the answers of a long life go."""
    posted(outbox, a_post(kind=kind, starts=instance), *SENT)

    everything(retention)

    assert (outbox.get("p-1") is not None) is stays


# ---------------------------------------------------------------- small things


def test_what_counts_within_a_window_goes_after_it(database: Database, retention: Retention) -> None:
    """Posts of agents and restarts, of sessions that have long done neither."""
    RequestBook(database).spoke("s-scribe", NOON, NOON, 9)
    ExitLedger(database).count_restart("s-scribe", NOON)
    RequestBook(database).spoke("s-other", LATER, LATER, 9)

    retention.traces(LATER, 100)

    assert [row["uid"] for row in database.read("SELECT uid FROM spoken UNION ALL SELECT uid FROM restarts")] == [
        "s-other"
    ]


def test_refusals_go_with_their_thread(database: Database, retention: Retention) -> None:
    """Of a bound one they go as its sweeps move on."""
    bindings = Bindings(database)
    bindings.bind(a_binding())
    with database.transaction(durable=False):
        bindings.refuse("k-1", "C1", THREAD, "1.1")
        bindings.refuse("k-2", "C1", "1600000000.000000", "1.2")

    retention.traces(LATER, 100)

    assert [bindings.was_refused(key) for key in ("k-1", "k-2")] == [True, False]


def test_only_ends_of_earlier_instances_that_nobody_waits_for_are_past(
    database: Database, retention: Retention
) -> None:
    """A restart that is due is still to come; whose instance it is may be unknown."""
    book = ExitLedger(database)
    for instance in ("i-1", "i-2"):
        book.leave(instance, "s-scribe")
    book.tell("i-3", "s-scribe", NOON, NOON)

    past = retention.past_ends(LIVING)
    retention.forget_ends(["i-1", "i-3"])

    assert past == {"i-1"}
    assert retention.past_ends(UNREADABLE) == frozenset()
    assert [row["instance"] for row in database.read("SELECT * FROM ends ORDER BY 1")] == ["i-2", "i-3"]


def test_a_report_is_forgotten_once_it_is_old_and_no_longer_spooled(database: Database, retention: Retention) -> None:
    """While its file lies there it would be taken in again."""
    with database.transaction(durable=False):
        for instance, report in (("i-1", "10.json"), ("i-1", "11.json"), ("i-1", "20.json"), ("i-2", "10.json")):
            database.ingested(instance, report)

    removed = retention.reports("i-1", "15", ["11.json"], 100)

    assert removed == 1
    left = [(row["instance"], row["report"]) for row in database.read("SELECT * FROM reports ORDER BY 1, 2")]
    assert left == [("i-1", "11.json"), ("i-1", "20.json"), ("i-2", "10.json")]
    assert retention.reporters() == ("i-1", "i-2")


def test_a_database_without_reports_has_no_reporters(retention: Retention, database: Database) -> None:
    """There is nothing to go through."""
    with database.transaction(durable=False):
        pass

    assert retention.reporters() == ()
