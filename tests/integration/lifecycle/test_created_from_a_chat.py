"""Creations that come from a chat: by role, in folders of the operator's file only, with hostile words."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import InvalidValue, NotPermitted
from core.chat.creating import Creations, folder_below
from core.model.asking import Role
from core.model.channel import IncomingCreation
from core.session.system import System
from tests.support.world import World, events, recorded


def holds(author: str, role: Role) -> bool:
    """Let U1 be an operator, and U2 a member."""
    return author == "U1" or (author == "U2" and role is Role.MEMBER)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a root with a folder in it, a file, and links that lead out of it and in a circle."""
    root = tmp_path / "root"
    (root / "project" / "api").mkdir(parents=True)
    (root / "notes.txt").write_text("no folder")
    (tmp_path / "secret").mkdir()
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "within").symlink_to(root / "project")
    (root / "circle").symlink_to(root / "circle")
    return root


@pytest.mark.parametrize(
    ("folder", "found"),
    [("", "."), ("  ", "."), ("project", "project"), ("project/api/", "project/api"), ("./project", "project"),
     ("within/api", "project/api")],
)  # fmt: skip
def test_a_folder_is_taken_by_its_real_path(root: Path, folder: str, found: str) -> None:
    """A link inside the root is what it leads to."""
    assert folder_below(str(root), folder) == (root / found).resolve()


@pytest.mark.parametrize(
    "folder",
    ["..", "project/../..", "../secret", "/etc", "~", "~root", "out", "out/deeper", "circle", "notes.txt", "nothing",
     "a\x00b", "a\nb", "\u202eproject", "x" * 5000],
)  # fmt: skip
def test_no_folder_leads_out_of_the_root(root: Path, folder: str) -> None:
    """By dots, absolute words, a home, a link, a circle, a file, a control character, an endless name."""
    with pytest.raises(InvalidValue):
        folder_below(str(root), folder)


def asked(below: Path, **changes: object) -> IncomingCreation:
    """Return a creation as a form brings it."""
    creation = IncomingCreation(
        "slack", "U1", "alice", "extra", "", str(below), "project", "look at it", "", ("U1", "U2")
    )
    return replace(creation, **changes)  # type: ignore[arg-type]


def test_an_operator_creates_a_session_that_is_what_the_form_says(system: System, root: Path) -> None:
    """It runs, in the real folder, with its own list of who may steer it."""
    told = Creations(system, "slack", holds).create(asked(root))

    definition = recorded(system, "extra").definition
    assert told.text.startswith("extra is created")
    assert (definition.cwd, definition.prompt) == (str((root / "project").resolve()), "look at it")
    assert definition.binding.enabled
    assert definition.binding.authorized_users == ("U1", "U2")
    assert [event["actor"] for event in events(system, "standing.created")] == ["slack:U1"]


@pytest.mark.parametrize("author", ["U2", "U9", ""])
def test_nobody_else_creates_anything(system: System, root: Path, author: str) -> None:
    """A member, a stranger, nobody: refused, and told to the event log."""
    with pytest.raises(NotPermitted):
        Creations(system, "slack", holds).create(asked(root, author=author))

    assert system.records.read("extra") is None
    assert [event["detail"] for event in events(system, "channel.dropped")] == ["create"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Extra"),
        ("name", "../extra"),
        ("name", "a b"),
        ("name", ""),
        ("name", "x" * 41),
        ("name", "scribe"),  # it is declared
        ("harness", "no-such-program"),
        ("root", "/no/such/root"),
        ("root", "relative"),
        ("folder", "../secret"),
        ("prompt", "\u202e\x1b"),
        ("authorized_users", ("U1", "U9")),
    ],
)
def test_each_fault_is_named_by_its_field_and_creates_nothing(
    system: System, root: Path, field: str, value: object
) -> None:
    """The same check stands before the creation itself."""
    creations, creation = Creations(system, "slack", holds), asked(root, **{field: value})

    faults = creations.faults(creation)

    assert list(faults) == [field]
    with pytest.raises(InvalidValue):
        creations.create(creation)
    assert system.records.read("extra") is None


def test_the_default_harness_is_offered_first(system: System) -> None:
    """And each of them once."""
    names = Creations(system, "slack", holds).harnesses()

    assert names[0] == system.settings.routing.default_harness
    assert sorted(set(names)) == sorted(names)


def test_a_root_that_is_a_link_counts_as_what_it_leads_to(root: Path, tmp_path: Path, world: World) -> None:
    """The operator names it, so it may be one; a root that was taken away is said."""
    link = tmp_path / "link"
    link.symlink_to(root)
    assert folder_below(str(link), "project") == (root / "project").resolve()
    os.unlink(link)
    with pytest.raises(InvalidValue, match="cannot be used"):
        folder_below(str(link), "project")
