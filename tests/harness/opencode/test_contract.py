"""Real OpenCode keeps what every harness with hooks promises, as far as it can."""

import time
from collections.abc import Callable

import pytest

from core.model.activity import ActivityState
from core.model.harness import DialogReported, Ended, Ready, TextTaken, ToolEnded, TurnEnded
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

    @pytest.mark.capability("boot hook")
    def test_boot_prompt_is_taken_and_answered(self, stage: Stage) -> None:
        """It reads before its conversation is known, tells which one the prompt began, and answers it."""
        stage.start_ready("[boot #boot1] hello")

        started = stage.expect(TextTaken, lambda event: "#boot1" in event.prompt)
        ended = stage.expect(TurnEnded)

        first, second = stage.of(Ready)
        assert first == Ready(None, "startup")
        assert second == Ready(stage.context.session_id, "startup")
        assert (started.internal, started.begins, started.turn) == (False, True, ended.turn)
        assert ended.answer

    @pytest.mark.capability("permission hook")
    def test_permission_is_asked_with_the_marker_in_place(self, stage: Stage) -> None:
        """An open permission dialog is an event and the file `asking`; answered, the file is gone and the turn ends."""
        stage.start_ready()

        stage.say("perm1", stage.words.permission)
        asked = stage.expect(DialogReported)

        assert asked == DialogReported(question=False, summary="bash: touch made-by-test")
        assert stage.asking()
        assert (stage.context.folder / "tool").exists()
        wait_until(lambda: self._opinion(stage) is ActivityState.PERMISSION, "the second opinion tells of the dialog")
        assert _line(stage) is None

        stage.type_line("")
        stage.expect(ToolEnded)
        stage.expect(TurnEnded)
        assert not stage.asking()

    @pytest.mark.capability("resume")
    def test_stopped_conversation_is_resumed(self, stage: Stage) -> None:
        """After SIGTERM the conversation is resumable, and a resume is told as such."""
        assert not stage.harness.resumable(stage.context)
        stage.start_ready()
        stage.say("echo1", "remember me")
        stage.expect(TurnEnded)

        stage.terminate()

        assert stage.of(Ended)[-1] == Ended("other", by_person=False)
        assert stage.harness.resumable(stage.context)
        conversation = stage.context.session_id
        stage.events.clear()
        stage.start()
        resumed = stage.expect(Ready, lambda event: event.source == "resume")
        assert resumed.session_id == conversation
        wait_until(lambda: "remember me" in stage.screen(), f"the old text shows; {stage.screen()}")

    @pytest.mark.capability("transcript form")
    def test_clear_changes_the_conversation(self, stage: Stage) -> None:
        """`/new` ends no session: the id is followed with the next message, and evidence comes from there."""
        stage.start_ready()
        stage.say("echo1", "before")
        stage.expect(TurnEnded)
        before = stage.context.session_id

        stage.type_line("/new")
        wait_until(lambda: "before" not in stage.screen(), f"a new one is shown; {stage.screen()}")
        stage.say("echo2", "after")

        assert stage.expect(Ready, lambda event: event.source == "clear").session_id == stage.context.session_id
        assert stage.context.session_id not in (None, before)
        assert not stage.ended()

    @pytest.mark.capability("turn edges")
    def test_second_opinion_follows_an_interrupt(self, stage: Stage) -> None:
        """The key ends the turn, which the plugin and the second source both tell."""
        stage.start_ready()
        stage.say("work1", stage.words.busy)
        wait_until(lambda: self._opinion(stage) is ActivityState.BUSY, "it works")
        wait_until(lambda: "$ sleep" in stage.screen(), "its tool runs")

        stage.keys(stage.harness.traits.interrupt or b"")

        wait_until(lambda: self._opinion(stage) is ActivityState.IDLE, "it is idle again")
        assert stage.expect(TurnEnded).answer == ""

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
