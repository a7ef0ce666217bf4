"""How a text is cut into pastes that a harness takes for typed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.framing import most_pieces, pieces_of, shows_text
from core.model.harness import Echo, IdPolicy, Traits

CUT = Traits(IdPolicy.PREASSIGNED, paste_lines=2, paste_chars=70, paste_pieces=5)
ROOM = replace(CUT, paste_pieces=9999)
TEXTS = st.text(
    st.sampled_from("ab \n\té\u0301\U0001f600\u200d\U0001f469\U0001f3fd\U0001f1e9\U0001f1ea한"), max_size=600
)


def units(text: str) -> int:
    """Return the length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


def cut(text: str) -> tuple[str, ...]:
    """Return the text's pieces, however many."""
    pieces = pieces_of(text, ROOM)
    assert pieces is not None
    return pieces


def test_a_harness_without_such_a_limit_gets_the_text_whole() -> None:
    """Nothing is cut that need not be."""
    text = "line\n" * 100

    assert pieces_of(text, Traits(IdPolicy.NONE)) == (text,)


def test_a_piece_ends_at_its_second_newline() -> None:
    """The newline stands at the end of a piece, never at the beginning of the next."""
    assert pieces_of("one\ntwo\nthree\nfour\nfive ", CUT) == ("one\ntwo\n", "three\nfour\n", "five ")


@given(TEXTS)
def test_pieces_are_the_text_and_keep_within_the_limits(text: str) -> None:
    """Put together they are what was given; none has a third newline or too many UTF-16 units."""
    pieces = cut(text)

    assert "".join(pieces) == text
    assert all(piece and piece.count("\n") <= 2 and units(piece) <= 70 for piece in pieces)
    assert len(pieces) <= most_pieces(text, ROOM)


@pytest.mark.parametrize("family", ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "e\u0301"])
def test_a_long_line_without_blanks_is_cut_between_graphemes(family: str) -> None:
    """Each piece holds whole ones only."""
    pieces = cut(family * 100)

    assert len(pieces) > 1
    assert all(piece == family * (len(piece) // len(family)) for piece in pieces)


def test_a_long_line_is_cut_behind_a_blank() -> None:
    """Words stay whole."""
    pieces = cut("swallow " * 20)

    assert all(piece == "swallow " * (len(piece) // 8) for piece in pieces)


def test_what_no_rule_can_cut_is_cut_all_the_same() -> None:
    """A thousand accents on one letter still go in."""
    pieces = cut("e" + "\u0301" * 1000)

    assert "".join(pieces) == "e" + "\u0301" * 1000
    assert all(units(piece) <= 70 for piece in pieces)


def test_more_pieces_than_are_read_in_a_moment_are_none() -> None:
    """A harness that must read them one after the other is given a file instead."""
    assert pieces_of("a\n" * 10, CUT) is not None
    assert pieces_of("a\n" * 11, CUT) is None


ECHO = Echo("\u276f", r"\[Pasted text #\d+")


@pytest.mark.parametrize(
    ("screen", "text", "shown"),
    [
        ("\u276f [ann via cli #k3f9x2] go on \n──\n ? help", "[ann via cli #k3f9x2] go on ", True),
        ("\u276f [ann via cli #k3f9x2]\n  go on \n──", "[ann via cli #k3f9x2] go on ", True),
        ("\u276f \n──", "[ann via cli #k3f9x2] go on ", False),
        ("\u276f [ann via cli #k3f9x2] go on\n● done\n\u276f \n──", "[ann via cli #k3f9x2] go on ", False),
        ("\u276f [Pasted text #1 +9 lines]", "[ann via cli #k3f9x2] a long one", True),
        ("\u276f [Pasted text #1 +9 lines]\n● done\n\u276f ", "[ann via cli #k3f9x2] a long one", False),
        ("  of many rows\n  the last one\n──", "the first\nof many rows\nthe last one ", True),
        ("\u276f 日本", "日本 ", True),
    ],
    ids=["one row", "two rows", "empty", "the one before", "folded", "folded before", "its end alone", "no letters"],
)
def test_a_text_is_shown_where_its_end_stands_in_the_input_line(screen: str, text: str, shown: bool) -> None:
    """Wrapped or folded; what stands above the line was sent before."""
    assert shows_text(screen, text, ECHO) is shown
