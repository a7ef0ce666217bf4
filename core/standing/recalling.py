"""logs: what a session's terminal showed last, of the instance that lives and of the one that ended before."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.clock import iso
from core.domain.session import LastExit, Live, SessionRecord
from core.errors import NotRunning, StoreBroken
from core.names import target_for
from core.plainfiles import open_plain, read_bounded
from core.session.launching import LONGEST_OUTPUT, output_path
from core.session.sessions import definition_of
from core.system import System
from core.values import dataclass


@dataclass(frozen=True)
class EndedOutput:
    """The last output of an instance that ended: when that was kept (UTC), and how it ended, as far as it is known."""

    at: datetime | None  #: None: its pane is there still, and tmux does not say since when it is dead
    exit: LastExit | None
    output: str

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "at": iso(self.at) if self.at else None,
            "exit": {"status": self.exit.status, "signal": self.exit.signal} if self.exit else None,
            "output": self.output,
        }


@dataclass(frozen=True)
class Logs:
    """What a session showed: `screen` of a live one, `ended` of the instance that ended last. None: there is none."""

    name: str
    live: Live
    screen: str | None
    ended: EndedOutput | None

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "name": self.name,
            "live": self.live.value,
            "screen": self.screen,
            "ended": self.ended.to_json() if self.ended else None,
        }


def logs_of(system: System, name: str, lines: int) -> Logs:
    """Return the last lines of what the session showed. Raises UnknownSession, InvalidValue, RecordUnreadable,
    TmuxSilent, and NotRunning for one that never ran."""
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    record = known.record
    if record is None or record.instance_id is None:
        raise NotRunning(f"{name} has shown nothing yet: it never ran", f"start it: `the-loop standing start {name}`")
    survey = system.runner.survey()
    live = survey.live(target_for(name), record.instance_id)
    pane = survey.of_instance(record.instance_id)
    shown = _screen(system, record.instance_id, lines) if pane else None
    if pane is not None and pane.dead and shown is not None:
        return Logs(name, live, None, EndedOutput(None, pane.exit, shown))
    return Logs(name, live, shown, _kept(system, record, lines))


def _screen(system: System, instance: str, lines: int) -> str | None:
    try:
        return system.runner.screen(instance, lines)
    except NotRunning:
        return None  # it went between the two looks


def _kept(system: System, record: SessionRecord, lines: int) -> EndedOutput | None:
    path = output_path(system.paths, record.uid)
    found = _read(path)
    if found is None:
        return None
    text, at = found
    return EndedOutput(at, record.last_exit, "\n".join(text.splitlines()[-lines:]))


def _read(path: Path) -> tuple[str, datetime] | None:
    try:
        with open_plain(path) as stream:
            at = datetime.fromtimestamp(os.fstat(stream.fileno()).st_mtime, UTC)
            return read_bounded(stream, LONGEST_OUTPUT).decode(errors="replace"), at
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreBroken(f"{path} cannot be read: {error.strerror}", "give yourself the rights to it") from error
