"""Turn a post with buttons into blocks. Pure."""

from collections.abc import Sequence
from typing import Any

from core.model.asking import Button, Confirmation, confirmation_of

Block = dict[str, Any]

SECTION_MAX = 2_900  #: characters of a section's text; Slack takes 3,000
PREFIX = "the_loop_"  #: begins the action id of every button of ours
_LABEL_MAX = 75
_ROW = 25  #: elements of one row of buttons


def button_blocks(shown: str, buttons: Sequence[Button], name: str) -> list[Block]:
    """Return a section of text in Slack's markup, at most SECTION_MAX characters, and the buttons.

    `name`: the session that they are about.
    """
    rows = [buttons[start : start + _ROW] for start in range(0, len(buttons), _ROW)]
    section: Block = {"type": "section", "text": {"type": "mrkdwn", "text": shown}}
    return [section, *({"type": "actions", "elements": [_element(button, name) for button in row]} for row in rows)]


def action_of(action_id: str) -> str:
    """Return the Button.action of a button's action id."""
    return action_id.removeprefix(PREFIX)


def confirm_object(asked: Confirmation) -> Block:
    """Return Slack's confirmation dialog (https://docs.slack.dev/reference/block-kit/composition-objects)."""
    texts = (("title", asked.title, 100), ("text", asked.text, 300), ("confirm", asked.yes, 30), ("deny", asked.no, 30))
    return {**{key: plain_text(text, most) for key, text, most in texts}, "style": "danger"}


def plain_text(text: str, most: int) -> Block:
    """Return a plain text object of at most so many characters, in one line."""
    one_line = " ".join(text.split()) or "…"
    shown = one_line if len(one_line) <= most else f"{one_line[: most - 1]}…"
    return {"type": "plain_text", "text": shown, "emoji": False}


def _element(button: Button, name: str) -> Block:
    element: Block = {
        "type": "button",
        "action_id": f"{PREFIX}{button.action}",
        "value": button.target,
        "text": plain_text(button.label, _LABEL_MAX),
    }
    if button.style:
        element["style"] = button.style
    asked = confirmation_of(button.press, name)
    return {**element, "confirm": confirm_object(asked)} if asked else element
