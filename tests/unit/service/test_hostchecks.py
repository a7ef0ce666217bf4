"""What threatens the tmux server, by the cgroup it is in; the texts are those of real machines."""

import math
import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from core.service.hosting import Host, cgroup_of, findings, host_findings, span_of

UNIT = "/user.slice/user-1000.slice/user@1000.service/app.slice/the-loop-tmux.service"
SCOPE = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r3f5e0c8.scope"
TERMINAL = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1f.scope"
SERVICE = "/user.slice/user-1000.slice/user@1000.service/app.slice/the-loop.service"
SSH = "/user.slice/user-1000.slice/session-42.scope"
CONSOLE = "/user.slice/user-1000.slice/session-c2.scope"
SYSTEM_SERVICE = "/system.slice/the-loop.service"

V1 = """\
12:cpuset:/
11:memory:/user.slice/user-1000.slice/session-7.scope
2:cpu,cpuacct:/user.slice
1:name=systemd:/user.slice/user-1000.slice/session-7.scope
0::/user.slice/user-1000.slice/session-7.scope
"""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"0::{UNIT}\n", UNIT),
        (V1, "/user.slice/user-1000.slice/session-7.scope"),
        ("0::/\n", "/"),
        ("", ""),
        ("4:devices:/docker/1f\n", ""),
    ],
)
def test_the_cgroup_is_read_from_either_version(text: str, path: str) -> None:
    """Version 2 has one line; of version 1 the hierarchy that systemd manages counts."""
    assert cgroup_of(text) == path


@pytest.mark.parametrize("cgroup", [UNIT, SCOPE, TERMINAL])
def test_under_the_users_own_systemd_only_linger_matters(cgroup: str) -> None:
    """With it nothing threatens; without it the last logout does, and the remedy is the exact command."""
    assert findings(Host(cgroup, SERVICE, "ann", lingers=True)) == ()

    (found,) = findings(Host(cgroup, SERVICE, "ann", lingers=False))
    assert "last logout of ann" in str(found)
    assert "loginctl enable-linger ann" in str(found)


@pytest.mark.parametrize("cgroup", [SSH, CONSOLE])
@pytest.mark.parametrize("lingers", [True, False])
def test_a_login_threatens_even_with_linger(cgroup: str, lingers: bool) -> None:
    """Linger keeps the user's systemd; what belongs to a session ends with it all the same."""
    (found,) = findings(Host(cgroup, SERVICE, "ann", lingers))

    assert cgroup.rpartition("/")[2] in str(found)
    assert "the-loop-tmux.service" in str(found)


@pytest.mark.parametrize(
    ("tmux", "service", "name"),
    [(SERVICE, SERVICE, "the-loop.service"), (SYSTEM_SERVICE, SYSTEM_SERVICE, "the-loop.service"),
     ("/system.slice/cron.service", "", "cron.service")],
)  # fmt: skip
def test_a_service_that_is_not_its_own_threatens(tmux: str, service: str, name: str) -> None:
    """It was born in whoever needed it first."""
    (found,) = findings(Host(tmux, service, "ann", lingers=True))

    assert name in str(found)
    assert "the-loop-tmux.service" in str(found)


@pytest.mark.parametrize("cgroup", ["/", "", "/docker/0f3a", "/system.slice/my-tmux.service", "/init.scope"])
def test_where_nobody_ends_it_nothing_is_said(cgroup: str) -> None:
    """A container, no cgroups at all, an operator's own unit for it."""
    assert findings(Host(cgroup, "/system.slice/the-loop.service", "ann", lingers=False)) == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20s", 20), ("1min 30s", 90), ("2h 500ms", 7200.5), ("infinity", math.inf), ("", None), ("soon", None)],
)
def test_a_span_of_systemds_is_read(text: str, seconds: float | None) -> None:
    """As `systemctl show` writes it; what is not understood is not known."""
    assert span_of(text) == seconds


def test_a_unit_that_kills_within_the_grace_is_told() -> None:
    """With the line that mends it; a unit of anybody's that gives enough, or does not say, is not."""
    short = Host(UNIT, SERVICE, "ann", lingers=True, gives=20, needs=75)

    (found,) = findings(short)

    assert "TimeoutStopSec=75" in str(found)
    assert "systemctl --user edit the-loop-tmux.service" in str(found)
    assert findings(replace(short, gives=75)) == findings(replace(short, gives=None)) == ()
    assert findings(replace(short, tmux=SCOPE)) == ()


def machine(root: Path, *, systemd: bool = True, lingers: bool = False) -> Path:
    """Make the files of a machine: the server is process 7 in a user scope, the service process 8."""
    for pid, cgroup in ((7, SCOPE), (8, SERVICE)):
        (root / "proc" / str(pid)).mkdir(parents=True)
        (root / "proc" / str(pid) / "cgroup").write_text(f"0::{cgroup}\n")
    if systemd:
        (root / "run/systemd/system").mkdir(parents=True)
    if lingers:
        (root / "var/lib/systemd/linger").mkdir(parents=True)
        (root / "var/lib/systemd/linger" / pwd.getpwuid(os.getuid()).pw_name).touch()
    return root


def test_the_machines_own_files_are_read(tmp_path: Path) -> None:
    """Where the server is, whose cgroup that is, and whether the user lingers."""
    without, lingering = machine(tmp_path / "a"), machine(tmp_path / "b", lingers=True)

    assert "enable-linger" in str(host_findings(7, 8, os.getuid(), without))
    assert host_findings(7, None, os.getuid(), lingering) == ()


def test_without_systemd_and_without_the_process_nothing_is_known(tmp_path: Path) -> None:
    """Unknown is not well: there is no answer at all."""
    assert host_findings(7, 8, os.getuid(), machine(tmp_path / "a", systemd=False)) is None
    assert host_findings(9, 8, os.getuid(), machine(tmp_path / "b")) is None


def test_a_user_without_a_name_is_called_by_the_number(tmp_path: Path) -> None:
    """A container's uid need not be in the password database."""
    (found,) = host_findings(7, 8, 4_123_456, machine(tmp_path)) or ("",)

    assert "enable-linger 4123456" in str(found)
