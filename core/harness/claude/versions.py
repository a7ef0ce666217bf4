"""Which versions of Claude Code were tried, and which one is installed. docs/harness-matrix.md: what each can do."""

import re
import subprocess
from collections.abc import Mapping

from core.domain.harness import Installed

#: Oldest first: the oldest that is supported, and the newest that is known. `make harness-matrix` runs the suite of
#: tests/harness over them.
TRIED = ("2.1.197", "2.1.280", "2.1.332")
_SAID = re.compile(r"(\d+(?:\.\d+)+\S*) \(Claude Code\)")
SECONDS = 5.0  #: it takes 0.02 to 0.3 s


def ask_version(program: str, environ: Mapping[str, str]) -> Installed:
    """Run `PROGRAM --version`, which writes nothing, and return what it says of itself."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environ),
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Installed("", TRIED, str(error))
    said = _SAID.match(done.stdout)
    if said is None:
        words = " ".join((done.stdout + done.stderr).split())[:200]
        return Installed(
            "", TRIED, f"`{program} --version` ended with {done.returncode} and said: {words or 'nothing'}"
        )
    return Installed(said[1], TRIED)
