"""Permission requests and questions of a session, answered in its thread: by buttons and by typing."""

import signal

import pytest

from tests.support.asking import buttons, press, wait_buttons, wait_text, whispered
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

ASK = "asks for permission"


@pytest.fixture
def thread(talking: Product) -> str:
    """Give the thread of a session that is up."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    return thread


def ask_permission(product: Product, thread: str) -> dict[str, str]:
    """Let the agent ask, and return the post with the buttons."""
    product.workspace.say("alice", "agents", "ask permission", thread)
    return wait_buttons(product, thread, ASK)


@pytest.mark.parametrize(("label", "said"), [("Allow", "Allowed"), ("Deny", "Denied")])
def test_the_first_press_of_an_approver_decides(shared: Product, label: str, said: str) -> None:
    """The tool runs or does not, the message says who decided and has no buttons, and a later press is told so."""
    thread, before = shared.root(), shared.events("standing.answered")
    asked = ask_permission(shared, thread)

    press(shared, "alice", asked, label)
    told = wait_text(shared, thread, asked["ts"], f"{said}* by alice")
    answer = shared.wait_reply(thread, "I was allowed" if label == "Allow" else "I was not allowed")
    [message] = [m for m in shared.workspace.replies("agents", thread) if m["ts"] == asked["ts"]]

    assert buttons(asked) == {"Allow": "the_loop_allow", "Deny": "the_loop_deny"}
    assert "date" in told
    assert answer
    assert not buttons(message)
    [event] = shared.events("standing.answered")[len(before) :]
    assert (event["reason"], event["actor"]) == (said.lower(), f"slack:{shared.workspace.user_id('alice')}")


def test_an_outsider_decides_nothing(shared: Product) -> None:
    """mallory, who is on no list, is told so alone, and the request stays open for alice."""
    thread, before = shared.root(), shared.events("standing.answered")
    asked = ask_permission(shared, thread)
    shared.workspace.join("mallory", "agents")

    press(shared, "mallory", asked, "Allow")
    refused = whispered(shared, "mallory", "not on the list")
    meanwhile = shared.events("standing.answered")
    press(shared, "alice", asked, "Deny")
    wait_text(shared, thread, asked["ts"], "Denied* by alice")

    assert refused
    assert meanwhile == before


def test_an_answer_at_the_terminal_is_said_in_the_thread(talking: Product, thread: str) -> None:
    """Whoever sits at the terminal may be first; a press that comes later is told so."""
    asked = ask_permission(talking, thread)

    talking.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "1")
    wait_text(talking, thread, asked["ts"], "Answered at the terminal")

    assert talking.wait_reply(thread, "I was allowed")
    assert not talking.events("standing.answered")


def test_a_request_that_nobody_answers_stays_in_the_terminal(talking: Product) -> None:
    """After limits.approvalWaitSeconds the message says so, and the dialog can still be answered by keys."""
    talking.configure(limits={"approvalWaitSeconds": 2})
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    asked = ask_permission(talking, thread)

    wait_text(talking, thread, asked["ts"], "the dialog stays in the terminal")
    talking.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "2")

    assert talking.wait_reply(thread, "I was not allowed")


def test_a_request_outlives_the_service(talking: Product) -> None:
    """The hook finds the next service, and a press there is the answer."""
    first = talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    asked = ask_permission(talking, thread)

    first.kill()
    talking.serve().wait_swept()
    talking.workspace.wait_for_connections(1)
    wait_until(lambda: pressed_until_taken(talking, asked), "the press is taken")
    wait_text(talking, thread, asked["ts"], "Allowed* by alice")

    assert talking.wait_reply(thread, "I was allowed")
    assert len(talking.events("standing.answered")) == 1


def pressed_until_taken(product: Product, asked: dict[str, str]) -> bool:
    """Press as a person does who is told to try again."""
    if product.events("standing.answered"):
        return True
    press(product, "alice", asked, "Allow")
    return bool(product.events("standing.answered"))


def test_a_button_of_an_earlier_run_does_nothing(talking: Product, thread: str) -> None:
    """After a restart the old request is over, and its message says so."""
    asked = ask_permission(talking, thread)

    talking.cli("standing", "restart", NAME, "--json")
    ended = wait_text(talking, thread, asked["ts"], "ended")

    assert "Allowed" not in ended
    assert not talking.events("standing.answered")


@pytest.mark.parametrize("how", ["button", "number", "label", "words"])
def test_a_question_is_answered_by_button_or_by_typing(shared: Product, how: str) -> None:
    """The agent gets the label, or the words; the reply is nobody's next message."""
    thread, blue = shared.root(), f"blue by {how}"
    shared.workspace.say("alice", "agents", f"ask question Which by {how}? | red | {blue}", thread)
    asked = wait_buttons(shared, thread, f"Which by {how}?")
    typed = {"number": "2", "label": blue.capitalize(), "words": "rather green"}

    if how == "button":
        press(shared, "alice", asked, f"2. {blue}")
    else:
        shared.workspace.say("alice", "agents", typed[how], thread)
    wait_text(shared, thread, asked["ts"], "Answered* by alice")
    expected = "rather green" if how == "words" else blue

    assert shared.wait_reply(thread, expected)
    assert not any("rather green" in taken or taken.endswith("] 2") for taken in shared.taken())


def test_no_service_leaves_the_dialog_to_the_terminal(talking: Product) -> None:
    """The hook gives up at once, and the keys count."""
    service = talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    service.stop(signal.SIGTERM)

    talking.cli(
        "standing",
        "say",
        NAME,
        "--text",
        "ask permission",
    )
    wait_until(lambda: "May I run" in talking.screen(), "the dialog is shown")
    talking.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "1")

    wait_until(lambda: "I was allowed" in talking.screen(), "the answer at the terminal counts")


def test_while_threads_are_polled_no_button_is_shown(talking: Product) -> None:
    """A permission names the terminal; a question is answered by a reply; what waits names its commands."""
    talking.configure(channels={"slack": talking.slack_block(read={"mode": "poll", "intervalSeconds": 1})})
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")

    talking.workspace.say("alice", "agents", "ask permission", thread)
    asked = talking.wait_reply(thread, ASK)
    talking.tmux("send-keys", "-t", f"=loop-standing-{NAME}:", "1")
    talking.wait_reply(thread, "I was allowed")
    talking.workspace.say("alice", "agents", "ask question Which? | red | blue", thread)
    question = talking.wait_reply(thread, "Which?")
    talking.workspace.say("alice", "agents", "2", thread)
    wait_text(talking, thread, question["ts"], "Answered* by alice")

    assert f" standing attach {NAME} --write`" in asked["text"]
    assert question["text"].endswith("_Reply with its number, or in your own words._")
    assert not any(buttons(message) for message in talking.workspace.replies("agents", thread))
