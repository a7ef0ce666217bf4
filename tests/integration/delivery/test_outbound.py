"""Posts on their way into a chat, over the real outbox."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base.errors import ChannelError
from core.chat.outbound import OutboundWorker
from core.model.posts import OutboundKind, PostState
from core.model.reasons import said
from core.model.session import Phase, SessionRecord, Thread
from core.session.system import System
from tests.support.chat import HOME, Chat
from tests.support.lines import entries
from tests.support.outgoing import HandClock, drain, events, post
from tests.support.world import definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def recorded(system: System, clock: HandClock) -> System:
    """Give ports with a recorded session `scribe`, uid `s-1`."""
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), T0))
    return replace(system, clock=clock)


@pytest.fixture
def chat() -> Chat:
    """Give an empty chat."""
    return Chat()


@pytest.fixture
def worker(recorded: System, chat: Chat) -> OutboundWorker:
    """Give the worker."""
    return OutboundWorker(recorded, chat)


def test_the_root_is_bound_before_anything_is_posted_to_it(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Answers that were committed meanwhile follow into its thread, in order, and the record has its copy."""
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1), post(OutboundKind.ANSWER, 2)])

    drain(worker, clock)

    root = chat.messages[0]
    binding = recorded.bindings.of_session("s-1", "slack")
    record = recorded.records.read("scribe")
    assert record is not None
    assert binding is not None
    assert binding.place == Thread("slack", HOME, root.ts) == record.thread
    assert chat.texts() == ["root 0", "answer 1", "answer 2"]
    assert [message.thread for message in chat.messages] == ["", root.ts, root.ts]
    assert events(recorded) == [
        "channel.thread_opened",
        "standing.announced",
        "channel.posted",
        "channel.posted",
    ]


def test_an_answer_that_is_there_before_the_root_waits_for_it(
    recorded: System, chat: Chat, clock: HandClock, worker: OutboundWorker
) -> None:
    """The first turn may end before its start has committed the announcement; then nothing is given up."""
    record = recorded.records.read("scribe")
    assert record is not None
    with recorded.locks.hold("scribe", "test", 1.0):
        recorded.records.write(replace(record, phase=Phase.STARTING))
    recorded.outbox.add([post(OutboundKind.ANSWER)])

    worker.turn()
    waiting = [row.state for row in recorded.outbox.due("slack", datetime.max.replace(tzinfo=UTC))]
    recorded.outbox.add([post(OutboundKind.ROOT)])
    with recorded.locks.hold("scribe", "test", 1.0):
        recorded.records.write(replace(record, phase=Phase.SETTLED))
    drain(worker, clock)

    assert waiting == [PostState.PENDING]
    assert chat.texts() == ["root 0", "answer 0"]


def test_a_root_update_edits_the_root(worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock) -> None:
    """The announcement shows the present state."""
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ROOT_UPDATE, 1)])

    drain(worker, clock)

    assert chat.texts() == ["root-update 1"]


@pytest.mark.parametrize(("echo", "told"), [(True, ["slack", "slack"]), (False, [])])
def test_posts_that_come_back_as_events_are_told(
    recorded: System, chat: Chat, clock: HandClock, echo: bool, told: list[str]
) -> None:
    """By them a connection is known that brings nothing. An edit is none, and of a chat without echoes none is told."""
    chat.echo = echo
    sent: list[str] = []
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1), post(OutboundKind.ROOT_UPDATE, 2)])

    drain(OutboundWorker(recorded, chat, sent=sent.append), clock)

    assert sent == told


def test_one_post_a_second_and_channel(worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock) -> None:
    """The second of two sessions in one channel waits; a third in another channel does not."""
    recorded.outbox.add(
        [
            post(OutboundKind.ROOT, uid="s-1"),
            post(OutboundKind.ROOT, uid="s-2"),
            post(OutboundKind.ROOT, uid="s-3", channel="C2"),
        ]
    )

    worker.turn()
    first = len(chat.messages)
    clock.ahead += 1.1
    worker.turn()

    assert (first, len(chat.messages)) == (2, 3)


def test_retry_after_is_obeyed_for_the_whole_channel(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Nothing goes to that channel before the time that the chat named."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    chat.faults = [("post", ChannelError("slow down", transient=True, retry_after=30.0))]

    worker.turn()
    clock.ahead += 29
    worker.turn()
    before = list(chat.texts())
    clock.ahead += 2
    worker.turn()

    assert (before, chat.texts()) == ([], ["root 0"])


def test_a_transient_failure_is_tried_again_and_holds_its_session_back(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Order within the session outweighs speed."""
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1)])
    chat.faults = [("post", ChannelError("unreachable", transient=True))] * 3

    drain(worker, clock, 60)

    assert chat.texts() == ["root 0", "answer 1"]


def test_a_permanent_failure_is_told_once_and_frees_the_way(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """The session goes on; what follows without a thread fails as well."""
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1)])
    chat.faults = [("post", ChannelError("channel_not_found", transient=False))]

    drain(worker, clock)

    assert chat.texts() == []
    assert events(recorded) == ["standing.announce_failed", "channel.post_failed"]
    assert recorded.outbox.due("slack", datetime.max.replace(tzinfo=UTC)) == ()


def test_a_chat_that_takes_nothing_from_us_keeps_the_posts(recorded: System, chat: Chat, clock: HandClock) -> None:
    """A revoked token fails no post: all of them wait, it is told once, and they leave in order once it counts."""
    told: list[tuple[str, str]] = []
    worker = OutboundWorker(recorded, chat, shut_out=lambda kind, problem: told.append((kind, problem)))
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1)])
    shut = ChannelError("token_revoked", "reinstall the app", transient=False, reason=ChannelError.SHUT_OUT)
    chat.faults = [("post", shut), ("post", shut)]

    clock.ahead += worker.turn() + 1
    clock.ahead += worker.turn() - 1
    worker.turn()
    waiting = [row.state for row in recorded.outbox.due("slack", datetime.max.replace(tzinfo=UTC))]
    calls = len(chat.calls)
    clock.ahead += 2
    drain(worker, clock)

    assert (waiting, calls) == ([PostState.PENDING], 2)
    assert chat.texts() == ["root 0", "answer 1"]
    assert [kind for kind, _ in told] == ["slack"] * 3
    assert "reinstall the app" in told[0][1]
    assert told[-1][1] == ""
    assert [name for name in events(recorded) if "connected" in name] == ["channel.disconnected", "channel.connected"]


def test_a_lost_answer_is_looked_for_and_not_posted_twice(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """The post stood there already, and its thread is bound."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]

    drain(worker, clock, 20)

    assert chat.texts() == ["root 0"]
    assert chat.calls == ["post", "find"]
    assert recorded.bindings.of_session("s-1", "slack") is not None


def test_a_post_that_was_being_sent_when_we_died_is_looked_for(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """It was not there, so it is sent."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    [row] = recorded.outbox.due("slack", clock.now())
    recorded.outbox.advance(row, PostState.SENDING)

    drain(worker, clock)

    assert chat.calls == ["find", "post"]
    assert chat.texts() == ["root 0"]


def test_a_search_that_fails_leaves_the_post_unclear(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """It is never sent before the search was answered."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    chat.faults = [
        ("lost", ChannelError("no answer", transient=True, unclear=True)),
        ("find", ChannelError("unreachable", transient=True)),
    ]

    drain(worker, clock, 30)

    assert chat.calls == ["post", "find", "find"]
    assert chat.texts() == ["root 0"]


def test_a_note_goes_to_the_thread_that_it_names(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Also where the session has no thread any more."""
    recorded.outbox.add([post(OutboundKind.NOTE, channel="C7", thread="1.1")])

    drain(worker, clock)

    assert [(message.channel, message.thread) for message in chat.messages] == [("C7", "1.1")]


def test_posts_of_a_deleted_session_are_dropped(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Only its closing note is sent."""
    recorded.outbox.add([post(OutboundKind.ANSWER), post(OutboundKind.CLOSING, channel=HOME, thread="1.1")])
    recorded.outbox.drop("s-1", said("deleted"))

    drain(worker, clock)

    assert chat.texts() == ["closing 0"]


def test_a_long_answer_is_sent_in_parts_before_what_follows_it(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Each part is a row of its own, in the place of the whole."""
    whole = replace(post(OutboundKind.ANSWER, 1), text="one\ntwo\nthree")
    recorded.outbox.add([post(OutboundKind.ROOT), whole, post(OutboundKind.POST, 2)])

    drain(worker, clock, 20)

    assert chat.texts() == ["root 0", "one", "two", "three", "post 2"]
    assert recorded.outbox.tally() == {"sent": 5, "split": 1}


def test_a_request_goes_before_the_answers_that_wait(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """An agent stands still until it is answered; between the parts of an answer, too, and whichever session asks."""
    whole = replace(post(OutboundKind.ANSWER, 1), text="one\ntwo\nthree")
    others = [post(OutboundKind.ANSWER, number, f"s-{number}", channel=HOME, thread="2.0") for number in range(2, 9)]
    recorded.outbox.add([post(OutboundKind.ROOT), whole])
    while len(chat.messages) < 2:
        clock.ahead += worker.turn()

    asked = post(OutboundKind.REQUEST, 21, "s-9", channel=HOME, thread="3.0")
    recorded.outbox.add([*others, post(OutboundKind.NOTE, 20), asked])
    drain(worker, clock, 40)

    assert chat.texts()[:5] == ["root 0", "one", "request 21", "note 20", "answer 2"]
    assert len(chat.messages) == 2 + 2 + 2 + 7


def test_the_line_of_a_boot_is_a_message_of_the_channel(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """It is no session's: nothing is bound to it, and the event names none."""
    line = replace(post(OutboundKind.HOST, uid="host", channel=HOME), name="", text="`build-3` is up: 38 resumed.")
    recorded.outbox.add([line])

    drain(worker, clock)

    assert [(message.channel, message.thread, message.text) for message in chat.messages] == [(HOME, "", line.text)]
    assert recorded.bindings.all("slack") == ()
    [told] = entries(recorded.paths.events)
    assert (told["event"], told.get("name"), told["detail"]) == ("channel.posted", None, "host")


def test_sessions_take_turns(worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock) -> None:
    """One with much to say keeps the others of its channel waiting for one post, and each keeps its own order."""
    much = [post(OutboundKind.ANSWER, number, "s-1", channel=HOME, thread="1.0") for number in range(4)]
    little = [post(OutboundKind.ANSWER, 10 + number, "s-2", channel=HOME, thread="2.0") for number in range(2)]
    recorded.outbox.add([*much, *little])
    while len(chat.messages) < 5:
        clock.ahead += worker.turn()

    recorded.outbox.add([post(OutboundKind.NOTE, 20, "s-1", channel=HOME, thread="1.0")])
    drain(worker, clock, 20)

    assert chat.texts() == ["answer 0", "answer 10", "answer 1", "answer 11", "answer 2", "note 20", "answer 3"]


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_part_whose_answer_was_lost_is_neither_lost_nor_doubled(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock, lost: int
) -> None:
    """Whichever it is: a new worker looks for it and goes on with the next."""
    whole = replace(post(OutboundKind.ANSWER, 1, channel=HOME, thread="1.1"), text="one\ntwo\nthree")
    recorded.outbox.add([whole])
    while len(chat.messages) < lost - 1:
        clock.ahead += worker.turn()
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]

    drain(worker, clock, 3)
    drain(OutboundWorker(recorded, chat), clock, 20)

    assert chat.texts() == ["one", "two", "three"]


def test_what_the_channel_does_not_show_is_left_out(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """A quiet thread gets no answers, and no complaint of it."""
    chat.unwanted = {OutboundKind.ANSWER}
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ANSWER, 1), post(OutboundKind.NOTE, 2)])

    drain(worker, clock)

    assert chat.texts() == ["root 0", "note 2"]
    assert recorded.outbox.tally() == {"sent": 2, "skipped": 1}


def test_secrets_are_out_of_everything_before_it_is_cut(recorded: System, chat: Chat, clock: HandClock) -> None:
    """By value and by look, in answers and notes."""
    known = replace(recorded, environ={**recorded.environ, "SECRET_OF_TESTS": "one\ntwo-three"})
    texts = {OutboundKind.ANSWER: "it is one\ntwo-three.", OutboundKind.NOTE: "failed with xoxb-1-2-abc"}
    recorded.outbox.add([replace(post(kind, channel=HOME, thread="1.1"), text=text) for kind, text in texts.items()])

    drain(OutboundWorker(known, chat), clock)

    assert sorted(chat.texts()) == ["failed with [redacted]", "it is [redacted]."]


def test_whoever_is_to_answer_is_told_that_something_is_hidden(recorded: System, chat: Chat, clock: HandClock) -> None:
    """A question's words are taken for what they are; what is hidden in them is counted."""
    asked = replace(post(OutboundKind.REQUEST, channel=HOME, thread="1.1"), text="Use xoxb-1-2-abc or xoxb-1-2-abd?")
    recorded.outbox.add([asked])

    drain(OutboundWorker(recorded, chat), clock)

    told = "**2 values that look like secrets are hidden** (24 characters): look at the terminal first"
    assert chat.texts() == [f"Use [redacted] or [redacted]?\n{told}"]


@pytest.mark.parametrize("reason", [ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER, ChannelError.THREAD_GONE])
def test_a_thread_that_is_gone_is_unbound(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock, reason: str
) -> None:
    """The next start makes a new one; nothing more is tried in the old one."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    drain(worker, clock)
    chat.faults = [("post", ChannelError("gone", transient=False, reason=reason))]
    recorded.outbox.add([post(OutboundKind.ANSWER, 1), post(OutboundKind.ANSWER, 2)])

    drain(worker, clock)

    assert recorded.bindings.of_session("s-1", "slack") is None
    assert events(recorded)[-3:] == ["channel.post_failed", "channel.unbound", "channel.post_failed"]
    assert chat.texts() == ["root 0"]


def test_a_failure_elsewhere_unbinds_nothing(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """A note to another thread, or a text that the chat does not like, says nothing of the session's thread."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    drain(worker, clock)
    chat.faults = [
        ("post", ChannelError("gone", transient=False, reason=ChannelError.THREAD_GONE)),
        ("post", ChannelError("msg_too_long", transient=False, reason="msg_too_long")),
    ]
    recorded.outbox.add([post(OutboundKind.NOTE, 1, channel="C9", thread="9.9"), post(OutboundKind.ANSWER, 2)])

    drain(worker, clock)

    assert recorded.bindings.of_session("s-1", "slack") is not None


def test_a_thread_that_nobody_understands_holds_up_no_other(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its posts wait and it is named; the other sessions' are sent."""
    recorded.outbox.add([post(OutboundKind.ROOT), post(OutboundKind.ROOT, uid="s-2")])
    drain(worker, clock)
    with sqlite3.connect(recorded.paths.database) as connection:
        connection.execute("UPDATE bindings SET created_at = 'never' WHERE uid = 's-1'")
    recorded.outbox.add([post(OutboundKind.ANSWER), post(OutboundKind.NOTE, uid="s-2")])

    drain(worker, clock)

    assert chat.texts()[2:] == ["note 0"]
    assert ["'never'" in vars(entry)["reason"] for entry in caplog.records] == [True]
    assert [row.state for row in recorded.outbox.due("slack", clock.now())] == [PostState.PENDING]


def test_two_starts_that_say_the_same_are_told_once(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """While nobody posted, the session came up twice: the later reply says all; one with other words stands."""
    recorded.outbox.add([post(OutboundKind.ROOT)])
    drain(worker, clock)
    boots = [post(OutboundKind.BOOT, number) for number in range(3)]
    texts = ("up again, resumed", "up again, fresh", "up again, resumed")
    recorded.outbox.add([replace(boot, text=text) for boot, text in zip(boots, texts, strict=True)])

    drain(worker, clock)

    assert chat.texts() == ["root 0", "up again, fresh", "up again, resumed"]


def test_a_whisper_that_may_have_been_shown_is_not_shown_again(
    worker: OutboundWorker, recorded: System, chat: Chat, clock: HandClock
) -> None:
    """Nobody can look for it afterwards, and once is what it is for."""
    recorded.outbox.add([replace(post(OutboundKind.WHISPER, 1, channel=HOME, thread="1.1"), only_for="U9")])
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True))]

    drain(worker, clock)

    row = recorded.outbox.get("p-whisper-s-1-1")
    assert row is not None
    assert (row.state, row.post.only_for) == (PostState.SENT, "U9")
    assert chat.texts() == ["whisper 1"]
    assert "find" not in chat.calls
