"""docs/configuration.md is what the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bot.schema import SlackBlock
from core.config.reference import reference_text
from core.config.schema import ConfigFile
from core.config.settings import key_bytes

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_is_generated_from_the_schema() -> None:
    """A key that is added, removed or described anew changes the page in the same commit."""
    assert PAGE.read_text(encoding="utf-8") == reference_text({"slack": SlackBlock}), (
        "write it again: python -m core.config.reference > docs/configuration.md"
    )


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    found = list(model.model_fields.items())
    for _, field in model.model_fields.items():
        for inner in [field.annotation, *getattr(field.annotation, "__args__", ())]:
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found += _fields(inner)
    return found


def test_every_key_is_explained() -> None:
    """Each key that holds a value of its own has a description."""
    unexplained = [
        name
        for name, field in _fields(ConfigFile)
        if not field.description
        and not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))
    ]

    assert unexplained == []


def test_keys_become_what_a_terminal_sends() -> None:
    """Names of keys, parted by spaces, are the bytes that a terminal would send for them."""
    assert key_bytes("C-a C-k Escape BSpace Enter Tab C-z") == b"\x01\x0b\x1b\x7f\r\t\x1a"


@pytest.mark.parametrize("names", ["C-", "C-A", "x", "F1", "c-a"])
def test_an_unknown_key_name_is_refused(names: str) -> None:
    """A name that stands for no key is an error that lists those that do."""
    with pytest.raises(ValueError, match="C-a to C-z"):
        key_bytes(names)
