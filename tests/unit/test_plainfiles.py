"""Files of which nobody knows beforehand what they are, or how large."""

import errno
import os
from pathlib import Path

import pytest

from core.base.files import open_plain, read_plain, whole_lines
from core.harness.claude.files import ConversationFile, has_turn

HUGE = 1 << 42  #: bytes, of which none is written


def test_what_fits_is_read_whole(tmp_path: Path) -> None:
    """Also where it is as large as may be."""
    (tmp_path / "f").write_bytes(b"x" * 10)

    assert read_plain(tmp_path / "f", 10) == b"x" * 10


@pytest.mark.parametrize("size", [11, HUGE])
def test_what_is_too_large_is_refused_with_its_bound(tmp_path: Path, size: int) -> None:
    """Before anything of it is read, however large it is."""
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", size)

    with pytest.raises(OSError, match="more than 10 bytes") as caught:
        read_plain(tmp_path / "f", 10)

    assert caught.value.errno == errno.EOVERFLOW


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    """The lines behind it have their places, and half a line is left for later."""
    content = b"one\n" + b"x" * 100 + b"\ntwo\nhalf"
    (tmp_path / "f").write_bytes(content)

    with open_plain(tmp_path / "f") as stream:
        found = list(whole_lines(stream, 20, 1000))

    assert [line for _, line in found] == [b"one\n", b"", b"two\n"]
    assert [content[:offset][-4:] for offset, _ in found] == [b"one\n", b"xxx\n", b"two\n"]


@pytest.mark.parametrize("length", [19, 20, 21, 39, 40, 41])
def test_a_half_written_line_is_no_line(tmp_path: Path, length: int) -> None:
    """However long it has become."""
    (tmp_path / "f").write_bytes(b"one\n" + b"x" * length)

    with open_plain(tmp_path / "f") as stream:
        assert [line for _, line in whole_lines(stream, 20, 1000)] == [b"one\n"]


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    """A file without a line break, of any size, is given up."""
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", HUGE)

    with open_plain(tmp_path / "f") as stream, pytest.raises(OSError, match="more than 100,000 bytes"):
        list(whole_lines(stream, 1000, 100_000))


def test_a_conversation_goes_on_behind_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that somebody pasted hides no later turn."""
    monkeypatch.setattr("core.harness.records._LONGEST_LINE", 1000)
    path = tmp_path / "c.jsonl"
    said = b'{"type":"user","origin":{"kind":"human"},"message":{"content":"%s"}}\n'
    path.write_bytes(said % (b"x" * 2000) + said % b"after")

    events = ConversationFile(path, from_start=True).new_events()

    assert [getattr(event, "prompt", "") for event in events] == ["after"]
    assert has_turn(path)
