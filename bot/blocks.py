"""Blocks as text: the rich text of people's messages, and what apps post. The strings of rich_text are not escaped.

What holds words is shown as text, and what is not known is named, so that nothing goes without a trace
(https://docs.slack.dev/reference/block-kit/blocks).
"""

import re
from collections.abc import Iterator

from bot.documents import Document, mapping_of, mappings_of, number_of, text_of
from bot.entities import NOBODY, Names, address, labelled, to_plain
from core.domain.plaintext import in_lines

_DEEPEST = 8  #: levels of a list
_APART = ("rich_text_preformatted", "rich_text_list", "rich_text_quote")
_WORDLESS = ("divider", "actions", "input", "context_actions")
#: Elements of rich text whose words are elsewhere, and that the wire form leaves out or names by an id alone.
ELSEWHERE = {"canvas": "canvas", "list_record": "list item", "message_mention": "message"}
_ON_THE_WIRE = frozenset(
    {"text", "link", "user", "channel", "usergroup", "broadcast", "emoji", "date", "color", "team"}
)


def text_of_blocks(blocks: tuple[Document, ...], names: Names = NOBODY) -> str:
    """Return what the blocks say, line for line."""
    return _joined(_block(block, names) for block in blocks)


def say_more(blocks: tuple[Document, ...]) -> bool:
    """Tell whether the blocks say what the wire form of the same message does not.

    That neither says where code and quotes begin nor which links in it Slack made by itself, and knows some elements
    and blocks by an id alone or not at all.
    """
    if any(text_of(block, "type") != "rich_text" for block in blocks):
        return True
    sections = [section for block in blocks for section in mappings_of(block, "elements")]
    if any(text_of(section, "type") in _APART for section in sections):
        return True
    elements = [element for section in sections for element in mappings_of(section, "elements")]
    return any(_is_code(element) or text_of(element, "type") not in _ON_THE_WIRE for element in elements)


def elements_of(blocks: tuple[Document, ...]) -> Iterator[Document]:
    """Yield the elements of all rich text, those in lists and tables among them."""
    for block in blocks:
        yield from _elements(block, 0)


def _elements(document: Document, depth: int) -> Iterator[Document]:
    if depth > _DEEPEST:
        return
    rows = document.get("rows")
    cells = [cell for row in rows if isinstance(row, list) for cell in row] if isinstance(rows, list) else []
    for child in (*mappings_of(document, "elements"), *mappings_of({"cells": cells}, "cells")):
        yield child
        yield from _elements(child, depth + 1)


# ---------------------------------------------------------------- blocks


def _block(block: Document, names: Names) -> str:
    kind = text_of(block, "type")
    if kind == "rich_text":
        return _joined(_section(section, names) for section in mappings_of(block, "elements"))
    if kind in ("section", "header"):
        return _joined(_text_object(one, names) for one in (mapping_of(block, "text"), *mappings_of(block, "fields")))
    if kind == "context":
        return _joined(_text_object(element, names) for element in mappings_of(block, "elements"))
    if kind == "markdown":
        return text_of(block, "text")
    if kind == "table":
        return _table(block, names)
    if kind == "image":
        return _text_object(block, names)
    title = _text_object(mapping_of(block, "title"), names)
    return "" if kind in _WORDLESS else title or _unknown(kind)


def _text_object(text: Document, names: Names) -> str:
    kind = text_of(text, "type")
    if kind == "image":
        return f"(image: {text_of(text, 'alt_text') or text_of(text, 'image_url') or 'without a name'})"
    return to_plain(text_of(text, "text"), names) if kind == "mrkdwn" else text_of(text, "text")


def _table(block: Document, names: Names) -> str:
    rows = block.get("rows")
    lines = []
    for row in rows if isinstance(rows, list) else []:
        cells = mappings_of({"cells": row}, "cells")
        shown = (_block(cell, names) or text_of(cell, "text") if cell.get("elements") else text_of(cell, "text")
                 for cell in cells)  # fmt: skip
        lines.append(f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in shown)} |")
    return "\n".join(lines)


def _unknown(kind: str) -> str:
    return f"(a {kind.replace('_', ' ')}, which cannot be shown as text)" if kind else ""


# ---------------------------------------------------------------- rich text


def _section(section: Document, names: Names) -> str:
    kind = text_of(section, "type")
    if kind == "rich_text_preformatted":
        shown = f"```\n{straightened(_inner(section, names, code=True))}\n```\n"
    elif kind == "rich_text_list":
        shown = _list(section, names)
    else:
        shown = _inner(section, names)
    if kind == "rich_text_quote" or number_of(section, "border"):
        return "".join(f"> {line}\n" for line in in_lines(shown).removesuffix("\n").split("\n"))
    return shown


def _list(section: Document, names: Names) -> str:
    indent, offset = number_of(section, "indent"), number_of(section, "offset")
    ordered = text_of(section, "style") == "ordered"
    lines = []
    for position, entry in enumerate(mappings_of(section, "elements"), start=1 + offset):
        mark = f"{position}." if ordered else "-"
        lines.append(f"{'   ' * min(indent, _DEEPEST)}{mark} {_inner(entry, names)}\n")
    return "".join(lines)


def _inner(section: Document, names: Names, *, code: bool = False) -> str:
    """Return a section's elements one after another; neighbours of inline code share one pair of backticks."""
    parts, span = "", ""
    for element in mappings_of(section, "elements"):
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
    kind = text_of(element, "type")
    if kind == "text":
        return text_of(element, "text") if code else _styled(element, text_of(element, "text"))
    if kind == "link":
        return _link(text_of(element, "url"), text_of(element, "text"), code=code)
    if kind in _MENTIONS:
        mark, key = _MENTIONS[kind]
        return mark + names.get(text_of(element, key), text_of(element, key))
    if kind == "emoji":
        tone = number_of(element, "skin_tone")
        return f":{text_of(element, 'name')}:" + (f":skin-tone-{tone}:" if tone else "")
    if kind in ELSEWHERE:
        return _reference(kind, element, names)
    return text_of(element, "fallback") or text_of(element, "value") or text_of(element, "text") or _unknown(kind)


_MENTIONS = {
    "user": ("@", "user_id"),
    "channel": ("#", "channel_id"),
    "usergroup": ("@", "usergroup_id"),
    "broadcast": ("@", "range"),
    "team": ("@", "team_id"),
}


def _reference(kind: str, element: Document, names: Names) -> str:
    channel = text_of(element, "channel_id")
    where = f" in #{names.get(channel, channel)}" if channel else ""
    return f"({ELSEWHERE[kind]}{where}: {text_of(element, 'url') or text_of(element, 'file_id') or 'without a link'})"


def _link(url: str, label: str, *, code: bool) -> str:
    """Return a link as it was typed. In code Slack makes links of `foo.py` by itself, and nobody labels any there."""
    if code:
        return label or url
    return labelled(label, url) if label else address(url)


def _styled(element: Document, text: str) -> str:
    style = mapping_of(element, "style")
    if not text.strip():
        return text
    marks = "".join(mark for key, mark in (("bold", "*"), ("italic", "_"), ("strike", "~")) if style.get(key) is True)
    return f"{marks}{text}{marks[::-1]}"


def _is_code(element: Document) -> bool:
    return mapping_of(element, "style").get("code") is True


def _joined(parts: Iterator[str]) -> str:
    """Return the parts that say something, each on a line of its own; code and lists end with theirs already."""
    whole = ""
    for part in parts:
        whole += f"\n{part}" if whole and not whole.endswith("\n") and part else part
    return whole.removesuffix("\n")


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
