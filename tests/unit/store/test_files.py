"""Private folders and files."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.base.files import broken, own_folder, private_folder, remove_file, secure_root, write_private


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    """What is made is for its owner alone, missing parents too, whatever the umask allows."""
    before = os.umask(0)
    try:
        private_folder(tmp_path / "a" / "b")
        write_private(tmp_path / "a" / "b" / "file", b"x")
        write_private(tmp_path / "a" / "b" / "run", b"x", mode=0o700)
    finally:
        os.umask(before)

    modes = [(tmp_path / path).stat().st_mode & 0o777 for path in ("a", "a/b", "a/b/file", "a/b/run")]
    assert modes == [0o700, 0o700, 0o600, 0o700]


def test_a_folder_that_is_open_to_others_is_tightened(tmp_path: Path) -> None:
    """A folder that was there with a loose mode becomes private."""
    (tmp_path / "loose").mkdir(mode=0o755)

    private_folder(tmp_path / "loose")

    assert (tmp_path / "loose").stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    """Where a file stands in the way, the message names it and says what helps."""
    (tmp_path / "state").write_text("")

    with pytest.raises(StoreBroken, match=r"state/local: cannot make the folder.*; move away the file"):
        private_folder(tmp_path / "state" / "local")


def test_a_write_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    """The temporary file is gone after a write, and after one that failed."""
    (tmp_path / "folder").mkdir()

    write_private(tmp_path / "file", b"one")
    write_private(tmp_path / "file", b"two")
    with pytest.raises(StoreBroken):
        write_private(tmp_path / "folder", b"a folder cannot be replaced by a file")

    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert (tmp_path / "file").read_bytes() == b"two"


def test_a_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A link in place of the file is put aside by the write; what it points to stays as it is."""
    (tmp_path / "elsewhere").write_text("untouched")
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")

    write_private(tmp_path / "file", b"new")

    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert not (tmp_path / "file").is_symlink()


def test_the_disk_is_waited_for_where_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and its folder are synced; what a crash of the machine makes void, and what changed nothing, is not."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    def syncs(do: Callable[[], None]) -> int:
        synced.clear()
        do()
        return len(synced)

    path = tmp_path / "file"
    lasting = [syncs(lambda: write_private(path, b"1")), syncs(lambda: remove_file(path))]
    passing = [
        syncs(lambda: write_private(path, b"2", durable=False)),
        syncs(lambda: remove_file(path, durable=False)),
        syncs(lambda: remove_file(path)),
    ]

    assert (lasting, passing) == ([2, 1], [0, 0, 0])


def test_removing_what_is_absent_is_fine(tmp_path: Path) -> None:
    """Neither a missing file nor a missing folder is an error."""
    (tmp_path / "file").write_text("")

    remove_file(tmp_path / "file")
    remove_file(tmp_path / "file")
    remove_file(tmp_path / "nowhere" / "file")

    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("number", "reason", "remedy"),
    [
        (errno.ENOSPC, "No space left on device", "free some space"),
        (errno.EROFS, "Read-only file system", "mount that disk writable"),
        (errno.EACCES, "Permission denied", "give yourself the rights"),
        (errno.EIO, "Input/output error", "look at that path and its disk"),
    ],
)
def test_a_failure_names_path_reason_and_remedy(number: int, reason: str, remedy: str) -> None:
    """Each error of the system becomes a message that a person can act on."""
    error = broken(OSError(number, os.strerror(number)), Path("/state/file"), "write the file")

    assert str(error).startswith(f"/state/file: cannot write the file: {reason}; {remedy}")


def test_a_state_root_that_others_may_write_to_is_tightened(tmp_path: Path) -> None:
    """Whoever may write there could put a folder of theirs in the place of ours."""
    tmp_path.chmod(0o777)

    secure_root(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_sticky_state_root_is_left_alone(tmp_path: Path) -> None:
    """There nobody can move what is not theirs."""
    tmp_path.chmod(0o1777)

    secure_root(tmp_path)

    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


def test_a_symbolic_link_in_a_folders_place_is_refused(tmp_path: Path) -> None:
    """It may lead anywhere; what it leads to is not touched."""
    (tmp_path / "theirs").mkdir(mode=0o755)
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")

    with pytest.raises(StoreBroken, match="symbolic link"):
        own_folder(tmp_path / "ours")

    assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("check", [private_folder, own_folder, secure_root])
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Callable[[Path], None]
) -> None:
    """Its owner could read and replace whatever lies in it, whatever its mode says."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(StoreBroken, match="belongs to another user"):
        check(folder)
