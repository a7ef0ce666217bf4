"""An agent's Markdown -> Slack's own markup (mrkdwn). Pure, and total over any text.

Slack's markup knows bold, italic, strike, code, fences, quotes and links, each within one line, and neither headings
nor tables nor task lists; what it lacks is shown by what it has. Everything that is not markup of ours is escaped, in
code as well, so that no text can ping a person or a channel (https://docs.slack.dev/messaging/formatting-message-text).
"""

import re
from collections.abc import Iterator

from bot.fences import Fence, opening
from bot.mrkdwn import escape

_APART = "\N{ZERO WIDTH SPACE}"
_DEEPEST = 4  #: styles within styles; below that markers stand as they are
_RULE = "─" * 12

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"(?P<indent>[ \t]*)[-*+](?P<gap>[ \t]+)(?:\[(?P<task>[ xX])\][ \t]+)?(?P<text>.*)$")
_NUMBER = re.compile(r"(?P<head>[ \t]*[0-9]{1,9}[.)][ \t]+)(?P<text>.*)$")
_QUOTE = re.compile(r" {0,3}>[ ]?(?P<text>.*)$")
_HORIZONTAL = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")

_ESCAPED = r"\\(?P<escaped>[!-/:-@\[-`{-~])"
_CODE = r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
_TICKS = r"(?P<loose>`+)"  # they match no others: characters
_LABEL = r"(?P<label>(?:[^\[\]\\`]|\\.|`[^`]*`|\[[^\[\]]*\])*)"
_TARGET = r"<?(?P<target>[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?"
_LINK = rf"!?\[{_LABEL}\]\(\s*{_TARGET}(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
_ANGLE = r"<(?P<angle>(?:https?://|mailto:)[^\s<>|]+)>"
_BARE = r"(?<![A-Za-z0-9])(?P<bare>https?://[^\s<>|`\"']+)"
_BOTH = r"(?P<m3>\*\*\*|___)(?=\S)(?P<both>.+?)(?<=\S)(?P=m3)"
_BOLD = r"(?P<m2>\*\*|__)(?=\S)(?P<bold>.+?)(?<=\S)(?P=m2)(?![*_])"
_STRIKE = r"(?<!~)~~(?=[^\s~])(?P<strike>.+?)(?<=[^\s~])~~(?!~)"
_STAR = r"(?<![\w*\\])\*(?=[^\s*])(?P<star>[^*]*?[^\s*])\*(?![\w*])"  # within a word it is rather a product
_UNDER = r"(?<![\w\\])_(?=[^\s_])(?P<under>[^_]*?[^\s_])_(?!\w)"
_PIECES = re.compile("|".join((_ESCAPED, _CODE, _TICKS, _LINK, _ANGLE, _BARE, _BOTH, _BOLD, _STRIKE, _STAR, _UNDER)))
_PING = re.compile(r"@(?=here\b|channel\b|everyone\b|group\b)", re.IGNORECASE)
_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_LABELLED = re.compile(r"(?:https?://|www\.)|\.[a-z]{2,}(?:/|$)", re.IGNORECASE)


def render(markdown: str) -> str:
    """Return the text in Slack's markup, line for line; tables stand in it as fenced text already."""
    return "\n".join(_lines(markdown))


def plain(text: str) -> str:
    """Return text as the characters that it is: it pings nobody and links nothing."""
    return escape(_PING.sub(f"@{_APART}", text))


def _lines(markdown: str) -> Iterator[str]:
    fence: Fence | None = None
    for line in markdown.split("\n"):
        if fence is not None:
            if fence.closed_by(line):
                fence = None
                yield "```"
            else:
                yield code_line(line)
            continue
        fence = opening(line)
        yield from [text_line(line)] if fence is None else fence_lines(fence)
    if fence is not None:
        yield "```"


def fence_lines(fence: Fence) -> list[str]:
    """Return what opens a fence. Slack's knows no language, so that it stands above."""
    if not fence.language:
        return ["```"]
    return [f"_{fence.language}_" if fence.language.isalnum() else plain(fence.language), "```"]


def code_line(line: str) -> str:
    """Return a line of a fence. Three backticks would end Slack's: they are kept apart."""
    return escape(line.replace("```", f"`{_APART}`{_APART}`"))


def text_line(line: str, depth: int = 0) -> str:
    """Return a line outside of fences."""
    if _HORIZONTAL.match(line):
        return _RULE
    if found := _HEADING.match(line):
        return _styled("*", _inline(found["text"], _DEEPEST, bare_markers=False)) if found["text"] else ""
    if (found := _QUOTE.match(line)) and depth < _DEEPEST:
        return f"> {text_line(found['text'], depth + 1)}"
    if found := _ITEM.match(line):
        mark = {None: "•", " ": "☐"}.get(found["task"], "☑")
        return f"{found['indent']}{mark} {_inline(found['text'])}"
    if found := _NUMBER.match(line):
        return f"{found['head']}{_inline(found['text'])}"
    return _inline(line)


def _inline(text: str, depth: int = 0, *, bare_markers: bool = True) -> str:
    """Return one line's markup. At the deepest level styles are not looked for; without `bare_markers` they go."""
    made, end = [], 0
    for found in _PIECES.finditer(text):
        made += [plain(text[end : found.start()]), _piece(found, text, depth, bare_markers)]
        end = found.end()
    return "".join([*made, plain(text[end:])])


def _piece(found: re.Match[str], text: str, depth: int, bare_markers: bool) -> str:
    if found["escaped"]:
        return plain(found["escaped"])
    if found["code"] is not None:
        return _code(found)
    if found["loose"]:
        return found["loose"]
    if found["label"] is not None:
        return _link(found["label"], found["target"], found[0])
    if found["angle"] or found["bare"]:
        return _address(found["angle"] or found["bare"], angle=bool(found["angle"]))
    styles = (("both", "*_"), ("bold", "*"), ("strike", "~"), ("star", "_"), ("under", "_"))
    name, marks = next((name, marks) for name, marks in styles if found[name] is not None)
    if depth >= _DEEPEST:
        return _inline(found[name], depth, bare_markers=bare_markers) if not bare_markers else plain(found[0])
    inner = _inline(found[name], depth + 1)
    styled = _styled(marks, inner)
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    return f"{_APART if before.isalnum() else ''}{styled}{_APART if after.isalnum() else ''}"


def _styled(marks: str, inner: str) -> str:
    """Return the text between marks; one that holds the same marks already would end at the first of them."""
    if any(mark in inner for mark in marks):
        return inner
    return f"{marks}{inner}{marks[::-1]}"


def _code(found: re.Match[str]) -> str:
    """Return inline code, its characters as they are. Slack has one backtick as its mark, so none can stand inside."""
    code = found["code"]
    if "`" in code:
        return escape(found[0])
    return f"`{escape(code)}`"


def _link(label: str, target: str, whole: str) -> str:
    """Return a link. A label that looks like another address is shown beside its target, so that it misleads nobody."""
    shown = " ".join(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", label).split())
    if not _WEB.match(target):
        return plain(whole)
    if not shown or shown == target:
        return _token(target)
    if _LABELLED.search(shown):
        return f"{plain(shown)} ({_token(target)})"
    return _token(target, plain(shown))


def _address(url: str, *, angle: bool) -> str:
    """Return an address that stood in the text; closing punctuation is none of it."""
    if angle:
        return _token(url)
    kept = url.rstrip(".,;:!?*_~)]}")
    if "(" in kept and url[len(kept) :].startswith(")"):
        kept += ")"
    return f"{_token(kept)}{plain(url[len(kept) :])}" if len(kept) > len("https://") else plain(url)


def _token(url: str, label: str = "") -> str:
    safe = escape(url.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E"))
    return f"<{safe}|{label.replace('|', '¦')}>" if label else f"<{safe}>"
