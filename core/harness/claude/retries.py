"""What Claude Code shows while it tries a failed request again by itself, for some three minutes.

Seen of 2.1.197 (`✻ API error · Retrying in 4s · attempt 4/10`) and 2.1.332 (`✻ 500 fake error 500 · retrying in 4s ·
attempt 4/10`, `✻ API error · retrying… · attempt 2/10`). No hook and no line of the conversation's file tells of it.
"""

import re

from core.domain.harness import Retry

_SHOWN = re.compile(
    r"^[^\s●\u276f⎿] (?P<reason>.+?) · retrying(?:…| in \d+s) · attempt (?P<attempt>\d+)/(?P<most>\d+)\s*$",
    re.IGNORECASE,
)
_FRAME = re.compile(r"─{8,}")
_LINES = 12  #: above the input line: a hint stands between, and what is longer than a line
_NO_REASON = "api error"


def retry_of(screen: str) -> Retry | None:
    """Return what the lines right above the input line tell of a retry; None where they tell of none."""
    lines = [line for line in screen.splitlines() if line.strip()]
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    upper = frames[-2] if len(frames) > 1 else len(lines)
    for line in reversed(lines[max(0, upper - _LINES) : upper]):
        found = _SHOWN.match(line)
        if found:
            reason = "" if found["reason"].casefold() == _NO_REASON else found["reason"]
            return Retry(reason, int(found["attempt"]), int(found["most"]))
    return None
