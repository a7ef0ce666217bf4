"""What the gateway's poster does with faults that are nobody's answer, over the exchange in memory."""

import errno
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from core.fleet.envelope import Failed, Say, read_result, written_post
from core.fleet.exchange import HostExchange, HostPost, new_id
from core.fleet.gateway import Directory, Held, Poster
from core.fleet.memory import MemoryFleet
from core.model.channel import Posted
from core.model.posts import NewPost, OutboundKind
from tests.support.chat import Chat
from tests.support.clocks import MovedClock
from tests.support.fleets import THREAD, session, started
from tests.support.tmux import wait_until


class Broken(Chat):
    """A chat with a fault in its code."""

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Fail as nothing may that belongs to a chat."""
        raise RuntimeError("a fault of ours")


def _poster(chat: Chat, path: str = "") -> tuple[Poster, HostExchange, Held]:
    """Return a poster with the lease, and the host of which one post waits; `path`: of the file that it attaches."""
    clock = MovedClock()
    gate = MemoryFleet(clock).admit("gate", gateway=True)
    host, exchange = started(gate), gate.as_gateway()
    host.publish([session("u1", THREAD)])
    post = NewPost("p", "p", OutboundKind.ATTACHMENT, "u1", "guide", THREAD.kind, "text", path=path)
    blob = new_id() if path else ""
    if blob:
        host.put_blob(blob, [b"data"])
    body = Say(post, THREAD.channel, THREAD.thread, blob=blob)
    host.hand_over([HostPost(new_id(), "u1", THREAD, 0, *written_post(body))])
    lease = exchange.lease()
    assert lease is not None
    held = Held(lease, clock)
    return Poster({THREAD.kind: chat}, exchange, held, Directory(clock, exchange, host), clock), host, held


def test_a_fault_of_ours_ends_the_poster() -> None:
    """It is not tried for ever in silence, in front of all other posts of its channel."""
    poster, _, _ = _poster(Broken())

    with pytest.raises(RuntimeError, match="a fault of ours"):
        poster.run()


def test_where_no_file_can_be_written_the_host_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the gateway is full: the post's own host counts its attempts, and shows why."""

    def full(**named: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    poster, host, held = _poster(Chat(), "chart.csv")
    with ThreadPoolExecutor(1) as hands:
        poster.turn(hands)
        wait_until(host.results, "the host is told")
    held.lose()

    [result] = host.results()
    failed = read_result(result.body)
    assert isinstance(failed, Failed)
    assert failed.transient
    assert "No space left on device" in failed.message
