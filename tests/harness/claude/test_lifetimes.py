"""Lifetimes with real Claude Code: what a stop ends, what a pause keeps, what Escape and a kill leave behind."""

import os
import signal

import pytest

from tests.harness.claude.product import CLAUDE, LONG, ClaudeProduct, times_in
from tests.harness.product import command_of
from tests.support.product import NAME
from tests.support.tmux import alive, wait_until

ESCAPES = {
    "waiting": "[[sleep 60]]",
    "streaming": "[[drip 60]]",
    "tool": f"[[tool bash {LONG}]]",
}


def in_the_background(product: ClaudeProduct, command: str, name: str = NAME) -> int:
    """Let the session start a command in the background, and return its process once the turn is over."""
    said = product.cli("standing", "say", name, "--text", f"[[bg {command}]]", "--json")
    assert said.json["state"] == "confirmed", said.out
    product.wait_status("shell", name)
    [pid] = [pid for pid in product.left() if command_of(pid) == command]
    return pid


def begun(product: ClaudeProduct, *names: str) -> None:
    """Bring the service up, and wait until the boot turns are over."""
    product.serve().wait_swept()
    for name in names or (NAME,):
        product.wait_activity("idle", name)


@pytest.mark.capability("background tasks")
def test_a_background_shell_wakes_nothing_after_a_stop(talking: ClaudeProduct) -> None:
    """Neither the stop nor a restart of the service makes a request; after the next start everybody hears of it, once.

    The model of 2.1.197 by a turn that begins by itself, that of later versions with the next message.
    """
    service = talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Look after it.", 60)
    shell = in_the_background(talking, "sleep 9")

    stopped = talking.cli("standing", "stop", NAME, "--json")
    gone = not alive(shell)
    service.stop()
    talking.serve().wait_swept()
    during = (len(talking.unasked()), talking.panes())
    started = talking.cli("standing", "start", NAME, "--json", seconds=120)
    if CLAUDE.before("2.1.280"):
        talking.wait_request("<task-notification>")
    talking.wait_activity("idle")
    talking.workspace.say("alice", "agents", "are you well", thread)
    talking.wait_reply(thread, "are you well", 60)

    assert (stopped.row["outcome"], gone) == ("stopped", True)
    assert during == (0, {})
    assert started.row["outcome"] == "resumed"
    told = "1 background task had not finished when its program ended before: sleep 9 ("
    assert told in started.row["detail"]
    assert [told in event.get("detail", "") for event in talking.events("standing.resumed")] == [True]
    assert [told in text for text in talking.bot_replies(thread) if "is up again" in text] == [True]
    assert told not in talking.cli("standing", "get", NAME, "--json").json["detail"]  # somebody has spoken to it since
    assert times_in(talking.wait_request("are you well"), "</task-notification>") >= 1
    assert len(talking.unasked()) == int(CLAUDE.before("2.1.280"))
    assert not any("task-notification" in text for text in talking.bot_replies(thread))
    assert bool(talking.events("standing.suppressed")) == CLAUDE.before("2.1.280")


@pytest.mark.capability("background tasks")
def test_a_background_shell_that_ends_while_paused_is_told_at_the_resume(talking: ClaudeProduct) -> None:
    """It makes no request; its notice waits, and a turn takes it once the pause is over."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Look after it.", 60)
    shell = in_the_background(talking, "sleep 6")

    paused = talking.cli("standing", "pause", NAME, "--json")
    wait_until(lambda: not alive(shell), "the shell is over", 20)
    talking.wait_event("standing.suppressed", seconds=20)
    during = (len(talking.model.requests("task-notification")), talking.cli("standing", "get", NAME, "--json").json)
    talking.cli("standing", "resume", NAME)
    told = talking.wait_request("A background task of yours ended")

    assert paused.code == 0
    assert during[0] == 0
    assert during[1]["queued"] == 1
    assert times_in(told, "<status>completed</status>") == 1


@pytest.mark.parametrize("cleaned", ["", "env -i HOME=$HOME "])
@pytest.mark.capability("background tasks")
def test_a_child_of_its_own_session_is_gone_after_a_stop(alone: ClaudeProduct, cleaned: str) -> None:
    """What a tool has detached is found by its marker, without our environment as well."""
    alone.allow("Bash")
    begun(alone)
    alone.cli("standing", "say", NAME, "--text", f"[[tool bash setsid -f {cleaned}sleep 300]]")
    wait_until(lambda: any(command_of(pid) == "sleep 300" for pid in alone.left()), "the child runs")

    stopped = alone.cli("standing", "stop", NAME, "--json")

    assert stopped.row["outcome"] == "stopped"
    assert [command_of(pid) for pid in alone.left() if command_of(pid) == "sleep 300"] == []


@pytest.mark.capability("turn edges")
def test_escape_at_the_terminal_leaves_nobody_busy_for_ever(alone: ClaudeProduct) -> None:
    """No hook tells of it: before a token, while it streams and in a tool the second opinion does."""
    alone.declare(*ESCAPES)
    begun(alone, *ESCAPES)
    for name, work in ESCAPES.items():
        alone.cli("standing", "say", name, "--text", f"work {work}")
        alone.wait_status("busy", name)
    wait_until(lambda: "drip" in alone.screen("streaming"), "it streams")
    wait_until(lambda: any(command_of(pid) == LONG for pid in alone.left()), "the tool runs")

    for name in ESCAPES:
        alone.keys("Escape", name=name)
        alone.wait_status("idle", name)

    for name in ESCAPES:
        alone.wait_activity("idle", name, 60)
        said = alone.cli("standing", "say", name, "--text", f"alone in {name}", "--json")
        assert said.json["state"] == "confirmed", (name, said.out)
        request = alone.wait_request(f"alone in {name}")
        assert "work" not in request.user
        assert request.user.endswith(f"alone in {name}")


@pytest.mark.capability("input line")
def test_a_message_right_after_an_escape_is_not_glued_to_what_it_left(alone: ClaudeProduct) -> None:
    """Claude Code puts a prompt that no token answered back into its input line, and nobody has been told yet."""
    begun(alone)
    alone.cli("standing", "say", NAME, "--text", "left behind [[sleep 60]]")
    alone.wait_request("left behind")
    alone.keys("Escape")
    alone.wait_status("idle")
    wait_until(lambda: "left behind" in alone.screen().rpartition("\u276f")[2], "the text is in the input line again")

    said = alone.cli("standing", "say", NAME, "--text", "on its own", "--json")

    request = alone.wait_request("on its own")
    assert said.json["state"] == "confirmed"
    assert "left behind" not in request.user


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=["kill", "segv"])
@pytest.mark.capability("turn edges")
def test_a_death_is_told_within_two_seconds(alone: ClaudeProduct, number: int) -> None:
    """With the signal that ended it, and with the last of its screen kept."""
    begun(alone)
    [pid] = alone.panes().values()

    os.kill(pid, number)

    [told] = alone.wait_event("standing.exited", seconds=2)
    assert told["name"] == NAME
    assert f"signal {int(number)}" in told["detail"]
    assert "Look after it." in alone.cli("standing", "logs", NAME).out
