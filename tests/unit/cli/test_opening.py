"""What `the-loop page` says, by where the service listens. No service is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli.opening import link_told
from core.config.settings import ServiceSettings, Settings
from core.service.wiring import build_system
from core.session.system import System

KEY = "k3y"


def system_of(folder: Path, service: ServiceSettings) -> System:
    """Return the ports of such a configuration."""
    return build_system(Settings(state_root=folder, service=service), {"HOME": str(folder)})


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "127.0.0.1")])
def test_where_loopback_reaches_it_the_link_comes_first(tmp_path: Path, host: str, shown: str) -> None:
    """And how another machine gets there."""
    told = link_told(system_of(tmp_path, ServiceSettings(host, 4114)), KEY, 4114)

    assert told.text.splitlines()[0] == f"http://{shown}:4114/#login={KEY}" == told.to_json()["url"]
    assert f"ssh -L 4114:{shown}:4114" in told.text


def test_without_a_port_it_says_what_to_set_and_how_to_do_without(tmp_path: Path) -> None:
    """No link is called one of this machine."""
    told = link_told(system_of(tmp_path, ServiceSettings()), KEY, None)

    assert told.to_json()["url"] is None
    assert "set service.port to 4114" in told.text
    assert f"ssh -L 4114:{tmp_path / 'local' / 'http.sock'}" in told.text
    assert f"http://localhost:4114/#login={KEY}" in told.text


def test_an_address_of_the_network_is_named_as_the_reason(tmp_path: Path) -> None:
    """The page is for loopback: what to change is the host."""
    told = link_told(system_of(tmp_path, ServiceSettings("192.0.2.1", 4114)), KEY, 4114)

    assert told.to_json()["url"] is None
    assert "service.host is 192.0.2.1" in told.text
    assert "set service.host to 127.0.0.1" in told.text
    assert "http.sock" in told.text
