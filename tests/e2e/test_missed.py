"""What was said while the service was down, by every way of reading, on the whole product."""

import hashlib
import hmac
import http.client
import json
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.product import NAME, Product
from tests.support.tmux import wait_until

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


def test_replies_of_a_night_are_caught_up_once_and_in_order(talking: Product) -> None:
    """Slack has long given up; the next service reads the thread, types each once, and says so in one line."""
    workspace = talking.workspace
    service = talking.serve().wait_swept()
    thread = talking.root()
    service.stop()
    workspace.lose_events(1000)
    for words in ("first of the night", "second of the night", "third of the night"):
        workspace.say("alice", "agents", words, thread)
    workspace.say("bob", "agents", "not on the list", thread)
    workspace.lose_events(0)

    talking.serve().wait_swept()
    talking.wait_reply(thread, "third of the night")
    talking.wait_reply(thread, "3 replies were read late")

    taken = [prompt for prompt in talking.taken() if "of the night" in prompt]
    assert [prompt.split("] ")[1].split()[0] for prompt in taken] == ["first", "second", "third"]
    assert talking.count("not on the list") == 0
    [event] = talking.events("channel.backfilled")
    assert event["detail"].startswith("3 replies were read late (the oldest is ")


def test_an_old_reply_is_typed_once_somebody_confirmed_it(talking: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds nobody up, its thread is told what to do, and one command lets it in."""
    with monkeypatch.context() as earlier:
        earlier.setattr("embedded.workspace.model.now", lambda: time.time() - 3 * 3600)
        service = talking.serve().wait_swept()
        thread, workspace = talking.root(), talking.workspace
        service.stop()
        workspace.lose_events(1000)
        workspace.say("alice", "agents", "from long ago", thread)
        workspace.lose_events(0)

    talking.serve().wait_swept()
    talking.wait_reply(thread, "needs confirmation")
    workspace.say("alice", "agents", "from just now", thread)
    talking.wait_reply(thread, "from just now")
    [waiting] = talking.cli("standing", "queue", NAME, "--json").json["messages"]
    before = talking.count("from long ago")
    confirmed = talking.cli("standing", "confirm", waiting["id"])
    talking.wait_reply(thread, "from long ago")

    assert before == 0
    assert confirmed.code == 0, confirmed.err
    assert talking.count("from long ago") == 1


def test_a_file_reaches_the_agent_by_its_path(talking: Product) -> None:
    """It lies in the session's folder, for nobody else to read, and the message says where."""
    talking.serve().wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", "read this", thread, files={"my notes;.txt": "the content"})
    talking.wait_reply(thread, "read this")

    [prompt] = [taken for taken in talking.taken() if "read this" in taken]
    path = Path(prompt.split("(file: ")[1].split(" , ")[0])
    assert path.name == "1-my_notes_.txt"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("the content", 0o600)
    assert path.is_relative_to(talking.paths.local / "sessions")


def test_slack_may_call_instead(talking: Product) -> None:
    """By HTTP, without our token and under whatever name Slack knows the host by; unsigned nobody passes."""
    workspace = talking.workspace
    talking.configure(
        channels={"slack": talking.slack_block(read={"mode": "http"})}, service={"host": "127.0.0.1", "port": 0}
    )
    talking.serve(env={"THE_LOOP_SLACK_SIGNING_SECRET": SECRET}).wait_swept()
    thread = talking.root()
    ts = f"{int(time.time())}.000100"
    event = {"type": "message", "user": workspace.user_id("alice"), "text": "by HTTP", "ts": ts, "thread_ts": thread}
    event |= {"channel": workspace.channel_id("agents"), "team": workspace.team_id, "user_team": workspace.team_id}
    body = json.dumps({"type": "event_callback", "event": event, "is_ext_shared_channel": True}).encode()

    unsigned = _post(talking, body, {})
    signed = _until_taken(talking, body)
    talking.wait_reply(thread, "by HTTP")

    assert (unsigned, signed) == (401, 200)
    assert talking.count("by HTTP") == 1
    assert workspace.sockets_opened() == 0


def _until_taken(running: Product, body: bytes) -> int:
    """Send it, and again as Slack does, signed anew, while it cannot be taken; return the last answer."""
    answers: list[int] = []

    def taken() -> bool:
        answers.append(_post(running, body, _signature(body)))
        return answers[-1] != 503

    wait_until(taken, "the request is taken", every=0.2)
    return answers[-1]


def _signature(body: bytes) -> dict[str, str]:
    at = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={digest}"}


def _post(running: Product, body: bytes, headers: dict[str, str]) -> int:
    parts = urlsplit(running.http_url())
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        own = {"Host": "loop.example.org", "Content-Type": "application/json", "Origin": "https://slack.com"}
        connection.request("POST", "/channels/slack/events", body, {**own, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_was_edited_or_deleted_meanwhile_goes_in_as_it_is_now(talking: Product) -> None:
    """Messages wait in a paused session while the service is down: one is edited, one deleted, one left alone."""
    workspace = talking.workspace
    service = talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    talking.cli("standing", "pause", NAME)
    said = [workspace.say("alice", "agents", f"{word} words", thread) for word in ("kept", "old", "gone")]
    wait_until(lambda: len(talking.cli("standing", "queue", NAME, "--json").json["messages"]) == 3, "all three wait")
    service.stop()
    workspace.lose_events(1000)
    workspace.edit("agents", said[1], "new words")
    workspace.delete("agents", said[2])
    workspace.lose_events(0)

    talking.serve().wait_swept()
    wait_until(lambda: len(talking.cli("standing", "queue", NAME, "--json").json["messages"]) == 2, "one is gone")
    talking.cli("standing", "resume", NAME)
    talking.wait_reply(thread, "new words")

    taken = [prompt for prompt in talking.taken() if " via slack #" in prompt]
    assert [prompt.split("] ")[1].split()[0] for prompt in taken] == ["kept", "new"]
    assert {(event["reason"], event["detail"]) for event in talking.events("channel.edited")} == {
        ("edited", "replaced"),
        ("deleted", "cancelled"),
    }
