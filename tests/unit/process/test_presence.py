"""Whether a service runs is told by a lock, which no crash can leave behind."""

import os
import threading
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.base.errors import Refused, StoreBroken
from core.process.presence import ServiceLock, running_service


def test_nobody_runs_where_there_is_no_file(tmp_path: Path) -> None:
    """No lock file: no service was ever here."""
    assert running_service(tmp_path / "service.lock") is None


def test_a_held_lock_tells_the_pid(tmp_path: Path) -> None:
    """While it is held its text is the service's process."""
    lock = ServiceLock(tmp_path / "service.lock", SystemClock())
    lock.take()

    pid = running_service(tmp_path / "service.lock")
    lock.release()

    assert pid == os.getpid()
    assert running_service(tmp_path / "service.lock") is None


def test_a_second_service_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    """One service a state root; the refusal names its pid and what to do."""
    first, second = (
        ServiceLock(tmp_path / "service.lock", SystemClock()),
        ServiceLock(tmp_path / "service.lock", SystemClock()),
    )
    first.take()

    with pytest.raises(Refused) as caught:
        second.take()
    first.release()

    assert f"pid {os.getpid()}" in caught.value.message
    assert "the-loop stop" in caught.value.remedy


def test_the_file_is_private(tmp_path: Path) -> None:
    """0600, as everything in the state root."""
    lock = ServiceLock(tmp_path / "service.lock", SystemClock())
    lock.take()
    lock.release()

    assert (tmp_path / "service.lock").stat().st_mode & 0o777 == 0o600


def test_those_who_ask_do_not_keep_a_service_from_starting(tmp_path: Path) -> None:
    """Commands ask many times a second; none of them is taken for a service."""
    path, over = tmp_path / "service.lock", threading.Event()
    path.touch()

    def asking() -> None:
        while not over.is_set():
            running_service(path)

    threads = [threading.Thread(target=asking) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            lock = ServiceLock(path, SystemClock())
            lock.take()
            lock.release()
    finally:
        over.set()
        for thread in threads:
            thread.join()

    assert running_service(path) is None


def test_what_cannot_be_asked_is_not_no(tmp_path: Path) -> None:
    """A path that cannot be looked at is told, by those who ask and by the service."""
    (tmp_path / "file").touch()

    with pytest.raises(StoreBroken, match="cannot tell whether a service runs"):
        running_service(tmp_path / "file" / "service.lock")
    with pytest.raises(StoreBroken, match=r"service\.lock"):
        ServiceLock(tmp_path / "file" / "service.lock", SystemClock()).take()


@pytest.mark.timeout(20)
def test_a_fifo_in_its_place_tells_nothing(tmp_path: Path) -> None:
    """Whoever asks, or would be the service, is told at once that this is no lock file."""
    os.mkfifo(tmp_path / "service.lock")

    with pytest.raises(StoreBroken, match=r"service\.lock.*no plain file"):
        running_service(tmp_path / "service.lock")
    with pytest.raises(StoreBroken, match=r"service\.lock"):
        ServiceLock(tmp_path / "service.lock", SystemClock()).take()
