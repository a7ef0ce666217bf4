"""The database is gone while nobody looks; records and Slack are still there."""

import pytest

from tests.support.product import NAME, Product, end_tmux
from tests.support.tmux import wait_until


def lose_database(product: Product) -> None:
    """Remove the database and what belongs to it."""
    files = list(product.paths.local.glob("the-loop.db*"))
    assert files
    for file in files:
        file.unlink()


def opened(product: Product) -> int:
    """Return how many threads the session has had."""
    return len(product.roots())


def test_the_thread_is_the_sessions_again_and_nothing_is_taken_twice(talking: Product) -> None:
    """A reply that was taken before stays taken, one that comes now is taken, and no start makes a second thread."""
    workspace, service = talking.workspace, talking.serve().wait_swept()
    thread = talking.root()
    workspace.say("alice", "agents", "before the loss", thread)
    talking.wait_reply(thread, "before the loss")
    service.stop()
    lose_database(talking)

    talking.serve().wait_swept()
    talking.wait_reply(thread, "The database of the-loop was lost")
    workspace.say("alice", "agents", "after the loss", thread)
    talking.wait_reply(thread, "after the loss")
    restarted = talking.cli("standing", "restart", NAME)
    talking.wait_reply(thread, "is up again")

    assert restarted.code == 0, restarted.err
    assert (talking.count("before the loss"), talking.count("after the loss")) == (1, 1)
    assert opened(talking) == 1
    assert [event["reason"] for event in talking.events("channel.rebound")] == ["database-lost"]
    assert talking.record()["thread"]["thread"] == thread


def test_a_service_whose_database_is_taken_away_ends_and_the_next_one_goes_on(talking: Product) -> None:
    """It says which file is gone and writes into nothing that nobody finds; no reply is typed twice, none is lost."""
    workspace, service = talking.workspace, talking.serve().wait_swept()
    thread = talking.root()
    workspace.say("alice", "agents", "before the loss", thread)
    talking.wait_reply(thread, "before the loss")
    lose_database(talking)

    code = service.ended()
    status = talking.cli("status", "--json")
    talking.serve().wait_swept()
    talking.wait_reply(thread, "The database of the-loop was lost")
    workspace.say("alice", "agents", "after the loss", thread)
    talking.wait_reply(thread, "after the loss")

    [gone] = talking.events("service.file_gone")
    assert code == 1
    assert str(talking.paths.database) in gone["detail"]
    assert (status.code, status.services["database"]["running"]) == (1, False)
    assert "not there any more" in status.services["database"]["detail"]
    assert (talking.count("before the loss"), talking.count("after the loss")) == (1, 1)
    assert opened(talking) == 1


def test_no_second_thread_while_slack_cannot_be_asked(talking: Product) -> None:
    """The session's start is told in the thread that it has, as soon as that is known."""
    workspace, service = talking.workspace, talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    service.stop()
    end_tmux(talking.socket, talking.environ())
    lose_database(talking)
    workspace.fault("conversations.replies", "ratelimited", 3, seconds=1.0)

    talking.serve().wait_swept()
    waiting = talking.cli("standing", "announce", NAME, "--json").json["sessions"][0]
    talking.wait_event("channel.rebound")
    talking.wait_reply(thread, "The database of the-loop was lost")
    wait_until(lambda: "It is up, since" in talking.roots()[0]["text"], "the announcement is up to date")

    assert waiting["outcome"] in ("waiting", "announced")
    assert opened(talking) == 1


@pytest.mark.parametrize("trouble", ["deleted", "archived"])
def test_a_thread_that_is_gone_as_well_is_left(talking: Product, trouble: str) -> None:
    """Then the session has none, its next start makes a new one, and the old one reaches nobody."""
    workspace, service = talking.workspace, talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Ready.")
    service.stop()
    lose_database(talking)
    if trouble == "deleted":
        workspace.delete("agents", thread)
    else:
        workspace.archive("agents")

    talking.serve().wait_swept()
    talking.wait_event("channel.unbound")
    workspace.archive("agents", False)
    announced = talking.cli("standing", "announce", NAME)

    assert announced.code == 0, announced.err
    assert "it has a new thread" in announced.out
    assert [message["ts"] == thread for message in talking.roots()][-1] is False
