"""What may be wrong with a configuration, and the one error that carries all of it."""

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from core.errors import CoreError

KeyPath = tuple[str | int, ...]
_PLAIN_KEY = r"[A-Za-z0-9_-]+"  # compiled when something is wrong, not at every start
_TOKEN = r"(?i)\bx(?:ox[a-z]|app)-\S+"
_LONGEST = 80


class Problem(NamedTuple):
    """One thing that is wrong. `line` counts from 1; None where no line can be named (the file itself)."""

    file: str
    line: int | None
    key: str  #: `standingSessions.sessions[2].cwd`; "" for the whole file
    found: str
    allowed: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}found {self.found}; allowed: {self.allowed}; {self.remedy}"


class ConfigError(CoreError, ValueError):
    """The configuration cannot be used. `problems` holds everything that is wrong with it, in the file's order."""

    code: ClassVar[str] = "config_invalid"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("the configuration is not valid:\n" + "\n".join(f"  {problem}" for problem in problems))


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in the order of the file, those of the whole file first."""
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def key_text(path: KeyPath) -> str:
    """Return a key path as people write it: `a.b[2].c`, with unusual keys in quotes (`harnesses["x y"]`)."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(_PLAIN_KEY, part) and shortened(part) == part:
            text += f".{part}" if text else part
        else:
            text += f'["{shortened(part)}"]'
    return text


def shortened(text: str) -> str:
    """Return text that may be shown: one line, not long, and never a Slack token."""
    shown = re.sub(_TOKEN, "(a token, not shown)", text)
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def described(value: object) -> str:
    """Return what a value is, for the `found` of a problem: `5 (a number)`, `"x" (text)`, `a list of 3`."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"{str(value).lower()} (a boolean; quote it if text is meant)"
        case int() | float():
            return f"{shortened(str(value))} (a number)"
        case str():
            return f'"{shortened(value)}" (text)'
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}"
        case _:
            return f"a {type(value).__name__}"
