"""An agent's Markdown -> Slack's own markup (mrkdwn), in pieces of known weight. Pure, and total over any text.

Slack's markup knows bold, italic, strike, code, fences, quotes and links, each within one line, and neither headings
nor tables nor task lists; what it lacks is shown by what it has. Everything that is not markup of ours is escaped, in
code as well, so that no text can ping a person or a channel (https://docs.slack.dev/messaging/formatting-message-text).
The characters of code arrive as they are; only three backticks, which would end Slack's fence, are kept apart.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from bot.markdown import tokens_of
from bot.mrkdwn import escape
from bot.tables import columns

if TYPE_CHECKING:
    from markdown_it.token import Token

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


@dataclass(frozen=True)
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


@dataclass
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
                runs[0][0] = replace(first, text=first.text[task.end() :].lstrip())
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


@dataclass(frozen=True)
class _Run:
    """Characters of one kind, and the styles that they are in. A link's text is its label."""

    text: str
    kind: str = "text"  #: text, code, link
    styles: frozenset[str] = field(default=frozenset())
    href: str = ""


def _lines(children: "Iterable[Token]", style: str = "") -> Iterator[list[_Run]]:
    """Yield a paragraph's lines. `style`: one that all of it is in."""
    line: list[_Run] = []
    label: list[_Run] | None = None
    opened, target = [style] if style else [], ""
    for token in children:
        name, _, way = token.type.rpartition("_")
        styles = frozenset(opened)
        if name in _STYLES:
            opened = [*opened, name] if way == "open" else opened[: -1 - opened[::-1].index(name)]
        elif token.type == "link_open":
            label, target = [], str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            line += _linked(label or [], target, styles)
            label = None
        elif label is not None:
            label.append(_run_of(token, styles))
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
        return _Run("".join(child.content for child in token.children or []), styles=styles)
    if token.type in ("softbreak", "hardbreak"):
        return _Run(" ", styles=styles)
    return _Run(token.content, _CODE if token.type == "code_inline" else "text", styles)


def _linked(label: list[_Run], target: str, styles: frozenset[str]) -> list[_Run]:
    """Return a link. A label that looks like another address is shown beside its target, so that it misleads nobody."""
    shown = "".join(run.text for run in label)
    shown = shown if any(run.kind == _CODE for run in label) else " ".join(shown.split())
    link, around = _Run(shown, "link", styles, target), partial(_Run, styles=styles)
    if not _WEB.match(target) or _weight(replace(link, text="")) > ROOM // 2:
        told = not target or target == shown or target.startswith("data:")
        return label if told else [*label, around(f" ({target})")]
    if not shown.strip() or target in (shown, f"mailto:{shown}"):
        return [replace(link, text="")]
    if _LABELLED.search(shown) or _weight(link) > ROOM // 2 or any(_is_odd(run) for run in label):
        return [*label, around(" ("), replace(link, text=""), around(")")]
    return [link]


def _is_odd(run: _Run) -> bool:
    """Tell whether a label would lose characters of code."""
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
    size, end = _weight(replace(run, text="")), 0
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
    return replace(run, text=run.text[:cut]), replace(run, text=run.text[cut:])


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
    """Tell whether a character beside a mark keeps Slack from taking it for one."""
    return bool(neighbour) and (neighbour.isalnum() or neighbour in f"`>{_LITERAL}{more}")
