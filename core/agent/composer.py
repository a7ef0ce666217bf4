"""The line in which a message is written, with the stash behind it. Pure."""

import unicodedata

from core.agent.keyboard import Key, Press

_COLLAPSE = 800  #: characters of a paste that are still shown


class Composer:
    """Text typed and pasted so far; `stash` puts it aside until the next message has been sent."""

    def __init__(self) -> None:
        self.text = ""
        self._stashed: str | None = None

    def edit(self, press: Press) -> None:
        """Do what the key does to the text; one that does nothing to it is let pass."""
        if press.key in (Key.TEXT, Key.PASTE):
            self.add(press.text)
        elif press.key is Key.NEWLINE:
            self.add("\n")
        elif press.key is Key.BACKSPACE:
            self.backspace()
        elif press.key is Key.KILL_LINE:
            self.kill_line()
        elif press.key is Key.STASH:
            self.stash()

    def add(self, text: str) -> None:
        """Append what was typed or pasted; line ends of any kind are one."""
        self.text += text.replace("\r\n", "\n").replace("\r", "\n")

    def backspace(self) -> None:
        """Remove the last character."""
        self.text = self.text[:-1]

    def kill_line(self) -> None:
        """Remove the current line, or, where it is empty, the line break before it."""
        head, broken, line = self.text.rpartition("\n")
        self.text = head + broken if line else head

    def stash(self) -> None:
        """Put the text aside; on an empty line bring back what was put aside."""
        if self.text:
            self._stashed, self.text = self.text, ""
        elif self._stashed is not None:
            self.text, self._stashed = self._stashed, None

    def take(self) -> str:
        """Return the message, emptying the line; what was put aside comes back."""
        message = self.text
        self.text, self._stashed = self._stashed or "", None
        return message

    def shown(self, width: int) -> str:
        """Return the text as one row of at most `width` columns, its end kept."""
        lines = self.text.count("\n") + 1
        if len(self.text) > _COLLAPSE or lines > 3:
            text = f"[Pasted text: {lines} lines, {len(self.text)} characters]"
        else:
            text = self.text.replace("\n", "⏎").replace("\t", " ")
        kept, room = "", width
        for character in reversed(text):
            room -= columns(character)
            if room < 0:
                break
            kept = character + kept
        return kept


def columns(character: str) -> int:
    """Return how many columns a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
