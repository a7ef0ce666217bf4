"""Claude Code's first dialogs are answered before it starts."""

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.clock import SystemClock
from core.base.errors import TrustFailed
from core.harness.claude.startup import ClaudeTrust

KEY = "sk-ant-0123456789abcdefghijklmnopqrst"


class JumpingClock:
    """A clock that passes the time at once."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    def pause(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Claude Code's configuration, not there yet."""
    return tmp_path / "home" / ".claude.json"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """The session's folder to work in."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def content_of(path: Path) -> dict[str, Any]:
    """Return what the file holds."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def written(path: Path, content: str, mode: int = 0o600) -> str:
    """Write the file as Claude Code, or its operator, left it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    return content


def test_first_start_writes_all_three_answers(path: Path, cwd: Path) -> None:
    """Without a file one is made, private, with onboarding, trust and the end of the key; nothing else of the key."""
    wrote = ClaudeTrust(path, SystemClock()).accept(cwd, KEY)

    assert wrote is True
    assert content_of(path) == {
        "hasCompletedOnboarding": True,
        "projects": {str(cwd): {"hasTrustDialogAccepted": True}},
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert KEY not in path.read_text()


def test_without_a_key_nothing_is_said_about_keys(path: Path, cwd: Path) -> None:
    """Keys are approved only where one is used."""
    ClaudeTrust(path, SystemClock()).accept(cwd, None)

    assert "customApiKeyResponses" not in content_of(path)


def test_only_what_is_missing_is_written(path: Path, cwd: Path) -> None:
    """Everything else in the file stays as it is, its order and its mode with it."""
    before = {"theme": "dark", "projects": {"/else": {"allowedTools": ["x"]}, str(cwd): {"lastCost": 1.5}}, "ünï": "ö"}
    written(path, json.dumps(before), 0o640)

    ClaudeTrust(path, SystemClock()).accept(cwd, None)

    after = content_of(path)
    assert list(after) == ["theme", "projects", "ünï", "hasCompletedOnboarding"]
    assert after["projects"] == {
        "/else": {"allowedTools": ["x"]},
        str(cwd): {"lastCost": 1.5, "hasTrustDialogAccepted": True},
    }
    assert path.stat().st_mode & 0o777 == 0o640


def test_complete_file_is_not_touched(path: Path, cwd: Path) -> None:
    """A second start writes nothing."""
    ClaudeTrust(path, SystemClock()).accept(cwd, KEY)
    before = path.stat()

    wrote = ClaudeTrust(path, SystemClock()).accept(cwd, KEY)

    assert wrote is False
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_rejected_key_stays_rejected(path: Path, cwd: Path) -> None:
    """Somebody's no is not turned into a yes."""
    written(path, json.dumps({"customApiKeyResponses": {"approved": [], "rejected": [KEY[-20:]]}}))

    ClaudeTrust(path, SystemClock()).accept(cwd, KEY)

    assert content_of(path)["customApiKeyResponses"] == {"approved": [], "rejected": [KEY[-20:]]}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"projects": []}',
        '{"customApiKeyResponses": 1}',
        '{"customApiKeyResponses": {"approved": "x"}}',
        '{"a": 1} trailing',
    ],
)
def test_file_that_is_not_understood_is_never_touched(path: Path, cwd: Path, content: str) -> None:
    """A damaged file is an error that names it, and stays as it is."""
    written(path, content)

    with pytest.raises(TrustFailed):
        ClaudeTrust(path, SystemClock()).accept(cwd, KEY)

    assert path.read_text() == content
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".claude.json"]


def test_project_that_is_no_object_is_never_touched(path: Path, cwd: Path) -> None:
    """So is a file whose entry for the folder is something else."""
    content = written(path, json.dumps({"projects": {str(cwd): []}}))

    with pytest.raises(TrustFailed):
        ClaudeTrust(path, SystemClock()).accept(cwd, None)

    assert path.read_text() == content


def test_link_stays_a_link(path: Path, cwd: Path, tmp_path: Path) -> None:
    """Where the file is a link its target is rewritten."""
    target = tmp_path / "dotfiles.json"
    written(target, "{}")
    path.parent.mkdir()
    path.symlink_to(target)

    ClaudeTrust(path, SystemClock()).accept(cwd, None)

    assert path.is_symlink()
    assert content_of(target)["hasCompletedOnboarding"] is True


def test_folder_is_trusted_under_its_real_path(path: Path, cwd: Path, tmp_path: Path) -> None:
    """A session whose folder is a link runs in what it points at."""
    (tmp_path / "link").symlink_to(cwd)

    ClaudeTrust(path, SystemClock()).accept(tmp_path / "link", None)

    assert list(content_of(path)["projects"]) == [str(cwd)]


def test_lock_of_a_running_claude_is_respected(path: Path, cwd: Path) -> None:
    """A lock that somebody holds is waited for, and in the end named."""
    written(path, "{}")
    lock = Path(f"{path}.lock")
    lock.mkdir()
    clock = JumpingClock()

    with pytest.raises(TrustFailed, match=r"\.claude\.json\.lock"):
        ClaudeTrust(path, clock).accept(cwd, None)

    assert clock.passed >= 5
    assert lock.is_dir()
    assert path.read_text() == "{}"


def test_lock_that_was_left_behind_is_taken_over(path: Path, cwd: Path) -> None:
    """A lock that nobody has touched for ten seconds holds nobody up."""
    written(path, "{}")
    lock = Path(f"{path}.lock")
    lock.mkdir()
    os.utime(lock, (1, 1))

    ClaudeTrust(path, JumpingClock()).accept(cwd, None)

    assert content_of(path)["hasCompletedOnboarding"] is True
    assert not lock.exists()


def test_sessions_that_start_together_lose_nothing(path: Path, tmp_path: Path) -> None:
    """Twelve folders trusted at the same time are all in the file."""
    folders = [tmp_path / f"work-{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
    threads = [
        threading.Thread(target=ClaudeTrust(path, SystemClock()).accept, args=(folder, KEY)) for folder in folders
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(content_of(path)["projects"]) == {str(folder) for folder in folders}


def test_folder_that_cannot_be_written_is_named(cwd: Path, tmp_path: Path) -> None:
    """What stands in the way is an error with a remedy."""
    (tmp_path / "home").write_text("a file")

    with pytest.raises(TrustFailed, match="harnessTrust"):
        ClaudeTrust(tmp_path / "home" / ".claude.json", SystemClock()).accept(cwd, None)
