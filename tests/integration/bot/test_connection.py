"""The connection: an absent Slack is waited out, a useless token is not, and a lost socket is replaced."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from bot.channel import SlackChannel
from bot.connection import Pace
from core.model.channel import BoundThread
from embedded.workspace.controls import Controls
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import QUICK, SWEEP_PACE, Door, Served, channel_on

SELDOM = replace(SWEEP_PACE, fresh=1000.0, check=1000.0)  #: nothing is read that nobody asks for


def test_an_absent_slack_is_waited_out(tmp_path: Path, door: Door) -> None:
    """A service that starts without network connects by itself once Slack is there."""
    database, port = tmp_path / "workspace.db", _free_port()
    with WorkspaceThread(database, port) as first:
        served = Served(first, door)
    with served:
        down = door.wait_until_down()

        with WorkspaceThread(database, port):
            up = door.wait_until_up()
            served.stop()

    assert "could not be reached" in down
    assert "Socket Mode as the-loop" in up


@pytest.mark.parametrize("fault", ["ratelimited", "http", "lost", "refused"])
@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
def test_trouble_that_passes_is_waited_out(workspace: WorkspaceThread, door: Door, method: str, fault: str) -> None:
    """Neither a pause that Slack asks for nor a server error nor a lost answer ends the connection."""
    workspace.fault(method, fault, 1, seconds=0.1)

    with Served(workspace, door):
        door.wait_until_up()

    assert door.states[0][0] is False


def test_an_invalid_token_ends_the_connection_with_its_remedy(workspace: WorkspaceThread, door: Door) -> None:
    """Serving returns, the service learns why, and the token itself is nowhere in the words."""
    secret = "xoxb-not-a-token-of-anybody"
    with Served(workspace, door, tokens={"THE_LOOP_SLACK_BOT_TOKEN": secret}) as served:
        served.ended()

    up, detail = door.states[-1]
    assert not up
    assert "invalid_auth" in detail
    assert "restart the service" in detail
    assert secret not in detail


def test_a_missing_token_is_named_by_its_variable(workspace: WorkspaceThread, door: Door) -> None:
    """Nothing is asked of Slack without a token."""
    with Served(workspace, door, tokens={"THE_LOOP_SLACK_APP_TOKEN": ""}) as served:
        served.ended()

    assert "THE_LOOP_SLACK_APP_TOKEN is not set" in door.states[-1][1]


def test_tokens_in_each_others_place_are_noticed(workspace: WorkspaceThread, door: Door) -> None:
    """A bot token in the app token's variable is told apart by its beginning."""
    with Served(workspace, door, tokens={"THE_LOOP_SLACK_APP_TOKEN": workspace.bot_token}) as served:
        served.ended()

    assert "does not begin with xapp-" in door.states[-1][1]
    assert workspace.bot_token not in door.states[-1][1]


def test_a_token_that_is_revoked_while_connected_ends_it(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """After the socket is gone a revoked token is not tried for ever."""
    workspace.set_revoked()

    workspace.break_sockets("close")
    served.ended()

    assert "token_revoked" in door.states[-1][1]


def test_socket_mode_switched_off_ends_it(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """link_disabled cannot be mended by connecting again."""
    workspace.disconnect("link_disabled")
    served.ended()

    assert "Socket Mode was switched off" in door.states[-1][1]


def test_socket_mode_off_at_the_start_is_said(workspace: WorkspaceThread, door: Door) -> None:
    """The remedy names the page on which it is switched on."""
    workspace.do(lambda c: c.set_socket_mode(False))

    with Served(workspace, door) as served:
        served.ended()

    assert "switch it on" in door.states[-1][1]


@pytest.mark.parametrize("how", ["close", "fin", "rst", "silence"])
def test_a_broken_socket_is_replaced(workspace: WorkspaceThread, door: Door, served: Served, how: str) -> None:
    """Replies arrive again after the socket broke, and those sent meanwhile come by their retries."""
    root = served.thread()

    workspace.break_sockets(how)
    workspace.wait_for(lambda c: c.sockets_opened() == 2 or None)
    ts = workspace.say("alice", "agents", "still there?", root)

    door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))


def test_a_socket_without_pongs_is_replaced_whatever_the_library_says(workspace: WorkspaceThread, door: Door) -> None:
    """The library believes itself connected; by the age of the last pong it is deaf, and another one is opened."""
    silent = replace(QUICK, ping=60.0, pong=0.5, first=0.2)

    with Served(workspace, door, pace=silent):
        door.wait(lambda seen: any("no pong for" in detail for _, detail in seen.states) or None)
        workspace.wait_for(lambda c: c.sockets_opened() >= 2 or None)

        assert workspace.connections() <= 1


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
def test_a_planned_refresh_leaves_no_gap(workspace: WorkspaceThread, door: Door, served: Served, reason: str) -> None:
    """Slack's request for another socket is followed, and is neither a loss nor somebody else's connection."""
    workspace.disconnect(reason)

    workspace.wait_for(lambda c: c.sockets_opened() == 2 or None)
    workspace.wait_for_connections(1)
    assert len(door.states) == 1


def test_another_connection_of_the_same_app_is_reported(
    workspace: WorkspaceThread, door: Door, served: Served, tmp_path: Path
) -> None:
    """Slack hands each reply to any one connection, so one of another machine is named in the state."""
    second = Door()

    with Served(workspace, second, tokens={"XDG_RUNTIME_DIR": str(tmp_path)}):
        detail = second.wait_until_up()

    assert "2 connections open" in detail


def test_while_others_are_connected_a_thread_is_read_before_its_replies_go_on(
    workspace: WorkspaceThread, door: Door, served: Served, tmp_path: Path
) -> None:
    """What the other has got and lost stands before the reply that we got; the first sweep cannot know of it."""
    second = Door()
    with Served(workspace, second, tokens={"XDG_RUNTIME_DIR": str(tmp_path)}, sweep_pace=SELDOM) as other:
        second.wait_until_up()
        root = other.thread()
        second.bound.append(BoundThread("scribe", workspace.channel_id("agents"), root, root, shared=True))
        served.stop()
        missed = workspace.do(lambda c: _unheard(c, root))
        workspace.say("alice", "agents", "heard", root)
        second.wait(lambda seen: len(seen.sweeps) > 0)

    heard = next(reply for reply in second.replies if reply.text == "heard")
    assert heard.unordered
    assert missed in {reply.ts for reply in second.replies}


def _unheard(controls: Controls, root: str) -> str:
    """Say something whose event nobody gets."""
    controls.lose_events(4)
    ts = controls.say("alice", "agents", "unheard", root)
    controls.lose_events(0)
    return ts


def test_others_are_counted_again(workspace: WorkspaceThread, door: Door, served: Served, tmp_path: Path) -> None:
    """A predecessor's socket is gone after a while: from then on replies wait for nothing."""
    second = Door()
    with Served(workspace, second, tokens={"XDG_RUNTIME_DIR": str(tmp_path)}, pace=replace(QUICK, count=0.3)) as other:
        both = second.wait_until_up()
        served.stop()
        alone = second.wait(lambda seen: next((text for up, text in seen.states if up and text != both), None))
        workspace.say("alice", "agents", "heard", other.thread())
        second.wait_for_replies(1)

    assert "2 connections open" in both
    assert "connections open" not in alone
    assert [reply.unordered for reply in second.replies if reply.text == "heard"] == [False]
    assert not [text for up, text in second.states if not up and "lost" in text]


@pytest.mark.parametrize(("times", "seconds"), [(1, 300), (2, 600), (4, 2400), (5, 3600), (60, 3600)])
def test_others_that_stay_are_counted_less_and_less_often(times: int, seconds: float) -> None:
    """Each count is a connection of its own."""
    assert Pace().before_count(times) == seconds


def test_a_second_process_on_this_machine_is_refused(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """It says who holds the app's token, opens no socket, and takes over once that one is gone."""
    second = Door()

    with Served(workspace, second):
        refused = second.wait_until_down()
        sockets = workspace.sockets_opened()
        served.stop()
        taken_over = second.wait_until_up()

    assert f"process {os.getpid()} on this machine" in refused
    assert "an app of its own" in refused
    assert sockets == 1
    assert "Socket Mode as the-loop" in taken_over


def test_attempts_that_go_on_failing_are_called_deaf(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """After some of them the state says what it means for people: nobody hears them."""
    workspace.fault("auth.test", "http", 1000)

    workspace.break_sockets("rst")
    door.wait(lambda seen: seen.states[-1][1].startswith("deaf: 3 attempts failed") or None)
    workspace.clear_faults()

    assert "Socket Mode as the-loop" in door.wait_until_up()


def test_stopping_ends_in_time_and_closes_the_socket(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A stop is quick even when nothing ever answers on the socket."""
    workspace.break_sockets("silence")

    served.stop(deadline=5)

    assert door.states[-1] == (False, "stopped")


def test_secrets_stay_out_of_everything_that_is_logged(
    workspace: WorkspaceThread, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """At DEBUG, with trouble on every side, no token, no ticket and no text is logged."""
    caplog.set_level(logging.DEBUG)
    with Served(workspace, door) as served:
        door.wait_until_up()
        root = served.thread()
        workspace.say("alice", "agents", "a confidential word", root)
        door.wait_for_replies(1)
        workspace.break_sockets("rst")
        workspace.set_revoked()
        served.ended()

    ours = "\n".join(f"{r.getMessage()} {vars(r)}" for r in caplog.records if not r.name.startswith("aiohttp.access"))
    assert workspace.bot_token not in ours
    assert workspace.app_token not in ours
    assert "ticket=" not in ours
    assert "a confidential word" not in ours


def test_a_channel_shows_no_token(workspace: WorkspaceThread) -> None:
    """Printing the channel or what it is made of shows variables, not values."""
    channel = channel_on(workspace)

    shown = f"{channel!r} {vars(channel)} {vars(channel._tokens)['_settings']} {channel._tokens.bot()!r}"

    assert workspace.bot_token not in shown
    assert "THE_LOOP_SLACK_BOT_TOKEN" in shown


def test_making_a_channel_asks_nobody(door: Door) -> None:
    """Neither tokens nor a network are needed to make one; each other side is asked when it is needed."""
    channel = SlackChannel({"enabled": True}, {}, pace=QUICK)

    channel.serve(door, lambda: False)

    assert "THE_LOOP_SLACK_BOT_TOKEN is not set" in door.states[-1][1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_stopping_does_not_wait_for_an_absent_slack(workspace: WorkspaceThread, door: Door) -> None:
    """Neither a call that hangs nor the pause before the next attempt holds a stop up."""
    workspace.fault("auth.test", "slow", 5, seconds=600)
    with Served(workspace, door) as served:
        served.stop()

    assert door.states[-1] == (False, "stopped")
