"""Decide when the marker of an open dialog, which the hook reporter keeps, is out of date.

No hook tells of an Enter or an Escape in a dialog (Claude Code 2.1.197): Enter is known once the tool is over, Escape
never. The harness's second source shows both. Measured: it says `waiting` within 0.15 s of the marker, and what follows
within 0.4 s of the key.
"""

import os
from datetime import datetime, timedelta
from pathlib import Path

from core.base.files import broken, read_plain, remove_file
from core.model.activity import ASKING_STATES
from core.model.asking import MAIN
from core.model.harness import StatusProbe

SETTLED = timedelta(seconds=0.5)  #: a word of the second source that has stood for so long is no passing one
LEFT = timedelta(seconds=5)  #: a harness that is between turns shows a dialog long before
SILENT_TURN = timedelta(seconds=30)
_LONGEST = 1 << 16


def waiting_agents(marker: Path) -> frozenset[str]:
    """Return the agents that wait for a person, by the marker's lines `+agent` (asked) and `-agent` (went on).

    None where there is no marker, or one that tells only that somebody asks. Raises StoreBroken.
    """
    try:
        with open(marker, "rb", opener=_at_once) as stream:
            lines = stream.read(_LONGEST).decode(errors="replace").split()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise broken(error, marker, "see who waits for a person") from error
    waiting = set[str]()
    for line in lines:
        (waiting.add if line.startswith("+") else waiting.discard)(line[1:])
    return frozenset(waiting)


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for a writer, whatever stands under that name."""
    return os.open(path, flags | os.O_NONBLOCK)


def says_none_is_open(opinion: StatusProbe | None) -> bool:
    """Return whether the second source says that no dialog is shown. Silence says nothing."""
    return opinion is not None and opinion.state not in ASKING_STATES


def is_over(opinion: StatusProbe | None, marked_at: datetime, waiting: frozenset[str], now: datetime) -> bool:
    """Return whether the marker's dialog is over, by the second source or else by the marker's age.

    `marked_at`: when the marker was written last. Of the main agent's dialog the source tells at once; that of a
    background agent is not shown, nor told of, before its hook has given up.
    """
    if opinion is None or not says_none_is_open(opinion):
        return False
    told_at = opinion.written_at
    if waiting == {MAIN} and told_at is not None and marked_at < told_at <= now - SETTLED:
        return True
    return now - marked_at >= (LEFT if opinion.turn_over else SILENT_TURN)


def drop_marker(marker: Path, before: datetime) -> None:
    """Remove the marker of the dialogs that were open at that moment; what was asked since is kept.

    Raises StoreBroken.
    """
    aside = marker.with_name(f"{marker.name}.dropped")
    try:
        marker.rename(aside)
        if aside.stat().st_mtime > before.timestamp():
            with marker.open("ab") as stream:
                stream.write(read_plain(aside, 16 * _LONGEST))
    except FileNotFoundError:
        return
    except OSError as error:
        raise broken(error, marker, "see whether a dialog was opened since") from error
    remove_file(aside)
