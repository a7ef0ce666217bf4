"""How secrets look: by a form of their own, or by the name that stands before a value that looks like one.

A name alone makes no secret. What follows it is judged: a call, a path, a variable, an attribute, a number or a word is
none, so that code which only speaks of a secret is still that code afterwards.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from core.values import dataclass

_KEYS = r"(?:api[_-]?key|apikey|access[_-]?key|secret[_-]?key|private[_-]?key|signing[_-]?secret|client[_-]?secret"
_KEYS += r"|secret|password|passwd|passphrase|auth[_-]?token|access[_-]?token|refresh[_-]?token|token)"
_CHOSEN = re.compile(r"pass(?:word|wd|phrase)$", re.IGNORECASE)  #: a person chooses these, a machine makes the others

# ---------------------------------------------------------------- words and what is none

_PART = re.compile(r"[A-Za-z0-9]+")
#: one word of a name: `Key`, `HTTP`, `42`, `k8s`
_WORD = re.compile(r"[A-Za-z][0-9]{1,2}[a-z](?![a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
#: numbers in names of algorithms, formats and types: sha256, base64, ed25519, x509, rsa4096, iso8601
_COMMON = re.compile(r"(?:16|32|64|128|192|256|384|512|1024|2048|3072|4096|25519|509|8601)$")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}$")
_LONGEST_NUMBER = 3  #: digits of a number in a name of several words, as in `user_042`
_SHORT = 6  #: characters; numbers may stand anywhere in a shorter part: s3v4, log4j2
#: for each letter those that often follow it within a word: nine in ten of the pairs in names of programs
_FOLLOWING = {
    "a": "bcdfgiklmnprstuvwxy", "b": "aceilorsuy", "c": "acdehiklmoprstuy", "d": "abcdefiloprstu",
    "e": "abcdefgilmnopqrstvwxy", "f": "acdefilorstu", "g": "aehilnorsu", "h": "aeiort", "i": "abcdefglmnoprstvxz",
    "j": "aeosu", "k": "aeis", "l": "acdeilopstuy", "m": "abdeilmopsuv", "n": "acdefgiklmnoprstuv",
    "o": "abcdfgiklmnoprstuvwx", "p": "acdehiloprstuy", "q": "u", "r": "abcdefgiklmnoprstuvy",
    "s": "acdefhiklmnoprstuwy", "t": "abcdefhilmnoprstuy", "u": "abcdefilmnprst", "v": "aeimx", "w": "aeiors",
    "x": "cemptv", "y": "npst", "z": "e",
}  # fmt: skip
_READABLE = 0.62  #: of the pairs of neighbours; a drawn value has about a quarter


def _reads(part: str, *, alone: bool) -> tuple[int, int] | None:
    """Return how many pairs of neighbours of letters and digits read as a word does, and how many there are.

    None where its numbers alone show that it is drawn. `alone`: it is all of its value, not one part of several.
    """
    words = _WORD.findall(part)
    numbers = [word for word in words if word.isdigit()]
    if len(part) > _SHORT and len(numbers) > 1:
        return None
    if not all(_is_usual(number, alone=alone) for number in numbers):
        return None
    good, pairs = 0, len(words) - 1
    for word in words:
        if word.isalpha():
            lower = word.lower()
            good += sum(after in _FOLLOWING[before] for before, after in pairwise(lower))
            pairs += len(word) - 1
    return good, pairs


def _is_usual(number: str, *, alone: bool) -> bool:
    if len(number) <= (1 if alone else _LONGEST_NUMBER) or _COMMON.match(number):
        return True
    return not alone and _YEAR.match(number) is not None


def _are_words(value: str) -> bool:
    """Return whether the value reads as words: `next_token`, `form.csrf_token.v2`, `db-credentials-2`."""
    parts = _PART.findall(value)
    good = pairs = 0
    for part in parts:
        read = _reads(part, alone=len(parts) == 1)
        if read is None:
            return False
        good, pairs = good + read[0], pairs + read[1]
    return good >= pairs * _READABLE


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9][0-9._,:/xT+-]*(?:Z|e[0-9]+|px|ms|[smhd]|[kmgt]?i?b?)?", re.IGNORECASE)
#: what stands for a value that is put in later: $NAME, ${NAME}, {name}, %NAME%, <your token>, ***
_VARIABLE = re.compile(r"\$?\{[^{}]*\}+|(?:^|(?<=[-_./:@+]))\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z0-9_]+%|<[^<>]*>|\*{3,}")
_ROOT = re.compile(r"(?:~|\.{1,2}|\$[A-Za-z_][A-Za-z0-9_]*|[A-Za-z]:|@)?/|[A-Za-z]:\\")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")  #: a number of 64 bits; longer ones may be keys
#: of an object or a module: self._pw1, rust_openssl.hpke.MLKEM768X25519PrivateKey
_ATTRIBUTE = re.compile(
    r"(?:self|this|cls)(?:\.[A-Za-z_][A-Za-z0-9_]*)+|[a-z_]+(?:\.[a-z_]+)*\.[A-Z][A-Za-z0-9]*[A-Z][a-z]{2,}"
)
_CODE = re.compile(r"[A-Z0-9]+(?:-[A-Z0-9]+)+")  #: of a licence or of a recovery: ABCD-1234-EFGH-5678
_RUNS_SOMETHING = re.compile(r"\$\(|\$\{|`")  #: in a shell, even between quotation marks
_SHORTEST, _LONGEST = 8, 4096  #: characters of a value; of a longer one the beginning is judged


def _is_path(value: str) -> bool:
    """Return whether the value names a file, a folder or a resource below another one."""
    if _ROOT.match(value):
        first = value.removeprefix("/").partition("/")[0]
        return _are_words(value) or (_are_words(first) and not _BASE64.fullmatch(value))
    return "/" in value and "//" not in value and _are_words(re.sub(r"(?<![^/])[0-9]+(?![^/])", "", value))


def names_a_file(value: str) -> bool:
    """Return whether the value is a path from the root or from somebody's home, every part of which reads as words."""
    return value.startswith(("/", "~/")) and _are_words(value)


def _is_drawn(value: str) -> bool:
    """Return whether a machine drew it: some part of it reads as no word."""
    return not _are_words(value)


def _is_secret(name: str, value: str, *, literal: bool) -> bool:
    """Return whether the value of something that is called so looks like a secret.

    `literal`: it stands between quotation marks, or in a line of variables, so that it is no name in a program.
    """
    value = value[:_LONGEST]
    if literal and _RUNS_SOMETHING.search(value):
        return False
    kept = _VARIABLE.sub("", value)
    if len(kept) < _SHORTEST or _is_path(value):
        return False
    if not literal and _ATTRIBUTE.fullmatch(value):
        return False
    if _UUID.fullmatch(value):
        return True
    chosen = _CHOSEN.search(name) is not None
    if _NUMBER.fullmatch(value) or _HEX.fullmatch(value):
        return chosen and value.isdigit()
    if not any(letter.isdigit() for letter in kept):
        return len(kept) >= 12 and _is_drawn(kept)
    if chosen:
        return literal or _is_drawn(kept) or not (_DOTTED.fullmatch(value) or _is_variable(value))
    if _CODE.fullmatch(value) and any(part.isdigit() for part in value.split("-")):
        return True
    several = len(_PART.findall(value)) > 1
    return _is_drawn(kept) or (literal and not several)


def _is_variable(value: str) -> bool:
    """Return whether it is a name such as `db1_password`, and not `blue_horse_99`."""
    last = value.rpartition("_")[2]
    return _SNAKE.fullmatch(value) is not None and not (last.isdigit() and len(last) > 1)


# ---------------------------------------------------------------- the looks


@dataclass(frozen=True)
class Look:
    """How some secrets look. The group `keep` of what is found stays, and so does what a look-around sees.

    `judge` has the last word about what was found. `lines`: it may be found over several lines.
    """

    pattern: re.Pattern[str]
    judge: Callable[[re.Match[str]], bool] | None = None
    lines: bool = False


def _is_called(found: re.Match[str]) -> bool:
    """Return whether what follows makes it a name in a program: it is called, or one of its items is taken."""
    return found.string[found.end() : found.end() + 1] in ("(", "[")


def _named(found: re.Match[str]) -> bool:
    quote = found["quote"] or ""
    variable = found["name"].isupper() and found["keep"].endswith(f"{found['name']}=")
    if not quote and _is_called(found):
        return False
    return _is_secret(found["name"], found["value"], literal=bool(quote) or variable)


def _drawn(found: re.Match[str]) -> bool:
    return not _is_called(found) and _is_drawn(found["value"][:_LONGEST])


def _written(found: re.Match[str]) -> bool:
    return not _is_called(found) and sum(map(str.isalnum, found["value"])) >= _SHORTEST


def _no_variable(found: re.Match[str]) -> bool:
    return len(_VARIABLE.sub("", found["value"])) > 0 or found["value"].startswith("<")


_B64 = "[A-Za-z0-9+/=]"
#: where a name may begin: at a word, at one within `apiToken`, and within a variable of a shell, as in PGPASSWORD=
_BEGINS = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z_]{5,20}=))"
_DRAWN_LINE = rf"(?=[a-z0-9+/=]*[A-Z])(?=[A-Z0-9+/=]*[a-z])(?=[A-Za-z+/=]*[0-9]){_B64}{{16,}}+"
#: between the lines of a key: their ends, also as an escape, and what a program puts around them or counts them by
_BETWEEN = r"(?:\s|\\[nrt]?|[\"',+|│┃║>*#→:]|-(?!-)|[0-9]{1,6}(?=[→:|\t])){1,200}+"
_HEADERS = rf"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[A-Za-z0-9 ,.()@:/-]{{0,100}}{_BETWEEN})*"


@cache
def looks() -> tuple[Look, ...]:
    """Return all looks, in the order in which they are looked for; compiled at the first call."""
    return (
        Look(  # of a key that was cut off, what is there of its lines; nothing else that stands below its heading
            re.compile(
                rf"-----BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----{_BETWEEN}{_HEADERS}{_DRAWN_LINE}"
                rf"(?:{_BETWEEN}{_B64}{{16,}}+)*"
                rf"(?:(?:{_BETWEEN}{_B64}{{1,15}})?(?:{_BETWEEN}={_B64}{{4}})?{_BETWEEN}-----END (?P=label)-----)?"
            ),
            lines=True,
        ),
        Look(
            re.compile(r"(?<![A-Za-z0-9])x(?:ox[a-z][.-]|app[.-](?=[0-9]))[A-Za-z0-9][A-Za-z0-9._%-]{3,}")
        ),  # Slack's tokens
        Look(
            re.compile(r"(?P<keep>wss://[^\s\"'<>]{0,300}[?&]ticket=)(?=[A-Za-z0-9])[^&\s\"'<>]+")
        ),  # that of a Socket Mode URL
        Look(re.compile(r"(?<=ticket=)(?P<value>[A-Za-z0-9._~+/=%-]{16,})"), _drawn),
        Look(re.compile(r"(?<![A-Za-z0-9_-])sk-(?P<value>(?:[A-Za-z0-9]+-)*[A-Za-z0-9_-]{16,})"), _drawn),
        Look(
            re.compile(
                r"(?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})"
            )
        ),
        Look(re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
        Look(
            re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")
        ),  # a JSON web token
        Look(
            re.compile(
                r"(?P<keep>(?i:\bauthorization\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?(?:bearer|basic)[ \t]+))"
                r"(?P<value>[A-Za-z0-9._~+/=-]{8,})"
            ),
            _written,
        ),
        Look(  # elsewhere these are words: what follows has a digit, padding, or a capital within a word, as base64 has
            re.compile(
                r"(?P<keep>(?i:\b(?:bearer|basic)[ \t]+))(?!\[redacted\])(?=[A-Za-z0-9._~+/-]*(?:[0-9=]|[a-z][A-Z]))"
                r"(?P<value>[A-Za-z0-9._~+/=-]{12,})"
            ),
            lambda found: _drawn(found) or found[0].endswith("="),
        ),
        Look(
            re.compile(
                r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/@:\"'<>]*:)(?!\[redacted\]@)(?P<value>[^\s/@\"'<>]+)"
                r"(?=@(?!sha(?:256|512):))"
            ),
            _no_variable,
        ),
        Look(  # in the place of a user's name
            re.compile(r"(?P<keep>\b[a-z][a-z0-9+.-]{1,20}://)(?P<value>[A-Za-z0-9_-]{16,})(?=(?::[^\s/@\"'<>]*)?@)"),
            _drawn,
        ),
        Look(  # an option of a command
            re.compile(
                rf"(?P<keep>(?<![\w-])--?(?:[a-z]+-)*(?P<name>(?i:{_KEYS}))[ \t]+(?P<quote>[\"'])?)(?!\[redacted\])"
                r"(?P<value>(?(quote)[^\s\"'`\\]{8,}|[A-Za-z0-9._~+/=%@!#$^*-]{8,}))"
            ),
            _named,
        ),
        Look(
            re.compile(
                rf"(?P<keep>{_BEGINS}(?P<name>(?i:{_KEYS}))(?:\\?[\"'`]|\*\*?|__?(?![A-Za-z0-9]))?"
                r"(?:[ \t]*:[ \t]*[A-Za-z_][A-Za-z0-9_.|\[\], ]{0,40}(?==))?[ \t]*(?::=|=>|={1,3}|:)"
                r"(?:(?:\*\*?|__?)(?=[ \t]))?[ \t]*"
                r"(?:[bBrRuUfF]{1,2}(?=[\"']))?(?P<quote>\\?[\"'`])?)(?!\[redacted\])"
                r"(?P<value>(?(quote)[^\s\"'`\\]{8,}|[A-Za-z0-9._~+/=%@!#$^*-]{8,}))"
            ),
            _named,
        ),
    )
