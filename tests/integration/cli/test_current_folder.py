"""No command imports or runs what lies in the folder where it is typed, whatever PYTHONPATH and PATH say of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import NAME, PROGRAM, Product, product
from tests.support.trees import lay_programs, lay_traps
from the_loop import connect


@pytest.fixture(scope="module")
def alone() -> Iterator[Product]:
    """Give a product without a workspace."""
    with product() as running:
        yield running


@pytest.mark.parametrize("given", [":/opt/x", ".", "../work:", "{work}"])
@pytest.mark.parametrize("words", [("status",), ("config", "check"), ("standing", "list")], ids=" ".join)
def test_nothing_of_the_current_folder_is_imported(alone: Product, words: tuple[str, ...], given: str) -> None:
    """An empty or a relative entry stands for that folder, and so does its own path."""
    work = alone.folder / "work"
    mark = lay_traps(work, "click", "yaml", "cronsim", "bot.__init__", "argparse", "json", "pydantic.__init__")
    mark.unlink(missing_ok=True)

    done = alone.cli(*words, env={"PYTHONPATH": given.format(work=work)})

    assert not mark.exists()
    assert "Traceback" not in done.err


@pytest.mark.parametrize("given", ["bin:{usual}", "{usual}:./bin"])
def test_no_program_of_the_current_folder_is_run(alone: Product, given: str) -> None:
    """Neither a harness, nor systemd's; the agent's own PATH does not have it either."""
    mark = lay_programs(alone.folder / "work" / "bin", "diary", "systemctl", "systemd-run", "tmux")
    mark.unlink(missing_ok=True)
    alone.configure(harnesses={"diary": {"start": ["diary"]}})
    usual = {"PATH": given.format(usual=f"{PROGRAM.parent}:{os.defpath}")}

    diary = alone.cli("standing", "create", "diary", "--harness", "diary", "--json", env=usual)
    started = alone.cli("standing", "start", NAME, "--json", env=usual)
    agents = Path(f"/proc/{alone.panes()[NAME]}/environ").read_bytes()
    alone.cli("standing", "stop", NAME)

    assert "'diary' is not on PATH" in diary.row["detail"]
    assert started.code == 0, started.out
    assert f"PATH={PROGRAM.parent}:{os.defpath}\0".encode() in agents
    assert not mark.exists()


def test_importers_run_nothing_of_it_either(alone: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their own environment, or one that they give."""
    mark = lay_programs(alone.folder / "work" / "bin", "diary")
    mark.unlink(missing_ok=True)
    alone.configure(harnesses={"diary": {"start": ["diary"]}})
    monkeypatch.chdir(alone.folder / "work")

    loop = connect(alone.config, alone.environ(PATH=f"bin:{os.defpath}"))
    [row] = loop.standing.create("notes", harness="diary").sessions

    assert "'diary' is not on PATH" in row.detail
    assert not mark.exists()
