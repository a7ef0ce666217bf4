"""What Slack is sent of a live post: chunks of its tasks and of its text, and how much of an answer one holds. Pure.

https://docs.slack.dev/reference/methods/chat.appendStream names the chunks: a task's title and state are replaced by
those of a later chunk with its id; a text is Markdown, and is put behind the text so far. A stream that begins with
chunks takes chunks alone. No page says how much a message holds: apps measured that some 10,600 bytes of titles and
text are refused as `msg_too_long` (https://github.com/openclaw/openclaw/pull/143882), and that blanks with which a
chunk of text begins may be lost. So the text is cut where a line ends and the next one begins with something to see.
"""

import re
from typing import Any

from bot import markdown
from core.base.text import unstyled
from core.base.values import replace
from core.model.live import LiveShown, StepState
from core.model.posts import NewPost, OutboundKind

LIVE_BYTES = 9_000  #: of titles and text in one message
PIECE_BYTES = 3_000  #: of text in one call: a reader sees it grow
_STATES = {
    StepState.PENDING: "pending",
    StepState.RUNNING: "in_progress",
    StepState.DONE: "complete",
    StepState.FAILED: "error",
    StepState.STRUCK: "complete",  # nothing seems to wait for it
}
_APART = "\N{ZERO WIDTH SPACE}"
_PING = re.compile(r"<(?=[@!#])|@(?=here\b|channel\b|everyone\b|group\b)", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_CLOSING = 16  #: bytes that close a fence
_SPARE = 400  #: bytes by which what is shown may have grown since an answer was cut


def chunks(live_id: str, change: LiveShown, text: str = "") -> list[dict[str, Any]]:
    """Return what is told of a change, and the text behind it. Ids of tasks begin with that of their live post."""
    made: list[dict[str, Any]] = [{"type": "plan_update", "title": change.title}] if change.title else []
    made += [
        {"type": "task_update", "id": f"{live_id}:{step.id}", "title": safe(step.title), "status": _STATES[step.state]}
        for step in change.steps
    ]
    return [*made, {"type": "markdown_text", "text": text}] if text else made


def safe(text: str) -> str:
    """Return Markdown that pings nobody, whatever Slack makes of mentions in it."""
    return _PING.sub(lambda found: found[0] + _APART, text)


def parts(post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
    """Return what an answer is sent as whose beginning ends a live post that shows this; its rest are plain posts."""
    whole = unstyled(post.text)
    if post.kind is not OutboundKind.ANSWER or len(whole.encode(errors="replace")) > markdown.MOST_BYTES:
        return markdown.parts(post)
    first, rest = cut(whole, _room(shown))
    if not rest.strip():
        return (post,)
    others = markdown.parts(replace(post, text=rest))
    if any(other.kind is OutboundKind.FILE for other in others):
        return markdown.parts(post)
    texts = [replace(post, text=first), *others]
    return tuple(
        replace(part, id=f"{post.id}-{number}", key=f"{post.key}#{number}")
        for number, part in enumerate(texts, start=1)
    )


def pieces(post: NewPost, shown: LiveShown) -> tuple[str, ...]:
    """Return the answer in the pieces in which it is put behind what is shown; () where it does not fit."""
    text = safe(unstyled(post.text)).strip("\n")
    if post.kind is not OutboundKind.ANSWER or not text.strip() or len(text.encode()) > _room(shown) + _SPARE:
        return ()
    found, lines = [""], text.splitlines(keepends=True)
    for line in lines:
        if found[-1] and not line[0].isspace() and len((found[-1] + line).encode()) > PIECE_BYTES:
            found.append("")
        found[-1] += line
    return tuple(found)


def cut(text: str, limit: int) -> tuple[str, str]:
    """Return the beginning of a text, of at most `limit` bytes as it is sent, and the rest, "" where it all fits.

    It is cut between paragraphs, or else between lines, in the second half of what fits; a line that is too long is cut
    itself. A fence across the cut is closed before it and opened again after it.
    """
    if len(safe(text).encode()) <= limit:
        return text, ""
    best, best_rank, size, fence = 0, -1, 0, ""
    at, opened = 0, ""
    for line in text.splitlines(keepends=True):
        size += len(safe(line).encode())
        if size > limit - _CLOSING:
            break
        fence = _after(line, fence)
        at += len(line)
        rank = -1 if size < limit // 2 else 0 if fence else 2 if not line.strip() else 1
        if rank >= best_rank:
            best, best_rank, opened = at, rank, fence
    if not best:
        best = _characters(text, limit - _CLOSING)
    first, rest = text[:best], text[best:]
    if opened:
        mark = opened.strip()[:3]
        return f"{first.rstrip()}\n{mark}", f"{opened}\n{rest}"
    return first.rstrip(), rest.lstrip("\n")


def _after(line: str, fence: str) -> str:
    """Return the line that opened the fence in which the next line stands, "" for none."""
    found = _FENCE.match(line.rstrip("\n"))
    if found is None:
        return fence
    if not fence:
        return found[0]
    closes = found[1].startswith(fence.strip()[:3]) and not found[2].strip()
    return "" if closes else fence


def _characters(text: str, limit: int) -> int:
    """Return how many characters of a text fit into so many bytes."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(safe(text[:middle]).encode()) <= limit else (low, middle - 1)
    return low


def _room(shown: LiveShown) -> int:
    """Return how many bytes of text a message holds that shows this."""
    return LIVE_BYTES - sum(len(safe(text).encode()) for text in (shown.title, *(step.title for step in shown.steps)))
