"""Records as files."""

import os
from dataclasses import replace

import pytest

from core.base.errors import InvalidValue, RecordUnreadable, StoreBroken
from core.base.paths import StatePaths
from core.store.records import Records
from tests.unit.store.samples import a_record


def test_a_record_is_read_as_it_was_written(records: Records) -> None:
    """The last write is what a reader sees."""
    records.write(a_record())
    records.write(a_record(generation=2))

    assert records.read("scribe") == a_record(generation=2)


def test_no_record_is_none_and_none_are_no_records(records: Records) -> None:
    """A state root that is not there yet holds nothing, and reading makes nothing."""
    assert records.read("scribe") is None
    assert records.all() == ()


def test_all_come_by_name_with_the_unreadable_among_them(records: Records, paths: StatePaths) -> None:
    """One damaged file hides no other record, and its error names the path and the reason."""
    for name in ("zoe", "ann", "bob"):
        records.write(a_record(name))
    (paths.records / "bob.json").write_text("{")

    ann, bob, zoe = records.all()

    assert (ann, zoe) == (a_record("ann"), a_record("zoe"))
    assert isinstance(bob, RecordUnreadable)
    assert str(paths.records / "bob.json") in str(bob)
    assert "not JSON" in bob.reason


def test_files_that_are_no_records_are_left_out(records: Records, paths: StatePaths) -> None:
    """Leftovers of a crashed write, copies and hidden files are nobody's record."""
    records.write(a_record())
    for name in (".scribe.json.17.1.tmp", "scribe.json~", "Copy of scribe.json", ".json", "notes.txt"):
        (paths.records / name).write_text("{")

    assert records.all() == (a_record(),)


@pytest.mark.timeout(20)
def test_what_is_no_plain_file_is_unreadable_and_waited_for_never(records: Records, paths: StatePaths) -> None:
    """A FIFO or a folder in a record's place hides no other record and holds nobody up."""
    records.write(a_record())
    os.mkfifo(paths.records / "pipe.json")
    (paths.records / "folder.json").mkdir()

    folder, pipe, scribe = records.all()

    assert isinstance(folder, RecordUnreadable)
    assert isinstance(pipe, RecordUnreadable)
    assert str(paths.records / "pipe.json") in str(pipe)
    assert scribe == a_record()


@pytest.mark.parametrize("content", [b"{", b'{"version": 99}', b"\x00"])
def test_an_unreadable_file_is_never_touched(records: Records, paths: StatePaths, content: bytes) -> None:
    """Neither a write nor a removal changes a file that cannot be understood."""
    records.write(a_record())
    path = paths.records / "scribe.json"
    path.write_bytes(content)

    with pytest.raises(RecordUnreadable):
        records.write(a_record())
    with pytest.raises(RecordUnreadable):
        records.remove("scribe")

    assert path.read_bytes() == content


def test_something_else_than_a_file_is_an_unreadable_record(records: Records, paths: StatePaths) -> None:
    """A folder of that name keeps the name taken: it is not the same as no record."""
    (paths.records / "scribe.json").mkdir(parents=True)

    with pytest.raises(RecordUnreadable, match="directory"):
        records.read("scribe")


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(records: Records, paths: StatePaths) -> None:
    """Where the records cannot be looked for, that is said."""
    paths.local.mkdir(parents=True)
    paths.records.write_text("a file in its place")

    with pytest.raises(StoreBroken, match="cannot list the records"):
        records.all()


def test_a_removed_record_is_gone_and_may_be_removed_again(records: Records) -> None:
    """Removal is final, and doing it twice is fine."""
    records.write(a_record())

    records.remove("scribe")
    records.remove("scribe")

    assert records.read("scribe") is None


@pytest.mark.parametrize("name", ["../scribe", "a/b", "", ".", "Scribe"])
def test_a_name_never_leads_out_of_the_folder(records: Records, name: str) -> None:
    """What is no session name is refused before any file is looked at."""
    with pytest.raises(InvalidValue):
        records.read(name)
    with pytest.raises(InvalidValue):
        records.remove(name)
    with pytest.raises(InvalidValue):
        records.write(replace(a_record(), name=name))


def test_the_record_is_private(records: Records, paths: StatePaths) -> None:
    """Its folder is 0700 and its file 0600."""
    records.write(a_record())

    assert paths.records.stat().st_mode & 0o777 == 0o700
    assert (paths.records / "scribe.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(paths.records) == ["scribe.json"]
