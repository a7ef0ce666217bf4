"""Read Slack's documents with care: a field has the expected type, or it is nothing; and unescape Slack's texts.

In Slack's texts only `&`, `<` and `>` are escaped, and mentions and links are tokens in `<...>`
(https://docs.slack.dev/messaging/formatting-message-text).
"""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

Document = Mapping[str, Any]
TIME_STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{6}")  #: what names a message


def is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a document itself."""
    return type(value) is dict or isinstance(value, Mapping)  # the first is what JSON has, and ten times as fast


def mapping_of(document: Document, key: str) -> Document:
    """Return the document under the key, an empty one where there is none."""
    value = document.get(key)
    return value if is_mapping(value) else {}


def mappings_of(document: Document, key: str) -> tuple[Document, ...]:
    """Return the documents of the list under the key; what else stands in it is left out."""
    value = document.get(key)
    return tuple([entry for entry in value if is_mapping(entry)]) if isinstance(value, list) else ()


def text_of(document: Document, key: str) -> str:
    """Return the text under the key, "" where there is none; half a surrogate pair, which nobody can keep, as `?`."""
    value = document.get(key)
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def number_of(document: Document, key: str) -> int:
    """Return the number under the key, 0 where there is none from 0 to 9,999."""
    value = document.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000 else 0


def flag_of(document: Document, key: str) -> bool | None:
    """Return the truth under the key, None where there is none."""
    value = document.get(key)
    return value if isinstance(value, bool) else None


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
    return frozenset(_NAMED.findall(wire)) if "<" in wire else frozenset()


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
