"""What core lets a chat show besides posts: texts without secrets, with commands as they can be typed."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import UnknownSession
from core.model.channel import IncomingOrder
from core.model.session import ChatBinding
from core.session.system import System
from tests.support.chat import Chat
from tests.support.door import door_of
from tests.support.world import declaring, definition

VALUE = "a-value-that-nobody-guesses"


def test_what_a_chat_shows_passes_the_door(system: System, tmp_path: Path) -> None:
    """Secrets go by value and by look; commands carry the configuration, except in what is shown as it is."""
    source = tmp_path / "c.yaml"
    settings = system.settings._replace(source=source)
    told = replace(system, settings=settings, environ={**system.environ, "THE_LOOP_API_TOKEN": VALUE})
    door = door_of(told, Chat())
    text = f"{VALUE} ghp_{'Ab3' * 12}: `the-loop standing list`"

    shown, verbatim = door.shown(text), door.shown(text, verbatim=True)

    assert shown.startswith("[redacted] [redacted]: `")
    assert f"the-loop --config {source} standing list` (on " in shown  # this chat takes no commands
    assert door.shown(shown) == shown
    assert verbatim == "[redacted] [redacted]: `the-loop standing list`"


def test_a_member_is_shown_the_sessions_that_they_may_steer(system: System) -> None:
    """A session's own list keeps its rows, its loops and its screen from whoever it leaves out, in the same words as a
    name that no session has."""
    open_to = {"scribe": None, "scribe-two": ("U2",)}
    system = declaring(
        system,
        *(replace(definition(name), chat={"slack": ChatBinding(True, "", who)}) for name, who in open_to.items()),
    )
    door = door_of(system, Chat(members={"U1", "U2"}))
    [seen, all_of_them, none] = [[row["name"] for row in door.rows(who)] for who in ("U1", "U2", "U7")]

    told = []
    for verb in ("screen", "loops", "say"):
        for name in ("scribe-two", "scribe-ten"):  # both are near one that is open to U1
            with pytest.raises(UnknownSession) as caught:
                door.order(IncomingOrder("slack", "U1", "ann", verb, name, "hello"))
            told.append(caught.value.message.replace(name, "NAME"))

    assert (seen, all_of_them, none) == (["scribe"], ["scribe", "scribe-two"], [])
    assert len(set(told)) == 1
