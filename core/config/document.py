"""Parse YAML into plain values with the line of each, and collect every problem of a configuration in one error.

Only what JSON can hold is accepted: mappings with text keys, lists, text, numbers, booleans, null.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from core.base.errors import CoreError

KeyPath = tuple[str | int, ...]
_PLAIN_KEY = r"[A-Za-z0-9_-]+"  # compiled when something is wrong, not at every start
_TOKEN = r"(?i)\bx(?:ox[a-z]|app)-\S+"
_LONGEST = 80


class Problem(NamedTuple):
    """One thing that is wrong. `line` counts from 1; None where no line can be named (the file itself)."""

    file: str
    line: int | None
    key: str  #: `standingSessions.sessions[2].cwd`; "" for the whole file
    found: str
    allowed: str
    remedy: str

    @property
    def what(self) -> str:
        """Return all but the remedy, as a sentence."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}found {self.found}; allowed: {self.allowed}"

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


class ConfigError(CoreError, ValueError):
    """The configuration cannot be used. `problems` holds everything that is wrong with it, in the file's order."""

    code: ClassVar[str] = "config_invalid"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("the configuration is not valid:\n" + "\n".join(f"  {problem}" for problem in problems))


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in the order of the file, those of the whole file first."""
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def key_text(path: KeyPath) -> str:
    """Return a key path as people write it: `a.b[2].c`, with unusual keys in quotes (`harnesses["x y"]`)."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(_PLAIN_KEY, part) and shortened(part) == part:
            text += f".{part}" if text else part
        else:
            text += f'["{shortened(part)}"]'
    return text


def shortened(text: str) -> str:
    """Return text that may be shown: one line, not long, and never a chat's token."""
    shown = re.sub(_TOKEN, "(a token, not shown)", text)
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def described(value: object) -> str:
    """Return what a value is, for the `found` of a problem: `5 (a number)`, `"x" (text)`, `a list of 3`."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"{str(value).lower()} (a boolean; quote it if text is meant)"
        case int() | float():
            return f"{shortened(str(value))} (a number)"
        case str():
            return f'"{shortened(value)}" (text)'
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}"
        case _:
            return f"a {type(value).__name__}"


MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_VALUES = 50_000  #: with aliases expanded, so that a few lines cannot grow into gigabytes
_PREFIX = "tag:yaml.org,2002:"
_SCALARS = frozenset(_PREFIX + name for name in ("str", "int", "float", "bool", "null"))
_MERGE = _PREFIX + "merge"


@dataclass
class Document:
    """The values, the line (from 1) of each key or item, and what was wrong."""

    file: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    refused: set[KeyPath] = field(default_factory=set)  #: values that stand as None in `data` and have a problem
    broken_at: int | None = None  #: line of a syntax error: nothing could be read

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of the value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def add(self, path: KeyPath, found: str, allowed: str, remedy: str, line: int | None = None) -> None:
        """Note a problem with the value at `path`."""
        where = line if line is not None else self.line_of(path)
        self.problems.append(Problem(self.file, where, key_text(path), found, allowed, remedy))


class _TooDeep(yaml.MarkedYAMLError):
    """Values lie in one another more than MAX_DEPTH deep."""


class _Loader(yaml.SafeLoader):
    """The safe loader, with dates left as text and a limit on depth, so that no input exhausts the stack."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - yaml's own class attribute, replaced and never changed
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _PREFIX + "timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeep(None, None, f"values more than {MAX_DEPTH} deep", self.get_mark())
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_document(text: str, file: str) -> Document:
    """Return the document of a YAML text. What is wrong stands in its `problems`; this never raises."""
    document = Document(file)
    if len(text) > MAX_BYTES:
        document.add((), f"{len(text)} characters", f"at most {MAX_BYTES}", "this is no configuration of the-loop")
        return document
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        _syntax_problem(document, error, text)
        return document
    except (ValueError, OverflowError) as error:  # PyYAML: "\\UFFFFFFFF", a version of thousands of digits
        document.broken_at = 1
        found = f"an escape or a number that YAML does not know ({shortened(str(error))})"
        document.add((), found, "YAML", "look for \\U escapes and for a %YAML line")
        return document
    if root is None or (isinstance(root, ScalarNode) and root.tag == _PREFIX + "null"):
        return document
    if not isinstance(root, MappingNode):
        document.add((), _kind(root), "a mapping", "begin with a key such as `routing:`", line=_line(root))
        return document
    _Reader(document, loader).read_root(root)
    return document


def _syntax_problem(document: Document, error: yaml.YAMLError, text: str) -> None:
    mark = context = line = None
    what = str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark, context = error.problem_mark, error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
    elif isinstance(error, yaml.reader.ReaderError):
        what = f"a character that no text file holds ({error.reason})"
        line = text.count("\n", 0, error.position) + 1
    if mark is not None:
        line = mark.line + 1
    document.broken_at = min(line or 1, context.line + 1 if context is not None else line or 1)
    hint = f" (what it belongs to begins on line {context.line + 1})" if context is not None else ""
    document.add(
        (),
        f"text that is not YAML: {shortened(what)}",
        "YAML, indented with spaces",
        f"mend the text about here{hint}",
        line=line,
    )


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, document: Document, loader: _Loader) -> None:
        self._document = document
        self._loader = loader
        self._open: list[Node] = []
        self._values = 0

    def read_root(self, root: MappingNode) -> None:
        self._document.data = self._mapping(root, ())

    def _value(self, node: Node, path: KeyPath) -> Any:
        """Return the plain value of a node; None where it is refused, which is then noted."""
        self._values += 1
        if self._values > MAX_VALUES:
            if self._values == MAX_VALUES + 1:
                self._refuse(node, path, f"more than {MAX_VALUES} values", "fewer", "use fewer aliases")
            return None
        if len(self._open) > MAX_DEPTH:
            self._refuse(node, path, f"values more than {MAX_DEPTH} deep", "fewer", "use fewer aliases")
            return None
        if node in self._open:
            found, allowed = "an alias inside the value that it stands for", "values that do not contain themselves"
            self._refuse(node, path, found, allowed, "remove the alias")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        self._open.append(node)
        try:
            if isinstance(node, MappingNode) and node.tag == _PREFIX + "map":
                return self._mapping(node, path)
            if isinstance(node, SequenceNode) and node.tag == _PREFIX + "seq":
                return self._sequence(node, path)
        finally:
            self._open.pop()
        return self._bad_tag(node, path)

    def _sequence(self, node: SequenceNode, path: KeyPath) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self._document.lines.setdefault((*path, index), _line(item))
            items.append(self._value(item, (*path, index)))
        return items

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self._merged(value_node, path) | merged
                continue
            if not isinstance(key_node, ScalarNode) or key_node.tag != _PREFIX + "str":
                found = f"the key {shortened(str(key_node.value))}" if isinstance(key_node, ScalarNode) else "a key"
                self._refuse(key_node, path, f"{found}, which is not text", "keys that are text", "put it in quotes")
                continue
            key = key_node.value
            here = (*path, key)
            if key in own:
                first = self._document.lines[here]
                self._refuse(
                    key_node,
                    here,
                    f"a key that stands on line {first} already",
                    "each key once",
                    "keep one of the two and remove the other",
                )
                continue
            if not self._clean(key, key_node, path):
                continue
            self._document.lines[here] = _line(key_node)
            own[key] = self._value(value_node, here)
        return merged | own

    def _merged(self, node: Node, path: KeyPath) -> dict[str, Any]:
        """Return what a `<<` key brings in: a mapping, or several of which the first wins."""
        nodes = node.value if isinstance(node, SequenceNode) else [node]
        together: dict[str, Any] = {}
        for part in nodes:
            value = self._value(part, path)
            if isinstance(value, dict):
                together = value | together
            else:
                self._refuse(part, path, "a << of something else", "<< with mappings", "give it an alias of a mapping")
        return together

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        if node.tag not in _SCALARS:
            return self._bad_tag(node, path)
        try:
            value = self._loader.construct_object(node, deep=True)
        except (ValueError, OverflowError, KeyError, IndexError, yaml.YAMLError):
            kind = node.tag.removeprefix(_PREFIX)
            self._refuse(
                node, path, f"{shortened(node.value)} as {kind}", f"a value that is {kind}", "put it in quotes"
            )
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._refuse(node, path, described(value), "finite numbers", "write a number")
            return None
        if isinstance(value, str) and not self._clean(value, node, path):
            return None
        return value

    def _clean(self, text: str, node: Node, path: KeyPath) -> bool:
        """Refuse what no file name, argument or variable can carry: NUL, and halves of a character pair."""
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            allowed = "text without U+0000 and without surrogates"
            self._refuse(node, path, "a character that no program takes", allowed, "remove the escape")
            return False
        return True

    def _bad_tag(self, node: Node, path: KeyPath) -> None:
        tag = shortened(str(node.tag).replace(_PREFIX, "!!"))
        self._refuse(node, path, f"a value tagged {tag}", "plain values", "remove the tag")

    def _refuse(self, node: Node, path: KeyPath, found: str, allowed: str, remedy: str) -> None:
        self._document.refused.add(path)
        self._document.add(path, found, allowed, remedy, line=_line(node))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: Node) -> str:
    return "a list" if isinstance(node, SequenceNode) else "one value"
