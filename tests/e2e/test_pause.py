"""A pause on the real product: in the thread, over killed services, and to its end."""

from typing import Any

from embedded.workspace.model import Json
from tests.support.asking import buttons, press, whispered
from tests.support.product import NAME, Product
from tests.support.tmux import wait_until


def rested(product: Product) -> None:
    """Wait until the boot turn is over."""
    wait_until(lambda: product.cli("standing", "get", NAME, "--json").json["activity"] == "idle", "it is idle")


def queue(product: Product) -> list[dict[str, Any]]:
    """Return what the command line says that waits."""
    messages: list[dict[str, Any]] = product.cli("standing", "queue", NAME, "--text", "--json").json["messages"]
    return messages


def test_a_pause_keeps_replies_over_a_killed_service_and_gives_them_in_order(talking: Product) -> None:
    """Each reply gets its note at once; the next service knows the pause, and the resume takes them in, once."""
    service = talking.serve().wait_swept()
    thread = talking.root()
    rested(talking)
    paused = talking.cli("standing", "pause", NAME, "--reason", "lunch", "--json")
    talking.workspace.say("alice", "agents", "first of all", thread)
    note = talking.wait_reply(thread, "is waiting: the session is paused")
    service.kill()

    talking.serve().wait_swept()
    talking.workspace.say("alice", "agents", "and then", thread)
    wait_until(lambda: len(queue(talking)) == 2, "both wait")
    waiting = [(message["text"], message["kind"], message["actor"].partition(":")[0]) for message in queue(talking)]
    held = talking.cli("standing", "get", NAME, "--json").json
    before = talking.taken()
    resumed = talking.cli("standing", "resume", NAME, "--json")
    talking.wait_reply(thread, "and then")

    assert (paused.row["outcome"], resumed.row["outcome"]) == ("paused", "unpaused")
    assert f"`/the-loop resume {NAME}`" in note["text"]
    assert waiting == [("first of all", "reply", "slack"), ("and then", "reply", "slack")]
    assert (held["hold"]["kind"], held["hold"]["reason"], held["queued"], held["live"]) == (
        "paused",
        "lunch",
        2,
        "live",
    )
    taken = talking.taken()[len(before) :]
    assert [text.split("] ")[1].strip() for text in taken] == ["first of all", "and then"]


def test_a_cancelled_reply_is_told_in_its_thread_and_never_taken(talking: Product) -> None:
    """One note, and the message does not go in with the others."""
    talking.serve().wait_swept()
    thread = talking.root()
    rested(talking)
    talking.cli("standing", "pause", NAME)
    talking.workspace.say("alice", "agents", "not this", thread)
    talking.wait_reply(thread, "is waiting")
    [message] = queue(talking)

    done = talking.cli("standing", "cancel", message["id"], "--json")
    talking.wait_reply(thread, "was cancelled by cli:")
    talking.cli("standing", "resume", NAME)
    talking.workspace.say("alice", "agents", "but this", thread)
    talking.wait_reply(thread, "You said (2 words): “but this”")

    assert (done.code, done.json["state"]) == (0, "cancelled")
    assert talking.count("not this") == 0


def test_a_stop_of_a_paused_session_tells_the_thread_once(talking: Product) -> None:
    """How many there were, and how to go on."""
    talking.serve().wait_swept()
    thread = talking.root()
    rested(talking)
    talking.cli("standing", "pause", NAME)
    for text in ("one thing", "another thing"):
        talking.workspace.say("alice", "agents", text, thread)
    wait_until(lambda: len(queue(talking)) == 2, "both wait")

    stopped = talking.cli("standing", "stop", NAME, "--json")
    note = talking.wait_reply(thread, "2 messages that waited were cancelled")

    assert stopped.row["outcome"] == "stopped"
    assert f"standing start {NAME}`" in note["text"]
    assert sum("that waited were cancelled" in text for text in talking.bot_replies(thread)) == 1


def test_the_announcement_pauses_stops_and_starts_its_session(talking: Product) -> None:
    """Its buttons follow: each is what can be done now. What all should know stands in the thread."""
    people = [talking.workspace.user_id("alice")]
    talking.configure(channels={"slack": talking.slack_block(authorizedUsers=people, operators=people)})
    talking.serve().wait_swept()
    root = talking.root()
    rested(talking)

    def announced(label: str) -> Json:
        found: list[Json] = []

        def offers() -> bool:
            found[:] = [one for one in talking.workspace.messages("agents") if one["ts"] == root]
            return label in buttons(found[0])

        wait_until(offers, f"the announcement offers {label}")
        return found[0]

    press(talking, "alice", announced("Pause"), "Pause")
    press(talking, "alice", announced("Resume"), "Resume")
    press(talking, "alice", announced("Pause"), "Status")
    whispered(talking, "alice", "1 session, running")
    press(talking, "alice", announced("Stop"), "Stop")
    down = announced("Start")
    press(talking, "alice", down, "Start")
    announced("Pause")

    assert "is stopped by alice" in down["text"]
    replies = talking.bot_replies(root)
    assert [sum(what in text for text in replies) for what in ("was paused", "was resumed", "was stopped")] == [1, 1, 1]
