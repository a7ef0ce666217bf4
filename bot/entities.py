"""Text as its author meant it: out of Slack's wire form, or out of its rich text where code or lists matter.

On the wire only `&`, `<` and `>` are escaped, and mentions and links are tokens in `<...>`; the strings of rich_text
are not escaped (https://docs.slack.dev/messaging/formatting-message-text).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

Document = Mapping[str, Any]
Names = Mapping[str, str]  #: member id -> name

_TOKEN = re.compile(r"<([^<>\n]*)>")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>\n]*)?>")
_SCHEME = re.compile(r"^(?:https?://|mailto:|tel:)", re.IGNORECASE)
_NOBODY: Names = {}
_RICH = ("rich_text_preformatted", "rich_text_list")
_DEEPEST = 8  #: levels of a list

# ---------------------------------------------------------------- a whole message


def plain(message: Document, names: Names = _NOBODY) -> str:
    """Return a message's text. Total over any document: what is malformed is left out, never raised.

    The rich text is taken where it holds code or a list, since the wire form says neither where code begins nor which
    links in it Slack made by itself; else the wire form, which is what people see.
    """
    block = _rich_text(message)
    if block is not None and _needs_blocks(block):
        rendered = _rendered(block, names)
        if rendered.strip():
            return rendered
    return to_plain(_text(message, "text"), names)


def mentioned(message: Document) -> frozenset[str]:
    """Return the ids of the members that a message names, so that their names can be looked up."""
    return frozenset(_MENTION.findall(_text(message, "text")))


# ---------------------------------------------------------------- the wire form


def to_plain(wire: str, names: Names = _NOBODY) -> str:
    """Return wire text as it was typed: code and URLs unchanged, mentions as @name.

    Tokens first, the three escapes after them with `&amp;` last: the other order corrupts text.
    """
    return unescaped(_TOKEN.sub(lambda found: _token(found[1], names), wire))


def unescaped(text: str) -> str:
    """Undo the three escapes, the ampersand last."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _token(content: str, names: Names) -> str:
    target, bar, label = content.partition("|")
    mark, name = target[:1], target[1:]
    if mark == "@":
        return f"@{label.removeprefix('@') or names.get(name, name)}"
    if mark == "#":
        return f"#{label.removeprefix('#') or name}"
    if mark == "!":
        return _special(name, label)
    if not bar or not label:
        return _address(target) if _SCHEME.match(target) else f"&lt;{content}&gt;"
    return label if _same(target, label) else f"{label} ({_address(target)})"


def _address(target: str) -> str:
    return target[len("mailto:") :] if target.lower().startswith("mailto:") else target


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


# ---------------------------------------------------------------- rich text


def _rich_text(message: Document) -> Document | None:
    """Return the message's rich text, which people's messages have one of; None with any other block beside it."""
    blocks = message.get("blocks")
    if not isinstance(blocks, list) or len(blocks) != 1 or not _is_document(blocks[0]):
        return None
    return blocks[0] if _text(blocks[0], "type") == "rich_text" else None


def _needs_blocks(block: Document) -> bool:
    sections = list(_children(block))
    if any(_text(section, "type") in _RICH for section in sections):
        return True
    return any(_is_code(element) for section in sections for element in _children(section))


def _rendered(block: Document, names: Names) -> str:
    parts = ""
    for section in _children(block):
        text = _section(section, names)
        parts += f"\n{text}" if parts and not parts.endswith("\n") and text else text
    return parts.removesuffix("\n")


def _section(section: Document, names: Names) -> str:
    kind = _text(section, "type")
    if kind == "rich_text_preformatted":
        return f"```\n{straightened(_inner(section, names, code=True))}\n```\n"
    if kind == "rich_text_quote":
        return "".join(f"> {line}\n" for line in _inner(section, names).split("\n"))
    if kind == "rich_text_list":
        return _list(section, names)
    return _inner(section, names)


def _list(section: Document, names: Names) -> str:
    indent, offset = _number(section, "indent"), _number(section, "offset")
    ordered = _text(section, "style") == "ordered"
    lines = []
    for position, entry in enumerate(_children(section), start=1 + offset):
        mark = f"{position}." if ordered else "-"
        lines.append(f"{'   ' * min(indent, _DEEPEST)}{mark} {_inner(entry, names)}\n")
    return "".join(lines)


def _inner(section: Document, names: Names, *, code: bool = False) -> str:
    """Return a section's elements one after another; neighbours of inline code share one pair of backticks."""
    parts, span = "", ""
    for element in _children(section):
        if not code and _is_code(element):
            span += _element(element, names, code=True)
            continue
        parts, span = parts + _span(span), ""
        parts += _element(element, names, code=code)
    return parts + _span(span)


def _span(code: str) -> str:
    if not code:
        return ""
    ticks = "``" if "`" in code else "`"
    pad = " " if "`" in code else ""
    return f"{ticks}{pad}{straightened(code)}{pad}{ticks}"


def _element(element: Document, names: Names, *, code: bool) -> str:
    kind = _text(element, "type")
    if kind == "text":
        return _text(element, "text") if code else _styled(element, _text(element, "text"))
    if kind == "link":
        return _link(_text(element, "url"), _text(element, "text"), code=code)
    if kind == "user":
        return f"@{names.get(_text(element, 'user_id'), _text(element, 'user_id'))}"
    if kind == "channel":
        return f"#{_text(element, 'channel_id')}"
    if kind == "usergroup":
        return f"@{_text(element, 'usergroup_id')}"
    if kind == "broadcast":
        return f"@{_text(element, 'range')}"
    if kind == "emoji":
        tone = _number(element, "skin_tone")
        return f":{_text(element, 'name')}:" + (f":skin-tone-{tone}:" if tone else "")
    return _text(element, "fallback") or _text(element, "value") or _text(element, "text")


def _link(url: str, label: str, *, code: bool) -> str:
    """Return a link as it was typed. In code Slack makes links of `foo.py` by itself, and nobody labels any there."""
    if code:
        return label or url
    return label if label and _same(url, label) else f"{label} ({_address(url)})" if label else _address(url)


def _styled(element: Document, text: str) -> str:
    style = element.get("style")
    if not _is_document(style) or not text.strip():
        return text
    marks = "".join(mark for key, mark in (("bold", "*"), ("italic", "_"), ("strike", "~")) if style.get(key) is True)
    return f"{marks}{text}{marks[::-1]}"


def _is_code(element: Document) -> bool:
    style = element.get("style")
    return _is_document(style) and style.get("code") is True


# ---------------------------------------------------------------- code typography

_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_DASH = re.compile("(?<![^\\s=])\u2014(?=[A-Za-z])")


def straightened(code: str) -> str:
    """Return code without what a phone's keyboard made of it.

    Curly quotes become straight, `\u2014flag` becomes `--flag`, blanks that do not break become blanks; but only where
    the rest is ASCII and holds no straight quote: whoever writes another script, or both kinds of quote, means them.
    Outside code nothing is touched.
    """
    bare = _DASH.sub("--", code).replace("\u00a0", " ")
    for curly in _QUOTES:
        bare = bare.replace(curly, "")
    if not bare.isascii() or any(quote in code for quote in ('"', "'")):
        return code
    straight = _DASH.sub("--", code).replace("\u00a0", " ")
    for curly, quote in _QUOTES.items():
        straight = straight.replace(curly, quote)
    return straight


# ---------------------------------------------------------------- documents


def _children(document: Document) -> Iterator[Document]:
    elements = document.get("elements")
    for element in elements if isinstance(elements, list) else []:
        if _is_document(element):
            yield element


def _is_document(value: Any) -> TypeGuard[Document]:
    return isinstance(value, Mapping)


def _text(document: Document, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _number(document: Document, key: str) -> int:
    value = document.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000 else 0
