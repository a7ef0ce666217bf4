"""Find out which version of a harness's program is installed: by its package, or by running it for a moment."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.base.errors import HarnessNotInstalled
from core.base.files import read_plain
from core.harness.base import text_of
from core.model.harness import Installed

SECONDS = 5.0  #: a program takes 0.02 to 0.8 s to say its version
_MOST = 1 << 20  #: bytes of a package's own description
_BARE = re.compile(r"(?m)^\s*v?(\d+(?:\.\d+)+\S*)\s*$")  #: a line that is a version and nothing else


class Programs:
    """Tells the version of one harness's programs, which is looked up once for each program that there is."""

    def __init__(
        self, tried: tuple[str, ...], said: re.Pattern[str] = _BARE, *, package: str = "", seconds: float | None = None
    ) -> None:
        """Know how a version is told.

        `tried`: see Installed; `said`: how a program says its version, which is the first group; `package`: the npm
        package whose description tells it, where the program takes its time to start; `seconds`: for asking it,
        SECONDS if not given.
        """
        self._tried = tried
        self._said = said
        self._package = package
        self._seconds = seconds
        self._versions: dict[tuple[str, int, int, int], Installed] = {}

    def installed(self, find: Callable[[], str], environ: Mapping[str, str]) -> Installed:
        """Return which version the program has that `find` finds: by its package where that is ours, else its word."""
        try:
            program = find()
            found = os.stat(program)
        except HarnessNotInstalled as error:
            return Installed("", self._tried, error.message)
        except OSError as error:
            return Installed("", self._tried, f"{error.filename}: {error.strerror}")
        identity = (program, found.st_ino, found.st_size, found.st_mtime_ns)
        if identity not in self._versions:
            version = self._packaged(program)
            told = Installed(version, self._tried) if version else self._ask(program, environ)
            if told.trouble:
                return told
            self._versions[identity] = told
        return self._versions[identity]

    def _packaged(self, program: str) -> str:
        """Return the version of the package that the program is in; "" where it is in another, or in none."""
        for folder in Path(os.path.realpath(program)).parents[:3] if self._package else ():
            try:
                document = json.loads(read_plain(folder / "package.json", _MOST))
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(document, dict) and text_of(document, "name") == self._package:
                return text_of(document, "version")
        return ""

    def _ask(self, program: str, environ: Mapping[str, str]) -> Installed:
        try:
            code, out = run_program((program, "--version"), environ, self._seconds or SECONDS)
        except OSError as error:
            return Installed("", self._tried, str(error))
        said = self._said.search(out)
        if said is not None:
            return Installed(said[1], self._tried)
        words = " ".join(out.split())[:200] or "nothing"
        return Installed("", self._tried, f"`{program} --version` ended with {code} and said: {words}")


def run_program(argv: Sequence[str], environ: Mapping[str, str], seconds: float = SECONDS) -> tuple[int, str]:
    """Run a program that asks nothing and is done in a moment; return its code and all that it said.

    Raises OSError, also where it takes longer than so many seconds.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environ),
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error
    return done.returncode, done.stdout + done.stderr
