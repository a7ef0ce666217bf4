"""How much a thread is told. No I/O."""

from collections.abc import Mapping
from enum import Enum

from core.domain.posting import OutboundKind

K = OutboundKind
_ALWAYS = frozenset(
    {K.ROOT, K.ROOT_UPDATE, K.REFRESH, K.BOOT, K.REQUEST, K.POST, K.ATTACHMENT, K.NOTE, K.WHISPER, K.CLOSING}
)


class Verbosity(Enum):
    """Each shows all that the one before it shows, and more."""

    QUIET = "quiet"  #: announcements, notes and questions
    NORMAL = "normal"  #: final answers too
    VERBOSE = "verbose"  #: progress too: which tools ran


ADDS: Mapping[Verbosity, frozenset[OutboundKind]] = {
    Verbosity.QUIET: _ALWAYS,
    Verbosity.NORMAL: frozenset({K.ASKED, K.ANSWER, K.PART, K.FILE}),
    Verbosity.VERBOSE: frozenset({K.PROGRESS}),
}


def shows(verbosity: Verbosity, kind: OutboundKind) -> bool:
    """Tell whether posts of that kind are shown; a kind that no row of the table adds is always shown."""
    levels = list(Verbosity)
    later = levels[levels.index(verbosity) + 1 :]
    return not any(kind in ADDS[level] for level in later)
