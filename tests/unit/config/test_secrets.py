"""The file of a chat's secrets: only ours to read, and read as systemd reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.base.paths import StatePaths
from core.config.loading import load
from core.config.secrets import read_secrets, write_secrets
from core.service.wiring import with_secrets


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    """Give a state root that is not there yet."""
    return StatePaths(tmp_path / "state")


def test_it_is_written_for_us_alone_and_keeps_what_it_has(paths: StatePaths) -> None:
    """A second write changes what it names."""
    path = paths.chat_secrets("slack")

    write_secrets(paths.root, path, {"ONE": "1", "TWO": "2"})
    write_secrets(paths.root, path, {"TWO": "3"})

    assert read_secrets(path) == {"ONE": "1", "TWO": "3"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_it_is_read_as_systemd_does(paths: StatePaths) -> None:
    """Comments, quotes and empty values are what they are there."""
    write_secrets(paths.root, paths.chat_secrets("slack"), {})
    path = paths.chat_secrets("slack")
    path.write_text("# mine\nA=xoxb-1 \nexport B='two words'\nC=\nnonsense\n")

    assert read_secrets(path) == {"A": "xoxb-1", "B": "two words"}
    assert read_secrets(path.with_name("none.env")) == {}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_one_that_others_may_read_is_not_used(paths: StatePaths, mode: int) -> None:
    """The error names the file and the command, and no value."""
    path = paths.chat_secrets("slack")
    write_secrets(paths.root, path, {"A": "xoxb-secret"})
    path.chmod(mode)

    with pytest.raises(StoreBroken, match=rf"chmod 600 {path}") as caught:
        read_secrets(path)

    assert "xoxb-secret" not in str(caught.value)


def test_a_link_in_its_place_is_not_followed(paths: StatePaths, tmp_path: Path) -> None:
    """It could lead to what somebody else writes."""
    path = paths.chat_secrets("slack")
    write_secrets(paths.root, path, {})
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreBroken):
        read_secrets(path)


def test_a_variable_wins_over_the_file(paths: StatePaths, tmp_path: Path) -> None:
    """As everywhere: what is set where the service starts counts."""
    config = tmp_path / "cli-config.yaml"
    config.write_text(f"state: {{root: {paths.root}}}\n")
    write_secrets(paths.root, paths.chat_secrets("slack"), {"A": "file", "B": "file"})

    found = with_secrets("slack", load(config, {}), {"A": "variable"})

    assert (found["A"], found["B"]) == ("variable", "file")
