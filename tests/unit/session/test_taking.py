"""Which conversation a start takes up, by the files of the harness to which it belongs."""

from pathlib import Path
from typing import Any

import pytest

from core.base.names import new_uid
from core.base.values import replace
from core.config.settings import Routing, Settings
from core.harness.claude.files import project_folder
from core.model.session import Definition, Fresh, Left
from core.service.wiring import build_system
from core.session.conversations import Taken, settled_conversation, take_conversation
from core.session.sessions import resolve
from core.session.system import System
from tests.support.lines import entries
from tests.unit.store.samples import NOON, a_record

OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Give ports whose sessions run Claude Code, with a home of their own and two folders to work in."""
    for name in ("before", "after", "home"):
        (tmp_path / name).mkdir()
    settings = Settings(tmp_path / "state", routing=Routing(default_harness="claude"))
    return build_system(settings, {"HOME": str(tmp_path / "home"), "PATH": ""})


def transcript(home: Path, cwd: Path, conversation: str, *lines: str) -> None:
    """Write a conversation as Claude Code keeps it."""
    path = home / ".claude" / "projects" / project_folder(str(cwd)) / f"{conversation}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def start(system: System, record_cwd: Path, cwd: Path, **changes: Any) -> Taken:
    """Ask what the next start takes up of a record that last ran in one folder and is to run in another."""
    values: dict[str, Any] = {"harness_session_id": OLD, "harness_in_use": "claude", "instance_id": "i-1", **changes}
    record = a_record(definition=Definition("scribe", cwd=str(record_cwd)), uid=new_uid(), **values)
    resolved = resolve(Definition("scribe", cwd=str(cwd)), system.settings)
    return take_conversation(system, record, resolved, system.harnesses.get("claude"), "cli:ann", "")


def test_folder_that_was_changed_is_named_with_the_place_of_its_transcripts(system: System, tmp_path: Path) -> None:
    """Claude Code keeps conversations by folder: those of the old one are not under the new one."""
    before, after, home = tmp_path / "before", tmp_path / "after", tmp_path / "home"
    transcript(home, before, OLD, '{"type": "user"}', '{"type": "assistant"}')

    taken = start(system, before, after)

    place = home / ".claude" / "projects" / project_folder(str(after))
    reason = f"its transcript is not under {place} any more, and its cwd was {before}"
    assert not taken.resumed
    assert [(left.id, left.reason) for left in taken.record.history] == [(OLD, reason)]
    [event] = entries(system.paths.events)
    assert (event["event"], event["detail"]) == ("standing.resume_failed", OLD)


def test_folder_that_is_changed_back_before_a_turn_finds_its_conversation(system: System, tmp_path: Path) -> None:
    """What was begun in the other folder has had no turn, so nothing has taken the old one's place."""
    before, after = tmp_path / "before", tmp_path / "after"
    transcript(tmp_path / "home", before, OLD, '{"type": "user"}')
    left = Left(OLD, "claude", "its cwd was another", NOON)

    taken = start(system, after, before, harness_session_id=NEW, fresh=Fresh(NEW, OLD), history=(left,))

    assert (taken.resumed, taken.returned, taken.record.harness_session_id) == (True, True, OLD)
    assert taken.record.fresh is None


def test_prompt_that_got_no_answer_yet_is_taken_up_where_nothing_went_before(system: System, tmp_path: Path) -> None:
    """The machine went down in the first turn: what was said is in the transcript, and goes on."""
    before = tmp_path / "before"
    transcript(tmp_path / "home", before, NEW, '{"type": "user"}')

    taken = start(system, before, before, harness_session_id=NEW, fresh=Fresh(NEW))

    assert (taken.resumed, taken.record.conversation) == (True, NEW)


@pytest.mark.parametrize(
    ("line", "had"),
    [
        ('{"type": "assistant"}', True),
        ('{"type": "assistant", "isApiErrorMessage": true}', False),
        ('{"type": "user"}', False),
    ],
)
def test_turn_is_had_when_the_transcript_holds_an_answer(system: System, tmp_path: Path, line: str, had: bool) -> None:
    """A prompt alone, or an error in the answer's place, takes no conversation's place."""
    before = tmp_path / "before"
    transcript(tmp_path / "home", before, NEW, line)
    definition, fresh = Definition("scribe", cwd=str(before)), Fresh(NEW, OLD)
    record = a_record(definition=definition, harness_session_id=OLD, harness_in_use="claude", fresh=fresh)

    settled = settled_conversation(system.settings, system.paths, system.harnesses, record)

    assert settled == (replace(record, harness_session_id=NEW, fresh=None) if had else record)
