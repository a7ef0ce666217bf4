"""Takes secrets out of what leaves this machine or is logged: by the values that we know, and by how secrets look.

What stands around a secret is kept. Nothing that is taken out can be found again in the result, and a second pass
changes nothing.
"""

import base64
import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

from core.secretlooks import Look, looks, names_a_file
from core.values import dataclass

HIDDEN = "[redacted]"
CUT = "…"  #: what stands behind a text of ours that was cut
SHORTEST = 8  #: characters; a shorter value would be found in innocent words
_SHORTEST_BROKEN = 12  #: where its lines' ends and beginnings may be words that stand below one another
_FRAME = " \t\r|│┃║"  #: what a program may put between the end of one line's text and the beginning of the next one's
_NAMED = re.compile(r"(?:^THE_LOOP_|TOKEN$|SECRET$|PASSWORD$|PASSWD$|API_?KEY$|(?:ACCESS|PRIVATE|SECRET)_KEY$)")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  #: which no text has, whatever its encoding
_OPEN = frozenset({"THE_LOOP_INSTANCE", "THE_LOOP_CONFIG", "THE_LOOP_MCP_TOKEN_FILE", "THE_LOOP_CRASH_AT"})

_PIECE = 64 * 1024  #: characters that are looked through at once: `re` lets no other thread run meanwhile


@dataclass(frozen=True)
class Redacted:
    """A text without secrets, how many were taken out of it, and how many characters they had."""

    text: str
    count: int = 0
    characters: int = 0


class _Hiding:
    """Counts what is taken out of one text."""

    def __init__(self) -> None:
        self.count = self.characters = 0

    def hide(self, characters: int) -> str:
        """Count a value of so many characters, and return what stands in its place."""
        self.count += 1
        self.characters += characters
        return HIDDEN

    def known(self, found: re.Match[str]) -> str:
        """Return what stands in the place of a value that is known."""
        return self.hide(len(found[0]))

    def by(self, look: Look) -> Callable[[re.Match[str]], str]:
        """Return what replaces that which looks so."""

        def shown(found: re.Match[str]) -> str:
            if look.judge is not None and not look.judge(found):
                return found[0]
            keep = found.groupdict().get("keep") or ""
            return f"{keep}{self.hide(len(found[0]) - len(keep))}"

        return shown


def _by_lines(look: re.Pattern[str], shown: Callable[[re.Match[str]], str], text: str) -> str:
    """Substitute what is found within lines, a piece of the text after the other."""
    if len(text) <= _PIECE:
        return look.sub(shown, text)
    pieces, start = [], 0
    while start < len(text):
        end = text.find("\n", start + _PIECE) + 1 or len(text)
        pieces.append(look.sub(shown, text[start:end]))
        start = end
    return "".join(pieces)


class Redactor:
    """Knows some secrets by value. Printing one shows none of them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Take the secrets themselves; one that is too short to be told from a word is left to the patterns."""
        known = {form for value in values for form in _forms(value.strip())}
        longest_first = sorted(known, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if known else None
        self._by_head: dict[str, list[str]] = {}
        for form in longest_first:
            self._by_head.setdefault(form[:SHORTEST], []).append(form)
        heads = "|".join(map(re.escape, self._by_head))
        self._heads = re.compile(f"(?=({heads}))")  # they may overlap
        self._longest = max(map(len, longest_first), default=0)
        self._lines = any("\n" in form for form in longest_first)
        long = [re.escape(form) for form in longest_first if len(form) >= _SHORTEST_BROKEN]
        self._long = re.compile("|".join(long)) if long else None
        self._raw = [re.escape(raw) for form in longest_first for raw in _raw_forms(form)]

    def __repr__(self) -> str:
        return "Redactor()"

    def redact(self, text: str) -> str:
        """Return the text without secrets, `[redacted]` in the place of each."""
        return self.counted(text).text

    def counted(self, text: str) -> Redacted:
        """Return the same, and how much was taken out."""
        hiding = _Hiding()
        if self._known is not None:
            known = hiding.known
            text = self._known.sub(known, text) if self._lines else _by_lines(self._known, known, text)
            text = self._without_broken(self._without_beginnings(text, hiding), hiding)
        for look in looks():
            shown = hiding.by(look)
            text = look.pattern.sub(shown, text) if look.lines else _by_lines(look.pattern, shown, text)
        return Redacted(text, hiding.count, hiding.characters)

    def _without_broken(self, text: str, hiding: _Hiding) -> str:
        """Take out the known values that a full-screen program has broken over lines, and leave the lines' frames.

        Nothing but the value's own characters is taken for it, in their order; between them may stand the end of a
        line, blanks and a box's borders.
        """
        if self._long is None or "\n" not in text:
            return text
        lines = text.split("\n")
        unbroken = "".join(line.strip(_FRAME) for line in lines)
        if self._long.search(unbroken) is None:
            return text
        places: list[int] = []  # in `text`, of each character of `unbroken`
        start = 0
        for line in lines:
            begins = start + len(line) - len(line.lstrip(_FRAME))
            places += range(begins, begins + len(line.strip(_FRAME)))
            start += len(line) + 1
        shown, end = [], 0
        for found in self._long.finditer(unbroken):
            own = places[found.start() : found.end()]
            frames = [text[before + 1 : after] for before, after in pairwise(own)]
            shown += [text[end : own[0]], hiding.hide(len(own)), *frames]
            end = own[-1] + 1
        return "".join([*shown, text[end:]])

    def _without_beginnings(self, text: str, hiding: _Hiding) -> str:
        """Take out what is left of a known value where a text was cut within it: its beginning, the mark behind it."""
        if CUT not in text:
            return text
        starts: dict[int, int] = {}  # by the place of a mark: where the longest beginning before it starts
        for found in self._heads.finditer(text):
            start = found.start()
            cut = text.find(CUT, start + SHORTEST, start + self._longest)
            beginning = text[start:cut] if cut >= 0 else ""
            if beginning and any(form.startswith(beginning) for form in self._by_head[found[1]]):
                starts.setdefault(cut, start)
        shown, end = [], 0
        for cut, start in sorted(starts.items()):
            shown += [text[end:start], hiding.hide(cut - start)]
            end = cut
        return "".join([*shown, text[end:]])

    def redact_file(self, content: bytes) -> bytes | None:
        """Return a file's content without secrets; None where it holds a known one that cannot be taken out.

        Text is redacted in its own encoding, all else of it kept byte for byte. What is no text is only looked through
        for the known values, as UTF-8, UTF-16, UTF-32 or Latin-1 has them.
        """
        return self.counted_file(content)[0]

    def counted_file(self, content: bytes) -> tuple[bytes | None, int]:
        """Return the same, and how many values were taken out."""
        encoding, count = _encoding_of(content), 0
        if encoding is not None:
            redacted = self.counted(content.decode(encoding))
            content, count = redacted.text.encode(encoding) if redacted.count else content, redacted.count
        return None if self._raw and re.search(b"|".join(self._raw), content) else content, count

    def redact_all(self, document: Any) -> Any:
        """Return a JSON document with every text in it redacted; the names of its members stay."""
        if isinstance(document, str):
            return self.redact(document)
        if isinstance(document, Mapping):
            return {name: self.redact_all(value) for name, value in document.items()}
        if isinstance(document, list | tuple):
            return [self.redact_all(value) for value in document]
        return document


def redactor_of(environ: Mapping[str, str], names: Iterable[str] = ()) -> Redactor:
    """Return a redactor for the variables of these names, for ours, and for all that are called a key or a secret.

    One that is only called so and holds a path names the file of a secret.
    """
    called = {name for name, value in environ.items() if _NAMED.search(name) and not names_a_file(value)}
    return Redactor(environ[name] for name in (called | set(names)) - _OPEN if name in environ)


def _encoding_of(content: bytes) -> str | None:
    """Return the encoding in which the bytes are a text that comes back as the same bytes; None for a binary.

    UTF-16 and UTF-32 are known by their byte order mark, UTF-16 also by every other byte being zero.
    """
    marks = (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    )
    found = next((name for mark, name in marks if content.startswith(mark)), None)
    if found is None and b"\0" in content:
        first, second = content[::2].count(0), content[1::2].count(0)
        if max(first, second) * 4 < len(content):
            return None
        found = "utf-16-le" if second > first else "utf-16-be"
    if found is not None:
        return found if _decodes(content, found) and not _CONTROLS.search(content.decode(found).encode()) else None
    if _decodes(content, "utf-8"):
        return "utf-8"
    return None if _CONTROLS.search(content) else "latin-1"


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        return content.decode(encoding).encode(encoding) == content
    except UnicodeError:
        return False


def _raw_forms(form: str) -> Iterator[bytes]:
    """Yield the bytes that a text is in each encoding that has it."""
    for encoding in ("utf-8", "latin-1", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        with suppress(UnicodeEncodeError):
            yield form.encode(encoding)


def _forms(value: str) -> set[str]:
    """Return the value as it may be written: as it is, in a URL, in base64 at each of its three alignments."""
    if len(value) < SHORTEST:
        return set()
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value, quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * shift + raw).decode().rstrip("=")
            # the first and last character also carry bits of what stands beside the value
            forms.add(text[(shift * 8 + 5) // 6 : len(text) - (1 if (len(raw) + shift) % 3 else 0)])
    return {form for form in forms if len(form) >= SHORTEST}
