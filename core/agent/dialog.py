"""A dialog: Enter picks the first option, a digit picks its own, pasted text is ignored. Pure."""

from collections.abc import Sequence

from core.agent.keyboard import Key, Press


class Dialog:
    """A question with at most nine options."""

    def __init__(self, question: str, options: Sequence[str]) -> None:
        self._question = question
        self._options = tuple(options[:9])

    def text(self) -> str:
        """Return what is shown."""
        lines = [f"  {number}. {option}" for number, option in enumerate(self._options, 1)]
        return "\n".join([f"? {self._question}", *lines, "  Enter: the first · Escape: none, and the turn ends"])

    def picked(self, press: Press) -> str | None:
        """Return the option that a key picks, or None."""
        if press.key is Key.ENTER:
            return self._options[0]
        if press.key is not Key.TEXT or not press.text.isdecimal() or not press.text.isascii():
            return None
        number = int(press.text)
        return self._options[number - 1] if 1 <= number <= len(self._options) else None
