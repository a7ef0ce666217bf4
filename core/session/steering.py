"""Who may steer a session: the channel's allow-list, narrowed by the session's own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.domain.message import InboxRow
from core.errors import UnknownSession
from core.session.sessions import definition_of

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.system import System

Authorized = Callable[[str], bool]


def may_steer(system: "System", authorized: Authorized, name: str, author: str) -> bool:
    """Tell whether the author may speak to the session now: on the channel's list, and on the session's if it has one.

    `author` is as the channel names people: a member id, or `team:member` for a guest or an outsider who is listed so.
    A session that nobody can read is steered by nobody.
    """
    if not author or not authorized(author):
        return False
    try:
        known = definition_of(system.settings, system.records, name)
    except UnknownSession:
        return False
    if known.unreadable is not None and not known.declared:
        return False
    listed = known.definition.slack.authorized_users
    return listed is None or author in listed


def chat_of(settings: "Settings", row: InboxRow) -> str | None:
    """Return the kind of chat that a message came from, by a reply in a thread or by a command; None for any other."""
    if row.message.address is not None:
        return row.message.address.channel_kind
    kind = row.message.actor.partition(":")[0]
    return kind if kind in settings.channels else None


def authorized_rows(system: "System", authorized: Authorized) -> Callable[[InboxRow], bool]:
    """Return the question that delivery asks again: rows of a chat need their author on the lists still."""

    def ask(row: InboxRow) -> bool:
        kind = chat_of(system.settings, row)
        author = row.message.actor.removeprefix(f"{kind}:")
        return kind is None or may_steer(system, authorized, row.message.name, author)

    return ask
