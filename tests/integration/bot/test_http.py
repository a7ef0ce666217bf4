"""Reading over HTTP: signed requests, the same door, an answer once the reply is on the disk."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from core.model.channel import BoundThread, WebAnswer
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import Door, Served
from tests.support.tmux import PATIENCE

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
FORM = "application/x-www-form-urlencoded"
VARIABLES = {"THE_LOOP_SLACK_SIGNING_SECRET": SECRET, "THE_LOOP_SLACK_APP_TOKEN": ""}


def signature(body: bytes, at: int, secret: str = SECRET) -> dict[str, str]:
    """Return the headers by which Slack signs a body."""
    base = b"v0:" + str(at).encode() + b":" + body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": str(at), "x-slack-signature": f"v0={digest}"}


@pytest.fixture
def http(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, reading over HTTP."""
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as running:
        door.wait_until_up()
        yield running


def send(served: Served, body: bytes, headers: Mapping[str, str] | None = None, path: str = "/events") -> WebAnswer:
    """Send a request as Slack would, signed just now unless headers are given."""
    hook = served.channel.webhook()
    assert hook is not None
    given = signature(body, int(time.time())) if headers is None else headers
    return hook(path, {"content-type": "application/json", **given}, body)


def reply(workspace: WorkspaceThread, root: str, ts: str, text: str = "by HTTP") -> bytes:
    """Return the request that brings a reply of alice."""
    event: dict[str, Any] = {"type": "message", "user": workspace.user_id("alice"), "text": text, "ts": ts}
    event |= {"thread_ts": root, "channel": workspace.channel_id("agents"), "user_team": workspace.team_id}
    payload = {"type": "event_callback", "event_id": "Ev1", "team_id": workspace.team_id, "event": event}
    return json.dumps(payload | {"is_ext_shared_channel": True}).encode()


def edit(workspace: WorkspaceThread, root: str, ts: str, text: str) -> bytes:
    """Return the request that tells of an edit of alice's."""
    first = json.loads(reply(workspace, root, ts))
    now = {**first["event"], "text": text, "edited": {"user": first["event"]["user"], "ts": "1795959999.000300"}}
    event = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": now["channel"]}
    event |= {"message": now, "previous_message": first["event"], "ts": "1795959999.000300"}
    return json.dumps({**first, "event": event}).encode()


def test_a_signed_reply_is_on_the_disk_when_it_is_answered(
    workspace: WorkspaceThread, door: Door, http: Served
) -> None:
    """200 is Slack's acknowledgement: by then core has it."""
    root = http.thread()

    answer = send(http, reply(workspace, root, "1795959999.000100"))

    assert answer.status == 200
    assert [(found.text, found.author_name) for found in door.replies] == [("by HTTP", "alice")]
    assert door.states[-1][1].endswith("Slack calls /channels/slack/events")


def test_what_cannot_be_stored_is_answered_so_that_slack_repeats_it(
    workspace: WorkspaceThread, door: Door, http: Served
) -> None:
    """And the repetition is taken, whatever its number."""
    body = reply(workspace, http.thread(), "1795959999.000100")
    door.broken = True

    refused = send(http, body)
    door.broken = False
    again = send(http, body, {**signature(body, int(time.time())), "x-slack-retry-num": "2"})

    assert (refused.status, again.status) == (503, 200)
    assert len(door.replies) == 1


@pytest.mark.parametrize("number", ["²", "-1", "many", ""])
def test_a_retry_without_a_number_is_taken(workspace: WorkspaceThread, door: Door, http: Served, number: str) -> None:
    """It may be the only copy that arrived."""
    body = reply(workspace, http.thread(), "1795959999.000100")

    answer = send(http, body, {**signature(body, int(time.time())), "x-slack-retry-num": number})

    assert answer.status == 200
    assert len(door.replies) == 1


def test_edits_come_by_the_same_door(workspace: WorkspaceThread, door: Door, http: Served) -> None:
    """A deletion is a request, too."""
    first = json.loads(reply(workspace, http.thread(), "1795959999.000100"))
    event = first["event"]
    gone = {"type": "message", "subtype": "message_deleted", "hidden": True, "channel": event["channel"]}
    gone |= {"deleted_ts": event["ts"], "previous_message": event, "ts": "1795959999.000200"}

    answer = send(http, json.dumps({**first, "event": gone}).encode())

    assert answer.status == 200
    assert [(change.reply.ts, change.deleted) for change in door.changes] == [("1795959999.000100", True)]


def test_the_url_is_verified(http: Served) -> None:
    """Slack's challenge comes back, if Slack sent it."""
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aB", "token": "x"}).encode()

    assert send(http, body) == WebAnswer(200, "text/plain", b"3eZbrw1aB")
    assert send(http, body, {}).status == 401


def test_a_slash_command_is_acknowledged(workspace: WorkspaceThread, http: Served) -> None:
    """It comes as a form."""
    form = {"command": "/the-loop", "text": "help", "user_id": workspace.user_id("alice")}
    body = urlencode({**form, "team_id": workspace.team_id, "response_url": f"{workspace.url}/response/none"}).encode()

    answer = send(http, body, signature(body, int(time.time())) | {"content-type": FORM})

    assert answer.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        lambda body: {},
        lambda body: signature(body, int(time.time()), "another secret"),
        lambda body: signature(body, int(time.time()) - 301),
        lambda body: signature(body, int(time.time()) + 301),
        lambda body: signature(body + b" ", int(time.time())),
        lambda body: signature(body, int(time.time())) | {"x-slack-signature": "v0="},
        lambda body: signature(body, int(time.time())) | {"x-slack-signature": "grün"},
        lambda body: signature(body, int(time.time())) | {"x-slack-request-timestamp": "now"},
        lambda body: {"x-slack-signature": "v0=" + "0" * 64, "x-slack-request-timestamp": str(int(time.time()))},
    ],
)
def test_what_slack_has_not_just_signed_goes_nowhere(
    workspace: WorkspaceThread, door: Door, http: Served, headers: Any
) -> None:
    """A wrong secret, an old or future time, another body, garbage: all are refused before anything is read."""
    body = reply(workspace, http.thread(), "1795959999.000100")

    answer = send(http, body, headers(body))

    assert answer.status == 401
    assert door.replies == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"type": 7}',
        b"{" * 5000,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"a=b&payload=%7B",
        b"payload=" + b"[" * 100_000,
        *(b'{"type": "event_callback", "event": %s}' % event for event in (b"null", b"[]", b"7", b'"message"', b"{}")),
        *(b'{"type": "%s"}' % kind for kind in (b"event_callback", b"block_actions", b"view_submission")),
        b"payload=%7B%22type%22%3A%22block_actions%22%2C%22actions%22%3Anull%7D",
        *(b"payload=" + body for body in (b"[1]", b"7", b"null", b'"x"', b"{}", b'{"type": "event_callback"}')),
        *(b'payload={"type": "event_callback", "event": %s}' % event for event in (b"[1,2]", b"7", b"{}", b'"x"')),
        *(
            b'payload={"type": "%s"}' % kind
            for kind in (b"block_actions", b"view_submission", b"shortcut", b"message_action")
        ),
        b'payload={"type": "block_actions", "actions": [7], "user": [], "team": 7, "channel": "x"}',
        b'payload={"type": "block_actions", "actions": [], "authorizations": 7}',
        *(b'payload={"type": "block_actions", "actions": %s}' % pressed for pressed in (b"[]", b"{}", b"7", b"[null]")),
        b'payload={"type": "interactive_message", "callback_id": "x", "actions": null}',
        b'payload={"type": {}, "command": [], "event": 7, "authorizations": [7]}',
        b"type=event_callback&event=7",
        b"command=%2Fthe-loop&payload=%7B%22type%22%3A%22event_callback%22%7D",
    ],
)
def test_a_signed_body_that_is_nothing_is_no_fault(
    workspace: WorkspaceThread, http: Served, door: Door, body: bytes
) -> None:
    """It is answered, and the next one is taken."""
    form = {"content-type": FORM} if b"=" in body[:10] else {}
    answer = send(http, body, signature(body, int(time.time())) | form)
    after = send(http, reply(workspace, http.thread(), "1795959999.000100"))

    assert answer.status in (200, 400, 401, 404)
    assert after.status == 200
    assert [found.text for found in door.replies] == ["by HTTP"]


def test_what_a_person_did_once_counts_once(workspace: WorkspaceThread, door: Door, http: Served) -> None:
    """Whoever has overheard a signed command cannot have it obeyed again while its signature is fresh."""
    form = {"command": "/the-loop", "text": "say scribe do it", "user_id": workspace.user_id("alice")}
    form |= {"team_id": workspace.team_id, "response_url": f"{workspace.url}/response/none"}
    said = [urlencode({**form, "trigger_id": trigger}).encode() for trigger in ("1.1", "1.1", "1.2")]
    headers = [signature(body, int(time.time())) | {"content-type": FORM} for body in said]

    answers = [send(http, body, signed) for body, signed in zip(said, headers, strict=True)]

    assert [answer.status for answer in answers] == [200, 200, 200]
    door.wait(lambda seen: len(seen.orders) >= 2)
    assert len(door.orders) == 2


def test_a_command_that_an_earlier_service_has_heard_is_not_carried_out_again(
    workspace: WorkspaceThread, door: Door
) -> None:
    """Whoever has overheard it says it to the next service in vain; what is said anew is carried out at once."""
    form = {"command": "/the-loop", "text": "say scribe do it", "user_id": workspace.user_id("alice")}
    form |= {"team_id": workspace.team_id, "response_url": f"{workspace.url}/response/none"}
    old, new = (urlencode({**form, "trigger_id": trigger}).encode() for trigger in ("1.1", "1.2"))
    headers = signature(old, int(time.time())) | {"content-type": FORM}
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as first:
        taken = send(first, old, headers)
        door.wait(lambda seen: len(seen.orders) == 1)
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as second:
        again = send(second, old, headers)
        fresh = send(second, new, signature(new, int(time.time())) | {"content-type": FORM})
        door.wait(lambda seen: len(seen.orders) >= 2)

    assert (taken.status, again.status, fresh.status) == (200, 200, 200)
    assert len(door.orders) == 2


def test_an_event_that_was_taken_is_not_taken_again(workspace: WorkspaceThread, door: Door, http: Served) -> None:
    """The same signature is no repetition of Slack's, which is signed anew: an old edit brings no old text back."""
    root, now = http.thread(), int(time.time())
    older, newer = (edit(workspace, root, "1795959999.000100", text) for text in ("older", "newer"))

    answers = [send(http, body, signature(body, now)) for body in (older, newer, older)]

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [change.reply.text for change in door.changes] == ["older", "newer"]


def test_an_event_that_could_not_be_taken_counts_again(workspace: WorkspaceThread, door: Door, http: Served) -> None:
    """Under whatever signature it is repeated."""
    body = reply(workspace, http.thread(), "1795959999.000100")
    headers = signature(body, int(time.time()))
    door.broken = True

    refused = send(http, body, headers)
    door.broken = False
    again = send(http, body, headers)

    assert (refused.status, again.status) == (503, 200)
    assert len(door.replies) == 1


def test_a_request_right_after_the_start_is_taken(workspace: WorkspaceThread, door: Door) -> None:
    """It waits until the service knows who it is, which Slack refuses to tell at first."""
    with Served(workspace, door, read={"mode": "off"}) as served:
        root = served.thread()
    door.states.clear()
    workspace.fault("auth.test", "http")
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as just_started:
        answer = send(just_started, reply(workspace, root, "1795959999.000100"))

    assert answer.status == 200
    assert [found.text for found in door.replies] == ["by HTTP"]


def test_a_request_that_can_never_be_taken_is_not_waited_for(workspace: WorkspaceThread, door: Door) -> None:
    """A token that was revoked is mended by no waiting: the answer is there at once."""
    workspace.set_revoked()
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as served:
        door.wait_until_down()
        served.ended()
        began = time.monotonic()
        answer = send(served, reply(workspace, "1795959999.000001", "1795959999.000100"))

    assert answer.status == 503
    assert time.monotonic() - began < PATIENCE / 2


def test_another_path_is_told_the_right_one(http: Served) -> None:
    """A URL that was typed wrongly at Slack's page can be mended by what it answers."""
    answer = send(http, b"{}", path="/event")

    assert (answer.status, b"/channels/slack/events" in answer.body) == (404, True)


def test_threads_are_swept_once_the_service_listens(workspace: WorkspaceThread, door: Door) -> None:
    """What Slack gave up on while the service was down is found."""
    with Served(workspace, door, read={"mode": "off"}) as served:
        root = served.thread()
    ts = workspace.say("alice", "agents", "before", root)
    door.bound = [BoundThread("scribe", workspace.channel_id("agents"), root, root, None)]

    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}):
        door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))


def test_a_missing_signing_secret_is_said_and_nothing_is_taken(workspace: WorkspaceThread, door: Door) -> None:
    """Without it nobody could be told from Slack."""
    with Served(workspace, door, tokens={"THE_LOOP_SLACK_SIGNING_SECRET": ""}, read={"mode": "http"}) as served:
        served.ended()
        answer = send(served, b"{}")

    assert "THE_LOOP_SLACK_SIGNING_SECRET is not set" in door.states[-1][1]
    assert answer.status == 503


def test_other_ways_of_reading_take_no_requests(served: Served) -> None:
    """There is no route for them."""
    assert served.channel.webhook() is None
