"""The service's threads at work: deliveries by timers and wakes, reports by the FIFO, deaths by the process."""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.chat.inbound import Inbound, NullMirror
from core.chat.outbound import OutboundWorker
from core.delivery.deliverer import Deliverer, DeliveryWorker
from core.delivery.saying import say
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.channel import IncomingReply
from core.model.message import MessageState
from core.model.posts import OutboundKind, PostState
from core.model.session import Binding, SessionEvent
from core.process.presence import ServiceLock
from core.service.watching import ObserverWorker
from core.session.sessions import authorized_rows
from core.session.system import System
from tests.integration.delivery.conftest import open_dialog, settle
from tests.support.chat import HOME, TEAM, Chat
from tests.support.lines import entries
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.world import ACTOR, recorded
from tests.unit.store.samples import a_message

S = MessageState
THREAD = "1700.000000"
TARGET = "=loop-standing-scribe:"


class Served:
    """A service of the three workers, with its lock."""

    def __init__(self, system: System, chat: Chat) -> None:
        self.chat = chat
        self.deliveries = DeliveryWorker(
            system.clock,
            system.inbox,
            Deliverer(system, authorized_rows(system.settings, system.records, chat.authorized)),
        )
        self.posts = OutboundWorker(system, chat)
        self.observer = ObserverWorker(system, self._wake)
        self.failures: list[BaseException] = []
        self._lock = ServiceLock(system.paths.service_lock)
        self._stopping = threading.Event()
        self._system = system
        self._threads = [
            threading.Thread(target=self._run, args=(worker.run,), daemon=True)
            for worker in (self.deliveries, self.posts, self.observer)
        ]

    def _wake(self, uid: str | None) -> None:
        self.deliveries.wake(uid)
        self.posts.wake()

    def _run(self, run: object) -> None:
        try:
            assert callable(run)
            run(self._stopping)
        except BaseException as error:
            self.failures.append(error)
            raise

    def start(self) -> None:
        """Take the lock and start the threads."""
        self._lock.take()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and give the lock back."""
        self._stopping.set()
        self._system.notify()
        self._wake(None)
        for thread in self._threads:
            thread.join(15)
        self._lock.release()
        assert not self.failures


@pytest.fixture
def chat() -> Chat:
    """Give an empty chat."""
    return Chat()


@pytest.fixture
def served(scribe: System, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Give a running service around `scribe`, which has a thread; it looks at the panes where something tells it to."""
    monkeypatch.setattr("core.service.watching._SURVEY_SECONDS", 3600.0)
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    service = Served(scribe, chat)
    service.start()
    yield service
    service.stop()


def reply(text: str, ts: str = "1700.000100", author: str = "U1") -> IncomingReply:
    """Return a member's reply in the thread."""
    return IncomingReply("slack", TEAM, HOME, THREAD, ts, author, "alice", TEAM, False, False, "plain", text)


def receive(system: System, chat: Chat, *replies: IncomingReply) -> None:
    """Run the intake as the channel does."""
    Inbound(system, chat.authorized, NullMirror()).receive(replies)
    system.notify()


def told(system: System, event: str) -> list[dict[str, object]]:
    """Return the events of that name."""
    return [entry for entry in entries(system.paths.events) if entry["event"] == event]


def test_say_is_delivered_by_the_service(scribe: System, served: Served) -> None:
    """The command commits its row and watches it."""
    said = say(scribe, "scribe", "by the service", actor=ACTOR)

    assert said.state is S.CONFIRMED
    assert times(scribe, "by the service") == 1


def test_a_message_that_nobody_understands_holds_up_no_other(scribe: System, served: Served) -> None:
    """It is passed over, however early it came, and what comes after it is delivered."""
    uid, _ = record_of(scribe)
    with sqlite3.connect(scribe.paths.database) as connection:  # none may see it as it should be
        change = "UPDATE inbox SET kind = 'telepathy' WHERE id = 'm-1'"
        connection.execute(f"CREATE TRIGGER spoil AFTER INSERT ON inbox WHEN NEW.id = 'm-1' BEGIN {change}; END")
    scribe.inbox.add([a_message(1, uid=uid)])

    said = say(scribe, "scribe", "after it", actor=ACTOR)

    assert said.state is S.CONFIRMED
    assert not served.failures


def test_a_damaged_database_ends_no_worker(system: System, caplog: pytest.LogCaptureFixture) -> None:
    """Who delivers tells of it and asks again, until it is told to stop."""
    system.paths.database.parent.mkdir(parents=True, exist_ok=True)
    system.paths.database.write_bytes(b"no database" * 1000)
    worker, stopping = DeliveryWorker(system.clock, system.inbox, Deliverer(system)), threading.Event()
    thread = threading.Thread(target=worker.run, args=(stopping,), daemon=True)

    thread.start()

    wait_until(lambda: "cannot tell what is to be delivered" in caplog.messages, "it is told")
    assert thread.is_alive()
    stopping.set()
    worker.wake()
    thread.join(5)
    assert not thread.is_alive()


def test_a_session_of_odd_files_stands_in_no_others_way(scribe: System, served: Served) -> None:
    """Its spool is a file and its conversation a folder: it is told of, the service lives, and it can be stopped."""
    uid, instance = record_of(scribe)
    [conversation] = scribe.paths.session(uid).glob("agent/conversations/*.jsonl")
    conversation.unlink()
    conversation.mkdir()
    odd = scribe.paths.spool_of(instance) / os.fsdecode(b"7-\xff-Stop.json")
    odd.write_text('{"hook_event_name":"Stop"}')
    scribe.notify()
    wait_until(lambda: told(scribe, "standing.suppressed"), "the odd report is told of")

    answer = stop_standing(scribe, "scribe", ACTOR)

    assert answer.ok
    assert not odd.exists()
    assert not served.failures


def test_a_reply_is_answered_in_its_thread(scribe: System, served: Served, chat: Chat) -> None:
    """The agent's final answer comes back, once."""
    receive(scribe, chat, reply("steer left"))

    wait_until(lambda: any("steer left" in text for text in chat.texts(THREAD)), "the answer is in the thread")
    [row] = rows(scribe)
    assert row.state is S.CONFIRMED
    assert sum("steer left" in text for text in chat.texts()) == 1
    assert taken(scribe)[-1].startswith("[alice via slack #")


def test_a_message_slipped_into_a_running_turn_is_confirmed(scribe: System, served: Served) -> None:
    """No hook tells of it: the conversation is read on while the agent's own queue holds it."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 30", actor=ACTOR)
    accepted = say(scribe, "scribe", "in between", actor=ACTOR)
    record = scribe.records.read("scribe")
    row = scribe.inbox.get(accepted.message_id)
    assert record is not None
    assert row is not None
    [conversation] = scribe.paths.session(uid).rglob(f"{record.harness_session_id}.jsonl")
    prompt = f"[ann via cli #{row.message.marker}] in between"
    with conversation.open("a") as file:
        file.write(
            json.dumps({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}) + "\n"
        )

    wait_until(lambda: scribe.inbox.get(row.message.id) != row, "the row moves on")

    moved = scribe.inbox.get(row.message.id)
    assert accepted.state is S.ACCEPTED
    assert moved is not None
    assert moved.state is S.CONFIRMED


def test_a_reply_to_a_stopped_session_gets_one_note(scribe: System, served: Served, chat: Chat) -> None:
    """The note says why, and how to start it; a retry of the reply adds none."""
    stop_standing(scribe, "scribe", ACTOR, "")

    receive(scribe, chat, reply("anybody?"))
    receive(scribe, chat, reply("anybody?"))

    def told() -> list[str]:
        return [text for text in chat.texts(THREAD) if "the session was stopped" in text]

    wait_until(told, "the note is in the thread")
    [row] = [row for row in rows(scribe) if row.message.text == "anybody?"]
    assert row.state is S.REFUSED
    [note] = told()
    assert "`the-loop standing start scribe`" in note


def test_a_reply_while_a_dialog_is_open_gets_a_note_and_goes_in_later(
    scribe: System, served: Served, chat: Chat, private: PrivateTmux
) -> None:
    """No Enter answers the dialog; the note names it."""
    asking = open_dialog(scribe, private)

    receive(scribe, chat, reply("afterwards"))

    wait_until(lambda: any("asks for a permission" in text for text in chat.texts(THREAD)), "the note is posted")
    assert asking.exists()
    private.tmux("send-keys", "-t", TARGET, "Enter")
    assert times(scribe, "afterwards") == 1


def test_whoever_left_the_allow_list_steers_nobody(
    scribe: System, served: Served, chat: Chat, private: PrivateTmux
) -> None:
    """The list is asked again at delivery."""
    open_dialog(scribe, private)
    receive(scribe, chat, reply("too late"))
    wait_until(lambda: rows(scribe)[-1].state is S.QUEUED, "the reply waits")
    chat.members.clear()

    private.tmux("send-keys", "-t", TARGET, "Enter")

    wait_until(lambda: rows(scribe)[-1].state is S.REFUSED, "the reply is refused")
    assert not any("too late" in text for text in taken(scribe))


def test_two_sessions_get_their_own_messages_in_order(scribe: System, served: Served) -> None:
    """Forty messages from two senders at once: each once, in its session, in its sender's order."""
    assert start_standing(scribe, "scribe-two", ACTOR).ok
    names = ("scribe", "scribe-two")

    def speak(sender: str) -> None:
        for number in range(10):
            for name in names:
                say(scribe, name, f"{sender} {number}.", actor=f"cli:{sender}", wait=0)

    senders = [threading.Thread(target=speak, args=(sender,)) for sender in ("ann", "bob")]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()

    for name in names:
        wait_until(lambda name=name: len(taken(scribe, name)) >= 21, f"{name} took all")  # type: ignore[misc]
        texts = [text.split("] ", 1)[1].strip() for text in taken(scribe, name)[1:]]
        assert sorted(texts) == sorted(f"{sender} {number}." for sender in ("ann", "bob") for number in range(10))
        for sender in ("ann", "bob"):
            assert [text for text in texts if sender in text] == [f"{sender} {number}." for number in range(10)]


def test_a_death_is_told_once_with_what_tmux_knows(scribe: System, served: Served, private: PrivateTmux) -> None:
    """The process is watched, and a second service tells it no second time."""
    wait_until(lambda: served.observer.watches(record_of(scribe)[1]), "the pane's process is watched")
    pid = int(private.tmux("display-message", "-p", "-t", TARGET, "#{pane_pid}"))

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: told(scribe, "standing.exited"), "the end is told")
    served.observer.survey()
    ObserverWorker(scribe, lambda _: None).survey()
    [event] = told(scribe, "standing.exited")
    assert event["name"] == "scribe"
    assert "signal 9" in str(event["detail"])


def test_an_escape_that_no_hook_tells_of_ends_in_another_sources_word(scribe: System, private: PrivateTmux) -> None:
    """After half a minute of silence the status file is asked, and a stale dialog marker goes."""
    uid, _ = record_of(scribe)
    asking = open_dialog(scribe, private)
    private.tmux("send-keys", "-t", TARGET, "Escape")
    clock = _Later()
    worker = ObserverWorker(replace(scribe, clock=clock), lambda _: None)

    def idle() -> bool:
        clock.ahead += 31
        worker.survey()
        activity = scribe.activities.get(uid)
        return activity is not None and activity.state is ActivityState.IDLE

    wait_until(idle, "the second opinion is taken")
    assert not asking.exists()
    settle(scribe)


def test_what_a_killed_agent_had_in_its_queue_is_given_to_its_next_life(scribe: System, private: PrivateTmux) -> None:
    """The conversation does not know the text, so it is tried again once the session is back."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 30", actor=ACTOR)
    queued = say(scribe, "scribe", "not lost", actor=ACTOR)
    os.kill(int(private.tmux("display-message", "-p", "-t", TARGET, "#{pane_pid}")), signal.SIGKILL)
    worker = ObserverWorker(scribe, lambda _: None)

    def given_back() -> bool:
        worker.survey()
        return rows(scribe)[-1].state is S.PENDING

    wait_until(given_back, "the row waits again")
    assert start_standing(scribe, "scribe", ACTOR).ok
    Deliverer(scribe).run(uid, rows(scribe)[-1].message.id, scribe.clock.now() + timedelta(seconds=PATIENCE))

    assert queued.state is S.ACCEPTED
    assert rows(scribe)[-1].state is S.CONFIRMED
    assert times(scribe, "not lost") == 1


def test_a_silent_tmux_is_told_once_and_so_is_its_return(scribe: System, quick: System, private: PrivateTmux) -> None:
    """Silence is no death."""
    worker = ObserverWorker(quick, lambda _: None)

    with private.frozen():
        worker.survey()
        worker.survey()
    worker.survey()

    assert len(told(scribe, "standing.tmux_lost")) == len(told(scribe, "standing.tmux_back")) == 1
    assert not told(scribe, "standing.exited")


def test_reports_of_a_stopping_session_post_nothing(scribe: System, chat: Chat) -> None:
    """What it says while it dies is recorded as suppressed."""
    uid, instance = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    stop_standing(scribe, "scribe", ACTOR, "")
    spool = scribe.paths.spool_of(instance)
    spool.mkdir(exist_ok=True)
    stop = {"hook_event_name": "Stop", "last_assistant_message": "my last words"}
    (spool / "1795962562881003000-1-Stop.json").write_text(json.dumps(stop))

    scribe.ingest(uid)

    kinds: list[OutboundKind] = []
    while due := scribe.outbox.due("slack", datetime.now(UTC) + timedelta(days=1)):
        for row in due:
            kinds.append(row.post.kind)
            scribe.outbox.advance(scribe.outbox.advance(row, PostState.SENDING), PostState.SENT, ts="9.9")
    assert kinds == [OutboundKind.NOTE, OutboundKind.ROOT_UPDATE]  # both: that it is stopped
    assert told(scribe, "standing.suppressed")
    assert not list(spool.glob("*.json"))


def test_an_answer_as_a_restart_begins_is_posted(scribe: System, chat: Chat) -> None:
    """Its turn was over: nobody stopped the session to have it say nothing."""
    uid, instance = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    record = recorded(scribe, "scribe")
    scribe.records.write(record.moved(SessionEvent.STOP))
    stop = {"hook_event_name": "Stop", "last_assistant_message": "my last words", "prompt_id": "t-9"}
    (scribe.paths.spool_of(instance) / "1795962562881003000-1-Stop.json").write_text(json.dumps(stop))

    scribe.ingest(uid)

    due = scribe.outbox.due("slack", datetime.now(UTC) + timedelta(days=1))
    assert "my last words" in [row.post.text for row in due]


class _Later:
    """The machine's clock, some seconds on."""

    ahead = 0

    def now(self) -> datetime:
        """Return the moved time."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        """Return nothing that anybody here waits for."""
        return 0.0

    def pause(self, seconds: float) -> None:
        """Wait for nothing."""
