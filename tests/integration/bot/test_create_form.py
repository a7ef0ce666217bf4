"""`/the-loop create`: the form, over real Bolt: opened, checked, sent, answered. By Socket Mode and by HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from bot.creating import CALLBACK, key_of
from core.base.errors import NameTaken
from core.model.channel import IncomingCreation
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import SECRET, Door, Refusal, Served
from tests.integration.bot.test_http import FORM, VARIABLES, send, signature

ROOTS = ["/srv/work", "~/dev"]


@pytest.fixture
def operated(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, connected; alice is an operator, bob a member."""
    ids = {name: workspace.user_id(name) for name in ("alice", "bob")}
    with Served(workspace, door, roots=ROOTS, operators=[ids["alice"]], authorizedUsers=list(ids.values())) as running:
        door.wait_until_up()
        yield running


def opened(workspace: WorkspaceThread, user: str = "alice") -> dict[str, Any]:
    """Return the modal once it is open."""
    return workspace.wait_for(lambda controls: controls.modal(user))


def filled(workspace: WorkspaceThread, **changes: Any) -> dict[str, Any]:
    """Return what somebody fills in."""
    return {"name": "fix-login", "root": key_of("~/dev"), "folder": "api", "prompt": "mend the login", **changes}


def submitted(
    workspace: WorkspaceThread, view: Mapping[str, Any], values: Mapping[str, Any], user: str = "alice"
) -> Any:
    """Send the form."""
    return workspace.do_async(lambda controls: controls.submit(user, view["id"], values))


def test_an_operator_fills_in_the_form_and_is_told_what_came_of_it(
    workspace: WorkspaceThread, door: Door, operated: Served
) -> None:
    """What runs and where is chosen from the operator's file; the result is shown to its author alone."""
    workspace.command("alice", "agents", "/the-loop create")
    view = opened(workspace)

    sent = submitted(workspace, view, filled(workspace, people=[workspace.user_id("bob")]))

    assert (view["callback_id"], sent.closed, sent.errors) == (CALLBACK, True, {})
    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "fix-login is created")
    alice, bob = workspace.user_id("alice"), workspace.user_id("bob")
    assert door.creations == [
        IncomingCreation(
            "slack", alice, "alice", "fix-login", "claude", "~/dev", "api", "mend the login", "", (alice, bob)
        )
    ]


def test_what_is_wrong_stands_beside_its_field(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """The form stays open, nothing is created, and the next try goes through."""
    door.wrong = {"name": "there is already a session called fix-login", "folder": f"{SECRET} leads out of ~/dev"}
    workspace.command("alice", "agents", "/the-loop create")
    view = opened(workspace)

    refused = submitted(workspace, view, filled(workspace))
    door.wrong = {}
    taken = submitted(workspace, view, filled(workspace, name="other"))

    assert dict(refused.errors) == {
        "name": "there is already a session called fix-login",
        "folder": "[redacted] leads out of ~/dev",
    }
    assert (refused.closed, taken.closed) == (False, True)
    door.wait(lambda door: [one.name for one in door.creations] == ["other"])


def test_a_channel_without_the_bot_and_people_on_no_list_are_named(
    workspace: WorkspaceThread, door: Door, operated: Served
) -> None:
    """Both are said before anything is made."""
    elsewhere = workspace.add_channel("elsewhere", ["alice"])
    stranger = workspace.add_user("eve")
    workspace.command("alice", "agents", "/the-loop create")

    sent = submitted(workspace, opened(workspace), filled(workspace, channel=elsewhere, people=[stranger]))

    assert sent.errors["channel"] == "The bot is not a member of this channel. Invite it there: /invite @the-loop"
    assert stranger in sent.errors["people"]
    assert door.creations == []


def test_members_who_are_no_operators_get_no_form(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """They learn neither folders nor programs."""
    workspace.command("bob", "agents", "/the-loop create")

    seen = workspace.wait_for_ephemeral("bob", lambda message: "only the operators" in message["text"])
    assert "/srv/work" not in json.dumps(seen)
    assert workspace.do(lambda controls: controls.modal("bob")) is None
    assert door.refused == [Refusal("slack", workspace.user_id("bob"), "create")]


def test_without_folders_the_command_says_what_to_configure(workspace: WorkspaceThread, door: Door) -> None:
    """It is off until the operator's file names folders."""
    alice = workspace.user_id("alice")
    with Served(workspace, door, operators=[alice]):
        door.wait_until_up()
        workspace.command("alice", "agents", "/the-loop create")

        workspace.wait_for_ephemeral("alice", lambda message: "channels.slack.roots" in message["text"])


def test_a_form_that_was_sent_by_another_is_refused(workspace: WorkspaceThread, door: Door, operated: Served) -> None:
    """The role is asked again when it is sent: lists change while a form is open."""
    workspace.command("alice", "agents", "/the-loop create")
    view = opened(workspace)
    payload = workspace.do(lambda controls: controls.submission("alice", view["id"], filled(workspace)))
    outsider = workspace.user_id("mallory")
    payload["user"] = {"id": outsider, "team_id": payload["user"]["team_id"]}

    answer = workspace.do_async(lambda controls: controls.envelope("interactive", payload))

    assert "You may not create sessions" in answer["errors"]["name"]
    assert door.creations == []


def test_a_failed_creation_is_told_directly_where_the_response_url_is_gone(
    workspace: WorkspaceThread, door: Door, operated: Served
) -> None:
    """A form may stay open for longer than the command can be answered."""
    door.order_error = NameTaken("a session 'fix-login' is recorded already", "choose another name")
    workspace.command("alice", "agents", "/the-loop create")
    view = opened(workspace)
    workspace.do(lambda controls: controls.expire_responses())

    submitted(workspace, view, filled(workspace))

    place = workspace.do(lambda controls: controls.direct("alice"))
    workspace.wait_for_message(lambda message: "fix-login was not created" in message["text"], channel=place)


def test_over_http_the_form_is_opened_and_checked_in_the_same_way(workspace: WorkspaceThread, door: Door) -> None:
    """The errors are the body of the answer to Slack's request."""
    alice = workspace.user_id("alice")
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}, roots=ROOTS, operators=[alice]) as http:
        door.wait_until_up()
        trigger = workspace.do(lambda controls: controls.trigger("alice"))
        form = {"command": "/the-loop", "text": "create", "user_id": alice, "team_id": workspace.team_id}
        body = urlencode({**form, "trigger_id": trigger, "response_url": f"{workspace.url}/response/none"}).encode()
        assert send(http, body, signature(body, int(time.time())) | {"content-type": FORM}).status == 200
        view = opened(workspace)

        door.wrong = {"folder": "it leads out"}
        refused = _posted(workspace, http, view)
        door.wrong = {}
        taken = _posted(workspace, http, view)

        assert json.loads(refused.body) == {"response_action": "errors", "errors": {"folder": "it leads out"}}
        assert (taken.status, taken.body) == (200, b"")
        door.wait(lambda door: [one.name for one in door.creations] == ["fix-login"])


def _posted(workspace: WorkspaceThread, http: Served, view: Mapping[str, Any]) -> Any:
    payload = workspace.do(lambda controls: controls.submission("alice", view["id"], filled(workspace)))
    body = urlencode({"payload": json.dumps(payload)}).encode()
    return send(http, body, signature(body, int(time.time())) | {"content-type": FORM})
