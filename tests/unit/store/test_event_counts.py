"""The event log that counts."""

from pathlib import Path

from core.base.clock import SystemClock
from core.store.eventlog import EventLog


def test_every_event_is_written_and_counted(tmp_path: Path) -> None:
    """Each event is written once, and counted by its name; a copy of the counts is given."""
    log = EventLog(tmp_path / "events.jsonl", SystemClock(), max_bytes=10_000, keep=1, include_text=False)

    log.emit("standing.said", name="scribe", text="secret")
    log.emit_all([("standing.said", {"name": "scribe"}), ("standing.confirmed", {"name": "scribe"})])
    log.emit("service.started")
    counts = log.counts()
    log.emit("service.started")

    assert counts == {"standing.said": 2, "standing.confirmed": 1, "service.started": 1}
    assert [event["event"] for event in log.read()] == [
        "standing.said",
        "standing.said",
        "standing.confirmed",
        "service.started",
        "service.started",
    ]
