"""The slash command, over real Socket Mode and response URLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bot.intake import MOST_PICTURES
from core.base.errors import NotPermitted, TmuxSilent, UnknownSession
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import PICTURE, Door, Refusal, Served
from tests.support.tmux import wait_until

ROWS = [
    {"name": "scribe", "running": True, "activity": "idle", "queued": 2, "harness": "claude", "cwd": "/srv/<a>"},
    {"name": "digger", "running": False, "status": "stopped", "hold": {"kind": "stopped", "by": "cli:ann"}},
]


def test_status_is_answered_to_the_caller_alone(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """An allowed member sees each session with its state, and nobody else sees the answer."""
    door.sessions = list(ROWS)

    outcome = workspace.command("alice", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert outcome.acknowledged
    shown = str(seen["blocks"])
    assert "*scribe* idle, 2 queued" in shown
    assert "*digger* stopped" in shown
    assert workspace.ephemerals("agents", "bob") == []


def test_list_tells_more(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """The list carries harness and folder, with special characters that stay text."""
    door.sessions = list(ROWS)

    workspace.command("alice", "agents", "/the-loop list")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert "harness claude, in /srv/&lt;a&gt;" in str(seen["blocks"])


def test_fifty_sessions_fit_one_answer(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Slack refuses what is too long, so the answer keeps within its limits."""
    door.sessions = [{**ROWS[0], "name": f"session-{n}", "description": "d" * 300} for n in range(50)]

    workspace.command("alice", "agents", "/the-loop list")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert "more: `/opt/the-loop standing list`" in str(seen["blocks"])


RUNNING = [{**ROWS[0], "uid": f"s-{name}", "name": name} for name in ("scribe", "digger")]
WHICH, ALL = "the_loop_which_stop", "the_loop_all_stop"


@pytest.fixture
def operated(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, connected; alice may steer, bob operates."""
    people = {name: workspace.user_id(name) for name in ("alice", "bob")}
    with Served(workspace, door, authorizedUsers=list(people.values()), operators=[people["bob"]]) as running:
        door.wait_until_up()
        yield running


def _asked(workspace: WorkspaceThread, line: str) -> dict[str, Any]:
    workspace.command("bob", "agents", line)
    return workspace.wait_for_ephemeral("bob", lambda message: "which session" in message["text"])


@pytest.mark.parametrize("line", ["/the-loop stop", "/the-loop stop all"])
def test_a_stop_that_names_no_session_asks_which(
    workspace: WorkspaceThread, door: Door, operated: Served, line: str
) -> None:
    """Nothing is done before somebody has chosen, and confirmed it. What is stopped already is not offered."""
    door.sessions = [*RUNNING, {**ROWS[1], "uid": "s-3", "name": "sleeper"}]

    seen = _asked(workspace, line)
    asked_first = list(door.orders)
    select, every = seen["blocks"][-1]["elements"]
    workspace.press("bob", "agents", seen["ts"], WHICH, "digger")
    workspace.wait_for_ephemeral("bob", lambda message: "stop done" in message["text"])

    assert asked_first == []
    assert [option["value"] for option in select["options"]] == ["scribe", "digger"]
    assert (select["confirm"]["confirm"]["text"], every["confirm"]["confirm"]["text"]) == ("Stop", "Stop all")
    assert "scribe, digger" in every["confirm"]["text"]["text"]
    assert [(order.verb, order.name) for order in door.orders] == [("stop", "digger")]
    assert [message["text"] for message in workspace.ephemerals("agents", "bob")] == ["stop done"]  # in its place


def test_all_of_them_are_one_order(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """Core chooses by its author's rights, which it knows."""
    door.sessions = list(RUNNING)

    seen = _asked(workspace, "/the-loop stop")
    workspace.press("bob", "agents", seen["ts"], ALL)
    workspace.wait_for_ephemeral("bob", lambda message: "stop done" in message["text"])

    assert [(order.verb, order.name) for order in door.orders] == [("stop", "")]


def test_a_pause_is_chosen_without_being_confirmed(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """It can be taken back; all of them at once are confirmed."""
    door.sessions = list(RUNNING)

    workspace.command("alice", "agents", "/the-loop pause")
    seen = workspace.wait_for_ephemeral("alice", lambda message: "which session" in message["text"])

    select, every = seen["blocks"][-1]["elements"]
    assert ("confirm" in select, "confirm" in every) == (False, True)


def test_whoever_may_not_stop_is_not_asked_which(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """A member who is no operator sees no name."""
    door.sessions = list(RUNNING)

    workspace.command("alice", "agents", "/the-loop stop")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "operators" in message["text"])
    assert "scribe" not in str(seen)


def test_more_sessions_than_a_select_holds(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """A hundred can be chosen, the others typed."""
    door.sessions = [{**RUNNING[0], "name": f"session-{n}", "uid": f"s-{n}"} for n in range(120)]

    seen = _asked(workspace, "/the-loop stop")

    assert len(seen["blocks"][-1]["elements"][0]["options"]) == 100
    assert "20 are not in the list" in seen["text"]


def test_an_unknown_verb_is_answered_with_the_known_ones(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """A typing error is named and followed by help."""
    workspace.command("alice", "agents", "/the-loop stauts")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "Commands" in message["text"])
    assert "There is no command `/the-loop stauts`" in str(seen["blocks"])


def test_members_who_are_not_allowed_learn_nothing(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A refusal is short, and carries no session's name."""
    door.sessions = list(ROWS)

    outcome = workspace.command("bob", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("bob", lambda message: "not on the list" in message["text"])
    assert outcome.acknowledged
    assert "scribe" not in str(seen)
    assert door.refused == [Refusal("slack", workspace.user_id("bob"), "status")]


def test_what_a_stranger_typed_is_not_kept(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Who it was is told, with the verb if it is one, and the first word after it as what may be a session's name."""
    workspace.command("bob", "agents", "/the-loop stop scribe now")
    workspace.command("bob", "agents", "/the-loop hunter2 is the word")

    bob = workspace.user_id("bob")
    door.wait(lambda door: len(door.refused) == 2)
    assert sorted(door.refused) == [Refusal("slack", bob, "command"), Refusal("slack", bob, "stop", "scribe")]


def test_sessions_that_cannot_be_listed_are_said(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A failure of core is the answer, with its remedy."""
    door.rows_error = TmuxSilent("tmux did not answer within 5 s", "look at it with `tmux ls`")

    workspace.command("alice", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "could not be listed" in message["text"])
    assert "tmux did not answer" in seen["text"]


def test_loops_are_shown_of_all_sessions_or_of_one(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Without a name they are counted; with one core is asked for them."""
    door.sessions = [{**ROWS[0], "loops": 2}]

    workspace.command("alice", "agents", "/the-loop loops")
    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "2 open loops")
    workspace.command("alice", "agents", "/the-loop loops scribe")

    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "loops done")
    assert [(order.verb, order.name) for order in door.orders] == [("loops", "scribe")]


def test_loops_that_cannot_be_shown_are_said(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """It is the loops of that session that were asked for."""
    door.order_error = UnknownSession("nope")

    workspace.command("alice", "agents", "/the-loop loops nope")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "nope" in message["text"])
    assert seen["text"].startswith("loops: no standing session called 'nope' is open to you")
    assert seen["text"].endswith("`/the-loop list` shows those that are")


@pytest.mark.parametrize("verb", ["say", "screen", "queue", "pause", "resume", "interrupt"])
def test_each_verb_of_members_reaches_core(workspace: WorkspaceThread, door: Door, served: Served, verb: str) -> None:
    """With the session's name, the rest of the words where it takes any, and the answer for the caller alone."""
    words = " do it, please" if verb == "say" else ""

    workspace.command("alice", "agents", f"/the-loop {verb} scribe{words}")

    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == f"{verb} done")
    [order] = door.orders
    assert (order.verb, order.name, order.text.strip()) == (verb, "scribe", words.strip())


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_verbs_of_operators_are_refused_to_members(
    workspace: WorkspaceThread, door: Door, served: Served, verb: str
) -> None:
    """Nothing of them reaches core."""
    workspace.command("alice", "agents", f"/the-loop {verb} scribe")

    workspace.wait_for_ephemeral("alice", lambda message: "only the operators" in message["text"])
    assert door.orders == []
    assert door.refused == [Refusal("slack", workspace.user_id("alice"), verb, "scribe")]


def test_help_names_every_verb_of_the_caller(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A member is not told of what operators may."""
    workspace.command("alice", "agents", "/the-loop help")

    seen = workspace.wait_for_ephemeral("alice", lambda message: message["text"].startswith("Commands: "))
    named = seen["text"].removeprefix("Commands: ").split(", ")
    assert {"status", "list", "say", "screen", "pause", "resume", "interrupt", "help"} <= set(named)
    assert {"start", "stop", "restart"}.isdisjoint(named)


@pytest.mark.parametrize("verb", ["status", "say scribe do it"])
def test_a_guest_is_not_let_in_by_the_id_alone(workspace: WorkspaceThread, verb: str) -> None:
    """As for replies and presses: whoever lists `U1` means a full member, whatever way they speak."""
    guest, door = workspace.do(lambda controls: controls.add_user("gus", guest=True)), Door()
    workspace.join("gus", "agents")
    door.sessions = list(ROWS)
    with Served(workspace, door, authorizedUsers=[guest]):
        door.wait_until_up()
        workspace.command("gus", "agents", f"/the-loop {verb}")
        seen = workspace.wait_for_ephemeral("gus", lambda message: bool(message["text"]))

    assert "not on the list" in seen["text"]
    assert door.orders == []
    assert [refusal.author for refusal in door.refused] == [f"{workspace.team_id}:{guest}"]


def test_a_guest_who_is_named_with_the_team_is_obeyed_by_that_name(workspace: WorkspaceThread) -> None:
    """Delivery asks the list again, so that the order carries the author as the list has them."""
    guest, door = workspace.do(lambda controls: controls.add_user("gus", guest=True)), Door()
    workspace.join("gus", "agents")
    listed = f"{workspace.team_id}:{guest}"
    with Served(workspace, door, authorizedUsers=[listed]):
        door.wait_until_up()
        workspace.command("gus", "agents", "/the-loop say scribe do it")
        workspace.wait_for_ephemeral("gus", lambda message: message["text"] == "say done")

    assert [(order.author, order.author_name) for order in door.orders] == [(listed, "gus")]


def test_somebody_deactivated_is_not_obeyed(workspace: WorkspaceThread, door: Door) -> None:
    """Whatever a command claims that is still on its way."""
    workspace.do(lambda controls: controls.deactivate("alice"))
    with Served(workspace, door):
        door.wait_until_up()
        workspace.command("alice", "agents", "/the-loop say scribe do it")
        seen = workspace.wait_for_ephemeral("alice", lambda message: bool(message["text"]))

    assert "not on the list" in seen["text"]
    assert door.orders == []


def test_while_slack_does_not_say_who_calls_nobody_is_obeyed(workspace: WorkspaceThread) -> None:
    """A guest or a full member: nobody knows, and the caller is told so and may say it again."""
    caller, door = workspace.do(lambda controls: controls.add_user("cora")), Door()
    workspace.join("cora", "agents")
    workspace.fault("users.info", "error", 50)
    with Served(workspace, door, authorizedUsers=[caller]):
        door.wait_until_up()
        workspace.command("cora", "agents", "/the-loop say scribe do it")
        seen = workspace.wait_for_ephemeral("cora", lambda message: bool(message["text"]))

    assert "does not say at the moment who you are" in seen["text"]
    assert door.orders == []


def test_an_answer_calls_people_by_their_names(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Whoever paused the session is somebody, not an id."""
    door.order_error = NotPermitted(f"scribe is held: paused by slack:{workspace.user_id('bob')}", "ask them")

    workspace.command("alice", "agents", "/the-loop resume scribe")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "scribe" in message["text"])
    assert "scribe is held: paused by bob" in seen["text"]


def test_a_terminal_is_shown_as_text_and_then_as_a_picture(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """Both to the caller alone: the file is shared nowhere, and nobody else sees a message with it."""
    workspace.command("alice", "agents", "/the-loop screen scribe")

    told = workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "screen done")
    shown = workspace.wait_for_ephemeral("alice", lambda message: message["text"].endswith(".png"))
    [image] = shown["blocks"]
    file_id = image["slack_file"]["id"]
    found = workspace.do(lambda controls: controls._room.store.file(file_id))

    assert "screen" in str(told["blocks"])
    assert (image["type"], image["alt_text"]) == ("image", "scribe-2026-11-30-210500.png")
    assert found is not None
    assert found[1] == PICTURE
    assert door.lookers[-1] == workspace.user_id("alice")
    assert workspace.messages("agents") == []
    assert workspace.ephemerals("agents", "bob") == []


def test_a_terminal_that_cannot_be_drawn_is_shown_as_text(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """Nothing more is said to whoever asked: the text is what they asked for."""
    door.picture_error = TmuxSilent("it does not answer")

    workspace.command("alice", "agents", "/the-loop screen scribe")

    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "screen done")
    door.wait(lambda own: own.lookers or None)
    assert [message["text"] for message in workspace.ephemerals("agents", "alice")] == ["screen done"]


def test_pictures_keep_nobody_waiting(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """While one takes long, texts are answered at once; more than a few are not made at all."""
    door.drawing.clear()
    for _ in range(MOST_PICTURES + 2):
        workspace.command("alice", "agents", "/the-loop screen scribe")
    workspace.command("alice", "agents", "/the-loop help")
    workspace.wait_for_ephemeral("alice", lambda message: message["text"].startswith("Commands: "))

    def texts(end: str) -> int:
        return sum(message["text"].endswith(end) for message in workspace.ephemerals("agents", "alice"))

    wait_until(lambda: texts("screen done") == MOST_PICTURES + 2, "each has its text")
    before = texts(".png")
    door.drawing.set()
    wait_until(lambda: texts(".png") == MOST_PICTURES, "those that were taken have their picture")

    assert before == 0
