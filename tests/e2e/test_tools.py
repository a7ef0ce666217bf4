"""An agent that uses its tools, as people see it: in threads, terminals and events."""

import json

from tests.support.asking import press, wait_buttons
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until


def tell(product: Product, thread: str, words: str) -> None:
    """Let alice steer the session by its thread."""
    product.workspace.say("alice", "agents", words, thread)


def begun(product: Product) -> str:
    """Return the thread of the session, once it is up."""
    product.serve().wait_swept()
    thread = product.root()
    product.wait_reply(thread, "Ready.")
    return thread


def test_an_agent_lists_posts_and_asks(talking: Product) -> None:
    """It finds itself, posts in the middle of its turn, and has a person's answer in the same turn."""
    thread = begun(talking)

    tell(talking, thread, "call list_standing_sessions")
    talking.wait_reply(thread, f'"you": "{NAME}"')
    tell(talking, thread, 'call post {"text": "half way there"}')
    talking.wait_reply(thread, "half way there")
    tell(talking, thread, 'call ask {"question": "Which colour?", "options": ["red", "green"]}')
    press(talking, "alice", wait_buttons(talking, thread, "Which colour?"), "2. green")

    assert talking.wait_reply(thread, '"answer": "green"')
    assert {event["actor"] for event in talking.events("standing.posted", "standing.asked")} == {f"agent:{NAME}"}


def test_an_agent_writes_to_another_which_answers(talking: Product) -> None:
    """The message is in the other's terminal with its sender's name; nothing is confirmed by anybody."""
    thread = begun(talking)
    assert talking.cli("standing", "create", "builder", "--prompt", "Build.").code == 0

    tell(talking, thread, 'call say_to_standing_session {"name": "builder", "text": "are you there?"}')
    talking.wait_reply(thread, '"state": "confirmed"')

    assert talking.times("are you there?", "builder") == 1
    [taken] = [text for text in talking.taken("builder") if "are you there?" in text]
    assert taken.startswith(f"[agent {NAME} #")
    assert not talking.events("standing.asked")


def test_what_an_agent_may_not_do_it_is_told(talking: Product) -> None:
    """There is no tool that stops a session, and the refusal says which there are."""
    thread = begun(talking)

    tell(talking, thread, f"call stop_standing_session {json.dumps({'name': NAME})}")
    told = talking.wait_reply(thread, "unknown_tool")

    assert "list_standing_sessions" in told["text"]
    assert NAME in talking.panes()


def test_an_agents_loop_goes_on_over_a_restart_of_the_service(talking: Product) -> None:
    """It makes the loop, its turn ends, the service is restarted, the loop fires, and the agent stops it."""
    service = talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    made = {"instruction": "time", "interval": "30s", "keep_alive": True}
    tell(talking, thread, f"call create_loop {json.dumps(made)}")
    talking.wait_reply(thread, '"keepAlive": true')
    [loop] = talking.cli("loop", "list", NAME, "--json").json["loops"]

    service.stop()
    talking.serve().wait_swept()
    talking.workspace.wait_for_connections(1)
    tell(talking, thread, f"call run_loop_now {json.dumps({'id': loop['id']})}")
    wait_until(lambda: any("automated tick" in text for text in talking.taken()), "the tick is taken")
    tell(talking, thread, f"call stop_loop {json.dumps({'id': loop['id'], 'reason': 'it is done'})}")
    wait_until(lambda: talking.events("loop.stopped"), "it is stopped")

    [ended] = talking.cli("loop", "list", NAME, "--json").json["loops"]
    assert (ended["status"], ended["reason"], ended["createdBy"]) == ("stopped", "it is done", f"agent:{NAME}")
    assert ended["runCount"] >= 1
    assert talking.events("loop.stopped")[-1]["actor"] == f"agent:{NAME}"


def test_an_interrupt_takes_a_question_back(talking: Product) -> None:
    """The turn ends, and the question's post says that nobody waits for it any more."""
    thread = begun(talking)
    tell(talking, thread, 'call ask {"question": "Which colour?"}')
    talking.wait_reply(thread, "Which colour?")

    assert talking.cli("standing", "interrupt", NAME).code == 0

    wait_until(lambda: any("no longer waits" in text for text in talking.bot_replies(thread)), "it is taken back")
