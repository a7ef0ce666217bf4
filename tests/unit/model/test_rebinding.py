"""Which threads prove to be their session's."""

import pytest

from core.model.posts import FOREIGN_ROOT, NO_ROOT, PARTED, OwnPost, ThreadSeen, why_not

ROOT = OwnPost("1.1", "p-up-i-1", "root", "standing:scribe", "s-1")
ANSWER = OwnPost("1.2", "p-answer-1", "answer", "standing:scribe", "s-1")


def seen(*posts: OwnPost) -> ThreadSeen:
    """Return the thread 1.1 with these posts of ours."""
    return ThreadSeen("T1", "C1", "1.1", "1.9", posts)


@pytest.mark.parametrize("kind", ["root", "root-update", "refresh"])
def test_our_announcement_of_this_session_proves_it(kind: str) -> None:
    """An edit replaces the metadata of the root, and names the session as well."""
    root = OwnPost("1.1", "p-x", kind, "standing:scribe", "s-1")

    assert why_not(seen(root, ANSWER), "standing:scribe", "s-1") == ""


@pytest.mark.parametrize(
    ("posts", "reason"),
    [
        ((), NO_ROOT),
        ((ANSWER,), NO_ROOT),
        ((OwnPost("1.1", "p-up-i-1", "root", "standing:scribe", "s-0"),), FOREIGN_ROOT),
        ((OwnPost("1.1", "p-up-i-1", "root", "standing:scribe", ""),), FOREIGN_ROOT),
        ((OwnPost("1.1", "p-up-i-1", "root", "standing:other", "s-1"),), FOREIGN_ROOT),
        ((OwnPost("1.1", "p-answer-1", "answer", "standing:scribe", "s-1"),), FOREIGN_ROOT),
        ((OwnPost("1.1", "", "", "", ""),), FOREIGN_ROOT),
        ((ROOT, OwnPost("1.3", "p-sharing-s-1-1.1", "note", "standing:scribe", "s-1")), PARTED),
        ((ROOT, OwnPost("1.3", "p-moved-s-1-1.1", "closing", "standing:scribe", "s-1")), PARTED),
        ((ROOT, OwnPost("1.3", "p-closing-s-1", "closing", "standing:scribe", "s-1")), PARTED),
    ],
)
def test_nothing_else_does(posts: tuple[OwnPost, ...], reason: str) -> None:
    """Another session, an earlier one of the name, a root that is gone, a word of ours that closed the thread."""
    assert why_not(seen(*posts), "standing:scribe", "s-1") == reason
