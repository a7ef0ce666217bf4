"""Work on many sessions in turn, each apart: what is wrong with one is told, and holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from core.deferring import deferred
from core.domain.session import SessionRecord
from core.errors import CoreError, LockBusy, TmuxMissing, TmuxSilent
from core.loggers import logger

if TYPE_CHECKING:
    from weakref import WeakKeyDictionary

    from core.ports import EventLog

_LOG = logger(__name__)


def _nothing_told() -> WeakKeyDictionary[EventLog, dict[str, type[Exception]]]:
    from weakref import WeakKeyDictionary

    return WeakKeyDictionary()


_told = deferred(_nothing_told)  #: by event log and session, the latest


def _nobody_stuck() -> WeakKeyDictionary[EventLog, set[str]]:
    from weakref import WeakKeyDictionary

    return WeakKeyDictionary()


_stuck = deferred(_nobody_stuck)  #: by event log, the sessions whose messages cannot be moved


class Unforeseen(CoreError):
    """Work on one session failed in a way that nobody foresaw."""

    code = "unforeseen"

    def __init__(self, session: str, error: Exception) -> None:
        super().__init__(
            f"{session}: {type(error).__name__}: {error}", "see the log of the service, which says where it happened"
        )


@contextmanager
def apart(events: EventLog, session: str) -> Iterator[None]:
    """Raise whatever fails in the block as a CoreError, which whoever works on many sessions passes over.

    What nobody foresaw is logged with its place, and told as `standing.passed_over`, once for each kind of it.
    Raises Unforeseen.
    """
    try:
        yield
    except CoreError:
        raise
    except Exception as error:
        found = Unforeseen(session, error)
        told = _told.setdefault(events, {})
        if told.get(session) is not type(error):
            told[session] = type(error)
            _LOG.exception("a session is passed over", extra={"session": session})
            events.emit("standing.passed_over", level="error", name=session, reason=found.message)
        raise found from error


def pass_over(events: EventLog, session: str, error: CoreError) -> None:
    """Tell once, as `standing.passed_over`, that what is wrong with a session keeps its messages from being moved.

    A defect is told by `apart`; a lock that is held, or a tmux that does not answer, is nobody's own trouble.
    """
    if isinstance(error, (Unforeseen, LockBusy, TmuxSilent, TmuxMissing)):
        return
    stuck = _stuck.setdefault(events, set())
    if session not in stuck:
        stuck.add(session)
        events.emit("standing.passed_over", level="error", name=session, reason=str(error))


def take_up(events: EventLog, session: str) -> None:
    """Tell, as `standing.taken_up`, that a session's messages are moved again, where the opposite was told."""
    stuck = _stuck.get(events, set())
    if session in stuck:
        stuck.discard(session)
        events.emit("standing.taken_up", name=session)


def each_apart(events: EventLog, records: Iterable[SessionRecord], act: Callable[[SessionRecord], object]) -> None:
    """Act on each session. What goes wrong with one is logged, and its caller comes to it again at the next look.

    A tmux that does not answer is nobody's own trouble. Raises TmuxSilent, TmuxMissing.
    """
    for record in records:
        try:
            with apart(events, record.name):
                act(record)
        except (TmuxSilent, TmuxMissing):
            raise
        except CoreError as error:
            _LOG.warning("session passed over", extra={"session": record.name, "reason": str(error)})
