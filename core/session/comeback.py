"""Whether a session whose program has ended will be brought back by itself."""

from core.domain.restarting import may_be_brought_back, restarts_itself
from core.domain.session import SessionRecord
from core.errors import UnsupportedHarness
from core.session.sessions import resolve_record
from core.system import System


def comes_back(system: System, record: SessionRecord) -> bool:
    """Tell whether a crash of the session brings it back: by its policy, or by a loop that keeps its future open.

    Raises StoreBroken.
    """
    return restarts_itself(record) or (may_be_brought_back(record) and system.loops.holds_open(record.uid))


def restart_due(system: System, record: SessionRecord) -> bool:
    """Tell whether the session, which does not live, is about to be resumed unasked. Raises StoreBroken.

    Until its end was looked into, one that restarts after crashes counts as due: what it was is not known yet.
    """
    if record.instance_id is None or not may_be_brought_back(record):
        return False
    end = system.watchbook.end(record.instance_id)
    if end is None or end.told_at is None:
        return comes_back(system, record) and not (end is not None and end.by_person)
    return end.due_at is not None


def lacks_harness(system: System, record: SessionRecord) -> str:
    """Return why the running service cannot start what the record says was started, and the remedy; "" where it can.

    A verb that read a newer configuration than the service may have started a harness which that one does not have.
    """
    harness = resolve_record(record, system.settings).harness
    try:
        system.harnesses.get(harness)
    except UnsupportedHarness:
        return (
            f"its harness {harness!r} is unknown to the running service's configuration; use `the-loop restart`, which "
            f"takes the present one over, then `the-loop standing start {record.name}`"
        )
    return ""
