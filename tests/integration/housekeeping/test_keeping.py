"""The housekeeper removes what is over for longer than limits.retainTextDays, rows and files, and nothing else."""

import os
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from core.base.errors import Refused
from core.base.failpoints import Failpoint
from core.chat.inbound import Changes
from core.chat.presses import UNKNOWN_BUTTON, Presses
from core.delivery.permission_requests import Requests
from core.model.asking import Button, Press
from core.model.channel import IncomingChange, IncomingPress, IncomingReply
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.reasons import Because, Reason
from core.service import housekeeping
from core.service.housekeeping import Housekeeper, Reconciler
from core.session.system import System
from tests.integration.lifecycle.machine import Killed, crashing
from tests.support.simulated import Simulation
from tests.support.tmux import wait_until
from tests.unit.store.samples import a_binding, a_message, a_post

THREAD = a_binding().thread
TS = "1700000500.000100"
DAY = 86_400.0


def a_reply() -> NewMessage:
    """Return a reply in the scribe's thread by U1."""
    address = ReplyAddress("slack", "T1", "C1", THREAD, TS)
    return a_message(kind=Kind.REPLY, actor="slack:U1", key=f"slack:T1:C1:{TS}", address=address)


def refused(system: System, message: NewMessage) -> None:
    """Commit a message that goes nowhere."""
    system.inbox.add([message])
    row = system.inbox.get(message.id)
    assert row is not None
    system.inbox.advance(row, MessageState.REFUSED, Because(Reason.DOWN))


def sent(system: System, post: NewPost, ts: str = "1.1") -> None:
    """Commit a post that stands in its thread."""
    system.outbox.add([post])
    row = system.outbox.get(post.id)
    assert row is not None
    system.outbox.advance(system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=ts)


def keep_all(system: System) -> None:
    """Look until there is nothing left to remove, and once more as an hour later."""
    housekeeper = Housekeeper(system)
    for _ in range(2):
        while not housekeeper.look():
            pass


def aged(path: Path, at: datetime, content: str = "words") -> Path:
    """Write a file that was last changed at that moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (at.timestamp(), at.timestamp()))
    os.utime(path.parent, (at.timestamp(), at.timestamp()))
    return path


def press(action: Press, target: str, ts: str = "1.1") -> IncomingPress:
    """Return a press by U1."""
    return IncomingPress("slack", "T1", "C1", THREAD, ts, "U1", "ann", "T1", False, action.value, target)


def presses(system: System) -> Presses:
    """Return the buttons, of which U1 may press all."""
    return Presses(system, lambda author, role: author == "U1", Requests(system))


# ---------------------------------------------------------------- how long


@pytest.mark.parametrize(("days", "stays"), [(13, True), (15, False)])
def test_messages_and_posts_are_kept_for_the_configured_days(simulation: Simulation, days: int, stays: bool) -> None:
    """Fourteen, unless limits.retainTextDays says otherwise."""
    refused(simulation.system, a_message())
    sent(simulation.system, a_post(kind=OutboundKind.ANSWER))
    simulation.clock.pause(days * DAY)

    keep_all(simulation.system)

    assert (simulation.system.inbox.get("m-1") is not None) is stays
    assert (simulation.system.outbox.get("p-1") is not None) is stays


def test_the_configuration_says_how_long(simulation: Simulation) -> None:
    """A day is the least."""
    limits = simulation.system.settings.limits._replace(retain_text_days=1)
    system = replace(simulation.system, settings=simulation.system.settings._replace(limits=limits))
    refused(system, a_message())
    simulation.clock.pause(1.1 * DAY)

    keep_all(system)

    assert system.inbox.get("m-1") is None


def test_much_is_removed_in_more_than_one_look(simulation: Simulation) -> None:
    """Each look has its end, so that the thread sees to its other work, and the next follows at once."""
    with simulation.system.database.transaction(durable=False):
        for number in range(2100):
            refused(simulation.system, a_message(number))
    simulation.clock.pause(15 * DAY)
    housekeeper = Housekeeper(simulation.system)

    housekeeper.turn()
    left = simulation.system.inbox.tally()
    housekeeper.turn()

    assert left == {"refused": 100}
    assert simulation.system.inbox.tally() == {}


def test_it_looks_once_an_hour(simulation: Simulation) -> None:
    """What becomes old meanwhile waits for the next look."""
    housekeeper = Housekeeper(simulation.system)
    refused(simulation.system, a_message())
    simulation.clock.pause(14 * DAY - 60)
    housekeeper.turn()
    simulation.clock.pause(120)

    housekeeper.turn()
    kept = simulation.system.inbox.get("m-1")
    simulation.clock.pause(3600)
    housekeeper.turn()

    assert kept is not None
    assert simulation.system.inbox.get("m-1") is None


def test_an_unreadable_record_is_taken_for_anybodys(simulation: Simulation) -> None:
    """What could not be read says nothing about who is gone."""
    simulation.system.inbox.add([a_message()])
    row = simulation.system.inbox.get("m-1")
    assert row is not None
    for state in (MessageState.CLAIMED, MessageState.PASTED, MessageState.SUBMITTED, MessageState.ACCEPTED):
        row = simulation.system.inbox.advance(row, state)
    (simulation.system.paths.records / "scribe.json").write_text("{")
    simulation.clock.pause(15 * DAY)

    keep_all(simulation.system)

    assert simulation.system.inbox.get("m-1") == row


def test_the_services_finisher_does_it(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the service's start on."""
    monkeypatch.setattr(housekeeping, "_LOOK_SECONDS", 0.01)
    refused(simulation.system, a_message())
    simulation.clock.pause(15 * DAY)
    stopping = threading.Event()
    thread = threading.Thread(target=Reconciler(simulation.system).run, args=(stopping,))

    thread.start()
    try:
        wait_until(lambda: simulation.system.inbox.get("m-1") is None, "the message is removed")
    finally:
        stopping.set()
        thread.join(10)


# ---------------------------------------------------------------- what people meet


def test_a_press_on_a_post_that_is_no_longer_kept_is_answered_truthfully(simulation: Simulation) -> None:
    """The message stands in the thread with its buttons for ever."""
    system = simulation.system
    system.bindings.bind(a_binding(created_at=simulation.clock.now()))
    refused(system, a_message())
    sent(system, a_post(buttons=(Button(Press.SEND_AGAIN, "m-1", "Send again"),)))
    simulation.clock.pause(15 * DAY)
    keep_all(system)

    told = presses(system).press(press(Press.SEND_AGAIN, "m-1"))

    assert system.outbox.get("p-1") is None
    assert told.text == UNKNOWN_BUTTON


def test_a_press_about_a_request_that_is_no_longer_kept_blames_no_earlier_run(simulation: Simulation) -> None:
    """The session may be in the same run still."""
    system = simulation.system
    system.bindings.bind(a_binding(created_at=simulation.clock.now()))
    sent(system, a_post(buttons=(Button(Press.ALLOW, "r-1", "Allow"),)))

    told = presses(system).press(press(Press.ALLOW, "r-1"))

    assert told.text == UNKNOWN_BUTTON


def test_a_message_without_its_text_is_not_sent_again(simulation: Simulation) -> None:
    """Its thread was not swept since, so it is known by its key alone."""
    system = simulation.system
    system.bindings.bind(a_binding(created_at=simulation.clock.now()))
    refused(system, a_reply())
    sent(system, a_post(buttons=(Button(Press.SEND_AGAIN, "m-1", "Send again"),)))
    simulation.clock.pause(15 * DAY)
    keep_all(system)

    with pytest.raises(Refused, match="no longer kept"):
        presses(system).press(press(Press.SEND_AGAIN, "m-1"))


def test_an_old_edit_that_a_sweep_finds_is_no_news(simulation: Simulation) -> None:
    """It was taken over while the message waited; without the text nobody can compare."""
    system = simulation.system
    system.bindings.bind(a_binding(created_at=simulation.clock.now()))
    system.inbox.add([a_reply()])
    row = system.inbox.get("m-1")
    assert row is not None
    row = system.inbox.edit(row, "edited in time")
    for state in (MessageState.CLAIMED, MessageState.PASTED, MessageState.SUBMITTED, MessageState.CONFIRMED):
        row = system.inbox.advance(row, state)
    simulation.clock.pause(15 * DAY)
    keep_all(system)
    reply = IncomingReply("slack", "T1", "C1", THREAD, TS, "U1", "ann", "T1", False, False, "plain", "edited in time")

    Changes(system, lambda author: True).apply([IncomingChange(reply, deleted=False)])

    assert system.outbox.tally() == {}


# ---------------------------------------------------------------- files


def test_files_that_no_row_speaks_of_go(simulation: Simulation) -> None:
    """Texts that went by file, fetched files, texts that could not be posted, copies that were sent, odd reports."""
    system, noon = simulation.system, simulation.clock.now()
    folder, spool = system.paths.session("s-scribe"), system.paths.spool_of("i-scribe")
    refused(system, a_message())
    sent(system, a_post(2, id="p-2-file", kind=OutboundKind.ATTACHMENT))
    gone = [
        aged(folder / "message-m-1.txt", noon),
        aged(folder / "files" / "m-1" / "a.txt", noon),
        aged(folder / "unsent" / "2026-05-04T120000-7.md", noon),
        aged(folder / "outgoing" / "p-2" / "report.pdf", noon),
        aged(folder / "outgoing" / "p-never-committed" / "report.pdf", noon),
        aged(spool / "bad" / "17-1.json", noon),
    ]
    stays = [aged(folder / "launcher", noon), aged(folder / "hook-settings.json", noon)]
    simulation.clock.pause(15 * DAY)

    keep_all(system)

    assert [path for path in gone if path.exists()] == []
    assert [path for path in stays if not path.exists()] == []


def test_files_of_what_waits_stay_and_so_do_young_ones(simulation: Simulation) -> None:
    """A message that waits names its files; a copy is sent from where it lies."""
    system, noon = simulation.system, simulation.clock.now()
    folder = system.paths.session("s-scribe")
    system.inbox.add([a_message()])
    system.outbox.add([a_post(2, id="p-2-file", kind=OutboundKind.ATTACHMENT)])
    simulation.clock.pause(15 * DAY)
    stays = [
        aged(folder / "message-m-1.txt", noon),
        aged(folder / "files" / "m-1" / "a.txt", noon),
        aged(folder / "outgoing" / "p-2" / "report.pdf", noon),
        aged(folder / "unsent" / "new.md", simulation.clock.now()),
        aged(folder / "files" / "m-new" / "a.txt", simulation.clock.now()),
    ]

    keep_all(system)

    assert [path for path in stays if not path.exists()] == []


@pytest.mark.parametrize("name", ["unsent", "files", "outgoing"])
def test_no_link_leads_out_of_a_sessions_folder(simulation: Simulation, tmp_path: Path, name: str) -> None:
    """An agent may put one in the place of a folder, or into it."""
    noon, folder = simulation.clock.now(), simulation.system.paths.session("s-scribe")
    outside = aged(tmp_path / "outside" / "mine.md", noon)
    inner = aged(tmp_path / "inner" / "mine.md", noon)
    (folder / name).symlink_to(outside.parent)
    (folder / "message-x.txt").symlink_to(inner)
    os.utime(folder / "message-x.txt", (noon.timestamp(), noon.timestamp()), follow_symlinks=False)
    simulation.clock.pause(15 * DAY)

    keep_all(simulation.system)

    assert outside.exists()
    assert inner.exists()
    assert not (folder / "message-x.txt").is_symlink()


def test_a_text_that_went_by_file_is_gone_where_only_its_key_is_kept(simulation: Simulation) -> None:
    """The row says nothing any more, so the file says nothing either."""
    system, noon = simulation.system, simulation.clock.now()
    system.bindings.bind(a_binding(created_at=noon))
    refused(system, a_reply())
    file = aged(system.paths.session("s-scribe") / "message-m-1.txt", noon)
    simulation.clock.pause(15 * DAY)

    keep_all(system)

    assert system.inbox.get("m-1") is not None
    assert not file.exists()


# ---------------------------------------------------------------- reports and ends


def test_reports_are_forgotten_after_a_day_and_never_taken_in_twice(simulation: Simulation) -> None:
    """One whose file could not be removed is still known."""
    system, pane = simulation.system, simulation.tmux.panes["i-scribe"]
    pane.begin("one")
    [taken] = [path.name for path in pane.spool.glob("*.json")]
    system.ingest("s-scribe")
    pane.finish()
    [stuck] = [path.name for path in pane.spool.glob("*.json")]
    content = (pane.spool / stuck).read_text()
    system.ingest("s-scribe")
    (pane.spool / stuck).write_text(content)  # as it lies there where it cannot be removed
    simulation.clock.pause(1.1 * DAY)

    keep_all(system)

    with system.database.transaction(durable=False):
        known = [not system.database.ingested("i-scribe", name) for name in (stuck, taken)]
    assert known == [True, False]


def test_ends_are_forgotten_at_the_second_look(simulation: Simulation) -> None:
    """Whoever saw the instance as the session's a moment ago may still ask."""
    system = simulation.system
    for instance in ("i-before", "i-scribe"):
        system.exit_ledger.leave(instance, "s-scribe")
    housekeeper = Housekeeper(system)

    housekeeper.look()
    first = system.exit_ledger.end("i-before")
    housekeeper.look()

    assert first is not None
    assert system.exit_ledger.end("i-before") is None
    assert system.exit_ledger.end("i-scribe") is not None


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("effect", [Failpoint.KEEP_FORGET, Failpoint.KEEP_FILES])
def test_a_killed_service_leaves_the_rest_to_the_next_one(simulation: Simulation, effect: Failpoint, side: str) -> None:
    """Rows first: a file whose row is gone is found by itself."""
    system, noon = simulation.system, simulation.clock.now()
    refused(system, a_message())
    sent(system, a_post(key="files:m-1"))
    waiting = a_message(2)
    system.inbox.add([waiting])
    folder = system.paths.session("s-scribe")
    gone, stays = aged(folder / "message-m-1.txt", noon), aged(folder / "message-m-2.txt", noon)
    simulation.clock.pause(15 * DAY)

    with pytest.raises(Killed), crashing(f"{effect.value}:{side}"):
        keep_all(system)
    keep_all(simulation.restarted().system)

    assert system.inbox.tally() == {"pending": 1}
    assert system.outbox.tally() == {}
    assert (gone.exists(), stays.exists()) == (False, True)
