"""Which variables a session's program was given, and which of them a start by this process would give it otherwise.

Asked by every command that lists sessions, so nothing heavy is imported here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.environment import chosen, differences, fingerprints
from core.names import INSTANCE_VARIABLE
from core.plainfiles import open_plain
from core.secretnames import secret_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.config.settings import Settings
    from core.paths import StatePaths

_MOST_BYTES = 1 << 20
GIVEN = "environment"  #: in a session's folder: its program's variables, by name, with their fingerprints


def fingerprints_now(settings: Settings, environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return what a start by this process would give; None inside of a session, whose agent starts nothing."""
    if INSTANCE_VARIABLE in environ:
        return None
    return fingerprints(chosen(environ, secret_variables(settings, environ)))


def given_otherwise(paths: StatePaths, uid: str, now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that a start would change, be it to another value, to one, or to none.

    () where nobody noted what the program was given: an earlier release started it.
    """
    try:
        with open_plain(paths.session(uid) / GIVEN) as stream:
            before = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ()
    return differences(before, now) if isinstance(before, dict) else ()
