"""What one agent may write to another: how often, and for how long without a person."""

import pytest

from core.base.errors import InvalidValue, Refused
from core.delivery.between_agents import LONGEST_CHAIN, SAYS_AN_HOUR, chain
from core.delivery.saying import say
from core.lifecycle.start import start_standing
from core.model.message import MessageState
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.support.tmux import PATIENCE
from tests.support.world import ACTOR

SCRIBE, OTHER = "scribe", "scribe-two"


@pytest.fixture
def pair(scribe: System) -> System:
    """Give two sessions that are idle."""
    assert start_standing(scribe, OTHER, ACTOR).ok
    settle(scribe, OTHER)
    return scribe


def uid_of(system: System, name: str) -> str:
    """Return the session's uid."""
    record = system.records.read(name)
    assert record is not None
    return record.uid


def write(system: System, sender: str, to: str) -> None:
    """Let one write to the other, and wait until that one has taken it."""
    said = say(system, to, f"from {sender}", actor=f"agent:{sender}", wait=PATIENCE)
    assert said.state in (MessageState.CONFIRMED, MessageState.ACCEPTED), said


def test_two_agents_do_not_answer_one_another_without_end(pair: System) -> None:
    """After so many messages the next is refused, and a person's word to either begins anew."""
    for number in range(LONGEST_CHAIN):
        sender, to = (SCRIBE, OTHER) if number % 2 == 0 else (OTHER, SCRIBE)
        write(pair, sender, to)

    assert chain(pair.records, pair.inbox, uid_of(pair, SCRIBE), pair.clock.now()) == LONGEST_CHAIN
    with pytest.raises(Refused, match=f"agents have exchanged {LONGEST_CHAIN} messages") as caught:
        say(pair, OTHER, "once more", actor=f"agent:{SCRIBE}", wait=PATIENCE)
    assert "a person" in caught.value.remedy

    say(pair, SCRIBE, "tell it again", actor=ACTOR, wait=PATIENCE)
    write(pair, SCRIBE, OTHER)


def test_an_agent_writes_so_often_an_hour(pair: System) -> None:
    """The refusal names the bound; posts and the other's messages are counted apart."""
    for _ in range(SAYS_AN_HOUR):
        say(pair, OTHER, "hello", actor=f"agent:{SCRIBE}", wait=0)

    with pytest.raises(Refused, match=f"{SAYS_AN_HOUR} times within the last hour"):
        say(pair, OTHER, "hello", actor=f"agent:{SCRIBE}", wait=0)
    assert len(pair.inbox.unsettled(uid_of(pair, OTHER))) == SAYS_AN_HOUR
    say(pair, SCRIBE, "hello", actor=f"agent:{OTHER}", wait=0)


def test_a_message_that_is_refused_costs_nothing(pair: System) -> None:
    """What was not written is not counted."""
    for _ in range(SAYS_AN_HOUR + 1):
        with pytest.raises(InvalidValue, match="empty"):
            say(pair, OTHER, "\x00", actor=f"agent:{SCRIBE}", wait=0)

    assert say(pair, OTHER, "hello", actor=f"agent:{SCRIBE}", wait=0).state is MessageState.QUEUED


@pytest.mark.parametrize(("sender", "kind"), [(SCRIBE, InvalidValue), ("i-gone", Refused)])
def test_neither_oneself_nor_nobody_is_written_by(scribe: System, sender: str, kind: type[Exception]) -> None:
    """An agent that would wake itself is told so; so is a process whose session is gone."""
    with pytest.raises(kind, match=r"is you|belongs to no session"):
        say(scribe, SCRIBE, "again", actor=f"agent:{sender}", wait=0)

    assert not scribe.inbox.unsettled(uid_of(scribe, SCRIBE))
