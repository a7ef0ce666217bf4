"""One short text for a whole configuration: two processes compare what they work with without telling it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from core.config.settings import Settings


def digest_of(settings: Settings) -> str:
    """Return a SHA-256, in hexadecimal, of every value in effect.

    What changes no value changes no digest: comments, the order of keys, a default that is written out, and where the
    file lies.
    """
    values = json.dumps(settings._replace(source=None), sort_keys=True, default=_plain)
    return hashlib.sha256(values.encode()).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)
