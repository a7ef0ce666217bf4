"""`make test-harness` gets the version of a harness that was asked for, each in a folder of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
#: `npm view` tells that the latest is 2.1.9; `npm install` writes a program that tells $SAYS, or what was asked for
NPM = """#!/bin/sh
echo "$@" >> "$HOME/asked"
case $1 in
    view) echo 2.1.9 ;;
    install)
        for word; do asked=${word##*@}; done
        mkdir -p "$3/node_modules/.bin"
        printf '#!/bin/sh\\necho "%s (Claude Code)"\\n' "${SAYS:-$asked}" > "$3/node_modules/.bin/claude"
        chmod +x "$3/node_modules/.bin/claude" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a checkout with the scripts, whose machine has a package manager that notes what it is asked."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text(NPM)
    (tmp_path / "bin" / "npm").chmod(0o755)
    return tmp_path


def provide(checkout: Path, version: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Ask for a version."""
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "scripts/harness_program.sh", "claude", "@anthropic-ai/claude-code", "claude", version],
        cwd=checkout,
        env={"PATH": path, "HOME": str(checkout), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def asked(checkout: Path) -> list[str]:
    """Return what the package manager was asked to do."""
    path = checkout / "asked"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def test_each_version_is_installed_once_into_a_folder_of_its_own(checkout: Path) -> None:
    """Its number is all that is printed; what is there already is not fetched again."""
    numbers = [provide(checkout, version).stdout for version in ("2.1.1", "2.1.2", "2.1.1")]

    assert numbers == ["2.1.1\n", "2.1.2\n", "2.1.1\n"]
    assert asked(checkout) == ["install", "install"]
    assert sorted(path.name for path in (checkout / ".harness" / "claude").iterdir()) == ["2.1.1", "2.1.2"]


def test_latest_is_looked_up_each_time(checkout: Path) -> None:
    """The number that it has today is printed."""
    numbers = [provide(checkout, "latest").stdout for _ in range(2)]

    assert numbers == ["2.1.9\n", "2.1.9\n"]
    assert asked(checkout) == ["view", "install", "view"]


def test_a_program_of_another_version_is_not_taken(checkout: Path) -> None:
    """Results under a wrong number are worse than none."""
    done = provide(checkout, "2.1.1", SAYS="2.1.7")

    assert (done.returncode, done.stdout) == (1, "")
    assert "does not say that it is 2.1.1" in done.stderr
    assert not (checkout / ".harness" / "claude" / "2.1.1").exists()


@pytest.mark.parametrize("version", ["2.1.1;id", "a b", "../x", "$(id)"])
def test_what_is_no_version_is_refused(checkout: Path, version: str) -> None:
    """Nothing is looked up or installed under such a name."""
    done = provide(checkout, version)

    assert done.returncode == 1
    assert "is no version" in done.stderr
    assert asked(checkout) == []
