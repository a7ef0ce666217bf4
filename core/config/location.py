"""Which file is the configuration, and where the folders of the XDG base directory specification are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from core.errors import NoFolder

VARIABLE = "THE_LOOP_CONFIG"
FILE_NAME = "cli-config.yaml"


class Location(NamedTuple):
    """The file, why it is that one, and whether it must exist (somebody named it)."""

    path: Path
    why: str
    named: bool


def locate(explicit: Path | None, env: Mapping[str, str]) -> Location:
    """Return the configuration file: `--config`, then $THE_LOOP_CONFIG, then the user's own folder.

    Never the current folder: a cloned repository must not name what runs. The path is absolute. Raises NoFolder.
    """
    if explicit is not None:
        return Location(absolute(explicit), "named by --config", named=True)
    if given := env.get(VARIABLE, ""):
        return Location(absolute(Path(given)), f"named by ${VARIABLE}", named=True)
    folder = xdg(env, "XDG_CONFIG_HOME", ".config")
    source = "$XDG_CONFIG_HOME" if _usable(env.get("XDG_CONFIG_HOME", "")) else "~/.config"
    return Location(folder / "the-loop" / FILE_NAME, f"the default, in {source}", named=False)


def is_default(source: Path | None, state_root: Path, env: Mapping[str, str]) -> bool:
    """Tell whether a configuration is the one that is read where nobody names another; systemd's units serve no other.

    `source` None: settings without a file, which are the default ones if their state is where those have it.
    """
    if source is None:
        return state_root == default_state_root(env)
    return source == locate(None, {**env, VARIABLE: ""}).path


def xdg(env: Mapping[str, str], variable: str, default: str) -> Path:
    """Return a base folder. A relative value is ignored, as the XDG base directory specification demands."""
    given = env.get(variable, "")
    return Path(given) if _usable(given) else home(env) / default


def home(env: Mapping[str, str]) -> Path:
    """Return the home folder: $HOME, else the password database's."""
    given = env.get("HOME", "")
    return Path(given) if _usable(given) else Path(os.path.expanduser("~"))


def default_state_root(env: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/the-loop`."""
    return xdg(env, "XDG_STATE_HOME", ".local/state") / "the-loop"


def _usable(given: str) -> bool:
    return os.path.isabs(given)


def absolute(path: Path) -> Path:
    """Return the path from / on. Raises NoFolder where it is named from a current folder that is gone."""
    try:
        return Path(os.path.expanduser(path)).absolute()
    except OSError as error:
        raise NoFolder(path) from error
