"""What somebody is told, alone and once a day, whose reply was refused because no list names them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from core.names import new_message_id
from core.ports import Binding, IncomingReply, NewPost, OutboundKind

_STALE = timedelta(days=1)


def note_of(
    reply: IncomingReply, binding: Binding, authorized: Callable[[str], bool], written: datetime, now: datetime
) -> NewPost | None:
    """Return the note with the id by which they can be listed; None for nobody who could be, and for what is days old.

    `authorized` is the channel's own list. Nothing of the reply but its author and place goes into the note.
    """
    member = reply.author.rpartition(":")[2]
    if not member or not (reply.author_team or reply.unlisted) or written < now - _STALE:
        return None
    return NewPost(
        id=f"p-unlisted-{new_message_id()}",
        key=f"unlisted:{reply.channel_kind}:{reply.author_team}:{member}:{now.astimezone(UTC):%Y-%m-%d}",
        kind=OutboundKind.WHISPER,
        uid=binding.uid,
        name=binding.name,
        channel_kind=reply.channel_kind,
        text=f"Your reply did not reach `{binding.name}`, and nothing of it is kept: you are not on the list of those "
        f"who may steer it. {_identified(reply, member)}. To do: whoever runs the-loop puts it into "
        f"{_list_of(reply, binding, authorized)}; then say it again.",
        channel=reply.channel,
        thread=reply.thread,
        only_for=member,
    )


def _identified(reply: IncomingReply, member: str) -> str:
    """Return the id as a list names it: outsiders and guests with the team before it. Who is a guest is not known."""
    with_team = f"{reply.author_team or 'T…'}:{member}"
    if reply.author == with_team or reply.author_team not in ("", reply.team):
        return f"Your member id is `{with_team}`"
    other = "a guest" if reply.author_team else "a guest or of another organization, with your team's id"
    return f"Your member id is `{member}` (if you are {other}: `{with_team}`)"


def _list_of(reply: IncomingReply, binding: Binding, authorized: Callable[[str], bool]) -> str:
    if authorized(reply.author):
        return f"`{reply.channel_kind}.authorizedUsers` of `{binding.name}`"
    return f"`channels.{reply.channel_kind}.authorizedUsers`"
