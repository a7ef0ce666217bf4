"""`say --wait-answer`: the answer by the agent's own record, without a service; and where it can be read."""

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.base.errors import InvalidValue
from core.delivery.answers import Came, await_answer, told_where
from core.delivery.saying import Said, say
from core.model.message import MessageState
from core.model.reasons import Reason
from core.model.session import Binding
from core.session.system import System
from core.store.sessions import Bindings
from tests.support.talking import record_of
from tests.support.world import ACTOR


def test_the_answer_is_that_of_the_turn_which_took_the_message(scribe: System) -> None:
    """One that waits behind a running turn gets its own answer; an over-long wait is refused."""
    first = say(scribe, "scribe", "sleep 2", actor=ACTOR, wait=5)
    second = say(scribe, "scribe", "and the tests?", actor=ACTOR, wait=0)

    answer = await_answer(scribe, second, 60)

    assert answer.came is Came.ANSWERED
    assert "and the tests?" in answer.text, answer
    assert await_answer(scribe, first, 60).ok
    with pytest.raises(InvalidValue):
        await_answer(scribe, first, float("nan"))


def test_that_there_is_no_answer_is_told_with_the_reason(scribe: System) -> None:
    """While its turn runs there is none yet, and a program that has ended gives none."""
    said = say(scribe, "scribe", "sleep 600", actor=ACTOR, wait=10)

    early = await_answer(scribe, said, 0.5)

    assert (early.came, early.why and early.why.reason) == (Came.NOT_YET, Reason.NO_ANSWER_WITHIN)
    assert early.why is not None
    assert "a turn is running" in early.why.text
    pane = scribe.runner.survey().of_instance(record_of(scribe)[1])
    assert pane is not None
    os.kill(pane.pid, signal.SIGKILL)
    late = await_answer(scribe, said, 30)
    assert (late.came, late.why and late.why.reason) == (Came.NEVER, Reason.ENDED_UNANSWERED)
    assert not late.to_json()["answer"]


def test_where_the_answer_comes(scribe: System) -> None:
    """In the thread by its link, or its channel; else in the terminal; nowhere for what was refused."""
    said = say(scribe, "scribe", "hello", actor=ACTOR)
    uid, _ = record_of(scribe)
    told = [told_where(scribe, said)]
    channels = {"slack": scribe.settings.channels["slack"]._replace(enabled=True)}
    threaded = replace(scribe, settings=scribe.settings._replace(channels=channels))
    for link in ("", "https://ours.slack.com/archives/C1/p10001"):
        _bind(threaded.bindings, Binding("slack", "T1", "C1", "1000.1", uid, "scribe", datetime.now(UTC), link=link))
        told.append(told_where(threaded, said))

    assert "the-loop standing screen scribe" in told[0].replace("`", "") or "standing screen scribe" in told[0]
    assert told[1] == "the answer comes in its Slack thread, in the channel C1"
    assert told[2] == "the answer comes in its Slack thread: https://ours.slack.com/archives/C1/p10001"
    assert told_where(scribe, Said("scribe", said.message_id, MessageState.REFUSED, ())) == ""


def _bind(bindings: Bindings, binding: Binding) -> None:
    bindings.bind(binding)
    assert bindings.of_session(binding.uid) == binding
