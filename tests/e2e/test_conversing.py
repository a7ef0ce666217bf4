"""What people press and say besides replies, and what an agent says besides its answers."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.asking import buttons, press, wait_buttons, wait_text, whispered
from tests.support.product import NAME, Done, Product
from tests.support.tmux import wait_until


@pytest.fixture
def thread(talking: Product) -> str:
    """Give the thread of a session that is up; alice is an operator, too."""
    block = talking.slack_block(operators=[talking.workspace.user_id("alice")])
    talking.configure(channels={"slack": block})
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    return thread


def test_what_waits_is_cancelled_and_sent_again_by_buttons(talking: Product, thread: str) -> None:
    """The note says what was done by whom; a second press changes nothing and is told so."""
    talking.cli("standing", "pause", NAME)
    talking.workspace.say("alice", "agents", "count the wrens", thread)
    note = wait_buttons(talking, thread, "the session is paused")

    press(talking, "alice", note, "Cancel")
    wait_text(talking, thread, note["ts"], "cancelled by alice")
    talking.workspace.press("alice", "agents", note["ts"], "the_loop_send-again")
    wait_text(talking, thread, note["ts"], "sent again by alice")
    talking.cli("standing", "resume", NAME)
    talking.wait_reply(thread, "count the wrens")

    assert buttons(note) == {"Cancel": "the_loop_cancel"}
    assert talking.count("count the wrens") == 1


def test_an_operator_starts_and_sends_by_one_button(talking: Product, thread: str) -> None:
    """The refused message goes in once, after the start; who is only a member sees that it is not for them."""
    bob = talking.workspace.user_id("bob")
    alice = talking.workspace.user_id("alice")
    talking.configure(channels={"slack": talking.slack_block(operators=[alice], authorizedUsers=[alice, bob])})
    talking.cli("stop")
    talking.serve().wait_swept()
    talking.workspace.wait_for_connections(1)
    talking.cli("standing", "stop", NAME)
    talking.workspace.say("alice", "agents", "feed the owl", thread)
    note = wait_buttons(talking, thread, "the session was stopped")

    press(talking, "bob", note, "Start and send")
    refused = whispered(talking, "bob", "operators")
    press(talking, "alice", note, "Start and send")
    wait_text(talking, thread, note["ts"], "started, and sent again by alice")
    talking.wait_reply(thread, "feed the owl")

    assert refused
    assert set(buttons(note)) == {"Send again", "Start", "Start and send"}
    assert talking.count("feed the owl") == 1


def test_what_a_stop_cut_off_is_never_marked_as_done(talking: Product, thread: str) -> None:
    """Nor after the start that another message is sent again with, which shows nothing but its own end."""
    cut = talking.workspace.say("alice", "agents", "sleep 25", thread)
    talking.workspace.wait_for_reaction("agents", cut, "eyes")
    talking.cli("standing", "stop", NAME)
    wait_until(lambda: _marks(talking, cut) == {"x"}, "the turn is marked as cut off")
    again = talking.workspace.say("alice", "agents", "feed the owl", thread)
    note = wait_buttons(talking, thread, "the session was stopped")
    wait_until(lambda: _marks(talking, again) == {"x"}, "the other one is marked as refused")

    press(talking, "alice", note, "Start and send")
    talking.wait_reply(thread, "feed the owl")
    wait_until(lambda: _marks(talking, again) == {"white_check_mark"}, "only its end is shown")

    assert _marks(talking, cut) == {"x"}


def _marks(talking: Product, ts: str) -> set[str]:
    return set(talking.workspace.reactions("agents", ts))


def test_without_operators_nobody_is_shown_a_start_button(talking: Product) -> None:
    """What nobody may press is not offered."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    talking.cli("standing", "stop", NAME)

    talking.workspace.say("alice", "agents", "feed the owl", thread)
    note = wait_buttons(talking, thread, "the session was stopped")

    assert buttons(note) == {"Send again": "the_loop_send-again"}


def test_the_slash_command_speaks_shows_and_pauses(talking: Product, thread: str) -> None:
    """Each answer is for the caller alone, and a member says what reaches the pane in their own name."""
    command = talking.workspace.command

    command("alice", "agents", f"/the-loop say {NAME} what about  the swifts")
    said = whispered(talking, "alice", f"{NAME}: confirmed")
    command("alice", "agents", f"/the-loop screen {NAME}")
    shown = talking.workspace.wait_for_ephemeral("alice", lambda m: "swifts" in json.dumps(m.get("blocks", [])))
    command("alice", "agents", f"/the-loop pause {NAME}")
    paused = whispered(talking, "alice", f"{NAME}: paused")
    command("alice", "agents", f"/the-loop resume {NAME}")
    whispered(talking, "alice", f"{NAME}: unpaused")
    command("alice", "agents", f"/the-loop restart {NAME}")
    whispered(talking, "alice", f"{NAME}: re")

    assert said
    assert shown
    assert paused
    assert any("[alice via slack" in taken and "what about  the swifts" in taken for taken in talking.taken())


def test_the_thread_names_people_and_the_log_keeps_who_was_refused(talking: Product, thread: str) -> None:
    """The announcement says by name who stopped the session, the event by id; a typo is no refusal."""
    alice, bob = (f"slack:{talking.workspace.user_id(name)}" for name in ("alice", "bob"))

    talking.workspace.command("bob", "agents", f"/the-loop stop {NAME}")
    whispered(talking, "bob", "not on the list")
    talking.workspace.command("alice", "agents", "/the-loop pause scirbe")
    whispered(talking, "alice", "scirbe")
    talking.workspace.command("alice", "agents", f"/the-loop stop {NAME}")
    told = talking.workspace.wait_for_message(
        lambda message: message["ts"] == thread and "is stopped by alice. To start it" in message["text"]
    )

    dropped = [event for event in talking.events("channel.dropped") if event["reason"] == "unauthorized-actor"]
    assert told
    assert [(event["actor"], event["name"], event["detail"]) for event in dropped] == [(bob, NAME, "stop")]
    assert talking.events("standing.stopped")[-1]["actor"] == alice


@pytest.mark.parametrize("how", ["cancel", "stop"])
def test_what_becomes_of_a_message_by_command_is_said_in_the_thread(talking: Product, thread: str, how: str) -> None:
    """The answer to a command comes at once and only once; what waits longer has no other place to be told in."""
    talking.cli("standing", "pause", NAME)
    talking.workspace.command("alice", "agents", f"/the-loop say {NAME} count the swifts")
    whispered(talking, "alice", f"{NAME}: queued")
    [waiting] = talking.cli("standing", "queue", NAME, "--json").json["messages"]

    talking.cli("standing", *({"cancel": ("cancel", waiting["id"]), "stop": ("stop", NAME)}[how]))
    told = talking.wait_reply(thread, "cancelled")

    alone = "alice's message to `scribe`, sent by a command, was cancelled"
    assert {"cancel": alone, "stop": "1 message that waited was cancelled"}[how] in told["text"]
    assert talking.count("count the swifts") == 0


def test_a_stop_tells_the_thread_of_what_the_harness_had_queued(talking: Product, thread: str) -> None:
    """A terminal's `say` was answered `accepted`, and the stop came before a turn took it."""
    talking.cli("standing", "say", NAME, "--text", "sleep 60")
    accepted = talking.cli("standing", "say", NAME, "--text", "count the swifts", "--json")

    stopped = talking.cli("standing", "stop", NAME)
    told = talking.wait_reply(thread, "was cancelled")

    assert (accepted.json["state"], stopped.code) == ("accepted", 0)
    assert f"message to `{NAME}`, sent by a command, was cancelled" in told["text"]
    assert talking.count("count the swifts") == 0


def inside(product: Product, *words: str) -> Done:
    """Run a command as the session's agent would."""
    return product.cli(*words, env={"THE_LOOP_INSTANCE": product.record()["instanceId"]})


def test_an_agent_posts_text_and_a_file_out_of_its_folder(talking: Product, thread: str) -> None:
    """They stand in its own thread, secrets taken out; what lies elsewhere, or leads there, is refused."""
    work = talking.folder / "work"
    (work / "report.txt").write_text(f"three herons, token {talking.workspace.bot_token}\n")
    outside = talking.folder / "outside.txt"
    outside.write_text("not theirs")
    Path(work / "link.txt").symlink_to(outside)

    done = inside(talking, "post", "--text", "**half** way", "--file", "report.txt")
    refused = [inside(talking, "post", "--file", name).code for name in (str(outside), "link.txt")]
    other = inside(talking, "post", "someone", "--text", "hello")
    talking.wait_reply(thread, "*half* way")

    def attached() -> list[str]:
        return [file["name"] for message in talking.workspace.replies("agents", thread)
                for file in message.get("files", [])]  # fmt: skip

    wait_until(attached, "the file is attached")

    assert done.code == 0, done.err
    assert [name.startswith("report-") for name in attached()] == [True]
    assert refused == [1, 1]
    assert other.code == 1


def test_an_agent_that_posts_too_often_is_told_so(talking: Product, thread: str) -> None:
    """Twenty an hour, and no more, with the reason."""
    with ThreadPoolExecutor(4) as beside:
        posted = beside.map(lambda number: inside(talking, "post", "--text", f"post {number}"), range(20))
        codes = {done.code for done in posted}
    late = inside(talking, "post", "--text", "one more")

    assert codes == {0}
    assert late.code == 1
    assert "20 times" in late.err


@pytest.mark.parametrize("how", ["button", "typing", "nobody"])
def test_an_agent_asks_and_gets_the_answer(shared: Product, how: str) -> None:
    """The command prints what was pressed or typed; without an answer it exits with 1 in time."""
    wait = "2" if how == "nobody" else "30"
    thread, question = shared.root(), f"Which bird by {how}?"
    words = ("ask", "--question", question, "--option", "owl", "--option", "wren", "--wait", wait)
    with ThreadPoolExecutor(1) as beside:
        asking = beside.submit(inside, shared, *words)
        asked = wait_buttons(shared, thread, question)
        if how == "button":
            press(shared, "alice", asked, "2. wren")
        elif how == "typing":
            shared.workspace.say("alice", "agents", "a crow", thread)
        done = asking.result(40)

    expected = {"button": (0, "wren\n"), "typing": (0, "a crow\n"), "nobody": (1, "")}
    assert (done.code, done.out) == expected[how], done.err
    ended = "Nobody answered in time" if how == "nobody" else "Answered* by alice"
    assert wait_text(shared, thread, asked["ts"], ended)
    assert shared.count("a crow") == 0


def test_what_was_asked_elsewhere_stands_before_its_answer(shared: Product) -> None:
    """By a command, and at the terminal itself; what was said in the thread is not said again."""
    thread = shared.root()

    shared.cli("standing", "say", NAME, "--text", "count the **wrens**\nand xoxb-1-2-abc")
    shared.wait_reply(thread, "You said")
    shared.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "-l", "feed the owl")
    shared.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "Enter")
    shared.wait_reply(thread, "“feed the owl”")
    shared.workspace.say("alice", "agents", "and the swifts", thread)
    shared.wait_reply(thread, "“and the swifts”")

    texts = [message["text"] for message in shared.workspace.replies("agents", thread)]
    who = next(text for text in texts if " via cli:*" in text)
    assert who.endswith(" via cli:*\n&gt; count the *wrens*\n&gt; and [redacted]")
    at_terminal = texts.index("*at the terminal:*\n&gt; feed the owl")
    assert texts.index(who) < next(at for at, text in enumerate(texts) if "“count the" in text) < at_terminal
    assert at_terminal < next(at for at, text in enumerate(texts) if "“feed the owl”" in text)
    assert len([text for text in texts if "and the swifts" in text]) == 2


def test_a_program_that_reports_nothing_is_spoken_with_by_its_screen(talking: Product) -> None:
    """A reply is typed and marked so, whoever replies can look at the terminal, and nobody waits for an answer."""
    program = ["/bin/sh", "-c", 'stty -echo; echo READY; while read -r line; do echo "heard $line"; done']
    declared = {"name": NAME, "harness": "parrot", "slack": {"enabled": True}}
    talking.configure(
        harnesses={"parrot": {"start": program, "ready": "READY", "paste": "plain"}},
        standingSessions={"enabled": True, "sessions": [declared]},
    )
    talking.serve().wait_swept()
    root = talking.root()

    ts = talking.workspace.say("alice", "agents", "feed the owl", root)
    talking.workspace.wait_for_reaction("agents", ts, "keyboard")
    wait_until(lambda: "heard" in talking.screen(), "the program has read it")
    announced = next(message for message in talking.workspace.messages("agents") if message["ts"] == root)
    press(talking, "alice", announced, "Screen")
    whispered(talking, "alice", f"{NAME}:")

    assert "`parrot` reports nothing" in announced["text"]
    assert "feed the owl" in str(talking.workspace.ephemerals("agents", "alice")[-1]["blocks"])
    assert set(talking.workspace.reactions("agents", ts)) == {"keyboard"}
