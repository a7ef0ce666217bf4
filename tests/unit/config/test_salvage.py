"""`stop` works with a broken configuration: it finds the state and the tmux server as far as it can."""

from __future__ import annotations

import pytest

from core.config.document import ConfigError
from core.config.loading import load, load_tolerant
from tests.unit.config.conftest import ConfigFolder

GOOD = "state: {root: /srv/state}\nrouting: {tmux: {socketName: mine, harnessKillGraceSeconds: 9}}\n"


def test_a_valid_file_is_loaded_as_always(folder: ConfigFolder) -> None:
    """Tolerance changes nothing where nothing is wrong."""
    folder.write(GOOD)

    found, error = load_tolerant(folder.path, folder.env)

    assert (found, error) == (load(folder.path, folder.env), None)


@pytest.mark.parametrize(
    "broken",
    [
        GOOD + "unknown: 1\n",
        GOOD + "standingSessions: {sessions: [{name: A B}]}\n",
        GOOD + "limits: [\n",
        GOOD + "channels: {slack: {enabled: 'x\n",
        GOOD + "limits: {queuedPerSession: 1}\nlimits: {queuedPerSession: 2}\n",
    ],
)
def test_what_can_be_read_is_kept_and_the_error_said(folder: ConfigFolder, broken: str) -> None:
    """Whether the values or the YAML further down are broken, root and socket are those of the file."""
    folder.write(broken)

    found, error = load_tolerant(folder.path, folder.env)

    assert isinstance(error, ConfigError)
    assert str(found.state_root) == "/srv/state"
    assert found.routing.tmux.socket_name == "mine"
    assert found.routing.tmux.harness_kill_grace_seconds == 9
    assert found.standing.sessions == ()
    assert not found.whole
    assert found.source == folder.path


def test_a_key_that_is_wrong_itself_falls_back_alone(folder: ConfigFolder) -> None:
    """One bad tmux key takes none of its neighbours with it."""
    folder.write("routing: {tmux: {socketName: mine, commandTimeoutSeconds: soon, zzz: 1}}\n")

    found, error = load_tolerant(folder.path, folder.env)

    assert error is not None
    assert found.routing.tmux.socket_name == "mine"
    assert found.routing.tmux.command_timeout_seconds == 5


def test_what_was_valid_last_stands_in_for_what_cannot_be_read(folder: ConfigFolder) -> None:
    """A file broken in its first line still stops what was started under it."""
    folder.load(GOOD)
    folder.write("}}}\n" + GOOD)

    found, error = load_tolerant(folder.path, folder.env)

    assert error is not None
    assert str(found.state_root) == "/srv/state"
    assert found.routing.tmux.socket_name == "mine"


def test_a_file_that_is_gone_still_stops_what_it_started(folder: ConfigFolder) -> None:
    """A named file that was removed is an error, and its last valid state root is used."""
    folder.load(GOOD)
    folder.path.unlink()

    found, error = load_tolerant(folder.path, folder.env)

    assert error is not None
    assert str(found.state_root) == "/srv/state"


def test_what_the_file_says_now_goes_before_what_it_said(folder: ConfigFolder) -> None:
    """A root that was changed and can be read is the one."""
    folder.load(GOOD)
    folder.write(GOOD.replace("/srv/state", "/srv/new") + "oops: 1\n")

    found, _ = load_tolerant(folder.path, folder.env)

    assert str(found.state_root) == "/srv/new"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"- a\n", b"state: 5\nrouting: {tmux: 7}\n", b"[" * 9999, b"'"])
def test_nothing_to_be_read_means_the_defaults(folder: ConfigFolder, content: bytes) -> None:
    """Where nothing can be had of the file, `stop` looks where a machine without a file keeps its state."""
    folder.path.write_bytes(content)

    found, error = load_tolerant(folder.path, folder.env)

    assert error is not None
    assert found.state_root == folder.home / ".local/state/the-loop"
    assert found.routing.tmux.socket_name == "the-loop"
