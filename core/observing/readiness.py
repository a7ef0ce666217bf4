"""Sees that a harness reads which cannot say so itself: its screen tells, also after its start gave up waiting."""

from datetime import timedelta

from core.domain.activity import ActivityState
from core.domain.session import Phase, SessionRecord
from core.errors import NotRunning
from core.session.sessions import resolve_record
from core.system import System
from core.values import replace

_SCREEN_LINES = 60


def notice_reading(system: System, record: SessionRecord) -> bool:
    """Look whether a started harness without a boot signal reads by now, and note it; True if that was news.

    Without a ready sign it counts as reading once it has lived for resumeProbeSeconds. Raises TmuxSilent, StoreBroken.
    """
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    activity = system.activities.get(record.uid)
    if harness.traits.boot_signal or record.phase is not Phase.SETTLED:
        return False
    if activity is None or activity.instance != record.instance_id or activity.state is not ActivityState.STARTING:
        return False
    try:
        sign = harness.screen_ready(system.runner.screen(activity.instance, _SCREEN_LINES))
    except NotRunning:
        return False
    now = system.clock.now()
    probe = timedelta(seconds=system.settings.routing.tmux.resume_probe_seconds)
    if sign or (sign is None and now >= activity.since + probe):
        system.activities.put(replace(activity, state=ActivityState.UNKNOWN, since=now))
        return True
    return False
