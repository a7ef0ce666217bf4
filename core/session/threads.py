"""Whether a session has a thread to be spoken in."""

from core.domain.binding import CHANNEL
from core.domain.session import SessionRecord
from core.system import System


def has_thread(system: System, record: SessionRecord) -> bool:
    """Tell whether the session has a thread, or is about to: its root may still be on its way. Raises StoreBroken."""
    if not system.settings.channel(CHANNEL).enabled:
        return False
    return record.definition.slack.enabled or system.bindings.of_session(record.uid, CHANNEL) is not None
