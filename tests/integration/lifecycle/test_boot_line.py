"""What a boot says: a line in the channel for all that is usual, and a reply in a thread for what is not."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from core.lifecycle.everything import start_all, stop_all
from core.lifecycle.start import start_standing
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.reasons import said
from core.model.session import Binding, Outcome
from core.session.system import System
from tests.support.world import ACTOR, World, declaring, definition, outcomes, recorded

K = OutboundKind
NAMES = ("ada", "bob", "cid")


@pytest.fixture
def system(world: World) -> System:
    """Ports of a machine with three sessions that have threads in one channel."""
    world = replace(world, slack=True, declared=NAMES)
    return world.system()


def committed(system: System) -> list[NewPost]:
    """Return what was committed since this was asked last, in order; nothing of it is posted."""
    found: list[NewPost] = []
    while due := system.outbox.due("slack", system.clock.now()):
        for row in due:
            found.append(row.post)
            sending = system.outbox.advance(row, PostState.SENDING)
            system.outbox.advance(sending, PostState.FAILED, because=said("posted by nobody: this test has no service"))
    return found


def announced(system: System, *names: str) -> None:
    """Start the sessions, give each its thread, and end them with the machine."""
    start_all(system, ACTOR)
    for number, name in enumerate(names):
        place = ("slack", "T1", "C1", f"{number + 1}.1", recorded(system, name).uid, name)
        system.bindings.bind(Binding(*place, system.clock.now()))
    stop_all(system, ACTOR)
    committed(system)


def kinds(posts: list[NewPost], name: str) -> list[OutboundKind]:
    """Return the kinds of the posts about a session."""
    return [post.kind for post in posts if post.name == name]


def test_a_boot_of_several_sessions_is_one_line(system: System) -> None:
    """No thread gets a reply for what is usual; each announcement is brought up to date."""
    announced(system, *NAMES)

    start_all(system, ACTOR)

    posts = committed(system)
    [line] = [post for post in posts if post.kind is K.HOST]
    assert line.text == f"`{socket.gethostname()}` is up: 3 resumed."
    assert (line.channel, line.thread, line.channel_kind) == ("C1", "", "slack")
    assert {name: kinds(posts, name) for name in NAMES} == {name: [K.ROOT_UPDATE] for name in NAMES}


def test_a_new_session_is_announced_and_counted(system: System) -> None:
    """Its announcement is a message of the channel already; the line counts it."""
    announced(system, *NAMES)
    more = declaring(system, *system.settings.standing.sessions, definition("dan", slack=True))

    start_all(more, ACTOR)

    posts = committed(more)
    assert kinds(posts, "dan") == [K.ROOT]
    assert [post.text for post in posts if post.kind is K.HOST] == [
        f"`{socket.gethostname()}` is up: 3 resumed, 1 started with a new conversation."
    ]


def test_a_session_that_failed_is_named_and_its_thread_told(system: System) -> None:
    """With the reason, and what to type; the others are one count."""
    announced(system, *NAMES)
    broken = definition("cid", slack=True, harness="missing")
    kept = [each for each in system.settings.standing.sessions if each.name != "cid"]

    answer = start_all(declaring(system, *kept, broken), ACTOR)

    posts = committed(system)
    [line] = [post for post in posts if post.kind is K.HOST]
    [note] = [post for post in posts if post.name == "cid" and post.kind is K.NOTE]
    assert outcomes(answer)["cid"] is Outcome.FAILED
    assert line.text == f"`{socket.gethostname()}` is up: 2 resumed, 1 failed (`cid`; `the-loop status` tells why)."
    assert note.text.startswith("`cid` could not be started: ")
    assert "is not on" in note.text
    assert note.text.endswith("To try again: `the-loop standing start cid`")


def test_a_boot_that_starts_nothing_says_nothing(system: System) -> None:
    """All are alive: only the service was started anew."""
    announced(system, *NAMES)
    start_all(system, ACTOR)
    committed(system)

    start_all(system, ACTOR)

    assert committed(system) == []


def test_a_first_boot_has_announcements_and_no_line(system: System) -> None:
    """Each is a message of the channel already."""
    start_all(system, ACTOR)

    assert [post.kind for post in committed(system)] == [K.ROOT] * 3


def test_the_only_session_of_a_channel_is_told_of_in_its_thread(world: World) -> None:
    """One post in either case, and the thread is where its people are."""
    system = replace(world, slack=True, declared=("ada",)).system()
    announced(system, "ada")

    start_all(system, ACTOR)

    assert [post.kind for post in committed(system)] == [K.BOOT, K.ROOT_UPDATE]


def test_a_start_by_name_replies_in_its_thread(system: System) -> None:
    """Somebody has asked for it."""
    announced(system, *NAMES)

    start_standing(system, "ada", ACTOR)

    assert [post.kind for post in committed(system)] == [K.BOOT, K.ROOT_UPDATE]


def test_a_session_without_a_chat_is_in_no_line(world: World) -> None:
    """It has nobody in a channel who could miss it."""
    system = replace(world, declared=NAMES).system()
    start_all(system, ACTOR)
    stop_all(system, ACTOR)

    start_all(system, ACTOR)

    assert committed(system) == []
