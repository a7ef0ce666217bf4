"""The guarded lines, as text."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.model.pane import Paste, Receipt, Spawn
from core.tmux import guard
from core.tmux.transport import arguments, literal_format, quote, spell

_AT = datetime(2026, 1, 2, 3, 4, 5, 900_000, tzinfo=UTC)


def _write(pane_id: str = "%3", instance: str = "i-a", buffer: str = "b", token: str = "m-1") -> list[list[str]]:
    line = guard.write_line(pane_id, instance, buffer, Receipt.PASTED, token, _AT, keep_controls=False)
    return [list(command) for command in line]


def test_deadline_is_rounded_down_to_the_second() -> None:
    """tmux knows whole seconds only, so the last second before a deadline is given away rather than overrun."""
    condition = _write()[1][4]

    assert f"#{{e|<:#{{T;l:%s}},{int(_AT.timestamp())}}}" in condition


def test_controls_are_kept_where_tmux_would_rewrite_them() -> None:
    """The flag exists since tmux 3.7 only; older ones would refuse the whole line."""
    old = guard.write_line("%3", "i-a", "b", Receipt.PASTED, "m-1", _AT, keep_controls=False)
    new = guard.write_line("%3", "i-a", "b", Receipt.PASTED, "m-1", _AT, keep_controls=True)

    assert '"-S"' not in spell(old)
    assert "-S" in new[1][5]


def test_enter_is_loaded_with_its_message() -> None:
    """One paste takes both, so that nothing can come between them; a message alone is loaded as it is."""
    alone = Paste("i-a", b"text", "m-1-1", _AT)
    entered = Paste("i-a", b"text", "m-1-1", _AT, enter="m-1-1-1")

    assert guard.pasted_bytes(alone) == b"text"
    assert guard.pasted_bytes(entered) == b"text\r"


def test_refusal_cannot_tell_that_it_was_done() -> None:
    """The clock may be set back between the two branches; the words of the refusal do not depend on it."""
    paste = guard.paste_line("%3", Paste("i-a", b"text", "m-1-1", _AT), "b", keep_controls=False)
    refusals = [_write()[1][6], paste[1][6]]

    assert all(guard.LATE in refusal for refusal in refusals)
    assert not any(guard.DONE in refusal or "%s" in refusal for refusal in refusals)


@pytest.mark.parametrize(
    "words",
    [
        {"pane_id": "3"},
        {"pane_id": "=name:"},
        {"instance": "a,b"},
        {"instance": ""},
        {"buffer": "a b"},
        {"token": "#{pid}"},
        {"token": "x;"},
    ],
)
def test_words_that_tmux_would_read_otherwise_are_refused(words: dict[str, str]) -> None:
    """Only ids stand in a guarded line; a text of somebody's is an error of the caller."""
    with pytest.raises(ValueError, match="cannot stand in a tmux command"):
        _write(**words)


@pytest.mark.parametrize("target", ["a.b", "a:b", "$1", "-x", "", "a" * 65, "=a"])
def test_targets_that_tmux_would_change_are_refused(target: str) -> None:
    """tmux turns `.` and `:` of a name into `_` or takes it for an id; such a session could not be found again."""
    spawn = Spawn(target, "i-a", Path("/bin/cat"), Path("/"), {}, _AT)

    with pytest.raises(ValueError, match="cannot stand in a tmux command"):
        guard.spawn_line(spawn, "env-a", "tmux", remain_on_exit=True)


def test_killing_takes_ids_only() -> None:
    """A name could begin another one."""
    with pytest.raises(ValueError, match="cannot stand"):
        guard.end_line("%1", "work", "i-a", _AT)


def test_words_are_quoted_for_tmux() -> None:
    """A word stays one word on one line, whatever it holds."""
    assert quote('a"b\\c$d~e\nf;g é') == '"a\\042b\\134c\\044d\\176e\\012f;g é"'


def test_semicolon_at_the_end_of_an_argument_is_escaped() -> None:
    """tmux ends a command at an argument that ends so; in the middle it means nothing."""
    assert arguments([["a", "b;"], ["c;d", ";"]]) == ["a", "b\\;", ";", "c;d", "\\;"]


def test_format_signs_are_doubled() -> None:
    """A path is expanded as a format in some places."""
    assert literal_format("/a#{pid}") == "/a##{pid}"


def test_answer_is_found_among_other_output() -> None:
    """Only the line that begins with our word counts."""
    assert guard.told("noise\nthe-loop:done %1 $2\n") == ["done", "%1", "$2"]
    assert guard.told("noise\n") == []
    assert " ".join(guard.told("the-loop:done %1 /a  b\u2028c\n")[2:]) == "/a  b\u2028c"


def test_screens_are_told_from_what_they_show() -> None:
    """Each begins behind our word and its nonce; what looks like one without it belongs to the text."""
    out = "the-loop:n1 i-a 70\nfirst\nthe-loop:n2 i-b 7\nthe-loop:absent\n\nthe-loop:n1 absent\nthe-loop:n1 i-c 0\n"

    assert guard.screens_of(out, "n1") == {
        "i-a": ("first\nthe-loop:n2 i-b 7\nthe-loop:absent\n", 70),
        "i-c": ("", 0),
    }
    assert guard.screens_of("noise\n", "n1") == {}
