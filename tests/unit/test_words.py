"""Nothing is decided by a sentence: code and SQL look at codes, and sentences are only shown.

A sentence is what an attribute `detail` or `remedy` holds, the text of a reason (`core.model.texts`), and every
constant, or literal, of several words. None of them is compared, searched, cut, looked up by, or named in a condition
of a query.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: By module or function, why its sentences may be looked at.
MAY: dict[str, str] = {
    "bot.words._words": "Slack's words in the place of a table",
    "core.config.loading.demo_folder": "the first line of a file that we wrote, by which it is known as ours",
    "core.fleet.postgres.refusal": "PostgreSQL's words, for which libpq gives no code before a login",
    "core.harness.claude.files": "Claude Code's words in its own records",
    "core.store.sqlerrors.broken": "SQLite's words",
    "core.store.migrations": "what earlier releases stored",
    "core.store.oldwords": "what earlier releases stored",
    "core.tmux.runner": "tmux's words",
    "core.tmux.transport": "tmux's words",
    "embedded.agent.session._cut_short": "Python's words for a character that is not whole",
}
_HELD_IN = frozenset({"detail", "remedy"})  #: attributes that hold a sentence
_MADE_BY = {("core.model.texts", "text"), ("core.model.reasons", "text_of"), ("core.model.reasons", "shown")}
_LOOKS = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "index", "count"}
    | {"partition", "rpartition"}
)
_SEARCHES = frozenset({"match", "fullmatch", "search", "findall", "finditer"})
_REPLACES = frozenset({"sub", "subn"})
_WORDS = re.compile(r"[A-Za-z']{2,}[,;:]? [a-z']+[,;:]? [A-Za-z']+")  #: three words in a row
_SQL = re.compile(r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE (?:UNIQUE )?INDEX)\b", re.IGNORECASE)
_ASSIGNED = re.compile(r"\bSET\b.*?(?=\bWHERE\b|$)", re.IGNORECASE | re.DOTALL)
_CONDITION = re.compile(
    r"\b(?:detail|remedy)\s*(?:=|<>|!=|\|\||\b(?:NOT\s+)?(?:LIKE|GLOB|REGEXP|IN|IS|BETWEEN)\b)"  # looked at
    r"|\(\s*(?:\w+\.)?(?:detail|remedy)\s*[,)]"  # given to a function
    r"|(?:=|<>|!=)\s*(?:\w+\.)?(?:detail|remedy)\b",  # what something else is compared with
    re.IGNORECASE,
)
_COLUMNS = re.compile(r"\bINSERT\b[^()]*\([^()]*\)|\bexcluded\.\w+", re.IGNORECASE)


class Module:
    """One module's names: what it imports, and its constants."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.tree = ast.parse(source)
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        self.constants = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    def nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """Yield each node with the name of the module's function, or class, that it is in."""
        for top in self.tree.body:
            named = isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            where = f"{self.name}.{top.name}" if named else self.name  # type: ignore[attr-defined]
            yield from ((where, node) for node in ast.walk(top))


class Rule:
    """Looks through modules, given by their dotted names."""

    def __init__(self, modules: dict[str, Module]) -> None:
        self._modules = modules

    def broken(self) -> Iterator[tuple[str, str]]:
        """Yield where a sentence decides, and what is done with it."""
        for module in self._modules.values():
            for where, node in module.nodes():
                if why := self._why(module, node):
                    line = getattr(node, "lineno", 0)
                    yield where, f"{where} (line {line}): {why}: {' '.join(ast.unparse(node).split())[:100]}"

    def _why(self, module: Module, node: ast.AST) -> str:
        def told(*ones: ast.AST) -> bool:
            return any(self._is_sentence(module, one) for one in ones)

        match node:
            case ast.Compare(left=left, comparators=others):
                return "a sentence is compared" if told(left, *others) and not _with_none(left, *others) else ""
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _LOOKS:
                return "a sentence is searched or cut" if told(value, *args) else ""
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _SEARCHES:
                return "a sentence is searched" if told(*args) else ""
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _REPLACES:
                put_in = 1 if isinstance(value, ast.Name) and value.id == "re" else 0  # what is put in its place
                return "a sentence is searched" if told(*args[:put_in], *args[put_in + 1 :]) else ""
            case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[key, *_]) | ast.Subscript(slice=key):
                return "a sentence is a key" if told(key) else ""
            case ast.Match(subject=subject):
                return "a sentence is compared" if told(subject) else ""
            case ast.Constant(value=str(sql)) if _SQL.match(sql):
                return "a query's condition names a sentence" if _looks(sql) else ""
            case ast.JoinedStr(values=parts):
                sql = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
                return "a query's condition names a sentence" if _SQL.match(sql) and _looks(sql) else ""
        return ""

    def _is_sentence(self, module: Module, node: ast.AST, depth: int = 0) -> bool:
        """Return whether the expression is a sentence, or holds some."""

        def any_of(*ones: ast.AST | None) -> bool:
            return depth < 5 and any(one is not None and self._is_sentence(module, one, depth + 1) for one in ones)

        match node:
            case ast.Constant(value=value):
                return isinstance(value, str) and _WORDS.search(value) is not None and not _SQL.match(value)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if self._module_of(module, name):
                return self._is_constant(self._module_of(module, name), attr, depth)
            case ast.Attribute(value=held, attr=attr):
                return attr in _HELD_IN or (attr == "text" and _is_because(held))
            case ast.Name(id=name):
                return self._is_constant(module, name, depth)
            case ast.Call(func=ast.Name(id=name), args=args):
                made = module.imported.get(name) in _MADE_BY
                return made or (name in ("frozenset", "set", "tuple", "list") and any_of(*args))
            case ast.JoinedStr(values=held) | ast.Set(elts=held) | ast.Tuple(elts=held) | ast.List(elts=held):
                return any_of(*held)
            case ast.FormattedValue(value=held) | ast.BoolOp(values=[held, *_]):
                return any_of(held)
            case ast.Dict(keys=keys):
                return any_of(*keys)
        return False

    def _module_of(self, module: Module, name: str) -> Module | None:
        return self._modules.get(".".join(module.imported.get(name, ("", ""))))

    def _is_constant(self, module: Module | None, name: str, depth: int) -> bool:
        if module is None or depth > 5:
            return False
        if name in module.constants:
            return self._is_sentence(module, module.constants[name], depth + 1)
        of, what = module.imported.get(name, ("", ""))
        return self._is_constant(self._modules.get(of), what, depth + 1)


def _with_none(*nodes: ast.AST) -> bool:
    """Return whether it is asked only if there is any: nothing of its words is looked at."""
    return any(isinstance(node, ast.Constant) and node.value in ("", None) for node in nodes)


def _is_because(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("because", "why")


def _looks(sql: str) -> bool:
    return _CONDITION.search(_COLUMNS.sub("", _ASSIGNED.sub("", sql))) is not None


def _product() -> dict[str, Module]:
    paths = [path for root in ("core", "bot", "embedded") for path in sorted((ROOT / root).rglob("*.py"))]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths}
    return {name: Module(name, path.read_text(encoding="utf-8")) for path, name in names.items()}


@cache
def _looked_at() -> tuple[tuple[str, str], ...]:
    return tuple(Rule(_product()).broken())


def test_no_code_and_no_query_looks_at_a_sentence() -> None:
    """Whoever mends the wording changes what is shown, and nothing that is done."""
    found = [
        told for where, told in _looked_at() if not any(where == one or where.startswith(f"{one}.") for one in MAY)
    ]

    assert found == []


def test_every_exception_is_one() -> None:
    """What no longer looks at a sentence is taken from the list."""
    looked_at = [where for where, _ in _looked_at()]

    assert [one for one in MAY if not any(where == one or where.startswith(f"{one}.") for where in looked_at)] == []


@pytest.mark.parametrize(
    "line",
    [
        "row.detail == before",
        "before != error.remedy",
        "'busy' in row.detail",
        "row.detail in (NOT_RUNNING, before)",
        "decision.because.text == before",
        "why.text != before",
        "text(code) == before",
        "before is NOT_RUNNING",
        "before == 'it is not running'",
        "before in EXPIRING",
        "before in words.EXPIRING",
        "before == words.SILENT",
        "before in TABLE",
        "f'{SILENT}, 3 ahead' == before",
        "row.detail.startswith(before)",
        "before.startswith(NOT_RUNNING)",
        "before.removeprefix('it was cancelled')",
        "row.remedy.endswith(before)",
        "row.detail.partition(';')",
        "re.match(before, row.detail)",
        "PATTERN.search(row.detail)",
        "PATTERN.sub('', row.detail)",
        "TABLE.get(row.detail)",
        "TABLE[row.detail]",
        "before in (x for x in before if x == SILENT)",
        "'SELECT id FROM inbox WHERE detail = ?'",
        "'SELECT id FROM inbox WHERE detail LIKE ?'",
        "'SELECT id FROM inbox WHERE substr(detail, 1, 3) = ?'",
        "f'SELECT {before} FROM inbox WHERE state = 1 AND inbox.detail IN (?)'",
        "'SELECT instr(activities.detail, :cut_off) = 1 AS failed FROM activities'",
        "'UPDATE inbox SET detail = ? WHERE detail <> ?'",
        "'CREATE INDEX one ON inbox (uid) WHERE detail = 1'",
    ],
)
def test_the_rule_sees_each_way_of_looking_at_a_sentence(line: str) -> None:
    """Constants are followed into the modules that they come from."""
    words = Module(
        "core.words", "SILENT = 'tmux does not answer'\nEXPIRING = frozenset({SILENT})\nTABLE = {SILENT: 'x'}"
    )
    heading = (
        "from core import words\nfrom core.words import EXPIRING, SILENT, TABLE\nfrom core.model.texts import text\n"
    )
    looking = Module("core.looking", f"{heading}NOT_RUNNING = 'it is not running'\ndef f(row, before):\n    {line}\n")

    found = list(Rule({"core.words": words, "core.looking": looking}).broken())

    assert [where for where, _ in found][:1] == ["core.looking.f"]


@pytest.mark.parametrize(
    "line",
    [
        "row.reason is Reason.BUSY",
        "row.because == before",
        "error.reason == 'link_disabled'",
        "row.detail == ''",
        "row.detail is not None",
        "shown = row.detail or before",
        "'; '.join(filter(None, (row.detail, before)))",
        "row.detail.replace('`', '')",
        "'UPDATE inbox SET state = 1, detail = :detail WHERE id = :id AND state = 2'",
        "'INSERT INTO outbox (id, detail) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET detail = excluded.detail'",
        "'SELECT detail FROM outbox WHERE state = 1'",
    ],
)
def test_the_rule_lets_codes_be_looked_at_and_sentences_be_shown(line: str) -> None:
    """What is stored, joined and told is no decision; nor is whether there is anything to tell."""
    module = Module("core.looking", f"def f(row, before, error):\n    {line}\n")

    assert list(Rule({"core.looking": module}).broken()) == []
