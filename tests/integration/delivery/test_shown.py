"""What core lets a chat show besides posts: texts without secrets, with commands as they can be typed."""

from dataclasses import replace
from pathlib import Path

from core.conversation.catchingup import CatchingUp
from core.conversation.changing import Changes
from core.conversation.door import Door
from core.conversation.inbound import Inbound
from core.conversation.mirroring import NullMirror
from core.conversation.ordering import Orders
from core.conversation.pressing import Presses
from core.observing.asking import Requests
from core.process.connections import Connections
from core.system import System
from tests.support.chat import Chat

VALUE = "a-value-that-nobody-guesses"


def test_what_a_chat_shows_passes_the_door(system: System, tmp_path: Path) -> None:
    """Secrets go by value and by look; commands carry the configuration, except in what is shown as it is."""
    source = tmp_path / "c.yaml"
    settings = system.settings._replace(source=source)
    told = replace(system, settings=settings, environ={**system.environ, "THE_LOOP_API_TOKEN": VALUE})
    chat = Chat()
    door = Door(
        told,
        Connections([]),
        Inbound(told, chat.authorized, NullMirror()),
        Changes(told, chat.authorized),
        lambda: None,
        Presses(told, chat.holds, Requests(told)),
        Orders(told, chat.holds),
        CatchingUp(told.clock, told.bindings),
        lambda uids: None,
    )
    text = f"{VALUE} ghp_{'Ab3' * 12}: `the-loop standing list`"

    shown, verbatim = door.shown(text), door.shown(text, verbatim=True)

    assert shown.startswith("[redacted] [redacted]: `")
    assert f"the-loop --config {source} standing list`" in shown
    assert door.shown(shown) == shown
    assert verbatim == "[redacted] [redacted]: `the-loop standing list`"
