"""The SDK: the same calls in the process, at the service's socket and at its port; and for asyncio."""

import asyncio
import http.client
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path

import pytest

import the_loop
from core.base.errors import CoreError, InvalidValue, NameTaken, NotRunning, UnknownLoop, UnknownRequest, UnknownSession
from core.lifecycle.start import start_standing
from core.model.session import Binding
from core.sdk import aio, loop
from core.sdk.loop import TheLoop
from core.sdk.transport import Local, OutcomeUnknown, Remote, ServiceUnreachable
from tests.support.hook import Hook, key_of
from tests.support.talking import record_of, talking
from tests.support.tmux import PATIENCE, private_tmux, wait_until
from tests.support.web import Web, serving
from tests.support.world import ACTOR, World, events

NAME = "scribe"
ROOT = Path(__file__).parents[3]
WAYS = ("process", "socket", "port")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    """Give the API of a the-loop whose session `scribe` runs, at its socket and at a port."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder, declared=(NAME, "other"))
        world.cwd.mkdir()
        system = talking(world)
        system = system.__class__(
            **{
                **system.__dict__,
                "settings": system.settings._replace(service=system.settings.service._replace(port=0)),
            }
        )
        assert start_standing(system, NAME, ACTOR).ok
        with serving(system) as running:
            yield running
        system.close()


@pytest.fixture(params=WAYS)
def ours(web: Web, request: pytest.FixtureRequest) -> TheLoop:
    """Give a the-loop as the SDK has it, by each way."""
    way: str = request.param
    if way == "process":
        return TheLoop(Local(web.system, "cli:ann"))
    if way == "socket":
        return the_loop.connect(socket=web.client.path, environ={})
    return the_loop.connect(url=web.url, token=web.token)


def test_what_there_is_is_the_same_by_every_way(web: Web, ours: TheLoop) -> None:
    """Typed: times are aware, what is not there is None."""
    standing, direct = ours.standing, TheLoop(Local(web.system, "cli:ann")).standing

    session = standing.get(NAME)

    assert standing.list() == direct.list()
    assert session == direct.get(NAME)
    assert (session.live, session.running, session.hold) == ("live", True, None)
    assert session.started_at is not None
    assert session.started_at.tzinfo is UTC
    assert standing.screen(NAME, 5).ended is False
    assert standing.logs(NAME, 5).screen is not None
    assert standing.queue(NAME).limit == 100
    assert ours.loops.list().loops == ()
    assert ours.status().services is not None


def test_messages_are_said_queued_and_cancelled(ours: TheLoop) -> None:
    """Each answer says what is known."""
    said = ours.standing.say(NAME, "hello", actor="bob")
    paused = ours.standing.pause(NAME, "lunch")
    waits = ours.standing.say(NAME, "later", wait=0)
    [queued] = ours.standing.queue(NAME, text=True).messages
    cancelled = ours.standing.cancel(waits.message_id)
    resumed = ours.standing.control(NAME, "resume")

    assert said.delivered
    assert paused.ok
    hold = paused.sessions[0].hold
    assert hold is not None
    assert (hold.kind, hold.reason) == ("paused", "lunch")
    assert (queued.id, queued.text) == (waits.message_id, "later")
    assert cancelled.state == "cancelled"
    assert resumed.sessions[0].outcome == "unpaused"


def test_sessions_and_loops_are_made_and_ended(ours: TheLoop) -> None:
    """With the same arguments."""
    made = ours.standing.create("two", prompt="Look.", description="a second one", start=False, restart="on-failure")
    loops = ours.loops.create(NAME, "look around", interval="5m", keep_alive=True)
    assert loops.loop is not None
    paused, ended = ours.loops.pause(loops.loop.id), ours.loops.stop(loops.loop.id, "enough")
    deleted = ours.standing.delete("two")

    assert (made.sessions[0].description, made.sessions[0].running) == ("a second one", False)
    assert (loops.loop.interval, loops.loop.keep_alive) == ("5m", True)
    assert paused.loop is not None
    assert paused.loop.status == "paused"
    assert ended.loop is not None
    assert (ended.loop.status, ended.loop.reason) == ("stopped", "enough")
    assert deleted.sessions[0].outcome == "deleted"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda ours: ours.standing.get("nope"), UnknownSession),
        (lambda ours: ours.standing.say("other", "hi"), NotRunning),
        (lambda ours: ours.standing.say(NAME, ""), InvalidValue),
        (lambda ours: ours.standing.say(NAME, "hi", wait=301), InvalidValue),
        (lambda ours: ours.standing.create(NAME), NameTaken),
        (lambda ours: ours.standing.create("x", cwd="here"), InvalidValue),
        (lambda ours: ours.standing.control(NAME, "dance"), InvalidValue),
        (lambda ours: ours.loops.run("loop_none"), UnknownLoop),
        (lambda ours: ours.post("other", "hi"), CoreError),
    ],
)
def test_an_error_is_the_same_class_by_every_way(
    ours: TheLoop, call: Callable[[TheLoop], object], kind: type[CoreError]
) -> None:
    """With its code and its remedy."""
    with pytest.raises(kind) as caught:
        call(ours)

    assert caught.value.code
    assert caught.value.remedy


def test_events_are_listed_and_followed(web: Web, ours: TheLoop) -> None:
    """From a position on, of one session."""
    web.system.events.emit("standing.said", name=NAME, message="m-first")
    [first] = ours.events.latest(1, name=NAME)
    following = ours.events.follow(after=first.id, name=NAME)
    web.system.events.emit("standing.said", name="other")
    web.system.events.emit("standing.said", name=NAME, message="m-second")

    second = next(following)
    following.close()  # type: ignore[attr-defined]
    everything = ours.events.follow(after="0-0")
    oldest = next(everything)
    everything.close()  # type: ignore[attr-defined]

    assert (first.event, first.data["message"]) == ("standing.said", "m-first")
    assert (second.name, second.data["message"]) == (NAME, "m-second")
    assert oldest.ts < first.ts


def test_what_waits_for_a_person_needs_the_service(web: Web) -> None:
    """Which is named where there is none; an id that nobody has is named as well."""
    ours = the_loop.connect(url=web.url, token=web.token)

    with pytest.raises(ServiceUnreachable, match="no service is running"):
        TheLoop(Local(web.system, "cli:ann")).requests.list()
    with pytest.raises(UnknownRequest):
        ours.requests.allow("q-none")
    assert ours.requests.list() == ()


def test_every_call_is_there_for_asyncio_too() -> None:
    """Under the same name, with the same parameters, awaited."""
    for name in ("Standing", "LoopsOf", "Requests", "Events", "TheLoop"):
        one, other = getattr(loop, name), getattr(aio, name)
        calls = {key: value for key, value in vars(one).items() if callable(value) and not key.startswith("_")}
        awaited = {key: value for key, value in vars(other).items() if callable(value) and not key.startswith("_")}
        assert calls.keys() == awaited.keys()
        for key, call in calls.items():
            assert inspect.signature(call).parameters == inspect.signature(awaited[key]).parameters, (name, key)
            if key != "follow":
                assert inspect.iscoroutinefunction(awaited[key])
                assert inspect.signature(call).return_annotation == inspect.signature(awaited[key]).return_annotation


async def test_calls_are_awaited_side_by_side(web: Web) -> None:
    """None holds up the event loop."""
    async with the_loop.connect_async(url=web.url, token=web.token) as ours:
        sessions, status, one, two = await asyncio.gather(
            ours.standing.list(), ours.status(), ours.standing.say(NAME, "one"), ours.standing.say(NAME, "two")
        )
        follower = ours.events.follow(after=(await ours.events.latest(1))[0].id)
        web.system.events.emit("standing.said", name=NAME, message="m-async")
        event = await anext(follower)

    assert len(sessions) == 2
    assert status.ok
    assert one.delivered
    assert two.delivered
    assert event.data["message"] == "m-async"


def test_a_call_whose_connection_breaks_is_done_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent again under its key, and gets the first's answer."""
    ours, broken = the_loop.connect(url=web.url, token=web.token), list[bytes]()
    whole = http.client.HTTPResponse.read

    def read(response: http.client.HTTPResponse, amount: int | None = None) -> bytes:
        found = whole(response, amount) if amount is not None else whole(response)
        if not broken:
            broken.append(found)
            raise http.client.IncompleteRead(found[:5])
        return found

    before = len(events(web.system, "standing.said"))
    monkeypatch.setattr(http.client.HTTPResponse, "read", read)
    said = ours.standing.say(NAME, "only once over a bad line")

    assert said.delivered
    assert len(broken) == 1
    assert len(events(web.system, "standing.said")) == before + 1


def test_where_nobody_answers_the_place_and_the_remedy_are_named(tmp_path: Path) -> None:
    """A port that refuses, a socket that is not there, an address that cannot be one, no token."""
    with pytest.raises(ServiceUnreachable, match=r"127\.0\.0\.1:1.*the-loop status"):
        the_loop.connect(url="http://127.0.0.1:1", token="x").standing.list()
    with pytest.raises(ServiceUnreachable, match=r"http\.sock"):
        the_loop.connect(socket=tmp_path / "http.sock", token="x").standing.list()
    for url in ("127.0.0.1:4114", "https://127.0.0.1", "http://127.0.0.1/api", "ftp://x"):
        with pytest.raises(InvalidValue, match="not the address"):
            the_loop.connect(url=url, token="x")
    with pytest.raises(InvalidValue, match="no token"):
        the_loop.connect(socket=tmp_path / "http.sock", environ={})


def test_a_line_that_keeps_breaking_leaves_the_outcome_unknown(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than called done, or not done."""
    from core.sdk import transport

    def read(_: object, amount: int | None = None) -> bytes:
        raise ConnectionResetError("reset")

    monkeypatch.setattr(transport, "_BACK_SECONDS", 0.01)
    monkeypatch.setattr(http.client.HTTPResponse, "read", read)
    with pytest.raises(OutcomeUnknown, match="look whether"):
        Remote(web.token, url=web.url).call("POST", "/standing-sessions/pause", {"name": "other"})


def test_importing_it_imports_nothing_heavy() -> None:
    """Neither a library of others, nor what a call needs; asking over HTTP needs no more than the standard library."""
    heavy = {"asyncio", "sqlite3", "pydantic", "yaml", "click", "logging", "http", "ssl", "subprocess", "inspect"}
    others = {"starlette", "uvicorn", "anyio", "mcp", "aiohttp", "slack_bolt", "prometheus_client", "fastapi"}
    asks = """
try:
    the_loop.connect(url='http://127.0.0.1:1', token='x').standing.list()
except the_loop.CoreError:
    pass"""

    def imported(call: str) -> set[str]:
        code = f"import sys, the_loop\n{call}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
        return set(done.stdout.split())

    assert (heavy | others).isdisjoint(imported(""))
    assert (others | {"sqlite3", "pydantic", "yaml", "click", "asyncio"}).isdisjoint(imported(asks))


def test_all_that_it_names_is_there() -> None:
    """Types and errors too, though they are imported at their first use."""
    assert {name for name in the_loop.__all__ if getattr(the_loop, name, None) is None} == set()
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = the_loop.nothing_such


def test_in_the_process_no_web_framework_is_imported(web: Web) -> None:
    """The API's operations are run without it."""
    config = web.system.paths.root.parent / "sdk.yaml"
    config.write_text(f"state: {{root: {web.system.paths.root}}}\nrouting: {{tmux: {{socketName: none-such}}}}\n")
    code = (
        "import sys, pathlib, the_loop; the_loop.connect(pathlib.Path(sys.argv[1])).standing.list();"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    words, env = [sys.executable, "-c", code, str(config)], {**os.environ, "TMUX_TMPDIR": str(config.parent)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT, env=env)

    assert {"starlette", "uvicorn", "fastapi", "anyio"}.isdisjoint(done.stdout.split())


def test_a_permission_is_given_by_the_sdk() -> None:
    """As a program does that watches for them."""
    with private_tmux() as private:
        folder = private.folder / "w"
        folder.mkdir()
        world = World(folder, private.server.socket_name, private.folder, declared=(NAME,), slack=True)
        world.cwd.mkdir()
        system = talking(world)
        assert start_standing(system, NAME, ACTOR).ok
        uid, instance = record_of(system)
        system.bindings.bind(Binding("slack", "T1", "C1", "1700.1", uid, NAME, system.clock.now()))
        with serving(system) as running:
            ours = the_loop.connect(socket=running.client.path, environ={})
            hook = Hook(running.requests, instance, key_of(system))
            wait_until(lambda: ours.requests.list(NAME), "it is asked", PATIENCE)
            [asked] = ours.requests.list()
            answered = ours.requests.allow(asked.id)
            lines = hook.lines()
        system.close()

    assert (asked.kind, asked.tool, asked.waits) == ("permission", "Bash", True)
    assert (answered.state, answered.allowed) == ("answered", True)
    assert lines[1] == {"answer": {"allowed": True}}
