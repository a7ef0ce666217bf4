"""Five hundred posts of fifty sessions into one channel, by a simulated clock.

Ours is the service's outbound worker on the real channel; the workspace in this process takes the posts. Slack allows
one post a second and channel, so that the floor is a second for each. A post that is sent earlier after the one before
ends the run: Slack would answer 429.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.measuring import Ratio, report
from benchmarks.stage import stage
from bot.channel import SlackChannel
from bot.payloads import KIND
from core.base.values import replace
from core.chat.outbound import OutboundWorker
from core.model.channel import Posted
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding
from core.session.system import System
from embedded.workspace.thread import WorkspaceThread
from tests.support.outgoing import HandClock

IN_TIME, FAIR = 1.1, 2.0
SESSIONS, POSTS = 50, 10
CHANNEL = "agents"
_PACE = 1.0  #: seconds


class Strict(SlackChannel):
    """The real channel, which notes when each post was sent."""

    def watch(self, clock: HandClock) -> list[tuple[str, float]]:
        """Return the list of sessions (uids) and times, which grows with each post."""
        self._watching = clock
        self._posts: list[tuple[str, float]] = []
        return self._posts

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post. Raises RuntimeError where that is too early."""
        now = self._watching.monotonic()
        if self._posts and now - self._posts[-1][1] < _PACE:
            raise RuntimeError(f"post {len(self._posts)} came {now - self._posts[-1][1]:.3f} s after the one before")
        self._posts.append((post.uid, now))
        return super().post(post, channel, thread)


def ratios() -> Iterator[Ratio]:
    """Yield how long all of it took, and how much later the last session was done than the first."""
    with WorkspaceThread() as workspace, stage() as here:
        here.configure({})
        system, clock = here.system(), HandClock()
        try:
            posts = _sent(workspace, replace(system, clock=clock), clock)
        finally:
            system.close()
    yield from judged(posts, "sessions", "session")


def judged(posts: list[tuple[str, float]], many: str, one: str) -> Iterator[Ratio]:
    """Yield both ratios of posts that were sent; `many` and `one` name whose they are."""
    ends = dict(posts)  # the last of each
    begun, whole = posts[0][1], posts[-1][1] - posts[0][1] + _PACE
    what = f"{SESSIONS * POSTS} posts of {SESSIONS} {many} into one channel"
    yield Ratio(what, "a second for each", "s", (whole,), (float(SESSIONS * POSTS),), IN_TIME)
    slowest, fastest = (pick(ends.values()) - begun + _PACE for pick in (max, min))
    yield Ratio(f"the same: all posts of the slowest {one}", "of the fastest", "s", (slowest,), (fastest,), FAIR)


def _sent(workspace: WorkspaceThread, system: System, clock: HandClock) -> list[tuple[str, float]]:
    """Commit all posts, one session's after the other's, send them, and return each with its time."""
    block = {"enabled": True, "apiUrl": workspace.api_url, "channel": workspace.channel_id(CHANNEL)}
    channel = Strict(block, {"THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token})
    sent = channel.watch(clock)
    roots = [workspace.say("alice", CHANNEL, f"thread {number}") for number in range(SESSIONS)]
    for number, root in enumerate(roots):
        place = (KIND, workspace.team_id, workspace.channel_id(CHANNEL), root, f"s-{number}", f"session-{number:02}")
        system.bindings.bind(Binding(*place, system.clock.now()))
        system.outbox.add([post_of(number, each) for each in range(POSTS)])
    worker = OutboundWorker(system, channel)
    while len(sent) < SESSIONS * POSTS:
        clock.ahead += worker.turn()
    threads = [[reply["text"] for reply in workspace.replies(CHANNEL, root)] for root in roots]
    if threads != [texts_of(number) for number in range(SESSIONS)]:
        raise RuntimeError("the posts of a session are not all there, or not in order")
    return sent


def texts_of(number: int) -> list[str]:
    """Return what the session says, in order."""
    return [f"answer {each} of {number}" for each in range(POSTS)]


def post_of(number: int, each: int) -> NewPost:
    """Return a post of a session, by the numbers of both."""
    id, uid, name = f"p-{number}-{each}", f"s-{number}", f"session-{number:02}"
    return NewPost(id, id, OutboundKind.ANSWER, uid, name, KIND, texts_of(number)[each])


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
