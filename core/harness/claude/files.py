"""Where Claude Code keeps what we read: its configuration, a conversation's file, a process's status."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.plainfiles import read_plain
from core.values import dataclass

MANAGED = Path("/etc/claude-code/managed-settings.json")  #: what the machine's owner settles for all of its users
LONGEST = 1 << 26  #: bytes of a file of settings; the one that holds every project has some millions
_LONGEST = 200  #: longer folder names are cut and end in a hash


@dataclass(frozen=True)
class ClaudeFiles:
    """Claude Code's files under one home. `config_dir` is $CLAUDE_CONFIG_DIR where it is set."""

    home: Path
    config_dir: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "ClaudeFiles":
        """Return the files that a process with this environment would use."""
        given = environ.get("CLAUDE_CONFIG_DIR")
        home = environ.get("HOME")
        return cls(Path(home) if home else Path.home(), Path(given) if given else None)

    @property
    def folder(self) -> Path:
        """The folder of conversations, settings and status files."""
        return self.config_dir or self.home / ".claude"

    @property
    def configuration(self) -> Path:
        """The file that holds trust and onboarding; an old installation keeps it inside the folder."""
        old = self.folder / ".config.json"
        return old if old.exists() else (self.config_dir or self.home) / ".claude.json"

    @property
    def settings(self) -> Path:
        """The user's settings, for whatever they start."""
        return self.folder / "settings.json"

    def conversation(self, cwd: Path, session_id: str) -> Path:
        """Return the conversation's JSONL file, which exists from its first turn on."""
        return self.folder / "projects" / project_folder(os.path.realpath(cwd)) / f"{session_id}.jsonl"

    def status(self, pid: int) -> Path:
        """Return the status file of a process."""
        return self.folder / "sessions" / f"{pid}.json"


def read_settings(path: Path) -> Mapping[str, Any]:
    """Return a file's JSON object; an empty one where it is none or cannot be read, which Claude Code passes over."""
    try:
        content = json.loads(read_plain(path, LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def project_folder(cwd: str) -> str:
    """Return the name that Claude Code gives to a folder's conversations.

    Every UTF-16 unit that is no ASCII letter or digit becomes `-`; a name of more than 200 units is cut there and gets
    a hash of the whole path (seen in 2.1.197; `make test-harness` holds it against the program).
    """
    units = memoryview(cwd.encode("utf-16-le", "surrogatepass")).cast("H").tolist()
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{_base36(abs(_hash32(units)))}"


def _hash32(units: list[int]) -> int:
    """Return the signed 32-bit hash `h = h * 31 + unit`."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text or "0"
