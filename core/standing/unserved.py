"""What of a session waits where no service runs, told with its start: nobody announces it, prompts it or watches it."""

from collections.abc import Mapping

from core.config.demonstration import way_up
from core.domain.binding import CHANNEL
from core.domain.session import Outcome, Restart
from core.errors import CoreError
from core.process.presence import running_service
from core.session.sessions import Known, definition_of
from core.standing.common import Told
from core.system import System
from core.values import replace

_HERE = frozenset({Outcome.STARTED, Outcome.RESUMED, Outcome.ALREADY_RUNNING, Outcome.NOT_RUNNING})


def with_what_waits(system: System, told: Mapping[str, Told]) -> Mapping[str, Told]:
    """Return what is told of each session, and of what of it needs a service where none runs.

    Where that cannot be told (a damaged database) nothing is added: the start itself is not in doubt.
    """
    try:
        if running_service(system.paths.service_lock) is not None:
            return told
        return {name: _with(system, name, word) if word.outcome in _HERE else word for name, word in told.items()}
    except CoreError:
        return told


def _with(system: System, name: str, word: Told) -> Told:
    waits = _waiting(system, definition_of(system.settings, system.records, name))
    if not waits:
        return word
    said = f"no service is running, so {' and '.join(waits)} must wait for one; {way_up(system.settings)}"
    return replace(word, detail=f"{word.detail}; {said}" if word.detail else said)


def _waiting(system: System, known: Known) -> list[str]:
    what, loops = known.definition, known.name in system.settings.standing.loops
    if known.record is not None:
        loops = loops or bool(system.loops.counts().get(known.record.uid))
    needs = {
        "its thread": what.slack.enabled and system.settings.channel(CHANNEL).enabled,
        "its loops": loops,
        "its restart": what.restart is Restart.ON_FAILURE,
        "its idle.stopAfter": what.idle.stop_after,
    }
    return [thing for thing, needed in needs.items() if needed]
