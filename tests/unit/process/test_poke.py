"""The FIFO that wakes the service: writers never wait, and nothing is lost that matters."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.process.presence import Poke


@pytest.fixture
def poke(tmp_path: Path) -> Iterator[Poke]:
    """Give the reader's end."""
    poke = Poke(tmp_path / "poke")
    poke.open()
    yield poke
    poke.close()


def test_a_poke_without_a_service_does_nothing(tmp_path: Path) -> None:
    """Neither a missing FIFO nor one without a reader is an error, or makes anything."""
    Poke(tmp_path / "poke").send()
    served = Poke(tmp_path / "served")
    served.open()
    served.close()

    Poke(tmp_path / "served").send()

    assert not (tmp_path / "poke").exists()


def test_a_poke_wakes_the_reader(poke: Poke, tmp_path: Path) -> None:
    """One byte from any process is enough; having been read it wakes nobody again."""
    Poke(tmp_path / "poke").send()

    assert poke.wait(5.0)
    assert not poke.wait(0.0)


def test_many_pokes_are_one_and_never_wait(poke: Poke, tmp_path: Path) -> None:
    """A full FIFO takes no more, and its writer goes on."""
    writer = Poke(tmp_path / "poke")

    for _ in range(70_000):  # more than a pipe holds
        writer.send()

    assert poke.wait(5.0)


def test_the_fifo_is_private_and_replaces_what_stands_there(tmp_path: Path) -> None:
    """A plain file of that name would swallow every poke."""
    (tmp_path / "poke").write_text("no FIFO")
    poke = Poke(tmp_path / "poke")

    poke.open()
    poke.close()

    mode = (tmp_path / "poke").stat().st_mode
    assert stat.S_ISFIFO(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_fifo_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The path, the reason and the remedy."""
    with pytest.raises(StoreBroken, match="cannot make the FIFO"):
        Poke(tmp_path / "missing" / "poke").open()


def test_waiting_needs_an_open_fifo(tmp_path: Path) -> None:
    """Who waits without having opened it has made a mistake."""
    with pytest.raises(ValueError, match="not open"):
        Poke(tmp_path / "poke").wait(0.0)
