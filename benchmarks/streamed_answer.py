"""How many calls of Slack's API a turn costs that is shown as it runs, and whose answer has 20 kB.

Ours are the service's two workers on the real channel, by a simulated clock; the workspace in this process takes the
calls, and refuses what Slack would refuse. The bound is a number of calls, and stands in the place of another's time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from slack_sdk import WebClient

from benchmarks.fair_posts import CHANNEL
from benchmarks.measuring import Ratio, report
from benchmarks.stage import stage
from bot.channel import SlackChannel
from bot.payloads import KIND
from core.base.values import replace
from core.chat.live import LivePosts
from core.chat.outbound import OutboundWorker
from core.model.activity import Activity, ActivityState
from core.model.live import StepState, turn_key
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding
from core.session.system import System
from embedded.workspace.thread import WorkspaceThread
from tests.support.outgoing import HandClock

MOST_CALLS = 12
BYTES = 20_000
_LINE = "A line of the answer, with some words in it that somebody wants to read.\n\n"


def ratios() -> Iterator[Ratio]:
    """Yield how many calls it took, and print which."""
    with WorkspaceThread() as workspace, stage() as here:
        here.configure({})
        system, clock = here.system(), HandClock()
        try:
            calls, text = _streamed(workspace, replace(system, clock=clock), clock)
        finally:
            system.close()
        seen = sum(message["text"].count("A line of the answer") for message in workspace.messages(CHANNEL))
    if seen != text.count("A line of the answer"):
        raise RuntimeError(f"the thread shows {seen} lines of the answer")
    if not calls["chat.stopStream"]:
        raise RuntimeError("nothing was streamed")
    print(f"{len(text.encode()):,} bytes:", ", ".join(f"{count} {name}" for name, count in sorted(calls.items())))
    total = sum(count for name, count in calls.items() if name != "auth.test")
    yield Ratio(f"a streamed answer of {BYTES:,} bytes", "one call", "calls", (float(total),), (1.0,), MOST_CALLS)


def _streamed(workspace: WorkspaceThread, system: System, clock: HandClock) -> tuple[Counter[str], str]:
    """Let a turn run with a tool and end with an answer; return the calls by method, and the answer."""
    block = {"enabled": True, "apiUrl": workspace.api_url, "channel": workspace.channel_id(CHANNEL)}
    channel = SlackChannel(block, {"THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token})
    root, began = workspace.say("alice", CHANNEL, "thread"), clock.now()
    place = (KIND, workspace.team_id, workspace.channel_id(CHANNEL), root)
    system.bindings.bind(Binding(*place, "s-1", "scribe", began))
    reader = f"{KIND}:{workspace.user_id('alice')}"
    message = ("m-1", "k", "s-1", "scribe", 1, Kind.REPLY, reader, "alice", KIND, "m", "go", False, 1, began)
    system.activities.put(Activity("s-1", "i-1", ActivityState.BUSY, began, turn_started_at=began))
    system.inbox.add([NewMessage(*message, ReplyAddress(*place, "1.1"))])
    row = system.inbox.get("m-1")
    assert row is not None
    system.inbox.advance(row, MessageState.CONFIRMED, instance="i-1")
    turn, calls, real = turn_key("i-1", began), Counter[str](), WebClient.api_call

    def counted(client: WebClient, api_method: str, **given: Any) -> Any:
        calls[api_method] += 1
        return real(client, api_method, **given)

    setattr(WebClient, "api_call", counted)  # noqa: B010 - the types of a method and a function differ
    try:
        live = LivePosts(system, channel)
        outbound = OutboundWorker(system, channel, live=live)
        system.lives.begin_step("s-1", turn, "", "Bash", "make")
        clock.ahead += 5.0
        live.turn()
        clock.ahead += 5.0
        system.lives.end_step("s-1", turn, "", "Bash", StepState.DONE)
        text = _LINE * (BYTES // len(_LINE) + 1)
        answer = NewPost("p-1", "answer:1", OutboundKind.ANSWER, "s-1", "scribe", KIND, text)
        with system.database.transaction(durable=True):
            system.activities.put(Activity("s-1", "i-1", ActivityState.IDLE, began, turn_started_at=began))
            system.outbox.add([answer])
            system.lives.answered("s-1", turn, answer.id)
        while system.outbox.due(KIND, clock.now()):
            clock.ahead += outbound.turn() + 0.01
    finally:
        setattr(WebClient, "api_call", real)  # noqa: B010
    return calls, text


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
