"""The distribution as others get it: a wheel, installed where nothing but its own requirements can be imported."""

import re
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def tracked() -> list[str]:
    """Return the repository's files: those that a clone has, not what was built or is ignored."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def copy_source(folder: Path) -> Path:
    """Copy what a clone has into the folder, and return it: a build leaves files beside its sources."""
    for name in tracked():
        if not name.startswith(("tests/", "benchmarks/")):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
    return folder


def build(source: Path, folder: Path) -> Path:
    """Build the wheel by the pinned build requirements, which are installed, and without a network."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    _run([*pip, "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)])
    [wheel] = folder.glob("the_loop-*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a new environment, and return its program.

    The environment sees what the wheel requires, and what that requires, by links to what is installed here: nothing
    else can be imported, so a requirement that the wheel does not name is missing.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    _run([*pip, "--no-index", "--no-deps", str(wheel)])
    [metadata] = packages.glob("the_loop-*.dist-info")
    for found in required(Distribution.at(metadata)):
        for name in _top_level(found):
            link = packages / name
            if not link.exists():
                link.symlink_to(str(found.locate_file(name)))
    return folder / "bin" / "the-loop"


def required(top: Distribution) -> list[Distribution]:
    """Return what is installed of that which the distribution requires, and so on. Raises PackageNotFoundError.

    Extras are those that a requirement names. Each one's version must be within the bounds of whoever requires it.
    """
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    left = [(top, frozenset[str]())]
    while left:
        asking, extras = left.pop()
        for line in asking.requires or []:
            wanted = Requirement(line)
            key = (re.sub(r"[-_.]+", "-", wanted.name).lower(), frozenset(wanted.extras))
            marker = wanted.marker
            if key in found or (marker and not any(marker.evaluate({"extra": one}) for one in extras | {""})):
                continue
            found[key] = distribution(wanted.name)
            assert wanted.specifier.contains(found[key].version, prereleases=True), (line, found[key].version)
            left.append((found[key], key[1]))
    return list(found.values())


def _top_level(found: Distribution) -> set[str]:
    """Return the folders and files of a distribution beside which others lie, and not its programs."""
    return {file.parts[0] for file in found.files or [] if file.parts[0] not in ("..", "__pycache__")}


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
