"""`serve` runs without the rest of the command line, and answers as that does."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.base.errors import CoreError
from core.cli import serving
from core.cli.app import invoke

_LOADED = """
import sys
import bot.channel, core.service.assembly, core.cli.main, core.cli.serving, core.tmux.control
wanted = {"click", "pydantic", "starlette", "mcp", "uvicorn", "cronsim"}
print(*sorted(wanted & sys.modules.keys()))
"""


@pytest.fixture(autouse=True)
def _person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person with a home of their own, outside of every pane."""
    for name in ("THE_LOOP_CONFIG", "THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_wrong_configuration_is_refused_as_by_the_whole_command_line(tmp_path: Path) -> None:
    """Both name the same file, key and remedy, before any service runs."""
    (tmp_path / "wrong.yaml").write_text("nope: 1\n")
    line = ["--config", "wrong.yaml", "serve"]

    with pytest.raises(CoreError) as quickly:
        serving.answer(line)
    with pytest.raises(CoreError) as wholly:
        invoke(line)

    assert (type(quickly.value), str(quickly.value)) == (type(wholly.value), str(wholly.value))
    assert "nope" in str(quickly.value)


@pytest.mark.parametrize(
    "line",
    [["serve", "--tmux"], ["serve", "--help"], ["--json", "serve"], ["--config", "serve"], ["serve", "serve"], []],
    ids=" ".join,
)
def test_other_lines_are_left_to_the_whole_command_line(line: list[str]) -> None:
    """An option, a request for help and a wrong line have one place that answers them."""
    assert serving.answer(line) is None


@pytest.mark.parametrize("name", ["THE_LOOP_INSTANCE", "_THE_LOOP_COMPLETE"])
def test_agents_are_left_to_the_whole_command_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether an agent may start a service is decided in one place."""
    monkeypatch.setenv(name, "i-abc")

    assert serving.answer(["serve"]) is None


def test_service_at_rest_keeps_nothing_that_it_does_not_use() -> None:
    """The command line's parser, the models of the configuration and both web frameworks wait until they are needed."""
    loaded = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=60)

    assert loaded.stdout.split() == []
