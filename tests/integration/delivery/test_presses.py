"""Every press is checked, whatever a chat shows: who, where, on which post, for which run, and whether it counts."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.base.errors import Refused
from core.chat.presses import Presses
from core.delivery.permission_requests import Requests
from core.lifecycle.pause import pause_standing
from core.lifecycle.stop import stop_standing
from core.loops.verbs import Asker, create_loop
from core.model.asking import Press, Request, Role, announced_buttons, session_buttons
from core.model.channel import IncomingPress
from core.model.loop import LoopRequest, LoopStatus
from core.model.posts import NewPost, OutboundKind, PostState
from core.process.control import Peer
from core.session.system import System
from tests.support.hook import Hook, key_of
from tests.support.pressing import threaded
from tests.support.talking import record_of
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, events, recorded

THREAD, TS = "1700.000001", "1700.000009"
ROLES = {"U1": {Role.MEMBER, Role.APPROVER}, "U2": {Role.MEMBER}, "T9:U9": {Role.MEMBER, Role.APPROVER}}


def has_role(author: str, role: Role) -> bool:
    """Return whether a person has a role: U1 approves, U2 only steers."""
    return role in ROLES.get(author, set())


@pytest.fixture
def bound(world: World) -> System:
    """Give a live session with a thread, in a configuration that has the channel."""
    system = threaded(world)
    uid, _ = record_of(system)
    wait_until(lambda: _turn_is_over(system, uid), "the first turn is over, and no report of it comes later")
    return system


def _turn_is_over(system: System, uid: str) -> bool:
    system.ingest(uid)
    activity = system.activities.get(uid)
    return activity is not None and activity.turn_ended_at is not None


@pytest.fixture
def requests(bound: System) -> Requests:
    """Give what hooks ask."""
    return Requests(bound)


@pytest.fixture
def presses(bound: System, requests: Requests) -> Presses:
    """Give the buttons."""
    return Presses(bound, has_role, requests)


@pytest.fixture
def hook(bound: System, requests: Requests) -> Iterator[Hook]:
    """Give a hook that waits, its request posted."""
    hook = Hook(requests, record_of(bound)[1], key_of(bound))
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
    target = system.requests.of_key(record_of(system)[1], key_of(system))
    made = IncomingPress(
        "slack", "T1", "C1", THREAD, TS, "U1", "ann", "T1", False, "allow", target.id if target else ""
    )
    return replace(made, **changes)


def test_the_first_press_is_the_hooks_answer(bound: System, presses: Presses, hook: Hook) -> None:
    """The second is told who was first, and the post is edited once the hook has its answer."""
    first, second = presses.press(pressed(bound)), presses.press(pressed(bound, action="deny"))
    lines = hook.lines()

    assert first.text == ""
    assert second.text == "ann has already allowed it."
    assert lines[0]["wait"] > 500
    assert lines[1] == {"answer": {"allowed": True}}
    edit = bound.outbox.get(f"p-{pressed(bound).target}-0-answered")
    assert edit is not None
    assert "**Allowed** by ann" in edit.post.text
    assert edit.post.buttons == ()


def test_what_is_remembered_is_told_to_the_hook_and_to_the_thread(
    bound: System, presses: Presses, requests: Requests
) -> None:
    """Only an approver may; the rule that the button showed stands in the note of how it ended."""
    rules = [{"toolName": "Bash", "ruleContent": "curl:*"}]
    hook = Hook(requests, record_of(bound)[1], key_of(bound), rules=rules)
    wait_until(lambda: bound.requests.open(), "the request is open")
    [request] = bound.requests.open()
    sent(bound, request)
    refused = presses.press(pressed(bound, action="allow-and-remember", author="U2"))
    presses.press(pressed(bound, action="allow-and-remember"))
    answer = hook.lines()[-1]

    assert "approvers" in refused.text
    assert request.rules == ("Bash(curl:*)",)
    assert answer == {"answer": {"allowed": True, "remember": True}}
    edit = bound.outbox.get(f"p-{request.id}-1-answered")
    assert edit is not None
    assert "it does not ask again for `Bash(curl:*)`" in edit.post.text


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
        ({"thread": "1700.000002"}, "no longer belongs"),
        ({"channel": "C2"}, "no longer belongs"),
        ({"team": "T2"}, "not on the list"),
        ({"ts": "1700.000010"}, "no longer known"),
        ({"action": "option-0-0"}, "no longer known"),
        ({"target": "q-other"}, "no longer known"),
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

    assert "an earlier instance of the session, which has ended" in told.text


def test_nobody_waits_while_a_service_has_just_come_back(bound: System, hook: Hook) -> None:
    """A press is not taken whose answer would reach nobody, and the row is given up after a while."""
    fresh = Requests(bound)
    told = Presses(bound, has_role, fresh).press(pressed(bound))
    opened = bound.requests.open()
    fresh.turn()
    kept = bound.requests.open()
    hook.hang_up()

    assert "cannot be reached at the moment" in told.text
    assert opened == kept


def test_a_request_whose_time_is_up_says_so(bound: System, requests: Requests, presses: Presses) -> None:
    """The client is told that nothing is decided, and a late press what became of it."""
    limits = bound.settings.limits._replace(approval_wait_seconds=1.0)
    short = Requests(replace(bound, settings=bound.settings._replace(limits=limits)))
    hook = Hook(short, record_of(bound)[1], key_of(bound))
    wait_until(lambda: bound.requests.open(), "the request is open")
    sent(bound, bound.requests.open()[0])

    lines = hook.lines()
    late = presses.press(pressed(bound))

    assert "stays in the terminal" in lines[1]["undecided"]
    assert "nobody answered in time" in late.text


def test_the_same_hook_comes_back_to_the_same_request(bound: System, presses: Presses, hook: Hook) -> None:
    """One post, one row, and both get the answer: a connection may be lost while the other side does not know."""
    again = Hook(presses._answering._requests, record_of(bound)[1], key_of(bound))
    again.wait_until_shown()
    presses.press(pressed(bound))

    assert [lines[-1] for lines in (hook.lines(), again.lines())] == [{"answer": {"allowed": True}}] * 2
    assert bound.requests.untold() == ()


def test_a_request_ends_with_the_last_who_waits_for_it(bound: System, presses: Presses, hook: Hook) -> None:
    """One of two connections that ends says nothing: the dialog is open, and the other gets the answer."""
    again = Hook(presses._answering._requests, record_of(bound)[1], key_of(bound))
    again.wait_until_shown()

    hook.hang_up()
    still = bound.requests.open()
    told = presses.press(pressed(bound))

    assert len(still) == 1
    assert told.text == ""
    assert again.lines()[-1] == {"answer": {"allowed": True}}


def test_once_both_have_gone_the_request_is_over(bound: System, presses: Presses, hook: Hook) -> None:
    """Whichever of them was the last."""
    again = Hook(presses._answering._requests, record_of(bound)[1], key_of(bound))
    again.wait_until_shown()

    hook.hang_up()
    again.hang_up()

    assert bound.requests.open() == ()
    assert "answered at the terminal" in presses.press(pressed(bound)).text


def test_an_answer_that_one_of_two_has_got_stands(bound: System, presses: Presses, hook: Hook) -> None:
    """The thread says who allowed it, although it could not be handed to the other one any more."""
    asked = bound.requests.open()[0]
    again = Hook(presses._answering._requests, record_of(bound)[1], key_of(bound))
    again.wait_until_shown()
    again.ours.shutdown(socket.SHUT_RDWR)

    presses.press(pressed(bound))
    answered = hook.lines()[-1]
    again.hang_up()

    assert answered == {"answer": {"allowed": True}}
    edit = bound.outbox.get(f"p-{asked.id}-0-answered")
    assert edit is not None
    assert "**Allowed** by ann" in edit.post.text
    assert bound.outbox.get(f"p-{asked.id}-0-gone") is None


@pytest.mark.parametrize(
    "other",
    [
        {"input": {"command": "rm -r ~"}},
        {"input": {"command": "date", "timeout": 1}},
        {"tool": "Write"},
        {"agent": "a1"},
        {"whole": "of another text that was cut in the same place"},
        {"op": "ask", "input": {"questions": [{"question": "Which?", "options": []}]}},
    ],
)
def test_what_differs_from_what_is_shown_does_not_join_it(
    bound: System, presses: Presses, hook: Hook, other: dict[str, Any]
) -> None:
    """Agent, tool and input are the same, or it is refused: an Allow counts for what the thread shows, and no more."""
    shown = bound.requests.open()[0]
    second = Hook(presses._answering._requests, record_of(bound)[1], key_of(bound), **other)
    lines = second.lines()
    presses.press(pressed(bound))

    assert [list(line) for line in lines] == [["undecided"]]
    assert "differs" in lines[0]["undecided"]
    assert hook.lines()[-1] == {"answer": {"allowed": True}}
    [event] = events(bound, "standing.ask_refused")
    note = bound.outbox.get(f"p-unasked-{shown.id}")
    assert (event["name"], event["message"]) == ("scribe", shown.id)
    assert note is not None
    assert "answer it at its terminal" in note.post.text


def test_what_does_not_prove_to_be_the_instances_own_is_not_shown(bound: System, requests: Requests) -> None:
    """A key that can be read off a file name lets nobody ask before the hook does."""
    lines = [Hook(requests, record_of(bound)[1], key).lines() for key in ("k-1", "k-1.", "k-1.guessed", ".")]

    assert all("undecided" in line for [line] in lines)
    assert bound.requests.open() == ()
    assert len(events(bound, "standing.ask_refused")) == 4
    note = bound.outbox.get(f"p-unasked-{record_of(bound)[1]}")
    assert note is not None
    assert "`the-loop standing restart scribe`" in note.post.text
    assert [button.press for button in note.post.buttons] == [Press.RESTART]


def test_of_two_who_ask_at_once_one_is_shown(bound: System, presses: Presses) -> None:
    """Neither can be allowed by the other's post."""
    key = key_of(bound)
    hooks = [
        Hook(presses._answering._requests, record_of(bound)[1], key, input={"command": f"echo {n}"}) for n in range(8)
    ]
    wait_until(lambda: len(events(bound, "standing.ask_refused")) == 7, "all others are refused")
    [request] = bound.requests.open()
    sent(bound, request)
    presses.press(pressed(bound))
    answers = [hook.lines()[-1] for hook in hooks]

    assert answers.count({"answer": {"allowed": True}}) == 1
    assert f"echo {answers.index({'answer': {'allowed': True}})}" in request.detail


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


def test_a_button_shows_the_terminal_to_whoever_pressed(bound: System) -> None:
    """Without secrets, again and again, and to those who may steer alone; the post stays as it is."""
    uid, _ = record_of(bound)
    root = NewPost("p-root", "root:1", OutboundKind.ROOT, uid, "scribe", "slack", "up", "C1",
                   buttons=session_buttons(uid, Press.SCREEN))  # fmt: skip
    bound.outbox.add([root])
    sent = next(row for row in bound.outbox.due("slack", bound.clock.now()) if row.post.kind is OutboundKind.ROOT)
    bound.outbox.advance(sent, PostState.SENT, ts=THREAD)
    waiting = bound.outbox.due("slack", bound.clock.now())
    presses = Presses(bound, has_role, Requests(bound))
    press = IncomingPress("slack", "T1", "C1", THREAD, THREAD, "U2", "bob", "T1", False, "screen", uid)

    first, again = presses.press(press), presses.press(press)
    stranger = presses.press(replace(press, author="U7"))

    assert first.text == "scribe:"
    assert "Ready" in first.code
    assert again == first
    assert (stranger.code, "Only people who may steer" in stranger.text) == ("", True)
    assert bound.outbox.due("slack", bound.clock.now()) == waiting


def announced(system: System) -> IncomingPress:
    """Note that the announcement of a running session stands in the channel, and return a press of its Status."""
    uid, _ = record_of(system)
    root = NewPost("p-root", "root:1", OutboundKind.ROOT, uid, "scribe", "slack", "up", "C1",
                   buttons=announced_buttons(uid, lives=True))  # fmt: skip
    system.outbox.add([root])
    shown(system)
    return IncomingPress("slack", "T1", "C1", THREAD, THREAD, "U2", "bob", "T1", False, "session-status", uid)


def shown(system: System) -> NewPost:
    """Note that the announcement's latest edit is shown, and return it."""
    found = system.database.read("SELECT id FROM outbox WHERE kind IN ('root', 'root-update', 'refresh') ORDER BY seq")
    row = system.outbox.get(found[-1]["id"])
    assert row is not None
    assert row.state is PostState.PENDING
    system.outbox.advance(system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=THREAD)
    return row.post


def labels(post: NewPost) -> list[str]:
    """Return what stands on the post's buttons."""
    return [button.label for button in post.buttons]


RUNNING = ["Status", "Screen", "Pause", "Interrupt", "Restart", "Stop"]


def test_the_announcements_buttons_follow_what_the_session_does(bound: System) -> None:
    """Pause gives way to Resume, a stop leaves Start; whoever presses is told, and the thread has its note."""
    press = announced(bound)
    presses = Presses(bound, lambda _, __: True, Requests(bound))
    paused = presses.press(replace(press, action="pause-session"))
    while_paused = shown(bound)
    resumed = presses.press(replace(press, action="resume-session"))
    again = shown(bound)
    stopped = presses.press(replace(press, action="stop-session"))
    down = shown(bound)
    started = presses.press(replace(press, action="start-session"))
    up = shown(bound)

    assert [told.text.split(":")[0] for told in (paused, resumed, stopped, started)] == ["scribe"] * 4
    assert labels(while_paused) == ["Status", "Screen", "Resume", "Restart", "Stop"]
    assert ("paused by slack:U2" in while_paused.text, "paused" in again.text) == (True, False)
    assert labels(again) == labels(up) == RUNNING
    assert labels(down) == ["Status", "Screen", "Start"]
    assert [text for text in texts(bound) if "was paused" in text] == ["`scribe` was paused by slack:U2."]


def test_a_button_that_no_longer_fits_is_judged_by_what_is_so_now(bound: System) -> None:
    """Whoever still saw Interrupt, of a session that has been stopped since, is told; the announcement is mended."""
    press, presses = announced(bound), Presses(bound, lambda _, __: True, Requests(bound))
    stop_standing(bound, "scribe", ACTOR)
    shown(bound)

    with pytest.raises(Refused, match="was stopped"):
        presses.press(replace(press, action="interrupt-session"))
    again = presses.press(replace(press, action="stop-session"))

    assert again.text.startswith("scribe: not-running")
    assert labels(shown(bound)) == ["Status", "Screen", "Start"]


def test_a_member_looks_and_pauses_and_only_an_operator_stops(bound: System, presses: Presses) -> None:
    """Status is shown to whoever pressed alone; what they may not do is refused, and named."""
    press = announced(bound)
    status = presses.press(press)
    refused = [presses.press(replace(press, action=f"{verb}-session")).text for verb in ("stop", "restart")]
    paused = presses.press(replace(press, action="pause-session"))

    assert [row["name"] for row in status.rows] == ["scribe"]
    assert all("operators" in text for text in refused)
    assert paused.text.startswith("scribe: paused")
    assert events(bound, "channel.dropped")


def test_a_pause_by_whoever_stands_in_the_thread_and_its_button_ends_it(bound: System, presses: Presses) -> None:
    """The note says who and why. The button's press edits it, and adds no note of its own."""
    pause_standing(bound, "scribe", ACTOR, "lunch")
    note = posted(bound, "`scribe` was paused by cli:ann: lunch.")

    told = presses.press(pressed(bound, action="resume-session", target=note.uid, author="U2"))

    assert [(button.press, button.label) for button in note.buttons] == [(Press.RESUME, "Resume")]
    assert (told.text, recorded(bound, "scribe").hold) == ("", None)
    edit = bound.outbox.get(f"{note.id}-resume-session")
    assert edit is not None
    assert (edit.post.text.splitlines()[-1], edit.post.buttons) == ("→ resumed by ann.", ())
    assert not [text for text in texts(bound) if "was resumed" in text]


def test_a_stopped_sessions_note_starts_it_for_operators_alone(bound: System, presses: Presses) -> None:
    """A member is told who may; with another session's id nothing is done."""
    stop_standing(bound, "scribe", ACTOR)
    note = posted(bound, "`scribe` was stopped by cli:ann.")
    press = pressed(bound, action="start-session", target=note.uid)

    refused = presses.press(press)
    unknown = presses.press(replace(press, target="u-other"))
    started = Presses(bound, lambda _, __: True, Requests(bound)).press(press)

    assert "operators" in refused.text
    assert "no longer known" in unknown.text
    assert (started.text, recorded(bound, "scribe").hold) == ("", None)


def test_a_loop_that_an_agent_makes_is_told_with_what_stops_it(bound: System, presses: Presses) -> None:
    """The note names the loop and its cadence; an operator's loop is no news to the thread."""
    uid, _ = record_of(bound)
    create_loop(bound, Asker(ACTOR), "scribe", LoopRequest(instruction="look around", interval="5m"))
    loop = create_loop(bound, Asker("agent:scribe", uid), "", LoopRequest(instruction="count", interval="5m")).loop
    assert loop is not None
    [text] = [text for text in texts(bound) if "has made a loop" in text]
    note = posted(bound, text)

    presses.press(pressed(bound, action="stop-loop", target=loop.id))

    assert loop.id in text
    assert note.buttons[0].label == "Stop the loop"
    ended = bound.loops.get(loop.id)
    assert ended is not None
    assert ended.status is LoopStatus.STOPPED


def texts(system: System) -> list[str]:
    """Return what is to be posted, oldest first."""
    found = system.database.read("SELECT text FROM outbox ORDER BY seq")
    return [row["text"] for row in found]


def posted(system: System, text: str) -> NewPost:
    """Note that the post of that text stands in the thread, and return it."""
    [found] = system.database.read("SELECT id FROM outbox WHERE text = ?", (text,))
    row = system.outbox.get(found["id"])
    assert row is not None
    system.outbox.advance(system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=TS)
    return row.post
