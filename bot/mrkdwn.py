"""Text both ways: what a person typed out of Slack's wire form, and plain text into it.

In the wire form only `&`, `<` and `>` are escaped; mentions and links are tokens in `<...>`
(https://docs.slack.dev/messaging/formatting-message-text).
"""

import re

_TOKEN = re.compile(r"<([^<>\n]*)>")
_SCHEME = re.compile(r"^(?:https?://|mailto:|tel:)", re.IGNORECASE)
_CUT_NOTE = "\n[… {left} more characters are left out here; the whole text is in the session's pane]"
_NOTE_ROOM = 120


def to_plain(wire: str) -> str:
    """Return wire text as it was typed: code and URLs unchanged, mentions as @name.

    Tokens first, the three escapes after them with `&amp;` last: the other order corrupts text.
    """
    plain = _TOKEN.sub(lambda found: _token(found[1]), wire)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _token(content: str) -> str:
    target, bar, label = content.partition("|")
    mark, name = target[:1], target[1:]
    if mark in ("@", "#"):
        return f"{mark}{label.removeprefix(mark) or name}"
    if mark == "!":
        return _special(name, label)
    if not bar or not label:
        return target if _SCHEME.match(target) else f"&lt;{content}&gt;"
    return label if _same(target, label) else f"{label} ({target})"


def _special(name: str, label: str) -> str:
    """Return `!here`, `!subteam^S1|@group`, `!date^…|fallback` and the like as text."""
    if name.startswith("date^"):
        return label or name
    if name.startswith("subteam^"):
        return f"@{label.removeprefix('@') or name.removeprefix('subteam^')}"
    return f"@{name}"


def _same(target: str, label: str) -> bool:
    """Tell whether the label is what was typed: Slack makes links of bare domains and addresses by itself."""
    return _SCHEME.sub("", target).rstrip("/") == _SCHEME.sub("", label).rstrip("/")


def escape(plain: str) -> str:
    """Return plain text that pings nobody and links nothing."""
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fitted(plain: str, limit: int) -> str:
    """Return the text escaped and within `limit` characters; what had to go is counted in a visible note."""
    whole = escape(plain)
    if len(whole) <= limit:
        return whole
    room = limit - _NOTE_ROOM
    low, high = 0, len(plain)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(escape(plain[:middle])) <= room else (low, middle - 1)
    return escape(plain[:low]) + _CUT_NOTE.format(left=f"{len(plain) - low:,}")
