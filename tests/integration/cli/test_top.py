"""`the-loop top` in a real terminal of 80 columns and 24 rows: a tmux pane."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator

import pytest

from core.cli.top import Snapshot, View
from tests.support.product import NAME, PROGRAM, Product, product
from tests.support.tmux import PrivateTmux, launcher, private_tmux, wait_until

OTHER = "builder"


@pytest.fixture(scope="module")
def running() -> Iterator[Product]:
    """Give a product with a session that runs, one that is paused, and no service."""
    with product() as one:
        sessions = [{"name": NAME}, {"name": OTHER, "autoStart": False}]
        one.configure(standingSessions={"enabled": True, "sessions": sessions})
        assert one.cli("standing", "start", NAME).code == 0
        assert one.cli("standing", "start", OTHER).code == 0
        assert one.cli("standing", "pause", OTHER, "--reason", "lunch \x1b[31mbreak").code == 0
        yield one


class Pane:
    """A shell's pane in which the command is given, and again after Enter; the shell says how it ended."""

    def __init__(self, tmux: PrivateTmux, product: Product, *words: str, columns: int = 80, rows: int = 24) -> None:
        self._tmux = tmux
        command = shlex.join([str(PROGRAM), "--config", str(product.config), "top", *words])
        environ = [f"-e{name}={value}" for name, value in product.environ().items() if name in ("HOME", "PATH")]
        told = f"{command}\necho code=$?\nstty -a | grep -o -e '-*icanon'"
        body = f"trap : INT\nunset TMUX\nwhile :; do\n{told}\nread again\ndone"
        script = launcher(tmux.folder / "shell", body)
        tmux.tmux(
            *("new-session", "-d", "-s", "viewer", "-x", str(columns), "-y", str(rows), *environ),
            *(f"-eTMUX_TMPDIR={product.folder / 'tmux'}", str(script)),
        )

    def press(self, *keys: str) -> None:
        """Press keys."""
        self._tmux.tmux("send-keys", "-t", "=viewer:", *keys)

    def screen(self) -> list[str]:
        """Return the rows that are shown."""
        return self._tmux.tmux("capture-pane", "-p", "-t", "=viewer:").splitlines()

    def wait(self, *parts: str) -> list[str]:
        """Return the rows, once all parts are shown."""
        wait_until(lambda: all(part in "\n".join(self.screen()) for part in parts), f"{parts} shown: {self.screen()}")
        return self.screen()

    def alternate(self) -> bool:
        """Return whether a program draws on the whole screen."""
        return self._tmux.tmux("display-message", "-p", "-t", "=viewer:", "#{alternate_on}").strip() == "1"

    def program(self) -> int:
        """Return the process of the command."""
        shell = self._tmux.tmux("display-message", "-p", "-t", "=viewer:", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell, "-f", "top"], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])


@pytest.fixture
def tmux() -> Iterator[PrivateTmux]:
    """Give the server of the terminal, which is not the product's."""
    with private_tmux() as private:
        private.server.write_conf()  # a server that misses its file shows that in its first pane, and takes its keys
        yield private


def test_it_shows_sessions_and_the_screen_of_one_within_80_by_24(running: Product, tmux: PrivateTmux) -> None:
    """Arrows select, Enter opens, q quits; then the terminal is as it was."""
    pane = Pane(tmux, running)
    rows = pane.wait(NAME, OTHER, "idle", "paused: lunch", "q: quit")
    assert len(rows) == 24
    assert max(map(len, rows)) <= 80
    assert all(column in rows[1] for column in ("NAME", "STATE", "DOING", "QUEUE", "LOOPS", "TOKENS", "COST"))
    assert pane.alternate()

    pane.press("Enter")
    pane.wait(f"── {OTHER} ")
    pane.press("Down")
    rows = pane.wait(f"── {NAME} ", "Ready")
    assert len(rows) == 24
    assert rows[-1].startswith("up/down")

    pane.press("q")
    after = pane.wait("code=0", "icanon")
    assert "-icanon" not in "\n".join(after[-5:])
    assert not pane.alternate()


def test_it_ends_by_ctrl_c_and_by_a_signal(running: Product, tmux: PrivateTmux) -> None:
    """Both leave the terminal as it was."""
    pane = Pane(tmux, running, NAME, "--interval", "0.5")
    pane.wait(f"── {NAME} ")
    pane.press("C-c")
    pane.wait("code=0")
    pane.press("Enter")
    wait_until(pane.alternate, "it is shown again")
    os.kill(pane.program(), signal.SIGTERM)

    wait_until(lambda: "\n".join(pane.screen()).count("code=0") == 2, "it has ended")
    assert not pane.alternate()


def test_a_tmux_that_is_frozen_keeps_nobody_from_leaving(running: Product, tmux: PrivateTmux) -> None:
    """What is shown says how old it is, and keys are taken."""
    pane = Pane(tmux, running, "--interval", "0.5")
    pane.wait(NAME, "idle")
    server = int(running.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        pane.wait("s ago")
        pane.press("q")
        pane.wait("code=0")
    finally:
        os.kill(server, signal.SIGCONT)


def test_off_a_terminal_it_is_printed_once_and_plain(running: Product) -> None:
    """For a pipe there is nothing to redraw; what an agent or a person wrote moves no cursor."""
    done = running.cli("top")
    listed = running.cli("top", "--json")

    assert done.code == 0
    assert "\x1b" not in done.out
    assert "paused: lunch" in done.out
    assert {row["name"] for row in listed.json["sessions"]} == {NAME, OTHER}
    assert running.cli("top", "nobody").code == 1


def test_a_selected_session_that_goes_gives_its_place_to_the_first() -> None:
    """And keys at the ends stay there."""
    view = View("b")
    view.take(Snapshot(sessions=[{"name": "a"}, {"name": "b"}]))
    assert view.press("\x1b[B")
    assert view.selected == "b"

    view.take(Snapshot(sessions=[{"name": "a"}, {"name": "c"}]))

    assert view.selected == "a"
    assert not view.press("q")
