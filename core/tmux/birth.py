"""How our tmux server comes to life outside of the cgroup of whoever happens to need it first.

tmux forks its server from its first client, and a process stays in the cgroup that it was born in: a server that a
service started ends when systemd stops that service, one from a login may end at its logout, and all agents with it.
So the server's own unit is asked first, then a transient scope; where neither can be had the caller starts it plainly,
and `the-loop status` says where it ended up.
"""

import os
import subprocess
import time
from collections.abc import Sequence

from core.descriptors import at_usual_limit
from core.errors import Refused, SpawnFailed
from core.tmux.server import UNIT as UNIT
from core.tmux.server import TmuxServer
from core.tmux.transport import Reply

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
