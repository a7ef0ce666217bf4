"""Who may use which verb."""

import pytest

from core.base.errors import NotPermitted
from core.model.session import ActorKind, Verb, permitted, require


@pytest.mark.parametrize("verb", list(Verb))
def test_operator_may_everything(verb: Verb) -> None:
    """At the terminal nothing is refused."""
    assert permitted(ActorKind.OPERATOR, verb)


@pytest.mark.parametrize("verb", list(Verb))
def test_agent_reads_speaks_has_loops_and_nothing_else(verb: Verb) -> None:
    """An agent neither starts, stops, creates, deletes nor attaches."""
    reads = {
        Verb.LIST,
        Verb.GET,
        Verb.STATUS,
        Verb.SCREEN,
        Verb.EVENTS,
        Verb.QUEUE,
        Verb.LOGS,
        Verb.HISTORY,
        Verb.LOOPS,
    }
    allowed = reads | {Verb.SAY, Verb.POST, Verb.ASK, Verb.LOOP}

    assert permitted(ActorKind.AGENT, verb) is (verb in allowed)


def test_refusal_names_the_verb() -> None:
    """What was refused, and who can do it, is in the message."""
    with pytest.raises(NotPermitted, match=r"an agent may not stop sessions.*ask your operator"):
        require(ActorKind.AGENT, Verb.STOP)
