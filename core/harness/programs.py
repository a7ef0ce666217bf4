"""Run a harness's program for a moment, to ask what it is."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence

from core.base.errors import HarnessNotInstalled
from core.model.harness import Installed

SECONDS = 5.0  #: a program takes 0.02 to 0.8 s to say its version


class Programs:
    """Asks programs of one harness for their version, once for each program that there is."""

    def __init__(self, tried: tuple[str, ...], said: re.Pattern[str]) -> None:
        """`tried`: see Installed; `said`: how a program says its version, which is the first group."""
        self._tried = tried
        self._said = said
        self._versions: dict[tuple[str, int, int, int], Installed] = {}

    def installed(self, find: Callable[[], str], environ: Mapping[str, str]) -> Installed:
        """Return which version the program has that `find` finds, by its own word."""
        try:
            program = find()
            found = os.stat(program)
        except HarnessNotInstalled as error:
            return Installed("", self._tried, error.message)
        except OSError as error:
            return Installed("", self._tried, f"{error.filename}: {error.strerror}")
        identity = (program, found.st_ino, found.st_size, found.st_mtime_ns)
        if identity not in self._versions:
            told = self._ask(program, environ)
            if told.trouble:
                return told
            self._versions[identity] = told
        return self._versions[identity]

    def _ask(self, program: str, environ: Mapping[str, str]) -> Installed:
        try:
            code, out = run_program((program, "--version"), environ)
        except OSError as error:
            return Installed("", self._tried, str(error))
        said = self._said.search(out)
        if said is not None:
            return Installed(said[1], self._tried)
        words = " ".join(out.split())[:200] or "nothing"
        return Installed("", self._tried, f"`{program} --version` ended with {code} and said: {words}")


def run_program(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """Run a program that asks nothing and is done in a moment; return its code and all that it said.

    Raises OSError, also where it takes too long.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environ),
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error
    return done.returncode, done.stdout + done.stderr
