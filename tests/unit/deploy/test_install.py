"""`make install` puts the program where the systemd units and a shell look for it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from core.base.environment import chosen, differences
from tests.unit.deploy.test_units import FOLDER

ROOT = FOLDER.parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a checkout, its folder's name with a blank, in which the environment is set up."""
    checkout = tmp_path / "the loop"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / "scripts").mkdir()
    shutil.copy(ROOT / "Makefile", checkout)
    shutil.copy(ROOT / "scripts" / "link.sh", checkout / "scripts")
    program = checkout / ".venv" / "bin" / "the-loop"
    program.write_text("#!/bin/sh\necho this one\n")
    program.chmod(0o755)
    return checkout


def install(checkout: Path, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run the target; the environment, which it would set up first, is there."""
    environ = {**os.environ, "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(
        ["make", "--old-file", ".venv/.run", "--old-file", "setup", "install"],
        cwd=checkout, env=environ, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def test_the_units_find_the_program(checkout: Path, tmp_path: Path) -> None:
    """A link in ~/.local/bin, which both units run; a second time it is made anew, and PATH is told of."""
    home = tmp_path / "home"
    first, second = install(checkout, home), install(checkout, home)

    done = subprocess.run([home / ".local/bin/the-loop"], capture_output=True, text=True, timeout=30, check=True)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert done.stdout == "this one\n"
    assert f'export PATH="{home}/.local/bin:$PATH"' in first.stdout
    for unit in FOLDER.iterdir():
        assert "ExecStart=%h/.local/bin/the-loop " in unit.read_text()


def test_somebody_elses_program_is_left_alone(checkout: Path, tmp_path: Path) -> None:
    """A file in the link's place is not overwritten, and the remedy is named."""
    home = tmp_path / "home"
    other = home / ".local" / "bin" / "the-loop"
    other.parent.mkdir(parents=True)
    other.write_text("mine")

    done = install(checkout, home)

    assert done.returncode != 0
    assert "move it away" in done.stderr
    assert other.read_text() == "mine"


def test_a_program_that_is_not_there_is_not_linked_to(checkout: Path, tmp_path: Path) -> None:
    """Without an environment there is nothing to link to."""
    (checkout / ".venv" / "bin" / "the-loop").unlink()

    done = install(checkout, tmp_path / "home")

    assert done.returncode != 0
    assert "make setup" in done.stderr


def test_make_run_gives_the_demo_nothing_of_makes_own(checkout: Path, tmp_path: Path) -> None:
    """Else a start from any other shell would change the environment of its sessions."""
    (checkout / "scripts" / "provide.sh").write_text("exit 0\n")
    (checkout / ".venv" / "bin" / "the-loop").write_text("#!/bin/sh\nenv -0 >environment\n")
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "MY_KEY": "k"}

    done = subprocess.run(
        ["make", "--old-file", ".venv/.run", "--old-file", "setup", "run"],
        cwd=checkout, env=environ, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    given = dict(line.split("=", 1) for line in (checkout / "environment").read_text().split("\0") if line)
    assert differences(chosen(environ), chosen(given)) == ()
