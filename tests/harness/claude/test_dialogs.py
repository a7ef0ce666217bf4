"""Dialogs of real Claude Code that no hook announces: at its start, in auto mode, and where a person opened them."""

import json
from pathlib import Path

import pytest

from tests.harness.claude.product import CLAUDE, ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.asking import buttons, press, wait_buttons, wait_text
from tests.support.product import NAME
from tests.support.tmux import wait_until

SHOWS = "shows a dialog in its terminal"
UNCHECKED = "[[tool bash curl http://127.0.0.1:1/ ; rm -rf kept]]"
AGREES = ("Yes", "Allow")
ASKED: dict[str, list[str]] = {"2.1.197": [], "2.1.280": ["Enter:"]}  #: how many dialogs auto mode opens

pytestmark = pytest.mark.capability("dialogs")


def row(product: ClaudeProduct) -> dict[str, object]:
    """Return the session's row."""
    found: dict[str, object] = product.cli("standing", "get", NAME, "--json").json
    return found


def offer(product: ClaudeProduct, *names: str) -> None:
    """Let the project have MCP servers that nobody has decided about."""
    servers = {name: {"command": "/bin/false"} for name in names}
    (product.folder / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def local(product: ClaudeProduct) -> dict[str, object]:
    """Return what Claude Code wrote down for the folder."""
    path = Path(product.folder / "work" / ".claude" / "settings.local.json")
    found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    return found


def test_the_question_about_a_server_is_answered_in_the_thread(talking: ClaudeProduct) -> None:
    """The start says what it stands at; a reply waits; the choice is made by its text, and all goes in, once."""
    offer(talking, "my server")
    talking.serve().wait_swept()
    thread = talking.root()
    asked = wait_buttons(talking, thread, SHOWS, 60)
    told = row(talking)
    talking.workspace.say("alice", "agents", "remember the heron", thread)
    talking.wait_state("remember the heron", "queued")

    press(talking, "alice", asked, "Use this MCP server")
    ended = wait_text(talking, thread, asked["ts"], "chosen by alice", 30)
    talking.wait_reply(thread, "Look after it.", 60)
    talking.wait_reply(thread, "remember the heron", 60)

    assert "New MCP server found in this project: my server" in asked["text"]
    assert told["activity"] == "starting"
    assert "it shows a dialog before it is ready for input: New MCP server found in this project: my server" in str(
        told["detail"]
    )
    assert "*Use this MCP server*" in ended
    assert local(talking).get("enabledMcpjsonServers") == ["my server"]
    assert [len(talking.model.requests(text)) for text in ("Look after it.", "remember the heron")] == [1, 1]


def test_servers_are_ticked_in_the_thread(talking: ClaudeProduct) -> None:
    """Each press of one changes its box; the list is closed by what closes it in that version."""
    offer(talking, "one", "two")
    talking.serve().wait_swept()
    thread = talking.root()
    asked = wait_buttons(talking, thread, SHOWS, 60)

    press(talking, "alice", asked, "☑ one")
    wait_text(talking, thread, asked["ts"], "chosen by alice", 30)
    wait_until(lambda: "☐ one" in buttons(wait_buttons(talking, thread, SHOWS, 30)), "it is shown anew", 30)
    again = wait_buttons(talking, thread, SHOWS, 30)
    [close] = [label for label in buttons(again) if label == "Enable selected" or label.startswith("Enter:")]
    press(talking, "alice", again, close)
    talking.wait_reply(thread, "Look after it.", 60)

    assert local(talking).get("enabledMcpjsonServers") == ["two"]


def test_trust_is_asked_for_in_the_thread_where_it_is_not_given_before(talking: ClaudeProduct) -> None:
    """With harnessTrust.enabled false a person decides, and the cursor may stand at the refusal."""
    home = talking.folder / "home" / ".claude.json"
    key = talking.environ()["ANTHROPIC_API_KEY"][-20:]
    approved = {"approved": [key], "rejected": []}
    home.write_text(json.dumps({"hasCompletedOnboarding": True, "customApiKeyResponses": approved}))
    routing = talking.document()["routing"]
    talking.configure(routing={**routing, "harnessTrust": {"enabled": False}})
    talking.serve().wait_swept()
    thread = talking.root()
    asked = wait_buttons(talking, thread, SHOWS, 60)

    press(talking, "alice", asked, "Yes, I trust this folder")
    talking.wait_reply(thread, "Look after it.", 60)

    assert "Accessing workspace" in asked["text"]


@pytest.mark.parametrize("command", ["/model", "escape twice"])
def test_what_a_person_opened_is_typed_into_by_nobody(talking: ClaudeProduct, command: str) -> None:
    """Of the list of earlier points 2.1.197 tells nobody at all; its screen does. It is left, and the reply goes in."""
    thread = serve(talking)
    talking.wait_status("idle")
    if command == "/model":
        talking.keys("-l", "/model")
        wait_until(lambda: "/model" in talking.screen(), "it is typed", 20)
        talking.keys("Enter")
        wait_until(lambda: "Select model" in talking.screen(), "the dialog", 20)
    else:
        talking.keys("Escape", "Escape")
        wait_until(lambda: "Restore the code" in talking.screen(), "the dialog", 20)
    shown = talking.screen()

    talking.workspace.say("alice", "agents", "behind it", thread)
    talking.wait_state("behind it", "queued")
    asked = wait_buttons(talking, thread, SHOWS, 40)
    during = talking.screen()
    press(talking, "alice", asked, next(label for label in buttons(asked) if label.startswith("Esc:")))
    talking.wait_reply(thread, "behind it", 60)

    assert "behind it" not in during
    assert ("Select model" in during) is ("Select model" in shown)
    assert talking.moves("behind it")[-1] == "confirmed"


def waits_for_the_transcript(talking: ClaudeProduct, thread: str, text: str) -> None:
    """Show the transcript in the place of the input line, reply, and see that the reply waits until that is back."""
    talking.keys("C-o")
    wait_until(lambda: "Showing detailed transcript" in talking.screen(), "the transcript", 20)

    talking.workspace.say("alice", "agents", text, thread)
    talking.wait_state(text, "queued")
    talking.keys("C-o")
    talking.wait_reply(thread, text, 60)

    assert talking.moves(text)[-1] == "confirmed"


def test_a_transcript_that_is_shown_whole_is_no_input_line(talking: ClaudeProduct) -> None:
    """Neither status file nor hook tells of it; a reply waits until the input line is back."""
    thread = serve(talking)
    talking.wait_status("idle")
    talking.workspace.say("alice", "agents", "remember the heron", thread)
    talking.wait_reply(thread, "ECHO: [alice via slack", 60)
    talking.wait_status("idle")

    waits_for_the_transcript(talking, thread, "meanwhile")


def test_no_view_takes_the_first_message_of_all(talking: ClaudeProduct) -> None:
    """Of a version that was tried the form of the input line is known, though none was seen in this instance."""
    thread = serve(talking)
    talking.wait_status("idle")

    waits_for_the_transcript(talking, thread, "the first")


def test_auto_mode_asks_nothing_that_the_thread_does_not_show(talking: ClaudeProduct) -> None:
    """Where its check cannot be reached each dialog is answered by its text, and the remedy is told once."""
    routing = talking.document()["routing"]
    talking.configure(routing={**routing, "harnessTrust": {"permissionMode": "auto"}})
    thread = serve(talking)
    kept = talking.folder / "work" / "kept"
    kept.mkdir()
    talking.workspace.say("alice", "agents", UNCHECKED, thread)
    talking.wait_request("rm -rf kept")
    answered: list[str] = []

    def over() -> bool:
        replies = talking.workspace.replies("agents", thread)  # a note of a message that waits has buttons, too
        asked = [each for each in replies if SHOWS in each["text"] and buttons(each)]
        for message in asked:
            label = next(label for label in buttons(message) if label in AGREES or label.startswith("Enter: "))
            talking.workspace.say("alice", "agents", f"behind dialog {len(answered)}", thread)
            press(talking, "alice", message, label)
            wait_text(talking, thread, message["ts"], "by alice", 30)
            answered.append(label)
        return talking.status() == "idle"

    wait_until(over, "the turn is over, and nothing waits", 90, every=0.5)
    for number in range(len(answered)):
        talking.wait_reply(thread, f"behind dialog {number}", 60)

    told = [text for text in talking.bot_replies(thread) if "permissionMode: default" in text]
    assert row(talking)["permissionMode"] == "auto"
    assert [label.split()[0] for label in answered] == ASKED.get(CLAUDE.version, ["Enter:", "Yes"])
    assert len(told) == len(talking.events("standing.unchecked")) == ("Yes" in answered)
    assert kept.exists() is ("Yes" not in answered)


def test_nothing_is_typed_into_a_line_in_shell_mode(talking: ClaudeProduct) -> None:
    """Whoever typed `!` and went has left it so: a reply waits, is run by no shell, and goes in behind it."""
    thread = serve(talking)
    talking.wait_status("idle")
    proof = talking.folder / "work" / "proof"
    with talking.person() as person:
        person.press(b"!")
        wait_until(lambda: "! for shell mode" in talking.screen(), "the mode", 20)
    text = f"please look\ntouch {proof}"

    talking.workspace.say("alice", "agents", text, thread)
    talking.wait_state(text, "queued")
    talking.wait_reply(thread, "the input line is in shell mode", 40)
    talking.keys("BSpace")
    talking.wait_reply(thread, "ECHO: [alice via slack", 60)

    assert not proof.exists()
    assert talking.moves(text)[-1] == "confirmed"
