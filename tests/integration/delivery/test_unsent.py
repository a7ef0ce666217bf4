"""Posts that never arrive: what the thread hears of them, and what does not count against them."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import ChannelError
from core.chat.outbound import OutboundWorker
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.session import Binding, SessionRecord
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat
from tests.support.outgoing import HandClock, drain, events, post
from tests.support.world import definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)
REFUSED = ChannelError("Slack says storage_limit_reached", "free some space there", transient=False)
SHUT = ChannelError("account_inactive", "reinstall the app", transient=False, reason=ChannelError.SHUT_OUT)


@pytest.fixture
def clock() -> HandClock:
    """Give a clock to move."""
    return HandClock()


@pytest.fixture
def bound(system: System, clock: HandClock) -> System:
    """Give ports with a recorded session `scribe` that has a thread."""
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), T0))
    system.bindings.bind(Binding("slack", TEAM, HOME, "1.0", "s-1", "scribe", T0))
    return replace(system, clock=clock)


class Splitting(Chat):
    """A chat that attaches what is long."""

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Return the beginning and a file."""
        if post.kind is not OutboundKind.ANSWER:
            return (post,)
        first = replace(post, id=f"{post.id}-1", key=f"{post.key}#1", text=f"{post.text[:10]}… attached")
        return first, replace(post, id=f"{post.id}-2", key=f"{post.key}#2", kind=OutboundKind.FILE)


def test_a_file_that_is_refused_is_said_with_the_place_of_the_whole_text(bound: System, clock: HandClock) -> None:
    """The beginning stands in the thread; what it promises does not come, and the note says why and where it is."""
    whole = "the answer, whole, with token ghp_" + "Ab3" * 12
    bound.outbox.add([replace(post(OutboundKind.ANSWER), text=whole)])
    chat = Splitting(faults=[("file", REFUSED)])

    drain(OutboundWorker(bound, chat), clock)

    beginning, note = chat.texts()
    [path] = re.findall(r"`(/.*)`", note)
    assert beginning == "the answer… attached"
    assert "could not be attached" in note
    assert "storage_limit_reached; free some space there" in note
    assert Path(path).read_text() == "the answer, whole, with token [redacted]"
    assert (Path(path).stat().st_mode & 0o777, Path(path).is_relative_to(bound.paths.session("s-1"))) == (0o600, True)
    assert events(bound).count("channel.post_failed") == 1


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OutboundKind.ANSWER, "An answer of `scribe` could not be posted"),
        (OutboundKind.POST, "A post of `scribe` could not be posted"),
        (OutboundKind.ATTACHMENT, "The file `report.bin` could not be attached"),
        (OutboundKind.REQUEST, "A request of `scribe` could not be shown"),
    ],
)
def test_whatever_people_would_miss_is_said_once(
    bound: System, clock: HandClock, kind: OutboundKind, said: str
) -> None:
    """With the reason; an agent's text is kept as a file, a request is answered at the terminal."""
    path = "/somewhere/report.bin" if kind is OutboundKind.ATTACHMENT else ""
    bound.outbox.add([post(kind, path=path)])
    chat = Chat(faults=[("post", REFUSED)])

    drain(OutboundWorker(bound, chat), clock)

    [note] = chat.texts()
    assert note.startswith(said)
    assert "storage_limit_reached" in note
    assert ("standing attach scribe --write`" in note) is (kind is OutboundKind.REQUEST)


def test_an_answer_of_which_several_parts_fail_is_told_of_once(bound: System, clock: HandClock) -> None:
    """And kept whole."""
    bound.outbox.add([replace(post(OutboundKind.ANSWER), text="one\ntwo\nthree")])
    chat = Chat(faults=[("post", REFUSED)])
    worker = OutboundWorker(bound, chat)
    while not chat.messages:
        clock.ahead += worker.turn()
    chat.faults = [("post", REFUSED)]

    drain(worker, clock, 20)

    note, three = chat.texts()
    assert three == "three"
    assert Path(re.findall(r"`(/.*)`", note)[0]).read_text() == "one\ntwo\nthree"


@pytest.mark.parametrize("kind", [OutboundKind.NOTE, OutboundKind.BOOT, OutboundKind.ROOT_UPDATE])
def test_a_note_that_fails_makes_no_further_note(bound: System, clock: HandClock, kind: OutboundKind) -> None:
    """Else there were no end of them."""
    bound.outbox.add([post(kind)])
    chat = Chat(faults=[(call, REFUSED) for call in ("post", "post", "update")])

    drain(OutboundWorker(bound, chat), clock)

    assert chat.texts() == []
    assert chat.calls in (["post"], ["update"])


def test_where_the_thread_is_gone_nothing_is_said_in_it(bound: System, clock: HandClock) -> None:
    """The session is parted from it; a note could go nowhere."""
    bound.outbox.add([post(OutboundKind.ANSWER)])
    chat = Chat(faults=[("post", ChannelError("gone", transient=False, reason=ChannelError.THREAD_GONE))])

    drain(OutboundWorker(bound, chat), clock)

    assert chat.calls == ["post"]


def test_waiting_for_a_token_is_no_attempt(bound: System, clock: HandClock) -> None:
    """However long it lasts, a post has as many attempts left as before; the status says that posts wait."""
    told: list[str] = []
    worker = OutboundWorker(bound, chat := Chat(), shut_out=lambda _, problem: told.append(problem))
    bound.outbox.add([post(OutboundKind.ANSWER)])
    chat.faults = [("post", SHUT)] * 60

    for _ in range(60):
        clock.ahead += worker.turn() + 1
    [waiting] = bound.outbox.due("slack", datetime.max.replace(tzinfo=UTC))
    chat.faults = [("post", ChannelError("busy", transient=True))]
    drain(worker, clock, 20)

    assert (waiting.state, waiting.attempts) == (PostState.PENDING, 0)
    assert chat.texts() == ["answer 0"]
    assert "posts wait" in told[0]
    assert "account_inactive" in told[0]
    assert told[-1] == ""


def test_nor_is_it_one_while_a_post_is_looked_for(bound: System, clock: HandClock) -> None:
    """An answer was lost, and then the token: it is looked for until the token counts again."""
    worker = OutboundWorker(bound, chat := Chat())
    bound.outbox.add([post(OutboundKind.ANSWER)])
    chat.faults = [("lost", ChannelError("no answer", transient=True, unclear=True)), *([("find", SHUT)] * 60)]
    chat.faults.append(("find", ChannelError("busy", transient=True)))

    for _ in range(62):
        clock.ahead += worker.turn() + 3
    drain(worker, clock, 20)

    assert chat.texts() == ["answer 0"]
    assert events(bound).count("channel.posted") == 1


def test_an_unclear_failure_is_one_attempt(bound: System, clock: HandClock) -> None:
    """Not two: one for the call and one for its end."""
    worker = OutboundWorker(bound, Chat(faults=[("lost", ChannelError("no answer", transient=True, unclear=True))]))
    bound.outbox.add([post(OutboundKind.ANSWER)])

    worker.turn()

    [row] = bound.outbox.due("slack", datetime.max.replace(tzinfo=UTC))
    assert (row.state, row.attempts) == (PostState.SENDING, 1)
