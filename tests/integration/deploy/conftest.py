"""A product whose machine has a systemd of its own: two small programs on PATH that note what they are asked."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.product import PROGRAM, Done, Product, end, product
from tests.support.tmux import alive

_SYSTEMCTL = """\
#!/bin/sh
cd {folder} || exit 1
echo "systemctl $*" >>calls
[ "$1" = --user ] && shift
[ -e "units/$2" ] || exit 4
case "$1" in
  cat) exit 0 ;;
  start)
    [ -e broken ] && exit 1
    env >unit-environment
    {program} serve --tmux </dev/null >unit-log 2>&1 &
    echo $! >main-pid ;;
  *) exit 1 ;;
esac
"""
_SYSTEMD_RUN = """\
#!/bin/sh
echo "systemd-run $*" >>{folder}/calls
[ -e {folder}/no-scopes ] && exit 1
while [ "$1" != -- ]; do shift; done
shift
echo "$PPID" >{folder}/scope
exec "$@"
"""
TMUX_UNIT = "the-loop-tmux.service"


class Machine:
    """The product at its default place, without $TMUX_TMPDIR, and what stands for systemd."""

    def __init__(self, running: Product) -> None:
        self.product = running
        self.folder = running.folder / "systemd"
        (self.folder / "units").mkdir(parents=True)
        for name, text in (("systemctl", _SYSTEMCTL), ("systemd-run", _SYSTEMD_RUN)):
            program = self.folder / name
            program.write_text(text.format(folder=self.folder, program=PROGRAM))
            program.chmod(0o755)
        default = running.folder / "home" / ".config" / "the-loop" / "cli-config.yaml"
        default.parent.mkdir(parents=True)
        default.write_text(yaml.safe_dump(running.document()))
        self._seen: set[int] = set()

    @property
    def socket(self) -> Path:
        """Where the server's socket belongs."""
        return self.product.paths.local / "tmux" / f"tmux-{os.geteuid()}" / self.product.socket

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the environment of a login: no $TMUX_TMPDIR, systemd's programs on PATH."""
        environ = self.product.environ(**changes)
        if "TMUX_TMPDIR" not in changes:
            del environ["TMUX_TMPDIR"]
        return {**environ, "PATH": f"{self.folder}{os.pathsep}{environ['PATH']}"}

    def run(self, *words: str, **changes: str) -> Done:
        """Run the program with the default configuration."""
        done = self.product.program(words, env=self.environ(**changes))
        self.server()
        return done

    def tmux(self, *words: str, socket: Path | None = None) -> str:
        """Run tmux on the socket and return what it printed; "" where none listens."""
        done = subprocess.run(
            ["tmux", "-S", str(socket or self.socket), *words], capture_output=True, text=True, timeout=20, check=False
        )
        return done.stdout.strip()

    def server(self, socket: Path | None = None) -> int | None:
        """Return the server's pid."""
        found = self.tmux("-N", "display-message", "-p", "#{pid}", socket=socket)
        if found:
            self._seen.add(int(found))
        return int(found) if found else None

    def calls(self) -> list[str]:
        """Return what systemd was asked."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def close(self) -> None:
        """End every server that was seen."""
        for pid in self._seen:
            if alive(pid):
                end(pid)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Give the machine."""
    with product() as running:
        here = Machine(running)
        try:
            yield here
        finally:
            here.close()
