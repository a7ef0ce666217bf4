"""What a message says: its author's own words, and what it quotes of others. Total over any document, and pure.

A forwarded message, and what a link to a message unfolds to, stand in `attachments`, with their own text, blocks, files
and attachments. A page's preview stands there as well; it is left out, since the link in the text says what it is.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from bot.blocks import ELSEWHERE, elements_of, say_more, text_of_blocks
from bot.documents import TIME_STAMP, Document, mapping_of, mappings_of, text_of
from bot.entities import NOBODY, Names, named_in, to_plain
from core.domain.plaintext import in_lines

_DEEPEST = 3  #: quotes within quotes
_UNNAMED = re.compile(r"[^\w .'#&-]+")
_LONGEST_NAME = 80
_IDS = ("user_id", "channel_id", "usergroup_id", "author_id")
_QUOTES = ("is_share", "is_msg_unfurl", "is_reply_unfurl", "is_thread_root_unfurl")
_PREVIEWS = ("from_url", "original_url", "app_unfurl_url", "title_link")


def plain(message: Document, names: Names = NOBODY) -> str:
    """Return a message's own text: out of its blocks where they say more than the wire form, else that form.

    The wire form is what people see. What is malformed is left out, never raised.
    """
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
    mute = not (text_of(message, "text").strip() or message.get("blocks"))
    return tuple(found for found in attachments if _is_quote(found) or mute)


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
    for blocks in (mappings_of(message, "blocks"), *map(blocks_of_quote, quotes)):
        for element in elements_of(blocks):
            place = (text_of(element, "channel_id"), text_of(element, "message_ts"))
            if text_of(element, "type") in ELSEWHERE and place not in known:
                yield element


def mentioned(message: Document) -> frozenset[str]:
    """Return the ids of members, channels and groups that a message or its quotes name, to be looked up."""
    found: set[str] = set()
    for part in (message, *all_quotes(message)):
        blocks = (*mappings_of(part, "blocks"), *blocks_of_quote(part))
        found |= named_in(text_of(part, "text"))
        found |= {text for block in blocks for text in _named_in_block(block)}
        for element in elements_of(blocks):
            found |= {text_of(element, key) for key in _IDS}
    for quote in all_quotes(message):
        found |= {text_of(quote, key) for key in _IDS}
    return frozenset(found - {""})


def _named_in_block(block: Document) -> Iterator[str]:
    for text in (mapping_of(block, "text"), *mappings_of(block, "fields"), *mappings_of(block, "elements")):
        yield from named_in(text_of(text, "text"))


# ---------------------------------------------------------------- quotes


def _is_quote(attachment: Document) -> bool:
    if _is_message(attachment) or mappings_of(attachment, "message_blocks"):
        return True
    says = any(text_of(attachment, key) for key in ("text", "pretext", "title", "fallback"))
    return says and not any(text_of(attachment, key) for key in _PREVIEWS)


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
    parts += [f"(file: {_tame(_file_name(file)) or 'without a name'})" for file in mappings_of(quote, "files")]
    inner = mappings_of(quote, "attachments")
    if inner and depth >= _DEEPEST:
        parts.append("(further quotes within it are left out)")
    else:
        parts += [_quote(one, names, depth + 1) if _is_message(one) else _words(one, names, depth + 1) for one in inner]
    said = "\n".join(filter(str.strip, parts))
    return said or to_plain(text_of(quote, "fallback"), names).strip()


def _is_message(attachment: Document) -> bool:
    return any(attachment.get(key) is True for key in _QUOTES)


def _titled(quote: Document, names: Names) -> str:
    title, link = to_plain(text_of(quote, "title"), names), text_of(quote, "title_link")
    return f"{title} ({link})" if title and link else title or link


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
