"""What an agent's answer is sent as: one message, several, or the first of them and a file. Pure."""

from pathlib import PurePath

from bot.rendering import ROOM, Piece, pieces, render
from bot.splitting import split
from core.domain.plaintext import unstyled
from core.domain.posting import OutboundKind
from core.ports import NewPost
from core.values import replace

PART = 2 * ROOM  #: characters of a part as Slack counts them; it recommends 4,000 and cuts nothing of that size
MOST_PARTS = 12
MOST_BYTES = 30_000  #: of the whole; above it becomes a file
_SUMMARY = PART - 300  #: characters of the part that stands above a file, with room for the note
_BEGINNING = 3 * _SUMMARY  #: characters of a whole that is above MOST_BYTES, of which that part is made
ATTACHED = "\n\n… this is the beginning. The whole answer is attached: `{name}`, {size:,} bytes."


def parts(post: NewPost) -> tuple[NewPost, ...]:
    """Return the posts, in order, whose ids follow from the post's. What is no answer is sent as it is."""
    if post.kind is not OutboundKind.ANSWER:
        return (post,)
    whole = unstyled(post.text)
    if len(whole.encode(errors="replace")) > MOST_BYTES:
        return _summary(post, pieces(whole[:_BEGINNING]))
    made = pieces(whole)
    found = split(made, PART)
    if len(found) <= 1:
        return (post,)
    if len(found) > MOST_PARTS:
        return _summary(post, made)
    return tuple(_part(post, number, part) for number, part in enumerate(found, start=1))


def wire(post: NewPost) -> str:
    """Return the post's text in Slack's markup; one that shows nothing is sent as the characters that it is."""
    shown = post.text if post.kind is OutboundKind.PART else render(unstyled(post.text))
    return shown if shown.strip() else f"`{post.text.strip()[:20] or ' '}`"


def file_name(post_id: str, path: str = "") -> str:
    """Return the name of the file of a post: it is found again by it. `path`: the file's own, where it has one."""
    return f"{post_id}-{PurePath(path).name}" if path else f"{post_id}.md"


def is_file_of(post_id: str, name: str) -> bool:
    """Tell whether a file of that name is the post's."""
    return name == file_name(post_id) or name.startswith(f"{post_id}-")


def _part(post: NewPost, number: int, text: str, kind: OutboundKind = OutboundKind.PART) -> NewPost:
    return replace(post, id=f"{post.id}-{number}", key=f"{post.key}#{number}", text=text, kind=kind)


def _summary(post: NewPost, made: tuple[Piece, ...]) -> tuple[NewPost, ...]:
    first = next(iter(split(made, _SUMMARY)), "")
    attachment = _part(post, 2, post.text, OutboundKind.FILE)
    note = ATTACHED.format(name=file_name(attachment.id), size=len(post.text.encode()))
    return _part(post, 1, first + note), attachment
