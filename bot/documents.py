"""Slack's documents, of which nothing is certain: a field is what it should be, or it is nothing."""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

Document = Mapping[str, Any]
TIME_STAMP = re.compile(r"[0-9]{1,12}\.[0-9]{6}")  #: what names a message


def is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether a value is a document itself."""
    return isinstance(value, Mapping)


def mapping_of(document: Document, key: str) -> Document:
    """Return the document under the key, an empty one where there is none."""
    value = document.get(key)
    return value if is_mapping(value) else {}


def mappings_of(document: Document, key: str) -> tuple[Document, ...]:
    """Return the documents of the list under the key; what else stands in it is left out."""
    value = document.get(key)
    return tuple(entry for entry in value if is_mapping(entry)) if isinstance(value, list) else ()


def text_of(document: Document, key: str) -> str:
    """Return the text under the key, "" where there is none; half a surrogate pair, which nobody can keep, as `?`."""
    value = document.get(key)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def number_of(document: Document, key: str) -> int:
    """Return the number under the key, 0 where there is none from 0 to 9,999."""
    value = document.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000 else 0


def flag_of(document: Document, key: str) -> bool | None:
    """Return the truth under the key, None where there is none."""
    value = document.get(key)
    return value if isinstance(value, bool) else None
