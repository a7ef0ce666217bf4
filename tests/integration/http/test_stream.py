"""The event log as a stream: from where a client was, for as long as it listens."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from core.config.settings import EventLogSettings
from core.http import stream
from core.session.system import System
from tests.support.tmux import PATIENCE, private_tmux
from tests.support.web import Web, serving
from tests.support.world import World


@pytest.fixture
def system() -> Iterator[System]:
    """Give ports without any session, whose event log begins a new file often."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder)
        settings = world.settings()._replace(event_log=EventLogSettings(max_bytes=4096, keep=3))
        made = world.system(settings)
        yield made
        made.close()


@pytest.fixture
def web(system: System) -> Iterator[Web]:
    """Give its API."""
    with serving(system) as running:
        yield running


def emit(system: System, *numbers: int, name: str = "scribe") -> None:
    """Append an event for each number."""
    for number in numbers:
        system.events.emit("standing.said", name=name, message=f"m-{number}")


def test_a_client_hears_what_comes_from_now_on(web: Web) -> None:
    """Of what was before, so much as it asks for; of one session alone, if it names one."""
    emit(web.system, 1, 2, 3)
    with web.client.stream("?last=1") as both, web.client.stream("?name=other") as other:
        first = both.next()
        emit(web.system, 4)
        emit(web.system, 5, name="other")

        heard = [first, both.next(), both.next()]
        alone = other.next()

    assert [told.data["message"] for told in heard] == ["m-3", "m-4", "m-5"]
    assert alone.data["message"] == "m-5"
    assert alone.id == heard[-1].id


def test_a_client_that_comes_back_goes_on_where_it_was(web: Web) -> None:
    """By the header that a browser sends, or by the address, even if another file was begun since."""
    emit(web.system, 1)
    with web.client.stream("?last=1") as before:
        position = before.next().id
    emit(web.system, *range(2, 30))

    for query, headers in (("", {"Last_Event_ID": position}), (f"?after={position}", {})):
        with web.client.stream(query, **headers) as again:
            heard = [again.next().data["message"] for _ in range(28)]
        assert heard == [f"m-{number}" for number in range(2, 30)]


def test_a_browser_that_comes_back_to_an_old_address_goes_on_where_it_was(web: Web) -> None:
    """It repeats the address that it was opened with, and its header says more."""
    emit(web.system, 1, 2, 3)
    first, second, _ = (event["id"] for event in web.client.get("/events").json["events"])
    with web.client.stream(f"?after={first}", Last_Event_ID=second) as again:
        assert again.next().data["message"] == "m-3"


def test_the_log_is_read_page_by_page_without_a_stream(web: Web) -> None:
    """Each answer says where the next begins, and whether there is more."""
    emit(web.system, 1, 2, 3)
    first = web.client.get("/events?last=1").json["events"][0]["id"]
    emit(web.system, 4, 5, 6, 7)

    pages = [web.client.get(f"/events?after={first}&last=3").json]
    pages.append(web.client.get(f"/events?after={pages[0]['end']}&last=3").json)

    assert [[event["message"] for event in page["events"]] for page in pages] == [["m-4", "m-5", "m-6"], ["m-7"]]
    assert [page["complete"] for page in pages] == [False, True]


def test_a_client_whose_place_is_kept_no_more_is_told(web: Web) -> None:
    """Before the oldest that is kept."""
    emit(web.system, 1)
    with web.client.stream("?last=1") as before:
        position = before.next().id
    emit(web.system, *range(2, 400))

    with web.client.stream(Last_Event_ID=position) as again:
        first, second = again.next(), again.next()

    assert first.kind == "lost"
    assert int(second.data["message"][2:]) > 2


@pytest.mark.parametrize(("query", "headers"), [("?after=x", {}), ("", {"Last_Event_ID": "../x"})])
def test_what_is_no_position_is_refused(web: Web, query: str, headers: dict[str, str]) -> None:
    """Rather than taken for the beginning."""
    with web.client.stream(query, **headers) as refused:
        assert refused.status == 400


def test_a_silent_stream_shows_that_it_is_still_there(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a comment, with the position that the client may come back to."""
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.2)
    emit(web.system, 1)
    with web.client.stream() as quiet:
        quiet.lines()
        beat = quiet.lines()

    assert beat[0] == ": still there"
    assert beat[1].removeprefix("id: ") == web.system.events.latest(0).end


def test_there_are_so_many_streams_and_no_more(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is closed makes place for another."""
    monkeypatch.setattr(stream, "MOST_STREAMS", 3)
    with ExitStack() as held:
        open_ones = [held.enter_context(web.client.stream()) for _ in range(3)]
        assert [one.lines()[0] for one in open_ones] == ["retry: 2000"] * 3
        with web.client.stream() as more:
            refused = more.status, more.response.headers["Retry-After"]
    deadline = time.monotonic() + PATIENCE
    while True:
        emit(web.system, 1)  # a server learns at its next word that a client has gone
        with web.client.stream() as again:
            if again.status == 200 or time.monotonic() > deadline:
                break

    assert refused == (503, "2")
    assert again.status == 200


def test_the_end_of_the_service_ends_its_streams(system: System) -> None:
    """At once, and in order."""
    ended = threading.Event()
    with ExitStack() as held:
        with serving(system) as running:
            listening = held.enter_context(running.client.stream())
            listening.lines()
        with pytest.raises(EOFError):
            listening.next()
        ended.set()

    assert ended.is_set()


def test_a_slow_reader_holds_nobody_up(web: Web) -> None:
    """It goes on from its own place; others hear what comes."""
    with web.client.stream() as slow, web.client.stream() as quick:
        slow.lines()
        quick.lines()
        emit(web.system, *range(1, 20))
        heard = [quick.next().data["message"] for _ in range(19)]
        late = [slow.next().data["message"] for _ in range(19)]

    assert heard == late
