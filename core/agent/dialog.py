"""A dialog: Enter picks the first option, a digit picks its own, pasted text is ignored; a hook may be faster."""

from collections.abc import Mapping, Sequence

from core.agent.hooks import Running
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


class Menu:
    """A dialog that no hook announces: arrow keys move its cursor, Enter takes the choice it is at."""

    def __init__(self, question: str, options: Sequence[str], *, told: bool = True) -> None:
        """`told`: the status file says that somebody is waited for."""
        self._question = question
        self._options = tuple(options) or ("yes", "no")
        self._at = 0
        self.told = told

    @property
    def first(self) -> str:
        """Return the choice that the cursor is at in the beginning."""
        return self._options[0]

    def text(self) -> str:
        """Return what is shown in the place of the input line."""
        marks = ("❯" if place == self._at else " " for place in range(len(self._options)))
        lines = [f"  {mark} {option}" for mark, option in zip(marks, self._options, strict=True)]
        question = self._question.replace("\n", "\n  ")  # no line of it is taken for the frame
        return "\n".join(["─" * 40, f"  {question}", "", *lines, "", "  Enter to choose · Esc to cancel"])

    def pressed(self, press: Press) -> str | None:
        """Return what a key chooses, None for one that chooses nothing."""
        if press.key is Key.ENTER:
            return self._options[self._at]
        if press.key in (Key.UP, Key.DOWN):
            step = 1 if press.key is Key.DOWN else -1
            self._at = (self._at + step) % len(self._options)
        return None


def menu_of(text: str, *, told: bool = True) -> Menu:
    """Return the menu that `QUESTION | A | B` describes."""
    question, *options = [part.strip() for part in text.split("|") if part.strip()] or [""]
    return Menu(question or "Which one?", options, told=told)


class OpenDialog:
    """A dialog that is shown, about a tool, and the hooks that may answer it before somebody at the terminal does."""

    def __init__(self, dialog: Dialog, tool: str, deciding: Sequence[Running]) -> None:
        self._dialog = dialog
        self._tool = tool
        self.deciding = list(deciding)

    def picked(self, press: Press) -> str | None:
        """Return what the key picks; None where it picks nothing."""
        return self._dialog.picked(press)

    def decided(self, ended: Sequence[Running]) -> str | None:
        """Return what the first of these hooks that has decided picks; the others, and what they say, are left."""
        for hook in ended:
            self.deciding.remove(hook)
            picked = self._picked_by(hook.decision())
            if picked is not None:
                return picked
        return None

    def close(self) -> None:
        """End the hooks that have not decided."""
        for hook in self.deciding:
            hook.end()

    def _picked_by(self, decision: Mapping[str, object]) -> str | None:
        if decision.get("behavior") not in ("allow", "deny"):
            return None
        if decision["behavior"] == "deny" or self._tool == "Bash":
            return "Yes" if decision["behavior"] == "allow" else "No"
        given = decision.get("updatedInput")
        answers = given.get("answers") if isinstance(given, dict) else None
        return ", ".join(map(str, answers.values())) if isinstance(answers, dict) else None
