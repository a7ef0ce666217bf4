"""How a tmux command line is spelled: as arguments of a process, and as a line that tmux's own parser reads. Pure."""

import re
from collections.abc import Sequence

Command = Sequence[str]  #: one tmux command, a word each
Line = Sequence[Command]  #: commands that run back to back, the rest skipped after the first that fails

DATA = "-"  #: the word of `load-buffer` in whose place a transport puts where the data is

_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\$~]')
_PLAIN = re.compile(r"[A-Za-z0-9_@/.-]+|%[0-9]+")  #: words that the parser takes as they are


def quote(word: str) -> str:
    """Return the word as tmux's parser reads it: in double quotes, unless it is plain.

    Control characters and what the parser would expand are written as three octal digits, so a word never holds a
    line break and never ends one.
    """
    return word if _PLAIN.fullmatch(word) else f'"{_SPECIAL.sub(_octal, word)}"'


def _octal(found: re.Match[str]) -> str:
    return f"\\{ord(found[0]):03o}"


def spell(line: Line) -> str:
    """Return the line for tmux's parser: the input of a control client, or the inner commands of `if-shell`."""
    return " ; ".join(" ".join(quote(word) for word in command) for command in line)


def arguments(line: Line) -> list[str]:
    """Return the line as arguments of the tmux program.

    tmux takes a `;` at the end of any argument for the end of a command, unless it is written `\\;`.
    """
    words: list[str] = []
    for command in line:
        if words:
            words.append(";")
        words += [f"{word[:-1]}\\;" if word.endswith(";") else word for word in command]
    return words


def literal_format(text: str) -> str:
    """Return the text so that expanding it as a tmux format gives it back (`#` stands for itself)."""
    return text.replace("#", "##")
