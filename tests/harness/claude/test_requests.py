"""Permission requests and questions of real Claude Code, answered in the thread, at the terminal, and by nobody."""

import json

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.harness.claude.test_story import serve
from tests.support.asking import press, press_stale, wait_buttons, wait_text, whispered
from tests.support.product import NAME
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("permission hook")
ASK = "asks for permission"
TOUCH = "[[tool bash touch made-by-test]]"
QUESTIONS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [
                {"label": "red", "description": "like a robin"},
                {"label": "blue", "description": "like a jay"},
            ],
        },
        {
            "question": "Which size?",
            "header": "Size",
            "multiSelect": False,
            "options": [{"label": "small", "description": "s"}, {"label": "large", "description": "l"}],
        },
    ]
}


@pytest.mark.parametrize(("label", "said"), [("Allow", "Allowed"), ("Deny", "Denied")])
def test_a_button_answers_the_dialog(talking: ClaudeProduct, label: str, said: str) -> None:
    """Claude Code takes the answer of its hook while its own dialog is shown; the tool runs, or the model is told."""
    thread = serve(talking)
    made = talking.folder / "work" / "made-by-test"
    talking.workspace.say("alice", "agents", TOUCH, thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")
    before = made.exists()

    press(talking, "alice", asked, label)
    told = wait_text(talking, thread, asked["ts"], f"{said}* by alice", 30)
    wait_until(lambda: talking.status() == "idle", "the turn is over", 60)

    assert before is False
    assert "touch made-by-test" in told
    assert made.exists() is (label == "Allow")
    if label == "Deny":
        assert "alice denied this in Slack" in json.dumps(talking.model.requests(TOUCH)[-1].body)


@pytest.mark.parametrize(("first", "second"), [("Allow", "Deny"), ("Deny", "Allow")])
def test_the_first_of_two_presses_decides(talking: ClaudeProduct, first: str, second: str) -> None:
    """bob's screen still shows the buttons when alice has decided: he is told so, and nothing changes."""
    people = [talking.workspace.user_id(name) for name in ("alice", "bob")]
    talking.configure(channels={"slack": talking.slack_block(authorizedUsers=people)})
    thread = serve(talking)
    made = talking.folder / "work" / "made-by-test"
    talking.workspace.say("alice", "agents", TOUCH, thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")

    press(talking, "alice", asked, first)
    press_stale(talking, "bob", asked, second)
    told = whispered(talking, "bob", "has already", 20)
    talking.wait_status("idle")

    word = {"Allow": "allowed", "Deny": "denied"}[first]
    assert told == f"alice has already {word} it."
    assert made.exists() is (first == "Allow")
    assert [event["reason"] for event in talking.events("standing.answered")] == [word]


@pytest.mark.parametrize("answer", ["Yes", "Escape"])
def test_the_terminal_may_be_first(talking: ClaudeProduct, answer: str) -> None:
    """The thread says so, and the buttons are gone."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", TOUCH, thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")

    talking.answer(answer)
    told = wait_text(talking, thread, asked["ts"], "nswered at the terminal", 30)

    assert "Allowed" not in told
    assert not talking.events("standing.answered")


def test_a_press_after_an_enter_at_the_terminal_decides_nothing(talking: ClaudeProduct) -> None:
    """No hook tells of the Enter while the tool runs; Claude Code's own file does, and the press is told so."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", "[[tool bash touch made-by-test && sleep 20]]", thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")
    talking.answer("Yes")
    talking.wait_status("busy")

    press(talking, "alice", asked, "Deny")
    wait_text(talking, thread, asked["ts"], "nswered at the terminal", 30)

    assert not talking.events("standing.answered")
    assert (talking.folder / "work" / "made-by-test").exists()


def test_a_background_agent_is_answered_in_the_thread(talking: ClaudeProduct) -> None:
    """Claude Code calls itself busy meanwhile; the session still counts as asking, and replies wait until then."""
    task = {"description": "d", "subagent_type": "general-purpose", "run_in_background": True}
    agent = json.dumps({**task, "prompt": "<<tool bash touch made-by-test>>"})
    thread = serve(talking)
    talking.workspace.say("alice", "agents", f"[[call Agent {agent}]] [[say over to it]]", thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_reply(thread, "over to it", 60)
    talking.workspace.say("alice", "agents", "meanwhile", thread)
    talking.wait_state("meanwhile", "queued")
    status = talking.status()

    press(talking, "alice", asked, "Allow")
    wait_text(talking, thread, asked["ts"], "Allowed* by alice", 30)
    talking.wait_state("meanwhile", "confirmed")

    assert status == "busy"
    assert (talking.folder / "work" / "made-by-test").exists()


@pytest.mark.parametrize("who", ["thread", "terminal"])
def test_an_allowed_tool_is_work_while_it_runs(talking: ClaudeProduct, who: str) -> None:
    """No hook tells of the answer until the tool is over; Claude Code's own file does, and messages go in meanwhile."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", "[[tool bash touch made-by-test && sleep 45]]", thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")
    asking = talking.activity()

    if who == "thread":
        press(talking, "alice", asked, "Allow")
    else:
        talking.answer("Yes")
    talking.wait_activity("busy", seconds=12)
    talking.workspace.say("alice", "agents", "while it runs", thread)
    wait_until(lambda: talking.state_of("while it runs") == "accepted", "its queue has it", 12)

    assert asking == "permission"
    assert (talking.folder / "work" / "made-by-test").exists()
    assert talking.status() == "busy"


@pytest.mark.parametrize("how", ["the person's Escape", "interrupt"])
def test_a_dialog_that_was_left_frees_the_queue_at_once(talking: ClaudeProduct, how: str) -> None:
    """Escape fires no hook; what waits goes in when Claude Code's own file says that it waits for nobody."""
    thread = serve(talking)
    talking.workspace.say("alice", "agents", TOUCH, thread)
    talking.wait_status("waiting")
    talking.workspace.say("alice", "agents", "behind the dialog", thread)
    talking.wait_state("behind the dialog", "queued")

    if how == "interrupt":
        talking.cli("standing", "interrupt", NAME)
    else:
        talking.keys("Escape")
    talking.wait_status("idle")
    wait_until(lambda: talking.state_of("behind the dialog") != "queued", "it goes in", 6)
    talking.wait_reply(thread, "behind the dialog", 60)

    assert talking.moves("behind the dialog")[-1] == "confirmed"
    assert talking.activity() in ("idle", "busy")


@pytest.mark.parametrize("how", ["buttons", "typing"])
def test_questions_are_answered_one_after_another(talking: ClaudeProduct, how: str) -> None:
    """The model gets both answers; what was typed reaches no input line."""
    thread = serve(talking)
    call = f"[[call AskUserQuestion {json.dumps(QUESTIONS)}]]"
    talking.workspace.say("alice", "agents", call, thread)
    asked = wait_buttons(talking, thread, "Which colour?", 60)

    if how == "buttons":
        press(talking, "alice", asked, "2. blue")
    else:
        talking.workspace.say("alice", "agents", "2", thread)
    again = wait_buttons(talking, thread, "Which size?", 30)
    if how == "buttons":
        press(talking, "alice", again, "1. small")
    else:
        talking.workspace.say("alice", "agents", "something between", thread)
    wait_text(talking, thread, asked["ts"], "Answered* by alice", 30)
    wait_until(lambda: talking.status() == "idle", "the turn is over", 60)

    last = json.dumps(talking.model.requests("Which colour?")[-1].body)
    second = "small" if how == "buttons" else "something between"
    assert 'Which colour?\\\\\\"=\\\\\\"blue' in last or "blue" in last.split("Which colour?")[-1]
    assert second in last
    assert "something between" not in talking.screen().splitlines()[-3:]


REMEMBERABLE, ALIKE = "[[tool bash openssl rand -hex 4]]", "[[tool bash openssl rand -hex 5]]"


def test_what_is_remembered_is_not_asked_again_while_the_program_runs(talking: ClaudeProduct) -> None:
    """The button names the rule that Claude Code offers; what the rule covers is then run without a word in the thread.

    `permission_suggestions` as 2.1.332 sends it: one `addRules` with `Bash(openssl rand *)`.
    """
    thread = serve(talking)
    talking.workspace.say("alice", "agents", REMEMBERABLE, thread)
    asked = wait_buttons(talking, thread, ASK, 60)
    talking.wait_status("waiting")
    labels = [element["text"]["text"] for element in asked["blocks"][-1]["elements"]]
    [remember] = [label for label in labels if label.startswith("Allow and remember Bash(")]

    press(talking, "alice", asked, remember)
    told = wait_text(talking, thread, asked["ts"], "it does not ask again for", 30)
    wait_until(lambda: talking.status() == "idle", "the turn is over", 60)
    talking.workspace.say("alice", "agents", ALIKE, thread)
    talking.wait_state(ALIKE, "confirmed")
    wait_until(lambda: talking.status() == "idle", "the second turn is over", 60)
    asks = [message for message in talking.workspace.replies("agents", thread) if "for permission" in message["text"]]

    assert remember.removeprefix("Allow and remember ") in told
    assert [message["ts"] for message in asks] == [asked["ts"]]
    assert not (talking.folder / "work" / ".claude" / "settings.local.json").exists()
