"""What the documents point to is there."""

import re
from functools import cache
from pathlib import Path

import click
import pytest

from core.cli.app import root

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/adr/*.md"), *ROOT.glob("deploy/*.md"))
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FILE = re.compile(r"`((?:core|bot|embedded|scripts|tests|docs)/[\w./-]+\.\w+)`")
_PAST = ("CHANGELOG.md", "docs/adr/")  #: what they tell of may be gone


@cache
def _text(page: str) -> str:
    return _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def _anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in _HEADING.findall(_text(page)))
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    """A link names a file of the repository, and a heading that this file has."""
    broken = []
    for link in _LINK.findall(_text(page)):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists() or (anchor and anchor not in _anchors(target.resolve().relative_to(ROOT).as_posix())):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(_PAST)])
def test_every_file_of_the_code_that_a_page_names_exists(page: str) -> None:
    """A page that sends its reader to a module names one that is there."""
    missing = [name for name in _FILE.findall(_text(page)) if not (ROOT / name).exists()]

    assert missing == []


def test_the_index_names_every_page() -> None:
    """Whoever looks for something finds each page of docs/ in its index."""
    named = set(_LINK.findall(_text("docs/README.md")))

    assert {page.removeprefix("docs/") for page in PAGES if re.fullmatch(r"docs/[\w-]+\.md", page)} - named == {
        "README.md"
    }


_CODE = re.compile(r"`[^`\n]+`|^ {4,}.+$", re.MULTILINE)
_COMMAND = re.compile(r"\bthe-loop((?: [a-z][a-z-]*)+)")


@pytest.mark.parametrize("page", ["docs/troubleshooting.md", "docs/upgrading.md"])
def test_every_command_that_a_page_of_remedies_names_exists(page: str) -> None:
    """Whoever is in trouble types what stands there."""
    codes = "\n".join(_CODE.findall(_text(page)))
    commands = [found.split() for found in _COMMAND.findall(codes)]

    assert commands
    assert [words for words in commands if not _exists(root, words)] == []


def _exists(command: click.Command, words: list[str]) -> bool:
    if not isinstance(command, click.Group):
        return True  # what follows are its arguments
    return bool(words) and words[0] in command.commands and _exists(command.commands[words[0]], words[1:])
