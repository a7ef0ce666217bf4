"""The seam that says what a session is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import InvalidValue, UnknownSession
from core.base.paths import StatePaths
from core.config.settings import Routing, Settings, Standing
from core.model.session import Definition, SessionRecord
from core.session.sessions import definition_of, every_session, resolve
from core.store.records import Records

AT = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """Give records that hold `noted`."""
    files = Records(StatePaths(tmp_path))
    files.write(SessionRecord("noted", "s-1", Definition("noted", prompt="old"), AT))
    return files


def settings(tmp_path: Path, *declared: Definition) -> Settings:
    """Return settings that declare these."""
    return Settings(tmp_path, standing=Standing(True, declared))


def test_declaration_outranks_the_record(tmp_path: Path, records: Records) -> None:
    """What the configuration says now is what the session is."""
    known = definition_of(settings(tmp_path, Definition("noted", prompt="new")), records, "noted")

    assert (known.declared, known.definition.prompt) == (True, "new")
    assert known.record is not None


def test_record_is_the_declaration_of_a_created_session(tmp_path: Path, records: Records) -> None:
    """A created session is what its record says."""
    known = definition_of(settings(tmp_path), records, "noted")

    assert (known.declared, known.definition.prompt) == (False, "old")


def test_unknown_name_is_a_lookup_error_that_says_what_to_do(tmp_path: Path, records: Records) -> None:
    """Neither declared nor recorded."""
    with pytest.raises(UnknownSession, match="neither declared nor recorded"):
        definition_of(settings(tmp_path), records, "nobody")


def test_what_is_no_name_is_a_value_error(tmp_path: Path, records: Records) -> None:
    """A bad name never reaches a file."""
    with pytest.raises(InvalidValue):
        definition_of(settings(tmp_path), records, "../x")


def test_unreadable_record_keeps_its_name_in_the_list(tmp_path: Path, records: Records) -> None:
    """A file that cannot be understood is a session all the same."""
    (StatePaths(tmp_path).records / "odd.json").write_text("{")

    found = {known.name: known for known in every_session(settings(tmp_path, Definition("both")), records)}

    assert list(found) == ["both", "noted", "odd"]
    assert found["odd"].unreadable is not None


def test_omitted_arguments_are_the_harness_ones_and_an_empty_list_is_none_at_all(tmp_path: Path) -> None:
    """`harnessArgs` left out takes routing's, `[]` takes none."""
    routing = Routing(default_harness="claude", harness_args={"claude": ("--model", "x")}, spawn_workdir="/work")
    base = settings(tmp_path)._replace(routing=routing)

    assert resolve(Definition("a"), base).args == ("--model", "x")
    assert resolve(Definition("a", harness_args=()), base).args == ()
    assert resolve(Definition("a"), base).cwd == Path("/work")
