"""Five hundred posts of fifty hosts into one channel, by a simulated clock, over a PostgreSQL server of its own.

Ours is the gateway's poster on the real channel; see `fair_posts` for the floor and for what ends the run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.fair_posts import CHANNEL, POSTS, SESSIONS, Strict, judged, post_of, texts_of
from benchmarks.measuring import Ratio, report
from bot.payloads import KIND
from core.base.clock import Deadline
from core.fleet.envelope import Say, written_post
from core.fleet.exchange import HostPost, Lease, Place, PublishedSession, Route
from core.fleet.gateway import Directory, Held, Poster
from core.model.posts import RANKS
from embedded.workspace.thread import WorkspaceThread
from tests.support.fleets import PostgresRig, made_database, started
from tests.support.outgoing import HandClock
from tests.support.postgres import MISSING, programs, running_cluster

_NEVER = 1e9  #: seconds of the simulated clock


class _AtOnce(ThreadPoolExecutor):
    """Does what it is given before it returns: the simulated clock stands still meanwhile."""

    def submit(self, work: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        """Do it."""
        done: Future[Any] = Future()
        done.set_result(work(*words, **named))
        return done


def ratios() -> Iterator[Ratio]:
    """Yield how long all of it took, and how much later the last host was done than the first."""
    found = programs()
    if found is None:
        print(f"fleet_posts: left out: {MISSING}", file=sys.stderr)
        return
    with running_cluster(found) as cluster, WorkspaceThread() as workspace, tempfile.TemporaryDirectory() as folder:
        posts = _sent(workspace, PostgresRig(cluster, made_database(cluster), Path(folder)))
    yield from judged(posts, "hosts", "host")


def _sent(workspace: WorkspaceThread, rig: PostgresRig) -> list[tuple[str, float]]:
    """Hand all posts over, one host's after the other's, send them, and return each with its time."""
    roots = [workspace.say("alice", CHANNEL, f"thread {number}") for number in range(SESSIONS)]
    for number, root in enumerate(roots):
        _hand_over(workspace, rig, number, root)
    gate = rig.admit("gate", gateway=True)
    host, exchange, clock = started(gate), gate.as_gateway(), HandClock()
    block = {"enabled": True, "apiUrl": workspace.api_url, "channel": workspace.channel_id(CHANNEL)}
    channel = Strict(block, {"THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token})
    sent, lease = channel.watch(clock), exchange.lease()
    assert isinstance(lease, Lease)
    held = Held(lease, clock)
    held.renewed(Deadline(clock, _NEVER))
    poster = Poster({KIND: channel}, exchange, held, Directory(clock, exchange, host), clock)
    with _AtOnce() as hands:
        while len(sent) < SESSIONS * POSTS:
            if not exchange.renew(lease):
                raise RuntimeError("the lease was lost")
            clock.ahead += poster.turn(hands)
    threads = [[reply["text"] for reply in workspace.replies(CHANNEL, root)] for root in roots]
    if threads != [texts_of(number) for number in range(SESSIONS)]:
        raise RuntimeError("the posts of a host are not all there, or not in order")
    rig.close()
    return sent


def _hand_over(workspace: WorkspaceThread, rig: PostgresRig, number: int, root: str) -> None:
    """Let one host join, publish its session, hand its posts over, and leave its connections."""
    fleet = rig.admit(f"host-{number:02}")
    host, channel = started(fleet), workspace.channel_id(CHANNEL)
    place = Place(KIND, workspace.team_id, channel, root)
    first = post_of(number, 0)
    host.publish([PublishedSession(first.uid, first.name, f'{{"name":"{first.name}"}}', routes=(Route(place, ""),))])
    posts = [post_of(number, each) for each in range(POSTS)]
    host.hand_over([HostPost(p.id, p.uid, place, RANKS[p.kind], *written_post(Say(p, channel, root))) for p in posts])
    fleet.close()


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
