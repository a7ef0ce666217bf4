"""Requests that wait for a person, listed and answered over HTTP; and what people see who are not the operator."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from starlette.types import Scope

from core.chat.answering import NOBODY_WAITS
from core.delivery.permission_requests import Requests
from core.http.principal import Principal
from core.lifecycle.start import start_standing
from core.model.asking import Role
from core.model.session import Binding, ChatBinding
from core.session.sessions import Author
from core.session.system import System
from tests.integration.http.test_api import described
from tests.support.hook import Hook, key_of
from tests.support.talking import record_of, talking
from tests.support.tmux import private_tmux, wait_until
from tests.support.web import Client, Web, serving
from tests.support.world import ACTOR, World, declaring, definition, events

ROLES = {
    "U1": frozenset({Role.MEMBER, Role.APPROVER}),
    "U2": frozenset({Role.MEMBER}),
    "U3": frozenset({Role.MEMBER, Role.APPROVER, Role.OPERATOR}),
    "U4": frozenset[Role](),
}


class Named:
    """Knows people by a header, as a page's cookie would."""

    def principal(self, scope: Scope) -> Principal | None:
        """Return the person whom the header names."""
        for key, value in scope["headers"]:
            if key == b"x-person":
                member = value.decode()
                return Principal(f"slack:{member}", member.lower(), Author("slack", member), ROLES[member])
        return None


@dataclass
class Person:
    """Asks as somebody of the chat."""

    client: Client
    member: str

    def get(self, path: str) -> tuple[int, Any]:
        """Ask."""
        answered = self.client.send("GET", f"/api/v1{path}", None, {"Authorization": "", "X-Person": self.member})
        return answered.status, answered.json

    def post(self, path: str, body: Any) -> tuple[int, str, Any]:
        """Send."""
        answered = self.client.post(path, body, Authorization="", X_Person=self.member)
        return answered.status, answered.code, answered.json


@pytest.fixture(scope="module")
def bound() -> Iterator[System]:
    """Give a live session with a thread, which U1 to U3 may steer, and one that only U9 may."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder)
        world.cwd.mkdir()
        system = talking(world)
        channels = {"slack": system.settings.channel("slack")._replace(enabled=True)}
        system = replace(system, settings=system.settings._replace(channels=channels))
        theirs = replace(definition("theirs"), chat={"slack": ChatBinding(False, "", ("U9",))})
        system = declaring(system, definition("scribe", slack=True), theirs)
        assert start_standing(system, "scribe", ACTOR).ok
        uid, _ = record_of(system)
        system.bindings.bind(Binding("slack", "T1", "C1", "1700.000001", uid, "scribe", system.clock.now()))
        wait_until(lambda: _turn_is_over(system, uid), "the first turn is over, and no report of it comes later")
        yield system
        system.close()


def _turn_is_over(system: System, uid: str) -> bool:
    system.ingest(uid)
    activity = system.activities.get(uid)
    return activity is not None and activity.turn_ended_at is not None


@pytest.fixture(scope="module")
def web(bound: System) -> Iterator[Web]:
    """Give its API, which also knows people of the chat."""
    with serving(bound, Requests(bound), lambda: [Named()]) as running:
        yield running


_NUMBERS = count()


class Hooks:
    """Hooks that ask one after another, each under a key of its own."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._asked: list[Hook] = []

    def ask(self, **changes: Any) -> tuple[Hook, str]:
        """Ask, and return the hook and its request's id once somebody waits."""
        system = self._web.system
        key = key_of(system, f"k-{next(_NUMBERS)}")
        hook = Hook(self._web.requests, record_of(system)[1], key, **changes)
        self._asked.append(hook)
        hook.wait_until_shown()
        request = system.requests.of_key(record_of(system)[1], key)
        assert request is not None
        return hook, request.id

    def end(self) -> None:
        """End those that still wait."""
        for hook in self._asked:
            if hook.ours.fileno() >= 0:
                hook.hang_up()


@pytest.fixture
def hooks(web: Web) -> Iterator[Hooks]:
    """Give hooks that are ended with the test."""
    made = Hooks(web)
    yield made
    made.end()


QUESTIONS = {
    "tool": "AskUserQuestion",
    "input": {
        "questions": [
            {"question": "Which?", "options": [{"label": "tea"}, {"label": "coffee", "description": "black"}]},
            {"question": "Why?\u202e", "options": []},
        ]
    },
}


def test_a_permission_is_given_for_the_like_where_a_rule_says_what_that_is(web: Web, hooks: Hooks) -> None:
    """The rule is listed, and the answer remembers it; without a rule there is nothing to remember."""
    rules = [{"toolName": "Bash", "ruleContent": "curl:*"}]
    hook, ident = hooks.ask(input={"command": "curl x"}, rules=rules)
    plain, other = hooks.ask(input={"command": "date"})
    [listed] = [one for one in web.client.get("/requests?name=scribe").json["requests"] if one["id"] == ident]

    refused = web.client.post("/requests/answer", {"id": other, "allow": True, "remember": True})
    denied = web.client.post("/requests/answer", {"id": ident, "allow": False, "remember": True})
    given = web.client.post("/requests/answer", {"id": ident, "allow": True, "remember": True})
    web.client.post("/requests/answer", {"id": other, "allow": True})

    described("Request", given.json)
    assert (listed["rules"], listed["remembered"]) == (["Bash(curl:*)"], False)
    assert (given.json["remembered"], given.json["answers"]) == (True, [])
    assert [refused.status, denied.status] == [400, 400]
    assert hook.lines()[1] == {"answer": {"allowed": True, "remember": True}}
    assert plain.lines()[1] == {"answer": {"allowed": True}}


def test_a_permission_is_listed_and_given(web: Web, hooks: Hooks) -> None:
    """What waits is shown without secrets; the first answer is the hook's, the second is told who was first."""
    hook, ident = hooks.ask(input={"command": "curl -H 'token=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB'"})
    listed = web.client.get("/requests?name=scribe").json
    elsewhere = web.client.get("/requests?name=theirs").json

    first = web.client.post("/requests/answer", {"id": ident, "allow": True})
    second = web.client.post("/requests/answer", {"id": ident, "allow": False})

    described("Requests", listed)
    described("Request", first.json)
    [shown] = listed["requests"]
    assert (shown["id"], shown["kind"], shown["tool"], shown["waits"]) == (ident, "permission", "Bash", True)
    assert "ghp_" not in shown["detail"]
    assert "secret" in shown["unseen"][0]
    assert elsewhere["requests"] == []
    assert (first.json["state"], first.json["allowed"]) == ("answered", True)
    assert (second.status, second.code) == (409, "not_answered")
    assert "has already allowed it" in second.json["error"]["message"]
    assert hook.lines()[1] == {"answer": {"allowed": True}}
    assert events(web.system, "standing.answered")[-1]["actor"].startswith("http:")


def test_a_denial_says_by_whom(web: Web, hooks: Hooks) -> None:
    """The hook tells the agent."""
    hook, ident = hooks.ask()

    denied = web.client.post("/requests/answer", {"id": ident, "allow": False}).json

    assert (denied["state"], denied["allowed"]) == ("answered", False)
    assert hook.lines()[1]["answer"]["allowed"] is False


def test_questions_are_answered_one_by_one(web: Web, hooks: Hooks) -> None:
    """By an option's place, or in one's own words; what cannot be seen is shown as an escape."""
    hook, ident = hooks.ask(**QUESTIONS)
    [shown] = [one for one in web.client.get("/requests").json["requests"] if one["id"] == ident]
    post = web.client.post

    ahead = post("/requests/answer", {"id": ident, "question": 1, "answer": "thirst"})
    first = post("/requests/answer", {"id": ident, "question": 0, "option": 1})
    late = post("/requests/answer", {"id": ident, "question": 0, "option": 0})
    wrong = post("/requests/answer", {"id": ident, "question": 1, "option": 0})
    neither = post("/requests/answer", {"id": ident})
    second = post("/requests/answer", {"id": ident, "answer": "thirst\u0007"})

    assert [question["question"] for question in shown["questions"]] == ["Which?", "Why?\\u202e"]
    assert [option["label"] for option in shown["questions"][0]["options"]] == ["tea", "coffee"]
    assert (ahead.status, wrong.status, neither.status) == (400, 400, 400)
    assert (first.json["state"], first.json["answers"]) == ("open", ["coffee"])
    assert (late.status, late.code) == (409, "not_answered")
    assert (second.json["state"], second.json["answers"]) == ("answered", ["coffee", "thirst"])
    assert list(hook.lines()[1]["answer"]["answers"].values()) == ["coffee", "thirst"]


def test_a_request_that_nobody_waits_for_is_not_answered(web: Web, hooks: Hooks) -> None:
    """Nobody would get the answer: it is refused, and not kept as given."""
    hook, ident = hooks.ask()
    hook.hang_up()
    wait_until(lambda: not web.client.get("/requests").json["requests"], "it is over")

    gone = web.client.post("/requests/answer", {"id": ident, "allow": True})

    assert (gone.status, gone.code) == (409, "not_answered")
    assert "answered at the terminal" in gone.json["error"]["message"]
    assert NOBODY_WAITS not in gone.json["error"]["message"]


def test_people_see_the_sessions_that_they_may_steer(web: Web) -> None:
    """Any other is to them as one that does not exist; so are events, and what waits."""
    web.system.events.emit("standing.said", name="theirs")
    web.system.events.emit("standing.said", name="scribe")
    web.system.events.emit("service.started")
    member, nobody = Person(web.client, "U2"), Person(web.client, "U4")

    assert [row["name"] for row in member.get("/standing-sessions")[1]["sessions"]] == ["scribe"]
    assert nobody.get("/standing-sessions")[1]["sessions"] == []
    assert member.get("/standing-sessions/one?name=scribe")[0] == 200
    assert member.get("/standing-sessions/one?name=theirs")[0] == 404
    assert nobody.get("/standing-sessions/screen?name=scribe")[0] == 404
    assert {event.get("name") for event in member.get("/events")[1]["events"]} == {"scribe"}
    assert member.get("/status")[0] == 403
    assert member.get("/loops?name=scribe")[0] == 200
    assert member.get("/loops")[0] == 400


def test_people_do_what_their_role_gives(web: Web, hooks: Hooks) -> None:
    """As in the chat: members speak and pause, approvers answer, operators stop; nobody creates or deletes."""
    _, ident = hooks.ask()
    member, approver, operator = (Person(web.client, who) for who in ("U2", "U1", "U3"))
    session = {"name": "scribe"}

    said = member.post("/standing-sessions/say", {**session, "text": "hello from a member", "wait": 0})
    assert said[0] == 200
    assert events(web.system, "standing.said")[-1]["actor"] == "slack:U2"
    assert web.client.post("/standing-sessions/cancel", {"id": said[2]["messageId"]}).status == 200
    for body in ({"actor": "cli:ann"}, {"raw": True}):
        assert member.post("/standing-sessions/say", {**session, "text": "x", **body})[:2] == (403, "not_permitted")
    assert member.post("/standing-sessions/pause", session)[0] == 200
    assert member.post("/standing-sessions/control", {**session, "verb": "resume"})[0] == 200
    assert member.post("/standing-sessions/stop", session)[:2] == (403, "not_permitted")
    assert member.post("/standing-sessions/control", {**session, "verb": "stop"})[:2] == (403, "not_permitted")
    assert member.post("/standing-sessions/stop", {})[:2] == (400, "invalid_value")
    assert member.post("/requests/answer", {"id": ident, "allow": True})[:2] == (403, "not_permitted")
    for path in ("create", "delete", "announce"):
        assert operator.post(f"/standing-sessions/{path}", session)[:2] == (403, "not_permitted")
    assert operator.post("/loops/create", {**session, "instruction": "x"})[:2] == (403, "not_permitted")
    assert operator.post("/standing-sessions/stop", {"name": "theirs"})[:2] == (404, "unknown_session")
    assert approver.post("/requests/answer", {"id": ident, "allow": False})[0] == 200
    assert events(web.system, "standing.answered")[-1]["actor"] == "slack:U1"
    assert web.system.requests.get(ident).by == "u1"  # type: ignore[union-attr]
    assert [event["detail"] for event in events(web.system, "channel.dropped")][-1] == "stop"


def test_what_people_see_has_no_secrets(web: Web) -> None:
    """The operator sees a terminal as it is, everybody else without what looks like a secret."""
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    web.client.post("/standing-sessions/say", {"name": "scribe", "text": f"say {secret}"})
    screen = "/standing-sessions/screen?name=scribe&lines=500"
    wait_until(lambda: secret in web.client.get(screen).json["screen"], "the terminal shows it")

    assert secret not in Person(web.client, "U2").get(screen)[1]["screen"]
