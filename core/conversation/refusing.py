"""What an audit finds of commands and presses that were refused for want of rights: one event each, never a text."""

from core.conversation.inbound import UNAUTHORIZED
from core.errors import InvalidValue, UnknownSession
from core.ports import IncomingPress
from core.session.sessions import definition_of
from core.system import System


def tell_refused(
    system: System, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
) -> None:
    """Tell who was refused what: a verb, or a button's action.

    `name` is told where a session is called so: anything else is just a word that somebody typed.
    """
    system.events.emit(
        "channel.dropped",
        level="warning",
        name=_known(system, name),
        actor=f"{channel_kind}:{author}",
        reason=UNAUTHORIZED,
        detail=what,
        message=press.ts if press else None,
        channel=press.channel if press else None,
        thread=press.thread if press else None,
    )


def _known(system: System, name: str) -> str | None:
    try:
        return definition_of(system.settings, system.records, name).name if name else None
    except (InvalidValue, UnknownSession):
        return None
