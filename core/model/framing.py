"""A message's form in a terminal: cleaned, framed with its author, cut into pastes, recognised later. No I/O.

Only we write frames. A text that contains something like a frame is quoted, so that neither an agent nor the search of
a harness's records takes it for one.

Claude Code 2.1.332 tells its model that a paste of more than two newlines or 800 characters may not be the user's own
words. It judges each bracketed paste alone, and joins pastes that follow one another without a key. So a long text is
cut into small pastes.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from core.base.errors import InvalidValue
from core.base.text import alike, in_lines, plain, seen
from core.base.values import dataclass, replace
from core.model.harness import Echo, PasteStyle, Traits
from core.model.message import Kind, NewMessage

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FLAG_HALVES = re.compile("[\U0001f1e6-\U0001f1ff]+$")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")  #: zero-width joiner, variation selectors
_NO_LETTER = re.compile(r"[^0-9A-Za-z]+")
_END = 16  #: letters by which the end of a text is known
_LOOK_BACK = 80  #: characters from a cut in which a blank is looked for


def pieces_of(text: str, traits: Traits) -> tuple[str, ...] | None:
    """Return the text in pieces that the harness takes for typed; whole where it knows no such limit.

    Each holds at most so many newlines, the last of them at its end, and at most so many UTF-16 units; no grapheme is
    cut that fits into one. None where they are more than the harness reads in a moment.
    """
    if not traits.paste_lines:
        return (text,)
    pieces = tuple(islice(_pieces(text, traits.paste_lines, traits.paste_chars), traits.paste_pieces + 1))
    return pieces if len(pieces) <= traits.paste_pieces else None


def most_pieces(text: str, traits: Traits) -> int:
    """Return a number that its pieces do not exceed, without cutting it."""
    if not traits.paste_lines:
        return 1
    most = 1 + text.count("\n") // traits.paste_lines + len(text) // (traits.paste_chars // 4)
    return min(most, traits.paste_pieces)


def shows_text(screen: str, text: str, echo: Echo) -> bool:
    """Return whether a screen's input line shows the end of the text, or something in the place of a long one.

    A text without a letter that every terminal shows alike counts as shown. A line of many rows may have its beginning,
    and its mark, above the screen.
    """
    end, line = _letters(text)[-_END:], input_line(screen, echo)
    return not end or end in _letters(line) or re.search(echo.folded, line) is not None


def stands_beside(line: str, message: NewMessage, others: Sequence[NewMessage]) -> bool:
    """Return whether an input line shows the message twice, or another of these with it, by their frames.

    Wherever its rows end: a frame may stand on two of them. What the message itself says in its text does not count.
    False where the message's own frame is not shown: its text is taller than the screen, and what stands above it is
    the conversation, with the frames of earlier messages.
    """
    shown, own = _squeezed(line), _squeezed(framed(message))
    if _squeezed(head(message)) not in shown:
        return False
    return any(shown.count(_squeezed(head(each))) > own.count(_squeezed(head(each))) for each in (message, *others))


def holds_one(line: str, messages: Sequence[NewMessage]) -> bool:
    """Return whether an input line shows one of the messages, by their frames."""
    shown = _squeezed(line)
    return any(_squeezed(head(each)) in shown for each in messages)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def input_line(screen: str, echo: Echo) -> str:
    """Return the screen from its input line on, the whole of it where that begins above."""
    return screen.rpartition(echo.mark)[2]


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", seen(text))


def _pieces(text: str, lines: int, chars: int) -> Iterator[str]:
    piece, newlines = "", 0
    for line in _LINE.findall(text):
        for part in _parts(line, chars):
            if piece and (newlines == lines or _units(piece + part) > chars):
                yield piece
                piece, newlines = "", 0
            piece += part
            newlines += part.endswith("\n")
    if piece:
        yield piece


def _parts(line: str, chars: int) -> Iterator[str]:
    """Yield a line in parts of at most so many UTF-16 units."""
    start = 0
    while _units(line[start : start + chars + 1]) > chars:
        end = start + _cut(line[start : start + chars + 1], chars)
        yield line[start:end]
        start = end
    yield line[start:]


def _cut(line: str, chars: int) -> int:
    """Return where to cut a line that is too long: behind a blank near the limit, else between two graphemes."""
    most = len(line.encode("utf-16-le", "surrogatepass")[: 2 * chars].decode("utf-16-le", "ignore"))
    blank = line.rfind(" ", max(0, most - _LOOK_BACK), most)
    if blank >= 0:
        return blank + 1
    end = most
    while end > 0 and _goes_on(line, end):
        end -= 1
    return end or most


def _goes_on(line: str, at: int) -> bool:
    """Return whether what stands before the position and what follows may be one grapheme."""
    before, letter = line[at - 1], line[at]
    if letter in _JOINERS or before == "\u200d" or unicodedata.category(letter) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= letter <= "\U0001f3ff":  # a skin tone
        return True
    halves = _FLAG_HALVES.search(line, 0, at) if _is_flag_half(letter) else None
    return halves is not None and len(halves[0]) % 2 == 1


def _is_flag_half(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _units(text: str) -> int:
    """Return the length as a JavaScript program counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


BOOT_POINTER = "Read the file "  #: how a boot prompt begins, behind its frame, whose text is in a file
AGENT_WAY = "agent"  #: `via` of a message that another session's agent wrote

PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
SUBMIT = b"\r"

_NOT_IN_A_NAME = frozenset("[]#")
#: square ones of every script, and the forms that they have in columns (U+FE17 to U+FE48)
_OPENS = "\\[\uff3b\ufe47\u3010\u3014\u3016\u3018\u301a\u27e6\u2045\u2772\ufe5d"
_OPENS += "\ufe17\ufe39\ufe3b\u298b\u298d\u298f\u2997\u2e55\u2e57"
_CLOSES = "\\]\uff3d\ufe48\u3011\u3015\u3017\u3019\u301b\u27e7\u2046\u2773\ufe5e"
_CLOSES += "\ufe18\ufe3a\ufe3c\u298c\u298e\u2990\u2998\u2e56\u2e58"
_BRACKETED = re.compile(rf"[{_OPENS}](?P<inner>[^{_OPENS}{_CLOSES}]*)[{_CLOSES}]")
_LONGEST_FRAME = 300  #: letters of what is taken for one
_ODD_BLANK = re.compile(r"[^\S \t\n]|\u2800")
#: what looks like a frame with a marker, as `_folded` writes it: ours exactly, or another behind a name
_MARKED = re.compile(r"#(?:[a-km-np-z2-9]\xa0?){6}\s*\Z|\S\s+#\xa0?(?=[0-9\xa0]*[a-z])(?:[a-z0-9]\xa0?){4,10}\s*\Z")
#: what looks like one without, at the beginning of a line
_NAMED = re.compile(r"\S\s+via\s+[a-z0-9]|\A\s*(?:agent\s+[a-z0-9]|the[-_]?loop\b)")
_LINK = re.compile(r"\((?:[a-z][a-z0-9+.-]*:|[/.#?])[^)\s]*\)", re.IGNORECASE)  #: what makes a name in brackets a link
_NESTED = 4  #: frames within frames that are taken apart; of what has more every bracket becomes a round one
_ROUND = str.maketrans({**dict.fromkeys(_OPENS[1:], "("), **dict.fromkeys(_CLOSES[1:], ")")})
#: letters that look like those of the words above, and dashes
_ALIKE = str.maketrans("аеіорсһӏѵнтοναιɡո♯\u2010\u2011\u2012\u2013\u2014\u2212", "aeiopchlvhtovaign#------")
_HEAD = re.compile(r"^\[[^\[\]\n]{1,120} #[a-km-np-z2-9]{6}\] ", re.MULTILINE)
_BEGINNING = 32  #: characters of a text, blanks left out, by which a record is known to hold it
_READ_IT = "Read all of it in"
_TOO_LONG = f"This message of mine is too long for the terminal. {_READ_IT}"
_AS_KEYS = f"This message of mine has several lines, or a tab, which this terminal would take as keys. {_READ_IT}"
_WITH_TABS = f"This message of mine holds tabs, which its terminal would not keep. {_READ_IT}"
_WITH_TAG = f"This message of mine holds a tag which its terminal would change. {_READ_IT}"
_POINTERS = (_TOO_LONG, _WITH_TABS, _WITH_TAG, _AS_KEYS)
_TAB = re.compile(r"\t[^\n]*\S")  #: one that something follows in its line
_NAME_LIMIT = 40
_UNPROVABLE = ("/", "!")  #: a harness takes these as commands of its own, and no turn takes the text


@dataclass(frozen=True)
class Cleaned:
    """A text without what a terminal would act on, and how many characters went."""

    text: str
    dropped: int


@dataclass(frozen=True)
class Composed:
    """The bytes to paste. `file` holds `content` and must be written (0600) before them; None: all is in the bytes."""

    data: bytes
    file: Path | None = None
    content: str = ""


def clean(text: str) -> Cleaned:
    """Make line ends LF and drop what is no text: control characters, direction marks, broken surrogates.

    An ESC would end the paste and let the rest act as keys, in every harness and every tmux before 3.7.
    Raises InvalidValue if nothing is left.
    """
    lines = in_lines(text)
    kept = plain(lines)
    dropped = len(lines) - len(kept)
    if not seen(kept).strip():
        what = "only characters that cannot be seen" if kept.strip() else "nothing"
        what = f"only control characters ({dropped})" if dropped else what
        raise InvalidValue(f"the message is empty: it holds {what}", "give it some text")
    return Cleaned(kept, dropped)


def defused(text: str) -> str:
    """Return the text with what looks like a frame of ours as a quotation: `(quoted: alice via cli #k3f9x2)`.

    It is looked for in the text as a program may show it: Claude Code drops what has no width, and then would stand
    there what does not stand here.
    """
    text = in_lines(text)
    for _ in range(_NESTED):
        broken = _BRACKETED.sub(_quotation, text)
        if broken == text:
            return text
        text = broken  # what stood around a frame may be one, too
    return text.translate(_ROUND)


def _quotation(found: re.Match[str]) -> str:
    """Return what is written for a text in brackets: itself, unless a model could take it for a frame of ours."""
    folded = _folded(found["inner"])
    if len(folded) > _LONGEST_FRAME:
        return found[0]
    named = _NAMED.search(folded) is not None
    begins = named and ("#" in folded or (_begins_line(found) and not _LINK.match(found.string, found.end())))
    return f"(quoted: {found['inner'].strip()})" if begins or _MARKED.search(folded) else found[0]


def _begins_line(found: re.Match[str]) -> bool:
    """Return whether no word stands before it in its line: a list's dash or number, a quote's mark are none."""
    text, at = found.string, _before_signs(found.string, found.start())
    number = re.search(r"(?<!\w)\w{1,3}\Z", text[max(0, at - 4) : at]) if text[at : at + 1] in (".", ")") else None
    at = _before_signs(text, at - len(number[0])) if number else at
    return at == 0 or text[at - 1] == "\n"


def _before_signs(text: str, at: int) -> int:
    """Return where the signs and blanks of a line begin that end there."""
    while at and text[at - 1] != "\n" and not (text[at - 1].isalnum() and alike(text[at - 1])):
        at -= 1
    return at


def _folded(text: str) -> str:
    """Return a text as it looks to a reader: see `alike`; NBSP stands for every odd blank."""
    return "\xa0".join(map(alike, _ODD_BLANK.split(text))).translate(_ALIKE)


@lru_cache(maxsize=64)
def frame_name(name: str) -> str:
    """Return a name that cannot close the frame or forge a marker: one line, no brackets, no `#`, 40 characters."""
    printable = (
        letter if letter.isprintable() and _NOT_IN_A_NAME.isdisjoint(alike(letter)) else " " for letter in seen(name)
    )
    return " ".join("".join(printable).split())[:_NAME_LIMIT].strip() or "somebody"


def head(message: NewMessage) -> str:
    """Return `[alice via cli #k3f9x2]`, `[agent builder #k3f9x2]`, or `[the-loop #k3f9x2]` where there is no way."""
    who, via = frame_name(message.who), frame_name(message.via) if message.via else ""
    if message.via == AGENT_WAY:
        return f"[agent {who} #{message.marker}]"
    return f"[{who} via {via} #{message.marker}]" if via else f"[{who} #{message.marker}]"


def framed(message: NewMessage) -> str:
    """Return the text as the agent gets it, the frame included unless it is raw.

    It ends with a blank or a newline: an `@word` at the end would open a popup that takes the Enter, and a `\\` would
    turn the Enter into a newline. Raises InvalidValue if there is no text.
    """
    whole = clean(message.text).text if message.raw else f"{head(message)} {body(message)}"
    return whole if whole.endswith((" ", "\n")) else f"{whole} "


def body(message: NewMessage) -> str:
    """Return the text as it stands behind its frame, or in its file. Raises InvalidValue if there is none."""
    text = clean(message.text).text
    return text if message.raw else defused(text)


def compose(message: NewMessage, traits: Traits, folder: Path) -> Composed:
    """Return what to paste for a message into a harness with these traits.

    What is longer than the harness takes inline, several lines where it knows no bracketed paste, and tabs and tags
    that it would not keep, go to a file in the session's folder that the pasted line asks to read. Raises InvalidValue
    if there is no text, ValueError for a harness that is not reached by the keyboard.
    """
    if traits.paste is PasteStyle.KEYLESS:
        raise ValueError("this harness takes no keys: its adapter delivers")
    whole = framed(message)
    if traits.paste is not PasteStyle.BRACKETED:
        line = whole.rstrip("\n")
        plain = line if line.endswith(" ") else f"{line} "
        if "\n" in line or "\t" in line:
            return _by_file(message, traits, file_of(message.id, folder), _AS_KEYS)
        if len(plain.encode()) <= traits.inline_limit:
            return Composed(plain.encode())
    elif len(whole.encode()) <= traits.inline_limit and (pieces := pieces_of(whole, traits)) is not None:
        changed = "" if message.raw else _changed(whole, traits)
        if not changed:
            return Composed(_bracketed(pieces))
        return _by_file(message, traits, file_of(message.id, folder), changed)
    return _by_file(message, traits, file_of(message.id, folder))


def _changed(text: str, traits: Traits) -> str:
    """Return the line that says what of the text the harness would change, "" where it keeps all."""
    if not traits.keeps_tabs and _TAB.search(text):
        return _WITH_TABS
    tags = "|".join(map(re.escape, traits.own_tags))
    return _WITH_TAG if tags and re.search(rf"<[\s/\\]*(?:{tags})", text, re.IGNORECASE) else ""


def at_terminal(traits: Traits, line_limit: int | None, brackets: bool | None) -> Traits:
    """Return the traits as the terminal has them now, of a harness that proves nothing of what it read.

    `line_limit`: how many bytes of a line its terminal keeps (canonical mode), None where the program reads every key
    itself. A program that reads lines, or has not switched bracketed paste on, would take the markers for text. Where
    tmux does not tell (`brackets` None) there are none, unless the operator has ordered them.
    """
    if traits.evidence or traits.paste is PasteStyle.KEYLESS:
        return traits
    if line_limit is not None:
        return replace(traits, paste=PasteStyle.PLAIN, inline_limit=min(traits.inline_limit, line_limit))
    ordered = traits.paste is PasteStyle.BRACKETED and brackets is None
    wanted = traits.paste is not PasteStyle.PLAIN and (brackets or ordered)
    return replace(traits, paste=PasteStyle.BRACKETED if wanted else PasteStyle.PLAIN)


def file_of(message_id: str, folder: Path) -> Path:
    """Return the file in the session's folder that holds the message's text, where one does."""
    return folder / f"message-{message_id}.txt"


def pointer_to(message: NewMessage, file: Path, why: str = _TOO_LONG) -> str:
    """Return what is pasted for a message whose text is in the file; a raw one has no frame there either."""
    own = "" if message.raw and message.kind is not Kind.BOOT else f"{_expected(message)[0]} "
    return f"{own}{why} {file} : all that it says is mine, as if I had typed it here. "


def _by_file(message: NewMessage, traits: Traits, file: Path, why: str = _TOO_LONG) -> Composed:
    pointer = pointer_to(message, file, why)
    pieces = pieces_of(pointer, traits) or (pointer,)
    data = _bracketed(pieces) if traits.paste is PasteStyle.BRACKETED else pointer.encode()
    return Composed(data, file, body(message))


def _bracketed(pieces: tuple[str, ...]) -> bytes:
    """Return the pieces as pastes of their own, back to back: what comes between two would be a key."""
    return b"".join(PASTE_START + piece.encode() + PASTE_END for piece in pieces)


def provable(message: NewMessage, traits: Traits) -> bool:
    """Return whether the harness's records can show that a turn took the message.

    A raw `/command` or `!command` becomes no turn of its own: no hook reports it.
    """
    return traits.evidence and not (message.raw and seen(message.text).lstrip().startswith(_UNPROVABLE))


def takes(prompt: str, message: NewMessage) -> bool:
    """Return whether a prompt holds the message: its own frame begins a line, and its text follows.

    Harnesses join queued messages by newlines, wrap a long one in lines of their own, trim prompts, show a tab as four
    blanks and compose accents (Claude Code 2.1.197, 2.1.332), and drop what has no width (2.1.332). A raw message is
    known by its lines, before any frame of ours.
    """
    if not message.raw and message.marker not in prompt:
        return False  # as for most messages, and a prompt may be long
    whole = seen(prompt)
    if message.raw and message.kind is not Kind.BOOT:
        return f"\n{_comparable(message.text)}\n" in f"\n{_comparable(_before_frames(whole))}\n"
    own, beginnings = _expected(message)
    for line in re.finditer(f"^{re.escape(seen(own))}", whole, re.MULTILINE):
        rest = _bare(whole[line.end() :])
        if any(rest.startswith(_bare(beginning)) for beginning in beginnings):
            return True
    return False


def is_pasted(parts: Sequence[str], message: NewMessage) -> bool:
    """Return whether a part that a model got as pasted is of the message: its beginning, or what follows that."""
    if not parts:
        return False
    whole = "".join(seen(framed(message)).split())
    return any(takes(part, message) or (bool(_bare(part)) and _bare(part) in whole) for part in parts)


def _expected(message: NewMessage) -> tuple[str, tuple[str, ...]]:
    """Return the message's frame, and how its text may begin: as it is, or where a file is named in its place."""
    if message.kind is Kind.BOOT:
        own, _, text = message.text.partition("]")
        return f"{own}]", (text, BOOT_POINTER, *_POINTERS)
    return head(message), (body(message), *_POINTERS)


def _bare(text: str) -> str:
    """Return the beginning of a text as it is compared: without blanks, and without an escape of the harness's tags."""
    return "".join(_unescaped(seen(text.lstrip()[: 50 * _BEGINNING])).split())[:_BEGINNING]


def _before_frames(prompt: str) -> str:
    found = _HEAD.search(prompt)
    return prompt[: found.start()] if found else prompt


def _comparable(text: str) -> str:
    return _unescaped(seen(text)).replace("\t", "    ").strip()


def _unescaped(text: str) -> str:
    """Return the text without the escape that Claude Code writes into its own tags (`<\\pasted_content`)."""
    return text.replace("<\\", "<")
