"""YAML text becomes plain values with their lines; what is no plain value is refused by its line."""

from __future__ import annotations

import pytest

from core.config.document import MAX_BYTES, key_text, read_document, shortened


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "begins on line 2"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: 'x\n", 2, "begins on line 1"),
        ("a: 1\n---\nb: 2\n", 2, "not YAML"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: 1\nb: \x07\n", 2, "no text file"),
        ('a: "\\UFFFFFFFF"\n', None, "escape"),
    ],
)
def test_a_syntax_error_is_a_problem_like_any_other(text: str, line: int | None, said: str) -> None:
    """Broken YAML is reported by file and line, with where the broken part begins."""
    found = read_document(text, "f.yaml").problems

    assert [problem.line for problem in found] == [line]
    assert said in str(found[0])


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "stands on line 1 already"),
        ("x:\n  a: 1\n  a: 1\n", 3, "x.a"),
        ("1: x\n", 1, "not text"),
        ("no: x\n", 1, "not text"),
        ("[a]: x\n", 1, "not text"),
        ("a: !!python/object:os.system x\n", 1, "tagged"),
        ("a: !mine x\n", 1, "tagged !mine"),
        ("a: !!set {x}\n", 1, "tagged !!set"),
        ("a: !!binary aGk=\n", 1, "tagged !!binary"),
        ("a: !!int x\n", 1, "put it in quotes"),
        ("a: .nan\n", 1, "finite numbers"),
        ('a: "x\\0"\n', 1, "no program takes"),
        ('a: "\\ud800"\n', 1, "no program takes"),
        ("a: &x {b: *x}\n", 1, "alias inside the value that it stands for"),
        ("<<: 5\n", 1, "<< with mappings"),
        ("- a\n", 1, "a mapping"),
        ("just text\n", 1, "a mapping"),
    ],
)
def test_what_is_no_plain_value_is_refused_by_its_line(text: str, line: int, said: str) -> None:
    """Doubled keys, odd keys, tags, and values that no program takes are each named."""
    found = read_document(text, "f.yaml").problems

    assert [problem.line for problem in found] == [line]
    assert said in str(found[0])


def test_the_line_of_a_value_is_that_of_its_key_or_item() -> None:
    """A problem points at the key, or at the list item, or at what is around it."""
    document = read_document("a:\n  b:\n    - x\n    - y: 1\n", "f.yaml")

    assert document.data == {"a": {"b": ["x", {"y": 1}]}}
    assert document.line_of(("a", "b")) == 2
    assert document.line_of(("a", "b", 1, "y")) == 4
    assert document.line_of(("a", "b", 1, "missing", "deeper")) == 4
    assert document.line_of(("elsewhere",)) is None


def test_aliases_and_merges_mean_what_yaml_says() -> None:
    """An anchor may be used again, and `<<` brings its keys in; keys of one's own win."""
    document = read_document("base: &b {x: 1, y: 2}\nsame: *b\nmore: {<<: *b, y: 3}\nboth: {<<: [{x: 9}, *b]}\n", "f")

    assert document.problems == []
    assert document.data["same"] == {"x": 1, "y": 2}
    assert document.data["more"] == {"x": 1, "y": 3}
    assert document.data["both"] == {"x": 9, "y": 2}


def test_dates_stay_text() -> None:
    """A description that looks like a date is what was typed."""
    assert read_document("a: 2026-01-02\n", "f.yaml").data == {"a": "2026-01-02"}


def test_a_few_lines_of_aliases_cannot_grow_without_end() -> None:
    """Nine lists of nine aliases each would be 9^9 values; they are refused once."""
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]

    document = read_document("\n".join(lines), "f.yaml")

    assert ["more than 50000 values" in problem.found for problem in document.problems] == [True]


def test_a_file_of_another_kind_is_refused_before_it_is_parsed() -> None:
    """Somebody who names a log file by mistake is told, and does not wait."""
    document = read_document("x" * (MAX_BYTES + 1), "f.yaml")

    assert "at most" in document.problems[0].allowed


def test_a_key_path_is_written_as_people_write_it() -> None:
    """Dots, positions in brackets, odd keys in quotes."""
    assert key_text(("a", 2, "b c", "d")) == 'a[2]["b c"].d'


def test_what_is_shown_is_one_short_line_without_tokens() -> None:
    """Control characters, length and tokens never reach a terminal through an error."""
    shown = shortened("a\x1b[31m\n" + "xapp-" + "1-secret " + "y" * 200)

    assert shown.isprintable()
    assert "secret" not in shown
    assert len(shown) <= 81
