"""Work on many sessions in turn, each apart: what is wrong with one is told, and holds up no other."""

import logging
from collections.abc import Callable, Iterable

from core.domain.session import SessionRecord
from core.errors import CoreError, TmuxMissing, TmuxSilent

_LOG = logging.getLogger(__name__)


def each_apart(records: Iterable[SessionRecord], act: Callable[[SessionRecord], object]) -> None:
    """Act on each session. What goes wrong with one is logged, and its caller comes to it again at the next look.

    A tmux that does not answer is nobody's own trouble. Raises TmuxSilent, TmuxMissing.
    """
    for record in records:
        try:
            act(record)
        except (TmuxSilent, TmuxMissing):
            raise
        except CoreError as error:
            _LOG.warning("session passed over", extra={"session": record.name, "reason": str(error)})
