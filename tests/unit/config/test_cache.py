"""The last validated form is used for the same text only, and never in the way."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import core
from core.config.loading import load
from tests.unit.config.conftest import ConfigFolder

TEXT = "eventLog: {keep: 3}\nharnesses: {mine: {start: [x], clear: C-u}}\n"
_PROBE = """
import sys
from pathlib import Path
from core.config.loading import load
found = load(Path(sys.argv[1]))
assert found.event_log.keep == 3, found
print(sorted({"pydantic", "yaml", "importlib.metadata", "subprocess"} & set(sys.modules)))
"""
_CHANGES = """
import os, sys
from pathlib import Path
from core.config import cache
from core.config.loading import load
path = Path(sys.argv[1])
text = path.read_text()
load(path)
assert cache.recall(path, text, os.environ) is not None
files = {module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "core"}
for file in sorted(files):
    found = os.stat(file)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    if cache.recall(path, text, os.environ) is not None:
        print(file)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
assert cache.recall(path, text, os.environ) is not None
assert len(files) > 20, files
"""


def _cache_file(folder: ConfigFolder) -> Path:
    (found,) = (folder.home / ".cache" / "the-loop").glob("config-*.json")
    return found


def _modules(folder: ConfigFolder) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", _PROBE, str(folder.path)],
        env=folder.env, capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    found: list[str] = json.loads(ran.stdout.replace("'", '"'))
    return found


def test_the_second_load_imports_neither_the_parser_nor_the_validator(folder: ConfigFolder) -> None:
    """A command that only reads pays for yaml and pydantic once a change, not once a call."""
    folder.write(TEXT)

    first, second = _modules(folder), _modules(folder)

    assert {"pydantic", "yaml"} <= set(first)
    assert second == []


def test_a_process_without_a_file_imports_neither(folder: ConfigFolder) -> None:
    """Defaults need no validation."""
    probe = _PROBE.replace("load(Path(sys.argv[1]))", "load()").replace("keep == 3", "keep == 5")

    ran = subprocess.run([sys.executable, "-c", probe], env=folder.env, capture_output=True, text=True, check=True,
                         timeout=60, cwd=Path(__file__).parents[3])  # fmt: skip

    assert ran.stdout == "[]\n"


def test_what_comes_from_the_cache_is_what_was_validated(folder: ConfigFolder) -> None:
    """Both ways lead to the same settings."""
    first = folder.load(TEXT)

    second = load(folder.path, folder.env)

    assert second == first
    assert second.harnesses["mine"].clear == b"\x15"


def test_the_cache_is_for_its_owner_alone(folder: ConfigFolder) -> None:
    """The file is 0600, in a folder of 0700."""
    folder.load(TEXT)

    file = _cache_file(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def _tampered(folder: ConfigFolder) -> Path:
    folder.load(TEXT)
    file = _cache_file(folder)
    entry = json.loads(file.read_text())
    entry["resolved"]["eventLog"]["keep"] = 99
    file.write_text(json.dumps(entry))
    return file


def test_a_cache_that_others_may_touch_is_not_believed(folder: ConfigFolder) -> None:
    """It names what runs: with any right for others it is passed over and written anew."""
    file = _tampered(folder)
    file.chmod(0o620)

    assert load(folder.path, folder.env).event_log.keep == 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_in_place_of_the_cache_is_not_followed(folder: ConfigFolder, tmp_path: Path) -> None:
    """A link could lead to a file that somebody else prepared."""
    file = _tampered(folder)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")

    assert load(folder.path, folder.env).event_log.keep == 3
    assert not file.is_symlink()


def test_any_change_is_seen(folder: ConfigFolder) -> None:
    """Another text, of the same length and the same time, is validated again."""
    folder.load(TEXT)
    before = folder.path.stat()
    folder.path.write_text(TEXT.replace("3", "4"))
    os.utime(folder.path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert load(folder.path, folder.env).event_log.keep == 4


def test_a_change_of_any_module_that_validating_loads_is_seen(folder: ConfigFolder, tmp_path: Path) -> None:
    """After an upgrade nothing is taken for valid that an earlier release validated, whichever file it changed."""
    shutil.copytree(Path(core.__file__).parent, tmp_path / "code" / "core", ignore=shutil.ignore_patterns("*.pyc"))
    folder.write(TEXT)

    ran = subprocess.run(
        [sys.executable, "-c", _CHANGES, str(folder.path)],
        env=folder.env, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path / "code",
    )  # fmt: skip

    assert ran.stdout.splitlines() == []


@pytest.mark.parametrize("name", ["HOME", "XDG_STATE_HOME"])
def test_another_users_folders_are_seen(folder: ConfigFolder, tmp_path: Path, name: str) -> None:
    """What `~` and the state folder mean is part of what was validated."""
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    folder.write("routing: {spawnWorkdir: ~/w}\n")
    before = load(folder.path, folder.env | cache)

    after = load(folder.path, folder.env | cache | {name: "/other"})

    assert after != before
    assert "/other" in f"{after.state_root}"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"text": 5}', b"[" * 100_000])
def test_a_damaged_cache_is_passed_over(folder: ConfigFolder, content: bytes) -> None:
    """Whatever stands in the cache, the file decides."""
    folder.load(TEXT)
    _cache_file(folder).write_bytes(content)

    assert load(folder.path, folder.env).event_log.keep == 3


def test_a_cache_that_cannot_be_written_is_no_fault(folder: ConfigFolder) -> None:
    """A read-only home costs time, nothing else."""
    (folder.home / ".cache").write_text("a file where the folder should be")

    assert folder.load(TEXT).event_log.keep == 3
    assert load(folder.path, folder.env).event_log.keep == 3


def test_the_cache_does_not_grow_with_every_demo(folder: ConfigFolder) -> None:
    """The newest sixteen configurations stay."""
    for number in range(20):
        path = folder.root / f"{number}.yaml"
        path.write_text(TEXT)
        load(path, folder.env)

    assert len(list((folder.home / ".cache" / "the-loop").iterdir())) == 16


def test_a_broken_file_leaves_no_cache(folder: ConfigFolder) -> None:
    """Only what was valid is kept."""
    folder.problems("nonsense: 1")

    assert not (folder.home / ".cache").exists()
