"""Questions of real OpenCode, answered in the thread and at the terminal."""

import json
from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.cases import begin
from tests.harness.opencode.product import KIT
from tests.harness.product import TURN, HarnessProduct, harness_product
from tests.support.asking import press, wait_buttons, wait_text

pytestmark = pytest.mark.capability("permission hook")
BIRD, SIZE = (
    {"question": f"Which {what}?", "header": what, "options": [{"label": each, "description": each} for each in labels]}
    for what, labels in (("bird", ("heron", "swallow")), ("size", ("small", "large")))
)


@pytest.fixture
def talking(model: ModelServer) -> Iterator[HarnessProduct]:
    """Give a product whose one session has a thread in a workspace."""
    with (
        WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
        harness_product(workspace, model, KIT) as product,
    ):
        yield product


def asks(*questions: object) -> str:
    """Return the text that lets the model ask these questions."""
    return f"work [[call question {json.dumps({'questions': questions})}]]"


def test_questions_are_answered_in_the_thread(talking: HarnessProduct) -> None:
    """One by a button, one in own words; the model gets both, and the next message is a turn of its own."""
    thread = begin(talking)
    talking.workspace.say("alice", "agents", asks(BIRD, SIZE), thread)
    asked = wait_buttons(talking, thread, "Which bird?", TURN)
    talking.wait_activity("question")

    press(talking, "alice", asked, "2. swallow")
    wait_buttons(talking, thread, "Which size?", TURN)
    talking.workspace.say("alice", "agents", "something between", thread)
    wait_text(talking, thread, asked["ts"], "Answered* by alice", TURN)
    talking.wait_activity("idle")

    told = json.dumps(talking.wait_request("Which bird?").body)
    assert "swallow" in told.split("Which bird?")[-1].split("Which size?")[0]
    assert "something between" in told


def test_a_question_that_is_answered_at_the_terminal_is_over(talking: HarnessProduct) -> None:
    """A reply waits meanwhile and answers nothing; the thread is told where the answer was given."""
    thread = begin(talking)
    talking.workspace.say("alice", "agents", asks(BIRD), thread)
    asked = wait_buttons(talking, thread, "Which bird?", TURN)
    talking.wait_activity("question")

    talking.keys("Enter")
    wait_text(talking, thread, asked["ts"], "at the terminal", TURN)
    talking.wait_activity("idle")
    talking.workspace.say("alice", "agents", "and the next", thread)
    talking.wait_state("and the next", "confirmed")

    assert "heron" in json.dumps(talking.wait_request("Which bird?").body)
