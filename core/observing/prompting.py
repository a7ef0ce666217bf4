"""What was asked elsewhere than in a session's thread is shown there, since the answer will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.domain.framing import head, takes
from core.domain.harness import MAIN, PromptReported, Report
from core.domain.message import InboxRow, Kind, MessageState
from core.domain.posting import asked_text
from core.domain.session import SessionRecord
from core.session.steering import chat_of
from core.system import System

if TYPE_CHECKING:
    from core.ports import NewPost

_LOOK_BACK = 50  #: messages of the session
AT_TERMINAL = "at the terminal"


def asked_elsewhere(
    system: System, record: SessionRecord, report: Report, event: PromptReported, channel_kind: str
) -> tuple[NewPost, ...]:
    """Return a post for each question in a prompt that came by a command, by another agent, or from the keyboard.

    What stands in the thread already, what a loop asked, and what our own start asked, is none. Nor is what somebody
    sent from the chat by a command: they have chosen to be its only reader there.
    """
    if event.internal or report.agent != MAIN or not event.prompt.strip():
        return ()
    rows = system.inbox.with_states(record.uid, frozenset(MessageState), _LOOK_BACK)
    held = [row for row in rows if takes(event.prompt, row.message)]
    if not held:
        key = f"{record.instance_id}:{report.name}"
        return (_post(record, channel_kind, key, "", asked_text(AT_TERMINAL, event.prompt)),)
    return tuple(
        _post(record, channel_kind, row.message.id, row.message.id, asked_text(_who(row), row.message.text))
        for row in reversed(held)
        if row.message.kind is Kind.SAY and chat_of(system.settings, row) is None
    )


def _who(row: InboxRow) -> str:
    """Return who speaks, as the frame tells the agent: `alice via cli`, `agent builder`."""
    return head(row.message).strip("[]").rpartition(" #")[0]


def _post(record: SessionRecord, channel_kind: str, key: str, about: str, text: str) -> NewPost:
    from core.ports import NewPost, OutboundKind

    return NewPost(
        id=f"p-asked-{key}".replace(".", "-"),
        key=f"asked:{key}",
        kind=OutboundKind.ASKED,
        uid=record.uid,
        name=record.name,
        channel_kind=channel_kind,
        text=text,
        about=about,
    )
