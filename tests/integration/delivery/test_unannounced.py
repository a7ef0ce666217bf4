"""Dialogs that no hook announces: seen by their form, held for, shown, and answered by their cursor."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.failpoints import Failpoint
from core.chat.inbound import Inbound, NullMirror
from core.chat.presses import Presses
from core.delivery.deliverer import Deliverer
from core.delivery.permission_requests import Requests
from core.delivery.saying import say
from core.delivery.screens import Form, look
from core.lifecycle.look import get_standing
from core.lifecycle.start import start_standing
from core.model.activity import ActivityState
from core.model.asking import Request, RequestKind, RequestState, Role
from core.model.channel import IncomingPress, IncomingReply
from core.model.message import MessageState
from core.model.pane import Receipt
from core.model.posts import OutboxRow, PostState
from core.model.reasons import Reason
from core.model.session import Binding
from core.model.texts import text
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.support.chat import Chat
from tests.support.killed import run_until
from tests.support.outgoing import HandClock
from tests.support.pressing import with_slack
from tests.support.talking import record_of, rows, taken, talking, times
from tests.support.tmux import soon, wait_until
from tests.support.world import ACTOR, World, events

S = MessageState
TARGET = "=loop-standing-scribe:"
THREAD, TS = "1700.000001", "1700.000009"
ROLES = {"U1": {Role.MEMBER, Role.APPROVER}, "U2": {Role.MEMBER}}


@pytest.fixture
def bound(world: World) -> System:
    """Give a live session that is idle and has a thread."""
    system = with_slack(talking(world))
    assert start_standing(system, "scribe", ACTOR).ok
    bind(system)
    settle(system)
    return system


def bind(system: System) -> None:
    """Give the session a thread."""
    uid, _ = record_of(system)
    system.bindings.bind(Binding("slack", "T1", "C1", THREAD, uid, "scribe", system.clock.now()))


class Service:
    """What a service does about dialogs, a step at a time."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.observer = ObserverWorker(system, lambda uid: None)
        self.deliverer = Deliverer(system, lambda row: True)
        self.requests = Requests(system)
        self.presses = Presses(system, lambda author, role: role in ROLES.get(author, set()), self.requests)

    def look(self) -> None:
        """Let a look at all sessions and one at open dialogs pass."""
        self.observer.survey()
        self.observer.take_in()
        self.observer.look_at_dialogs()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Look and deliver until the condition holds."""
        uid, _ = record_of(self.system)

        def holds() -> bool:
            self.look()
            self.deliverer.advance(uid)
            return bool(condition())

        wait_until(holds, what)

    def shown(self) -> Request:
        """Return what the thread shows of an open dialog, once it does."""
        self.until(lambda: opened(self.system), "the dialog is shown")
        [request] = opened(self.system)
        return request

    def press(self, label: str, author: str = "U1") -> str:
        """Press the button of that label below the dialog's post, and return what whoever pressed is told."""
        [request] = opened(self.system)
        row = post(self.system, f"p-{request.id}")
        if row.state is PostState.PENDING:
            self.system.outbox.advance(self.system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=TS)
        [button] = [button for button in row.post.buttons if button.label == label]
        name = {"U1": "alice", "U2": "bob"}[author]
        press = IncomingPress("slack", "T1", "C1", THREAD, TS, author, name, "T1", False, button.action, button.target)
        return self.presses.press(press).text


def opened(system: System) -> list[Request]:
    """Return the dialogs that are shown."""
    return [one for one in system.requests.open(record_of(system)[0]) if one.kind is RequestKind.DIALOG]


def post(system: System, post_id: str) -> OutboxRow:
    """Return the post of that id."""
    row = system.outbox.get(post_id)
    assert row is not None
    return row


def texts(system: System, kind: str) -> list[str]:
    """Return the posts of that kind, in their order."""
    with closing(sqlite3.connect(system.paths.database)) as database:
        return [text for (text,) in database.execute("SELECT text FROM outbox WHERE kind = ? ORDER BY seq", (kind,))]


def menu(system: System, text: str = "menu Which one? | red | green | blue") -> None:
    """Let the agent open a dialog in a turn."""
    say(system, "scribe", text, actor=ACTOR, wait=0)
    deliverer = Deliverer(system)
    uid, _ = record_of(system)
    wait_until(lambda: (deliverer.advance(uid), "Enter to choose" in screen(system))[1], "the dialog is shown")


def screen(system: System) -> str:
    """Return what the terminal shows."""
    return "\n".join(system.runner.view(record_of(system)[1]).rows)


def state(system: System, text: str) -> MessageState:
    """Return the state of the message of that text."""
    return next(row.state for row in rows(system) if row.message.text == text)


# ---------------------------------------------------------------- held for


@pytest.mark.parametrize("told", ["menu", "silent menu"], ids=["status-tells", "status-is-silent"])
def test_nothing_is_typed_into_a_dialog_that_nobody_announced(bound: System, told: str) -> None:
    """The message waits with the reason, also where the harness's second source says that it works; then it goes in."""
    menu(bound, f"{told} Which one? | red | green")
    service = Service(bound)

    said = say(bound, "scribe", "not an answer", actor=ACTOR, wait=2)
    during = screen(bound)
    _keys(bound, b"\r")
    service.until(lambda: state(bound, "not an answer") is S.CONFIRMED, "it goes in afterwards")

    assert said.state is S.QUEUED
    assert text(Reason.DIALOG) in " ".join(said.messages)
    assert "❯ red" in during
    assert times(bound, "not an answer") == 1
    assert "You chose: red" in screen(bound)


def test_below_the_dialog_stands_a_picture_of_the_terminal(bound: System) -> None:
    """One for each dialog that is shown, as a file of the session's; nothing waited for it."""
    menu(bound)
    service = Service(bound)
    service.shown()

    def pictured() -> list[str]:
        return [row["path"] for row in bound.database.read("SELECT path FROM outbox WHERE kind = 'attachment'")]

    wait_until(pictured, "its picture is to be posted")
    service.press("green")
    service.until(lambda: get_standing(bound, "scribe").activity is ActivityState.IDLE, "its turn is over")

    [path] = pictured()
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_the_row_says_what_the_dialog_is(bound: System) -> None:
    """And no more once it is over."""
    menu(bound)
    service = Service(bound)
    service.shown()
    row = get_standing(bound, "scribe")

    service.press("green")
    service.until(lambda: get_standing(bound, "scribe").activity is ActivityState.IDLE, "its turn is over")

    assert (row.activity, row.detail) == (ActivityState.DIALOG, "it shows a dialog: Which one?")
    assert row.to_json()["activity"] == "dialog"
    assert get_standing(bound, "scribe").detail == ""


def test_nothing_is_typed_into_a_view_without_an_input_line(bound: System) -> None:
    """It is neither dialog nor input line; the note says what to do, and the message goes in once the line is back."""
    say(bound, "scribe", "before", actor=ACTOR, wait=20)
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" in screen(bound), "the view")
    service = Service(bound)

    said = say(bound, "scribe", "meanwhile", actor=ACTOR, wait=2)
    held = (said.state, " ".join(said.messages))
    seen = bound.runner.view(record_of(bound)[1])
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" not in screen(bound), "the input line")
    service.until(lambda: state(bound, "meanwhile") is S.CONFIRMED, "it goes in")

    assert held[0] is S.QUEUED
    assert text(Reason.NO_INPUT_LINE) in held[1]
    assert len(seen.rows) == 49  # it was let draw anew, and is a view still
    assert "a view" in "\n".join(seen.rows)
    assert times(bound, "meanwhile") == 1


def test_without_a_service_an_input_line_that_is_not_drawn_yet_is_waited_for(bound: System) -> None:
    """Nobody else would deliver the message: it goes in by the same `say`."""
    say(bound, "scribe", "before", actor=ACTOR, wait=20)
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" in screen(bound), "the view")
    drawn = threading.Timer(3.0, _keys, (bound, b"\x0f"))
    drawn.start()

    said = say(bound, "scribe", "meanwhile", actor=ACTOR, wait=30)
    drawn.join()

    assert said.state is S.CONFIRMED
    assert times(bound, "meanwhile") == 1


def test_an_input_line_is_looked_for_before_anything_is_said(bound: System) -> None:
    """By the service, once it is known that the program reads: the first message of all meets no view."""
    wait_until(lambda: screen(bound).rstrip().endswith(">"), "it is drawn")
    Service(bound).look()
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" in screen(bound), "the view")

    said = say(bound, "scribe", "the first", actor=ACTOR, wait=2)

    assert said.state is S.QUEUED
    assert text(Reason.NO_INPUT_LINE) in " ".join(said.messages)
    assert not any("the first" in text for text in taken(bound))


def test_of_a_version_that_was_tried_the_input_line_is_known_from_the_first_on(bound: System) -> None:
    """Though nobody has seen it in this instance; it may not be drawn yet, and the sender is told after a while."""
    uid, _ = record_of(bound)
    activity = bound.activities.get(uid)
    assert activity is not None
    bound.activities.put(replace(activity, version="2.1.332"))
    (bound.paths.session(uid) / "input-line").unlink(missing_ok=True)
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" in screen(bound), "the view")

    at_first = say(bound, "scribe", "the first", actor=ACTOR, wait=1)
    later = say(bound, "scribe", "the second", actor=ACTOR, wait=20)

    assert text(Reason.NO_INPUT_LINE) not in " ".join(at_first.messages)
    assert later.state is S.QUEUED
    assert text(Reason.NO_INPUT_LINE) in " ".join(later.messages)
    assert len(taken(bound)) == 1


def test_a_program_whose_input_line_is_not_known_is_held_by_a_dialog_alone(bound: System) -> None:
    """Of a new version's screen no reader may know the form: then nothing waits for it."""
    uid, _ = record_of(bound)
    (bound.paths.session(uid) / "input-line").unlink(missing_ok=True)
    _keys(bound, b"\x0f")
    wait_until(lambda: "a view" in screen(bound), "the view")

    say(bound, "scribe", "into the unknown", actor=ACTOR, wait=1)

    assert state(bound, "into the unknown") is not S.QUEUED


def test_a_text_that_looks_like_a_dialog_holds_nothing(bound: System) -> None:
    """It stands above an input line."""
    likeness = "Which?\n\n❯ 1. Yes\n  2. No\n\nEnter to confirm · Esc to cancel"

    first = say(bound, "scribe", likeness, actor=ACTOR, wait=20)
    second = say(bound, "scribe", "and now", actor=ACTOR, wait=20)
    Service(bound).look()

    assert (first.state, second.state) == (S.CONFIRMED, S.CONFIRMED)
    assert opened(bound) == []
    assert [event for event in events(bound, "standing.asked") if event["reason"] == "dialog"] == []


# ---------------------------------------------------------------- shown and answered


def test_a_choice_is_made_by_its_text(bound: System) -> None:
    """The cursor goes to it, whatever number it has; the thread says who chose, and the turn goes on."""
    menu(bound)
    service = Service(bound)
    request = service.shown()

    told = service.press("blue")
    service.until(lambda: "You chose: blue" in screen(bound), "it was chosen")

    [answered] = events(bound, "standing.answered")
    edit = post(bound, f"p-{request.id}-1-answered").post
    assert told == ""
    assert [option.label for option in request.questions[0].options] == ["red", "green", "blue", "Esc: cancel"]
    assert "Which one?" in request.detail
    assert answered["actor"] == "slack:U1"
    assert "**blue**: chosen by alice" in edit.text
    assert edit.buttons == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_the_key_chooses_once_and_leaves_no_dialog_unseen(bound: System, world: World, when: str) -> None:
    """What still stands is shown anew with buttons that count; what was chosen is not chosen again."""
    menu(bound, "menu Which one? | red | green")
    Service(bound).shown()
    [first] = opened(bound)
    killed = run_until(
        f"{Failpoint.DIALOG_KEY.value}:{when}", world.folder, "choosing", str(world.save()), "scribe", "0"
    )

    service = Service(bound)
    if when == "before":
        service.until(lambda: [each for each in opened(bound) if each.id != first.id], "it is shown anew")
        told = service.press("green")
        chosen = "green"
    else:
        told, chosen = "", "red"
    service.until(lambda: get_standing(bound, "scribe").activity is ActivityState.IDLE, "its turn is over")

    assert (killed.code, told) == (-9, "")
    assert [line for line in screen(bound).splitlines() if "You chose" in line] == [f"● You chose: {chosen}"]
    assert opened(bound) == []


def test_a_dialog_that_is_being_answered_is_not_shown_anew(bound: System) -> None:
    """It stands for a moment after the press; where that came to nothing, it has buttons again."""
    menu(bound)
    service = Service(bound)
    request = service.shown()
    answered = service.requests.answer(request, "alice", "slack:U1", text="red")
    assert answered is not None
    since = bound.clock.now()
    service.until(lambda: bound.clock.now() - since > timedelta(seconds=1), "it was looked at for a while")
    meanwhile = opened(bound)

    service.requests.end(answered, RequestState.GONE, "the key was not taken")
    again = service.shown()

    assert meanwhile == []
    assert again.id != request.id
    assert service.press("red") == ""


def test_an_answer_is_not_given_up_while_it_is_carried_out(bound: System) -> None:
    """However long the dialog stood before; one that was cut off is, some time later."""
    menu(bound)
    request = Service(bound).shown()
    clock = HandClock()
    requests = Requests(replace(bound, clock=clock))
    clock.ahead = 60
    answered = requests.answer(request, "alice", "slack:U1", text="red")

    requests.turn()
    during = bound.requests.get(request.id)
    clock.ahead = 120
    requests.turn()
    after = bound.requests.get(request.id)

    assert answered == during
    assert after is not None
    assert after.state is RequestState.GONE


def test_an_approver_is_told_what_of_a_dialog_is_not_shown(bound: System) -> None:
    """It is taller than the screen, and longer than a post: its choices are there, and what is missing is said."""
    body = "\n".join([f"echo note {number} {'harmless ' * 12}" for number in range(60)])
    menu(bound, f"menu Bash command\n{body}\nGo on? | yes | no")
    service = Service(bound)

    request = service.shown()

    posted = post(bound, f"p-{request.id}").post
    assert "characters left out**: look at the terminal first" in posted.text
    assert "**Its beginning may have scrolled off the screen**" in posted.text
    assert "Go on?" in posted.text
    assert [button.label for button in posted.buttons] == ["yes", "no", "Esc: cancel"]


def test_a_dialog_can_be_left(bound: System) -> None:
    """By the key that its last line names."""
    menu(bound)
    service = Service(bound)
    service.shown()

    told = service.press("Esc: cancel")
    service.until(lambda: get_standing(bound, "scribe").activity is ActivityState.IDLE, "its turn is over")

    assert told == ""
    assert "You chose" not in screen(bound)


@pytest.mark.parametrize(("label", "mode"), [("green", ""), ("Esc: cancel", "auto")])
def test_an_answer_that_can_change_the_mode_leaves_it_unknown(bound: System, label: str, mode: str) -> None:
    """Until the harness tells it, which nobody has taken in here; Escape alone changes none."""
    menu(bound)
    service = Service(bound)
    service.shown()
    uid, _ = record_of(bound)
    before = bound.activities.get(uid)
    assert before is not None
    bound.activities.put(replace(before, mode="auto"))

    told = service.press(label)

    after = bound.activities.get(uid)
    assert after is not None
    assert (told, after.mode) == ("", mode)


def test_only_an_approver_answers(bound: System) -> None:
    """A member may steer, and no more."""
    menu(bound)
    service = Service(bound)
    service.shown()

    told = service.press("blue", author="U2")

    assert "the approvers" in told
    assert "❯ red" in screen(bound)


def test_no_key_reaches_another_dialog(bound: System) -> None:
    """The one that was shown is gone when somebody presses: they are told so, and the new one is untouched."""
    menu(bound)
    service = Service(bound)
    request = service.shown()
    _keys(bound, b"\r")
    wait_until(lambda: "You chose: red" in screen(bound), "the first is over")
    settle(bound)
    menu(bound, "menu Delete all? | no | yes | maybe")

    told = service.press("blue")

    ended = bound.requests.get(request.id)
    assert "Nothing was chosen: the dialog on the screen has changed" in told
    assert "❯ no" in screen(bound)
    assert ended is not None
    assert ended.state is RequestState.GONE


def test_no_key_reaches_a_dialog_that_came_while_the_answer_was_stored(
    bound: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same title, choices and keys on the same rows ask about something else: the last look is after the store."""
    for _ in range(12):  # the screen is full, so that each dialog stands at its end
        say(bound, "scribe", "a\nb\nc\nd", actor=ACTOR, wait=20)
    menu(bound, "menu Bash command\nls -la\nGo on? | yes | no")
    service = Service(bound)
    request = service.shown()
    stored = Requests.answer

    def slow(*args: Any, **named: Any) -> Request | None:
        moved = stored(*args, **named)
        _keys(bound, b"\r")
        wait_until(lambda: "You chose: yes" in screen(bound), "somebody at the terminal is first")
        wait_until(lambda: _input_line(bound), "its turn is over")
        _keys(bound, b"\x1b[200~menu Bash command\nrm -rf all\nGo on? | yes | no\x1b[201~")
        wait_until(lambda: "rm -rf all" in screen(bound), "it is written")
        _keys(bound, b"\r")
        wait_until(lambda: "Enter to choose" in screen(bound), "the other is shown")
        return moved

    monkeypatch.setattr(Requests, "answer", slow)

    told = service.press("yes")

    ended = bound.requests.get(request.id)
    assert "Nothing was chosen: the dialog on the screen has changed" in told
    assert "rm -rf all" in screen(bound)
    assert "❯ yes" in screen(bound)
    assert ended is not None
    assert ended.state is RequestState.GONE


def test_an_answer_at_the_terminal_is_told_in_the_thread(bound: System) -> None:
    """Nobody presses; the buttons go."""
    menu(bound)
    service = Service(bound)
    request = service.shown()

    _keys(bound, b"\r")
    service.until(lambda: not opened(bound), "it is over")

    edit = post(bound, f"p-{request.id}-0-gone").post
    assert "Answered or rejected at the terminal" in edit.text
    assert edit.buttons == ()


def test_a_dialog_is_shown_once(bound: System) -> None:
    """However often it is looked at, by this service or the next."""
    menu(bound)
    service = Service(bound)
    service.shown()

    for each in (service, Service(bound)):
        each.look()
        each.look()

    asked = [event for event in events(bound, "standing.asked") if event["reason"] == "dialog"]
    assert (len(asked), len(texts(bound, "request")), len(opened(bound))) == (1, 1, 1)


def test_a_reply_is_told_of_no_button_that_is_not_there(bound: System) -> None:
    """While the thread does not show the dialog, the terminal answers it; then its buttons do."""
    menu(bound)
    service = Service(bound)

    first = reply(service, "1700.1")
    service.shown()
    second = reply(service, "1700.2")

    assert "answer it in the terminal: `" in first
    assert "answer it by its buttons" not in first
    assert "answer it by its buttons in the session's thread" in second


def reply(service: Service, ts: str) -> str:
    """Reply in the thread, and return the remedy that is told of it."""
    written = IncomingReply("slack", "T1", "C1", THREAD, ts, "U1", "alice", "T1", False, False, "plain", ts)
    Inbound(service.system, Chat().authorized, NullMirror()).receive([written])
    uid, _ = record_of(service.system)

    def waits() -> bool:
        service.deliverer.advance(uid)
        return state(service.system, ts) is S.QUEUED

    wait_until(waits, "it is queued")
    return texts(service.system, "note")[-1]


# ---------------------------------------------------------------- at the start


@pytest.fixture
def asking_first(world: World) -> System:
    """Give ports whose agent shows a dialog before it starts, with a thread to come."""
    system = with_slack(talking(world))
    routing = system.settings.routing._replace(harness_args={"bundled": ("--ask", "Trust it? | yes | no")})
    return replace(system, settings=system.settings._replace(routing=routing))


def test_a_dialog_before_the_start_is_told_at_once(asking_first: System) -> None:
    """The start does not wait for its limit; the row says starting and why, and the boot prompt is not given up."""
    began = asking_first.clock.now()
    answer = start_standing(asking_first, "scribe", ACTOR)
    took = (asking_first.clock.now() - began).total_seconds()
    [row] = answer.sessions

    assert answer.ok
    assert took < asking_first.settings.routing.tmux.start_timeout_seconds / 2
    assert row.activity is ActivityState.STARTING
    assert "it shows a dialog before it is ready for input: Trust it?" in row.detail
    assert "standing attach scribe --write`" in row.detail
    assert [event["reason"] for event in events(asking_first, "standing.asked")] == ["dialog"]


def test_a_dialog_before_the_start_is_answered_in_the_thread(asking_first: System) -> None:
    """What waited goes in afterwards, the boot prompt first, each once."""
    assert start_standing(asking_first, "scribe", ACTOR).ok
    bind(asking_first)
    service = Service(asking_first)
    service.shown()
    said = say(asking_first, "scribe", "hello there", actor=ACTOR, wait=1)

    told = service.press("yes")
    service.until(lambda: state(asking_first, "hello there") is S.CONFIRMED, "all is in")

    assert said.state is S.QUEUED
    assert told == ""
    assert len(taken(asking_first)) == 2
    assert get_standing(asking_first, "scribe").activity in (ActivityState.IDLE, ActivityState.BUSY)


# ---------------------------------------------------------------- small things


def _input_line(system: System) -> bool:
    record = system.records.read("scribe")
    return record is not None and look(system.settings, system.runner, system.harnesses, record).form is Form.INPUT


def _keys(system: System, keys: bytes) -> None:
    system.runner.write(record_of(system)[1], keys, Receipt.CLEARED, "by-hand", soon())


def test_an_open_dialog_waits_for_those_who_may_answer_it(bound: System) -> None:
    """A member sees it with the buttons that they may press, once it stands in the thread; a stranger sees nothing."""
    menu(bound)
    service = Service(bound)
    request = service.shown()
    unseen = service.presses.waiting("slack", "U1")
    row = post(bound, f"p-{request.id}")
    bound.outbox.advance(bound.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=TS)

    [seen] = service.presses.waiting("slack", "U1")

    assert unseen == ()
    assert (seen.name, seen.channel, seen.thread, seen.ts) == ("scribe", "C1", THREAD, TS)
    assert [button.label for button in seen.buttons][:3] == ["red", "green", "blue"]
    assert "Which one?" in seen.text
    assert service.presses.waiting("slack", "U9") == ()
