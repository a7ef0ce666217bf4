"""A sweep asks for the history of each channel and reads only threads with news, and loses nothing by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot import backfill
from core.model.channel import BoundThread
from embedded.workspace.shapes import message_view
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import SWEEP_PACE, Door, Served
from tests.integration.bot.sweeping import Hand, Remembering, Sweeps, announce, bind, by_hand, sweeping

FEW = 6  #: threads
UNCHECKED, CHECKED = replace(SWEEP_PACE, check=1000.0), replace(SWEEP_PACE, check=0.0, settled=10.0)


@pytest.fixture
def hand() -> Iterator[Hand]:
    """The time of workspace and sweeper."""
    with by_hand() as clock:
        yield clock


@pytest.fixture
def agents(workspace: WorkspaceThread) -> str:
    """The id of a channel."""
    return workspace.channel_id("agents")


def answered(workspace: WorkspaceThread, hand: Hand, door: Door, channel: str, count: int = FEW) -> list[str]:
    """Announce that many sessions, ten minutes apart, each with an answer up to which its thread was read."""
    roots = []
    for number in range(count):
        roots.append(announce(workspace, channel, f"s-{number}"))
        hand.pause(1)
        bind(door, channel, f"s-{number}", roots[-1], announce(workspace, channel, "an answer", roots[-1]))
        hand.pause(600)
    announce(workspace, channel, "another session, so that the latest that is known is not long ago")
    return roots


def later(hand: Hand, door: Door) -> None:
    """Let an hour pass of which all is known: a thread of another channel was read in it."""
    hand.pause(3600)
    door.bound.append(
        BoundThread("elsewhere", "C0ELSEWHERE", f"{int(hand.at)}.000001", f"{int(hand.at)}.000001", False)
    )


@pytest.fixture
def sweeps(workspace: WorkspaceThread, door: Door, hand: Hand) -> Iterator[Sweeps]:
    """A sweeper that checks nothing it has passed over."""
    with sweeping(workspace, door, hand, UNCHECKED) as given:
        yield given


def cursors(door: Door) -> dict[str, str]:
    """Return up to where each thread was read."""
    return {thread.thread: thread.cursor for thread in door.bound}


def test_only_threads_with_news_are_read(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str
) -> None:
    """The others cost no call, keep their cursor, and count as swept: nothing of them waits any longer."""
    roots = answered(workspace, hand, door, agents)
    before = cursors(door)
    later(hand, door)
    ts = workspace.say("alice", "agents", "news", roots[2])

    sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert sweeps.calls.read() == [roots[2]]
    assert sweeps.calls.of("conversations.history") == 1
    assert {done.thread for done in door.sweeps} == set(roots)
    assert {root: cursor for root, cursor in cursors(door).items() if root in roots} == {
        root: ts if root == roots[2] else before[root] for root in roots
    }


def test_what_was_edited_while_it_waits_is_seen(workspace: WorkspaceThread, hand: Hand, agents: str) -> None:
    """The history tells of no edit: a thread with a waiting reply is read."""
    door = Remembering()
    roots = answered(workspace, hand, door, agents)
    with sweeping(workspace, door, hand, UNCHECKED) as sweeps:
        said = [workspace.say("alice", "agents", f"before {number}", roots[1]) for number in range(2)]
        sweeps.look()
        hand.pause(7200)
        for ts in said:
            workspace.edit("agents", ts, "after")

        sweeps.look()

    waiting = next(ts for ts in said if door.waits(ts))
    assert door.changed_while_waiting() == {(waiting, "after", False)}
    assert sweeps.calls.read() == [roots[1]]


def test_a_deleted_announcement_hides_no_reply(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str
) -> None:
    """With replies its place is still there; without, nothing is, which is told as before."""
    roots = answered(workspace, hand, door, agents)
    alone = announce(workspace, agents, "without replies")
    bind(door, agents, "alone", alone)
    later(hand, door)
    workspace.say("alice", "agents", "news", roots[0])
    workspace.delete("agents", roots[0])
    workspace.delete("agents", alone)

    looked = sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert "thread_not_found" in looked.reason or "C0ELSEWHERE" in looked.reason
    assert set(sweeps.calls.read()) == {roots[0], alone}


def test_a_server_without_the_field_is_read_thread_by_thread(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not tell is not taken for a no."""
    roots = answered(workspace, hand, door, agents)
    later(hand, door)
    workspace.say("alice", "agents", "news", roots[3])
    fields = ("latest_reply", "reply_count", "reply_users", "reply_users_count", "thread_ts")

    def without(*given: Any, **named: Any) -> dict[str, Any]:
        shown = message_view(*given, **named)
        return {
            key: value for key, value in shown.items() if key not in fields or shown.get("thread_ts") != shown["ts"]
        }

    monkeypatch.setattr("embedded.workspace.methods.message_view", without)

    sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert sweeps.calls.read() == roots


@pytest.mark.parametrize("code", ["unknown_method", "missing_scope", "fatal_error"])
def test_without_a_history_each_thread_is_read(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str, code: str
) -> None:
    """Whatever keeps the history from us, for now or for good."""
    roots = answered(workspace, hand, door, agents)
    later(hand, door)
    workspace.say("alice", "agents", "news", roots[3])
    workspace.fault("conversations.history", "error", SWEEP_PACE.attempts, code=code)

    sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert sweeps.calls.read() == roots


def test_a_channel_that_cannot_be_read_costs_one_call(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str
) -> None:
    """Not one for each of its threads, before which those of other channels would wait; each is told of."""
    for number in range(FEW):
        bind(door, "C0NOWHERE", f"nowhere-{number}", f"{1_500_000_000 + number}.000001")
    roots = answered(workspace, hand, door, agents)
    workspace.say("alice", "agents", "news", roots[0])

    looked = sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert looked.unread == FEW
    nowhere = [given for _, given in sweeps.calls.calls if given.get("channel") == "C0NOWHERE"]
    assert len(nowhere) == 1


def test_an_announcement_far_back_is_read_instead_of_looked_for(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that show none of the threads end where they cost more than reading the threads."""
    monkeypatch.setattr(backfill, "_PAGE", 5)
    roots = answered(workspace, hand, door, agents)
    workspace.do(lambda c: [c.say("alice", "agents", f"chat {number}") for number in range(100)])
    later(hand, door)
    workspace.say("alice", "agents", "news", roots[3])

    sweeps.look()

    assert [reply.text for reply in door.replies] == ["news"]
    assert sweeps.calls.of("conversations.history") == FEW
    assert set(sweeps.calls.read()) == set(roots)


def test_what_could_not_be_taken_is_read_again_at_the_next_sweep(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str
) -> None:
    """Though the history tells nothing of it: it stands before the cursor."""
    roots = answered(workspace, hand, door, agents)
    later(hand, door)
    sweeps.sweeper.missed(agents, roots[4])

    sweeps.look()
    first = sweeps.calls.read()
    sweeps.look()

    assert first == [roots[4]]
    assert sweeps.calls.read() == []


def test_a_thread_that_failed_is_read_at_the_next_sweep(
    workspace: WorkspaceThread, door: Door, hand: Hand, sweeps: Sweeps, agents: str
) -> None:
    """What is before its cursor may be what failed."""
    roots = answered(workspace, hand, door, agents)
    later(hand, door)
    sweeps.sweeper.missed(agents, roots[4])
    workspace.fault("conversations.replies", "http", SWEEP_PACE.attempts)

    failed = sweeps.look()
    again = sweeps.look()

    assert (failed.unread - again.unread, sweeps.calls.read()) == (1, [roots[4]])


def test_a_reply_of_which_the_history_did_not_tell_is_found(
    workspace: WorkspaceThread,
    door: Door,
    hand: Hand,
    agents: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was passed over is read a little later; the channel's history is not believed from then on."""
    roots = answered(workspace, hand, door, agents)
    stale = dict(cursors(door))
    later(hand, door)
    workspace.say("alice", "agents", "untold", roots[0])
    hand.pause(60)

    def untold(*given: Any, **named: Any) -> dict[str, Any]:
        shown = message_view(*given, **named)
        return (
            shown | {"latest_reply": stale[shown["ts"]]} if shown["ts"] in stale and "latest_reply" in shown else shown
        )

    monkeypatch.setattr("embedded.workspace.methods.message_view", untold)
    with sweeping(workspace, door, hand, CHECKED) as sweeps:
        sweeps.look()
        passed_over = sweeps.calls.read()
        sweeps.look(only_new=True)
        checked = sweeps.calls.read()
        sweeps.look()

    assert (passed_over, checked) == ([], [roots[0]])
    assert {reply.text for reply in door.replies} == {"untold"}
    assert [vars(one)["message"] for one in caplog.records if "did not tell of a reply" in one.getMessage()]
    assert sweeps.calls.read() == roots


def test_each_thread_that_was_passed_over_is_checked_once(
    workspace: WorkspaceThread, door: Door, hand: Hand, agents: str
) -> None:
    """One after the other, at its own pace; where the history told the truth nothing else follows."""
    roots = answered(workspace, hand, door, agents)
    later(hand, door)
    with sweeping(workspace, door, hand, CHECKED) as sweeps:
        sweeps.look()
        checked = []
        for _ in range(FEW + 2):
            sweeps.look(only_new=True)
            checked += sweeps.calls.read()

    assert checked == roots


def test_a_gap_is_looked_into_twice(workspace: WorkspaceThread, door: Door, agents: str) -> None:
    """The history may follow a reply a little later."""
    with by_hand() as hand:
        answered(workspace, hand, door, agents)

    with Served(workspace, door, sweep_pace=UNCHECKED):
        door.wait(lambda seen: len(seen.sweeps) >= 2 * FEW)

    assert door.gaps == [0]


# ---------------------------------------------------------------- compared with reading every thread

WHO = st.sampled_from(["alice", "alice", "mallory", "deploybot", "the-loop"])
THREADS = st.integers(0, 4)
ACTS = st.one_of(
    st.tuples(st.just("say"), THREADS, WHO),
    st.tuples(st.just("say"), THREADS, st.just("alice")),
    st.tuples(st.just("broadcast"), THREADS, st.just("alice")),
    st.tuples(st.just("edit"), THREADS, st.integers(0, 3)),
    st.tuples(st.just("delete"), THREADS, st.integers(0, 3)),
    st.tuples(st.just("delete root"), THREADS, st.just("")),
    st.tuples(st.just("chat"), st.integers(1, 4), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from([5, 200, 2000, 20_000]), st.just("")),
)


class History:
    """A channel with threads in which things happen."""

    def __init__(self, workspace: WorkspaceThread, hand: Hand, number: int) -> None:
        self._workspace = workspace
        self._hand = hand
        self._name = f"history-{number}"
        members = ["alice", "mallory", workspace.bot_user_id]
        self.channel = workspace.add_channel(self._name, members)
        self.roots = [announce(workspace, self.channel, f"s-{each}") for each in range(5)]
        self._said: dict[int, list[str]] = {each: [] for each in range(5)}
        self._gone: set[str] = set()

    def act(self, what: str, which: int, how: Any) -> None:
        """Let one thing happen; what cannot be, does not."""
        self._hand.pause(1)
        if what == "wait":
            self._hand.pause(which)
        elif what == "chat":
            for _ in range(which):
                self._workspace.say("alice", self._name, "chat")
        elif self.roots[which] in self._gone:
            return
        elif what in ("say", "broadcast"):
            self._say(what, which, how)
        elif what == "delete root":
            self._gone.add(self.roots[which])
            self._workspace.delete(self._name, self.roots[which])
        elif self._said[which]:
            self._change(what, self._said[which][-1 - how % len(self._said[which])])

    def _say(self, what: str, which: int, who: str) -> None:
        root, text = self.roots[which], f"{what} {which}"
        if who == "the-loop":
            announce(self._workspace, self.channel, text, root)
        elif who == "deploybot":
            self._workspace.do(lambda c: c.join("deploybot", self._name))
            self._workspace.say_as_bot("deploybot", self._name, text, root)
        else:
            self._said[which].append(self._workspace.say(who, self._name, text, root, broadcast=what == "broadcast"))

    def _change(self, what: str, ts: str) -> None:
        if ts in self._gone:
            return
        if what == "edit":
            self._workspace.edit(self._name, ts, "edited")
        else:
            self._gone.add(ts)
            self._workspace.delete(self._name, ts)


@pytest.fixture(scope="module")
def shared() -> Iterator[WorkspaceThread]:
    """One workspace for all histories."""
    with WorkspaceThread(retry_scale=0.001, ack_seconds=1.0) as running:
        yield running


@given(
    quiet=st.sampled_from([0, 1000]),
    acts=st.lists(ACTS, max_size=14),
    more=st.lists(ACTS, max_size=14),
    restarted=st.booleans(),
    page=st.integers(2, 5),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_ways_to_sweep_find_the_same(
    shared: WorkspaceThread, quiet: int, acts: list[Any], more: list[Any], restarted: bool, page: int
) -> None:
    """Whatever happened before and after an earlier sweep: replies, their order, what waits, and cursors."""
    with by_hand() as hand, pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill, "_PAGE", page)
        history = History(shared, hand, len(shared.do(lambda c: c._room.store.channels())))
        by_history, by_loop = Remembering(), Remembering()
        for door in (by_history, by_loop):
            for number, root in enumerate(history.roots):
                bind(door, history.channel, f"s-{number}", root, shared=False)
        with sweeping(shared, by_history, hand) as ours, sweeping(shared, by_loop, hand) as theirs:
            theirs.sweeper.doubt(history.channel)
            for act in acts:
                history.act(*act)
            hand.pause(quiet)
            looked = [ours.look(), theirs.look()]
            for act in more:
                history.act(*act)
            if restarted:
                with sweeping(shared, by_history, hand) as anew:
                    looked += [anew.look(), theirs.look()]
            else:
                looked += [ours.look(), theirs.look()]

    assert by_history.first_sights() == by_loop.first_sights()
    assert by_history.changed_while_waiting() == by_loop.changed_while_waiting()
    assert cursors(by_history) == cursors(by_loop)
    assert [each.read for each in looked[::2]] == [each.read for each in looked[1::2]]
