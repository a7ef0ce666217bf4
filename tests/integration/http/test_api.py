"""The API below /api/v1 over a live session: each verb, each error, and what is sent twice."""

from collections.abc import Iterator

import jsonschema
import pytest

from core.http.openapi import document
from core.http.rest import operations_of
from core.lifecycle.start import start_standing
from tests.support.talking import talking
from tests.support.tmux import private_tmux, wait_until
from tests.support.web import Answered, Client, Web, serving
from tests.support.world import ACTOR, World, events

NAME = "scribe"
_DOCUMENT = document(operations_of())


def described(name: str, value: object) -> None:
    """Check a value against what the description calls so, and that the description names all its keys."""
    schemas = {**_DOCUMENT["components"]["schemas"]}
    for schema in (schemas[name], schemas["Session"], schemas["Loop"]):
        jsonschema.Draft202012Validator.check_schema(schema)
    whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    jsonschema.Draft202012Validator(whole).validate(value)
    if isinstance(value, dict):
        assert set(value) <= set(schemas[name]["properties"])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Give the API of a the-loop with two declared sessions, of which `scribe` runs, to all tests of the module."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder, declared=(NAME, "other"))
        world.cwd.mkdir()
        system = talking(world)
        answer = start_standing(system, NAME, ACTOR)
        assert answer.ok, answer.to_json()
        with serving(system) as running:
            yield running
        system.close()


def one(web: Web, name: str = NAME) -> dict[str, object]:
    """Return a session's row."""
    return dict(web.client.get(f"/standing-sessions/one?name={name}").json)


def row(answered: Answered) -> dict[str, object]:
    """Return the only row of a verb's answer, which must be as it is described."""
    assert answered.status == 200, answered.body
    described("Answer", answered.json)
    [found] = answered.json["sessions"]
    return dict(found)


def test_sessions_are_listed_and_shown(web: Web) -> None:
    """As `standing list --json` and `standing get --json` show them."""
    listed = web.client.get("/standing-sessions").json
    shown = one(web)

    described("Sessions", listed)
    described("Session", shown)
    assert [each["name"] for each in listed["sessions"]] == ["other", NAME]
    assert (shown["live"], shown["running"]) == ("live", True)


def test_say_waits_for_the_turns_word_and_names_whoever_speaks(web: Web) -> None:
    """The message is one of the caller's; another name can be given."""
    said = web.client.post("/standing-sessions/say", {"name": NAME, "text": "hello", "actor": "bob"}).json
    screen = web.client.get(f"/standing-sessions/screen?name={NAME}&lines=200").json

    described("Said", said)
    described("Screen", screen)
    assert (said["delivered"], said["state"]) == (True, "confirmed")
    assert events(web.system, "standing.said")[-1]["actor"] == "http:bob"
    assert "[bob via http #" in screen["screen"]


def test_what_waits_is_shown_cancelled_and_confirmed(web: Web) -> None:
    """While the session is paused; its texts are shown if they are asked for."""
    assert row(web.client.post("/standing-sessions/pause", {"name": NAME, "reason": "lunch"}))["outcome"] == "paused"
    said = web.client.post("/standing-sessions/say", {"name": NAME, "text": "later", "wait": 0}).json
    queue = web.client.get(f"/standing-sessions/queue?name={NAME}").json
    texts = web.client.get(f"/standing-sessions/queue?name={NAME}&text=true").json
    confirmed = web.client.post("/standing-sessions/confirm", {"id": said["messageId"]})
    cancelled = web.client.post("/standing-sessions/cancel", {"id": said["messageId"]}).json
    resumed = row(web.client.post("/standing-sessions/resume", {"name": NAME}))

    described("Queue", queue)
    described("Queue", texts)
    described("Message", cancelled)
    assert [(each["id"], each["length"]) for each in queue["messages"]] == [(said["messageId"], 5)]
    assert "text" not in queue["messages"][0]
    assert texts["messages"][0]["text"] == "later"
    assert (confirmed.status, confirmed.code) == (409, "refused")
    assert cancelled["state"] == "cancelled"
    assert resumed["outcome"] == "unpaused"


def test_a_session_is_made_stopped_started_and_deleted(web: Web) -> None:
    """With what the command line takes, in camelCase; by its own address and by that of several verbs."""
    made = {"name": "two", "prompt": "Look.", "harnessArgs": [], "slack": {"enabled": False}, "start": False}
    client = web.client

    created = row(client.post("/standing-sessions/create", made))
    started = row(client.post("/standing-sessions/control", {"name": "two", "verb": "start"}))
    logs = client.get("/standing-sessions/logs?name=two&lines=5").json
    stopped = row(client.post("/standing-sessions/stop", {"name": "two", "reason": "enough"}))
    ended = client.get("/standing-sessions/logs?name=two&lines=5").json
    again = client.post("/standing-sessions/create", made)
    deleted = row(client.post("/standing-sessions/delete", {"name": "two"}))

    assert (created["outcome"], created["autoStart"], created["running"]) == ("not-running", True, False)
    assert started["outcome"] == "started"
    described("Logs", logs)
    described("Logs", ended)
    assert logs["live"] == "live"
    assert (stopped["outcome"], stopped["hold"]["reason"]) == ("stopped", "enough")  # type: ignore[index]
    assert ended["ended"] is not None
    assert (again.status, again.code) == (409, "name_taken")
    assert deleted["outcome"] == "deleted"


def test_loops_are_made_looked_at_and_ended(web: Web) -> None:
    """Each answer has the loop, and those of its session."""
    asked = {"name": NAME, "instruction": "look around", "interval": "5m", "keepAlive": True, "maxRuns": 3}
    made = web.client.post("/loops/create", asked).json
    listed = web.client.get(f"/loops?name={NAME}").json
    ended = web.client.post("/loops/stop", {"id": made["loop"]["id"], "reason": "enough"}).json

    for answer in (made, listed, ended):
        described("Loops", answer)
    described("Loop", made["loop"])
    assert (made["loop"]["keepAlive"], made["loop"]["maxRuns"], made["loop"]["createdBy"][:5]) == (True, 3, "http:")
    assert [loop["id"] for loop in listed["loops"]] == [made["loop"]["id"]]
    assert ended["loop"]["status"] == "stopped"


def test_events_of_one_session_or_of_all_are_listed(web: Web) -> None:
    """The latest, oldest first, each with the position behind it."""
    all_of_them = web.client.get("/events").json
    last = web.client.get(f"/events?name={NAME}&last=2").json
    none = web.client.get("/events?name=nobody").json

    described("Events", all_of_them)
    assert all_of_them["events"][-1]["id"] == all_of_them["end"]
    assert [event["name"] for event in last["events"]] == [NAME, NAME]
    assert none["events"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/standing-sessions/one", None, 400, "invalid_value"),
        ("GET", "/standing-sessions/one?name=nope", None, 404, "unknown_session"),
        ("GET", "/standing-sessions/one?name=No!", None, 400, "invalid_value"),
        ("GET", "/standing-sessions/screen?name=other", None, 409, "not_running"),
        ("GET", "/standing-sessions/screen?name=scribe&lines=0", None, 400, "invalid_value"),
        ("GET", "/standing-sessions/nothing", None, 404, "not_found"),
        ("POST", "/standing-sessions", b"{}", 405, "method_not_allowed"),
        ("POST", "/standing-sessions/say", b'{"name": "other", "text": "hi"}', 409, "not_running"),
        ("POST", "/standing-sessions/say", b'{"name": "scribe", "text": ""}', 400, "invalid_value"),
        ("POST", "/standing-sessions/say", b'{"name": "scribe", "text": "x", "wait": 301}', 400, "invalid_value"),
        ("POST", "/standing-sessions/say", b'{"name": "scribe"', 400, "invalid_value"),
        ("POST", "/standing-sessions/say", b"[]", 400, "invalid_value"),
        ("POST", "/standing-sessions/say", b"[" * 100_000, 400, "invalid_value"),
        ("POST", "/standing-sessions/say", b"", 400, "invalid_value"),
        ("POST", "/standing-sessions/delete", b'{"name": "scribe"}', 409, "declared_session"),
        ("POST", "/standing-sessions/create", b'{"name": "x", "slack": 1}', 400, "invalid_value"),
        ("POST", "/standing-sessions/create", b'{"name": "x", "slack": {"enable": true}}', 400, "invalid_value"),
        ("POST", "/standing-sessions/create", b'{"name": "x", "cwd": "here"}', 400, "invalid_value"),
        ("POST", "/standing-sessions/control", b'{"name": "scribe", "verb": "delete"}', 400, "invalid_value"),
        ("POST", "/standing-sessions/control", b'{"name": "a", "verb": "resume", "hard": true}', 400, "invalid_value"),
        ("POST", "/standing-sessions/cancel", b'{"id": "m-none"}', 404, "unknown_message"),
        ("POST", "/loops/pause", b'{"id": "loop_none"}', 404, "unknown_loop"),
        ("POST", "/requests/answer", b'{"id": "q-none", "allow": true}', 404, "unknown_request"),
        ("GET", "/events?last=1001", None, 400, "invalid_value"),
    ],
)  # fmt: skip
def test_every_error_has_its_code_and_one_shape(
    web: Web, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    """And a remedy."""
    kind = {"Content-Type": "application/json"} if body is not None else {}

    answered = web.client.send(method, f"/api/v1{path}", body, kind)

    assert (answered.status, answered.code) == (status, code), answered.body
    described("Error", answered.json)
    assert answered.json["error"]["remedy"]


def test_a_body_that_is_not_json_or_too_large_is_refused(web: Web) -> None:
    """By its media type, and by its length before any of it is read."""
    form = web.client.send("POST", "/api/v1/standing-sessions/say", b"name=scribe", {"Content-Type": "text/plain"})
    large = web.client.post("/standing-sessions/say", b'{"text": "' + b"x" * 1024 * 1024 + b'"}')
    announced = web.client.send("POST", "/api/v1/standing-sessions/say", b"", {"Content-Length": str(10**9)})

    assert (form.status, form.code) == (415, "not_json")
    assert (large.status, large.code) == (413, "too_large")
    assert (announced.status, announced.code) == (413, "too_large")


def test_a_message_that_is_sent_twice_under_a_key_is_said_once(web: Web) -> None:
    """The second gets the first's answer; another message under the key is refused."""
    body, key = {"name": NAME, "text": "only once, please"}, "8e03978e-40d5-43dd-bc93-6894a57f9324"

    first = web.client.post("/standing-sessions/say", body, Idempotency_Key=key)
    second = web.client.post("/standing-sessions/say", body, Idempotency_Key=key)
    other = web.client.post("/standing-sessions/say", {**body, "text": "else"}, Idempotency_Key=key)
    wrong = web.client.post("/standing-sessions/say", body, Idempotency_Key="")

    assert first.json["delivered"] is True
    assert second.body == first.body
    assert second.headers["idempotency-replayed"] == "true"
    assert (other.status, other.code) == (422, "key_reused")
    assert (wrong.status, wrong.code) == (400, "invalid_value")
    screen = web.client.get(f"/standing-sessions/screen?name={NAME}&history=true").json["screen"]
    assert screen.count("] only once, please") == 1


def test_nobody_asks_without_the_token_and_no_answer_is_for_another_origin(web: Web) -> None:
    """There is no CORS, and nothing is kept by whoever stands between."""
    refused = Client(web.client.path, "wrong").get("/standing-sessions")
    ours = web.client.get("/standing-sessions")

    assert (refused.status, refused.code) == (401, "unauthorized")
    assert not [name for name in ours.headers if name.startswith("access-control")]
    assert ours.headers["cache-control"] == "no-store"


def test_heads_and_options_are_not_answered(web: Web) -> None:
    """A preflight of a page elsewhere gets nothing that it could go on with."""
    for method in ("HEAD", "OPTIONS"):
        answered = web.client.send(method, "/api/v1/standing-sessions", None, {})
        assert answered.status == 405
        assert "access-control-allow-origin" not in answered.headers
    wait_until(lambda: web.client.get("/standing-sessions").status == 200, "it still answers")
