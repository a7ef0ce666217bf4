"""What a message says: its author's own words, and what it quotes of others. Total over any document, and pure.

A forwarded message, and what a link to a message unfolds to, are in `attachments`, with their own text, blocks, files
and attachments. A page's preview is there too; it is left out, because the link in the text names it. What
has neither an origin nor an address is the author's own: Slack puts a pasted table there. Text in blocks
(people's rich text, and what apps post) is read too. A block of an unknown kind is named, so nothing disappears without
a trace (https://docs.slack.dev/reference/block-kit/blocks). The strings of rich_text are not escaped.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from bot.documents import (
    NOBODY,
    TIME_STAMP,
    Document,
    Names,
    address,
    labelled,
    mapping_of,
    mappings_of,
    named_in,
    number_of,
    text_of,
    to_plain,
)
from core.base.text import in_lines

_DEEPEST_BLOCK = 8  #: levels of a list
_APART = ("rich_text_preformatted", "rich_text_list", "rich_text_quote")
_SECTIONS = ("rich_text_section", "rich_text_quote")
_BACKTICKS = re.compile("`+")
_TITLED = ("image", "video")
_NAMELESS = "image without a name"
#: Elements of rich text whose words are elsewhere, and that the wire form leaves out or names by an id alone.
ELSEWHERE = {"canvas": "canvas", "list_record": "list item", "message_mention": "message"}
_ON_THE_WIRE = frozenset(
    {"text", "link", "user", "channel", "usergroup", "broadcast", "emoji", "date", "color", "team"}
)


def text_of_blocks(blocks: tuple[Document, ...], names: Names = NOBODY) -> str:
    """Return what the blocks say, line for line."""
    return _joined(_block(block, names) for block in blocks)


def say_more(blocks: tuple[Document, ...]) -> bool:
    """Return whether the blocks say what the wire form of the same message does not.

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
    if depth > _DEEPEST_BLOCK:
        return
    children, rows = mappings_of(document, "elements"), document.get("rows")
    if isinstance(rows, list):
        cells = [cell for row in rows if isinstance(row, list) for cell in row]
        children += mappings_of({"cells": cells}, "cells")
    for child in children:
        yield child
        yield from _elements(child, depth + 1)


# ---------------------------------------------------------------- blocks


def _block(block: Document, names: Names) -> str:
    kind = text_of(block, "type")
    if kind == "rich_text":
        return _joined(_section(section, names) for section in mappings_of(block, "elements"))
    if kind in ("section", "header"):
        said = (mapping_of(block, "text"), *mappings_of(block, "fields"))
        return _joined((*(_text_object(one, names) for one in said), _control(mapping_of(block, "accessory"), names)))
    if kind == "context":
        return _joined(_text_object(element, names) for element in mappings_of(block, "elements"))
    if kind in ("actions", "context_actions"):
        return _joined(_control(element, names) for element in mappings_of(block, "elements"))
    if kind == "markdown":
        return text_of(block, "text")
    if kind == "table":
        return _table(block, names)
    title = _linked(_text_object(mapping_of(block, "title"), names), text_of(block, "title_url"))
    if kind in _TITLED:
        return _joined((title, _text_object(mapping_of(block, "description"), names), _control(block, names)))
    if kind == "input":
        title = _text_object(mapping_of(block, "label"), names)
    return "" if kind in ("divider", "input") and not title else title or _unknown(kind)


def _control(element: Document, names: Names) -> str:
    """Return what can be pressed, chosen or looked at: what, its words, its link; its choices' links."""
    kind = text_of(element, "type")
    if not kind:
        return ""
    words = _text_object(mapping_of(element, "text") or mapping_of(element, "placeholder"), names)
    link = text_of(element, "url") or text_of(element, f"{kind}_url")
    told = ", ".join(filter(None, (words or text_of(element, "alt_text"), link)))
    options = mappings_of(element, "options")
    linked = ({**option, "type": "option"} for option in options if text_of(option, "url"))
    what = kind.replace("_", " ") if told or kind != "image" else _NAMELESS
    return _joined((f"({what}: {told})" if told else f"({_a(what)})", *(_control(option, names) for option in linked)))


def _linked(title: str, link: str) -> str:
    return f"{title} ({link})" if title and link else title or link


def _text_object(text: Document, names: Names) -> str:
    kind = text_of(text, "type")
    if kind == "image":
        told = text_of(text, "alt_text") or text_of(text, "image_url")
        return f"(image: {told})" if told else f"({_a(_NAMELESS)})"
    return to_plain(text_of(text, "text"), names) if kind == "mrkdwn" else text_of(text, "text")


def _table(block: Document, names: Names) -> str:
    rows = block.get("rows")
    lines = []
    for row in rows if isinstance(rows, list) else []:
        shown = (_cell(cell, names).replace("|", "\\|") for cell in mappings_of({"cells": row}, "cells"))
        lines.append(
            f"| {' | '.join(' '.join(map(str.strip, in_lines(cell).strip().split(chr(10)))) for cell in shown)} |"
        )
    return "\n".join(lines)


def _cell(cell: Document, names: Names) -> str:
    """Return what a cell of a table says; one of a kind that is not known has a value, or is named."""
    said = _block(cell, names) if cell.get("elements") else ""
    said = said or text_of(cell, "text")
    if said or text_of(cell, "type") in ("raw_text", "rich_text"):
        return said
    value = cell.get("value")
    return str(value) if isinstance(value, str | int | float) else _unknown(text_of(cell, "type"))


def _unknown(kind: str) -> str:
    return f"({_a(kind.replace('_', ' '))}, which cannot be shown as text)" if kind else ""


def _a(what: str) -> str:
    return f"an {what}" if what[:1] in "aeiou" else f"a {what}"


# ---------------------------------------------------------------- rich text


def _section(section: Document, names: Names) -> str:
    kind = text_of(section, "type")
    if kind == "rich_text_preformatted":
        code = straightened(_inner(section, names, code=True))
        fence = _fence(code, 3)
        shown = f"{fence}\n{code}\n{fence}\n"
    elif kind == "rich_text_list":
        shown = _list(section, names)
    else:
        shown = _inner(section, names) or ("" if kind in _SECTIONS else _unknown(kind))
    if kind == "rich_text_quote" or number_of(section, "border"):
        return "".join(f"> {line}\n" for line in in_lines(shown).removesuffix("\n").split("\n"))
    return shown


def _list(section: Document, names: Names) -> str:
    indent, offset = number_of(section, "indent"), number_of(section, "offset")
    ordered = text_of(section, "style") == "ordered"
    lines = []
    for position, entry in enumerate(mappings_of(section, "elements"), start=1 + offset):
        mark = f"{position}." if ordered else "-"
        lines.append(f"{'   ' * min(indent, _DEEPEST_BLOCK)}{mark} {_inner(entry, names)}\n")
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
    ticks, pad = _fence(code, 1), " " if "`" in code else ""
    return f"{ticks}{pad}{straightened(code)}{pad}{ticks}"


def _fence(code: str, least: int) -> str:
    """Return so many backticks as do not stand in the code."""
    return "`" * max(least, *(len(run) + 1 for run in _BACKTICKS.findall(code)), 1)


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
    what, link = f"{ELSEWHERE[kind]}{where}", text_of(element, "url") or text_of(element, "file_id")
    return f"({what}: {link})" if link else f"({_a(what)}, to which Slack gives no link)"


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


def _joined(parts: Iterable[str]) -> str:
    """Return the parts that say something, each on a line of its own; code and lists end with theirs already."""
    whole = ""
    for part in parts:
        whole += f"\n{part}" if whole and not whole.endswith("\n") and part else part
    return whole.removesuffix("\n")


# ---------------------------------------------------------------- code typography

_BLOCK_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_DASH = re.compile("(?<![^\\s=])\u2014(?=[A-Za-z])")


def straightened(code: str) -> str:
    """Return code without what a phone's keyboard made of it.

    Curly quotes become straight, `\u2014flag` becomes `--flag`, blanks that do not break become blanks; but only where
    the rest is ASCII and holds no straight quote: whoever writes another script, or both kinds of quote, means them.
    Outside code nothing is touched.
    """
    bare = _DASH.sub("--", code).replace("\u00a0", " ")
    for curly in _BLOCK_QUOTES:
        bare = bare.replace(curly, "")
    if not bare.isascii() or any(quote in code for quote in ('"', "'")):
        return code
    straight = _DASH.sub("--", code).replace("\u00a0", " ")
    for curly, quote in _BLOCK_QUOTES.items():
        straight = straight.replace(curly, quote)
    return straight


_NAMES = re.compile(r"<(@[UW][A-Z0-9]+|!subteam\^[A-Z0-9]+|!(?:here|channel|everyone))(?:\|[^<>\n]*)?>")
_ADDRESSED = re.compile(rf"(?:[\s,;:]*{_NAMES.pattern})+")
_DEEPEST = 3  #: quotes within quotes
_UNNAMED = re.compile(r"[^\w .'#&-]+")
_LONGEST_NAME = 80
_IDS = ("user_id", "channel_id", "usergroup_id", "author_id")
_QUOTES = ("is_share", "is_msg_unfurl", "is_reply_unfurl", "is_thread_root_unfurl")
_ORIGINS = ("author_id", "author_name", "author_subname", "channel_id", "ts", "footer")
_PREVIEWS = ("from_url", "original_url", "app_unfurl_url")
_NO_PREVIEW = "[no preview available]"  #: the fallback of what Slack shows by its blocks


def plain(message: Document, names: Names = NOBODY) -> str:
    """Return a message's own text: out of its blocks where they say more than the wire form, else that form.

    The wire form is what people see. Behind it stands what Slack keeps of the author's own in attachments. What is
    malformed is left out, never raised.
    """
    written = _written(message, names)
    own = [_words(attachment, names, 1) or _unknown("attachment") for attachment in _own(message)]
    return _joined((written, *own)) if own else written


def _own(message: Document) -> tuple[Document, ...]:
    """Return the attachments of a message that are its author's own: of no other message, and of no page."""
    others = (*_QUOTES, *_ORIGINS, *_PREVIEWS, "message_blocks")
    attachments = mappings_of(message, "attachments")
    return tuple(found for found in attachments if _says(found) and not any(found.get(key) for key in others))


def _written(message: Document, names: Names) -> str:
    blocks, wire = mappings_of(message, "blocks"), _marked(to_plain(text_of(message, "text"), names))
    if blocks and (not wire.strip() or say_more(blocks)):
        shown = text_of_blocks(blocks, names)
        if shown.strip():
            return shown
    return wire


def _marked(wire: str) -> str:
    """Return the wire form with the mark of its quote before each line, however the lines within a quote end."""
    lines = wire.replace("\r\n", "\n").split("\n")
    return "\n".join(in_lines(line).replace("\n", "\n> ") if line.startswith(">") else line for line in lines)


def quoted(message: Document, names: Names = NOBODY) -> str:
    """Return what a message quotes of others, "" without any: for each its origin, and its words behind `> `."""
    return "\n".join(_quote(quote, names, 1) for quote in quotes_in(message))


def quotes_in(message: Document) -> tuple[Document, ...]:
    """Return the attachments of a message that are others' messages; in one that says nothing itself all of them."""
    attachments = mappings_of(message, "attachments")
    if not attachments:
        return ()
    own = _own(message)
    mute = not (text_of(message, "text").strip() or message.get("blocks") or own)
    return tuple(found for found in attachments if found not in own and (_is_quote(found) or mute))


def all_quotes(message: Document) -> Iterator[Document]:
    """Yield the quotes of a message and those within them, as deep as they are shown."""
    yield from _within(quotes_in(message), 1)


def blocks_of_quote(quote: Document) -> tuple[Document, ...]:
    """Return a quoted message's blocks, wherever Slack has put them."""
    there = mappings_of(quote, "message_blocks")
    inner = tuple(block for entry in there for block in mappings_of(mapping_of(entry, "message"), "blocks"))
    return inner or mappings_of(quote, "blocks")


def mentions_elsewhere(message: Document) -> Iterator[Document]:
    """Yield the elements of a message whose words are elsewhere: canvases, list items, mentions of messages.

    A mentioned message that is quoted as well is left out.
    """
    quotes = list(all_quotes(message))
    known = {(text_of(quote, "channel_id"), text_of(quote, "ts")) for quote in quotes}
    for blocks in (mappings_of(message, "blocks"), *map(blocks_of_quote, (*_own(message), *quotes))):
        for element in elements_of(blocks):
            place = (text_of(element, "channel_id"), text_of(element, "message_ts"))
            if text_of(element, "type") in ELSEWHERE and place not in known:
                yield element


def to_others(message: Document, bot: str) -> bool:
    """Return whether a message begins with mentions of people, groups or everybody, the bot not among them.

    `bot` is a member id. A user group is `<!subteam^S1>` on the wire, everybody `<!here>`, `<!channel>`, `<!everyone>`.
    """
    begin = _ADDRESSED.match(text_of(message, "text"))
    called = _NAMES.findall(begin[0]) if begin else []
    return bool(called) and f"@{bot}" not in called


def mentioned(message: Document) -> frozenset[str]:
    """Return the ids of members, channels and groups that a message or its quotes name, to be looked up."""
    found: set[str] = set()
    quotes = tuple(all_quotes(message))
    for part in (message, *_own(message), *quotes):
        blocks = (*mappings_of(part, "blocks"), *blocks_of_quote(part))
        fields = mappings_of(part, "fields") if part is not message else ()
        said = [text_of(part, key) for key in ("text", "pretext", "title", "fallback")]
        said += [text_of(field, key) for field in fields for key in ("title", "value")]
        found = found.union(*map(named_in, said))
        found |= {text for block in blocks for text in _named_in_block(block)}
        for element in elements_of(blocks):
            found.update(text_of(element, key) for key in _IDS if key in element)
    for quote in quotes:
        found |= {text_of(quote, key) for key in _IDS}
    return frozenset(found - {""})


def _named_in_block(block: Document) -> Iterator[str]:
    for text in (mapping_of(block, "text"), *mappings_of(block, "fields"), *mappings_of(block, "elements")):
        yield from named_in(text_of(text, "text"))


# ---------------------------------------------------------------- quotes


def _is_quote(attachment: Document) -> bool:
    if _is_message(attachment) or mappings_of(attachment, "message_blocks"):
        return True
    return _says(attachment) and not any(text_of(attachment, key) for key in _PREVIEWS)


def _says(attachment: Document) -> bool:
    keys = ("text", "pretext", "title", "fallback", "image_url")
    return any(text_of(attachment, key) for key in keys) or bool(attachment.get("blocks") or attachment.get("fields"))


def _within(quotes: tuple[Document, ...], depth: int) -> Iterator[Document]:
    for quote in quotes:
        yield quote
        if depth < _DEEPEST:
            yield from _within(mappings_of(quote, "attachments"), depth + 1)


def _quote(quote: Document, names: Names, depth: int) -> str:
    lines = in_lines(_words(quote, names, depth)) or "(it holds nothing that can be read as text)"
    return f"{_origin(quote, names)}\n" + "\n".join(f"> {line}" for line in lines.split("\n"))


def _origin(quote: Document, names: Names) -> str:
    """Return the line that says whose words follow: anybody's name and any link stay within it."""
    how = "forwarded" if quote.get("is_share") is True else "quoted"
    author = text_of(quote, "author_id")
    who = _tame(text_of(quote, "author_name") or text_of(quote, "author_subname")) or names.get(author, author)
    channel, footer = text_of(quote, "channel_id"), _tame(text_of(quote, "footer"))
    where = f" in #{names[channel]}" if channel in names else f", {footer}" if footer else ""
    where = where or (f" in #{_tame(channel)}" if channel else "")
    link = "".join(text_of(quote, "from_url").split()).replace(")", "%29")
    rest = "".join(f", {part}" for part in (_moment(quote), link) if part)
    return f"({how}: a message of {_tame(who) or 'somebody'}{where}{rest})"


def _words(quote: Document, names: Names, depth: int) -> str:
    """Return all that a quoted message says: its text or blocks, then what it had attached itself."""
    own = plain({"text": text_of(quote, "text"), "blocks": list(blocks_of_quote(quote))}, names)
    parts = [to_plain(text_of(quote, "pretext"), names), _titled(quote, names), own]
    for field in mappings_of(quote, "fields"):
        parts.append(": ".join(filter(None, (to_plain(text_of(field, key), names) for key in ("title", "value")))))
    parts += [f"(image: {text_of(quote, 'image_url')})"] if text_of(quote, "image_url") else []
    named = (_tame(_file_name(file)) for file in mappings_of(quote, "files"))
    parts += [f"(file: {name})" if name else "(a file without a name)" for name in named]
    inner = mappings_of(quote, "attachments")
    if inner and depth >= _DEEPEST:
        parts.append("(further quotes within it are left out)")
    else:
        parts += [_quote(one, names, depth + 1) if _is_message(one) else _words(one, names, depth + 1) for one in inner]
    said = "\n".join(filter(str.strip, parts))
    fallback = to_plain(text_of(quote, "fallback"), names).strip()
    return said or ("" if fallback == _NO_PREVIEW else fallback)


def _is_message(attachment: Document) -> bool:
    return any(attachment.get(key) is True for key in _QUOTES)


def _titled(quote: Document, names: Names) -> str:
    return _linked(to_plain(text_of(quote, "title"), names), text_of(quote, "title_link"))


def _file_name(file: Document) -> str:
    return text_of(file, "name") or text_of(file, "title") or text_of(file, "id")


def _moment(quote: Document) -> str:
    ts = text_of(quote, "ts")
    if not TIME_STAMP.fullmatch(ts) or len(ts) > len("1700000000.000000"):
        return ""
    return datetime.fromtimestamp(int(ts.partition(".")[0]), UTC).strftime("%Y-%m-%d %H:%M UTC")


def _tame(name: str) -> str:
    """Return a name as one piece of a line, without anything that could pass for the end of it."""
    return " ".join(_UNNAMED.sub(" ", name).split())[:_LONGEST_NAME].strip()
