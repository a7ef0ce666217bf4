"""The service's tokens are in its environment and memory: no process of the same user may look there."""

import sys
from pathlib import Path

import pytest

from tests.support.onlooker import AS_ANYBODY, seen
from tests.support.product import DEBUGGABLE, NAME, Product

SECRET = {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-of-tests"}
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and prctl are Linux's")


def test_nobody_reads_its_environment_and_it_leaves_no_core(alone: Product) -> None:
    """An agent does not, though it may read that of every other process of its user's."""
    service = alone.serve(env=SECRET, within=AS_ANYBODY).wait_swept()
    proc = Path(f"/proc/{service.pid}")

    environ, maps = seen(proc / "environ"), seen(proc / "maps")
    agents = seen(Path(f"/proc/{alone.panes()[NAME]}/environ"))

    assert (environ, maps) == (None, None)
    assert agents is not None
    assert b"THE_LOOP_INSTANCE" in agents
    assert b"xoxb" not in agents


def test_a_detached_service_keeps_to_itself_as_well(alone: Product) -> None:
    """And what asks after it finds it: status, a message, a stop."""
    started = alone.cli("start", "--json", env=SECRET, within=AS_ANYBODY)
    pid = started.services["service"]["pid"]

    environ = seen(Path(f"/proc/{pid}/environ"))
    status, said = alone.cli("status"), alone.cli("standing", "say", NAME, "--text", "hello", "--json")
    stopped = alone.cli("stop", "--json")

    assert environ is None
    assert (status.code, said.json["state"], stopped.json["ok"]) == (0, "confirmed", True)


def test_whoever_debugs_it_says_so(alone: Product) -> None:
    """By a variable, which the service's page of operations names."""
    service = alone.serve(env={**SECRET, **DEBUGGABLE}, within=AS_ANYBODY).wait_swept()

    environ = seen(Path(f"/proc/{service.pid}/environ"))

    assert environ is not None
    assert b"xoxb-of-tests" in environ
