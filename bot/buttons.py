"""Turn a post with buttons into blocks. Pure."""

from collections.abc import Sequence
from typing import Any

from core.model.asking import Button

Block = dict[str, Any]

SECTION_MAX = 2_900  #: characters of a section's text; Slack takes 3,000
PREFIX = "the_loop_"  #: begins the action id of every button of ours
_LABEL_MAX = 75
_ROW = 25  #: elements of one row of buttons


def button_blocks(shown: str, buttons: Sequence[Button]) -> list[Block]:
    """Return a section of text in Slack's markup, at most SECTION_MAX characters, and the buttons."""
    rows = [buttons[start : start + _ROW] for start in range(0, len(buttons), _ROW)]
    section: Block = {"type": "section", "text": {"type": "mrkdwn", "text": shown}}
    return [section, *({"type": "actions", "elements": [_element(button) for button in row]} for row in rows)]


def action_of(action_id: str) -> str:
    """Return the Button.action of a button's action id."""
    return action_id.removeprefix(PREFIX)


def _element(button: Button) -> Block:
    element: Block = {
        "type": "button",
        "action_id": f"{PREFIX}{button.action}",
        "value": button.target,
        "text": {"type": "plain_text", "text": _cut_label(button.label), "emoji": False},
    }
    return {**element, "style": button.style} if button.style else element


def _cut_label(label: str) -> str:
    one_line = " ".join(label.split()) or "…"
    return one_line if len(one_line) <= _LABEL_MAX else f"{one_line[: _LABEL_MAX - 1]}…"
