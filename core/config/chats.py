"""Which chats are installed, and what has to be known of each before its package is imported. Standard library only.

The entry point group `the_loop.channels` names a chat's Channel, whose libraries may take a second to import. An entry
of the same name in the group `the_loop.chats` names a `ChatInfo`, in a module that imports nothing heavy: what the chat
is called, and where the models of its blocks are.
"""

from core.base.errors import CoreError
from core.base.plugins import entry_points, load
from core.base.values import dataclass

GROUP = "the_loop.channels"
INFO_GROUP = "the_loop.chats"


@dataclass(frozen=True)
class ChatInfo:
    """What a chat says of itself before it is imported."""

    title: str  #: what people call it, in texts
    settings: str = ""  #: `module:attribute` of the pydantic model of its block `channels.<kind>`, a `Block`
    session: str = ""  #: `module:attribute` of its block of a session, a `ThreadBlock`; "": the usual one
    setup: str = ""  #: `module:attribute` of what helps to set it up, a `core.model.setup.SetUp`; "": nothing does
    starter: str = ""  #: lines of the starter file below `channels:`, indented, each in a comment


class ChannelBroken(CoreError):
    """An installed channel cannot be loaded."""

    code = "channel_broken"

    def __init__(self, name: str, target: str, reason: str) -> None:
        super().__init__(
            f"the channel {name!r} ({target}) cannot be loaded: {reason}",
            "install its package again, or remove it",
        )


def installed_kinds() -> tuple[str, ...]:
    """Return the kinds of the chats that are installed, sorted."""
    return tuple(entry_points(GROUP))


def chat_info(kind: str) -> ChatInfo:
    """Return what the chat says of itself; of one that says nothing, or is not installed, a name made of its kind.

    Raises ChannelBroken.
    """
    target = entry_points(INFO_GROUP).get(kind)
    if target is None:
        return ChatInfo(kind.capitalize())
    found = load_part(kind, target)
    if not isinstance(found, ChatInfo):
        raise ChannelBroken(kind, target, "it is no ChatInfo")
    return found


def has_setup(kind: str) -> bool:
    """Return whether the chat helps to set it up. Of one whose package is broken, which `config check` tells: no."""
    try:
        return bool(chat_info(kind).setup)
    except ChannelBroken:
        return False


def load_part(kind: str, target: str) -> object:
    """Import what a chat's package names. Raises ChannelBroken."""
    try:
        found: object = load(target)
    except (ImportError, AttributeError) as error:
        raise ChannelBroken(kind, target, str(error)) from error
    return found


def title_of(kind: str) -> str:
    """Return what people call the chat. Of one whose package is broken, which `config check` tells, it is its kind."""
    try:
        return chat_info(kind).title
    except ChannelBroken:
        return kind.capitalize()
