"""Turn an agent's Markdown into Slack's markup (mrkdwn), and split a long text into messages or a file. Pure.

Markdown is parsed by markdown-it-py: CommonMark with tables, strikethrough and bare addresses. The library is imported
at the first text, because most importers never read one. Any text is accepted.

Slack's markup has bold, italic, strike, code, fences, quotes and links, each within one line, and no headings, tables
or task lists; those are shown by what there is (tables as aligned columns). Everything that is not our markup is
escaped, also in code, so no text can mention a person or a channel
(https://docs.slack.dev/messaging/formatting-message-text). Code arrives unchanged, except that three backticks are
separated, because they would end Slack's fence.

A long text is cut where a reader would cut it. A fence across a cut is closed before it and opened again after it, with
its language. Plain text is escaped here; `documents` does the reverse.
"""

import dataclasses
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import groupby, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from core.base.text import MOMENT, unstyled
from core.base.values import replace
from core.model.posts import NewPost, OutboundKind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


_SCHEME = re.compile(r"(?<![A-Za-z0-9])https?$")
_REST = re.compile(r"://[^\s<>\[\]|\"'`]+")
_DEFINED = re.compile(r"\[(?!\^)(?:[^\[\]\\]|\\.)+\]:[ \t]*(?:<|https?:|mailto:|[/#.])")


#: blocks within one another, a list being two, and brackets; each takes three calls of Python's thousand
_DEEPEST = 60


class _Definitions(dict[str, Any]):
    """The addresses of a text by their labels, and which of them a link uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def get(self, label: str, default: Any = None) -> Any:
        self.used |= {label} & self.keys()
        return super().get(label, default)


def tokens_of(markdown: str) -> "list[Token]":
    """Return the tokens of a text. HTML is none of its markup: it stays the characters that it is.

    So does a definition that no link uses, and a second one of its label.
    """
    reader, known = _reader(), _Definitions()
    tokens = reader.parse(markdown, {"references": known})
    for token in tokens:
        if token.type == "definition":
            label = token.meta["id"]
            if label not in known.used or known[label]["map"] != token.map:
                token.type, token.children = "inline", []
                reader.inline.parse(token.content, reader, {}, token.children)
    return tokens


def load() -> None:
    """Import the library now: whoever is about to need it may have no file descriptor left then."""
    _reader()


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from markdown_it.parser_block import ParserBlock
    from markdown_it.rules_block import reference, table
    from markdown_it.rules_block.table import escapedSplit, getLine
    from markdown_it.rules_inline.emphasis import tokenize

    class Reader(MarkdownIt):
        """Leaves addresses as they were written."""

        def normalizeLink(self, url: str) -> str:
            return url

    class Blocks(ParserBlock):
        """Shows what is nested too deeply as the lines that it is, where the library would leave it out."""

        def tokenize(self, state: "StateBlock", startLine: int, endLine: int) -> None:
            if state.level < _DEEPEST:
                super().tokenize(state, startLine, endLine)
                return
            start = end = state.skipEmptyLines(startLine)
            while end < endLine and (state.isEmpty(end) or state.sCount[end] >= state.blkIndent):
                end += 1
            state.line = end
            if start < end:
                token = state.push("code_block", "code", 0)
                token.map, token.content = [start, end], state.getLines(start, end, state.blkIndent, False).rstrip()

    def defined(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """Take a definition only for an address: of `[^1]: note` and `[ERROR]: it failed` the words would be lost."""
        line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
        if not _DEFINED.match(line) or not reference(state, start, end, silent):
            return False
        state.tokens[-1].content = state.getLines(start, state.line, state.blkIndent, False).strip()
        return True

    def whole_table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """Join the cells beyond the head's to the last one: by GitHub's rule their words would be lost."""
        before = len(state.tokens)
        if not table(state, start, end, silent):
            return False
        row: list[Token] = []
        for token in state.tokens[before:]:
            if token.type == "tr_open":
                row = []
            elif token.type == "inline":
                row.append(token)
            elif token.type == "tr_close" and row[0].map:
                cells = escapedSplit(getLine(state, row[0].map[0]).strip())
                cells = [cell.strip() for cell in cells[cells[0] == "" :]]
                surplus = " | ".join(cells[len(row) :]).rstrip("| ")
                row[-1].content += f" | {surplus}" if surplus else ""
        return True

    def emphasis(state: "StateInline", silent: bool) -> bool:
        """Leave `2*3*4`, `(*.py)` and `"*"` alone: CommonMark would pair such stars, and they would be gone."""
        mark = state.src[state.pos]
        if silent or mark not in "*_":
            return False
        end = state.pos
        while state.src[end : end + 1] == mark:
            end += 1
        before, after = state.src[state.pos - 1 : state.pos] if state.pos else "", state.src[end : end + 1]
        product = mark == "*" and end == state.pos + 1 and before.isalnum() and after.isalnum()
        if product or not _is_meant(before, after):
            state.pending += state.src[state.pos : end]
            state.pos = end
            return True
        return tokenize(state, silent)

    reader = Reader("commonmark", {"html": False, "maxNesting": _DEEPEST, "inline_definitions": True})
    reader.block = Blocks()
    reader.enable(["table", "strikethrough"])
    reader.block.ruler.at("reference", defined)
    reader.block.ruler.at("table", whole_table, {"alt": ["paragraph", "reference"]})
    reader.inline.ruler.at("emphasis", emphasis)
    reader.inline.ruler.after("text", "bare_address", _bare_address)
    return reader


def _is_meant(before: str, after: str) -> bool:
    """Return whether marks between these characters may be emphasis; between two signs the direction is unclear."""
    if not (_is_sign(before) and _is_sign(after)):
        return True
    opens, closes = before in "([{\"'" and after in "`([{\"'", before in "`)]}\"'!?.:%" and after in ".,;:!?)]}\"'"
    return before != after and (opens or closes)


def _is_sign(character: str) -> bool:
    return bool(character) and not character.isalnum() and not character.isspace()


def _bare_address(state: "StateInline", silent: bool) -> bool:
    """Take `https://…` in a text for the address that it is, before its `_` and `*` are taken for emphasis."""
    if state.src[state.pos] != ":" or state.linkLevel > 0:
        return False
    scheme, rest = _SCHEME.search(state.src[max(0, state.pos - 6) : state.pos]), _REST.match(state.src, state.pos)
    url = without_punctuation(scheme[0] + rest[0]) if scheme and rest else ""
    if scheme is None or len(url) <= len(f"{scheme[0]}://"):
        return False
    if not silent:
        if not state.pending.endswith(scheme[0]):
            return False
        state.pending = state.pending[: -len(scheme[0])]
        opened = state.push("link_open", "a", 1)
        opened.attrs, opened.info = {"href": url}, "bare"
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1)
    state.pos += len(url) - len(scheme[0])
    return True


def without_punctuation(url: str) -> str:
    """Return an address that stood in a text: closing punctuation is none of it, unless it opens a bracket itself."""
    kept = url.rstrip(".,;:!?*_~)]}")
    while "(" in kept and kept.count("(") > kept.count(")") and url[len(kept) :].startswith(")"):
        kept += ")"
    return kept


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


_DATED = re.compile(f"(```.*?```|`[^`\n]*`)|{MOMENT}", re.DOTALL)


def dated(shown: str) -> str:
    """Return a text in Slack's markup in which each time that core has told is shown to each reader as their own.

    `14:05:12 (today)`, for instance. Code stays as it is
    (https://docs.slack.dev/messaging/formatting-message-text#date-formatting).
    """

    def token(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        try:
            moment = datetime.fromisoformat(f"{found[2]}+00:00")
        except ValueError:  # no day of any calendar: somebody's own words
            return found[0]
        time = "{time_secs}" if found[2].count(":") == 2 else "{time}"
        return f"<!date^{int(moment.timestamp())}^{time} ({{date_short_pretty}})|{found[0]}>"

    return _DATED.sub(token, shown)


_WIDEST = 40  #: columns; a longer cell stands out, so that one of them does not blow up every row

Row = Sequence[str]  #: a cell may have several lines


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines, the first one as their head; every row has as many cells as that."""
    cells = [[cell.split("\n") for cell in row] for row in rows]
    widths = [
        min(_WIDEST, max(_width(line) for cell in column for line in cell)) for column in zip(*cells, strict=True)
    ]
    head, *body = [
        [" | ".join(map(_padded, line, [*widths[:-1], 0])) for line in zip_longest(*row, fillvalue="")] for row in cells
    ]
    return [*head, "-+-".join("-" * width for width in widths), *(line for row in body for line in row)]


def _padded(cell: str, width: int) -> str:
    return cell + " " * max(0, width - _width(cell))


def _width(text: str) -> int:
    """Return the columns that the text takes in a fixed-width font."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


ROOM = 1_750  #: a piece is at most so long
_APART = "\N{ZERO WIDTH SPACE}"
_RULE = "─" * 12
_TICK = "\N{MODIFIER LETTER GRAVE ACCENT}"  #: a backtick that is no mark, where another one stands in its line
_LANGUAGE = 40  #: characters; what is longer is no language's name
_CODE = "code"

_STYLES = {"strong": "*", "em": "_", "s": "~"}  #: the outermost first
_MARKS = "*_~`"
_ENDING = {mark: re.compile(rf"(?<!\s){re.escape(mark)}(?![^\W_])") for mark in _STYLES.values()}
_PING = re.compile(r"@(?=here\b|channel\b|everyone\b|group\b)", re.IGNORECASE)
_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_LABELLED = re.compile(r"(?:https?://|www\.)|\.[a-z]{2,}(?:/|$)", re.IGNORECASE)
_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_TASK = re.compile(r"\[(?P<done>[ xX])\](?=\s)")
_ATOM = re.compile(f"&(?:amp|lt|gt);|.{_APART}?", re.DOTALL)

#: While a line is made, noncharacters stand for marks: ours that open and close, and the text's own.
_OPEN, _CLOSE, _LITERAL = "\ufdd0\ufdd1\ufdd2", "\ufdd4\ufdd5\ufdd6", "\ufdd8\ufdd9\ufdda\ufddb"
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
_TO_LITERAL = str.maketrans(_MARKS, _LITERAL)
_MARK_OF = {
    sign: mark for signs in (_OPEN, _CLOSE, _LITERAL, _MARKS) for sign, mark in zip(signs, _MARKS, strict=False)
}


@dataclasses.dataclass(frozen=True)
class Piece:
    """A line, or a bit of one that is too long, in Slack's markup. All in a row, with their ends, are the whole."""

    text: str
    ends: str = "\n"  #: what stands behind it where another piece follows in the same message
    before: str | None = None  #: what opens the fence that it stands in, "" being none of the text; None: no fence
    after: str | None = None  #: what opens the fence that the next piece stands in

    @property
    def weight(self) -> int:
        """How long it is, its end included."""
        return units(self.text) + len(self.ends)


def render(markdown: str) -> str:
    """Return the text in Slack's markup."""
    return "".join(piece.text + piece.ends for piece in pieces(markdown)).removesuffix("\n")


def pieces(markdown: str) -> tuple[Piece, ...]:
    """Return the text in Slack's markup, none of the pieces longer than ROOM."""
    tokens = tokens_of(_NONCHARACTERS.sub("\N{REPLACEMENT CHARACTER}", markdown))
    return tuple(_Writer(markdown).written(tokens))


def plain(text: str) -> str:
    """Return text as the characters that it is: it pings nobody and links nothing."""
    return escape(_PING.sub(f"@{_APART}", text))


def units(text: str) -> int:
    """Return a text's length as Slack may count it: a character outside the basic plane is two."""
    return len(text) + sum(character > "\uffff" for character in text)


# ---------------------------------------------------------------- blocks


@dataclasses.dataclass
class _Item:
    """A list's item: how far its lines are indented, and the mark that its first one has, until it is written."""

    indent: int
    mark: str


class _Writer:
    """Writes blocks one after another; lists and quotes around them become what each of their lines begins with."""

    def __init__(self, markdown: str) -> None:
        self._source = markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._items: list[_Item] = []
        self._quotes = 0
        self._quoted = 0  #: how deep the block before this one was quoted
        self._begun = False
        self._heading = False

    def written(self, tokens: "Sequence[Token]") -> Iterator[Piece]:
        """Yield the pieces of all blocks."""
        position = 0
        while position < len(tokens):
            token = tokens[position]
            position += 1
            if token.type == "table_open":
                end = next(at for at in range(position, len(tokens)) if tokens[at].type == "table_close")
                yield from self._gap(token)
                yield from self._fence("", columns(_rows(tokens[position:end])))
                position = end + 1
                continue
            yield from self._block(token)

    def _block(self, token: "Token") -> Iterator[Piece]:
        kind = token.type
        if kind == "blockquote_open":
            self._quotes += 1
        elif kind == "blockquote_close":
            self._quotes -= 1
        elif kind == "list_item_open":
            mark = f"{token.info}{token.markup}" if token.info else "•"
            indent = self._items[-1].indent if self._items else 0
            self._items.append(_Item(indent + len(mark) + 1, mark))
        elif kind == "list_item_close":
            if self._items[-1].mark:
                yield from self._line("")
            self._items.pop()
        elif kind in ("heading_open", "heading_close"):
            self._heading = kind == "heading_open"
        elif kind in ("inline", "hr", "fence", "code_block"):
            yield from self._gap(token)
            yield from self._leaf(token)

    def _leaf(self, token: "Token") -> Iterator[Piece]:
        if token.type == "hr":
            yield from self._line(_RULE)
        elif token.type == "inline":
            yield from self._inline(token.children or [])
        else:
            words, code = token.info.split(), token.content.removesuffix("\n")
            yield from self._fence(words[0][:_LANGUAGE] if words else "", code.split("\n") if code else ())

    def _gap(self, token: "Token") -> Iterator[Piece]:
        """Yield an empty line where one stood before the block."""
        start = token.map[0] if token.map else 0
        if self._begun and start > 0 and not self._source[start - 1].strip("> \t"):
            yield Piece(" ".join([">"] * min(self._quoted, self._quotes)))
        self._begun, self._quoted = True, self._quotes

    def _inline(self, children: "Sequence[Token]") -> Iterator[Piece]:
        runs = list(_lines(children, "strong" if self._heading else ""))
        if self._items and self._items[-1].mark == "•" and runs and runs[0] and runs[0][0].kind == "text":
            first = runs[0][0]
            if task := _TASK.match(first.text):
                self._items[-1].mark = "☐" if task["done"] == " " else "☑"
                runs[0][0] = dataclasses.replace(first, text=first.text[task.end() :].lstrip())
        for line in runs:
            bits = list(_bits(line, ROOM - self._margin()))
            for number, bit in enumerate(bits):
                yield from self._line(_shown(bit), " " if number < len(bits) - 1 else "\n", begins=number == 0)

    def _margin(self) -> int:
        return 2 * self._quotes + (self._items[-1].indent if self._items else 0)

    def _line(self, text: str, ends: str = "\n", *, begins: bool = True) -> Iterator[Piece]:
        """Yield a line of text behind its quotes, indent and mark; only the first bit of one has those."""
        margin = "> " * self._quotes
        if begins and self._items:
            item = self._items[-1]
            width = item.indent - len(item.mark) - 1 if item.mark else item.indent
            margin += " " * width + (f"{item.mark} " if item.mark else "")
            item.mark = ""
        elif not begins:
            margin = ""
        if not margin and text.startswith("&gt;"):
            margin = _APART  # it would be a quote
        yield Piece((margin + text).rstrip() if ends == "\n" else margin + text, ends)

    def _fence(self, language: str, lines: Iterable[str]) -> Iterator[Piece]:
        """Yield code between fences, at the margin: what stood before each line of it would be taken for its own.

        Slack's fences know no language, so that it stands above.
        """
        if self._items and self._items[-1].mark:
            yield from self._line("")
        label = f"_{language}_" if language.isalnum() else plain(language)
        opened = f"{label}\n```" if label else "```"
        yield Piece(opened, after=opened)
        for line in lines:
            bits = list(_code_bits(line))
            for number, bit in enumerate(bits):
                yield Piece(bit, "" if number < len(bits) - 1 else "\n", opened, opened)
        yield Piece("```", before=opened)


def _code_bits(line: str) -> Iterator[str]:
    """Yield a line of code, in bits that are not longer than a piece may be."""
    safe = escape(line.replace("```", f"`{_APART}`{_APART}`"))
    if units(safe) <= ROOM:
        yield safe
        return
    bit, size = "", 0
    for atom in _ATOM.findall(safe):
        if size + units(atom) > ROOM:
            yield bit
            bit, size = "", 0
        bit, size = bit + atom, size + units(atom)
    yield bit


def _rows(tokens: "Sequence[Token]") -> list[list[str]]:
    """Return a table's cells as the text that they show: a fence knows no markup."""
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            lines = _lines(token.children or [])
            rows[-1].append("\n".join("".join(map(_bare, line)) for line in lines))
    return rows


# ---------------------------------------------------------------- lines of runs


@dataclasses.dataclass(frozen=True)
class _Run:
    """Characters of one kind, and the styles that they are in. A link's text is its label."""

    text: str
    kind: str = "text"  #: text, code, link
    styles: frozenset[str] = dataclasses.field(default=frozenset())
    href: str = ""


def _lines(children: "Iterable[Token]", style: str = "") -> Iterator[list[_Run]]:
    """Yield a paragraph's lines. `style`: one that all of it is in."""
    line: list[_Run] = []
    labels: list[tuple[list[_Run], str]] = []  # of the links that are open, within one another, and their targets
    opened = [style] if style else []
    for token in children:
        name, _, way = token.type.rpartition("_")
        styles = frozenset(opened)
        if name in _STYLES:
            opened = [*opened, name] if way == "open" else opened[: -1 - opened[::-1].index(name)]
        elif token.type == "link_open":
            labels.append(([], str(token.attrs.get("href", ""))))
        elif token.type == "link_close":
            linked = _linked(*labels.pop(), styles)
            if labels:
                labels[-1][0].extend(map(_unlinked, linked))
            else:
                line += linked
        elif labels:
            labels[-1][0].append(_run_of(token, styles))
        elif token.type in ("softbreak", "hardbreak"):
            yield line
            line = []
        elif token.type == "text":
            first, *others = _BREAK.split(token.content)
            line.append(_Run(first, styles=styles))
            for text in others:
                yield line
                line = [_Run(text.lstrip(), styles=styles)]
        elif token.type == "image":
            line += _linked([_run_of(token, styles)], str(token.attrs.get("src", "")), styles)
        else:
            line.append(_run_of(token, styles))
    yield line


def _run_of(token: "Token", styles: frozenset[str]) -> _Run:
    if token.type == "image":
        return _Run(" ".join("".join(map(_bare, line)) for line in _lines(token.children or [])), styles=styles)
    if token.type in ("softbreak", "hardbreak"):
        return _Run(" ", styles=styles)
    return _Run(token.content, _CODE if token.type == "code_inline" else "text", styles)


def _linked(label: list[_Run], target: str, styles: frozenset[str]) -> list[_Run]:
    """Return a link. A label that looks like another address is shown beside its target, so that it misleads nobody."""
    shown = "".join(run.text for run in label)
    shown = shown if any(run.kind == _CODE for run in label) else " ".join(shown.split())
    link, around = _Run(shown, "link", styles, target), partial(_Run, styles=styles)
    if not _WEB.match(target) or _weight(dataclasses.replace(link, text="")) > ROOM // 2:
        told = not target or target == shown or target.startswith("data:")
        return label if told else [*label, around(f" ({target})")]
    if not shown.strip() or target in (shown, f"mailto:{shown}"):
        return [dataclasses.replace(link, text="")]
    if _LABELLED.search(shown) or _weight(link) > ROOM // 2 or any(_is_odd(run) for run in label):
        return [*label, around(" ("), dataclasses.replace(link, text=""), around(")")]
    return [link]


def _unlinked(run: _Run) -> _Run:
    """Return a link within another one's label as the text that it shows."""
    return dataclasses.replace(run, kind="text", text=_bare(run).removeprefix("mailto:")) if run.kind == "link" else run


def _is_odd(run: _Run) -> bool:
    """Return whether a label would lose characters of code."""
    return run.kind == _CODE and (not run.text.strip() or run.text != run.text.strip() or "|" in run.text)


def _bits(line: list[_Run], room: int) -> Iterator[list[_Run]]:
    """Yield the line's runs, in bits that are not longer than `room`; they end at a space where one is near."""
    bit: list[_Run] = []
    left, waiting = room, list(line)
    while waiting:
        run = waiting.pop(0)
        if len(run.text) <= left and (weight := _weight(run)) <= left:
            bit.append(run)
            left -= weight
            continue
        head, tail = _parted(run, left) if run.kind != "link" else (None, run)
        if head is not None:
            bit.append(head)
        if bit:
            yield bit
        bit, left = [], room
        waiting.insert(0, tail)
    yield bit


def _parted(run: _Run, room: int) -> tuple[_Run | None, _Run]:
    """Return as much of a run as fits, None where that is little and more fits behind it, and what is left of it."""
    size, end = _weight(dataclasses.replace(run, text="")), 0
    for character in run.text:
        size += _WEIGHTS.get(character, units(character))
        if size > room:
            break
        end += 1
    space = run.text.rfind(" ", end // 2, end)
    cut = space + 1 if space > 0 and run.kind == "text" else end
    if cut < 40 and room < ROOM // 2:
        return None, run
    cut = max(cut, 1)
    return dataclasses.replace(run, text=run.text[:cut]), dataclasses.replace(run, text=run.text[cut:])


_WEIGHTS = {"&": 5, "<": 4, ">": 4, "@": 2, **dict.fromkeys(_MARKS, 2)}


def _weight(run: _Run) -> int:
    """Return how long a run may become at most."""
    text = sum(_WEIGHTS.get(character, units(character)) for character in run.text)
    return text + units(escape(run.href)) + 3 * run.href.count("|") + 4 * len(run.styles) + 10


# ---------------------------------------------------------------- one line in Slack's markup


def _bare(run: _Run) -> str:
    """Return what a run shows where there is no markup."""
    if run.kind != "link":
        return run.text
    return f"{run.text} ({run.href})" if run.text else run.href


def _shown(runs: Sequence[_Run]) -> str:
    """Return a line in Slack's markup."""
    return _settled(_styled(list(runs), list(_STYLES)))


def _styled(runs: list[_Run], names: list[str]) -> str:
    """Return the runs with their styles marked; what would end a style by a mark of its own stands outside of it."""
    if not names:
        return "".join(_wire(run) for run in runs)
    name, *inner = names
    mark, made = _STYLES[name], ""
    for marked, group in groupby(runs, lambda run: name in run.styles and not _ENDING[mark].search(run.text)):
        text = _styled(list(group), inner)
        body = text.strip()
        if not marked or not body:
            made += text
            continue
        number, lead = _MARKS.index(mark), text[: len(text) - len(text.lstrip())]
        made += f"{lead}{_OPEN[number]}{body}{_CLOSE[number]}{text[len(lead) + len(body) :]}"
    return made


def _wire(run: _Run) -> str:
    if run.kind == "link":
        return _token(run.href, plain(run.text))
    if run.kind == "text":
        return plain(run.text).translate(_TO_LITERAL)
    if not run.text:
        return ""
    if "`" not in run.text:
        return f"`{escape(run.text)}`"
    safe = escape(run.text.replace("```", f"`{_APART}`{_APART}`"))
    return f"```{_APART if safe.startswith('`') else ''}{safe}{_APART if safe.endswith('`') else ''}```"


def _token(url: str, label: str = "") -> str:
    safe = escape("".join(url.split()).replace("|", "%7C").replace("<", "%3C").replace(">", "%3E"))
    return f"<{safe}|{label.replace('|', '¦')}>" if label else f"<{safe}>"


def _settled(line: str) -> str:
    """Return the line with its marks in the place of their stand-ins.

    Slack takes a mark for one only at a border: ours get one, and the text's own lose theirs where a pair is there.
    """
    ends, made = _ends(line), []
    ticks = line.count("`") + line.count(_LITERAL[3])
    for at, sign in enumerate(line):
        before, after = line[at - 1 : at], line[at + 1 : at + 2]
        mark = _MARK_OF.get(sign, sign)
        if sign in _OPEN:
            made.append(f"{_APART if _binds(before, _CLOSE) else ''}{mark}")
        elif sign in _CLOSE:
            made.append(f"{mark}{_APART if _binds(after) else ''}")
        elif sign == _LITERAL[3]:
            made.append(_TICK if ticks > 1 else mark)
        elif sign in _LITERAL:
            begins = not before.isalnum() and bool(after.strip()) and ends.get(mark, 0) > at + 1
            made.append(f"{mark}{_APART if begins else ''}")
        else:
            made.append(sign)
    return "".join(made)


def _ends(line: str) -> dict[str, int]:
    """Return for each mark the last place where Slack would take one for the end of a style."""
    found = {}
    for at, sign in enumerate(line[1:], start=1):
        if (mark := _MARK_OF.get(sign)) and not line[at - 1].isspace() and not line[at + 1 : at + 2].isalnum():
            found[mark] = at
    return found


def _binds(neighbour: str, more: str = "") -> bool:
    """Return whether a character beside a mark keeps Slack from taking it for one."""
    return bool(neighbour) and (neighbour.isalnum() or neighbour in f"`>{_LITERAL}{more}")


_WORTH = 0.5  #: a part that is cut at a good border is at least this full


def split(pieces: Sequence[Piece], limit: int) -> tuple[str, ...]:
    """Return the parts, in order, none of them longer than `limit`, which is at least twice as long as any piece.

    Parts without anything to see are left out.
    """
    parts, start = list[str](), 0
    while start < len(pieces):
        end = _end(pieces, start, limit)
        parts.append(_part(pieces[start:end]))
        start = end
    return tuple(part for part in parts if part.strip())


def _end(pieces: Sequence[Piece], start: int, limit: int) -> int:
    """Return where the part that begins at `start` ends: at the best border that it is worth being cut at."""
    opened = pieces[start].before
    size = units(opened) + 1 if opened else 0
    best, best_rank = start + 1, -1
    for end in range(start + 1, len(pieces) + 1):
        size += pieces[end - 1].weight
        closing = len("```") + 1 if pieces[end - 1].after else 0
        if size + closing > limit and end > start + 1:
            return best
        rank = _rank(pieces, end) if size >= limit * _WORTH else 0
        if rank >= best_rank:
            best, best_rank = end, rank
    return len(pieces)


def _rank(pieces: Sequence[Piece], end: int) -> int:
    """Return how good a border is: between paragraphs 3, between lines 2, within a fence 1, within a line 0."""
    last = pieces[end - 1]
    if last.ends != "\n" or (last.before is None and last.after is not None):
        return 0  # the latter would be an empty fence
    if last.after is not None:
        return 1
    following = pieces[end] if end < len(pieces) else None
    at_fence = last.before is not None or (following is not None and following.after is not None)
    return 3 if at_fence or not last.text.strip(" >") else 2


def _part(pieces: Sequence[Piece]) -> str:
    opened, left = pieces[0].before, pieces[-1].after
    text = "".join(piece.text + piece.ends for piece in pieces)
    if left is not None:
        text = f"{text.removesuffix(pieces[-1].ends) if pieces[-1].ends else text}\n```"
    text = f"{opened}\n{text}" if opened else text
    return text.rstrip() if opened else text.strip("\n").rstrip()


PART = 2 * ROOM  #: characters of a part as Slack counts them; it recommends 4,000 and cuts nothing of that size
MOST_PARTS = 12
MOST_BYTES = 30_000  #: of the whole; above it becomes a file
_SUMMARY = PART - 300  #: characters of the part that stands above a file, with room for the note
_BEGINNING = 3 * _SUMMARY  #: characters of a whole that is above MOST_BYTES, of which that part is made
ATTACHED = "\n\n… this is the beginning. The whole answer is attached, {size:,} bytes."


def parts(post: NewPost) -> tuple[NewPost, ...]:
    """Return the posts, in order, whose ids follow from the post's. What is no answer is sent as it is."""
    if post.kind is not OutboundKind.ANSWER:
        return (post,)
    whole = unstyled(post.text)
    if len(whole.encode(errors="replace")) > MOST_BYTES:
        return _summary(post, pieces(whole[:_BEGINNING]))
    made = pieces(whole)
    found = split(made, PART)
    if len(found) <= 1:
        return (post,)
    if len(found) > MOST_PARTS:
        return _summary(post, made)
    return tuple(_answer_part(post, number, part) for number, part in enumerate(found, start=1))


def wire(post: NewPost) -> str:
    """Return the post's text in Slack's markup; one that shows nothing is sent as the characters that it is."""
    shown = post.text if post.kind is OutboundKind.PART else render(unstyled(post.text))
    return shown if shown.strip() else f"`{post.text.strip()[:20] or ' '}`"


def file_name(post: NewPost, at: datetime) -> str:
    """Return what the file of a post is called: `scribe-2026-11-30-2105-3f9c1a2b.md`; a file that has a name of its own
    keeps it, as in `plan-3f9c1a2b.pdf`. Its end tells whose it is, since no message of a file carries the post's id.
    """
    own = PurePath(post.path)
    stem = own.stem if post.path else f"{post.name}-{at:%Y-%m-%d-%H%M}"
    return f"{stem}-{_mark_of(post.id)}{own.suffix if post.path else '.md'}"


def is_file_of(post_id: str, name: str) -> bool:
    """Return whether a file of that name is the post's, or was by the names that an earlier release gave."""
    earlier = name == f"{post_id}.md" or name.startswith(f"{post_id}-")
    return earlier or PurePath(name).stem.endswith(f"-{_mark_of(post_id)}")


def _mark_of(post_id: str) -> str:
    return hashlib.sha256(post_id.encode()).hexdigest()[:8]


def _answer_part(post: NewPost, number: int, text: str, kind: OutboundKind = OutboundKind.PART) -> NewPost:
    return replace(post, id=f"{post.id}-{number}", key=f"{post.key}#{number}", text=text, kind=kind)


def _summary(post: NewPost, made: tuple[Piece, ...]) -> tuple[NewPost, ...]:
    first = next(iter(split(made, _SUMMARY)), "")
    attachment = _answer_part(post, 2, post.text, OutboundKind.FILE)
    note = ATTACHED.format(size=len(post.text.encode()))
    return _answer_part(post, 1, first + note), attachment
