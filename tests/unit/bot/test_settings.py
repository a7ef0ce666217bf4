"""The block `channels.slack`: what it takes, and how it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from bot.channel import SlackChannel
from bot.schema import SlackBlock
from bot.settings import ReadSettings, SlackSettings, TemplateSettings, on_loopback, url_parts
from core.config.channels import channel_settings
from core.config.document import ConfigError
from core.model.asking import Role


def _problems(**block: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        channel_settings(block, SlackBlock, name="slack")
    return str(caught.value)


def test_the_defaults() -> None:
    """An empty block is disabled, has no channel, and allows nobody."""
    settings = SlackSettings()

    assert (settings.enabled, settings.channel, settings.authorized_users) == (False, "", ())
    assert settings.api_url == "https://slack.com/api/"
    assert (settings.bot_token_env, settings.app_token_env) == ("THE_LOOP_SLACK_BOT_TOKEN", "THE_LOOP_SLACK_APP_TOKEN")


def test_the_plain_values_are_those_of_the_checked_block() -> None:
    """Every key of the one is a key of the other, with the same default, and every value arrives."""
    template = {"name": "fix", "channel": "C0123456789", "root": "~/x", "lifetime": "8h", "role": "member"}
    written = {
        "templates": [template],
        "authorizedUsers": ["U0123456789"],
        "read": {"mode": "poll", "intervalSeconds": 5},
    }
    checked = {
        given: SlackBlock.model_validate(block).model_dump(by_alias=True, mode="json")
        for given, block in (("empty", {}), ("full", written))
    }

    full = SlackSettings.of(checked["full"])

    assert SlackSettings.of(checked["empty"]) == SlackSettings.of({}) == SlackSettings()
    assert full.templates == (TemplateSettings("fix", "C0123456789", "~/x", lifetime="8h", role="member"),)
    assert (full.authorized_users, full.read) == (("U0123456789",), ReadSettings("poll", 5))


@pytest.mark.parametrize("name", ["@alice", "alice", "alice@example.com", "C0123456789", "u0123456789", "", "UÄÄÄ"])
def test_names_are_refused_with_the_way_to_an_id(name: str) -> None:
    """Anyone can take a name; ids stay."""
    assert "Copy member ID" in _problems(authorizedUsers=["U0123456789", name])


@pytest.mark.parametrize("member", ["U0123456789", "W0123456789"])
def test_member_ids_are_taken(member: str) -> None:
    """Enterprise ids begin with W."""
    assert SlackChannel({"authorizedUsers": [member]}, {}).authorized(member)


@pytest.mark.parametrize(
    "url", ["http://slack.com/api/", "ftp://127.0.0.1/", "slack.com/api", "https://", "http://[", ""]
)
def test_a_url_that_would_leak_or_lead_nowhere_is_refused(url: str) -> None:
    """The token goes to that address, so only loopback may be plain http."""
    assert "channels.slack.apiUrl" in _problems(apiUrl=url)


@pytest.mark.parametrize("url", ["https://slack-gov.com/api", "http://127.0.0.1:4600/api/", "http://localhost:1/api"])
def test_other_addresses_are_taken_with_a_slash(url: str) -> None:
    """slack_sdk joins the method's name to it."""
    assert channel_settings({"apiUrl": url}, SlackBlock, name="slack").api_url == url.rstrip("/") + "/"


def test_a_token_in_place_of_a_variables_name_is_refused_and_not_shown() -> None:
    """People paste tokens into the wrong place."""
    said = _problems(botTokenEnv="xoxb-1234-abcd")

    assert "environment variable" in said
    assert "1234-abcd" not in said


def test_one_variable_for_both_tokens_is_refused() -> None:
    """They are different tokens."""
    assert "three different variables" in _problems(botTokenEnv="A", appTokenEnv="A")


def test_everything_wrong_is_said_at_once() -> None:
    """A channel's name, an unknown key and a wrong type are one answer."""
    said = _problems(channel="#agents", mood="quiet", enabled="yes")

    assert "channels.slack.channel" in said
    assert "mood" in said
    assert "channels.slack.enabled" in said


def test_an_empty_list_allows_nobody() -> None:
    """Not even the empty id."""
    channel = SlackChannel({}, {})

    assert [channel.authorized(member) for member in ("", "U1", "USLACKBOT")] == [False] * 3


@pytest.mark.parametrize("url", ["https://[broken", "http://\u2100.org/x", "", "no url"])
def test_a_url_that_cannot_be_read_leads_nowhere(url: str) -> None:
    """Slack's answers name addresses, and no answer of anybody is a fault of ours."""
    assert url_parts(url).hostname is None
    assert not on_loopback(url)


@pytest.mark.parametrize(
    ("mode", "operators", "told"),
    [
        ("socket", ["U0123456789"], ("/the-loop", "/the-loop")),
        ("socket", [], ("/the-loop", "")),
        ("http", ["U0123456789"], ("/the-loop", "/the-loop")),
        ("poll", ["U0123456789"], ("", "")),
        ("off", ["U0123456789"], ("", "")),
    ],
)
def test_a_text_names_the_slash_command_where_somebody_can_give_it(
    mode: str, operators: list[str], told: tuple[str, str]
) -> None:
    """In poll and off none arrives; what nobody may do there is done at the machine."""
    block = {"authorizedUsers": ["U0123456780"], "operators": operators, "read": {"mode": mode}}
    channel = SlackChannel(block, {})

    assert (channel.typed(Role.MEMBER), channel.typed(Role.OPERATOR)) == told
