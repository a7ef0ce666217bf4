"""Where the configuration file and each file of the state root are, by the XDG base directory specification."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from core.base.errors import NoFolder
from core.base.values import dataclass


@dataclass(frozen=True)
class StatePaths:
    """The state root's layout: folders are 0700, files 0600."""

    root: Path

    @property
    def local(self) -> Path:
        """Everything that belongs to this machine."""
        return _below(self.root)

    @property
    def records(self) -> Path:
        """One `<name>.json` a session."""
        return self.local / "standing"

    @property
    def locks(self) -> Path:
        """One file a session, locked with flock."""
        return self.local / "locks"

    @property
    def spool(self) -> Path:
        """One folder an instance: hook reports not yet taken in."""
        return self.local / "spool"

    @property
    def database(self) -> Path:
        """SQLite: inbox, outbox, bindings, activity."""
        return self.local / "the-loop.db"

    @property
    def events(self) -> Path:
        """The event log, one JSON object a line."""
        return self.local / "events.jsonl"

    @property
    def notify(self) -> Path:
        """A FIFO: one byte tells the service that there is something to look at."""
        return _below(self.root, "poke")

    @property
    def service_socket(self) -> Path:
        """The service's Unix socket."""
        return self.local / "service.sock"

    @property
    def service_lock(self) -> Path:
        """Locked with flock for as long as a service lives; its text is the service's pid."""
        return self.local / "service.lock"

    @property
    def service_log(self) -> Path:
        """What a detached service prints."""
        return self.local / "service.log"

    @property
    def api_token(self) -> Path:
        """The token of the HTTP host, made where no variable holds one."""
        return self.local / "api-token"

    @property
    def page_logins(self) -> Path:
        """Hashes of the secrets of browsers that are logged in to the page."""
        return self.local / "page-logins.json"

    def chat_secrets(self, kind: str) -> Path:
        """The secrets of a chat, a line `NAME=value` each: for those that no variable holds."""
        return self.local / f"{kind}.env"

    @property
    def fleet(self) -> Path:
        """How this host reaches the fleet's database."""
        return self.local / "fleet"

    @property
    def http_socket(self) -> Path:
        """Where the service listens for HTTP besides its port: nobody else can stand there."""
        return self.local / "http.sock"

    @property
    def tmux_conf(self) -> Path:
        """The configuration of our own tmux server."""
        return self.local / "tmux.conf"

    @property
    def sessions(self) -> Path:
        """One folder a session."""
        return self.local / "sessions"

    def session(self, uid: str) -> Path:
        """Folder of one session: launcher, brief, hook settings, hold, asking, tool, last output."""
        return _below(self.root, "sessions", uid)

    def of_session(self, uid: str, name: str) -> Path:
        """A file or folder of that name in the session's folder."""
        return _below(self.root, "sessions", uid, name)

    def text_of_session(self, uid: str, name: str) -> str:
        """The same as text: a list asks for many once, and putting a Path together costs it 10 µs each."""
        return f"{_text(self.root)}/sessions/{uid}/{name}"

    def lock(self, name: str) -> Path:
        """The file of a session's lock."""
        return _below(self.root, "locks", name)

    def text_of_lock(self, name: str) -> str:
        """The same as text."""
        return f"{_text(self.root)}/locks/{name}"

    def agent_token(self, uid: str) -> Path:
        """The token by which the session's agent is known to its tools; made anew at each start."""
        return self.of_session(uid, "mcp-token")

    def spool_of(self, instance: str) -> Path:
        """Folder of one instance's hook reports."""
        return _below(self.root, "spool", instance)


@lru_cache(maxsize=4096)
def _below(root: Path, *names: str) -> Path:
    """Return a path that a list or a step of a delivery names several times: putting one together costs."""
    return Path(root, "local", *names)


@lru_cache(maxsize=16)
def _text(root: Path) -> str:
    return str(_below(root))


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
        return Location(absolute_path(explicit), "named by --config", named=True)
    if given := env.get(VARIABLE, ""):
        return Location(absolute_path(Path(given)), f"named by ${VARIABLE}", named=True)
    folder = xdg(env, "XDG_CONFIG_HOME", ".config")
    source = "$XDG_CONFIG_HOME" if _usable(env.get("XDG_CONFIG_HOME", "")) else "~/.config"
    return Location(folder / "the-loop" / FILE_NAME, f"the default, in {source}", named=False)


def is_default(source: Path | None, state_root: Path, env: Mapping[str, str]) -> bool:
    """Return whether a configuration is the one that is read by default; systemd's units serve no other.

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


def expanded(text: str) -> Path:
    """Return the path with the home folder for `~`. `~name` stays where no such user exists: that is no whole path."""
    return _path(os.path.expanduser(text))


_path = lru_cache(maxsize=1024)(Path)  # every row of a list and every step of a delivery asks for one of a few


def absolute_path(path: Path) -> Path:
    """Return the path from / on. Raises NoFolder where it is named from a current folder that is gone."""
    try:
        return Path(os.path.expanduser(path)).absolute()
    except OSError as error:
        raise NoFolder(path) from error
