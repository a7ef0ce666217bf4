"""Code fences of Markdown, line by line: where one opens, what closes it (CommonMark 0.31, 4.5). Pure."""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"(?P<indent> {0,3})(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_MARKS = 40  #: backticks or tildes; a longer run is a line drawn by hand
_LANGUAGE = 40  #: characters; what is longer is no language's name


@dataclass(frozen=True)
class Fence:
    """An open fence: its line, the run of backticks or tildes, and the word behind it."""

    line: str
    mark: str
    language: str

    def closed_by(self, line: str) -> bool:
        """Tell whether the line ends it: at least as many of its marks, and nothing else."""
        bare = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        return indent <= 3 and len(bare) >= len(self.mark) and not bare.strip(self.mark[0])


def opening(line: str) -> Fence | None:
    """Return the fence that the line opens, or None."""
    found = _OPENING.match(line)
    if found is None or len(found["mark"]) > _MARKS or (found["mark"][0] == "`" and "`" in found["info"]):
        return None
    words = found["info"].split()
    return Fence(line, found["mark"], words[0][:_LANGUAGE] if words else "")
