"""The bundled agent keeps the contract of the hooked harnesses, and what demonstrations need of it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import embedded.agent
from core.model.harness import DialogReported, Ended, Ready, TextTaken, TurnBlocked, TurnEnded
from embedded.adapter import BundledHarness
from tests.integration.harness.contract import HookedHarnessContract
from tests.integration.harness.stage import Stage, Words
from tests.support.lines import entries
from tests.support.tmux import wait_until

WORDS = Words(
    busy="sleep 4",
    permission="ask permission",
    background="background 4",
    echo=lambda answer: answer.startswith("You said"),
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A session of the bundled agent, not yet started."""
    stage = Stage(BundledHarness(), WORDS, tmp_path, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    yield stage
    stage.close()


class TestBundled(HookedHarnessContract):
    """The contract."""


def prompts_on_disk(stage: Stage) -> list[str]:
    """Return what the agent's own record says it was told."""
    path = stage.context.folder / "agent" / "conversations" / f"{stage.context.session_id}.jsonl"
    return [line["message"]["content"] for line in entries(path) if line["type"] == "user" and "origin" in line]


@pytest.mark.parametrize("size", [5_000, 100_000])
def test_large_text_arrives_exactly(stage: Stage, size: int) -> None:
    """A long paste of many lines is one message, character for character."""
    stage.start_ready()
    text = "".join(f"line {number}: ünïcödé 日本 \N{ROCKET}\n" for number in range(size // 30))

    stage.paste(text)
    stage.expect(TurnEnded)

    assert prompts_on_disk(stage) == [text.rstrip()]


def test_question_is_answered_by_a_digit(stage: Stage) -> None:
    """A question is asked with its options; pasted text and its first characters pick nothing."""
    stage.start_ready()

    stage.say("ask1", "ask question Which colour? | red | blue")
    assert stage.expect(DialogReported) == DialogReported(question=True, summary="Which colour?")
    stage.keys(b"\x1b[200~2\x1b[201~")
    stage.keys(b"2")

    assert stage.expect(TurnEnded).answer == "Your answer is: blue"


def test_refused_permission_changes_nothing(stage: Stage) -> None:
    """The second option refuses, and the turn goes on."""
    stage.start_ready()
    stage.say("perm1", "ask permission")
    stage.expect(DialogReported)

    stage.keys(b"2")

    assert stage.expect(TurnEnded).answer == "I was not allowed to, so I did nothing."


def test_task_of_a_killed_agent_speaks_up_at_resume(stage: Stage) -> None:
    """Killed with a task running, each resume tells of it, blocked while held, until one such turn is let through."""
    stage.start_ready()
    stage.say("back1", "background 8")
    stage.expect(TurnEnded)
    stage.terminate(signal.SIGKILL)
    hold = stage.context.folder / "hold"

    hold.touch()
    stage.start_ready()
    stage.expect(TurnBlocked)
    stage.terminate()
    hold.unlink()
    stage.events.clear()
    stage.start_ready()
    stage.expect(TextTaken, lambda event: event.internal)
    stage.expect(TurnEnded)
    stage.terminate()
    stage.events.clear()
    stage.start_ready()
    stage.say("hist1", "history")
    assert len([prompt for prompt in prompts_on_disk(stage) if prompt.startswith("<task-notification>")]) == 1


def test_hang_up_ends_it_in_order(stage: Stage) -> None:
    """When its terminal goes away it tells of its end and leaves no status file."""
    stage.start_ready()

    stage.terminate(signal.SIGHUP)

    assert stage.expect(Ended) == Ended("other", by_person=False)
    assert list((stage.context.folder / "agent" / "sessions").iterdir()) == []


def test_two_interrupts_leave(stage: Stage) -> None:
    """C-c clears the line, and the second one in a row leaves, as a person's act."""
    stage.start_ready()
    stage.keys(b"half")
    stage.keys(b"\x03")
    wait_until(lambda: "C-c again" in stage.screen(), "the first one is answered")

    stage.keys(b"\x03")

    assert stage.expect(Ended).by_person


def test_conversation_id_is_used_once(stage: Stage) -> None:
    """A fresh start under the id of a saved conversation is refused, as is a resume of none."""
    stage.start_ready("hello")
    stage.expect(TurnEnded)
    state = str(stage.context.folder / "agent")
    program = [sys.executable, "-I", "-S", str(Path(embedded.agent.__file__).parent), "--state", state]

    again = subprocess.run([*program, "--session-id", str(stage.context.session_id)], capture_output=True, check=False)
    unknown = subprocess.run(
        [*program, "--resume", str(stage.harness.new_session_id())], capture_output=True, check=False
    )

    assert (again.returncode, b"already in use" in again.stderr) == (1, True)
    assert (unknown.returncode, b"No conversation found" in unknown.stderr) == (1, True)


def test_agent_starts_quickly(stage: Stage) -> None:
    """It reads within two seconds of its spawn, hooks included: or as soon as ten bare interpreters have run."""
    begun = time.monotonic()
    stage.start()
    stage.expect(Ready)
    took = time.monotonic() - begun

    begun = time.monotonic()
    for _ in range(10):
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    bare = time.monotonic() - begun
    print(f"ready after {took * 1000:.0f} ms, ten interpreters {bare * 1000:.0f} ms")
    assert took < max(2.0, bare)


def _replace_by_folder(file: Path) -> None:
    """Let a folder stand in the file's place, whose program may write it anew at any moment."""
    while not file.is_dir():
        file.unlink(missing_ok=True)
        with suppress(FileExistsError, NotADirectoryError):
            (file / "inside").mkdir(parents=True)


def test_a_folder_in_the_place_of_its_status_file_costs_that_file_alone(stage: Stage) -> None:
    """Its hooks tell what it does; it goes on, and its end is in order."""
    stage.start_ready("hello")
    stage.expect(TurnEnded)
    [status] = (stage.context.folder / "agent" / "sessions").glob("*.json")
    _replace_by_folder(status)

    stage.events.clear()
    stage.keys(b"hello again\r")
    stage.expect(TurnEnded)
    shown = stage.screen()
    stage.terminate(signal.SIGHUP)

    assert "Traceback" not in shown
    assert stage.expect(Ended) == Ended("other", by_person=False)


def test_a_conversation_that_cannot_be_written_ends_it_in_words(stage: Stage) -> None:
    """It would say things that nobody can find again."""
    stage.start_ready("hello")
    stage.expect(TurnEnded)
    folder = stage.context.folder / "agent" / "conversations"

    def replaced() -> bool:
        """Put a file there; the agent may make its folder again meanwhile."""
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(IsADirectoryError):
            folder.write_text("")
        return folder.is_file()

    wait_until(replaced, "a file stands in the folder's place")
    stage.keys(b"hello again\r")

    wait_until(lambda: "its conversation cannot be written" in stage.screen(), "it says why it ends")
    assert "Traceback" not in stage.screen()
