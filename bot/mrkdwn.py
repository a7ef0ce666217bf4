"""Plain text into Slack's wire form, in which only `&`, `<` and `>` are escaped.

The other way is in `entities` (https://docs.slack.dev/messaging/formatting-message-text).
"""

_CUT_NOTE = "\n[… {left} more characters are left out here; the whole text is in the session's pane]"
_NOTE_ROOM = 120


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
