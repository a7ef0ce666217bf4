"""Which thread belongs to which session."""

from dataclasses import replace

import pytest

from core.base.errors import Refused
from core.store.database import Database
from core.store.sessions import Bindings
from tests.unit.store.samples import a_binding


@pytest.fixture
def bindings(database: Database) -> Bindings:
    """Return no bindings."""
    return Bindings(database)


def test_a_binding_is_found_from_both_ends(bindings: Bindings) -> None:
    """By its thread, by its session, and among all of its kind."""
    bindings.bind(a_binding())

    assert bindings.of_thread("slack", "T1", "C1", "1700000000.000100") == a_binding()
    assert bindings.of_session("s-scribe", "slack") == a_binding()
    assert bindings.all("slack") == (a_binding(),)


@pytest.mark.parametrize("part", ["channel_kind", "team", "channel", "thread"])
def test_a_thread_is_all_four_parts(bindings: Bindings, part: str) -> None:
    """The same ts in another channel, team or chat is another thread."""
    bindings.bind(a_binding())
    asked = {"channel_kind": "slack", "team": "T1", "channel": "C1", "thread": "1700000000.000100", part: "other"}

    assert bindings.of_thread(**asked) is None


def test_a_second_binding_replaces_the_first(bindings: Bindings) -> None:
    """One thread a session and kind of channel; binding the same again is fine."""
    bindings.bind(a_binding())
    bindings.bind(a_binding(thread="17.2"))
    bindings.bind(a_binding(thread="17.2"))
    bindings.bind(a_binding(channel_kind="other"))

    assert bindings.of_thread("slack", "T1", "C1", "1700000000.000100") is None
    assert bindings.all("slack") == (a_binding(thread="17.2"),)
    assert bindings.of_session("s-scribe", "other") == a_binding(channel_kind="other")


def test_a_thread_is_not_taken_from_another_session(bindings: Bindings) -> None:
    """A reply must never reach another session than the one whose thread it is in."""
    bindings.bind(a_binding())
    bindings.bind(a_binding(uid="s-b", name="b", thread="17.2"))

    with pytest.raises(Refused, match="belongs to 'scribe' already"):
        bindings.bind(a_binding(uid="s-b", name="b"))

    assert bindings.of_session("s-b", "slack") == a_binding(uid="s-b", name="b", thread="17.2")


def test_a_name_created_anew_inherits_no_thread(bindings: Bindings) -> None:
    """Threads belong to the uid, not to the name."""
    bindings.bind(a_binding())

    assert bindings.of_session("s-another", "slack") is None


def test_unbinding_tells_what_was_bound(bindings: Bindings) -> None:
    """The binding comes back once; after that there is none."""
    bindings.bind(a_binding())

    first, second = bindings.unbind("s-scribe", "slack"), bindings.unbind("s-scribe", "slack")

    assert (first, second) == (replace(a_binding()), None)
    assert bindings.all("slack") == ()
