"""Slack's wire form of a text, and the text as its author meant it.

On the wire only `&`, `<` and `>` are escaped, and mentions and links are tokens in `<...>`
(https://docs.slack.dev/messaging/formatting-message-text).
"""

import re
from collections.abc import Mapping

Names = Mapping[str, str]  #: id of a member, channel or group -> name
NOBODY: Names = {}

_TOKEN = re.compile(r"<([^<>\n]*)>")
_NAMED = re.compile(r"<(?:[@#]|!subteam\^)([UWCGS][A-Z0-9]+)(?:\|[^<>\n]*)?>")
_SCHEME = re.compile(r"^(?:https?://|mailto:|tel:)", re.IGNORECASE)


def to_plain(wire: str, names: Names = NOBODY) -> str:
    """Return wire text as it was typed: code and URLs unchanged, mentions as @name and #name.

    Tokens first, the three escapes after them with `&amp;` last: the other order corrupts text.
    """
    return unescaped(_TOKEN.sub(lambda found: _token(found[1], names), wire))


def named_in(wire: str) -> frozenset[str]:
    """Return the ids of the members, channels and groups that a wire text mentions."""
    return frozenset(_NAMED.findall(wire))


def unescaped(text: str) -> str:
    """Undo the three escapes, the ampersand last."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def labelled(label: str, target: str) -> str:
    """Return a link as it was typed: Slack makes links of bare domains and addresses by itself."""
    return label if _same(target, label) else f"{label} ({address(target)})"


def address(target: str) -> str:
    """Return a link's target as people write it."""
    return target[len("mailto:") :] if target.lower().startswith("mailto:") else target


def _token(content: str, names: Names) -> str:
    target, bar, label = content.partition("|")
    mark, name = target[:1], target[1:]
    if mark == "@":
        return f"@{label.removeprefix('@') or names.get(name, name)}"
    if mark == "#":
        return f"#{label.removeprefix('#') or names.get(name, name)}"
    if mark == "!":
        return _special(name, label, names)
    if not bar or not label:
        return address(target) if _SCHEME.match(target) else f"&lt;{content}&gt;"
    return labelled(label, target)


def _special(name: str, label: str, names: Names) -> str:
    """Return `!here`, `!subteam^S1|@group`, `!date^…|fallback` and the like as text."""
    if name.startswith("date^"):
        return label or name
    if name.startswith("subteam^"):
        group = name.removeprefix("subteam^")
        return f"@{label.removeprefix('@') or names.get(group, group)}"
    return f"@{name}"


def _same(target: str, label: str) -> bool:
    return _SCHEME.sub("", target).rstrip("/") == _SCHEME.sub("", label).rstrip("/")
