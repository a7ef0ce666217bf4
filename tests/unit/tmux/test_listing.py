"""Reading what tmux lists."""

from datetime import UTC, datetime

import pytest

from core.base.errors import TmuxSilent
from core.model.pane import Receipt, Typing
from core.model.session import LastExit
from core.tmux.listing import read_listing

_STARTED = '/usr/bin/env THE_LOOP_INSTANCE=i-a /bin/sh -c "{ a || b; }; exec'.ljust(96, "x")
_LIVE = f"%3|$2|41|0|||0|0|3.3a|7|/dev/pts/5||||m-1||||{_STARTED}|loop-standing-x"


def test_line_becomes_a_pane() -> None:
    """Every field finds its place, and only receipts that are there are told."""
    listing = read_listing(f"{_LIVE}\n")

    pane = listing.panes[0]
    assert (pane.pane_id, pane.session_id, pane.pid, pane.tag) == ("%3", "$2", 41, "i-a")
    assert (pane.target, pane.dead, pane.exit, pane.in_mode, pane.input_off) == (
        "loop-standing-x",
        False,
        None,
        False,
        False,
    )
    assert pane.receipts == {Receipt.PASTED: "m-1"}
    assert (listing.version, listing.server) == ("3.3a", 7)


@pytest.mark.parametrize(
    ("status", "killed_by", "expected"),
    [
        ("0", "", LastExit(0, None)),
        ("127", "", LastExit(127, None)),
        ("", "9", LastExit(None, 9)),
        ("", "KILL", LastExit(None, 9)),
        ("", "SIGTERM", LastExit(None, 15)),
        ("", "", None),
    ],
)
def test_dead_pane_has_its_exit(status: str, killed_by: str, expected: LastExit | None) -> None:
    """A status, a signal by number or name, or nothing where tmux lost it."""
    listing = read_listing(f"%3|$2|41|1|{status}|{killed_by}|0|0|3.3a|7|/dev/pts/5||||||||{_STARTED}|x\n")

    assert listing.panes[0].exit == expected


def test_shared_pane_counts_for_the_oldest_session() -> None:
    """tmux lists a window once for every session that shows it, by name."""
    line = f"%3|$2|41|0|||0|0|3.3a|7|/dev/pts/5||||||||{_STARTED}|loop|x"

    listing = read_listing(f"{line.replace('$2', '$11').replace('loop|x', 'aaa')}\n{line}\n")

    assert [(pane.session_id, pane.target) for pane in listing.panes] == [("$2", "loop|x")]
    assert listing.sessions == {"%3": frozenset({"$2", "$11"})}


@pytest.mark.parametrize("text", ["gibberish", "%3|$2", _LIVE.replace("|0|", "|maybe|", 1), "\n"])
def test_answer_that_is_not_understood_is_silence(text: str) -> None:
    """A listing that cannot be read says nothing about what lives."""
    with pytest.raises(TmuxSilent, match="listed something else"):
        read_listing(f"{text}\n")


def test_clients_that_can_type_are_told() -> None:
    """Neither control clients nor read-only ones type, nor those of other sessions; those that share the pane do."""
    clients = (
        "client|$2|0|0|1767323045|/dev/pts/1\nclient|$2|1|0|1|client-7\nclient|$2|0|1|1|/dev/pts/2\n"
        "client|$4|0|0|1|/dev/pts/3\nclient||0|0|1|/dev/pts/4\n"
    )

    alone = read_listing(f"{_LIVE}\n{clients}").typing()
    shared = read_listing(f"{_LIVE}\n{_LIVE.replace('$2', '$4')}\n{clients}").typing()

    person = Typing("/dev/pts/1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert alone == {"i-a": (person,)}
    assert set(shared["i-a"]) == {person, Typing("/dev/pts/3", datetime.fromtimestamp(1, UTC))}


def test_nobody_types_where_no_client_is_listed() -> None:
    """Without clients there is nothing to tell, and untagged panes are nobody's."""
    assert read_listing(f"{_LIVE}\n").typing() == {}
    assert read_listing(f"{_LIVE.replace(_STARTED, '')}\nclient|$2|0|0|1|/dev/pts/1\n").typing() == {}


def test_whoever_looks_is_told_whether_or_not_they_can_type() -> None:
    """A read-only client looks at a pane, too; the service's own control client does not."""
    looks = "client|$2|0|1|1|/dev/pts/2\n"

    assert read_listing(f"{_LIVE}\n{looks}").viewed() == {"i-a"}
    assert read_listing(f"{_LIVE}\n{_LIVE.replace('$2', '$4')}\nclient|$4|0|1|1|/dev/pts/2\n").viewed() == {"i-a"}
    assert read_listing(f"{_LIVE}\nclient|$2|1|0|1|client-7\nclient|$5|0|0|1|/dev/pts/3\n").viewed() == frozenset()
    assert read_listing(f"{_LIVE}\n").server == 7
