"""A database of the release before codes goes on after an upgrade: what it told by words and keys counts as it did.

`before_codes.sql` is a file that the release itself has written, as text: notes of every kind with their edits, and
announcements of idleness in every stage. Whoever changes it makes it worthless.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from core.domain.buttons import Press
from core.domain.message import InboxRow, Kind, MessageState, ReplyAddress
from core.domain.reasons import Because, Reason, because, said
from core.domain.watchbook import Announced, Stage
from core.ports import NewPost
from core.session.notes import note_for
from core.session.outdated import mend_notes
from core.standing.cancelling import cancel_message
from tests.support.simulated import Simulation, simulated
from tests.unit.store.samples import NOON, a_message

S = MessageState
DUMP = Path(__file__).with_name("before_codes.sql")
CONFIRM, PAUSED = because(Reason.CONFIRM, late="sent 2 h ago"), because(Reason.PAUSED, ahead=4)


@pytest.fixture
def upgraded(tmp_path: Path) -> Simulation:
    """Give a system that has just been upgraded, a few seconds after the earlier release wrote for the last time."""
    simulation = simulated(tmp_path / "state", slack=True)
    database = simulation.system.paths.database
    database.parent.mkdir(parents=True, mode=0o700)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(DUMP.read_text())
    simulation.clock.pause(20)
    return simulation


def _waits(upgraded: Simulation, thread: str, number: int, name: str = "scribe") -> InboxRow:
    ts = f"1701.{number:06d}"
    message = a_message(
        number, uid=f"s-{name}", name=name, kind=Kind.REPLY, actor="slack:U1", who="alice", via="slack",
        key=f"slack:T1:C1:{ts}", address=ReplyAddress("slack", "T1", "C1", thread, ts),
    )  # fmt: skip
    upgraded.system.inbox.add([message])
    row = upgraded.system.inbox.get(message.id)
    assert row is not None
    return row


# ---------------------------------------------------------------- announcements


@pytest.mark.parametrize(
    ("name", "stage"), [("told-soon", Stage.ANNOUNCED), ("told-taken", Stage.TAKEN), ("told-over", Stage.TOLD)]
)
def test_an_announcement_stands_where_it_stood(upgraded: Simulation, name: str, stage: Stage) -> None:
    """None is made twice, and whose end was not told yet is told of it."""
    kept = upgraded.system.watchbook.announced(f"s-{name}")

    assert kept == Announced(f"s-{name}", f"i-{name}", NOON, NOON, stage)


# ---------------------------------------------------------------- notes


@pytest.mark.parametrize(
    ("thread", "name", "state", "why", "first", "edits", "count"),
    [
        ("1699.000000s", "scribe", S.QUEUED, PAUSED, "m-1", 3, 4),
        ("1699.000000o", "other", S.QUEUED, PAUSED, "m-17", 2, 3),
        ("1699.late", "scribe", S.QUEUED, CONFIRM, "m-4", 2, 3),
        ("1699.busy", "scribe", S.QUEUED, Because(Reason.BUSY), "m-6", 1, 2),
        ("1699.unknown", "scribe", S.UNKNOWN, said("no record shows it"), "m-7", 2, 3),
    ],
)
def test_a_message_joins_the_note_of_those_that_share_its_fate(
    upgraded: Simulation, thread: str, name: str, state: MessageState, why: Because, first: str, edits: int, count: int
) -> None:
    """Its edit counts it with those from before, and its buttons are about all of them."""
    row = _waits(upgraded, thread, 200, name)

    note = note_for(upgraded.system, row, state, why, "do this")

    assert note is not None
    made = upgraded.system.outbox.get(note.edits)
    assert made is not None
    assert made.post.about == note.about == first
    assert note.note is not None
    assert (note.note.edits, note.note.count) == (edits, count)
    assert note.text.startswith(f"{count} messages to `{name}` ")
    assert {len(button.target.split()) for button in note.buttons} == {count}


def test_a_message_of_another_thread_has_a_note_of_its_own(upgraded: Simulation) -> None:
    """As before the upgrade."""
    note = note_for(upgraded.system, _waits(upgraded, "1699.new", 200), S.QUEUED, PAUSED, "")

    assert note is not None
    assert note.edits == ""
    assert note.text.startswith("Your message to")


def test_a_note_from_before_is_brought_up_to_date(upgraded: Simulation) -> None:
    """It tells of those that still wait, and in the end what became of all."""
    system = upgraded.system
    for message in ("m-4", "m-5"):
        mend_notes(system, "slack")
        cancel_message(system, message, "cli:ann", told=False)
    mend_notes(system, "slack")

    edits = [post for post in _posts(upgraded) if post.thread == "1699.late" and post.edits]
    assert edits[-1].text.startswith("2 messages to `scribe` waited: it waits to be confirmed")
    assert edits[-1].text.endswith("They are cancelled.")
    assert edits[-1].buttons == ()


def test_the_buttons_of_a_note_from_before_are_there(upgraded: Simulation) -> None:
    """A press names the message and what was shown at it."""
    [row] = upgraded.system.outbox.with_buttons("slack", "1800.000005")

    assert [button.press for button in row.post.buttons] == [Press.CANCEL, Press.INTERRUPT]


def test_what_fails_again_is_told_by_an_edit_of_its_note(upgraded: Simulation) -> None:
    """One that was edited already is not edited again."""
    open_, over = (upgraded.system.outbox.latest_note(f"retry i-{name}") for name in ("busy", "idle"))

    assert open_ is not None
    assert over is not None
    assert (open_.edits, over.edits) == ("", "p-retry-i-idle-1777896000123456")


def test_messages_know_what_they_repeat(upgraded: Simulation) -> None:
    """One that was sent again, the tick of a run, the notice of a task; a recorded notice is of none."""
    known = {number: upgraded.system.inbox.get(f"m-{number}") for number in (1, 100, 101, 102, 103)}

    found = {number: (row.message.again_of, row.message.run, row.message.task) for number, row in known.items() if row}
    assert found == {
        1: ("", "", ""),
        100: ("m-11", "", ""),
        101: ("", "run-7", ""),
        102: ("", "", "task-7"),
        103: ("", "", ""),
    }


def _posts(upgraded: Simulation) -> list[NewPost]:
    with closing(sqlite3.connect(upgraded.system.paths.database)) as connection:
        found = connection.execute("SELECT id FROM outbox ORDER BY seq").fetchall()
    rows = [upgraded.system.outbox.get(name) for (name,) in found]
    return [row.post for row in rows if row is not None]


def test_posts_know_what_they_are_about(upgraded: Simulation) -> None:
    """What is told once of a message, a post or a start is kept as long as that is."""
    posts = {post.id: post for post in _posts(upgraded)}

    about = {name: post.about for name, post in posts.items() if post.about and post.note is None}
    starts = {name: post.starts for name, post in posts.items() if post.starts}
    assert about == {
        "p-edited-1": "m-1",
        "p-files-1": "m-1",
        "p-asked-m-1": "m-1",
        "p-unsent-1": "p-answer-1",
    }
    assert starts == dict.fromkeys(("p-root-1", "p-root-1-anew", "p-boot-1", "p-root-down-i-idle-3"), "i-idle")
    assert posts["p-ended-i-idle"].note is None
    assert all(post.note is None for name, post in posts.items() if name.endswith("-send-again"))
