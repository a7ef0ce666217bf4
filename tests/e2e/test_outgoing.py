"""What a thread shows while a session works, by the product's own processes."""

from pathlib import Path

import pytest

from embedded.workspace.model import Json
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until


def test_a_reply_is_marked_and_the_session_is_seen_at_work(talking: Product) -> None:
    """Eyes and a status while its turn runs; a check mark alone and no status afterwards."""
    talking.serve().wait_swept()
    thread = talking.root()

    ts = talking.workspace.say("alice", "agents", "sleep 4", thread)
    eyes = talking.workspace.wait_for_reaction("agents", ts, "eyes")
    wait_until(lambda: talking.workspace.status("agents", thread) == "is working…", "it is seen at work")
    talking.wait_reply(thread, "I have slept for 4 s.")
    done = talking.workspace.wait_for_reaction("agents", ts, "white_check_mark")
    wait_until(lambda: talking.workspace.status("agents", thread) == "", "it is seen at rest")
    wait_until(lambda: set(talking.workspace.reactions("agents", ts)) == {"white_check_mark"}, "the eyes are gone")

    assert eyes == done == [talking.workspace.bot_user_id]


def test_a_long_answer_comes_whole_in_parts_over_a_killed_service(talking: Product) -> None:
    """Twenty kilobytes: each line once and in order, whenever the service was killed."""
    service = talking.serve().wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", "long 1000", thread)
    for last in ("line 200 of", "line 500 of"):
        talking.wait_reply(thread, last)
        service.kill()
        service = talking.serve()
    talking.wait_reply(thread, "line 1000 of 1000")

    parts = [text for text in talking.bot_replies(thread) if text.startswith("line ")]
    lines = [line for text in parts for line in text.splitlines()]
    assert len(parts) > 4
    assert lines == [f"line {number} of 1000" for number in range(1, 1001)]


def test_a_huge_answer_is_attached(talking: Product) -> None:
    """Its beginning is read in the thread, and all of it in the file."""
    talking.serve().wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", "long 2000", thread)
    message = talking.workspace.wait_for_message(lambda m: bool(m.get("files")))

    summary = talking.wait_reply(thread, "The whole answer is attached")
    whole = talking.workspace.do(lambda controls: controls.file_text(message["files"][0]["id"]))
    assert whole == "\n".join(f"line {number} of 2000" for number in range(1, 2001))
    assert message["thread_ts"] == thread
    assert message["files"][0]["name"].startswith(f"{NAME}-")
    assert f"{message['files'][0]['size']:,} bytes" in summary["text"]


def test_an_answer_that_cannot_be_attached_is_kept_and_said(talking: Product) -> None:
    """Its beginning stands in the thread; the note names the reason and the file that has all of it."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.fault("files.getUploadURLExternal", "error", code="storage_limit_reached")

    talking.workspace.say("alice", "agents", "long 2000", thread)
    note = talking.wait_reply(thread, "could not be attached")["text"]

    kept = Path(note.rpartition("is in `")[2].partition("`")[0])
    [event] = talking.events("channel.post_failed")
    assert "storage_limit_reached" in note
    assert kept.read_text() == "\n".join(f"line {number} of 2000" for number in range(1, 2001))
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (event["detail"], "storage_limit_reached" in event["reason"]) == ("file", True)


@pytest.mark.parametrize(("verbosity", "steps", "answers"), [("quiet", 0, 0), ("verbose", 1, 1)])
def test_verbosity_decides_what_a_thread_is_told(talking: Product, verbosity: str, steps: int, answers: int) -> None:
    """Quiet: no answer, but the marks; verbose: one message with the steps of the turn besides the answer."""
    talking.configure(channels={"slack": talking.slack_block(verbosity=verbosity)})
    talking.serve().wait_swept()
    thread = talking.root()

    ts = talking.workspace.say("alice", "agents", "sleep 1", thread)
    talking.workspace.wait_for_reaction("agents", ts, "white_check_mark")
    talking.workspace.say("alice", "agents", "time", thread)
    told = _told(talking, thread, steps, answers)

    assert told == (steps, answers)


def test_a_thread_that_is_gone_is_left_and_the_next_start_makes_another(talking: Product) -> None:
    """The session goes on without it; the event log says why."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.kick("the-loop", "agents")

    talking.cli("standing", "restart", NAME)
    [unbound] = talking.wait_event("channel.unbound")
    talking.workspace.join("the-loop", "agents")
    talking.cli("standing", "restart", NAME)
    wait_until(lambda: len(talking.roots()) == 2, "a second root stands in the channel")

    assert (unbound["reason"], unbound["thread"]) == ("not_member", thread)


def _told(talking: Product, thread: str, steps: int, answers: int) -> tuple[int, int]:
    """Return how many messages of steps and how many answers stand there, once it could have been said."""

    def count() -> tuple[int, int]:
        texts: list[str] = [reply["text"] for reply in _replies(talking, thread)]
        return (
            sum("Steps of this turn" in text and "sleep 1" in text for text in texts),
            sum("I have slept for 1 s." in text for text in texts),
        )

    wait_until(lambda: count() == (steps, answers), "the thread was told")
    return count()


def _replies(talking: Product, thread: str) -> list[Json]:
    return talking.workspace.replies("agents", thread)
