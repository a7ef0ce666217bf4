"""How the service and its connections are told, whether it answers or not."""

import threading
from pathlib import Path

import pytest

from core.base.files import private_folder
from core.cli.printing import print_services
from core.lifecycle.everything import status_all
from core.model.rows import ServiceRow
from core.process.control import ControlSocket
from core.process.presence import ServiceLock
from core.service.hosting import service_rows
from core.session.system import System
from tests.support.world import World


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Give ports with Slack enabled."""
    system = World(tmp_path, "loop-test-none", tmp_path, slack=True).system()
    private_folder(system.paths.local)
    return system


def test_without_a_service_every_row_says_so(system: System) -> None:
    """Neither it nor a connection runs, and the latter's detail says why."""
    service, slack = service_rows(system.settings, system.paths, system.environ)

    assert (service.running, service.pid) == (False, None)
    assert (slack.name, slack.running, slack.detail) == ("slack", False, "no service is running")


def test_a_service_that_is_silent_runs_all_the_same(system: System) -> None:
    """Could not ask is never no: the lock says that it lives."""
    lock = ServiceLock(system.paths.service_lock)
    lock.take()

    service, *others = service_rows(system.settings, system.paths, system.environ)
    report = status_all(system, (service, *others))
    lock.release()

    assert service.running
    assert "does not answer" in service.detail
    assert [(row.name, row.running, row.detail) for row in others] == [
        ("http", None, "could not be asked"),
        ("slack", None, "could not be asked"),
    ]
    assert [row["running"] for row in report.to_json()["services"]][:3] == [True, None, None]
    assert not report.ok


def test_people_read_unknown_of_what_could_not_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither running nor not running."""
    print_services([ServiceRow("slack", None, 7, "could not be asked").to_json()])

    assert capsys.readouterr().out == "slack: unknown (pid 7): could not be asked\n"


def test_the_services_own_words_are_passed_on(system: System) -> None:
    """What it answers is what is shown; an earlier release's answers have no reasons."""
    lock, stopping = ServiceLock(system.paths.service_lock), threading.Event()
    rows = [{"name": "service", "running": True, "pid": 1, "detail": ""}]
    rows.append({"name": "slack", "running": False, "pid": 1, "detail": "so far", "reason": "not-connected-yet"})
    control = ControlSocket(system.paths.service_socket, {"status": lambda: {"services": rows}})
    lock.take()
    control.open()
    answering = threading.Thread(target=control.run, args=(stopping,))
    answering.start()

    seen = service_rows(system.settings, system.paths, system.environ)
    stopping.set()
    answering.join()
    control.close()
    lock.release()

    assert [row.to_json() for row in seen] == [{**rows[0], "reason": ""}, rows[1]]
