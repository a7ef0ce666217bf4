"""What every harness with hooks promises, told once. A test module subclasses this and provides the `stage` fixture."""

import pytest

from core.model.activity import ActivityState
from core.model.harness import (
    DialogReported,
    Ended,
    IdPolicy,
    Ready,
    TextQueued,
    TextReturned,
    TextTaken,
    ToolEnded,
    TurnBlocked,
    TurnEnded,
)
from tests.integration.harness.stage import Stage
from tests.support.tmux import wait_until

AWKWARD = (
    "; -- Enter C-m $(true) `true` #{pane_id}",
    "ends in a file @a",
    "ends in a backslash \\",
    "!ls",
    "/status",
    "# a heading\n\n- one\n- two",
    "日本語 ünïcödé \N{ROCKET}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
    "exit",
    "".join(f"line {number} of a long text\n" for number in range(200)),
)


class HookedHarnessContract:
    """The contract of the adapters that prove what they did."""

    @pytest.mark.capability("boot hook")
    def test_boot_prompt_is_taken_and_answered(self, stage: Stage) -> None:
        """A fresh start with a prompt is ready, takes the prompt as its first turn and answers it.

        A harness that gives its conversations their ids tells with the prompt which one it began.
        """
        stage.start_ready("[boot #boot1] hello")

        started = stage.expect(TextTaken, lambda event: "#boot1" in event.prompt)
        ended = stage.expect(TurnEnded)

        learnt = stage.harness.traits.id_policy is IdPolicy.LEARNT
        assert stage.of(Ready)[0] == Ready(None if learnt else stage.context.session_id, "startup")
        assert stage.of(Ready)[-1] == Ready(stage.context.session_id, "startup")
        assert started.internal is False
        assert ended.answer
        assert ended.pending_tasks == ()

    @pytest.mark.capability("pasting")
    def test_pasted_text_is_evident_and_answered(self, stage: Stage) -> None:
        """A pasted message shows up in the harness's own records, and its answer in TurnEnded."""
        stage.start_ready()

        stage.say("echo1", "tell me")

        stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))
        assert len([event for event in stage.of(TextTaken) if "#echo1]" in event.prompt]) == 1

    @pytest.mark.capability("pasting")
    def test_awkward_texts_arrive_exactly_and_one_by_one(self, stage: Stage) -> None:
        """Framed as delivery frames them, texts that mean something to terminals arrive as they are."""
        stage.start_ready()
        prompts = {}

        for number, text in enumerate(AWKWARD):
            stage.say(f"odd{number}", text)
            stage.expect_turns(number + 1)
            mark = f"#odd{number}]"
            prompts[text] = next(event.prompt for event in stage.of(TextTaken) if mark in event.prompt)

        for number, text in enumerate(AWKWARD):
            assert prompts[text].rstrip() == f"[ann #odd{number}] {text}".rstrip()

    @pytest.mark.capability("queue evidence")
    def test_text_in_mid_turn_is_queued_then_taken(self, stage: Stage) -> None:
        """While a turn runs a message is in the harness's queue at once, and a turn takes it later."""
        stage.start_ready()
        stage.say("work1", stage.words.busy)

        stage.say("next1", "and this")

        stage.expect(TextQueued, lambda event: "#next1]" in event.prompt)
        assert not [event for event in stage.of(TextTaken) if "#next1]" in event.prompt]
        stage.expect(TextTaken, lambda event: "#next1]" in event.prompt)

    @pytest.mark.capability("queue evidence")
    def test_queue_is_taken_back_by_its_key(self, stage: Stage) -> None:
        """The adapter's key moves all that is queued into the input line, its record says so, and no turn takes it."""
        stage.start_ready()
        stage.say("work1", stage.words.busy)
        for marker in ("next1", "next2"):
            stage.say(marker, "and this\nin two lines")
        stage.expect(TextQueued, lambda event: "#next2]" in event.prompt)

        stage.keys(stage.harness.traits.take_back or b"")
        stage.expect(TextReturned, lambda event: "#next2]" in event.prompt)
        assert any("#next1]" in event.prompt for event in stage.of(TextReturned))
        stage.clear()

        stage.expect_turns(1)
        stage.say("echo1", "alone")
        stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))
        assert not [event for event in stage.of(TextTaken) if "#next" in event.prompt]

    @pytest.mark.capability("permission hook")
    def test_permission_is_asked_with_the_marker_in_place(self, stage: Stage) -> None:
        """An open permission dialog is an event and the file `asking`; answered, the file is gone and the turn ends."""
        stage.start_ready()

        stage.say("perm1", stage.words.permission)
        asked = stage.expect(DialogReported)

        assert asked.question is False
        assert asked.summary.startswith(stage.words.asked)
        assert stage.asking()
        assert (stage.context.folder / "tool").exists()
        wait_until(lambda: self._opinion(stage) is ActivityState.PERMISSION, "the second opinion tells of the dialog")

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
        assert stage.expect(Ready, lambda event: event.source == "resume").session_id == conversation
        wait_until(lambda: "remember me" in stage.screen(), f"the old text shows; {stage.screen()}")

    @pytest.mark.capability("turn edges")
    def test_exit_by_a_person_is_told_as_such(self, stage: Stage) -> None:
        """`/exit` typed in the pane is nobody's crash."""
        stage.start_ready()
        wait_until(lambda: self._opinion(stage) is ActivityState.IDLE, "it is idle")

        stage.type_line("/exit")

        assert stage.expect(Ended) == Ended("prompt_input_exit", by_person=True)

    @pytest.mark.capability("transcript form")
    def test_clear_changes_the_conversation(self, stage: Stage) -> None:
        """What begins a new one ends no session: the id is followed, and evidence comes from there.

        A harness that gives its conversations their ids tells of it with the next message.
        """
        stage.start_ready()
        stage.say("echo1", "before")
        stage.expect(TurnEnded)
        before = stage.context.session_id

        stage.type_line(stage.words.anew)
        if stage.harness.traits.id_policy is IdPolicy.LEARNT:
            wait_until(lambda: "before" not in stage.screen(), f"a new one is shown; {stage.screen()}")
            stage.say("echo2", "after")
        stage.expect(Ready, lambda event: event.source == "clear")

        assert stage.context.session_id not in (None, before)
        assert not stage.ended()
        stage.say("echo3", "and on")

    @pytest.mark.capability("background tasks")
    def test_background_task_is_pending_until_it_speaks(self, stage: Stage) -> None:
        """A turn that leaves a task behind says so; the task's end starts a turn that nobody typed."""
        stage.start_ready()

        stage.say("back1", stage.words.background)

        stage.expect(ToolEnded, lambda event: event.task is not None)
        stage.expect(TurnEnded, lambda event: event.pending_tasks != ())
        stage.expect(TextTaken, lambda event: event.internal)
        stage.expect(TurnEnded, lambda event: event.pending_tasks == ())

    @pytest.mark.capability("background tasks")
    def test_held_session_starts_no_turn_by_itself(self, stage: Stage) -> None:
        """With `hold` in the folder a notification is blocked and kept; what a person types goes through."""
        stage.start_ready()
        stage.say("back1", stage.words.background)
        stage.expect(TurnEnded, lambda event: event.pending_tasks != ())

        (stage.context.folder / "hold").touch()
        blocked = stage.expect(TurnBlocked)

        assert blocked.prompt.startswith("<task-notification>")
        assert not [event for event in stage.of(TextTaken) if event.internal]
        stage.say("echo1", "still here?")
        stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))
        assert not [event for event in stage.of(TextTaken) if event.internal]

    @pytest.mark.capability("turn edges")
    def test_second_opinion_follows_an_interrupt(self, stage: Stage) -> None:
        """The key ends the turn, whether or not a hook tells of it; the second source tells that it is idle again."""
        stage.start_ready()
        stage.say("work1", stage.words.busy)
        wait_until(lambda: self._opinion(stage) is ActivityState.BUSY, "it works")

        stage.keys(stage.harness.traits.interrupt or b"")

        wait_until(lambda: self._opinion(stage) is ActivityState.IDLE, "it is idle again")
        assert {event.answer for event in stage.of(TurnEnded)} <= {""}

    @pytest.mark.capability("input line")
    def test_clear_keys_empty_the_composer(self, stage: Stage) -> None:
        """The adapter's clear keys leave nothing of a stuck text of several lines in the next message."""
        stage.start_ready()
        stage.keys(b"\x1b[200~one\ntwo\nthree\nstuck text \x1b[201~")
        wait_until(lambda: "stuck" in stage.screen() or "asted" in stage.screen(), "the text is in the composer")

        stage.clear()
        stage.say("echo1", "alone")

        taken = next(event.prompt for event in stage.of(TextTaken) if "#echo1]" in event.prompt)
        assert taken.strip() == "[ann #echo1] alone", repr(taken)

    @pytest.mark.capability("input line")
    def test_stash_key_keeps_half_typed_text_out(self, stage: Stage) -> None:
        """What a person has half typed is put aside by the stash key, and is back after the message."""
        stage.start_ready()
        stage.keys(b"half typed")
        wait_until(lambda: "half typed" in stage.screen(), "the person's text is there")

        stage.keys(stage.harness.traits.stash or b"")
        wait_until(lambda: "half typed" not in stage.screen(), "the text is put aside")
        stage.say("echo1", "alone")

        taken = next(event.prompt for event in stage.of(TextTaken) if "#echo1]" in event.prompt)
        assert taken.strip() == "[ann #echo1] alone", repr(taken)
        wait_until(lambda: "half typed" in stage.screen(), "it comes back")

    @staticmethod
    def _opinion(stage: Stage) -> ActivityState | None:
        opinion = stage.harness.probe_status(stage.context, stage.pane_pid)
        return None if opinion is None else opinion.state
