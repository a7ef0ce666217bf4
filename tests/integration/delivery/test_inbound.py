"""From a reply in a chat to a committed row, in the order that is the security."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.base.names import new_uid
from core.chat.inbound import Inbound, NullMirror
from core.model.channel import IncomingReply, Verdict
from core.model.message import Kind, MessageState, ReplyAddress
from core.model.posts import OutboundKind
from core.model.session import Binding, ChatBinding, SessionRecord
from core.session.sessions import authorized_rows
from core.session.system import System
from core.store.database import Database
from tests.support.chat import HOME, TEAM, Chat
from tests.support.lines import entries
from tests.support.world import World, definition, recorded

T0 = datetime(2026, 11, 29, tzinfo=UTC)
THREAD = "1700.000000"
REPLY = IncomingReply("slack", TEAM, HOME, THREAD, "1700.000100", "U1", "alice", TEAM, False, False, "plain", "do it")


@pytest.fixture
def chat() -> Chat:
    """Give a chat with one member on the list."""
    return Chat()


@pytest.fixture
def bound(system: System) -> System:
    """Give ports with a recorded session `scribe` that has a thread."""
    record = SessionRecord("scribe", new_uid(), definition("scribe"), T0, generation=2)
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(record)
    system.bindings.bind(Binding("slack", TEAM, HOME, THREAD, record.uid, "scribe", T0))
    return system


@pytest.fixture
def inbound(bound: System, chat: Chat) -> Inbound:
    """Give the pipeline."""
    return Inbound(bound, chat.authorized, NullMirror())


def events(system: System) -> list[tuple[str, str | None]]:
    """Return names and reasons of what was told."""

    return [(entry["event"], entry.get("reason")) for entry in entries(system.paths.events)]


def test_a_reply_in_a_bound_thread_is_a_row_when_receive_returns(inbound: Inbound, bound: System) -> None:
    """Who, where, order and key come from the reply; the ticket that it has not is skipped and told."""
    verdicts = inbound.receive([REPLY])

    record = bound.records.read("scribe")
    assert record is not None
    [row] = bound.inbox.unsettled(record.uid)
    message = row.message
    assert verdicts == (Verdict.COMMITTED,)
    assert (message.kind, message.actor, message.who, message.via) == (Kind.REPLY, "slack:U1", "alice", "slack")
    assert (message.key, message.generation, message.text) == (f"slack:{TEAM}:{HOME}:1700.000100", 2, "do it")
    assert message.order_us == 1_700_000_100
    assert events(bound) == [("channel.reply_received", None), ("channel.mirror_skipped", "standing-session")]


def test_the_same_reply_again_is_a_duplicate(inbound: Inbound, bound: System) -> None:
    """Retries and sweeps are free."""
    verdicts = inbound.receive([REPLY, REPLY])

    again = inbound.receive([REPLY])

    assert (*verdicts, *again) == (Verdict.COMMITTED, Verdict.DUPLICATE, Verdict.DUPLICATE)


@pytest.mark.parametrize(
    ("changes", "reason", "told"),
    [
        ({"shape": "message_changed"}, "shape", False),
        ({"thread": "", "is_self": True}, "unmapped", False),
        ({"thread": "1700.999999", "author": "U9"}, "unmapped", False),
        ({"team": "T9", "author_team": "T9"}, "unmapped", False),
        ({"is_self": True, "author": "U9"}, "self-authored", True),
        ({"is_bot": True}, "self-authored", True),
        ({"author": "U9"}, "unauthorized-actor", True),
        ({"author": ""}, "unauthorized-actor", True),
        ({"author_team": "T9"}, "unauthorized-actor", True),
        ({"text": " \x1b\n"}, "empty", True),
    ],
)
def test_what_is_dropped_leaves_a_reason_and_no_text(
    inbound: Inbound, bound: System, changes: dict[str, object], reason: str, told: bool
) -> None:
    """The first step that refuses gives the reason; common ones are counted, not told."""
    verdicts = inbound.receive([replace(REPLY, **changes)])  # type: ignore[arg-type]

    assert verdicts == (Verdict.DROPPED,)
    assert inbound.counters == {reason: 1}
    assert events(bound) == ([("channel.dropped", reason)] if told else [])
    log = bound.paths.events.read_text() if told else ""
    assert "do it" not in log


def test_an_empty_allow_list_denies_everyone(inbound: Inbound, chat: Chat) -> None:
    """Nobody steers before somebody was named."""
    chat.members.clear()

    assert inbound.receive([REPLY]) == (Verdict.DROPPED,)


def test_a_batch_keeps_its_order_of_verdicts(inbound: Inbound) -> None:
    """Each reply gets its own verdict."""
    outsider = replace(REPLY, ts="1700.000101", author="U9")
    second = replace(REPLY, ts="1700.000102")

    verdicts = inbound.receive([outsider, REPLY, second, REPLY])

    assert verdicts == (Verdict.DROPPED, Verdict.COMMITTED, Verdict.COMMITTED, Verdict.DUPLICATE)


def test_one_too_many_is_refused_with_a_note(bound: System, chat: Chat, world: World) -> None:
    """The limit is told in the thread, once, and the row is over."""
    few = replace(bound, settings=bound.settings._replace(limits=bound.settings.limits._replace(queued_per_session=1)))
    inbound = Inbound(few, chat.authorized, NullMirror())

    verdicts = inbound.receive([REPLY, replace(REPLY, ts="1700.000101")])
    again = inbound.receive([replace(REPLY, ts="1700.000101")])

    assert (*verdicts, *again) == (Verdict.COMMITTED, Verdict.DROPPED, Verdict.DUPLICATE)
    [note] = few.outbox.due("slack", datetime.now(UTC))
    assert "the session's queue is full (limits.queuedPerSession is 1)" in note.post.text
    assert note.post.thread == THREAD
    record = few.records.read("scribe")
    assert record is not None
    [refused] = few.inbox.with_states(record.uid, {MessageState.REFUSED})
    assert refused.message.key.endswith("1700.000101")


def reply(number: int, **changes: Any) -> IncomingReply:
    """Return the so many-th reply in the thread."""
    return replace(REPLY, ts=f"1700.{number:06}", text=f"part {number}", **changes)


def limited(system: System, limit: int) -> System:
    """Return the ports with another limit."""
    limits = system.settings.limits._replace(queued_per_session=limit)
    return replace(system, settings=system.settings._replace(limits=limits))


def go_in(system: System, count: int) -> None:
    """Let the first so many messages that wait go in."""
    uid = recorded(system, "scribe").uid
    for row in system.inbox.unsettled(uid)[:count]:
        system.inbox.advance(row, MessageState.CONFIRMED)


def test_queue_that_was_full_stays_closed_for_the_thread_until_it_has_drained(bound: System, chat: Chat) -> None:
    """A later part does not go in where an earlier one was refused; one note counts them and names the key."""
    few = limited(bound, 2)
    inbound = Inbound(few, chat.authorized, NullMirror())

    full = inbound.receive([reply(1), reply(2), reply(3)])
    go_in(few, 1)
    draining = inbound.receive([reply(4)])
    go_in(few, 1)
    drained = inbound.receive([reply(5), reply(6)])

    assert full == (Verdict.COMMITTED, Verdict.COMMITTED, Verdict.DROPPED)
    assert (draining, drained) == ((Verdict.DROPPED,), (Verdict.COMMITTED, Verdict.COMMITTED))
    with closing(sqlite3.connect(few.paths.database)) as stored:
        notes = [text for (text,) in stored.execute("SELECT text FROM outbox ORDER BY seq")]
    assert ["limits.queuedPerSession is 2" in note for note in notes] == [True, True]
    assert notes[1].startswith("2 messages")


def test_queue_is_closed_for_that_thread_alone(bound: System, chat: Chat) -> None:
    """What a person says at the terminal is no part of what was refused."""
    few = limited(bound, 2)
    record = recorded(few, "scribe")
    Inbound(few, chat.authorized, NullMirror()).receive([reply(1), reply(2), reply(3)])
    go_in(few, 1)

    here = ReplyAddress("slack", TEAM, HOME, THREAD, "1700.000004")
    elsewhere = replace(here, thread="1600.000000")

    assert few.inbox.is_closed(record.uid, here)
    assert not few.inbox.is_closed(record.uid, elsewhere)
    assert not few.inbox.is_closed("s-other", here)


def test_what_waits_for_a_persons_word_keeps_no_queue_closed(bound: System, chat: Chat) -> None:
    """It may wait for ever, and holds up nobody."""
    few = limited(bound, 2)
    inbound = Inbound(few, chat.authorized, NullMirror())
    inbound.receive([reply(1, confirm="too late"), reply(2), reply(3)])
    uid = recorded(few, "scribe").uid
    [plain] = [row for row in few.inbox.unsettled(uid) if row.state is MessageState.PENDING]
    few.inbox.advance(plain, MessageState.CONFIRMED)

    assert inbound.receive([reply(4)]) == (Verdict.COMMITTED,)


def test_the_allow_list_is_asked_again_by_row(inbound: Inbound, bound: System, chat: Chat) -> None:
    """Whoever was taken off it between intake and delivery steers nobody."""
    inbound.receive([REPLY])
    record = bound.records.read("scribe")
    assert record is not None
    [row] = bound.inbox.unsettled(record.uid)
    ask = authorized_rows(bound.settings, bound.records, chat.authorized)

    before = ask(row)
    chat.members.clear()

    assert (before, ask(row)) == (True, False)


def test_a_thread_of_a_session_that_is_gone_reaches_nobody(inbound: Inbound, bound: System) -> None:
    """A re-created name inherits no thread: the binding is the old uid's."""
    record = bound.records.read("scribe")
    assert record is not None
    with bound.locks.hold("scribe", "test", 1.0):
        bound.records.write(replace(record, uid=new_uid()))

    assert inbound.receive([REPLY]) == (Verdict.DROPPED,)
    assert inbound.counters == {"no-session": 1}


@pytest.mark.parametrize("trouble", ["gone", "half", "folder gone", "folder replaced"])
def test_a_reply_comes_again_where_its_record_cannot_be_read_now(inbound: Inbound, bound: System, trouble: str) -> None:
    """Nobody is told that it was taken, or that there is no session; once the record is back it goes in."""
    folder = bound.paths.records
    what = folder if trouble.startswith("folder") else folder / "scribe.json"
    aside = what.rename(folder.with_name("aside"))
    if trouble == "half":
        what.write_bytes(aside.read_bytes()[:50])
    elif trouble == "folder replaced":
        what.touch()

    verdicts = inbound.receive([REPLY])
    what.unlink(missing_ok=True)
    aside.rename(what)

    assert (verdicts, inbound.counters, events(bound)) == ((None,), {}, [])
    assert inbound.receive([REPLY]) == (Verdict.COMMITTED,)


def test_a_batch_is_committed_as_a_whole(bound: System, chat: Chat) -> None:
    """Another connection sees the row at once: it is on the disk."""
    Inbound(bound, chat.authorized, NullMirror()).receive([REPLY])

    other = Database(bound.paths, bound.clock)
    found = other.read("SELECT count(*) AS n FROM inbox")
    other.close()

    assert found[0]["n"] == 1


# ---------------------------------------------------------------- who is not listed is told


def written(system: System, **changes: object) -> IncomingReply:
    """Return a reply of somebody who is not on the list, written now."""
    ts = f"{system.clock.now().timestamp():.6f}"
    return replace(REPLY, ts=ts, author="U9", author_name="U9", **changes)  # type: ignore[arg-type]


def whispers(system: System) -> list[tuple[str, str, str]]:
    """Return what is shown to one person alone: to whom, where, and the text."""
    due = system.outbox.due("slack", datetime.max.replace(tzinfo=UTC))
    posts = [row.post for row in due if row.post.kind is OutboundKind.WHISPER]
    return [(post.only_for, post.thread, post.text) for post in posts]


def test_who_is_not_listed_is_told_so_with_the_id_and_none_of_the_words(inbound: Inbound, bound: System) -> None:
    """A wrong member id is the commonest mistake of a set-up; nothing that was said is kept anywhere."""
    inbound.receive([written(bound, text="the secret words")])

    [(member, thread, text)] = whispers(bound)
    assert (member, thread) == ("U9", THREAD)
    assert text == (
        "Your reply did not reach `scribe`, and nothing of it is kept: you are not on the list of people who may "
        f"steer it. Your member id is `U9` (if you are a guest: `{TEAM}:U9`). To do: ask the operator of the-loop to "
        "add this id to `channels.slack.authorizedUsers`; then reply again."
    )
    assert "secret words" not in "".join(str(vars(row.post)) for row in bound.outbox.due("slack", T0))


def test_that_is_told_once_a_day(inbound: Inbound, bound: System) -> None:
    """However much somebody writes, and in however many threads."""
    inbound.receive([written(bound)])
    inbound.receive([written(bound), written(bound)])

    assert len(whispers(bound)) == 1


def test_a_session_with_a_list_of_its_own_names_that(inbound: Inbound, bound: System, chat: Chat) -> None:
    """Whoever the channel lists and the session leaves out is told which list it is."""
    chat.members.add("U9")
    narrowed = replace(definition("created"), chat={"slack": ChatBinding(enabled=True, authorized_users=("U1",))})
    with bound.locks.hold("created", "test", 1.0):
        bound.records.write(SessionRecord("created", "s-narrow", narrowed, T0))
    bound.bindings.bind(Binding("slack", TEAM, HOME, "1701.000000", "s-narrow", "created", T0))

    inbound.receive([written(bound, thread="1701.000000")])

    assert "to add this id to `slack.authorizedUsers` of `created`; then" in whispers(bound)[0][2]


@pytest.mark.parametrize(
    ("changes", "id"),
    [
        ({"author_team": "T9"}, "`T9:U9`"),
        ({"author": f"{TEAM}:U9"}, f"`{TEAM}:U9`"),
        ({"author_team": "", "unlisted": True},
         "`U9` (if you are a guest or of another organization, with your team's id: `T…:U9`)"),
    ],
)  # fmt: skip
def test_outsiders_and_guests_are_told_the_id_that_can_be_listed(
    inbound: Inbound, bound: System, changes: dict[str, object], id: str
) -> None:
    """With the team before it; the note goes to the member all the same."""
    inbound.receive([replace(written(bound), **changes)])  # type: ignore[arg-type]

    [(member, _, text)] = whispers(bound)
    assert member == "U9"
    assert f"Your member id is {id}. To do" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"is_bot": True},
        {"author": ""},
        {"author_team": ""},
        {"thread": "1700.999999"},
        {"ts": "1700.000100"},
    ],
)
def test_nobody_else_is_told(inbound: Inbound, bound: System, changes: dict[str, object]) -> None:
    """Bots, threads that are none of ours, an author of whom Slack does not say who that is, and what is days old."""
    inbound.receive([replace(written(bound), **changes)])  # type: ignore[arg-type]

    assert whispers(bound) == []
