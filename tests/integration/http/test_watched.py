"""Requests of a session without a thread: asked where somebody is there who answers, else in the terminal alone."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from core.delivery import permission_requests
from core.delivery.permission_requests import UNWATCHED
from core.lifecycle.start import start_standing
from tests.support.hook import Hook, key_of
from tests.support.talking import record_of, talking
from tests.support.tmux import private_tmux, wait_until
from tests.support.web import Web, serving
from tests.support.world import ACTOR, World

NAME = "scribe"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """Give the API of a the-loop without a chat, whose session runs, and what looks after requests."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder, declared=(NAME,))
        world.cwd.mkdir()
        system = talking(world)
        assert start_standing(system, NAME, ACTOR).ok
        with serving(system) as running:
            stopping = threading.Event()
            looking = threading.Thread(target=running.requests.run, args=(stopping,))
            looking.start()
            yield running
            stopping.set()
            looking.join()
        system.close()


def asks(web: Web, name: str) -> Hook:
    """Ask for a permission, as the session's hook does."""
    return Hook(web.requests, record_of(web.system)[1], key_of(web.system, name))


def test_without_a_thread_it_is_asked_in_the_terminal_alone(web: Web) -> None:
    """At once: a program may show its own dialog only once it has our answer. A plain stream is nobody who answers."""
    with web.client.stream() as listening:
        listening.lines()
        [told] = asks(web, "k-alone").lines()

    assert "no thread in which somebody could answer" in told["undecided"]
    assert web.client.get("/requests").json["requests"] == []


def test_whoever_says_that_they_answer_is_asked(web: Web) -> None:
    """And hears of it by the stream."""
    with web.client.stream("?answers=true") as page:
        page.lines()
        hook = asks(web, "k-page")
        asked = page.until("standing.asked")
        answered = web.client.post("/requests/answer", {"id": asked.data["message"], "allow": True})
        lines = hook.lines()

    assert answered.status == 200, answered.body
    assert lines[1] == {"answer": {"allowed": True}}


def test_once_all_have_left_the_terminal_is_left_to_answer(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a moment, in which somebody may come back."""
    monkeypatch.setattr(permission_requests, "_GRACE", timedelta(seconds=1))
    with web.client.stream("?answers=true") as page:
        page.lines()
        hook = asks(web, "k-left")
        hook.wait_until_shown()
    web.system.events.emit("service.started")  # a server learns at its next word that a client has gone
    lines = hook.lines()

    assert lines[-1] == {"undecided": UNWATCHED}
    wait_until(lambda: not web.client.get("/requests").json["requests"], "nothing is open")
