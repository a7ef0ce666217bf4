"""The FIFO that wakes the service: writers never wait, and nothing is lost that matters."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.process.presence import Notifier


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[Notifier]:
    """Give the reader's end."""
    notify = Notifier(tmp_path / "poke")
    notify.open()
    yield notify
    notify.close()


def test_a_notification_without_a_service_does_nothing(tmp_path: Path) -> None:
    """Neither a missing FIFO nor one without a reader is an error, or makes anything."""
    Notifier(tmp_path / "poke").send()
    served = Notifier(tmp_path / "served")
    served.open()
    served.close()

    Notifier(tmp_path / "served").send()

    assert not (tmp_path / "poke").exists()


def test_a_notification_wakes_the_reader(notify: Notifier, tmp_path: Path) -> None:
    """One byte from any process is enough; having been read it wakes nobody again."""
    Notifier(tmp_path / "poke").send()

    assert notify.wait(5.0)
    assert not notify.wait(0.0)


def test_many_notifications_are_one_and_never_wait(notify: Notifier, tmp_path: Path) -> None:
    """A full FIFO takes no more, and its writer goes on."""
    writer = Notifier(tmp_path / "poke")

    for _ in range(70_000):  # more than a pipe holds
        writer.send()

    assert notify.wait(5.0)


def test_the_fifo_is_private_and_replaces_what_stands_there(tmp_path: Path) -> None:
    """A plain file of that name would swallow every poke."""
    (tmp_path / "poke").write_text("no FIFO")
    notify = Notifier(tmp_path / "poke")

    notify.open()
    notify.close()

    mode = (tmp_path / "poke").stat().st_mode
    assert stat.S_ISFIFO(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_fifo_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The path, the reason and the remedy."""
    with pytest.raises(StoreBroken, match="cannot make the FIFO"):
        Notifier(tmp_path / "missing" / "poke").open()


def test_waiting_needs_an_open_fifo(tmp_path: Path) -> None:
    """Who waits without having opened it has made a mistake."""
    with pytest.raises(ValueError, match="not open"):
        Notifier(tmp_path / "poke").wait(0.0)
