"""Sweeps: what was written while nobody listened comes in, once, in order, by the same door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from core.model.channel import BoundThread
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import SWEEP_PACE, Door, Served, channel_on, post_of


def bound(workspace: WorkspaceThread, door: Door, name: str = "scribe") -> str:
    """Post a root as the bot, let the door know it as a bound thread, and return its ts."""
    channel = workspace.channel_id("agents")
    root = channel_on(workspace).post(post_of(f"{name} is up", id=f"p-{name}"), channel, "").ts
    door.bound.append(BoundThread(name, channel, root, root, None))
    return root


@contextmanager
def unheard(workspace: WorkspaceThread) -> Iterator[None]:
    """Let what happens be told to nobody."""
    workspace.hold_events()
    yield
    workspace.do(lambda c: c._room.events._held.clear() if c._room.events._held else None)
    workspace.release_events()


def miss(workspace: WorkspaceThread, root: str, texts: list[str], user: str = "alice") -> list[str]:
    """Say something that Slack never delivers, and return the time stamps."""
    with unheard(workspace):
        return [workspace.say(user, "agents", text, root) for text in texts]


def swept(door: Door, count: int = 1) -> None:
    """Wait until that many threads were swept to their end."""
    door.wait(lambda seen: len(seen.sweeps) >= count)


def came_in(door: Door) -> list[tuple[str, str]]:
    """Return time stamp and text of what came in, in order.

    Once each: a sweep that was begun again, as after a socket that was lost, hands over again, and core knows it.
    """
    return list(dict.fromkeys((reply.ts, reply.text) for reply in door.replies))


def test_what_was_missed_before_the_start_comes_in_order(workspace: WorkspaceThread, door: Door) -> None:
    """On connecting each thread is read from its cursor; what was caught up is counted, and the cursor moves."""
    root = bound(workspace, door)
    sent = miss(workspace, root, ["one", "two", "three"])

    with Served(workspace, door):
        swept(door)

    assert came_in(door) == list(zip(sent, ["one", "two", "three"], strict=True))
    done = door.sweeps[0]
    assert (done.caught_up, done.cursor, done.shared) == (3, sent[-1], True)
    assert done.oldest.endswith(" s")


@pytest.mark.parametrize("damaged", ["", "later", "9" * 400, "-1.000000"])
def test_a_thread_whose_cursor_is_damaged_holds_up_no_other(
    workspace: WorkspaceThread, door: Door, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody knows from where on it is to be read, which is told; the others' replies come in."""
    bound(workspace, door, "broken")
    door.bound[0] = replace(door.bound[0], cursor=damaged)
    root = bound(workspace, door)
    [sent] = miss(workspace, root, ["hello"])

    with Served(workspace, door):
        swept(door)

    assert came_in(door) == [(sent, "hello")]
    assert [vars(one)["session"] for one in caplog.records if one.message == "a thread cannot be read"] == ["broken"]


def test_a_gap_is_told_before_the_first_reply_of_a_connection(workspace: WorkspaceThread, door: Door) -> None:
    """At every connection, so that core can hold back what comes live before it has what was missed."""
    root = bound(workspace, door)
    with Served(workspace, door):
        swept(door)
        workspace.say("alice", "agents", "one", root)
        door.wait_for_replies(1)

        workspace.break_sockets("rst")
        door.wait(lambda seen: len(seen.gaps) >= 2)

    assert door.gaps[0] == 0


def test_a_swept_reply_is_the_same_as_a_live_one(workspace: WorkspaceThread, door: Door) -> None:
    """Author, shape, files, sharing and text are as if it had come by the socket, so that the same checks hold."""
    root = bound(workspace, door)
    with Served(workspace, door) as served:
        swept(door)
        live = [
            workspace.say("alice", "agents", "run ```a < b``` on https://e.org @bob", root),
            workspace.say("mallory", "agents", "let me in", root),
            workspace.say_as_bot("deploybot", "agents", "beep", root),
            workspace.say("alice", "agents", "a file", root, files={"n.txt": "x"}),
            workspace.say("alice", "agents", "waves", root, me=True),
        ]
        by_socket = {reply.ts: reply for reply in door.wait_for_replies(len(live))}
        served.stop()
    again = Door()
    again.bound = [BoundThread("scribe", workspace.channel_id("agents"), root, root, None)]

    with Served(workspace, again):
        swept(again)

    assert {reply.ts: reply for reply in again.replies} == by_socket


@pytest.mark.parametrize("how", ["close", "fin", "rst", "silence"])
def test_each_way_to_lose_the_socket_is_followed_by_a_sweep(workspace: WorkspaceThread, door: Door, how: str) -> None:
    """Whatever went wrong, and though Slack repeats nothing, what was said meanwhile arrives."""
    root = bound(workspace, door)
    with Served(workspace, door):
        swept(door)
        workspace.break_sockets(how)
        [ts] = miss(workspace, root, ["meanwhile"])

        door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
def test_a_planned_refresh_is_followed_by_a_sweep(workspace: WorkspaceThread, door: Door, reason: str) -> None:
    """The new socket stands before the old one goes, and still what fell between them is looked for."""
    root = bound(workspace, door)
    with Served(workspace, door):
        swept(door)
        [ts] = miss(workspace, root, ["between two sockets"])
        workspace.disconnect(reason)

        door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))


def test_long_threads_are_read_page_by_page(workspace: WorkspaceThread, door: Door) -> None:
    """Two pages and a bit; nothing is left out or doubled at their borders."""
    root = bound(workspace, door)
    sent = miss(workspace, root, [f"number {number}" for number in range(430)])

    with Served(workspace, door):
        swept(door)

    assert [ts for ts, _ in came_in(door)] == sent
    assert door.sweeps[0].caught_up == 430


@pytest.mark.parametrize("fault", ["ratelimited", "http", "lost", "refused"])
def test_trouble_within_a_sweep_is_waited_out(workspace: WorkspaceThread, door: Door, fault: str) -> None:
    """A pause that Slack asks for, a server error or a lost answer costs no reply."""
    root = bound(workspace, door)
    sent = miss(workspace, root, ["one", "two"])
    workspace.fault("conversations.replies", fault, 2, seconds=0.1)

    with Served(workspace, door):
        swept(door)

    assert [ts for ts, _ in came_in(door)] == sent


def test_a_sweep_that_breaks_off_leaves_the_cursor_and_is_done_again(workspace: WorkspaceThread, door: Door) -> None:
    """Only a thread that was read to its end moves its cursor."""
    root = bound(workspace, door)
    sent = miss(workspace, root, ["one"])
    workspace.fault("conversations.replies", "http", 3)

    with Served(workspace, door):
        door.wait_until_up()
        swept(door)

    assert {reply.ts for reply in door.replies} == set(sent)


def test_what_cannot_be_stored_is_swept_again(workspace: WorkspaceThread, door: Door) -> None:
    """A full disk during a sweep is no end of it."""
    root = bound(workspace, door)
    [ts] = miss(workspace, root, ["kept for later"])
    door.broken = True

    with Served(workspace, door):
        door.wait_until_up()
        door.broken = False
        swept(door)

    assert [ts for ts, _ in came_in(door)] == [ts]


def test_an_author_nobody_knows_keeps_the_sweep_open(workspace: WorkspaceThread, door: Door) -> None:
    """While Slack does not say who wrote it, a missed reply is neither taken nor given up."""
    root = bound(workspace, door)
    [ts] = miss(workspace, root, ["who am I"])
    workspace.fault("users.info", "error", 3, code="fatal_error")

    with Served(workspace, door):
        door.wait_until_up()
        swept(door)

    reply = door.replies[0]
    assert (reply.ts, reply.author_team, reply.author_name) == (ts, workspace.team_id, "alice")


def test_threads_that_cannot_be_read_hold_up_no_others(workspace: WorkspaceThread, door: Door) -> None:
    """A thread that is gone is told once; those behind it are swept."""
    door.bound.append(
        BoundThread("gone", workspace.channel_id("agents"), "1700000000.000001", "1700000000.000001", None)
    )
    root = bound(workspace, door)
    [ts] = miss(workspace, root, ["hello"])

    with Served(workspace, door):
        swept(door)

    assert [ts for ts, _ in came_in(door)] == [ts]
    assert {done.thread for done in door.sweeps} == {root}


def test_polling_needs_no_socket(workspace: WorkspaceThread, door: Door) -> None:
    """Every few seconds the threads are read; the app-level token is not asked for."""
    root = bound(workspace, door)
    tokens = {"THE_LOOP_SLACK_APP_TOKEN": ""}

    with Served(workspace, door, tokens=tokens, read={"mode": "poll", "intervalSeconds": 1}):
        detail = door.wait_until_up()
        ts = workspace.say("alice", "agents", "do you poll?", root)
        door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))

    assert "polling every 1 s" in detail
    assert workspace.sockets_opened() == 0


POLL = {"mode": "poll", "intervalSeconds": 1}


def test_what_a_round_finds_was_heard(workspace: WorkspaceThread, door: Door) -> None:
    """Where threads are polled, every reply comes by a sweep: only what was said before is caught up."""
    root = bound(workspace, door)
    miss(workspace, root, ["before"])

    with Served(workspace, door, read=POLL):
        door.wait_for_replies(1)
        swept(door)
        ts = workspace.say("alice", "agents", "an ordinary one", root)
        door.wait(lambda seen: any(done.cursor == ts for done in seen.sweeps))

    assert [text for _, text in came_in(door)] == ["before", "an ordinary one"]
    assert sum(done.caught_up for done in door.sweeps) == 1


def test_what_was_said_while_rounds_failed_is_caught_up(workspace: WorkspaceThread, door: Door) -> None:
    """Nobody was listening then, though the service ran; and status says so meanwhile."""
    root = bound(workspace, door)
    pace = replace(SWEEP_PACE, attempts=1)

    with Served(workspace, door, sweep_pace=pace, read=POLL):
        swept(door)
        workspace.fault("conversations.replies", "http", count=1000)
        told = door.wait(lambda seen: next((text for up, text in seen.states if not up and "3 attempts" in text), None))
        ts = workspace.say("alice", "agents", "is anybody there?", root)
        workspace.clear_faults()
        done = door.wait(lambda seen: next((done for done in seen.sweeps if done.cursor == ts), None))
        up = door.wait_until_up()

    assert "no thread can be read" in told
    assert "HTTP 503" in told
    assert done.caught_up == 1
    assert up.startswith("polling every 1 s")


def test_a_thread_of_several_that_cannot_be_read_is_named_while_the_others_are(
    workspace: WorkspaceThread, door: Door
) -> None:
    """Polling works, and not for all: that is what status says."""
    root = bound(workspace, door)
    gone = "1700000000.000001"
    door.bound.append(BoundThread("gone", workspace.channel_id("agents"), gone, gone, None))

    with Served(workspace, door, read=POLL):
        told = door.wait(lambda seen: next((text for up, text in seen.states if up), None))
        swept(door)

    assert "1 of 2 threads cannot be read" in told
    assert "thread_not_found" in told
    assert {done.thread for done in door.sweeps} == {root}


def test_a_missing_right_to_read_is_no_polling(workspace: WorkspaceThread, door: Door) -> None:
    """A scope that lacks is not mended by waiting, but it can be: rounds go on, and status says why nothing comes."""
    bound(workspace, door)
    workspace.set_scopes(["chat:write", "channels:read", "users:read"])

    with Served(workspace, door, read=POLL):
        told = door.wait_until_down()
        workspace.set_scopes(["chat:write", "channels:read", "channels:history", "users:read"])
        door.wait_until_up()

    assert "missing_scope" in told


def test_what_comes_live_is_not_said_to_be_caught_up(workspace: WorkspaceThread, door: Door) -> None:
    """A sweep may find a reply before its event has come; it was sent while somebody listened."""
    root = bound(workspace, door)
    with Served(workspace, door):
        swept(door)
        workspace.hold_events()
        workspace.say("alice", "agents", "live", root)
        looked = len(door.sweeps)
        workspace.disconnect("refresh_requested")
        door.wait(lambda seen: len(seen.sweeps) > looked)
        workspace.release_events()
        door.wait_for_replies(1)

    assert sum(done.caught_up for done in door.sweeps) == 0


def test_polling_with_a_revoked_token_ends_with_its_remedy(workspace: WorkspaceThread, door: Door) -> None:
    """What waiting cannot mend is said, and the service goes on without Slack."""
    workspace.set_revoked()

    with Served(workspace, door, read={"mode": "poll"}) as served:
        served.ended()

    assert "token_revoked" in door.states[-1][1]


def test_a_channel_that_reads_nothing_posts_all_the_same(workspace: WorkspaceThread, door: Door) -> None:
    """`off` opens no socket and sweeps nothing; the state says so, and is no trouble."""
    with Served(workspace, door, read={"mode": "off"}) as served:
        served.ended()
        root = served.thread()

    assert door.states == [(True, "posts only: channels.slack.read.mode is off")]
    assert workspace.sockets_opened() == 0
    assert root


def test_old_replies_wait_to_be_confirmed(workspace: WorkspaceThread, door: Door) -> None:
    """What was said long ago may no longer be meant."""
    root = bound(workspace, door)
    miss(workspace, root, ["old"])

    with Served(workspace, door, confirmOlderThanMinutes=0):
        swept(door)

    assert door.replies[0].confirm.startswith("sent ")


# ---------------------------------------------------------------- what was changed meanwhile


def changes(door: Door) -> list[tuple[str, str, bool]]:
    """Return what was changed: the time stamp, the text as it is now, whether it was deleted."""
    return [(change.reply.ts, change.reply.text, change.deleted) for change in door.changes]


def known(door: Door, root: str, *, waiting: list[str] | None = None, taken: list[str] | None = None) -> None:
    """Let the door know messages of the thread: those that wait, and those that were typed lately."""
    door.bound = [
        replace(thread, cursor=max([root, *(waiting or []), *(taken or [])]), waiting=tuple(waiting or ()),
                taken=tuple(taken or ()))
        for thread in door.bound
    ]  # fmt: skip


def test_edits_and_deletions_that_were_missed_are_found(workspace: WorkspaceThread, door: Door) -> None:
    """An edited message is handed over as it is now, a missing one as deleted; what is as it was is no change."""
    root = bound(workspace, door)
    kept, edited, gone, typed = miss(workspace, root, ["kept", "before", "gone", "typed"])
    with unheard(workspace):
        workspace.edit("agents", edited, "after, for @bob")
        workspace.delete("agents", gone)
        workspace.delete("agents", typed)
    known(door, root, waiting=[kept, edited, gone], taken=[typed])

    with Served(workspace, door):
        swept(door)

    assert sorted(changes(door)) == sorted([(edited, "after, for @bob", False), (gone, "", True), (typed, "", True)])
    assert {change.reply.author for change in door.changes if not change.deleted} == {workspace.user_id("alice")}


def test_a_message_that_waits_longer_than_the_overlap_is_looked_at_too(workspace: WorkspaceThread, door: Door) -> None:
    """And of what stands between it and the cursor nothing else is taken in again: it was judged before."""
    root = bound(workspace, door)
    old, judged, gone = miss(workspace, root, ["old", "judged before", "gone"])
    with unheard(workspace):
        workspace.edit("agents", old, "newer")
        workspace.edit("agents", judged, "judged anew?")
        workspace.delete("agents", gone)
    known(door, root, waiting=[old, gone])
    door.bound = [replace(thread, cursor=f"{int(gone.split('.')[0]) + 900}.000000") for thread in door.bound]

    with Served(workspace, door):
        swept(door)

    assert sorted(changes(door)) == sorted([(old, "newer", False), (gone, "", True)])
    assert door.replies == []


def test_a_thread_that_was_not_read_whole_cancels_nothing(workspace: WorkspaceThread, door: Door) -> None:
    """What stands on the page that did not come is not missing."""
    root = bound(workspace, door)
    sent = miss(workspace, root, [f"line {n}" for n in range(230)])
    with unheard(workspace):
        workspace.delete("agents", sent[-1])
    known(door, root, waiting=sent[-100:])
    door.bound = [replace(thread, cursor=root) for thread in door.bound]

    with Served(workspace, door, sweep_pace=replace(SWEEP_PACE, between=1.0, again=60.0)):
        door.wait_for_replies(150)
        workspace.fault("conversations.replies", "http", SWEEP_PACE.attempts)
        workspace.wait_for(lambda c: not c._room.faults._pending or None)

    assert changes(door) == []
    assert door.sweeps == []


def test_what_was_sent_a_moment_ago_is_not_taken_for_deleted(workspace: WorkspaceThread, door: Door) -> None:
    """Slack may show a message in the thread a little later than it sends the event; it is looked for again."""
    root = bound(workspace, door)
    [ts] = miss(workspace, root, ["just now"])
    with unheard(workspace):
        workspace.delete("agents", ts)
    known(door, root, waiting=[ts])

    with Served(workspace, door, sweep_pace=replace(SWEEP_PACE, settled=3.0)):
        swept(door)
        at_first = changes(door)
        door.wait(lambda seen: seen.changes or None)

    assert at_first == []
    assert changes(door) == [(ts, "", True)]


def test_a_thread_that_was_never_swept_is_looked_at_soon(workspace: WorkspaceThread, door: Door) -> None:
    """One that was taken back after the sweep of the connection, and in which a reply has told of the channel since."""
    with Served(workspace, door):
        bound(workspace, door)
        swept(door)
        root = bound(workspace, door, "second")
        door.bound[-1] = replace(door.bound[-1], shared=True, fresh=True)
        swept(door, 2)

    assert door.sweeps[1].thread == root
