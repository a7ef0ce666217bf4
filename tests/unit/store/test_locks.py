"""Locks between the threads of one process."""

import os
import threading

import pytest

from core.base.errors import InvalidValue, LockBusy
from core.base.locks import Locks
from core.base.paths import StatePaths


@pytest.fixture
def locks(paths: StatePaths) -> Locks:
    """Return the locks of a state root that is not there yet."""
    return Locks(paths)


def test_a_held_lock_is_refused_and_its_holder_named(locks: Locks) -> None:
    """Whoever waits in vain learns which process holds the lock, and for what."""
    with locks.hold("scribe", "stop scribe", 1), pytest.raises(LockBusy) as busy, locks.hold("scribe", "say", 0.05):
        pass

    assert f"'scribe' was not free within 0.05 s: held by pid {os.getpid()} to stop scribe" in str(busy.value)


def test_a_released_lock_is_free_also_after_an_error(locks: Locks) -> None:
    """An error inside the block frees the lock as its end does."""
    with pytest.raises(KeyError), locks.hold("scribe", "start", 1):
        raise KeyError

    with locks.hold("scribe", "start", 0):
        pass


def test_two_sessions_do_not_wait_for_each_other(locks: Locks) -> None:
    """Locks of different names are apart, also where one name begins the other."""
    with locks.hold("scribe", "start", 0), locks.hold("scribe-2", "start", 0):
        pass


def test_threads_exclude_each_other(locks: Locks) -> None:
    """Of several threads only one is inside at any time, and each gets its turn."""
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            with locks.hold("scribe", "count", 20):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 20


def test_a_note_of_a_dead_process_is_not_believed(locks: Locks, paths: StatePaths) -> None:
    """A note that a killed holder left behind is not given as the reason."""
    with locks.hold("scribe", "start", 1):
        with (paths.locks / "scribe").open("r+") as file:
            file.write("4194304 stop".ljust(40))
        with pytest.raises(LockBusy, match="left no note"), locks.hold("scribe", "say", 0.02):
            pass


def test_lock_files_are_private_and_stay(locks: Locks, paths: StatePaths) -> None:
    """The lock's file stays for a time when none could be made; there is no other."""
    with locks.hold("scribe", "start", 1):
        modes = {path.name: path.stat().st_mode & 0o777 for path in paths.locks.iterdir()}

    assert modes == {"scribe": 0o600}
    assert [path.name for path in paths.locks.iterdir()] == ["scribe"]


@pytest.mark.timeout(20)
def test_a_note_that_cannot_be_written_costs_no_lock(
    locks: Locks, paths: StatePaths, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the note has no place, the lock is held all the same and the log says why there is no note."""
    paths.locks.mkdir(parents=True)
    os.mkfifo(paths.locks / "scribe")

    with locks.hold("scribe", "stop", 1), pytest.raises(LockBusy), locks.hold("scribe", "say", 0.02):
        pass

    assert "lock holder not noted" in caplog.text


def test_a_shorter_note_covers_the_one_before_it(locks: Locks) -> None:
    """Who waits in vain reads what the lock is held for, and no rest of what it was held for before."""
    with locks.hold("scribe", "something that takes many words to say", 1):
        pass

    with (
        locks.hold("scribe", "stop", 1),
        pytest.raises(LockBusy, match=rf"held by pid {os.getpid()} to stop;"),
        locks.hold("scribe", "say", 0.02),
    ):
        pass


def test_what_is_no_name_is_refused(locks: Locks) -> None:
    """A lock's file never lies elsewhere."""
    with pytest.raises(InvalidValue), locks.hold("../scribe", "start", 1):
        pass
