"""What lies in a folder that others write to meanwhile: what goes while it is looked at is passed over."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def modes(root: Path) -> dict[Path, int]:
    """Return the mode of everything below the folder, links not followed."""
    return {path: found.st_mode for path in _below(root) if (found := _looked_at(path)) is not None}


def contents(root: Path) -> dict[str, bytes]:
    """Return the content of every file below the folder, by its path."""
    found: dict[str, bytes] = {}
    for path, mode in modes(root).items():
        if stat.S_ISREG(mode):
            try:
                found[str(path)] = path.read_bytes()
            except FileNotFoundError:
                continue
    return found


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root, onerror=_unless_gone):
        yield from (Path(folder) / name for name in (*folders, *files))


def _looked_at(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def lay_programs(folder: Path, *names: str) -> Path:
    """Put programs of these names into the folder, each of which leaves a mark where it is run; return the mark."""
    mark = folder / "run"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "$0" >> {mark}\nexec sleep 60\n')
        path.chmod(0o755)
    return mark


def lay_traps(folder: Path, *modules: str) -> Path:
    """Put modules of these names into the folder, each of which leaves a mark where it is imported; return the mark."""
    mark = folder / "imported"
    for module in modules:
        path = folder / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\n")
    return mark
