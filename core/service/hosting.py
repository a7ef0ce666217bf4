"""The service as a process: start it detached or by its systemd unit, end it, and ask how it is.

`findings` says what else would end the agents: where the tmux server lives among systemd's units, and whether a logout
ends it. It judges texts alone; `host_findings` reads them, only where systemd runs, because elsewhere nobody ends a
cgroup.
"""

import math
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from re import compile as pattern
from typing import Any, NamedTuple

from core.base.clock import Deadline
from core.base.environment import shed_limit
from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.files import broken, open_plain_log, private_folder, secure_root
from core.base.names import INSTANCE_VARIABLE
from core.base.paths import StatePaths, is_default
from core.base.values import dataclass, replace
from core.config.cache import digest_of
from core.config.loading import demo_folder, refuse_alone, way_up
from core.config.settings import Settings
from core.http.facts import HTTP_ROW
from core.lifecycle.ending import END_SECONDS
from core.lifecycle.everything import database_rows, start_all, status_all, stop_all
from core.lifecycle.spawn import StartOrder
from core.lifecycle.start import start_each
from core.model.reasons import Reason
from core.model.rows import ServiceRow
from core.model.session import FAILURES, Outcome
from core.process.control import NoAnswer, ask
from core.process.presence import running_service
from core.service.service import STOP_SECONDS
from core.session.commands import exact_for
from core.session.system import System

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


class Threat(NamedTuple):
    """What could end the tmux server or its agents, and the remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


_BY_ITS_UNIT = "`the-loop stop`, end the server, and start it by its unit the-loop-tmux.service (deploy/README.md)"


def findings(host: Host) -> tuple[Threat, ...]:
    """Return what threatens the tmux server, each with its remedy; empty where nothing does."""
    if _SESSION.search(host.tmux):
        scope = next(part for part in host.tmux.split("/") if part.startswith("session-"))
        return (Threat(f"the tmux server belongs to a login ({scope}) and may end with it", _BY_ITS_UNIT),)
    leaf = _SERVICE_LEAF.search(host.tmux)
    if leaf and (host.tmux == host.service or "tmux" not in leaf["unit"]):
        return (Threat(f"the tmux server lives inside of {leaf['unit']} and may end with it", _BY_ITS_UNIT),)
    found = []
    if _USER_MANAGER.search(host.tmux) and not host.lingers:
        remedy = f"`loginctl enable-linger {host.user}`"
        found.append(Threat(f"everything ends at the last logout of {host.user}", remedy))
    if leaf and host.gives is not None and host.gives < host.needs:
        found.append(
            Threat(
                f"when {leaf['unit']} ends, as at a shutdown, agents are killed {host.gives:g} s after SIGTERM, "
                "but routing.tmux.harnessKillGraceSeconds allows them more time",
                f"run `systemctl --user edit {leaf['unit']}`, and write TimeoutStopSec={math.ceil(host.needs)} under "
                "[Service]",
            )
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
) -> tuple[Threat, ...] | None:
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


UNIT = "the-loop.service"
_UP_SECONDS = 15.0
_DOWN_SECONDS = STOP_SECONDS + 5.0
_SWEEP_MARGIN_SECONDS = 30.0
_ASK_SECONDS = 3.0
_CONNECT_SECONDS = 5.0
_SYSTEMCTL_SECONDS = 20.0


class ServiceNotStarted(CoreError):
    """The service could not be brought up."""

    code = "service_not_started"


def start(system: System, actor: str, warn: Callable[[str], None]) -> Mapping[str, Any]:
    """Start the service if none runs and answer with its sweep's rows; without a service sweep here, and say so.

    Raises DemoOnly where the service would lack the page of the demo whose configuration this is.
    """
    if running_service(system.paths.service_lock) is not None:
        return _lifecycle_report(system, start_all(system, actor).to_json())
    refuse_alone(system.settings)
    try:
        _launch(system)
        seconds = system.settings.routing.tmux.start_timeout_seconds + _SWEEP_MARGIN_SECONDS
        report = ask(system.paths.service_socket, "sweep", seconds)
    except (ServiceNotStarted, NoAnswer) as error:
        warn(f"the-loop: {error}; the sessions are started without it")
        return _lifecycle_report(system, start_all(system, actor).to_json(), ok=False)
    _wait_for_connections(system)
    return _lifecycle_report(system, report)


def stop(system: System, actor: str) -> Mapping[str, Any]:
    """End the sessions while the service that they may be talking to is up, then the service."""
    report = stop_all(system, actor).to_json()
    detail = end_service(system)
    running = running_service(system.paths.service_lock)
    row = ServiceRow("service", running is not None, running, detail)
    return {
        "services": [row.to_json()],
        "standingSessions": report["sessions"],
        "ok": bool(report["ok"]) and running is None,
    }


def restart(system: System, actor: str, warn: Callable[[str], None]) -> Mapping[str, Any]:
    """Stop everything, then start it, and bring back what ran and no boot starts: a restart takes nobody down.

    What would not end is told in its row, and keeps nothing else from being started.
    """
    stopped = stop(system, actor)
    started = start(system, actor, warn)
    failed = {row["name"]: row for row in stopped["standingSessions"] if Outcome(row["outcome"]) in FAILURES}
    ran = {row["name"] for row in stopped["standingSessions"] if row["outcome"] == Outcome.STOPPED.value} | set(failed)
    rows = started["standingSessions"]
    left = [row["name"] for row in rows if row["name"] in ran and row["outcome"] == Outcome.NOT_RUNNING.value]
    again = start_each(system, left, StartOrder(actor, "the-loop was restarted", skip_held=True)).to_json()
    rows = {row["name"]: row for row in (*rows, *again["sessions"])}
    kept = {name: row for name, row in failed.items() if name not in rows or rows[name]["outcome"] not in _BEGUN}
    [service] = stopped["services"]
    return {
        "services": [_not_renewed(row, service) for row in started["services"]],
        "standingSessions": list((rows | kept).values()),
        "ok": started["ok"] and again["ok"] and not kept and not service["running"],
    }


_BEGUN = frozenset({Outcome.STARTED.value, Outcome.RESUMED.value})


def _not_renewed(row: Mapping[str, Any], stopped: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row of `status`; of a service that would not end, with what its stop came to."""
    if row["name"] != stopped["name"] or not stopped["running"]:
        return row
    return {**row, "detail": "; ".join(text for text in (row["detail"], stopped["detail"]) if text)}


def status(system: System) -> Mapping[str, Any]:
    """Answer "is it up?" for the service, the channels' connections and every session."""
    return status_all(
        system, (*service_rows(system.settings, system.paths, system.environ), *tmux_rows(system))
    ).to_json()


def tmux_rows(system: System, root: Path = Path("/")) -> tuple[ServiceRow, ...]:
    """Return a row for the tmux server, where systemd could end it: its detail names what would, and the remedy.

    None where no pane lives or tmux is silent, which the sessions' own rows tell. `root` is where the machine's
    files are.
    """
    try:
        server = system.runner.survey().server
    except (TmuxSilent, TmuxMissing):
        return ()
    found = None if server is None else threats(system, server, root)
    if found is None:
        return ()
    told = exact_for(system.settings, system.environ, "; ".join(map(str, found)))
    return (ServiceRow("tmux", True, server, told),)


def threats(system: System, server: int, root: Path = Path("/")) -> tuple[Threat, ...] | None:
    """Return what could end the tmux server of that pid; None where systemd does not run."""
    needs = system.settings.routing.tmux.harness_kill_grace_seconds + END_SECONDS
    service = running_service(system.paths.service_lock)
    return host_findings(server, service, os.geteuid(), root, needs=needs, gives=_stop_seconds)


def lingers(uid: int, root: Path = Path("/")) -> bool | None:
    """Return whether the user's systemd outlives the last logout; None where systemd does not run."""
    if not (root / "run/systemd/system").is_dir():
        return None
    return (root / "var/lib/systemd/linger" / _user(uid)).exists()


def service_rows(settings: Settings, paths: StatePaths, environ: Mapping[str, str]) -> tuple[ServiceRow, ...]:
    """Return a row for the service and one for each enabled channel's connection.

    The service's says where it works with another configuration than this process has just read.
    """
    channels = [name for name, block in settings.channels.items() if block.enabled]
    pid = running_service(paths.service_lock)
    if pid is None:
        rows = [ServiceRow("service", False, None, exact_for(settings, environ, way_up(settings)))]
        return (*rows, *(ServiceRow(name, False, None, "no service is running") for name in channels))
    try:
        answer = ask(paths.service_socket, "status", _ASK_SECONDS)
    except NoAnswer as error:
        rows = [ServiceRow("service", True, pid, f"it does not answer: {error.message}")]
        return (*rows, *(ServiceRow(name, None, pid, "could not be asked") for name in (HTTP_ROW, *channels)))
    own, *others = (_told_row(row) for row in answer["services"])
    if answer.get("configuration", "") not in ("", digest_of(settings)):
        own = replace(own, detail="; ".join(text for text in (own.detail, _outdated(settings, environ, own)) if text))
    return tuple(replace(row, detail=exact_for(settings, environ, row.detail)) for row in (own, *others))


def connection_row(system: System, kind: str) -> ServiceRow | None:
    """Return how the service's connection to a chat is; None where none runs that has the present configuration."""
    if running_service(system.paths.service_lock) is None:
        return None
    try:
        answer = ask(system.paths.service_socket, "status", _ASK_SECONDS)
    except NoAnswer:
        return None
    if answer.get("configuration", "") != digest_of(system.settings):
        return None
    return next((_told_row(row) for row in answer["services"] if row["name"] == kind), None)


def by_unit(system: System) -> bool:
    """Return whether systemd runs the service."""
    pid = running_service(system.paths.service_lock)
    return pid is not None and _unit_serves(system.settings, system.environ) and _unit_pid() == pid


def _told_row(row: Mapping[str, Any]) -> ServiceRow:
    """Return a row as the service tells it; one that an earlier release has started tells no reasons."""
    return ServiceRow(row["name"], row["running"], row["pid"], row["detail"], row.get("reason", ""))


def _outdated(settings: Settings, environ: Mapping[str, str], own: ServiceRow) -> str:
    """Return what there is to say of a service that was started with another configuration, and what renews it."""
    named = f"what {settings.source} holds now" if settings.source else "the defaults"
    found = f"its configuration differs from {named}, because it applies most changes only at its start"
    if demo_folder(settings) is not None:
        return f"{found}: end it; {way_up(settings)}"
    if _unit_serves(settings, environ) and _unit_pid() == own.pid:
        alone = f"`systemctl --user restart {UNIT}`"
    else:
        alone = f"end it by `kill {own.pid}`, and once it has ended `the-loop start`"
    return (
        f"{found}. To apply the change while the sessions go on: {alone}. "
        "`the-loop restart` applies it too, and ends and resumes every session"
    )


def _wait_for_connections(system: System) -> None:
    """Give every connection its moment, so that a status right behind the start tells how things are."""
    deadline = Deadline(system.clock, _CONNECT_SECONDS)
    while (
        any(
            row.reason == Reason.NOT_CONNECTED_YET
            for row in service_rows(system.settings, system.paths, system.environ)
        )
        and not deadline.passed()
    ):
        system.clock.pause(0.05)


def _lifecycle_report(system: System, sweep: Mapping[str, Any], *, ok: bool = True) -> Mapping[str, Any]:
    rows, database = service_rows(system.settings, system.paths, system.environ), database_rows(system)
    usable = all(row.running for row in database)
    return {
        "services": [row.to_json() for row in (*rows, *database)],
        "standingSessions": sweep["sessions"],
        "ok": ok and bool(sweep["ok"]) and rows[0].running and usable,
    }


# ---------------------------------------------------------------- the process


def _launch(system: System) -> None:
    child = None
    if _unit_serves(system.settings, system.environ):
        _systemctl("start", UNIT)
    else:
        child = _detach(system.settings, system.paths, system.environ)
    deadline = Deadline(system.clock, _UP_SECONDS)
    while not deadline.passed():
        try:
            ask(system.paths.service_socket, "ping", 1.0)
            return
        except NoAnswer:
            _check_alive(system.paths, child)
            system.clock.pause(0.05)
    raise ServiceNotStarted(
        f"the service did not come up within {_UP_SECONDS:.0f} s", f"its last output is in {system.paths.service_log}"
    )


def _check_alive(paths: StatePaths, child: "subprocess.Popen[bytes] | None") -> None:
    """Raise ServiceNotStarted if the process has ended, unless another service came first and is about to answer."""
    if child is None or child.poll() is None or running_service(paths.service_lock) is not None:
        return
    raise ServiceNotStarted(
        f"the service ended at once with {child.returncode}", f"its last output is in {paths.service_log}"
    )


def _detach(settings: Settings, paths: StatePaths, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Run the service as a process of its own: where an operator starts it inside of a pane, not one of that agent.

    By an isolated interpreter: what lies in its folder, to which agents may write, is no module of the service's.
    """
    config = settings.source
    argv = [sys.executable, "-I", "-m", "core.cli", *(["--config", str(config)] if config else []), "serve"]
    secure_root(paths.root)
    private_folder(paths.local)
    shed_limit()
    with os.fdopen(_open_log(paths.service_log), "ab") as log:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=paths.local,
            env={name: value for name, value in environ.items() if name != INSTANCE_VARIABLE},
            start_new_session=True,
        )


def _open_log(path: Path) -> int:
    try:
        return open_plain_log(path)
    except OSError as error:
        told = broken(error, path, "open the service's log")
        raise ServiceNotStarted(told.message, told.remedy) from error


def end_service(system: System) -> str:
    """End the service, if one runs, and return what became of it; the sessions are left as they are."""
    pid = running_service(system.paths.service_lock)
    if pid is None:
        return ""
    if _unit_serves(system.settings, system.environ) and _unit_pid() == pid:
        _systemctl("stop", UNIT, "--no-block")
    elif pid > 0:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return ""  # it ended by itself between the two looks
    deadline = Deadline(system.clock, _DOWN_SECONDS)
    while not deadline.passed():
        if running_service(system.paths.service_lock) is None:
            return "stopped"
        system.clock.pause(0.05)
    return f"it did not end within {_DOWN_SECONDS:.0f} s of SIGTERM"


# ---------------------------------------------------------------- systemd


def _unit_serves(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether an installed user unit is the service of this configuration: it reads the default one only."""
    if not is_default(settings.source, settings.state_root, environ):
        return False
    return _systemctl("cat", UNIT, quiet=True) is not None


def _stop_seconds(unit: str) -> float | None:
    """Return how long systemd waits from SIGTERM to SIGKILL where it stops the user unit, None if that is not known."""
    return span_of(_systemctl("show", "--property=TimeoutStopUSec", "--value", unit, quiet=True) or "")


def _unit_pid() -> int | None:
    shown = _systemctl("show", "--property=MainPID", "--value", UNIT, quiet=True)
    return int(shown) if shown and shown.strip().isdigit() else None


def _systemctl(*words: str, quiet: bool = False) -> str | None:
    """Run `systemctl --user`; None where it failed and `quiet`. Raises ServiceNotStarted."""
    argv: Sequence[str] = ("systemctl", "--user", *words)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SYSTEMCTL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        if quiet:
            return None
        raise ServiceNotStarted(f"{' '.join(argv)} failed: {error}", "see `systemctl --user status`") from error
    if done.returncode == 0:
        return done.stdout
    if quiet:
        return None
    raise ServiceNotStarted(f"{' '.join(argv)} failed: {done.stderr.strip()}", f"see `journalctl --user -u {UNIT}`")
