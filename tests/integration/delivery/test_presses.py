"""Every press is checked, whatever a chat shows: who, where, on which post, for which run, and whether it counts."""

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.conversation.pressing import Presses
from core.domain.activity import ActivityState
from core.domain.asking import Request
from core.domain.buttons import Role
from core.observing.asking import Requests
from core.ports import Binding, IncomingPress, PostState
from core.process.controlsocket import Peer
from core.standing.starting import start_standing
from core.system import System
from tests.support.talking import record_of, talking
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, recorded

THREAD, TS = "1700.000001", "1700.000009"
ROLES = {"U1": {Role.MEMBER, Role.APPROVER}, "U2": {Role.MEMBER}, "T9:U9": {Role.MEMBER, Role.APPROVER}}


def holds(author: str, role: Role) -> bool:
    """Tell who has which role: U1 approves, U2 only steers."""
    return role in ROLES.get(author, set())


class Hook:
    """A client that waits for an answer, as a hook does."""

    def __init__(self, requests: Requests, instance: str, key: str) -> None:
        self.ours, theirs = socket.socketpair()
        line = {"op": "request", "instance": instance, "key": key, "tool": "Bash", "input": {"command": "date"}}
        self._thread = threading.Thread(target=self._talk, args=(requests, line, theirs))
        self._thread.start()

    @staticmethod
    def _talk(requests: Requests, line: dict[str, Any], theirs: socket.socket) -> None:
        with theirs:
            requests.talk(line, Peer(theirs))

    def lines(self) -> list[dict[str, Any]]:
        """Return all that it was told, once the service has hung up."""
        self._thread.join(20)
        with self.ours, self.ours.makefile("rb") as stream:
            return [json.loads(line) for line in stream]

    def wait_until_shown(self) -> None:
        """Wait for the service's first word: from then on the hook is one of those that wait."""
        self.ours.settimeout(20)
        self.ours.recv(1, socket.MSG_PEEK)
        self.ours.settimeout(None)

    def hang_up(self) -> None:
        """End as a hook does that its harness has ended."""
        self.ours.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self.ours.close()


@pytest.fixture
def bound(world: World) -> System:
    """Give a live session with a thread, in a configuration that has the channel."""
    system = talking(world)
    settings = system.settings
    settings = settings._replace(channels={"slack": settings.channel("slack")._replace(enabled=True)})
    system = replace(system, settings=settings)
    assert start_standing(system, "scribe", ACTOR).ok
    uid, _ = record_of(system)
    system.bindings.bind(Binding("slack", "T1", "C1", THREAD, uid, "scribe", system.clock.now()))
    wait_until(lambda: _is_idle(system, uid), "the first turn is over, and no report of it comes later")
    return system


def _is_idle(system: System, uid: str) -> bool:
    system.ingest(uid)
    activity = system.activities.get(uid)
    return activity is not None and activity.state is ActivityState.IDLE


@pytest.fixture
def requests(bound: System) -> Requests:
    """Give what hooks ask."""
    return Requests(bound)


@pytest.fixture
def presses(bound: System, requests: Requests) -> Presses:
    """Give the buttons."""
    return Presses(bound, holds, requests)


@pytest.fixture
def hook(bound: System, requests: Requests) -> Iterator[Hook]:
    """Give a hook that waits, its request posted."""
    hook = Hook(requests, record_of(bound)[1], "k-1")
    wait_until(lambda: bound.requests.open(), "the request is open")
    sent(bound, bound.requests.open()[0])
    yield hook
    hook.ours.close()


def sent(system: System, request: Request) -> None:
    """Note that the request's post stands in the thread."""
    row = system.outbox.get(f"p-{request.id}")
    assert row is not None
    system.outbox.advance(system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=TS)


def pressed(system: System, **changes: Any) -> IncomingPress:
    """Return a press of the latest request's Allow by U1."""
    target = system.requests.of_key(record_of(system)[1], "k-1")
    made = IncomingPress(
        "slack", "T1", "C1", THREAD, TS, "U1", "ann", "T1", False, "allow", target.id if target else ""
    )
    return replace(made, **changes)


def test_the_first_press_is_the_hooks_answer(bound: System, presses: Presses, hook: Hook) -> None:
    """The second is told who was first, and the post is edited once the hook has its answer."""
    first, second = presses.press(pressed(bound)), presses.press(pressed(bound, action="deny"))
    lines = hook.lines()

    assert first.text == ""
    assert second.text == "ann has allowed it already."
    assert lines[0]["wait"] > 500
    assert lines[1] == {"answer": {"allowed": True}}
    edit = bound.outbox.get(f"p-{pressed(bound).target}-0-answered")
    assert edit is not None
    assert "**Allowed** by ann" in edit.post.text
    assert edit.post.buttons == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"author": "U2"}, "approvers"),
        ({"author": "U7"}, "approvers"),
        ({"author": "U9"}, "approvers"),
        ({"author_team": "T9"}, "not on the list"),
        ({"author": "T9:U1", "author_team": "T9"}, "approvers"),
        ({"author_team": ""}, "not on the list"),
        ({"is_bot": True}, "not on the list"),
        ({"thread": "1700.000002"}, "does not belong"),
        ({"channel": "C2"}, "does not belong"),
        ({"team": "T2"}, "not on the list"),
        ({"ts": "1700.000010"}, "not known any more"),
        ({"action": "option-0-0"}, "not known any more"),
        ({"target": "q-other"}, "not known any more"),
    ],
)
def test_a_press_that_is_not_allowed_decides_nothing(
    bound: System, presses: Presses, hook: Hook, change: dict[str, Any], told: str
) -> None:
    """It is told why to whoever pressed, and leaves a line with ids."""
    refused = presses.press(pressed(bound, **change))
    still_open = bound.requests.open()
    hook.hang_up()

    assert told in refused.text
    assert len(still_open) == 1


def test_an_outsider_who_is_named_with_their_team_may(bound: System, presses: Presses, hook: Hook) -> None:
    """As for replies: the list names them by team and id."""
    told = presses.press(pressed(bound, author="T9:U9", author_team="T9"))

    assert told.text == ""
    assert hook.lines()[1] == {"answer": {"allowed": True}}


def test_a_hook_that_is_ended_leaves_the_request_to_the_terminal(bound: System, presses: Presses, hook: Hook) -> None:
    """Its buttons say so."""
    hook.hang_up()
    told = presses.press(pressed(bound))

    assert "answered at the terminal" in told.text
    assert bound.requests.open() == ()


def test_a_button_of_an_earlier_instance_does_nothing(bound: System, presses: Presses, hook: Hook) -> None:
    """The record's present instance counts."""
    record = recorded(bound, "scribe")
    with bound.locks.hold("scribe", "test", 5.0):
        bound.records.write(replace(record, instance_id="i-later"))
    asked = bound.requests.open()[0]

    told = presses.press(pressed(bound, target=asked.id))
    with bound.locks.hold("scribe", "test", 5.0):
        bound.records.write(record)
    hook.hang_up()

    assert "earlier run" in told.text


def test_nobody_waits_while_a_service_has_just_come_back(bound: System, hook: Hook) -> None:
    """A press is not taken whose answer would reach nobody, and the row is given up after a while."""
    fresh = Requests(bound)
    told = Presses(bound, holds, fresh).press(pressed(bound))
    opened = bound.requests.open()
    fresh.turn()
    kept = bound.requests.open()
    hook.hang_up()

    assert "cannot be told at the moment" in told.text
    assert opened == kept


def test_a_request_whose_time_is_up_says_so(bound: System, requests: Requests, presses: Presses) -> None:
    """The client is told that nothing is decided, and a late press what became of it."""
    limits = bound.settings.limits._replace(approval_wait_seconds=1.0)
    short = Requests(replace(bound, settings=bound.settings._replace(limits=limits)))
    hook = Hook(short, record_of(bound)[1], "k-1")
    wait_until(lambda: bound.requests.open(), "the request is open")
    sent(bound, bound.requests.open()[0])

    lines = hook.lines()
    late = presses.press(pressed(bound))

    assert "stays in the terminal" in lines[1]["undecided"]
    assert "nobody answered in time" in late.text


def test_the_same_hook_comes_back_to_the_same_request(bound: System, presses: Presses, hook: Hook) -> None:
    """One post, one row, and both get the answer: a connection may be lost while the other side does not know."""
    again = Hook(presses._requests, record_of(bound)[1], "k-1")
    again.wait_until_shown()
    presses.press(pressed(bound))

    assert [lines[-1] for lines in (hook.lines(), again.lines())] == [{"answer": {"allowed": True}}] * 2
    assert bound.requests.untold() == ()


def test_where_no_reply_is_read_an_agents_question_is_not_asked(bound: System) -> None:
    """Nobody could answer: the agent is told so at once, and the thread shows no question."""
    ours, theirs = socket.socketpair()
    question = {"questions": [{"question": "Which?", "options": []}]}
    line = {"op": "ask", "instance": record_of(bound)[1], "key": "k-9", "input": question}
    with ours, theirs:
        Requests(bound, replies=False).talk(line, Peer(theirs))
        told = json.loads(ours.recv(4096))

    assert "read.mode" in told["undecided"]
    assert bound.requests.open() == ()
