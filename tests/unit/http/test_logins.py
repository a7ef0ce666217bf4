"""Logging in to the page: links that are good once, and browsers that are known by a cookie and a key together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.http.logins import LINK_SECONDS, LOGIN_DAYS, MOST_LINKS, MOST_LOGINS, LinkUsed, Logins
from tests.support.clocks import MovedClock


@pytest.fixture
def clock() -> MovedClock:
    """A clock that is moved."""
    return MovedClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where logins are kept."""
    return tmp_path / "page-logins.json"


@pytest.fixture
def logins(path: Path, clock: MovedClock) -> Logins:
    """Those of a service."""
    return Logins(path, clock)


def test_a_link_is_good_for_one_login(logins: Logins) -> None:
    """Whoever uses it second is told to make another."""
    key = logins.link()
    cookie, own = logins.login(key)

    assert logins.knows(cookie, own)
    with pytest.raises(LinkUsed, match="the-loop page"):
        logins.login(key)


def test_a_link_is_good_for_a_short_time(logins: Logins, clock: MovedClock) -> None:
    """One that lies about opens nothing later."""
    key = logins.link()
    clock.move(seconds=LINK_SECONDS + 1)

    with pytest.raises(LinkUsed):
        logins.login(key)


@pytest.mark.parametrize("key", ["", "x", "é", "\udcff", "a" * 10_000])
def test_what_is_no_key_opens_nothing(logins: Logins, key: str) -> None:
    """Whatever somebody sends."""
    logins.link()

    with pytest.raises(LinkUsed):
        logins.login(key)


def test_cookie_and_key_count_together(logins: Logins) -> None:
    """A cookie that another port of this host has seen opens nothing by itself, and no key goes with another cookie."""
    cookie, own = logins.login(logins.link())
    other_cookie, other = logins.login(logins.link())

    assert not logins.knows(cookie, "")
    assert not logins.knows("", own)
    assert not logins.knows(cookie, other)
    assert not logins.knows(other_cookie, own)
    assert not logins.knows(cookie.partition(".")[0], own)
    assert logins.knows(other_cookie, other)


def test_a_login_outlives_the_service_and_not_its_days(logins: Logins, path: Path, clock: MovedClock) -> None:
    """A restart logs nobody out; after so many days all log in anew."""
    cookie, own = logins.login(logins.link())
    after_restart = Logins(path, clock)

    assert after_restart.knows(cookie, own)
    clock.move(days=LOGIN_DAYS, seconds=1)
    assert not after_restart.knows(cookie, own)


def test_no_secret_is_on_the_disk(logins: Logins, path: Path) -> None:
    """Whoever reads the file, or a backup of it, cannot log in by it; and only we can read it."""
    key = logins.link()
    cookie, own = logins.login(key)
    kept = path.read_text()

    assert not any(secret in kept for secret in (key, own, cookie.partition(".")[2]))
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_browser_is_logged_out_and_then_all(logins: Logins, path: Path) -> None:
    """The others stay; after `--log-out` nobody is known, and no link opens."""
    first, second = logins.login(logins.link()), logins.login(logins.link())
    left = logins.link()
    logins.end(first[0])
    one_less = (logins.knows(*first), logins.knows(*second))

    ended = logins.end_all()

    assert one_less == (False, True)
    assert ended == 1
    assert not logins.knows(*second)
    assert not path.exists()
    with pytest.raises(LinkUsed):
        logins.login(left)


def test_links_and_logins_are_bounded(logins: Logins, path: Path) -> None:
    """Where one comes too many, the oldest goes."""
    links = [logins.link() for _ in range(MOST_LINKS + 1)]
    with pytest.raises(LinkUsed):
        logins.login(links[0])
    made = [logins.login(logins.link()) for _ in range(MOST_LOGINS + 1)]

    assert not logins.knows(*made[0])
    assert logins.knows(*made[-1])
    assert len(json.loads(path.read_text())["logins"]) == MOST_LOGINS


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"logins": [{}]}', b"\xff", b'{"logins": [{"id": "a", "since": "x"}]}']
)
def test_a_file_that_means_nothing_logs_all_out(path: Path, clock: MovedClock, content: bytes) -> None:
    """The page goes on: who wants in makes a link, and the file is whole again."""
    path.write_bytes(content)
    logins = Logins(path, clock)

    assert not logins.knows("a.b", "c")
    assert logins.knows(*logins.login(logins.link()))
