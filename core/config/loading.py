"""Find the configuration file, read it, and report everything that is wrong with it at once.

The validator (pydantic) and the parser (yaml) are imported only if the file changed since it was last valid.

A configuration that a demonstration wrote is started by `the-loop demo` only: a service alone would have no page.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import Refused
from core.base.files import open_plain, read_bounded
from core.base.paths import FILE_NAME, Location, default_state_root, home, locate
from core.config import cache
from core.config.settings import Routing, Settings, settings_from

if TYPE_CHECKING:
    from core.config.document import ConfigError


LONGEST = 1 << 20  #: bytes of a configuration file
_CHECK_SECONDS = 30.0  #: it takes half a second


def load(explicit: Path | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the configuration file, or the defaults where there is none.

    `explicit` is the file that `--config` names; `env` is the process's environment if it is not given.
    Raises ConfigError with all problems: also where a file that somebody named is not there or cannot be read.
    """
    env = os.environ if env is None else env
    location = locate(explicit, env)
    text = read_text(location)
    if text is None:
        return defaults(env)
    resolved = cache.recall(location.path, text, env)
    if resolved is None:
        from core.config.channels import checked_blocks  # the validator costs more than all the rest of a `list`
        from core.config.validation import validate

        resolved = validate(text, location.path, env)
        resolved["checked"] = checked_blocks(resolved["channels"])
        cache.remember(location.path, text, env, resolved)
    return settings_from(resolved, location.path)


def load_apart(explicit: Path | None, env: Mapping[str, str]) -> Settings:
    """Return what `load` does; a file that changed is validated by a process of its own, which fills the cache.

    For the service, which would keep the validator's 10 MiB for days. It validates by itself only if that process finds
    the file wrong or cannot fill the cache. Raises ConfigError.
    """
    import subprocess
    import sys

    location = locate(explicit, env)
    text = read_text(location)
    if text is not None and cache.recall(location.path, text, env) is None:
        argv = [sys.executable, "-I", "-m", "core.cli", "--config", str(location.path), "config", "check"]
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(argv, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=_CHECK_SECONDS)
    return load(explicit, env)


def load_tolerant(
    explicit: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[Settings, ConfigError | None]:
    """Return settings with which `stop` can work, and what is wrong with the file (None: nothing is).

    Of a broken file `state.root` and `routing.tmux` are kept as far as they can be read, else as they were when the
    file was last valid, else the defaults; nothing else of it is used.
    """
    from core.config.document import ConfigError

    env = os.environ if env is None else env
    try:
        return load(explicit, env), None
    except ConfigError as error:
        from core.config.validation import salvage

        return salvage(locate(explicit, env).path, defaults(env), env), error


def defaults(env: Mapping[str, str]) -> Settings:
    """Return the settings of an empty file."""
    return Settings(default_state_root(env), routing=Routing(spawn_workdir=str(home(env))))


def read_text(location: Location) -> str | None:
    """Return the file's text, or None where the default file is not there.

    Raises ConfigError naming path and reason: a file that exists and cannot be read is never "no configuration".
    """
    try:
        with open_plain(location.path) as stream:
            return read_bounded(stream, LONGEST).decode("utf-8-sig")
    except FileNotFoundError as error:
        if not location.named:
            return None
        raise _unusable(location, "no such file", "create it with `the-loop config init`, or name another") from error
    except UnicodeDecodeError as error:
        found = f"bytes that are not UTF-8 (at byte {error.start})"
        raise _unusable(location, found, "save the file as UTF-8") from error
    except IsADirectoryError as error:
        remedy = f"name the file, such as {location.path / FILE_NAME}" if location.named else "move it away"
        raise _unusable(location, "a folder", remedy) from error
    except OSError as error:
        remedy = "name the right file" if error.errno == errno.EOVERFLOW else "mend its permissions"
        raise _unusable(location, f"a file that cannot be read: {error.strerror}", remedy) from error


def _unusable(location: Location, found: str, remedy: str) -> ConfigError:
    from core.config.document import ConfigError, Problem

    allowed = f"a readable YAML file ({location.why})"
    return ConfigError((Problem(str(location.path), None, "", found, allowed, remedy),))


FILE = "cli-config.yaml"
HEADER = "# Written by `the-loop demo` at each start. Everything it names is in this folder or on loopback.\n"
USUAL_DEMO = "usual"  #: the name of the demo that `make run` runs


class DemoOnly(Refused):
    """A service was to be started by itself with a demo's configuration."""

    code = "demo_only"

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            f"{settings.source} belongs to a demo, and only the demo brings its page and tokens", way_up(settings)
        )


def state_root(folder: Path) -> Path:
    """Return where the state of that folder's demo is."""
    return folder / "state"


def demo_folder(settings: Settings) -> Path | None:
    """Return the demo's folder where the configuration is one that a demo wrote, else None."""
    source = settings.source
    if source is None or settings.state_root != state_root(source.parent):
        return None
    try:
        with open_plain(source) as file:
            begins = file.readline(len(HEADER.encode())).decode("utf-8", "replace")
            return source.parent if begins == HEADER else None
    except OSError:
        return None  # it is not there any more, so no demo can be told from anything else


def way_up(settings: Settings) -> str:
    """Return what brings a service up, as a remedy: `the-loop start`, or for a demo's configuration its own command."""
    folder = demo_folder(settings)
    if folder is None:
        return "start it: `the-loop start`"
    if folder.name == USUAL_DEMO:
        return "this brings it up again: `make run`, or `the-loop demo`"
    return f"this brings it up again: `the-loop demo --name {shlex.quote(folder.name)}`"


def refuse_alone(settings: Settings) -> None:
    """Raise DemoOnly where the configuration is a demo's."""
    if demo_folder(settings) is not None:
        raise DemoOnly(settings)
