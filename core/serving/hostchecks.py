"""What else would end the agents: where the tmux server lives among systemd's units, and whether a logout ends it.

`findings` judges texts alone; `host_findings` reads them. Only where systemd runs: elsewhere nobody ends a cgroup.
"""

import pwd
from pathlib import Path
from re import compile as pattern

from core.values import dataclass

_SESSION = pattern(r"/session-[^/]+\.scope(/|$)")
_USER_MANAGER = pattern(r"/user@\d+\.service(/|$)")
_SERVICE_LEAF = pattern(r"/(?P<unit>[^/]+\.service)$")


@dataclass(frozen=True)
class Host:
    """What /proc and logind's folder say. Cgroups are paths such as `/user.slice/…`, "" where there are none."""

    tmux: str
    service: str
    user: str
    lingers: bool


def findings(host: Host) -> tuple[str, ...]:
    """Return what threatens the tmux server, each with its remedy; empty where nothing does."""
    if _SESSION.search(host.tmux):
        scope = next(part for part in host.tmux.split("/") if part.startswith("session-"))
        return (
            f"the tmux server belongs to a login ({scope}) and may end with it: `the-loop stop`, end the server, and "
            "start it by its unit the-loop-tmux.service (deploy/README.md)",
        )
    leaf = _SERVICE_LEAF.search(host.tmux)
    if leaf and (host.tmux == host.service or "tmux" not in leaf["unit"]):
        return (
            f"the tmux server lives inside of {leaf['unit']} and may end with it: `the-loop stop`, end the server, and "
            "start it by its unit the-loop-tmux.service (deploy/README.md)",
        )
    if _USER_MANAGER.search(host.tmux) and not host.lingers:
        return (f"everything ends at the last logout of {host.user}: `loginctl enable-linger {host.user}`",)
    return ()


def cgroup_of(text: str) -> str:
    """Return the path of a /proc/PID/cgroup that systemd manages: version 2's only line, or version 1's named one."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths["v2" if number == "0" and not controllers else controllers] = path
    return paths.get("name=systemd") or paths.get("v2") or ""


def host_findings(tmux_pid: int, service_pid: int | None, uid: int, root: Path = Path("/")) -> tuple[str, ...] | None:
    """Return the findings on this machine; None where systemd does not run, or the server cannot be looked at.

    `root` is where the machine's files are.
    """
    if not (root / "run/systemd/system").is_dir():
        return None
    tmux = _read(root / f"proc/{tmux_pid}/cgroup")
    if tmux is None:
        return None
    service = _read(root / f"proc/{service_pid}/cgroup") if service_pid else None
    user = _user(uid)
    lingers = (root / "var/lib/systemd/linger" / user).exists()
    return findings(Host(cgroup_of(tmux), cgroup_of(service or ""), user, lingers))


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:  # it has just ended, or is not ours to look at
        return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
