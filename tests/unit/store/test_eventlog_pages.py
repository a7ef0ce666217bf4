"""Reading the event log from a position on, as a client does that comes back."""

from pathlib import Path

import pytest

from core.base.errors import InvalidValue
from core.store.eventlog import START, EventLog, Page
from tests.unit.store.samples import StandingClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the log is to be."""
    return tmp_path / "local" / "events.jsonl"


@pytest.fixture
def log(path: Path, clock: StandingClock) -> EventLog:
    """Return an empty log that never rotates here."""
    return EventLog(path, clock, max_bytes=10**6, keep=2)


def emit(log: EventLog, *numbers: int) -> None:
    """Append an event for each number."""
    for number in numbers:
        log.emit("standing.said", message=f"m-{number}")


def numbers(page: Page) -> list[int]:
    """Return the numbers of a page's events."""
    return [int(event["message"].removeprefix("m-")) for _, event in page.events]


def test_an_empty_log_has_nothing_and_its_end_is_before_all_that_comes(log: EventLog) -> None:
    """Whoever begins there misses nothing."""
    page = log.after(START, 10)
    emit(log, 1)

    assert (page.events, page.end, page.complete, page.lost) == ((), START, True, False)
    assert numbers(log.after(page.end, 10)) == [1]
    assert log.latest(0).end == log.after(START, 10).end


def test_from_every_position_come_the_events_behind_it(log: EventLog) -> None:
    """The id of an event is the position behind it."""
    emit(log, 1, 2, 3)

    ids = [place for place, _ in log.after(START, 10).events]

    assert [numbers(log.after(place, 10)) for place in ids] == [[2, 3], [3], []]
    assert log.after(ids[-1], 10).end == ids[-1]


def test_pages_in_a_row_are_all_events(log: EventLog) -> None:
    """However many are asked for at a time, across files that were put aside."""
    small = EventLog(log._files.path, StandingClock(), max_bytes=400, keep=50)
    emit(small, *range(20))

    found, page = [], small.after(START, 3)
    while page.events:
        found += numbers(page)
        page = small.after(page.end, 3)

    assert found == list(range(20))
    assert page.complete


def test_a_position_stays_when_its_file_is_put_aside(path: Path, clock: StandingClock) -> None:
    """And when the log is copied elsewhere: no number of the file system is in it."""
    log = EventLog(path, clock, max_bytes=600, keep=9)
    emit(log, 1, 2)
    position = log.after(START, 1).end
    emit(log, *range(3, 9))
    copy = EventLog(path.parent.parent / "copy" / "events.jsonl", clock, max_bytes=600, keep=9)
    copy._files.path.parent.mkdir(mode=0o700)
    for file in path.parent.iterdir():
        (copy._files.path.parent / file.name).write_bytes(file.read_bytes())

    assert len(list(path.parent.iterdir())) > 2
    assert numbers(log.after(position, 100)) == list(range(2, 9))
    assert numbers(copy.after(position, 100)) == list(range(2, 9))


def test_what_is_kept_no_more_is_told_as_lost(path: Path, clock: StandingClock) -> None:
    """Then come all that are kept; so it is with a position of another log, and one inside a line."""
    log = EventLog(path, clock, max_bytes=400, keep=1)
    emit(log, 0)
    position = log.after(START, 1).end
    emit(log, *range(1, 30))

    gone, strange = log.after(position, 100), log.after("deadbeef-7", 100)
    kept = log.after(START, 100)
    inside = log.after(f"{kept.events[0][0].partition('-')[0]}-5", 100)

    assert (gone.lost, strange.lost, inside.lost, kept.lost) == (True, True, True, False)
    assert numbers(gone) == numbers(strange) == numbers(inside) == numbers(kept)
    assert numbers(gone)[-1] == 29


@pytest.mark.parametrize(
    "position", ["", "-", "x", "12", "abc-", "abc--1", "abc-1.5", "ä-1", "../x-1", "a-" + "9" * 30]
)
def test_what_is_no_position_is_named(log: EventLog, position: str) -> None:
    """Whatever a client sends."""
    emit(log, 1)

    with pytest.raises(InvalidValue, match="position"):
        log.after(position, 10)


def test_half_a_line_is_left_for_the_next_look(log: EventLog, path: Path) -> None:
    """A write that is under way, or was cut off, is no event yet; the position stays before it."""
    emit(log, 1)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])

    page, latest = log.after(START, 10), log.latest(0)
    path.write_bytes(whole + whole)

    assert numbers(page) == [1]
    assert latest.end == page.end
    assert numbers(log.after(page.end, 10)) == [1]


def test_the_latest_that_are_wanted_come_oldest_first(path: Path, clock: StandingClock) -> None:
    """From as many files as are needed; the end is that of the whole log."""
    log = EventLog(path, clock, max_bytes=400, keep=50)
    emit(log, *range(20))

    even = log.latest(4, lambda event: int(event["message"][2:]) % 2 == 0)

    assert numbers(even) == [12, 14, 16, 18]
    assert even.end == log.latest(1).end == log.after(START, 100).end
    assert numbers(log.latest(100)) == list(range(20))
