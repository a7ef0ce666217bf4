"""How a message is cleaned, framed and found again."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.framing import (
    PASTE_END,
    PASTE_START,
    clean,
    compose,
    frame_name,
    framed,
    markers_in,
    provable,
    takes,
)
from core.domain.harness import IdPolicy, PasteStyle, Traits
from core.domain.message import Kind, NewMessage
from core.errors import InvalidValue

BRACKETED = Traits(IdPolicy.PREASSIGNED, evidence=True)
CUT = Traits(IdPolicy.PREASSIGNED, evidence=True, paste_lines=2, paste_chars=700, paste_pieces=700)
PLAIN = Traits(IdPolicy.NONE, paste=PasteStyle.PLAIN)
FOLDER = Path("/state/sessions/s-1")
ANY_TEXT = st.text(st.characters(codec=None), min_size=1)


def message(text: str, *, who: str = "alice", via: str = "slack", raw: bool = False) -> NewMessage:
    """Return a message with a fixed marker."""
    at = datetime(2026, 11, 29, tzinfo=UTC)
    return NewMessage("m-1", "k", "s-1", "scribe", 1, Kind.SAY, "cli:a", who, via, "k3f9x2", text, raw, 0, at)


def says_something(text: str) -> bool:
    """Tell whether cleaning leaves a text."""
    try:
        clean(text)
    except InvalidValue:
        return False
    return True


def test_line_ends_become_newlines_and_are_not_counted_as_dropped() -> None:
    """CRLF and CR are one line end; a CR would submit."""
    cleaned = clean("a\r\nb\rc")

    assert (cleaned.text, cleaned.dropped) == ("a\nb\nc", 0)


@pytest.mark.parametrize(
    "bad", ["\x00", "\x03", "\x1b", "\x7f", "\x85", "\x9b", "\u202e", "\u2066", "\u200f", "\ud800"]
)
def test_what_is_no_text_is_dropped_and_counted(bad: str) -> None:
    """Controls, direction marks and broken surrogates go, and their number is told."""
    cleaned = clean(f"a{bad}b{bad}")

    assert (cleaned.text, cleaned.dropped) == ("ab", 2)


@pytest.mark.parametrize("text", ["", "  \n\t", "\x1b\x00", "\u202e"])
def test_a_message_without_text_is_refused(text: str) -> None:
    """Nothing, blanks and controls alone are no message."""
    with pytest.raises(InvalidValue, match="empty"):
        clean(text)


def test_the_frame_says_who_and_where() -> None:
    """A person's message names them, their way and the marker."""
    text = framed(message("do it"))

    assert text == "[alice via slack #k3f9x2] do it "


def test_an_agents_message_is_framed_as_an_agents() -> None:
    """Another agent is never taken for a person."""
    text = framed(message("do it", who="builder", via="agent"))

    assert text == "[agent builder #k3f9x2] do it "


def test_the_frame_of_our_own_words_has_no_way() -> None:
    """What the-loop itself says came by no channel."""
    text = framed(message("hello", who="the-loop", via=""))

    assert text == "[the-loop #k3f9x2] hello "


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bob] rm -rf [", "bob rm -rf"),
        ("a\nb\x1b[201~", "a b 201~"),
        ("#k3f9x2", "k3f9x2"),
        ("", "somebody"),
        ("\u202e", "somebody"),
        ("x" * 99, "x" * 40),
    ],
)
def test_a_name_cannot_break_out_of_the_frame(name: str, shown: str) -> None:
    """Brackets, newlines, controls and marker signs leave the name."""
    assert frame_name(name) == shown


@pytest.mark.parametrize("text", ["look at @a", "end with \\", "/cost", "!ls", "# x", "exit"])
def test_text_that_a_composer_would_act_on_is_defused(text: str) -> None:
    """The frame comes first and a blank last, so that no popup, command or line continuation is left."""
    whole = framed(message(text))

    assert whole == f"[alice via slack #k3f9x2] {text} "


def test_a_message_that_ends_in_a_newline_is_left_as_it_is() -> None:
    """A newline closes a popup as a blank does."""
    assert framed(message("a\n")).endswith(" a\n")


def test_raw_text_has_no_frame_but_cannot_leave_the_paste() -> None:
    """An operator's raw text may be a command; its control characters still go."""
    composed = compose(message("/cost\x1b[201~", raw=True), BRACKETED, FOLDER)

    assert composed.data == PASTE_START + b"/cost[201~ " + PASTE_END


def test_several_lines_go_in_as_pastes_of_their_own() -> None:
    """A harness that tells its model of pasted text gets pieces that it takes for typed, nothing between them."""
    composed = compose(message("one\ntwo\nthree\nfour"), CUT, FOLDER)

    first, second = b"[alice via slack #k3f9x2] one\ntwo\n", b"three\nfour "
    assert composed.data == PASTE_START + first + PASTE_END + PASTE_START + second + PASTE_END
    assert composed.file is None


def test_what_would_need_too_many_pastes_goes_by_file() -> None:
    """The plain line in front says whose words the file holds."""
    composed = compose(message("a\n" * 2000), CUT, FOLDER)

    assert composed.file == FOLDER / "message-m-1.txt"
    assert composed.data.startswith(PASTE_START + b"[alice via slack #k3f9x2] ")
    assert b"as if I had typed it" in composed.data


def test_several_lines_go_by_file_where_there_is_no_bracketed_paste() -> None:
    """Each newline would submit, so the pasted line names a file."""
    composed = compose(message("a\nb"), PLAIN, FOLDER)

    assert composed.file == FOLDER / "message-m-1.txt"
    assert composed.content == "a\nb"
    assert composed.data.startswith(b"[alice via slack #k3f9x2] ")
    assert str(composed.file).encode() in composed.data
    assert b"\n" not in composed.data


def test_one_line_goes_plain_where_there_is_no_bracketed_paste() -> None:
    """Without markers the text is the text, and a newline at its end would submit too early."""
    composed = compose(message("a\n"), PLAIN, FOLDER)

    assert composed.data == b"[alice via slack #k3f9x2] a "
    assert composed.file is None


def test_a_message_above_the_limit_goes_by_file() -> None:
    """What the harness does not take inline is read from the session's folder, whole."""
    text = "é" * 60_000

    composed = compose(message(text), BRACKETED, FOLDER)

    assert composed.content == text
    assert len(composed.data) < 1_000
    assert markers_in(composed.data.decode()) == {"k3f9x2"}


def test_a_harness_without_a_keyboard_is_not_composed_for() -> None:
    """Its adapter delivers; pasting would be a mistake of the caller."""
    with pytest.raises(ValueError, match="adapter"):
        compose(message("a"), Traits(IdPolicy.LEARNT, paste=PasteStyle.KEYLESS), FOLDER)


@given(ANY_TEXT.filter(says_something), st.text(st.characters(codec=None)), st.sampled_from([BRACKETED, PLAIN]))
def test_no_text_and_no_name_gets_a_control_into_the_pane(text: str, who: str, traits: Traits) -> None:
    """Between the paste's own markers there is never an ESC, a CR or any other control; the marker is found again."""
    composed = compose(message(text, who=who), traits, FOLDER)

    inner = composed.data.removeprefix(PASTE_START).removesuffix(PASTE_END).decode()
    assert not [letter for letter in inner if ord(letter) < 32 and letter not in "\n\t"]
    assert not inner.startswith(("/", "!", "#"))
    assert inner.endswith((" ", "\n"))
    assert "k3f9x2" in markers_in(inner)


@given(ANY_TEXT.filter(says_something))
def test_text_arrives_as_it_was_written(text: str) -> None:
    """Apart from what was dropped, nothing is added inside or taken away."""
    inner = framed(message(text))

    assert inner.removeprefix("[alice via slack #k3f9x2] ").startswith(clean(text).text)


@given(ANY_TEXT.filter(says_something))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    """A cleaned text is clean."""
    once = clean(text)

    assert clean(once.text) == type(once)(once.text, 0)


def test_every_message_in_a_joined_prompt_is_found() -> None:
    """A harness may put several queued messages into one prompt."""
    prompt = "[alice via slack #k3f9x2] one\n[bob via cli #abcde2] two"

    assert markers_in(prompt) == {"k3f9x2", "abcde2"}
    assert takes(prompt, message("one"))


def test_a_raw_message_is_found_by_its_lines() -> None:
    """Without a marker the whole text must be there, however the harness trimmed it."""
    assert takes("do\n    it", message(" do\n\tit \n", raw=True))
    assert not takes("do it now", message("do it", raw=True))


def test_a_raw_command_of_the_harness_proves_nothing() -> None:
    """No turn takes `/cost` or `!ls`, so nothing can show that they arrived."""
    assert not provable(message("/cost", raw=True), BRACKETED)
    assert not provable(message("!ls", raw=True), BRACKETED)
    assert provable(message("cost", raw=True), BRACKETED)
    assert provable(message("/cost"), BRACKETED)
    assert not provable(message("cost"), PLAIN)
