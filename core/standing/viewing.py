"""attach and screen: how a person looks at a session."""

from core.domain.session import Live, Phase, SessionRecord
from core.errors import BeingDeleted, NotRunning, Refused, StoreBroken
from core.names import target_for
from core.plainfiles import read_plain
from core.session.launching import LONGEST_OUTPUT, output_path
from core.session.sessions import Known, definition_of
from core.system import System
from core.values import dataclass


def attach_command(system: System, name: str, *, write: bool) -> tuple[str, ...]:
    """Return the command that attaches to the session's terminal, read-only unless `write`.

    A dead pane can be looked at. Raises UnknownSession, InvalidValue, NotRunning, BeingDeleted, TmuxSilent.
    """
    known = definition_of(system.settings, system.records, name)
    survey = system.runner.survey()
    live = survey.live(target_for(name), known.record.instance_id if known.record else None)
    if live not in (Live.LIVE, Live.DEAD):
        raise _nothing_to_see(name, known.record)
    return system.runner.attach_command(target_for(name), write=write)


@dataclass(frozen=True)
class Screen:
    """The last lines of a terminal."""

    text: str
    ended: bool  #: it is there no more, and this was kept of it


def screen(system: System, name: str, lines: int) -> Screen:
    """Return the last lines of the session's terminal; of one that was ended, what was kept of it.

    Raises UnknownSession, InvalidValue, NotRunning, BeingDeleted, StoreBroken.
    """
    known = definition_of(system.settings, system.records, name)
    record = known.record
    if record is None or record.instance_id is None:
        raise _nothing_to_see(name, record)
    try:
        return Screen(system.runner.screen(record.instance_id, lines), ended=False)
    except NotRunning as error:
        kept = _kept_output(system, known)
        if kept is None:
            raise _nothing_to_see(name, record) from error
        return Screen("\n".join(kept.splitlines()[-lines:]), ended=True)


def _kept_output(system: System, known: Known) -> str | None:
    if known.record is None:
        return None
    try:
        return read_plain(output_path(system.paths, known.record.uid), LONGEST_OUTPUT).decode(errors="replace")
    except FileNotFoundError:
        return None  # none was kept
    except OSError as error:
        path = output_path(system.paths, known.record.uid)
        raise StoreBroken(f"{path} cannot be read: {error.strerror}", "give yourself the rights to it") from error


def _nothing_to_see(name: str, record: SessionRecord | None) -> Refused:
    if record is not None and record.phase is Phase.DELETING:
        return BeingDeleted(f"{name} has no pane to look at: it is being deleted", name)
    return NotRunning(f"{name} has no pane to look at", f"start it: `the-loop standing start {name}`")
