"""Which program the cases of a harness run: HARNESS_VERSION of the environment, else the newest that was tried.

`python -m tests.harness.program` prints the harnesses that have cases; with a harness its npm package, its command, and
the versions of it that were tried; with `ends` behind it the oldest and the newest of them alone.
"""

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Program:
    """A harness's program, installed by npm into `.harness/HARNESS/VERSION`."""

    harness: str
    package: str
    command: str

    @property
    def tried(self) -> tuple[str, ...]:
        """The versions that its adapter calls tried, oldest first."""
        adapter = importlib.import_module(f"core.harness.{self.harness}.adapter")
        tried: tuple[str, ...] = adapter.TRIED
        return tried

    @property
    def version(self) -> str:
        """The version that runs."""
        return os.environ.get("HARNESS_VERSION") or (self.tried or ("latest",))[-1]

    @property
    def folder(self) -> Path:
        """The folder that npm has installed it into."""
        return ROOT / ".harness" / self.harness / self.version

    @property
    def programs(self) -> Path:
        """The folder for PATH."""
        return self.folder / "node_modules" / ".bin"

    def before(self, version: str) -> bool:
        """Return whether the program is older than that version."""
        return _numbers(self.version) < _numbers(version)

    def trouble(self) -> str:
        """Return why its cases cannot run, and the remedy; "" where they can."""
        remedy = f"run `make test-harness HARNESS={self.harness} VERSION={self.version}`"
        command = [str(self.programs / self.command), "--version"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError) as error:
            return f"{error}: {remedy}"
        return "" if self.version in told.split() else f"{self.folder} holds {told}: remove it, then {remedy}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split("."))


_KNOWN = (
    Program("claude", "@anthropic-ai/claude-code", "claude"),
    Program("codex", "@openai/codex", "codex"),
    Program("opencode", "opencode-ai", "opencode"),
    Program("gemini", "@google/gemini-cli", "gemini"),
)
#: those that have cases: a folder of tests/harness
PROGRAMS = {program.harness: program for program in _KNOWN if (HERE / program.harness).is_dir()}


def main(arguments: list[str]) -> None:
    """Print what scripts/harness_suite.sh asks."""
    if not arguments:
        print(" ".join(PROGRAMS))
        return
    if arguments[0] not in PROGRAMS:
        sys.exit(f"there are no cases for {arguments[0]!r}; there are for {', '.join(PROGRAMS)}")
    program = PROGRAMS[arguments[0]]
    tried = program.tried
    if arguments[1:] == ["ends"]:
        tried = tuple(dict.fromkeys((*tried[:1], *tried[-1:])))
    print(program.package, program.command, *tried)


if __name__ == "__main__":
    main(sys.argv[1:])
