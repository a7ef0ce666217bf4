"""What the machine gives, judged by numbers."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from core.delivery.pictures import NoPicture
from core.doctor import machine
from core.harness.logins import login_of
from core.model.health import State

GIB = 2**30


@pytest.mark.parametrize(
    ("free", "inodes", "state"),
    [
        (10 * GIB, 1_000_000, State.OK),
        (10 * GIB, None, State.OK),
        (GIB // 2, 1_000_000, State.WARNING),
        (10 * GIB, 12, State.WARNING),
        (GIB // 100, 1_000_000, State.FAILED),
    ],
)
def test_room_on_a_disk(free: int, inodes: int | None, state: State) -> None:
    """A full disk keeps messages from being stored; one that counts no inodes lacks none."""
    finding = machine.room(Path("/state"), free, inodes)

    assert finding.state is state
    assert bool(finding.remedy) is (state is not State.OK)


@pytest.mark.parametrize(
    ("limits", "state"),
    [
        ((1024, 524_288), State.OK),
        ((1024, resource.RLIM_INFINITY), State.OK),
        ((256, 256), State.WARNING),
    ],
)
def test_how_many_files_may_be_open(limits: tuple[int, int], state: State) -> None:
    """The hard limit counts, since the service raises the soft one."""
    [finding] = machine.descriptors(limits)

    assert finding.state is state


@pytest.mark.parametrize(
    ("harness", "variable", "file"),
    [
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN", ".claude/.credentials.json"),
        ("codex", "OPENAI_API_KEY", ".codex/auth.json"),
        ("opencode", "OPENROUTER_API_KEY", ".local/share/opencode/auth.json"),
        ("gemini", "GEMINI_API_KEY", ".gemini/.env"),
    ],
)
def test_a_log_in_is_seen_by_a_variable_or_a_file(
    harness: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is proof that it is valid, and no value of either is shown."""
    monkeypatch.setattr("sys.platform", "linux")
    environ = {"HOME": str(tmp_path)}
    nothing = login_of(harness, environ)
    by_variable = login_of(harness, {**environ, variable: "sk-secret"})
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("sk-secret")
    by_file = login_of(harness, environ)

    assert nothing is not None
    assert by_variable is not None
    assert by_file is not None
    assert (nothing.found, by_variable.found, by_file.found) == (False, True, True)
    assert nothing.remedy
    assert "sk-secret" not in str((by_variable, by_file))


def test_of_a_keychain_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS the log-in is where only the program itself asks."""
    monkeypatch.setattr("sys.platform", "darwin")

    login = login_of("claude", {"HOME": str(tmp_path)})

    assert login is not None
    assert login.found is None


def test_of_other_programs_no_log_in_is_looked_for() -> None:
    """The bundled agent needs none, and nothing is known of a program that somebody describes."""
    assert login_of("bundled", {}) is None
    assert login_of("mine", {}) is None


@pytest.mark.parametrize(
    ("said", "state", "part"),
    [
        ("/fonts/DejaVuSansMono.ttf", State.OK, "DejaVuSansMono"),
        ("", State.WARNING, "Latin letters"),
        (NoPicture("Pillow is not installed"), State.WARNING, "Pillow is not installed"),
    ],
)
def test_whether_terminals_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch, said: str | NoPicture, state: State, part: str
) -> None:
    """It is no failure where they cannot: their text is shown."""

    def font() -> str:
        if isinstance(said, NoPicture):
            raise said
        return said

    monkeypatch.setattr(machine, "font", font)
    [finding] = machine.pictures()

    assert (finding.state, part in finding.detail, bool(finding.remedy)) == (state, True, state is not State.OK)
