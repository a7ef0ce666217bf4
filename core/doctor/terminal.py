"""tmux: its version, whether texts arrive in a pane letter by letter, and how the server of the sessions is."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

from core.base.clock import Clock, Deadline
from core.base.environment import chosen
from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.names import new_instance
from core.model.health import Finding, State
from core.model.pane import Receipt, Spawn, Written
from core.service.hosting import lingers, threats
from core.session.system import System
from core.tmux.runner import Runner
from core.tmux.server import TmuxServer
from core.tmux.transport import OLDEST, check_version

VERSION_SECONDS = 3.0
PASTE_SECONDS = 60.0
_CALL_SECONDS = 4.0
_READY_SECONDS = 10.0
_TEXT_SECONDS = 3.0
_POLL = 0.02
_COPY_MODE = "copy mode"
_TEXTS = {
    "several lines": "one\ntwo\n\nthree",
    "a semicolon at the end": "make;",
    "a dash at the beginning": "-rf /",
    "quotes and signs": "#{pane_id} $HOME `id` \"a\" 'b' \\ ~ ! %1",
    "letters outside ASCII": "grüße, 日本語 🎉",
    _COPY_MODE: "somebody has scrolled",
    "100 kB": "0123456789abcde\n" * 6400,
}


def version(server: TmuxServer) -> Iterator[Finding]:
    """Look at the version of tmux."""
    try:
        said = server.process().version(VERSION_SECONDS)
        check_version(said)
    except TmuxMissing as error:
        yield Finding("tmux", State.FAILED, error.message, error.remedy)
    except TmuxSilent as error:
        yield Finding("tmux", State.UNKNOWN, error.message, "run `tmux -V` and see what keeps it from ending")
    else:
        yield Finding("tmux", State.OK, f"version {said} (needed: {OLDEST[0]}.{OLDEST[1]} or newer)")


def paste(server: TmuxServer, clock: Clock) -> Iterator[Finding]:
    """Paste texts into a scratch pane, as messages are, and compare what its program reads. It has its own server."""
    folder = Path(tempfile.mkdtemp(prefix="tl-"))
    environ = {name: value for name, value in server.environ.items() if name != "TMUX"} | {"TMUX_TMPDIR": str(folder)}
    scratch = TmuxServer("doctor", folder / "tmux.conf", server.secrets, server.binary, environ=environ)
    runner = Runner(scratch, scratch.process(), timeout=_CALL_SECONDS, clock=clock)
    try:
        failed = _tried(scratch, runner, folder, clock)
    except TmuxSilent as error:
        yield Finding("pasting", State.UNKNOWN, error.message, "run `tmux -V` and see what keeps it from ending")
    except CoreError as error:
        yield Finding("pasting", State.FAILED, f"no scratch pane could be used: {error.message}", error.remedy)
    except OSError as error:
        yield Finding("pasting", State.UNKNOWN, f"no scratch pane could be made: {error}", "see that path")
    else:
        yield _judged(failed)
    finally:
        with suppress(CoreError):
            scratch.process(start=False).run([("kill-server",)], _CALL_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _judged(failed: list[str]) -> Finding:
    if failed:
        told = f"a scratch pane did not get every text as it was pasted: {'; '.join(failed)}"
        return Finding("pasting", State.FAILED, told, "install another version of tmux, 3.2 or newer")
    told = f"a scratch pane got {len(_TEXTS)} texts letter by letter: {', '.join(_TEXTS)}"
    return Finding("pasting", State.OK, told)


def _tried(server: TmuxServer, runner: Runner, folder: Path, clock: Clock) -> list[str]:
    """Return the kinds of text that did not arrive, each with what happened. Raises CoreError, OSError."""
    received, launcher, instance = folder / "received", folder / "launch", new_instance()
    program = Path(__file__).with_name("paste_reader.py")
    words = (sys.executable, "-I", "-S", str(program), str(received))
    launcher.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
    launcher.chmod(0o700)
    server.write_conf()
    server.process().run(server.starting(), _CALL_SECONDS)
    until = clock.now() + timedelta(seconds=_CALL_SECONDS)
    pane = runner.spawn(Spawn("doctor", instance, launcher, folder, chosen(server.environ), until))
    if not _comes(lambda: "ready" in runner.screen(instance, 5), Deadline(clock, _READY_SECONDS), clock):
        return ["its program never read"]
    failed = []
    for number, (kind, text) in enumerate(_TEXTS.items()):
        if kind == _COPY_MODE:
            server.process().run([("copy-mode", "-t", pane.pane_id)], _CALL_SECONDS)
        data, before = b"\x1b[200~" + text.encode() + b"\x1b[201~", _size(received)
        until = clock.now() + timedelta(seconds=_CALL_SECONDS)
        written = runner.write(instance, data, Receipt.PASTED, f"doctor-{number}", until)
        if written is not Written.DONE:
            failed.append(f"{kind}: {written.value}")
            continue
        _comes(partial(_holds, received, before + len(data)), Deadline(clock, _TEXT_SECONDS), clock)
        got = received.read_bytes()[before:] if _size(received) else b""
        if got != data:
            failed.append(f"{kind}: {len(got)} of {len(data)} bytes{'' if data.startswith(got) else ', others'}")
    return failed


def _comes(condition: Callable[[], bool], deadline: Deadline, clock: Clock) -> bool:
    while not condition():
        if deadline.passed():
            return False
        clock.pause(_POLL)
    return True


def _holds(path: Path, size: int) -> bool:
    return _size(path) >= size


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def server(system: System, root: Path = Path("/")) -> Iterator[Finding]:
    """Look at the tmux server of the sessions, and at what could end it. `root` is where the machine's files are."""
    try:
        survey = system.runner.survey()
    except TmuxMissing as error:
        yield Finding("tmux server", State.FAILED, error.message, error.remedy)
        return
    except TmuxSilent as error:
        remedy = "see whether its process is stopped or swapped out; nothing is started or ended meanwhile"
        yield Finding("tmux server", State.UNKNOWN, error.message, remedy)
        return
    if survey.server is None:
        yield Finding("tmux server", State.OK, "none runs; the start of a session starts it")
        yield from _linger(root)
        return
    yield Finding("tmux server", State.OK, f"process {survey.server}, {len(survey.panes)} panes")
    found = threats(system, survey.server, root)
    for threat in found or ():
        yield Finding("ends with", State.WARNING, threat.what, threat.remedy)
    if found == ():
        yield Finding("ends with", State.OK, "neither a logout nor the end of a service ends the tmux server")


def _linger(root: Path) -> Iterator[Finding]:
    if lingers(os.geteuid(), root) is False:
        told = "no linger: everything of yours ends at your last logout"
        yield Finding("ends with", State.WARNING, told, "`loginctl enable-linger`")
