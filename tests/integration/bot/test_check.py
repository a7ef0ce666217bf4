"""The check: one finding for each thing that has to be in place."""

from __future__ import annotations

import pytest

from bot import manifest
from core.model.health import Finding, State
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import channel_on
from tests.support.clocks import MovedClock


def _bad(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings if not finding.ok}


def test_a_workspace_in_order_has_nothing_to_complain_about(workspace: WorkspaceThread) -> None:
    """Tokens, scopes, channel, members and Socket Mode are all confirmed; sharing is a warning."""
    findings = channel_on(workspace).check()

    assert _bad(findings) == {}
    assert {"bot token", "bot", "scopes", "channel", "app-level token", "Socket Mode"} <= {f.name for f in findings}
    assert any("another organization" in finding.detail for finding in findings)


@pytest.mark.parametrize(
    ("code", "state"), [("", State.OK), ("unknown_method", State.WARNING), ("missing_scope", State.WARNING)]
)
def test_whether_turns_can_be_shown_as_they_run(workspace: WorkspaceThread, code: str, state: State) -> None:
    """Nothing is posted for that. A workspace without streams gets the answers all the same, so it is a warning."""
    if code:
        workspace.fault("chat.appendStream", "error", code=code)
    before = len(workspace.messages("agents"))

    [found] = [finding for finding in channel_on(workspace).check() if finding.name == "streams"]

    assert found.state is state
    assert len(workspace.messages("agents")) == before
    assert not [finding for finding in channel_on(workspace, stream=False).check() if finding.name == "streams"]


def test_an_empty_list_denies_everyone_and_is_a_finding(workspace: WorkspaceThread) -> None:
    """A bot that obeys nobody is hardly what was wanted."""
    findings = channel_on(workspace, authorizedUsers=[]).check()

    assert "nobody may steer" in _bad(findings)["authorizedUsers"].detail


def test_listed_people_who_could_never_steer_are_named(workspace: WorkspaceThread) -> None:
    """Unknown ids, outsiders, bots and deactivated members on the list are findings."""
    workspace.do(lambda c: c.deactivate("bob"))
    listed = [workspace.user_id("bob"), workspace.user_id("mallory"), workspace.bot_user_id, "U0000000000"]

    findings = channel_on(workspace, authorizedUsers=listed).check()

    assert set(_bad(findings)) == {f"member {member}" for member in listed}
    assert all(finding.remedy for finding in _bad(findings).values())


def test_missing_scopes_are_listed(workspace: WorkspaceThread) -> None:
    """What the token grants is compared with what is called."""
    granted = ["chat:write", "channels:read", "users:read", "commands"]
    workspace.set_scopes(granted)

    bad = _bad(channel_on(workspace).check())

    missing = [scope for scope in manifest.scopes() if scope not in granted]
    assert bad["scopes"].detail == f"missing: {', '.join(missing)}"
    assert {"files:write", "groups:history", "reactions:write"} <= set(missing)
    assert "reinstall" in bad["scopes"].remedy


def test_scopes_that_slack_does_not_name_are_not_called_missing(workspace: WorkspaceThread) -> None:
    """A proxy may take the header away: what could not be told is said so, with where to look."""
    workspace.do(lambda c: c.hide_scopes())

    bad = _bad(channel_on(workspace).check())

    assert "not known" in bad["scopes"].detail
    assert "missing" not in bad["scopes"].detail
    assert "OAuth & Permissions" in bad["scopes"].remedy
    assert "usergroups:read" in bad["scopes"].remedy


def test_the_channels_troubles_are_told_apart(workspace: WorkspaceThread) -> None:
    """Not configured, unknown, not joined, archived: each has its own remedy."""
    unset = _bad(channel_on(workspace, channel="").check())["channel"]
    unknown = _bad(channel_on(workspace, channel="C0000000000").check())["channel"]
    workspace.kick("the-loop", "agents")
    outside = _bad(channel_on(workspace).check())["channel"]
    workspace.join("the-loop", "agents")
    workspace.archive("agents")
    archived = _bad(channel_on(workspace).check())["channel"]

    assert "no channel is configured" in unset.detail
    assert "channel_not_found" in unknown.detail
    assert "/invite @the-loop" in outside.remedy
    assert "archived" in archived.detail


def test_bad_tokens_are_findings_and_not_shown(workspace: WorkspaceThread) -> None:
    """The check goes on with what it can still ask."""
    tokens = {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-of-nobody", "THE_LOOP_SLACK_APP_TOKEN": ""}

    findings = channel_on(workspace, tokens).check()

    assert "invalid_auth" in _bad(findings)["bot"].detail
    assert "THE_LOOP_SLACK_APP_TOKEN is not set" in _bad(findings)["app-level token"].detail
    assert "xoxb-of-nobody" not in str(findings)


def test_socket_mode_that_is_off_is_a_finding(workspace: WorkspaceThread) -> None:
    """Without it nothing would ever arrive."""
    workspace.do(lambda c: c.set_socket_mode(False))

    assert "switch it on" in _bad(channel_on(workspace).check())["Socket Mode"].remedy


@pytest.mark.parametrize("mode", ["poll", "off"])
def test_without_a_connection_no_app_level_token_is_asked_for(workspace: WorkspaceThread, mode: str) -> None:
    """The threads are read by the bot token, or not at all: what is missing for Socket Mode is missed by nobody."""
    workspace.do(lambda c: c.set_socket_mode(False))

    findings = channel_on(workspace, {"THE_LOOP_SLACK_APP_TOKEN": ""}, read={"mode": mode}).check()

    assert _bad(findings) == {}
    assert {"app-level token", "Socket Mode", "signing secret"}.isdisjoint(finding.name for finding in findings)
    assert any(finding.name == "reading" and mode in finding.detail for finding in findings)


def test_a_scope_that_brings_only_commands_is_not_missed_where_none_arrive(workspace: WorkspaceThread) -> None:
    """In poll mode the app has no slash command, so that its token needs no scope for one."""
    workspace.set_scopes([scope for scope in manifest.scopes() if scope != "commands"])

    assert _bad(channel_on(workspace, read={"mode": "poll"}).check()) == {}
    assert "commands" in _bad(channel_on(workspace).check())["scopes"].detail


def test_over_http_the_signing_secret_is_looked_for_and_the_request_urls_are_told(workspace: WorkspaceThread) -> None:
    """No app-level token is needed; what Slack has to be told is said, since no call can ask it."""
    lacking = channel_on(workspace, {"THE_LOOP_SLACK_APP_TOKEN": ""}, read={"mode": "http"}).check()
    secret = {"THE_LOOP_SLACK_APP_TOKEN": "", "THE_LOOP_SLACK_SIGNING_SECRET": "8f742231b10e8888"}
    given = channel_on(workspace, secret, read={"mode": "http"}).check()

    assert "THE_LOOP_SLACK_SIGNING_SECRET is not set" in _bad(lacking)["signing secret"].detail
    assert _bad(given) == {}
    assert "8f742231b10e8888" not in str(given)
    [urls] = [finding.detail for finding in given if finding.name == "request URLs"]
    assert "/channels/slack/events" in urls
    assert all(word in urls for word in ("events", "interactivity", "/the-loop"))


def test_what_the_file_alone_tells_is_found_without_a_token(workspace: WorkspaceThread) -> None:
    """Nobody has to be asked whether it is enabled, has a channel, and obeys anybody."""
    tokens = {"THE_LOOP_SLACK_BOT_TOKEN": "", "THE_LOOP_SLACK_APP_TOKEN": ""}

    findings = channel_on(workspace, tokens, enabled=False, channel="", authorizedUsers=[]).check()

    assert {"enabled", "channel", "authorizedUsers", "bot token", "app-level token"} == set(_bad(findings))
    assert all(finding.remedy for finding in _bad(findings).values())


@pytest.mark.parametrize(("ahead", "state"), [(0, State.OK), (90, State.WARNING), (3600, State.FAILED)])
def test_the_clock_is_compared_with_slacks(workspace: WorkspaceThread, ahead: int, state: State) -> None:
    """Every answer of Slack's names its moment: signed requests and late replies are judged by the difference."""
    clock = MovedClock()
    clock.move(seconds=ahead)

    [found] = [finding for finding in channel_on(workspace, clock=clock).check() if finding.name == "clock"]

    assert found.state is state
    assert bool(found.remedy) is bool(ahead)


def test_channels_of_threads_are_looked_at_like_the_configured_one(workspace: WorkspaceThread) -> None:
    """A session may have its thread in another channel than the configured one."""
    other = workspace.add_channel("quiet", ["alice"])

    findings = channel_on(workspace).check([other, workspace.channel_id("agents")])

    assert set(_bad(findings)) == {f"channel {other}"}


def test_what_could_not_be_asked_is_not_called_wrong(workspace: WorkspaceThread) -> None:
    """Slack is away for a moment: that says nothing about the token."""
    workspace.fault("auth.test", "http")

    assert _bad(channel_on(workspace).check())["bot"].state is State.UNKNOWN


def test_a_probe_can_be_removed_again(workspace: WorkspaceThread) -> None:
    """Nothing is left in the channel."""
    before = len(workspace.messages("agents"))

    remove = channel_on(workspace).send_probe(workspace.channel_id("agents"))
    there = len(workspace.messages("agents"))
    remove()

    assert (there, len(workspace.messages("agents"))) == (before + 1, before)
