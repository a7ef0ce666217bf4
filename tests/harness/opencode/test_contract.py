"""Real OpenCode keeps what every harness with hooks promises, as far as it can."""

import time
from collections.abc import Callable

import pytest

from core.model.harness import TextTaken, TurnEnded
from core.model.pane import InputLine, View
from tests.harness.recording import LACKS
from tests.integration.harness.contract import HookedHarnessContract
from tests.integration.harness.stage import Stage
from tests.support.tmux import wait_until

#: what it cannot keep by its nature; each of these cases shows that the adapter says so
LACKING = {
    "test_queue_is_taken_back_by_its_key": "no key takes back what its own queue holds",
    "test_stash_key_keeps_half_typed_text_out": "no key puts half-typed text aside",
    "test_background_task_is_pending_until_it_speaks": "it keeps no record of what a tool leaves in the background",
    "test_held_session_starts_no_turn_by_itself": "it begins no turn by itself",
}


class TestOpenCode(HookedHarnessContract):
    """The contract, with the real program on a model of our own."""

    @pytest.fixture(autouse=True)
    def lacking(self, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
        """Note why a case shows what is missing."""
        if request.node.name in LACKING:
            record_property(LACKS, LACKING[request.node.name])

    @pytest.mark.capability("queue evidence")
    def test_queue_is_taken_back_by_its_key(self, stage: Stage) -> None:
        """It has no key for that, and says so: what waits in its own queue is taken when the step ends."""
        assert stage.harness.traits.take_back is None
        stage.start_ready()
        stage.say("work1", stage.words.busy)

        stage.say("next1", "and this\nin two lines")

        stage.expect(TextTaken, lambda event: "#next1]" in event.prompt)

    @pytest.mark.capability("input line")
    def test_stash_key_keeps_half_typed_text_out(self, stage: Stage) -> None:
        """It has no key for that, and says so; the text is seen, so that nothing is glued to it."""
        assert stage.harness.traits.stash is None
        stage.start_ready()
        stage.keys(b"half typed")
        wait_until(lambda: _line(stage) == InputLine("half typed"), f"it is seen; {stage.screen()}")

    @pytest.mark.capability("background tasks")
    def test_background_task_is_pending_until_it_speaks(self, stage: Stage) -> None:
        """It tells of none, and none begins a turn."""
        stage.start_ready()

        stage.say("back1", "[[tool bash sleep 3 >/dev/null 2>&1 &]]")

        assert stage.expect(TurnEnded).pending_tasks == ()
        time.sleep(5)  # longer than the task: nothing tells of its end, so that there is nothing to wait for
        assert len(stage.of(TurnEnded)) == len(stage.of(TextTaken)) == 1

    @pytest.mark.capability("background tasks")
    def test_held_session_starts_no_turn_by_itself(self, stage: Stage) -> None:
        """There is no turn that nobody typed, and no hook that would block one."""
        assert stage.harness.traits.turn_gate is False


def _line(stage: Stage) -> InputLine | None:
    return stage.harness.input_line(View(tuple(stage.screen().splitlines())))
