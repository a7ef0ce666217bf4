"""Reading what tmux lists."""

from datetime import UTC, datetime

import pytest

from core.base.errors import TmuxSilent
from core.model.pane import Receipt, Typing
from core.model.session import LastExit
from core.tmux.guard import ANSWER
from core.tmux.listing import END, Listing, read_listing

_STARTED = '/usr/bin/env THE_LOOP_INSTANCE=i-a /bin/sh -c "{ a || b; }; exec'.ljust(96, "x")
_LIVE = f"%3|$2|41|0|||0|0|3.3a|7|/dev/pts/5||||m-1||||{_STARTED}|loop-standing-x"


def listed(text: str) -> Listing:
    """Read an answer that consists of these lines."""
    return read_listing("".join(f"{ANSWER}{line}\n" for line in text.removesuffix("\n").split("\n")) + f"{END}\n")


@pytest.mark.parametrize("out", ["", "\n", f"{ANSWER}{_LIVE}\n", "end\n", f"x{END}\n"])
def test_an_answer_without_its_end_is_none(out: str) -> None:
    """A program called tmux that prints nothing has not said that nothing lives."""
    with pytest.raises(TmuxSilent, match="did not answer"):
        read_listing(out)


def test_an_answer_without_panes_tells_of_none() -> None:
    """It has its end, so it was given."""
    assert read_listing(f"{END}\n") == Listing((), {})


def test_what_a_hook_of_a_persons_prints_is_no_part_of_the_answer() -> None:
    """In a server of theirs it may stand anywhere in it."""
    listing = read_listing(f"hello\n{ANSWER}{_LIVE}\nhello\n\n{END}\nhello\n")

    assert [pane.pane_id for pane in listing.panes] == ["%3"]


def test_line_becomes_a_pane() -> None:
    """Every field finds its place, and only receipts that are there are told."""
    listing = listed(f"{_LIVE}\n")

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
    listing = listed(f"%3|$2|41|1|{status}|{killed_by}|0|0|3.3a|7|/dev/pts/5||||||||{_STARTED}|x\n")

    assert listing.panes[0].exit == expected


def test_shared_pane_counts_for_the_oldest_session() -> None:
    """tmux lists a window once for every session that shows it, by name."""
    line = f"%3|$2|41|0|||0|0|3.3a|7|/dev/pts/5||||||||{_STARTED}|loop|x"

    listing = listed(f"{line.replace('$2', '$11').replace('loop|x', 'aaa')}\n{line}\n")

    assert [(pane.session_id, pane.target) for pane in listing.panes] == [("$2", "loop|x")]
    assert listing.sessions == {"%3": frozenset({"$2", "$11"})}


@pytest.mark.parametrize("text", ["gibberish", "%3|$2", _LIVE.replace("|0|", "|maybe|", 1), "\n"])
def test_answer_that_is_not_understood_is_silence(text: str) -> None:
    """A listing that cannot be read says nothing about what lives."""
    with pytest.raises(TmuxSilent, match="listed something else"):
        listed(f"{text}\n")


def test_clients_that_can_type_are_told() -> None:
    """Neither control clients nor read-only ones type, nor those of other sessions; those that share the pane do."""
    clients = (
        "client|$2|0|0|1767323045|/dev/pts/1\nclient|$2|1|0|1|client-7\nclient|$2|0|1|1|/dev/pts/2\n"
        "client|$4|0|0|1|/dev/pts/3\nclient||0|0|1|/dev/pts/4\n"
    )

    alone = listed(f"{_LIVE}\n{clients}").typing()
    shared = listed(f"{_LIVE}\n{_LIVE.replace('$2', '$4')}\n{clients}").typing()

    person = Typing("/dev/pts/1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert alone == {"i-a": (person,)}
    assert set(shared["i-a"]) == {person, Typing("/dev/pts/3", datetime.fromtimestamp(1, UTC))}


def test_nobody_types_where_no_client_is_listed() -> None:
    """Without clients there is nothing to tell, and untagged panes are nobody's."""
    assert listed(f"{_LIVE}\n").typing() == {}
    assert listed(f"{_LIVE.replace(_STARTED, '')}\nclient|$2|0|0|1|/dev/pts/1\n").typing() == {}


def test_whoever_looks_is_told_whether_or_not_they_can_type() -> None:
    """A read-only client looks at a pane, too; the service's own control client does not."""
    looks = "client|$2|0|1|1|/dev/pts/2\n"

    assert listed(f"{_LIVE}\n{looks}").viewed() == {"i-a"}
    assert listed(f"{_LIVE}\n{_LIVE.replace('$2', '$4')}\nclient|$4|0|1|1|/dev/pts/2\n").viewed() == {"i-a"}
    assert listed(f"{_LIVE}\nclient|$2|1|0|1|client-7\nclient|$5|0|0|1|/dev/pts/3\n").viewed() == frozenset()
    assert listed(f"{_LIVE}\n").server == 7
