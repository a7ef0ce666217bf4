"""Commands as a person can type them here: with this installation's program and the configuration in use.

Texts name a command as `the-loop …`, in backticks. Where one leaves the product for a person (a row, an error, a note),
`exact` replaces the bare name.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from core.base.paths import VARIABLE, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.config.settings import Settings


_PROGRAM = "the-loop"
_NAMED = f"`{_PROGRAM} "


def command_line(source: Path | None, environ: Mapping[str, str], *words: str) -> str:
    """Return the command of these words as a shell takes it.

    The program is `the-loop` where PATH leads to this installation, else its absolute path. `source` is the
    configuration in use (None: there is no file), which is named unless it is the one that is read by default.
    """
    import shlex

    argv = [_program(environ)]
    if source is not None and source != locate(None, {**environ, VARIABLE: ""}).path:
        argv += ["--config", str(source)]
    return shlex.join([*argv, *words])


def exact(text: str, source: Path | None, environ: Mapping[str, str]) -> str:
    """Return the text with each command that it names as it can be typed; see `command_line`.

    A text that has passed here before comes out as it is.
    """
    if _NAMED not in text:
        return text
    typed = f"`{command_line(source, environ)} "
    return text.replace(typed, _NAMED).replace(_NAMED, typed)


def each_named(text: str, settings: Settings, environ: Mapping[str, str], instead: Callable[[str, str], str]) -> str:
    """Return the text with each command that it names, exact or not, replaced by what `instead` returns.

    It is given the command's words behind the program, and the command as `exact` names it, with its backticks.
    """
    if "`" not in text:
        return text
    typed = f"`{command_line(settings.source, environ)} "
    parts = text.replace(typed, _NAMED).split(_NAMED)
    made = [parts[0]]
    for part in parts[1:]:
        words, ended, rest = part.partition("`")
        made.append(f"{instead(words, f'{typed}{words}`')}{rest}" if ended else f"{typed}{part}")
    return "".join(made)


def exact_for(settings: Settings, environ: Mapping[str, str], text: str) -> str:
    """Return the text with each command that it names as this system's configuration needs it."""
    return exact(text, settings.source, environ)


def _program(environ: Mapping[str, str]) -> str:
    own = os.path.join(os.path.dirname(sys.executable), _PROGRAM)
    if not os.path.exists(own):
        return _PROGRAM  # installed elsewhere than beside its interpreter: then a shell must know where
    for folder in environ.get("PATH", "").split(os.pathsep):
        found = os.path.join(folder, _PROGRAM)
        if os.access(found, os.X_OK):
            return _PROGRAM if os.path.samefile(found, own) else own
    return own
