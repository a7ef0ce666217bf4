"""Who reaches the agent's terminal, and how often: duplicates, strangers, other threads, stopped sessions."""

from collections.abc import Iterator
from typing import Any

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.support.product import NAME, Product, product
from tests.support.tmux import wait_until


@pytest.fixture
def guarded(workspace: WorkspaceThread) -> Iterator[Product]:
    """Give a product whose allow-list names alice, and mallory of another organization."""
    with product(workspace) as running:
        listed = [workspace.user_id("alice"), workspace.user_id("mallory")]
        running.configure(channels={"slack": running.slack_block(authorizedUsers=listed)})
        yield running


def test_an_event_that_comes_again_is_taken_once(talking: Product) -> None:
    """The same envelope, and the same message under another event id, add nothing to the pane."""
    talking.serve().wait_swept()
    thread = talking.root()
    ts = talking.workspace.say("alice", "agents", "only once", thread)
    talking.wait_reply(thread, "only once")

    talking.workspace.redeliver(ts, attempt=1, reason="timeout")
    talking.workspace.redeliver(ts, renamed=True)
    talking.workspace.wait_for(lambda c: len([e for e in c.envelopes("events_api") if e["acknowledged"]]) >= 3)
    talking.workspace.say("alice", "agents", "and then this", thread)
    talking.wait_reply(thread, "and then this")

    assert talking.count("only once") == 1
    assert talking.screen().count("] only once") == 1
    assert len(talking.events("channel.reply_received")) == 2


def test_strangers_are_dropped_with_a_reason_and_without_their_words(guarded: Product) -> None:
    """Another team's member (though listed), an unlisted member and a bot reach nothing; events hold no text."""
    guarded.serve().wait_swept()
    thread, workspace = guarded.root(), guarded.workspace

    workspace.say("mallory", "agents", "from elsewhere", thread)
    workspace.say("bob", "agents", "not on the list", thread)
    workspace.say_as_bot("deploybot", "agents", "a bot spoke", thread)
    workspace.say_as_bot("deploybot", "agents", "a bot in her name", thread, style="user_token", user="alice")
    wait_until(lambda: len(_dropped(guarded)) == 4, "four are dropped")
    workspace.say("alice", "agents", "this may pass", thread)
    guarded.wait_reply(thread, "this may pass")

    dropped = _dropped(guarded)
    actors = {event["actor"].rpartition(":")[2]: event["reason"] for event in dropped}
    assert actors[workspace.user_id("mallory")] == "unauthorized-actor"
    assert actors[workspace.user_id("bob")] == "unauthorized-actor"
    assert sorted(event["reason"] for event in dropped) == ["self-authored"] * 2 + ["unauthorized-actor"] * 2
    assert all("text" not in event for event in dropped)
    told = guarded.paths.events.read_text() + guarded.screen() + "".join(guarded.taken())
    for words in ("from elsewhere", "not on the list", "a bot spoke", "a bot in her name"):
        assert words not in told
    for person in ("bob", "mallory"):
        note = workspace.wait_for_ephemeral(person, lambda shown: "did not reach `scribe`" in shown["text"])
        assert f"{workspace.user_id(person)}`" in note["text"]
        assert note["thread_ts"] == thread


def test_an_empty_allow_list_denies_everybody(talking: Product) -> None:
    """Without a list nobody steers, and the reply is dropped for the author's sake."""
    talking.configure(channels={"slack": talking.slack_block(authorizedUsers=[])})
    talking.serve().wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", "let me in", thread)
    wait_until(lambda: _dropped(talking), "the reply is dropped")

    [dropped] = _dropped(talking)
    assert dropped["reason"] == "unauthorized-actor"
    assert talking.count("let me in") == 0


def test_other_threads_are_not_read(talking: Product) -> None:
    """A reply in a thread that is no session's leaves nothing behind but a counter."""
    talking.serve().wait_swept()
    thread, workspace = talking.root(), talking.workspace
    other = workspace.say("alice", "agents", "lunch?")

    workspace.say("alice", "agents", "the usual place", other)
    workspace.say("alice", "agents", "after lunch", thread)
    talking.wait_reply(thread, "after lunch")

    told = talking.paths.events.read_text() + talking.screen()
    assert _dropped(talking) == []
    assert "the usual place" not in told
    assert "lunch?" not in told


def test_a_note_to_colleagues_does_not_reach_the_agent(talking: Product) -> None:
    """Live and in a sweep, with its file, it leaves no trace and gets no mark; edited into a message it is one."""
    serving = talking.serve().wait_swept()
    thread, workspace = talking.root(), talking.workspace
    announced = workspace.messages("agents")[0]["text"]

    notes = [
        workspace.say("alice", "agents", "(( is he right?", thread, files={"secret-plan.txt": "hush"}),
        workspace.say("alice", "agents", "@bob have a look", thread),
    ]
    workspace.say("alice", "agents", "@the-loop @bob go on", thread)
    talking.wait_reply(thread, "go on")
    workspace.wait_for_ephemeral("alice", lambda shown: "note to colleagues" in shown["text"])
    assert serving.stop() == 0
    notes.append(workspace.say("alice", "agents", "(( while nobody listened", thread))
    talking.serve().wait_swept()
    workspace.edit("agents", notes[0], "now for the agent")
    talking.wait_reply(thread, "now for the agent")

    assert "begins with `((` or with a mention of somebody else" in announced
    assert [talking.count(words) for words in ("have a look", "while nobody", "is he right")] == [0, 0, 0]
    assert talking.count("now for the agent") == 1
    assert [workspace.reactions("agents", ts) for ts in notes[1:]] == [{}, {}]
    kept = [path for path in talking.folder.rglob("*") if path.is_file() and b"have a look" in path.read_bytes()]
    assert kept == []


def test_replies_keep_their_order(talking: Product) -> None:
    """Ten replies in a moment are in the conversation in the order in which they were written."""
    talking.serve().wait_swept()
    thread = talking.root()

    for number in range(10):
        talking.workspace.say("alice", "agents", f"item-{number}", thread)
    wait_until(lambda: all(talking.count(f"item-{number}") for number in range(10)), "all ten are taken")

    whole = "\n".join(talking.taken())
    places = [whole.index(f"item-{number}") for number in range(10)]
    assert places == sorted(places)
    assert [talking.count(f"item-{number}") for number in range(10)] == [1] * 10


def test_a_reply_to_a_stopped_session_gets_one_note_and_starts_nothing(talking: Product) -> None:
    """The thread is told once, with the command that helps; nothing is spawned, however often the event comes."""
    talking.serve().wait_swept()
    thread = talking.root()
    assert talking.cli("standing", "stop", NAME).code == 0

    ts = talking.workspace.say("alice", "agents", "are you there", thread)
    note = talking.wait_reply(thread, "was not delivered")
    talking.workspace.redeliver(ts, attempt=1, reason="timeout")
    talking.workspace.say("alice", "agents", "really not?", thread)
    wait_until(lambda: "2 messages" in "".join(_notes(talking, thread)), "the second reply is counted in it")

    assert f"standing start {NAME}`" in note["text"]
    assert len(_notes(talking, thread)) == 1
    assert talking.panes() == {}
    assert talking.count("are you there") == 0


def _dropped(running: Product) -> list[dict[str, Any]]:
    """Return what was dropped of others; our own posts come back, and are dropped, too."""
    own = f"slack:{running.workspace.bot_user_id}"
    return [event for event in running.events("channel.dropped") if event["actor"] != own]


def _notes(talking: Product, thread: str) -> list[str]:
    return [text for text in talking.bot_replies(thread) if "not delivered" in text]
