"""The tmux server that the product uses: how it is addressed, configured, started clean, and found again.

tmux forks its server from its first client, and a process stays in the cgroup in which it was born. A server that a
service started would end when systemd stops that service, one from a login may end at the logout, and all agents with
it. So the server's own unit is asked first, then a transient scope. If neither is available the caller starts it, and
`the-loop status` says where it runs.

tmux would put its socket into /tmp, where a cleaner may delete it while the server lives. Ours is in the state folder:
nobody cleans that, it does not depend on a login, and all our processes know it. `$TMUX_TMPDIR` wins where it is set.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from core.base.environment import server_environment
from core.base.errors import ProcessesUnknown, Refused, SpawnFailed
from core.base.files import at_usual_limit, read_plain
from core.base.values import dataclass, field
from core.tmux.transport import Line, ProcessTransport, Reply, base_environment, our_environment, silent

#: What the kernel's sockaddr_un holds, without its NUL.
LONGEST = 107 if sys.platform.startswith("linux") else 103


@dataclass(frozen=True)
class Place:
    """A socket, and whether tmux finds it by its name alone: then it makes the folder itself, and checks its owner."""

    socket: Path
    by_name: bool


def place_of(folder: Path, name: str, environ: Mapping[str, str]) -> Place:
    """Return the place of the server `name` whose files lie in `folder`.

    A state folder whose path is too long for a socket leaves the choice to tmux. The layout below the folder is that
    of tmux, so that `TMUX_TMPDIR=FOLDER/tmux tmux -L NAME` finds the same socket.
    """
    below = Path(f"tmux-{os.geteuid()}") / name
    chosen = environ.get("TMUX_TMPDIR", "")
    own = folder / "tmux" / below
    if not chosen and len(os.fsencode(own)) <= LONGEST:
        return Place(own, by_name=False)
    return Place(Path(chosen if os.path.isdir(chosen) else "/tmp") / below, by_name=True)


UNIT = "the-loop-tmux.service"  #: of systemd, which starts the server of the default configuration
CONTROL_SESSION = "_the-loop"  #: belongs to the control client, and runs nothing of anybody's
_LONGEST = 1 << 16  # bytes of a file of ours
_REVIVAL = 1.0  # seconds that a server gets to make its socket anew
_SLEEP = "2147483647"

_CONF = """\
# Written by the-loop at every start of a session; changes here are lost.
set-option -s exit-empty off
set-option -s escape-time 10
set-option -g default-terminal screen-256color
set-option -g default-size 200x50
set-option -g history-limit 10000
set-option -g remain-on-exit on
set-option -g automatic-rename off
set-option -g allow-rename off
set-option -g status off
set-option -g update-environment ""
"""


@dataclass(frozen=True)
class TmuxServer:
    """One server, ours by its own socket name, or the user's own where `socket_name` is "".

    `conf` is our configuration file; `secrets` are the names of variables that no program in a pane may see.
    The user's own server keeps its own configuration and global environment; panes are cleaned there one by one.
    """

    socket_name: str
    conf: Path
    secrets: frozenset[str] = frozenset()
    binary: str = "tmux"
    unit: str = ""  #: of systemd, which starts this server where it is installed; "": none does
    environ: Mapping[str, str] = field(default_factory=our_environment)

    @property
    def ours(self) -> bool:
        """Return whether nobody else uses this server."""
        return self.socket_name != ""

    @property
    def place(self) -> Place:
        """Return where the socket of a server that is started now would be."""
        return place_of(self.conf.parent, self.socket_name, self.environ)

    @property
    def socket(self) -> Path:
        """Return where the socket is: for a server that lives, where it was when it started."""
        place, known = self.place, self._noted()
        elsewhere = known is not None and known[2] != str(place.socket) and self.remembered() is not None
        return Path(known[2]) if known is not None and elsewhere else place.socket

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words that begin every call of tmux; `-u` since answers lose their non-ASCII text without.

        They are asked for anew at each call: a server from an earlier version, or from another environment, is
        addressed where it is for as long as it lives.
        """
        if not self.ours:
            return (self.binary, "-u")
        place, socket = self.place, self.socket
        by_name = place.by_name and socket == place.socket
        address = ("-L", self.socket_name) if by_name else ("-S", str(socket))
        return (self.binary, "-u", *address, "-f", str(self.conf))

    @property
    def manual_command(self) -> tuple[str, ...]:
        """Return the words with which a person addresses the server, whatever their environment."""
        return ("tmux", "-S", str(self.socket)) if self.ours else ("tmux",)

    def environment(self) -> dict[str, str]:
        """Return the environment of clients, which a server that one of them starts keeps for as long as it lives.

        No program of ours gets its own from there, so that a server of ours needs, and has, next to nothing.
        """
        return base_environment(server_environment(self.environ) if self.ours else self.environ, self.secrets)

    @property
    def program(self) -> str:
        """Return tmux's own path, for whoever has another PATH or none."""
        from shutil import which  # here, since a mere survey needs none of it

        return which(self.binary, path=self.environ.get("PATH", os.defpath)) or self.binary

    def process(self, *, start: bool = True) -> ProcessTransport:
        """Return the way of one process a line; one that may not `start` a server only asks."""
        return ProcessTransport(lambda: self.command if start else (*self.command, "-N"), self.environment())

    def starting(self) -> Line:
        """Return the commands that start the server where none runs, and clean one that somebody else started."""
        forget = [("set-environment", "-g", "-u", name) for name in sorted(self.secrets)] if self.ours else []
        return [("start-server",), *forget]

    def control_session(self) -> Line:
        """Return the command that makes the control client's session; it is refused where there is one."""
        return [("new-session", "-d", "-s", CONTROL_SESSION, "-x", "80", "-y", "24", "--", "/bin/sleep", _SLEEP)]

    def write_conf(self) -> None:
        """Write the configuration file, unless it is there as it should be, and make the socket's folder.

        Raises OSError.
        """
        if not self.ours:
            return
        if not (_holds(self.conf, _CONF)):
            _replace(self.conf, _CONF)
        place = self.place
        if not place.by_name:
            for folder in (place.socket.parent.parent, place.socket.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remember(self, pid: int, socket: str) -> None:
        """Note which process the server is, so that one whose socket file was swept away is not taken for gone.

        Raises OSError.
        """
        known = f"{pid} {_start_of(pid)} {socket}\n"
        if not (_holds(self._memory, known)):
            _replace(self._memory, known)

    def remembered(self) -> tuple[int, str] | None:
        """Return the remembered server's pid and socket if that very process still lives."""
        known = self._noted()
        if known is None:
            return None
        pid, start, socket = known
        return (pid, socket) if start != "-" and _start_of(pid) == start else None

    def _noted(self) -> tuple[int, str, str] | None:
        """Return the pid, start and socket of the last server that was noted, dead or alive."""
        try:
            pid, start, socket = read_plain(self._memory, _LONGEST).decode().rstrip("\n").split(" ", 2)
            return int(pid), start, socket
        except (OSError, ValueError):  # none was noted, or not by us: nothing is known
            return None

    def again(self, line: Line, timeout: float, data: bytes | None) -> Reply | None:
        """Ask again by way of a socket made anew, after tmux said that no server runs; None if none does.

        tmux makes its socket again on SIGUSR1; /tmp is swept on some machines. Raises TmuxSilent if the server
        lives and cannot be reached.
        """
        known = self.remembered()
        if known is None:
            return None
        pid, socket = known
        with suppress(ProcessLookupError):  # it ended just now, which the loop finds
            os.kill(pid, signal.SIGUSR1)
        end = time.monotonic() + min(_REVIVAL, timeout)
        transport = self.process()
        while True:
            reply = transport.run(line, timeout, data)
            if not reply.no_server:
                return reply
            if self.remembered() is None:
                return None
            if time.monotonic() > end:
                raise silent(f"the server (process {pid}) lives, but its socket {socket} is gone or not where we look")
            time.sleep(0.02)

    @property
    def _memory(self) -> Path:
        return self.conf.with_name(f"{self.conf.stem}.{self.socket_name or 'default'}.server")


def _start_of(pid: int) -> str:
    """Return what tells the process from others of its pid, "-" for none."""
    from core.tmux.handles import process_table  # here, since a mere survey needs none of it

    try:
        return process_table().start_of(pid) or "-"
    except ProcessesUnknown as error:
        raise silent(str(error)) from error


def _holds(path: Path, text: str) -> bool:
    """Return whether that is a plain file of that text. Raises OSError."""
    return path.is_file() and read_plain(path, _LONGEST) == text.encode()


def _replace(path: Path, text: str) -> None:
    """Write a file that only we can read, as a whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.replace(path)


_LOOK = [("display-message", "-p", "#{pid}")]
_LOOK_SECONDS = 1.0
_PAUSE = 0.02


def bring_up(server: TmuxServer, seconds: float) -> None:
    """Have the server started by systemd, as far as there is one; whether that worked, tmux will tell.

    Takes at most about `seconds`. Raises TmuxMissing, TmuxSilent.
    """
    if not server.ours or _answers(server):
        return
    end = time.monotonic() + seconds
    if not (server.unit and _unit_serves(server, end)):
        scope = ("--user", "--scope", "--quiet", "--collect", "--description=the-loop: tmux server and agents")
        _succeeds(server, ("systemd-run", *scope, "--", *server.command, "start-server"), end)


def _unit_serves(server: TmuxServer, end: float) -> bool:
    return (
        _succeeds(server, ("systemctl", "--user", "cat", server.unit), end)
        and _succeeds(server, ("systemctl", "--user", "start", server.unit), end)
        and _answers_by(server, end)
    )


def be_the_server(server: TmuxServer) -> None:
    """Become the tmux server, in the foreground; for its own unit. Returns never.

    The process is remembered first, so that everybody finds it wherever their own rules would look.
    Raises Refused where a server lives already, or where the user's own one is used; SpawnFailed where it cannot be.
    """
    if not server.ours:
        raise Refused(
            "the sessions live in your own tmux server, which the-loop does not start",
            "give routing.tmux.socketName a name, or run your own server by a unit of your own",
        )
    known = server.remembered()
    if known is not None or _answers(server):
        who = f"process {known[0]}" if known else "one"
        raise Refused(
            f"the tmux server runs already ({who}, {server.socket}), where it was started first",
            f"stop the sessions, end it with `{' '.join(server.manual_command)} kill-server`, then start the unit",
        )
    try:
        server.write_conf()
        server.remember(os.getpid(), str(server.socket))
        os.chdir("/")
        os.execvpe(server.binary, [*server.command, "-D"], server.environment())
    except OSError as error:
        raise SpawnFailed(
            f"the tmux server cannot be started: {error.filename or server.binary}: {error.strerror}",
            "install tmux, or mend what is named",
        ) from error


def _answers(server: TmuxServer) -> bool:
    return not _asked(server).no_server


def _answers_by(server: TmuxServer, end: float) -> bool:
    while not _answers(server):
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE)
    return True


def _asked(server: TmuxServer) -> Reply:
    """Ask without starting a server. Raises TmuxSilent, TmuxMissing."""
    return server.process(start=False).run(_LOOK, _LOOK_SECONDS)


def _succeeds(server: TmuxServer, words: Sequence[str], end: float) -> bool:
    """Run a program of systemd's; False where it fails, is not there, or does not end in time."""
    environ = server.environment()
    runtime = f"/run/user/{os.geteuid()}"
    if os.path.isdir(runtime):  # cron and system services have no variable that leads to the user's systemd
        environ.setdefault("XDG_RUNTIME_DIR", runtime)
    try:
        done = subprocess.run(
            at_usual_limit(words, environ),
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=max(end - time.monotonic(), _PAUSE),
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
