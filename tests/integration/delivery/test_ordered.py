"""What somebody orders by a command is told in the session's thread, with who: the answer is for them alone."""

from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import CoreError, NotPermitted, UnknownSession
from core.base.values import replace
from core.chat.commands import Orders
from core.chat.inbound import Inbound, NullMirror
from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.lifecycle.stop import stop_standing
from core.model.channel import IncomingOrder, IncomingReply
from core.model.message import MessageState
from core.model.posts import Mark, OutboundKind, PostState
from core.model.session import Binding
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat
from tests.support.talking import record_of, rows
from tests.support.tmux import wait_until
from tests.support.world import ACTOR

THREAD = "1699.000000"


@pytest.fixture
def bound(scribe: System) -> System:
    """Give the ports of a session that is up, idle, and has a thread."""
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, THREAD, uid, "scribe", datetime.now(UTC)))
    return scribe


def order(system: System, verb: str, who: str = "alice") -> str:
    """Order it, and return what its author is told."""
    return (
        Orders(system, "slack", lambda _, __: True)
        .order(IncomingOrder("slack", f"U-{who}", who, verb, "scribe", ""))
        .text
    )


def notes(system: System) -> list[str]:
    """Return what is to be posted by us into the thread, oldest first; the first of a session's rows is due alone."""
    found: list[str] = []
    while due := system.outbox.due("slack", datetime.now(UTC)):
        for row in due:
            sending = system.outbox.advance(row, PostState.SENDING)
            system.outbox.advance(sending, PostState.SENT, ts=f"9.{row.seq}")
            found += [row.post.text] if row.post.kind is OutboundKind.NOTE else []
    return found


def test_a_pause_and_its_end_stand_in_the_thread(bound: System) -> None:
    """Once each; whoever pauses what another has paused did nothing."""
    for verb, who in (("pause", "alice"), ("pause", "alice"), ("pause", "bob"), ("resume", "bob")):
        order(bound, verb, who)

    assert notes(bound) == ["`scribe` was paused by slack:U-alice.", "`scribe` was resumed by slack:U-bob."]


def test_an_interrupt_stands_in_the_thread_and_its_message_is_not_done(bound: System) -> None:
    """The turn was cut off: its message does not get the mark of one that ended by itself."""
    reply = IncomingReply("slack", TEAM, HOME, THREAD, "1700.000001", "U1", "alice", TEAM, False, False, "plain",
                          "sleep 60")  # fmt: skip
    Inbound(bound, Chat().authorized, NullMirror()).receive([reply])
    uid, _ = record_of(bound)
    deliverer = Deliverer(bound, lambda _: True)

    def taken() -> bool:
        deliverer.advance(uid)
        return rows(bound)[-1].state is MessageState.CONFIRMED

    wait_until(taken, "its turn runs")

    told = order(bound, "interrupt")

    [mark] = bound.marks.changed("slack", datetime.now(UTC) - timedelta(minutes=5))
    assert told.startswith("scribe: interrupted")
    assert mark.mark is Mark.REFUSED
    assert notes(bound) == ["`scribe` was interrupted by alice."]


def test_the_screen_of_one_that_has_ended_says_so(bound: System) -> None:
    """What was kept of it does not read as if it lived."""
    live = order(bound, "screen")
    stop_standing(bound, "scribe", ACTOR)

    assert live == "scribe:"
    assert order(bound, "screen") == "scribe has ended; its last output:"


def dropped(system: System) -> list[tuple[object, ...]]:
    """Return what the event log tells of commands that were refused: reason, actor, session, verb."""
    events = (event for event in system.events.read() if event["event"] == "channel.dropped")
    return [tuple(event[key] for key in ("reason", "actor", "name", "detail")) for event in events]


def test_a_typo_of_somebody_who_may_is_no_refusal_for_want_of_rights(bound: System) -> None:
    """The answer names the unknown session and one like it; an audit of refusals finds nothing."""
    with pytest.raises(UnknownSession, match="did you mean scribe"):
        Orders(bound, "slack", lambda _, __: True).order(IncomingOrder("slack", "U1", "alice", "pause", "scrib", ""))

    assert dropped(bound) == []


@pytest.mark.parametrize(("verb", "error"), [("pause", UnknownSession), ("stop", NotPermitted)])
def test_an_order_without_the_right_is_one_event(bound: System, verb: str, error: type[CoreError]) -> None:
    """With the reason, who it was, the session and the verb."""
    with pytest.raises(error):
        Orders(bound, "slack", lambda _, __: False).order(IncomingOrder("slack", "U1", "alice", verb, "scribe", ""))

    assert dropped(bound) == [("unauthorized-actor", "slack:U1", "scribe", verb)]


@pytest.mark.parametrize("verb", ["pause", "screen", "start", "stop", "restart"])
def test_somebody_left_out_by_the_sessions_own_list_is_one_event(bound: System, verb: str) -> None:
    """The channel's lists have them, the session's has not; member or operator, they learn no more than of a typo."""
    record = bound.records.read("scribe")
    assert record is not None
    chat = {"slack": replace(record.definition.binding, authorized_users=())}
    closed = replace(record.definition, name="digger", chat=chat)
    bound.records.write(replace(record, name="digger", uid="s-digger", definition=closed))

    orders = Orders(bound, "slack", lambda _, __: True)
    with pytest.raises(UnknownSession):
        orders.order(IncomingOrder("slack", "U-alice", "alice", verb, "digger", ""))
    with pytest.raises(UnknownSession) as typo:
        orders.order(IncomingOrder("slack", "U-alice", "alice", verb, "diger", ""))

    assert "did you mean" not in str(typo.value)
    assert dropped(bound) == [("unauthorized-actor", "slack:U-alice", "digger", verb)]


@pytest.mark.parametrize("verb", ["pause", "screen", "stop"])
def test_a_created_session_of_which_nobody_can_read_who_may_is_open_to_nobody(bound: System, verb: str) -> None:
    """Neither its name nor where its record lies is told; and nobody is refused for want of rights."""
    (bound.paths.records / "digger.json").write_text("{")

    with pytest.raises(UnknownSession):
        Orders(bound, "slack", lambda _, __: True).order(IncomingOrder("slack", "U1", "alice", verb, "digger", ""))

    assert dropped(bound) == []


def test_a_queue_is_shown_with_its_texts_to_those_who_may_steer(bound: System) -> None:
    """In its order, each in one line, shortened and without secrets; others are not told that the session is there."""
    order(bound, "pause")
    texts = ["first\nof two lines " + "x" * 400, "the key is AKIAIOSFODNN7ABCDEFG"]
    for text in texts:
        say(bound, "scribe", text, actor="cli:ann", who="ann", wait=0)
    asked = IncomingOrder("slack", "U-alice", "alice", "queue", "scribe", "")
    told = Orders(bound, "slack", lambda _, __: True).order(asked)

    assert told.text == f"scribe: 2 messages, at most {bound.settings.limits.queued_per_session} may wait."
    first, shown, second, hidden = told.code.splitlines()
    assert ("ann, " in first, " ago, " in first, first.split()[0]) == (True, True, rows(bound)[-2].message.id)
    assert (shown.strip().startswith("first of two lines"), len(shown) < 200, shown[-1]) == (True, True, "…")
    assert second.split()[0] == rows(bound)[-1].message.id
    assert (hidden.strip(), "AKIA" in told.code) == ("the key is [redacted]", False)
    with pytest.raises(UnknownSession):
        Orders(bound, "slack", lambda _, __: False).order(asked)


def test_a_long_queue_says_how_many_more_there_are(bound: System) -> None:
    """What a chat shows has an end; nothing is left out in silence."""
    order(bound, "pause")
    for number in range(15):
        say(bound, "scribe", f"{number} " + "y" * 300, actor="cli:ann", who="ann", wait=0)
    told = Orders(bound, "slack", lambda _, __: True).order(IncomingOrder("slack", "U1", "a", "queue", "scribe", ""))

    lines = told.code.splitlines()
    shown = (len(lines) - 1) // 2
    assert lines[-1] == f"… and {15 - shown} more"
    assert len(told.code) < 2_200


def test_all_are_stopped_together_that_their_operator_may_stop(bound: System) -> None:
    """What is stopped already is not named again, and where nothing is left that is said."""
    every = IncomingOrder("slack", "U-alice", "alice", "stop", "", "")
    nobody = Orders(bound, "slack", lambda _, __: False).order(every)
    lives = bound.runner.survey()
    told = Orders(bound, "slack", lambda _, __: True).order(every)
    again = Orders(bound, "slack", lambda _, __: True).order(every)

    assert "no session is left" in nobody.text
    assert [pane for pane in lives.panes if not pane.dead]
    assert told.text.startswith("scribe: stopped")
    assert not [pane for pane in bound.runner.survey().panes if not pane.dead]
    assert "no session is left" in again.text


def test_all_are_paused_and_what_cannot_be_is_named(bound: System) -> None:
    """One that has just ended does not keep the others from being paused."""
    every = IncomingOrder("slack", "U-alice", "alice", "pause", "", "")
    told = Orders(bound, "slack", lambda _, __: True).order(every)

    assert told.text.startswith("scribe: paused")
    assert notes(bound) == ["`scribe` was paused by slack:U-alice."]
