"""Remove secrets from everything that leaves this machine or is logged.

A secret is found by its value, where we know the value, and otherwise by its form: a form of its own (such as a token's
prefix), or a name like `password` before a value that looks like a secret. The value is always judged. A call, a path,
a variable, an attribute, a number or a word is not a secret, so code that only mentions secrets stays as it is.

The text around a secret is kept. A removed value cannot be found again in the result, and a second pass changes
nothing.
"""

import base64
import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus

from core.base.reading import Cut, Reading, found_in, joined, readings, without
from core.base.text import unstyled
from core.base.values import dataclass

_KEYS = r"(?:api[_-]?key|apikey|access[_-]?key|secret[_-]?key|private[_-]?key|signing[_-]?secret|client[_-]?secret"
_KEYS += r"|secret|password|passwd|pwd|passphrase|auth[_-]?token|access[_-]?token|refresh[_-]?token|token)"
#: a person chooses these, a machine makes the others
_CHOSEN = re.compile(r"(?:pass(?:word|wd|phrase)|pwd)$", re.IGNORECASE)

# ---------------------------------------------------------------- words and what is none

_PART = re.compile(r"[A-Za-z0-9]+")
#: one word of a name: `Key`, `HTTP`, `42`, `k8s`
_WORD = re.compile(r"[A-Za-z][0-9]{1,2}[a-z](?![a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
#: numbers in names of algorithms, formats and types: sha256, base64, ed25519, x509, rsa4096, iso8601
_COMMON = re.compile(r"(?:16|32|64|128|192|256|384|512|1024|2048|3072|4096|25519|509|8601)$")
_LONGEST_DATE = 10  #: digits; seconds since 1970, too
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
#: in a regular expression: a class with a range in it, a number of times, an end
_PATTERN = re.compile(r"\[\^?[^\[\]]*[A-Za-z0-9]-[A-Za-z0-9][^\[\]]*\]|\{[0-9]+(?:,[0-9]*)?\}")
_INNER = re.compile(r"[a-z]+=(?=[A-Za-z0-9])")  #: an option of an option's value: --secret id=npmrc
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


#: in values that stand for a secret which is yet to come, or that a service has before anybody chose one
_PLACEHOLDERS = frozenset({
    "a", "access", "admin", "administrator", "an", "any", "api", "app", "auth", "bar", "baz", "changeme", "change",
    "client", "db", "default", "demo", "dev", "docker", "dummy", "empty", "example", "fake", "foo", "guest", "here",
    "insert", "is", "key", "local", "localhost", "me", "mock", "my", "mysql", "name", "none", "not", "null", "of",
    "pass", "passwd", "password", "placeholder", "postgres", "postgresql", "prod", "qux", "redis", "replace", "root",
    "sample", "secret", "set", "staging", "test", "testing", "tests", "the", "this", "to", "todo", "token", "user",
    "value", "with", "your",
})  # fmt: skip


def _is_guessable(value: str) -> bool:
    """Return whether a value may stand in a text by chance: a short one, a date, a word, several that hold a place.

    `postgres`, `development`, `20260301`, `your-api-key-here`, `admin123`; not `hunter22`, nor a passphrase.
    """
    if len(value) < SHORTEST or value.isdigit():
        return len(value) <= _LONGEST_DATE
    if value.isalpha() and value.isascii() and len(value) < 2 * SHORTEST:
        return _are_words(value)
    words = [word.lower() for word in _WORD.findall(value)]
    known = [word in _PLACEHOLDERS or (word.isdigit() and len(word) <= _LONGEST_NUMBER + 1) for word in words]
    return all(known) and not _PLACEHOLDERS.isdisjoint(words)


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
    kept = _VARIABLE.sub("", _PATTERN.sub("", value))
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
    value = found["value"]
    if found["keep"].startswith("-") and (inner := _INNER.match(value)):
        value = value[inner.end() :]
    variable = found["name"].isupper() and found["keep"].endswith(f"{found['name']}=")
    if not quote and _is_called(found):
        return False
    return _is_secret(found["name"], value, literal=bool(quote) or variable)


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
        ),  # a chat's tokens: xoxb-, xapp-
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
        Look(  # as their makers document them: Stripe, Hugging Face, npm, PyPI, Google, SendGrid, DigitalOcean
            re.compile(
                r"(?<![A-Za-z0-9_-])(?:(?:[sr]k_(?:live|test)|whsec|hf)_[A-Za-z0-9]{24,}|npm_[A-Za-z0-9]{36}"
                r"|pypi-[A-Za-z0-9_-]{60,}|AIza[A-Za-z0-9_-]{35}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"
                r"|do[opr]_v1_[0-9a-f]{64})(?![A-Za-z0-9_-])"
            )
        ),
        Look(  # Shopify, Docker Hub, Vault, Terraform, Google's OAuth, Grafana, Linear, Groq, xAI, Replicate
            re.compile(
                r"(?<![A-Za-z0-9_-])(?:shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dckr_pat_[A-Za-z0-9_-]{27,}"
                r"|hv[sbr]\.[A-Za-z0-9_-]{24,}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}|ya29\.[A-Za-z0-9_-]{40,}"
                r"|gls?a_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|lin_api_[A-Za-z0-9]{40}|gsk_[A-Za-z0-9]{48,}|xai-[A-Za-z0-9]{70,}"
                r"|r8_[A-Za-z0-9]{37})(?![A-Za-z0-9_-])"
            )
        ),
        Look(  # Tailscale, Figma, Sentry, LangSmith, Perplexity, Supabase, Postman, Atlassian, 1Password, age
            re.compile(
                r"(?<![A-Za-z0-9_-])(?:tskey-[a-z]{1,20}-[A-Za-z0-9]{8,40}-[A-Za-z0-9]{20,}|figd_[A-Za-z0-9_-]{40,}"
                r"|sntry[su]_[A-Za-z0-9+/=_-]{60,}|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|pplx-[A-Za-z0-9]{48}"
                r"|sbp_[0-9a-f]{40}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|ATATT3[A-Za-z0-9_=-]{150,}|ops_eyJ[A-Za-z0-9_=-]{200,}"
                r"|AGE-SECRET-KEY-1[A-Z0-9]{58})(?![A-Za-z0-9_-])"
            )
        ),
        Look(re.compile(r"(?P<keep>\b(?:AccountKey|SharedAccessKey)=)(?P<value>[A-Za-z0-9+/]{40,}={0,2})")),  # Azure
        Look(  # the address of a webhook is all that a caller needs
            re.compile(
                r"(?P<keep>https://(?:hooks\.[a-z]{1,20}\.com/(?:services|workflows|triggers)/\w{1,40}/\w{1,40}/"
                r"|(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/[0-9]{1,30}/))(?P<value>[A-Za-z0-9_/-]{16,})"
            ),
            _drawn,
        ),
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
        Look(  # curl's user
            re.compile(
                r"(?P<keep>\bcurl\b[^\n;&|]{0,300}?[ \t](?:-[a-zA-Z]*u|--user|--proxy-user)(?:[ \t]+|=)"
                r"(?P<quote>[\"'])?[^\s:\"'$]{1,100}:)(?!\[redacted\])(?P<value>(?(quote)[^\n\"'`\\]{4,}|[^\s\"'`\\;&|]{4,}))"
            ),
            _no_variable,
        ),
        Look(  # a line of .netrc: its three words may stand on lines of their own
            re.compile(
                r"(?P<keep>\bmachine\s{1,20}\S{1,200}\s{1,20}login\s{1,20}\S{1,200}\s{1,20}password[ \t]{1,20})"
                r"(?!\[redacted\])(?P<value>\S{4,})"
            ),
            _no_variable,
            lines=True,
        ),
        Look(  # a variable of a container: its name and its value are two entries
            re.compile(
                rf"(?P<keep>\bname[\"']?:[ \t]*[\"']?[A-Za-z0-9_]{{0,60}}?(?<![A-Za-z])(?P<name>(?i:{_KEYS}))"
                r"[\"']?,?\s{1,60}[\"']?value[\"']?:[ \t]*(?P<quote>[\"'])?)(?!\[redacted\])"
                r"(?P<value>(?(quote)[^\s\"'`\\]{8,}|[A-Za-z0-9._~+/=%@!#$^*-]{8,}))"
            ),
            _named,
            lines=True,
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
                rf"(?P<keep>{_BEGINS}(?P<name>(?i:{_KEYS}))(?:\\?[\"'`]\]?|\*\*?|__?(?![A-Za-z0-9]))?"
                r"(?:[ \t]*:[ \t]*[A-Za-z_][A-Za-z0-9_.|\[\], ]{0,40}(?==))?[ \t]*(?::=|=>|={1,3}|:)"
                r"(?:(?:\*\*?|__?)(?=[ \t]))?[ \t]*"
                r"(?:[bBrRuUfF]{1,2}(?=[\"']))?(?P<quote>\\?[\"'`])?)(?!\[redacted\])"
                r"(?P<value>(?(quote)[^\s\"'`\\]{8,}|[A-Za-z0-9._~+/=%@!#$^*-]{8,}))"
            ),
            _named,
        ),
    )


HIDDEN = "[redacted]"
CUT = "…"  #: what stands behind a text of ours that was cut
SHORTEST = 8  #: characters; a shorter value would be found in innocent words
_SHORTEST_BROKEN = 12  #: where its lines' ends and beginnings may be words that stand below one another
_FRAME = " \t\r|│┃║"  #: what a program may put between the end of one line's text and the beginning of the next one's
_NAMED = re.compile(r"(?:^THE_LOOP_|TOKEN$|SECRET$|PASSWORD$|PASSWD$|API_?KEY$|(?:ACCESS|PRIVATE|SECRET)_KEY$)")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  #: which no text has, whatever its encoding
_OPEN = frozenset({"THE_LOOP_INSTANCE", "THE_LOOP_CONFIG", "THE_LOOP_MCP_TOKEN_FILE", "THE_LOOP_CRASH_AT"})


@dataclass(frozen=True)
class Redacted:
    """A text without secrets, how many were taken out of it, and how many characters they had."""

    text: str
    count: int = 0
    characters: int = 0


#: signs of a shell: what stands behind one may be run
_SIGN = re.compile(r"[;&|`$()<>{}\\\s\"']")
_RUNS = re.compile(r"[;&|`$()<>{}]")
_PARTS = re.compile(r"[;&|`$()<>{}\s\"']")  #: that, and what ends a word
_LINE = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+=][A-Za-z0-9+/=]{15,}")  #: of a key, and no path from the root
_OPERATORS = (";", "&", "|", "(", ")", "{", "`")  #: a command stands behind it
_RUNNER = re.compile(  #: a word that runs the next one, and its options
    r"(?:^|[\s;&|(){`/])(?:(?:ba|da|k|z|a|fi|c|tc)?sh|\.|source|exec|eval|env|sudo|doas|nohup|xargs|time|command|python[\d.]*"
    r"|perl|ruby|node|deno|bun|php|lua|awk)(?:[ \t]+-[^\s;&|]*)*[ \t]+$"
)
_ENDS = " \t\n;&|`$()<>{}\"'"  #: none of these is in a path, or in an address
_NEAR = 200  #: characters before a value in which a word that runs it is looked for
_BEHIND = re.compile(r"/|\.[A-Za-z]")


def _may_run(found: re.Match[str]) -> bool:
    """Return whether what was found by its form alone may be the name of a program: of a command, or in a path."""
    before = found.string[max(0, found.start() - _LONGEST) : found.start()]
    word = before[max(map(before.rfind, _ENDS)) + 1 :]
    if word.endswith("/") or _BEHIND.match(found.string, found.end()):
        return "://" not in word
    near = before[-_NEAR:]
    return near.rstrip(" \t").endswith(_OPERATORS) or _RUNNER.search(near) is not None


def _looking_so(look: Look, text: str, *, asked: bool) -> Iterator[Cut]:
    """Yield what looks so. `asked`: somebody is to allow what the text says."""
    for found in found_in(look.pattern, text, lines=look.lines):
        if look.judge is not None and not look.judge(found):
            continue
        keep = found.groupdict().get("keep") or ""
        cut = Cut(found.start() + len(keep), found.end(), HIDDEN)
        if not asked:
            yield cut
        elif keep or not _may_run(found):
            yield from _lines_of(text, cut) if look.lines else _beginning(text, cut, _SIGN)


def _beginning(text: str, cut: Cut, signs: re.Pattern[str]) -> Iterator[Cut]:
    """Yield what stands before the first of the signs, if that is long enough for a secret."""
    sign = signs.search(text, cut.start, cut.end)
    if sign is None or sign.start() - cut.start >= SHORTEST:
        yield Cut(cut.start, sign.start() if sign else cut.end, cut.shown)


def _lines_of(text: str, key: Cut) -> Iterator[Cut]:
    """Yield the lines of a key, each by itself, as far as nothing stands between them that runs what follows."""
    sign = _RUNS.search(text, key.start, key.end)
    for line in _LINE.finditer(text, key.start, sign.start() if sign else key.end):
        yield Cut(line.start(), line.end(), HIDDEN)


class Redactor:
    """Knows some secrets by value. Printing one shows none of them."""

    def __init__(self, values: Iterable[str] = (), guessable: Mapping[str, str] = MappingProxyType({})) -> None:
        """Take the secrets themselves; one that is too short to be told from a word is left to the patterns.

        `guessable`: variables whose values may be ordinary words, and are taken out behind the variable's name alone.
        """
        self._behind = [(_behind(name, value.strip()), len(value.strip())) for name, value in guessable.items()]
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

    def counted(self, text: str, *, asked: bool = False) -> Redacted:
        """Return the same, and how much was taken out: whatever is a secret in one of the ways to read the text.

        `asked`: somebody is to allow what the text says. By its look only that is taken out then which can be nothing
        but a value: no sign of a shell, no name of a command and no part of a path is.
        """
        cuts = self.cuts(text, asked=asked)
        count, characters = sum(bool(cut.shown) for cut in cuts), sum(cut.end - cut.start for cut in cuts)
        return Redacted(without(text, cuts), count, characters) if cuts else Redacted(text)

    def cuts(self, text: str, *, asked: bool = False) -> list[Cut]:
        """Return where the secrets of the text are, in order; see `counted`."""
        cuts = list[Cut]()
        for reading in readings(text):
            for cut in self._taken_out(reading, asked=asked):
                cuts += _beginning(text, cut, _PARTS) if asked and not reading.literal else [cut]
        return joined(cuts)

    def _taken_out(self, reading: Reading, *, asked: bool) -> Iterator[Cut]:
        if self._known is not None:
            known = found_in(self._known, reading.text, lines=self._lines)
            reading.take(Cut(found.start(), found.end(), HIDDEN) for found in known)
            reading.take(self._beginnings(reading.text))
            reading.take(self._broken(reading.text))
        for pattern, length in self._behind:
            found_behind = found_in(pattern, reading.text)
            reading.take(Cut(found.end() - length, found.end(), HIDDEN) for found in found_behind)
        for look in looks():
            reading.take(_looking_so(look, reading.text, asked=asked))
        return reading.cuts()

    def _broken(self, text: str) -> Iterator[Cut]:
        """Yield the places of the known values that a full-screen program has broken over lines, not the lines' frames.

        Nothing but the value's own characters is taken for it, in their order; between them may stand the end of a
        line, blanks and a box's borders.
        """
        if self._long is None or "\n" not in text:
            return
        lines = text.split("\n")
        unbroken = "".join(line.strip(_FRAME) for line in lines)
        if self._long.search(unbroken) is None:
            return
        places: list[int] = []  # in `text`, of each character of `unbroken`
        start = 0
        for line in lines:
            begins = start + len(line) - len(line.lstrip(_FRAME))
            places += range(begins, begins + len(line.strip(_FRAME)))
            start += len(line) + 1
        for found in self._long.finditer(unbroken):
            own = places[found.start() : found.end()]
            borders = [0, *(at for at in range(1, len(own)) if own[at] != own[at - 1] + 1), len(own)]
            for first, after in pairwise(borders):
                yield Cut(own[first], own[after - 1] + 1, "" if first else HIDDEN)

    def _beginnings(self, text: str) -> Iterator[Cut]:
        """Yield what is left of a known value where a text was cut within it: its beginning, the mark behind it."""
        if CUT not in text:
            return
        starts: dict[int, int] = {}  # by the place of a mark: where the longest beginning before it starts
        for found in self._heads.finditer(text):
            start = found.start()
            cut = text.find(CUT, start + SHORTEST, start + self._longest)
            beginning = text[start:cut] if cut >= 0 else ""
            if beginning and any(form.startswith(beginning) for form in self._by_head[found[1]]):
                starts.setdefault(cut, start)
        for cut, start in sorted(starts.items()):
            yield Cut(start, cut, HIDDEN)

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

    One that is only called so and holds a path names the file of a secret, and one that holds an ordinary word is known
    behind its own name alone.
    """
    given = set(names)
    called = {name for name, value in environ.items() if _NAMED.search(name) and not names_a_file(value)} - given
    guessed = {name for name in called if not name.startswith("THE_LOOP_") and _is_guessable(environ[name].strip())}
    weak = {name: environ[name] for name in guessed if environ[name].strip()}
    return Redactor((environ[name] for name in (given | called) - _OPEN - guessed if name in environ), weak)


def _behind(name: str, value: str) -> re.Pattern[str]:
    """Return what finds a value behind the name of its variable, however it is assigned."""
    sign = r"\\?[\"'`]?[ \t]*(?::=|=>|=|:)[ \t]*\\?[\"'`]?"
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}{sign}{re.escape(value)}(?![A-Za-z0-9_-])")


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
    forms = {value, unstyled(value), quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * shift + raw).decode().rstrip("=")
            # the first and last character also carry bits of what stands beside the value
            forms.add(text[(shift * 8 + 5) // 6 : len(text) - (1 if (len(raw) + shift) % 3 else 0)])
    return {form for form in forms if len(form) >= SHORTEST}
