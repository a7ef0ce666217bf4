"""Which Claude Code the suite runs: CLAUDE_CODE_VERSION of the environment, else the newest that is known."""

import os
import subprocess
from pathlib import Path

from core.harness.claude.adapter import TRIED

VERSION = os.environ.get("CLAUDE_CODE_VERSION") or TRIED[-1]
FOLDER = Path(__file__).parents[2] / ".harness" / VERSION
PROGRAMS = FOLDER / "node_modules" / ".bin"


def before(version: str) -> bool:
    """Return whether the program is older than that version."""
    return _numbers(VERSION) < _numbers(version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def told_version() -> str:
    """Return what the program says of itself. Raises OSError where it is not there."""
    said = subprocess.run([PROGRAMS / "claude", "--version"], capture_output=True, text=True, timeout=60, check=True)
    return said.stdout.strip()
