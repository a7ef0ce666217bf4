"""Whether a thread that a record names is still its session's, once the database that knew it is lost. No I/O.

Anybody may copy a text, and any app may write metadata as ours: only posts of this installation count, by what their
metadata says and never by their words.
"""

from core.domain.posting import OutboundKind
from core.values import dataclass

_ANNOUNCEMENTS = frozenset({OutboundKind.ROOT.value, OutboundKind.ROOT_UPDATE.value, OutboundKind.REFRESH.value})
_PARTINGS = ("p-sharing-", "p-moved-", "p-closing-")  #: how the ids of posts begin that close a thread

NO_ROOT = "root-gone"
FOREIGN_ROOT = "root-of-another"
PARTED = "parted"


@dataclass(frozen=True)
class OwnPost:
    """A message that this installation posted, by its metadata; "" for what that does not name."""

    ts: str
    post_id: str
    kind: str  #: an OutboundKind's value
    ref: str
    uid: str


@dataclass(frozen=True)
class ThreadSeen:
    """A thread as it was read to its end."""

    team: str
    channel: str
    thread: str
    latest: str  #: the ts of its last message, whoever wrote that
    posts: tuple[OwnPost, ...]  #: this installation's own


def why_not(seen: ThreadSeen, ref: str, uid: str) -> str:
    """Return why the thread is not the session's any more; "" where it is."""
    root = next((post for post in seen.posts if post.ts == seen.thread), None)
    if root is None:
        return NO_ROOT
    if root.kind not in _ANNOUNCEMENTS or (root.ref, root.uid) != (ref, uid):
        return FOREIGN_ROOT
    closed = (post.kind == OutboundKind.CLOSING.value or post.post_id.startswith(_PARTINGS) for post in seen.posts)
    return PARTED if any(closed) else ""
