"""The manifest against what the code really listens to and calls."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot import manifest
from bot.app import Buttons, Direct, Self, Sessions, build_app
from bot.buttons import button_blocks
from bot.clients import Tokens
from bot.creating import Creating
from bot.directory import Directory
from bot.home import Homes
from bot.intake import AsyncDoor
from bot.settings import SlackSettings
from core.base.clock import SystemClock
from core.base.errors import InvalidValue
from core.model.asking import Button, Press
from tests.integration.bot.served import Door

ROOT = Path(__file__).parents[3]


def _listener(body: dict[str, object]) -> list[str]:
    """Return the modules of the listeners that match, in order; Bolt runs the first."""
    import asyncio

    async def find() -> list[str]:
        client, door, own = AsyncWebClient(), AsyncDoor(Door()), Self()
        block = SlackSettings()
        tokens = Tokens(block, {})
        directory = Directory(client, tokens, SystemClock())
        creating, identity = Creating(client, tokens, door, directory, block), lambda: own.identity
        direct = Direct(client, tokens, door)
        homes = Homes(client, tokens, door, lambda *_: "", SystemClock(), 10.0)
        buttons = Buttons(door, lambda *_: "F1", directory, block, identity, direct, homes)
        sessions = Sessions(
            door,
            lambda *_: "F1",
            directory,
            block,
            lambda *_: False,
            lambda: "T1",
            creating,
            direct,
            homes,
            identity,
            SystemClock().now,
        )
        app = build_app(client, own, sessions, buttons)
        request, found = AsyncBoltRequest(mode="socket_mode", body=body), []
        for listener in app._async_listeners:
            if await listener.async_matches(req=request, resp=BoltResponse(status=200)):
                found.append(str(getattr(listener.ack_function, "__module__", "")))
        return found

    return asyncio.run(find())


def _called() -> set[str]:
    """Return the Web API methods that the bot's code names, as slack_sdk spells them."""
    names: set[str] = set()
    for path in (ROOT / "bot").rglob("*.py"):
        if "workspace" not in path.parts:
            attributes = (
                node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
            )
            names |= {name for name in attributes if "_" in name and not name.startswith("_")}
    return {name for name in names if callable(getattr(AsyncWebClient, name, None)) and name != "api_call"}


def test_the_file_is_what_the_code_makes() -> None:
    """slack-manifest.yaml is generated, and never edited by hand."""
    assert (ROOT / "slack-manifest.yaml").read_text() == manifest.manifest()


def test_every_method_that_is_called_is_in_the_table_and_no_other() -> None:
    """A new call cannot be made without naming its scope, and an unused scope is not asked for."""
    assert _called() == {method.replace(".", "_") for method in manifest.METHODS}


@pytest.mark.parametrize("event", manifest.document()["settings"]["event_subscriptions"]["bot_events"])
def test_every_subscription_has_a_listener_of_its_own(event: str) -> None:
    """What Slack is asked to send is taken by more than the catch-all."""
    body: dict[str, object] = {"type": "event_callback", "event": {"type": event.split(".")[0]}}

    assert _listener(body)[0] == "bot.app"


@pytest.mark.parametrize("subtype", [None, "message_changed", "file_share", "bot_message", "channel_join"])
def test_messages_of_every_subtype_pass_the_commit_first(subtype: str | None) -> None:
    """No subtype slips through to the catch-all."""
    body: dict[str, object] = {"type": "event_callback", "event": {"type": "message", "subtype": subtype}}

    assert _listener(body) == ["bot.app", "bot.app"]


def test_every_command_has_a_listener() -> None:
    """What the manifest offers is answered."""
    for entry in manifest.document()["features"]["slash_commands"]:
        assert _listener({"command": entry["command"], "text": "status"}) == ["bot.app"]


def test_least_privilege() -> None:
    """Exactly these scopes, Socket Mode on, and nothing that is not used."""
    made = yaml.safe_load(manifest.manifest())

    assert made["oauth_config"]["scopes"]["bot"] == [
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "reactions:write",
        "usergroups:read",
        "users:read",
    ]
    assert made["settings"]["socket_mode_enabled"] is True
    assert made["settings"]["interactivity"]["is_enabled"] is True
    assert made["settings"]["token_rotation_enabled"] is False


@pytest.mark.parametrize("press", Press)
def test_every_button_has_a_listener(press: Press) -> None:
    """What a post shows is heard when it is pressed."""
    [_, row] = button_blocks("", (Button(press, "q-1", "label", (1, 2)),), "scribe")
    action = {**row["elements"][0], "type": "button", "block_id": "b"}

    found = _listener({"type": "block_actions", "actions": [action]})

    assert found == ["bot.app"]


def test_over_http_every_url_is_given_and_socket_mode_is_off() -> None:
    """Events, buttons and the command all go to the one path that the service answers."""
    made = yaml.safe_load(manifest.manifest("http", "https://loop.example.org/"))
    url = "https://loop.example.org/channels/slack/events"

    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["event_subscriptions"]["request_url"] == url
    assert made["settings"]["interactivity"] == {"is_enabled": True, "request_url": url}
    assert [command["url"] for command in made["features"]["slash_commands"]] == [url]
    assert made["settings"]["event_subscriptions"]["bot_events"] == list(manifest.EVENTS)


def test_without_a_public_address_the_place_for_it_is_marked() -> None:
    """And the head of the file says what to put there."""
    made = manifest.manifest("http")

    assert yaml.safe_load(made)["settings"]["event_subscriptions"]["request_url"] == (
        "https://YOUR-HOST/channels/slack/events"
    )
    assert "--url" in made.split("_metadata")[0]


@pytest.mark.parametrize(
    "url", ["http://loop.example.org", "loop.example.org", "https://", "https://a b", "https://h?q"]
)
def test_a_url_that_slack_would_refuse_is_refused(url: str) -> None:
    """Slack calls https alone; the path is ours."""
    with pytest.raises(InvalidValue, match="https://"):
        manifest.manifest("http", url)


@pytest.mark.parametrize("mode", ["poll", "off"])
def test_where_nothing_arrives_nothing_is_offered(mode: str) -> None:
    """No command that nobody answers, no event that nobody takes, no button that nobody hears; no scope for them."""
    made = yaml.safe_load(manifest.manifest(mode))

    assert "slash_commands" not in made["features"]
    assert "event_subscriptions" not in made["settings"]
    assert made["settings"]["interactivity"]["is_enabled"] is False
    assert made["settings"]["socket_mode_enabled"] is False
    assert set(manifest.scopes()) - set(made["oauth_config"]["scopes"]["bot"]) == {
        "commands",
        "im:history",
        "app_mentions:read",
    }
