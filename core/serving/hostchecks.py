"""What else would end the agents: where the tmux server lives among systemd's units, and whether a logout ends it.

`findings` judges texts alone; `host_findings` reads them. Only where systemd runs: elsewhere nobody ends a cgroup.
"""

import math
import pwd
from collections.abc import Callable
from pathlib import Path
from re import compile as pattern

from core.values import dataclass

_SPAN = pattern(r"(\d+)(us|ms|s|min|h|d|w|month|y)")
_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "month": 2629800,
    "y": 31557600,
}
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
    gives: float | None = (
        None  #: seconds between SIGTERM and SIGKILL where the server's unit is stopped; None: not known
    )
    needs: float = 0.0  #: seconds that the agents may take to end


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
    found = []
    if _USER_MANAGER.search(host.tmux) and not host.lingers:
        found.append(f"everything ends at the last logout of {host.user}: `loginctl enable-linger {host.user}`")
    if leaf and host.gives is not None and host.gives < host.needs:
        found.append(
            f"the end of {leaf['unit']}, as at a shutdown, kills agents {host.gives:g} s after SIGTERM, and with "
            f"routing.tmux.harnessKillGraceSeconds they may take longer: `systemctl --user edit {leaf['unit']}`, and "
            f"write TimeoutStopSec={math.ceil(host.needs)} under [Service]"
        )
    return tuple(found)


def span_of(text: str) -> float | None:
    """Return the seconds of a span as `systemctl show` writes it (`1min 30s`, `infinity`), None for anything else."""
    words = text.split()
    if words == ["infinity"]:
        return math.inf
    spans = [_SPAN.fullmatch(word) for word in words]
    return sum(int(span[1]) * _SECONDS[span[2]] for span in spans if span) if words and all(spans) else None


def unit_of(cgroup: str) -> str:
    """Return the service of systemd's whose cgroup that is, "" where it is none's."""
    leaf = _SERVICE_LEAF.search(cgroup)
    return leaf["unit"] if leaf else ""


def cgroup_of(text: str) -> str:
    """Return the path of a /proc/PID/cgroup that systemd manages: version 2's only line, or version 1's named one."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths["v2" if number == "0" and not controllers else controllers] = path
    return paths.get("name=systemd") or paths.get("v2") or ""


def host_findings(
    tmux_pid: int,
    service_pid: int | None,
    uid: int,
    root: Path = Path("/"),
    *,
    needs: float = 0.0,
    gives: Callable[[str], float | None] = lambda _: None,
) -> tuple[str, ...] | None:
    """Return the findings on this machine; None where systemd does not run, or the server cannot be looked at.

    `root` is where the machine's files are; `needs` and `gives`, which is asked for a unit, are those of Host.
    """
    if not (root / "run/systemd/system").is_dir():
        return None
    tmux = _read(root / f"proc/{tmux_pid}/cgroup")
    if tmux is None:
        return None
    service = _read(root / f"proc/{service_pid}/cgroup") if service_pid else None
    user = _user(uid)
    lingers = (root / "var/lib/systemd/linger" / user).exists()
    unit = unit_of(cgroup_of(tmux))
    given = gives(unit) if unit and _USER_MANAGER.search(cgroup_of(tmux)) else None
    return findings(Host(cgroup_of(tmux), cgroup_of(service or ""), user, lingers, given, needs))


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
