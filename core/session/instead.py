"""What is said in the place of buttons where no press arrives: the commands that do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from core.domain.buttons import Button, Press
from core.values import replace

if TYPE_CHECKING:
    from core.ports import NewPost


def attach_of(name: str) -> str:
    """Return the command by which a person answers at a session's terminal."""
    return f"`the-loop standing attach {name} --write`"


def without_buttons(post: NewPost, exact: Callable[[str], str], *, replies: bool) -> NewPost:
    """Return a post without its buttons and with a line that says how to do what they would have done.

    What the text says already is not said again; the options of a question stand in it. `exact` makes commands such
    that they can be typed; `replies` tells whether what is written in the thread is read.
    """
    found = dict.fromkeys(exact(way) for button in post.buttons for way in _ways(button, post.name, replies))
    ways = [way for way in found if "`" not in way or way[way.index("`") :] not in post.text]
    told = f"\nThere are no buttons here. {'; '.join(ways)}." if ways else ""
    return replace(post, buttons=(), text=post.text + told)


def _ways(button: Button, name: str, replies: bool) -> Iterator[str]:
    match button.press:
        case Press.ALLOW | Press.DENY | Press.CHOOSE:
            yield f"Answer it at its terminal: {attach_of(name)}"
        case Press.CANCEL | Press.CONFIRM if " " in button.target:
            yield f"One by one: `the-loop standing queue {name}` lists them"
        case Press.CANCEL:
            yield f"To cancel it: `the-loop standing cancel {button.target}`"
        case Press.CONFIRM:
            yield f"To send it: `the-loop standing confirm {button.target}`"
        case Press.INTERRUPT:
            yield f"To end the turn: `the-loop standing interrupt {name}`"
        case Press.START | Press.START_AND_SEND:
            yield f"To start it: `the-loop standing start {name}`"
        case Press.SCREEN:
            yield f"To look at its terminal: `the-loop standing screen {name}`"
        case Press.OPTION | Press.SEND_AGAIN:
            pass
    if button.press in (Press.SEND_AGAIN, Press.START_AND_SEND):
        say = f"`the-loop standing say {name} --text TEXT`"
        yield "To send it again: write it here again" if replies else f"To send it again: {say}"
