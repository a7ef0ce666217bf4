"""What is posted into a chat: the kinds of posts, and what a running turn has done. No I/O."""

from collections.abc import Mapping
from enum import Enum

from core.domain.plaintext import in_lines
from core.values import dataclass

_LONGEST_QUESTION = 1_500  #: characters of one that was asked elsewhere
SHOWN_STEPS = 20  #: of a turn's steps the last so many are shown, and the others counted


class OutboundKind(Enum):
    """What a post is."""

    ROOT = "root"  #: the announcement; its message becomes the session's thread
    ROOT_UPDATE = "root-update"  #: the announcement edited to the present state
    REFRESH = "refresh"  #: as that, on demand: where there is no announcement any more a new one is made
    BOOT = "boot"  #: a later boot, as a reply
    ASKED = "asked"  #: what the agent was asked elsewhere than in the thread, in Markdown
    ANSWER = "answer"  #: the agent's final answer, in Markdown
    PART = "part"  #: one of the messages that a long answer is sent as, in the chat's own markup
    FILE = "file"  #: an answer that is too long for messages, attached
    PROGRESS = "progress"  #: what the running turn has done so far: one message a turn, edited
    REQUEST = "request"  #: a permission or a question, with buttons; its edit tells how it ended. Markdown
    POST = "post"  #: what the agent posts by our command, in Markdown
    ATTACHMENT = "attachment"  #: a file that the agent posts by our command
    NOTE = "note"  #: ours: refused, queued, unknown, with the remedy
    WHISPER = "whisper"  #: ours, shown to one person alone
    CLOSING = "closing"  #: the thread is unbound


K = OutboundKind
#: What goes first, of a session and of all that share a channel's pace: what is waited for. Equals keep their order.
RANKS: Mapping[OutboundKind, int] = {
    K.ROOT: 0,  # without it there is no thread
    K.REQUEST: 1,  # an agent stands still until it is answered
    **dict.fromkeys((K.NOTE, K.BOOT, K.ROOT_UPDATE, K.REFRESH), 2),
    **dict.fromkeys((K.ASKED, K.ANSWER, K.PART, K.FILE, K.POST, K.ATTACHMENT, K.CLOSING), 3),
    K.WHISPER: 4,
    K.PROGRESS: 5,
}


@dataclass(frozen=True)
class ProgressRow:
    """The steps of a session's latest turn."""

    uid: str
    turn: str  #: its instance and when it began
    lines: tuple[str, ...] = ()  #: the latest ones
    steps: int = 0  #: how many there were
    told: int = 0  #: how many its message tells of
    asked: bool = False  #: its message may have been posted
    channel: str = ""
    ts: str = ""  #: the message, "" before it is known


def asked_text(who: str, text: str) -> str:
    """Return what a thread is told of a question that was asked elsewhere: Markdown, the question quoted."""
    kept = in_lines(text).strip()
    left = len(kept) - _LONGEST_QUESTION
    shown = kept if left <= 0 else f"{kept[:_LONGEST_QUESTION]}… [{left:,} more characters: see the session's terminal]"
    quoted = "\n".join(f"> {line}".rstrip() for line in shown.split("\n"))
    return f"**{who}:**\n{quoted}"


def step_line(tool: str, detail: str) -> str:
    """Return one line about a tool that runs: Markdown, the detail as code."""
    shown = " ".join(detail.replace("`", "'").split())
    shown = shown if len(shown) <= 100 else f"{shown[:99]}…"
    return f"- {tool} `{shown}`" if shown else f"- {tool}"


def progress_text(row: ProgressRow) -> str:
    """Return the message about a turn's steps, in Markdown."""
    left = row.steps - len(row.lines)
    head = f"**Steps of this turn: {row.steps}**" + (f" (the last {len(row.lines)} are shown)" if left > 0 else "")
    return "\n".join([head, *row.lines])
