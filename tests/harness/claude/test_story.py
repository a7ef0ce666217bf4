"""The README's story with real Claude Code: in the thread, at the terminal and by the command line alone."""

import signal

import pytest

from tests.harness.claude.product import ClaudeProduct, times_in
from tests.support.product import NAME, is_root
from tests.support.tmux import alive, wait_until


def serve(product: ClaudeProduct, **env: str) -> str:
    """Bring the service up, wait until the boot turn is answered, and return the session's thread."""
    product.serve(env=env).wait_swept()
    thread = product.root()
    product.wait_reply(thread, "Look after it.", 60)
    return thread


@pytest.mark.capability("resume")
def test_a_reply_is_taken_once_and_the_conversation_goes_on_after_a_stop(talking: ClaudeProduct) -> None:
    """Announcement, reply, answer, status; a graceful stop; the next start knows what was said before."""
    thread = serve(talking)
    [pid] = talking.panes().values()

    talking.workspace.say("alice", "agents", "remember the heron", thread)
    answer = talking.wait_reply(thread, "remember the heron", 60)
    talking.workspace.command("alice", "agents", "/the-loop status")
    told = talking.workspace.wait_for_ephemeral("alice", lambda m: "1 session, running" in m["text"])
    up, stopped, down = (talking.cli(word, "--json") for word in ("status", "stop", "status"))
    left = alive(pid)
    again = talking.cli("start", "--json", seconds=120)
    talking.workspace.say("alice", "agents", "what was it?", thread)
    talking.wait_reply(thread, "what was it?", 60)

    [asked] = talking.model.requests("remember the heron")
    assert answer["text"].startswith("ECHO: [alice via slack #")
    assert any(NAME in str(block) for block in told["blocks"])
    assert (up.code, stopped.code, down.code, left) == (0, 0, 1, False)
    assert again.json["standingSessions"][0]["outcome"] == "resumed"
    assert "up again" in talking.wait_reply(thread, "is up again — resumed", 30)["text"]
    assert len(talking.roots()) == 1
    assert any(is_root(message) and "resumed" in message["text"] for message in talking.workspace.messages("agents"))
    [later] = talking.model.requests("what was it?")
    assert times_in(later, asked.user) >= 1
    assert talking.moves("remember the heron") == ["confirmed"]


@pytest.mark.parametrize("work", ["[[sleep 8]]", "[[tool bash sleep 8]]"], ids=["mid-turn", "mid-tool"])
@pytest.mark.capability("queue evidence")
def test_a_reply_while_a_turn_runs_is_accepted_then_confirmed(talking: ClaudeProduct, work: str) -> None:
    """Claude Code queues it at once, by its own record, and a turn takes it once."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", f"work {work}", thread)
    talking.wait_status("busy")
    talking.wait_state(f"work {work}", "confirmed")

    talking.workspace.say("alice", "agents", "and the swallows", thread)
    talking.wait_reply(thread, "and the swallows", 60)
    talking.wait_state("and the swallows", "confirmed")

    assert talking.moves("and the swallows") == ["accepted", "confirmed"]
    asked = next(request for request in talking.model.requests() if times_in(request, "and the swallows"))
    assert times_in(asked, "and the swallows") == 1


@pytest.mark.parametrize("answer", ["Yes", "No", "Escape"])
@pytest.mark.capability("permission hook")
def test_an_open_permission_dialog_gets_no_enter(talking: ClaudeProduct, answer: str) -> None:
    """The reply waits with a note, the tool does not run by it, and it is delivered once the dialog is gone."""
    thread = serve(talking)
    made = talking.folder / "work" / "made-by-test"
    talking.workspace.say("alice", "agents", "[[tool bash touch made-by-test]]", thread)
    talking.wait_status("waiting")

    talking.workspace.say("alice", "agents", "not an answer", thread)
    talking.wait_reply(thread, "asks for a permission", 30)
    before = (made.exists(), talking.status(), talking.state_of("not an answer"))
    talking.answer(answer)
    talking.wait_reply(thread, "not an answer", 60)
    if answer == "Yes":
        wait_until(made.exists, "the tool has run")
    talking.wait_state("not an answer", "confirmed")

    assert before == (False, "waiting", "queued")
    assert made.exists() is (answer == "Yes")
    assert talking.moves("not an answer") in (["confirmed"], ["accepted", "confirmed"])  # the turn may run on


@pytest.mark.parametrize("command", ["/model", "/cost"])
@pytest.mark.capability("dialogs")
def test_a_dialog_that_a_person_opened_gets_no_enter(talking: ClaudeProduct, command: str) -> None:
    """No hook tells of it; the message waits until it is closed."""
    thread = serve(talking)
    talking.wait_status("idle")
    talking.keys("-l", command)
    wait_until(lambda: command in talking.screen(), "the command is typed")
    talking.keys("Enter")
    talking.wait_status("waiting")
    shown = talking.screen()

    talking.workspace.say("alice", "agents", "behind the dialog", thread)
    talking.wait_state("behind the dialog", "queued")
    still = (talking.status(), talking.screen() == shown)
    talking.keys("Escape")
    talking.wait_reply(thread, "behind the dialog", 60)

    assert still == ("waiting", True)
    assert talking.moves("behind the dialog") == ["confirmed"]


@pytest.mark.capability("pasting")
def test_a_long_message_arrives_whole(talking: ClaudeProduct) -> None:
    """Almost 100 kB in a thousand lines, pasted, reach the model as they are, in one request."""
    serve(talking)
    text = "".join(f"line {number:04} {'x' * 85}\n" for number in range(1000))
    file = talking.folder / "long.txt"
    file.write_text(text)

    said = talking.cli("standing", "say", NAME, "--file", str(file), "--json")

    request = talking.wait_request("line 0999")
    assert said.json["state"] == "confirmed"
    assert text.strip() in request.user
    assert len(talking.model.requests("line 0999")) == 1


@pytest.mark.capability("input line")
def test_half_typed_text_comes_back_after_a_reply(talking: ClaudeProduct) -> None:
    """A person at the terminal loses nothing, and nothing of theirs is sent."""
    thread = serve(talking)
    talking.wait_status("idle")
    with talking.person() as person:
        person.type("half a thought")
        person.rest()

        talking.workspace.say("alice", "agents", "by the way", thread)
        talking.wait_reply(thread, "by the way", 60)

        wait_until(
            lambda: "\u276f half a thought" in person.screen().replace("\xa0", " "), f"it is back: {person.screen()}"
        )
    assert talking.model.requests("half a thought") == ()


@pytest.mark.capability("input line")
@pytest.mark.parametrize(
    "left", ["/clear ", "please do not ", "one\\\rtwo\\\r  three"], ids=["command", "words", "lines"]
)
def test_text_that_somebody_left_in_the_line_is_not_sent_with_a_reply(talking: ClaudeProduct, left: str) -> None:
    """Its client has gone: a look at the screen tells of it. It is put aside, and is back after the reply."""
    thread = serve(talking)
    talking.wait_status("idle")
    conversation = talking.cli("standing", "get", NAME, "--json").json["harnessSessionId"]
    with talking.person() as person:
        for typed in left.split("\r"):
            person.type(typed)
            if typed.endswith("\\"):
                person.press(b"\r")
                wait_until(lambda: "\\" not in talking.screen().rpartition("\u276f")[2], "the line is broken", 20)
        last = left.split("\r")[-1].strip()

    talking.workspace.say("alice", "agents", "by the way", thread)
    talking.wait_reply(thread, "by the way", 60)
    talking.workspace.say("alice", "agents", "and another", thread)
    talking.wait_reply(thread, "and another", 60)

    assert talking.cli("standing", "get", NAME, "--json").json["harnessSessionId"] == conversation
    assert talking.model.requests(last) == ()
    wait_until(lambda: last in talking.screen().rpartition("\u276f")[2], f"it is back: {talking.screen()}")


@pytest.mark.parametrize("point", ["delivery.claim:after", "delivery.paste:after", "delivery.submit:after"])
@pytest.mark.capability("queue evidence")
def test_a_service_killed_while_it_delivers_delivers_once(talking: ClaudeProduct, point: str) -> None:
    """The next service goes on from the row, the receipt and Claude Code's own records."""
    first = talking.serve(env={"THE_LOOP_CRASH_AT": point}).wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Look after it.", 60)
    talking.workspace.say("alice", "agents", "survive this", thread)
    ended = first.ended(30)

    talking.serve().wait_swept()
    talking.wait_reply(thread, "survive this", 60)
    talking.wait_state("survive this", "confirmed")

    assert ended == -signal.SIGKILL
    [request] = talking.model.requests("survive this")
    assert times_in(request, "survive this") == 1


@pytest.mark.capability("resume")
def test_start_say_stop_and_resume_without_a_service(alone: ClaudeProduct) -> None:
    """The command line alone: a say is confirmed by Claude Code's own record, and the conversation is resumed."""
    started = alone.cli("standing", "start", NAME, "--json", seconds=120)
    alone.wait_activity("idle")  # what waits in its own queue ends with a stop by name
    said = alone.cli("standing", "say", NAME, "--text", "the first word", "--json")
    stopped = alone.cli("standing", "stop", NAME, "--json")
    resumed = alone.cli("standing", "start", NAME, "--json", seconds=120)
    again = alone.cli("standing", "say", NAME, "--text", "the second word", "--json")

    assert (started.row["outcome"], stopped.row["outcome"], resumed.row["outcome"]) == ("started", "stopped", "resumed")
    assert (said.json["state"], again.json["state"]) == ("confirmed", "confirmed")
    later = alone.wait_request("the second word")
    assert times_in(later, "the first word") >= 1


@pytest.mark.capability("resume")
def test_a_conversation_just_begun_survives_a_stop(alone: ClaudeProduct) -> None:
    """Stopped in the moment in which the first turn ends, it is resumed all the same."""
    alone.cli("standing", "start", NAME, seconds=120)
    alone.wait_request("Look after it.")
    alone.wait_status("idle")

    alone.cli("standing", "stop", NAME)
    resumed = alone.cli("standing", "start", NAME, "--json", seconds=120)

    assert resumed.row["outcome"] == "resumed"
