"""Markdown's structure, by markdown-it-py: CommonMark with tables and strikethrough, and addresses that stand bare.

The library is imported at the first text, since most of what imports this never reads one.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_SCHEME = re.compile(r"(?<![A-Za-z0-9])https?$")
_REST = re.compile(r"://[^\s<>\[\]|\"'`]+")
_DEFINED = re.compile(r"\[(?!\^)(?:[^\[\]\\]|\\.)+\]:[ \t]*(?:<|https?:|mailto:|[/#.])")


def tokens_of(markdown: str) -> "list[Token]":
    """Return the tokens of a text. HTML is none of its markup: it stays the characters that it is."""
    return _reader().parse(markdown)


def load() -> None:
    """Import the library now: whoever is about to need it may have no file descriptor left then."""
    _reader()


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import reference, table
    from markdown_it.rules_block.table import escapedSplit, getLine
    from markdown_it.rules_inline.emphasis import tokenize

    class Reader(MarkdownIt):
        """Leaves addresses as they were written."""

        def normalizeLink(self, url: str) -> str:
            return url

    def defined(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """Take a definition only for an address: of `[^1]: note` and `[ERROR]: it failed` the words would be lost."""
        line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
        return bool(_DEFINED.match(line)) and reference(state, start, end, silent)

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

    reader = Reader("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.block.ruler.at("reference", defined)
    reader.block.ruler.at("table", whole_table, {"alt": ["paragraph", "reference"]})
    reader.inline.ruler.at("emphasis", emphasis)
    reader.inline.ruler.after("text", "bare_address", _bare_address)
    return reader


def _is_meant(before: str, after: str) -> bool:
    """Tell whether marks between these characters may be emphasis: not between two signs that leave open which way."""
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
