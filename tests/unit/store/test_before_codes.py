"""A database of the release before codes goes on after an upgrade: what it told by words and keys counts as it did.

`before_codes.sql` is a file that the release itself has written, as text: notes of every kind with their edits, and
announcements of idleness in every stage. Whoever changes it makes it worthless.
"""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.values import replace
from core.chat.outbound import OutboundWorker
from core.delivery.dialogs import hold
from core.delivery.hearing import heard_again
from core.delivery.saying import cancel_message
from core.lifecycle.supervise import STALLED, Collector, Stalls
from core.model.asking import Press
from core.model.dialog import Dialog
from core.model.message import InboxRow, Kind, MessageState, ReplyAddress
from core.model.posts import Mark, NewPost, PostState
from core.model.reasons import Because, Reason, because, said
from core.model.restarting import Announced, Collect, Stage
from core.model.session import Idle, Status
from core.session.notes import mend_notes, note_for
from tests.support.chat import Chat
from tests.support.outgoing import HandClock, drain
from tests.support.simulated import Simulation, simulated
from tests.support.world import events
from tests.unit.store.samples import NOON, a_binding, a_message, a_record

S, R = MessageState, Reason
NONE, IN_TURN = (False, False, False, False), (True, False, False, False)
DUMP = Path(__file__).with_name("before_codes.sql")
CONFIRM, PAUSED = because(R.CONFIRM, late="sent 2 h ago"), because(R.PAUSED, ahead=4)


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


# ---------------------------------------------------------------- activities

ERROR = "rate_limit: API Error: too many requests; wait"
FAILED = (
    "its last turn failed: its account has used up its limit (API Error: too many requests; wait);"
    " wait, then send it again"
)
STOPS = "idle: it will be stopped at 12:00:05 UTC; any message keeps it"
#: by session: why its hooks are silent
SILENT = {
    "mute-off": R.HOOKS_OFF,
    "mute-folder": R.FOLDER_GONE,
    "mute-reporter": R.REPORTER_GONE,
    "mute-trouble": R.HOOKS_FAIL,
    "mute-start": R.START_UNTOLD,
    "mute-untold": R.READING_UNTOLD,
    "mute-turns": R.END_UNTOLD,
}
#: by session: what it says, its code, and what that decides: in a turn, between turns, at the start, cut off
ACTIVITIES: dict[str, tuple[str, Reason | None, tuple[bool, bool, bool, bool]]] = {
    "starting": ("", None, NONE),
    "starts-at-dialog": (
        "it shows a dialog before it is ready for input: Trust it?",
        R.DIALOG_AT_START,
        (False, False, True, False),
    ),
    "idle": ("", None, NONE),
    "cut-off": ("the turn was cut off in the terminal", R.CUT_OFF, (False, False, False, True)),
    "cut-off-announced": (f"the turn was cut off in the terminal; {STOPS}", R.CUT_OFF, (False, False, False, True)),
    "unknown-end": ("the turn is over, but no source tells how it ended", R.END_UNKNOWN, NONE),
    "unknown-end-announced": (f"the turn is over, but no source tells how it ended; {STOPS}", R.END_UNKNOWN, NONE),
    "idle-announced": (STOPS, R.SAID, NONE),
    "failed": (f"{ERROR}; {FAILED}", R.SAID, NONE),
    "failed-without-a-word": ("its last turn failed: it did not say why; look at its terminal", R.SAID, NONE),
    "failed-with-tasks": (
        f"no turn is running, but background tasks are; {ERROR}; {FAILED}",
        R.BETWEEN_TURNS,
        (False, True, False, False),
    ),
    "failed-with-queue": (f"the messages in the harness's own queue are next; {FAILED}", R.QUEUE_LEFT, NONE),
    "failed-announced": (f"{ERROR}; {FAILED}; {STOPS}", R.SAID, NONE),
    "busy": ("", None, IN_TURN),
    "queue-left": ("the messages in the harness's own queue are next", R.QUEUE_LEFT, NONE),
    "between-turns": ("no turn is running, but background tasks are", R.BETWEEN_TURNS, (False, True, False, False)),
    "stalled": ("no sign of life since 2026-05-04 12:00:00 UTC, although it says that it is busy", R.STALLED, IN_TURN),
    "permission": ("Bash: rm -r build", R.SAID, IN_TURN),
    "question": ("Which one?", R.SAID, IN_TURN),
    "asks-by-opinion": ("permission to edit", R.SAID, IN_TURN),
    "dialog": ("it shows a dialog: Pick a model", R.DIALOG_SHOWN, IN_TURN),
    "dialog-between": ("it shows a dialog: Settings", R.DIALOG_SHOWN, NONE),
    "dialog-unread": (
        "it shows a dialog: its screen is not understood: look at its terminal",
        R.DIALOG_SHOWN,
        IN_TURN,
    ),
    "silent": ("the harness was silent for a long time", R.HARNESS_SILENT, NONE),
    "going": ("it is shutting down: prompt_input_exit", R.GOING_AWAY, NONE),
    "of-later": ("what a release of some other day would say", R.SAID, IN_TURN),
    **{
        f"mute-{name}": ("", None, NONE)
        for name in ("off", "folder", "reporter", "trouble", "start", "untold", "turns")
    },
    "retrying": ("", None, IN_TURN),
    "told-soon": ("idle: it will be stopped at 12:05:00 UTC; any message keeps it", R.SAID, NONE),
}


def test_every_session_does_what_it_did(upgraded: Simulation) -> None:
    """It says the same, and what hangs on it is the same: a sentence of another release is shown as it is."""
    known = upgraded.system.activities.all()

    found = {
        uid.removeprefix("s-"): (
            one.detail,
            one.reason,
            (one.in_turn, one.between_turns, one.waits_at_start, one.cut_off_at is not None),
        )
        for uid, one in known.items()
    }
    assert found == ACTIVITIES


def test_why_hooks_are_silent_is_known_as_before(upgraded: Simulation) -> None:
    """Its code is the one of the words in its note, which keeps them."""
    told = {post.uid: post.text for post in _posts(upgraded) if post.uid.startswith("s-mute-")}
    for name, reason in SILENT.items():
        activity = upgraded.system.activities.get(f"s-{name}")
        assert activity is not None
        assert activity.silent_why is not None
        assert activity.silent_why.reason is reason
        assert told[f"s-{name}"].startswith(f"The hooks of `{name}` are silent: ")


@pytest.mark.parametrize("name", SILENT)
def test_hooks_that_report_again_are_told_of_by_an_edit_of_their_note(upgraded: Simulation, name: str) -> None:
    """It is the note from before."""
    system, record = upgraded.system, a_record(name, status=Status.RUNNING, instance_id=f"i-{name}")
    system.bindings.bind(a_binding(uid=record.uid, name=name, thread=f"1699.{name}"))
    before = system.activities.get(record.uid)
    assert before is not None
    [first, _] = [post for post in _posts(upgraded) if post.uid == record.uid]

    after = heard_again(system, record, before, before)

    *_, edit = [post for post in _posts(upgraded) if post.uid == record.uid]
    assert (after.silence, after.silent_why) == (None, None)
    assert edit.edits == first.id
    assert edit.text.startswith(f"The hooks of `{name}` report again, since ")


def test_what_is_tried_again_is_told_as_before(upgraded: Simulation) -> None:
    """Until the next attempt shows."""
    activity = upgraded.system.activities.get("s-retrying")

    assert activity is not None
    assert activity.retrying == said(
        "the model's server answers 529 (Overloaded); its program tries again by itself, attempt 3 of 10"
    )


def test_a_dialog_that_is_held_for_is_not_told_of_again(upgraded: Simulation) -> None:
    """Neither one with a title nor one that nobody can read."""
    system = upgraded.system
    for name, dialog in {"dialog": Dialog(("Pick a model",), 0), "dialog-unread": None}.items():
        assert not hold(system, a_record(name, instance_id=f"i-{name}"), dialog)
        before = system.activities.get(f"s-{name}")
        assert before is not None
        assert hold(system, a_record(name, instance_id=f"i-{name}"), Dialog(("Another",), 0))


@pytest.mark.parametrize(("name", "told"), [("stalled", False), ("busy", True)])
def test_a_stall_that_was_told_is_not_told_again(upgraded: Simulation, name: str, told: bool) -> None:
    """One that comes after the upgrade is."""
    system, record = upgraded.system, a_record(name, status=Status.RUNNING, instance_id=f"i-{name}")
    upgraded.pane(record)
    system.records.write(record)
    stalls = Stalls(system)
    for _ in range(3):
        upgraded.clock.pause(STALLED.total_seconds())
        stalls.turn([record], system.runner.survey())

    assert len(events(system, "standing.stalled")) == told


@pytest.mark.parametrize(("name", "failed"), [("cut-off", True), ("cut-off-announced", True), ("idle", False)])
def test_what_a_turn_took_that_was_cut_off_is_shown_as_failed(upgraded: Simulation, name: str, failed: bool) -> None:
    """By the reaction at the message, of which nobody has told yet."""
    row = _waits(upgraded, "1699.marks", 300, name)
    for state in (S.CLAIMED, S.PASTED, S.SUBMITTED, S.CONFIRMED):
        row = upgraded.system.inbox.advance(row, state, instance=f"i-{name}")
    upgraded.system.marks.shown(row.message.id, Mark.TAKEN)

    assert upgraded.system.marks.left(NOON)[row.message.id] is failed


# ---------------------------------------------------------------- announcements


@pytest.mark.parametrize(
    ("name", "stage"), [("told-soon", Stage.ANNOUNCED), ("told-taken", Stage.TAKEN), ("told-over", Stage.TOLD)]
)
def test_an_announcement_stands_where_it_stood(upgraded: Simulation, name: str, stage: Stage) -> None:
    """None is made twice, and whose end was not told yet is told of it."""
    kept = upgraded.system.exit_ledger.announced(f"s-{name}")

    assert kept == Announced(f"s-{name}", f"i-{name}", NOON, NOON, stage)


@pytest.mark.parametrize(("name", "stops"), [("told-soon", True), ("told-taken", False), ("told-over", False)])
def test_who_was_told_that_it_will_be_stopped_is_stopped(upgraded: Simulation, name: str, stops: bool) -> None:
    """Without being told again, once its time has come; what sleeps for it is told of its end once."""
    system = upgraded.system
    down = {} if stops else {"hold": None}
    definition = replace(a_record(name).definition, idle=Idle(timedelta(minutes=10)))
    status = Status.RUNNING if stops else Status.STOPPED
    record = a_record(name, definition=definition, status=status, instance_id=f"i-{name}", started_at=NOON, **down)
    system.records.write(record)
    system.bindings.bind(a_binding(uid=record.uid, name=name, thread=f"1699.{name}"))
    if stops:
        upgraded.pane(record)
    upgraded.clock.moment = NOON + timedelta(minutes=10)
    collector = Collector(system)

    decision = collector.decide(record, system.runner.survey())
    for _ in range(2):
        if not stops:
            collector.turn([record], system.runner.survey())

    assert isinstance(decision, Collect) is stops
    told = [post.text for post in _posts(upgraded) if post.uid == record.uid]
    assert len(told) == (name == "told-taken")
    assert all("is stopped: it had nothing to do" in text for text in told)


# ---------------------------------------------------------------- notes


@pytest.mark.parametrize(
    ("thread", "name", "state", "why", "first", "edits", "count"),
    [
        ("1699.000000s", "scribe", S.QUEUED, PAUSED, "m-1", 3, 4),
        ("1699.000000o", "other", S.QUEUED, PAUSED, "m-17", 2, 3),
        ("1699.late", "scribe", S.QUEUED, CONFIRM, "m-4", 2, 3),
        ("1699.busy", "scribe", S.QUEUED, Because(R.BUSY), "m-6", 1, 2),
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
    assert f"{count} messages to `{name}` " in note.text
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
    assert edits[-1].text == (
        "2 messages to `scribe` were cancelled. Earlier this note said: they arrived late and need confirmation."
    )
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


def test_posts_stand_where_they_stood_for_the_same_reason(upgraded: Simulation) -> None:
    """In the same words; an error stays somebody's words."""
    rows = [upgraded.system.outbox.get(f"p-state-{number}") for number in range(1, 10)]

    assert [(row.state.value, row.reason, row.detail) for row in rows if row is not None] == [
        ("skipped", R.OVER_BEFORE, "its subject had ended before it was posted"),
        ("skipped", R.LATER_EDIT, "a later edit contains it"),
        ("skipped", R.LEFT_OUT, "the channel's verbosity leaves it out"),
        ("failed", R.DELETED, "the session was deleted"),
        ("failed", R.NO_THREAD, "there is no thread for it, or no message to edit"),
        ("failed", R.SAID, "given up after 10 attempts: Slack does not answer"),
        ("pending", R.THREAD_LOOKED_FOR, "the-loop is looking for its earlier thread"),
        ("pending", R.THREAD_UNKNOWN, "it is not known which thread belongs to the session: Slack does not answer"),
        ("pending", R.SAID, "Slack does not answer; try again"),
    ]


def test_the_edit_of_a_note_that_was_never_posted_is_left_out(upgraded: Simulation) -> None:
    """Nobody is told that something waited of which nobody heard."""
    chat, clock = Chat(), HandClock()
    drain(OutboundWorker(replace(upgraded.system, clock=clock), chat), clock, 60)

    [edit] = [post for post in _posts(upgraded) if post.thread == "1699.over" and post.edits]
    left = upgraded.system.outbox.get(edit.id)
    assert left is not None
    assert (left.state, left.reason) == (PostState.SKIPPED, R.OVER_BEFORE)


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
